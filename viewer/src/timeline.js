// The bar below: both scores over time, and what happened.

import { blank, byId, clock, font } from "./dom.js";

export const COLOURS = ["#4a97ff", "#ff6f37"];
export const SYMBOLS = /** @type {Record<string, string>} */ ({ death: "✕", fall: "▾", shutdown: "○", legged: "⌄" });
const LEFT = 26; // pixels of the axis of scores
const BELOW = 13; // and of that of the time
const NEAR = 7; // within which the pointer is at a mark

export class Timeline {
  /** @param {HTMLCanvasElement} canvas @param {() => number} decisions @param {any} battle */
  constructor(canvas, decisions, battle) {
    this.canvas = canvas;
    this.cursor = byId("now");
    this.drawn = "";
    this.decisions = decisions;
    this.battle = battle;
  }

  get width() {
    return Math.max(1, this.canvas.clientWidth - LEFT - 6);
  }

  /** Where a decision is, in pixels. @param {number} decision */
  across(decision) {
    return LEFT + (decision / Math.max(1, this.decisions())) * this.width;
  }

  /** The decision under a place of the bar. @param {number} x pixels from its left edge */
  at(x) {
    return Math.min(this.decisions(), Math.max(0, Math.round(((x - LEFT) / this.width) * this.decisions())));
  }

  /** The mark at a place of the bar; kills before others. @param {import("./scan.js").Mark[]} marks @param {number} x */
  markAt(marks, x) {
    const near = marks.filter((mark) => Math.abs(this.across(mark.decision) - x) <= NEAR);
    return near.find((mark) => mark.kind === "death") ?? near[0] ?? null;
  }

  /**
   * @param {import("./scan.js").Scan | null} scan
   * @param {import("./scan.js").Mark[]} marks those to show
   * @param {number} now decision, with its share
   */
  draw(scan, marks, now) {
    this.cursor.style.transform = `translateX(${this.across(now)}px)`;
    const state = [scan?.scores.length, marks.length, this.decisions(), this.canvas.clientWidth, this.canvas.clientHeight, devicePixelRatio].join();
    if (state === this.drawn) return;
    this.drawn = state;
    const { paper, width, height } = blank(this.canvas);
    const floor = height - BELOW;
    const top = Math.min(30, floor - 8);
    paper.font = font("10");
    this.drawAxes(paper, top, floor, width);
    if (scan) {
      for (const team of [0, 1]) this.drawScore(paper, scan, team, top, floor);
      paper.textAlign = "center";
      for (const mark of marks) {
        const kill = mark.kind === "death";
        paper.font = font(`bold ${kill ? 13 : 11}`);
        paper.fillStyle = COLOURS[mark.team];
        paper.globalAlpha = kill ? 1 : 0.6;
        paper.fillText(SYMBOLS[mark.kind] ?? "", this.across(mark.decision), mark.team === 0 ? 12 : 25);
      }
      paper.globalAlpha = 1;
    }
  }

  /** The scores from 0 to the one that wins, and the time. @param {CanvasRenderingContext2D} paper @param {number} top @param {number} floor @param {number} width */
  drawAxes(paper, top, floor, width) {
    const { score, seconds } = this.battle;
    paper.fillStyle = "#9aa6b8";
    paper.textAlign = "right";
    for (const [value, y] of [[0, floor], [score, top]]) {
      paper.fillText(String(Math.round(value)), LEFT - 5, y + 3);
      paper.fillRect(LEFT, y, width - LEFT - 6, 0.5);
    }
    paper.textAlign = "center";
    const length = this.decisions() * seconds;
    const step = [5, 10, 20, 30, 60, 120, 300].find((each) => (length / each) * 45 < this.width) ?? 600;
    for (let at = step; at < length - step / 4; at += step) {
      const x = this.across(at / seconds);
      paper.fillText(clock(at), x, floor + 11);
      paper.fillRect(x, floor, 0.5, 3);
    }
  }

  /** @param {CanvasRenderingContext2D} paper @param {import("./scan.js").Scan} scan @param {number} team @param {number} top @param {number} floor */
  drawScore(paper, scan, team, top, floor) {
    const stride = Math.max(1, Math.floor(this.decisions() / this.width));
    paper.beginPath();
    paper.moveTo(LEFT, floor);
    let last = LEFT;
    for (let decision = 0; decision < scan.scores.length; decision += stride) {
      last = this.across(decision);
      paper.lineTo(last, floor - (floor - top) * Math.min(1, scan.scores[decision][team] / this.battle.score));
    }
    paper.strokeStyle = COLOURS[team];
    paper.lineWidth = 2;
    paper.stroke();
    paper.lineTo(last, floor);
    paper.globalAlpha = 0.14;
    paper.fillStyle = COLOURS[team];
    paper.fill();
    paper.globalAlpha = 1;
  }
}
