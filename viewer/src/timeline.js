// The bar below: both scores over time, and what happened.

const COLOURS = ["#3385fa", "#ed5c24"];
const SYMBOLS = /** @type {Record<string, string>} */ ({ death: "✕", fall: "▾", shutdown: "○", legged: "⌄" });

export class Timeline {
  /** @param {HTMLCanvasElement} canvas @param {() => number} decisions @param {number} goal score that wins */
  constructor(canvas, decisions, goal) {
    this.canvas = canvas;
    this.decisions = decisions;
    this.goal = goal;
  }

  /** The decision under a place of the bar. @param {number} x pixels from its left edge */
  at(x) {
    return Math.min(this.decisions(), Math.max(0, Math.round((x / Math.max(1, this.canvas.clientWidth)) * this.decisions())));
  }

  /**
   * @param {import("./scan.js").Scan | null} scan
   * @param {import("./scan.js").Mark[]} marks those to show
   * @param {number} now decision, with its share
   */
  draw(scan, marks, now) {
    const { canvas } = this;
    const scale = globalThis.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const paper = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    paper.setTransform(scale, 0, 0, scale, 0, 0);
    paper.clearRect(0, 0, width, height);
    const across = (/** @type {number} */ decision) => (decision / Math.max(1, this.decisions())) * width;
    if (scan) {
      const stride = Math.max(1, Math.floor(this.decisions() / Math.max(1, width)));
      for (const team of [0, 1]) {
        paper.beginPath();
        for (let decision = 0; decision < scan.scores.length; decision += stride) {
          const share = Math.min(1, scan.scores[decision][team] / this.goal);
          paper.lineTo(across(decision), height - 3 - (height - 18) * share);
        }
        paper.strokeStyle = COLOURS[team];
        paper.lineWidth = 2;
        paper.stroke();
      }
      paper.font = "bold 11px system-ui, sans-serif";
      paper.textAlign = "center";
      for (const mark of marks) {
        paper.fillStyle = COLOURS[mark.team];
        paper.globalAlpha = mark.kind === "death" ? 1 : 0.55;
        paper.fillText(SYMBOLS[mark.kind] ?? "", across(mark.decision), mark.team === 0 ? 11 : 22);
      }
      paper.globalAlpha = 1;
    }
    paper.fillStyle = "#fff";
    paper.fillRect(across(now) - 1, 0, 2, height);
  }
}
