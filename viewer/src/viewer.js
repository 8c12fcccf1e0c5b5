// The page: picture, lists, keys and time.

import { Camera } from "./camera.js";
import { bar, byId, element } from "./dom.js";
import { Painter } from "./gl.js";
import { Inspector, TABS } from "./inspector.js";
import { mix, project } from "./math.js";
import { mechName, momentReader } from "./moments.js";
import { Scene } from "./scene.js";
import { cellsInSight, ghostsOf } from "./sight.js";
import { Terrain } from "./terrain.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const SLOW_FRAME = 0.045; // s
const LEAST_SCALE = 0.4;
const FEED_SECONDS = 5;
/** @type {Record<string, string>} */
const FEED = { death: "is destroyed", fall: "falls", shutdown: "shuts down", legged: "loses its legs" };
const TEAM_NAMES = ["blue", "red"];

export class Viewer {
  /** @param {import("./simulation.js").Simulation} simulation */
  constructor(simulation) {
    this.simulation = simulation;
    this.world = simulation.world;
    this.read = momentReader(simulation);
    /** @type {import("./scan.js").Scan | null} */
    this.scan = null;
    this.before = this.read();
    this.after = this.before;
    /** Time in decisions. */
    this.time = 0;
    this.playing = true;
    this.speed = 1;
    this.selected = -1;
    this.follows = false;
    this.fog = false;
    /** @type {any[]} */
    this.ghosts = [];
    /** @type {Uint8Array | null} */
    this.lit = null;
    /** @type {boolean[] | undefined} */
    this.seen = undefined;
    this.frames = 0;
    const { battle } = this.world;
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("picture"));
    this.labels = /** @type {HTMLCanvasElement} */ (byId("labels"));
    this.camera = new Camera(battle.size);
    this.painter = new Painter(this.canvas, battle.size);
    this.terrain = new Terrain(simulation.bytesOf("voxels"), battle);
    this.scene = new Scene(this.world);
    this.inspector = new Inspector(simulation, () => this.scan);
    this.timeline = new Timeline(/** @type {HTMLCanvasElement} */ (byId("timeline")), simulation.decisions, battle.score);
    this.roster = this.makeRoster();
    this.listen();
    this.meshTerrain();
    this.readAddress();
  }

  run() {
    let last = performance.now();
    let slow = 0;
    const frame = (/** @type {number} */ now) => {
      const passed = Math.min(0.1, (now - last) / 1000);
      last = now;
      slow = passed > SLOW_FRAME ? slow + 1 : Math.max(0, slow - 1);
      if (slow > 8) {
        this.painter.scale = Math.max(LEAST_SCALE, 0.75 * this.painter.scale);
        slow = 0;
      }
      if (this.playing) this.advance((passed / this.world.battle.seconds) * this.speed);
      this.draw(now / 1000);
      this.frames += 1;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** @param {number} decisions */
  advance(decisions) {
    this.goTo(this.time + decisions);
    if (this.time >= this.simulation.decisions) this.setPlaying(false);
  }

  /** Show a time. @param {number} time in decisions */
  goTo(time) {
    this.time = Math.min(this.simulation.decisions, Math.max(0, time));
    const decision = Math.ceil(this.time);
    const from = Math.max(0, decision - 1);
    if (this.after.decision !== decision || this.before.decision !== from) {
      if (this.after.decision === from) this.before = this.after;
      else {
        this.simulation.seek(from);
        this.before = this.read();
      }
      this.simulation.seek(decision);
      this.after = this.read();
      this.meshTerrain();
      this.updateSight();
      this.showPanels();
    }
  }

  meshTerrain() {
    for (const chunk of this.terrain.changed()) {
      const [opaque, clear] = this.terrain.mesh(chunk);
      this.painter.setChunk(`opaque ${chunk}`, opaque);
      this.painter.setChunk(`clear ${chunk}`, clear);
    }
  }

  updateSight() {
    const mech = this.after.mechs[this.selected];
    this.ghosts = mech ? ghostsOf(this.simulation, this.after, this.selected) : [];
    this.lit = mech && this.fog ? cellsInSight(this.simulation, mech) : null;
    this.painter.setSight(this.lit);
    const visible = this.simulation.field("visible");
    const count = this.simulation.mechs;
    this.seen = this.after.mechs.map((other) => !mech || other.team === mech.team || visible(this.selected * count + other.index) > 0);
  }

  /** @param {number} seconds */
  draw(seconds) {
    const share = this.time - this.before.decision;
    const hides = this.fog && this.selected >= 0;
    this.scene.build(this.before, this.after, share, {
      selected: this.selected,
      sees: (mech) => !hides || (this.seen?.[mech] ?? true),
      lit: (x, y) => !this.lit || this.lit[Math.floor(y) * this.world.battle.size + Math.floor(x)] > 0,
      ghosts: this.ghosts,
      time: seconds,
    });
    const followed = this.follows ? this.scene.places[this.selected] : undefined;
    if (followed) {
      const ease = 0.15;
      this.camera.x = mix(this.camera.x, followed.x, ease);
      this.camera.y = mix(this.camera.y, followed.y, ease);
      this.camera.z = mix(this.camera.z, followed.z + 1, ease);
    }
    this.painter.draw(this.camera, this.scene);
    this.drawLabels(share);
    this.timeline.draw(this.scan, this.time);
  }

  /** @param {number} share of the decision that has passed */
  drawLabels(share) {
    const { labels } = this;
    const scale = globalThis.devicePixelRatio || 1;
    const [width, height] = [labels.clientWidth, labels.clientHeight];
    if (labels.width !== Math.round(width * scale)) labels.width = Math.round(width * scale);
    if (labels.height !== Math.round(height * scale)) labels.height = Math.round(height * scale);
    const paper = /** @type {CanvasRenderingContext2D} */ (labels.getContext("2d"));
    paper.setTransform(scale, 0, 0, scale, 0, 0);
    paper.clearRect(0, 0, width, height);
    paper.textAlign = "center";
    paper.font = "600 11px system-ui, sans-serif";
    this.after.mechs.forEach((mech, index) => {
      const place = this.scene.places[index];
      if (!place?.shown || !mech.alive) return;
      const kind = this.world.battle.classes[mech.kind];
      const at = project(this.camera.matrix, place.x, place.y, place.z + kind.size[2] * 1.25);
      if (!at) return;
      const [x, y] = [at.x * width, at.y * height];
      paper.fillStyle = "#0009";
      paper.fillRect(x - 17, y - 19, 34, 17);
      paper.fillStyle = mech.team === 0 ? "#7db4ff" : "#ff9a6b";
      paper.fillText(`${kind.letter}${this.numberOf(mech)}${mech.fallen ? " ▾" : ""}${mech.shutdown ? " ○" : ""}`, x, y - 9);
      const own = this.after.mechs[this.selected];
      if (mech.paintedBy.some((pack) => !own || pack === own.pack)) {
        paper.fillStyle = "#59ff85";
        paper.fillText("◆", x + 24, y - 9);
      }
      if (mech.speaks) {
        paper.fillStyle = "#fff";
        paper.fillText("≋", x - 24, y - 9);
      }
      paper.fillStyle = "#0008";
      paper.fillRect(x - 14, y - 6, 28, 3);
      paper.fillStyle = mech.team === 0 ? "#3385fa" : "#ed5c24";
      paper.fillRect(x - 14, y - 6, 28 * Math.max(0, mech.armour / kind.armour), 3);
    });
    for (const event of this.after.events) {
      const since = share - 0.9 * event.when;
      if (event.amount < 0.5 || !["hit", "splash", "hazard"].includes(event.kind) || since < 0) continue;
      const target = this.scene.places[event.target];
      const at = target?.shown ? project(this.camera.matrix, target.x, target.y, target.z + 2 + 2 * since) : null;
      if (!at) continue;
      paper.fillStyle = `rgba(255, 240, 200, ${1 - since})`;
      paper.fillText(`−${event.amount.toFixed(0)}`, at.x * width, at.y * height);
    }
    paper.fillStyle = "#ffffffb0";
    for (const ghost of this.ghosts) {
      const at = project(this.camera.matrix, ghost.x, ghost.y, ghost.z + 1.6);
      if (at) {
        const mech = this.after.mechs[ghost.mech];
        const { letter } = this.world.battle.classes[mech.kind];
        paper.fillText(`${letter}${this.numberOf(mech)}? ${ghost.age.toFixed(0)} s`, at.x * width, at.y * height);
      }
    }
  }

  /** @param {import("./moments.js").Mech} mech */
  numberOf(mech) {
    return mech.team === 0 ? mech.index : mech.index - this.world.battle.blue;
  }

  makeRoster() {
    const { players } = this.simulation.replay.header;
    return this.after.mechs.map((mech) => {
      const team = byId(`roster-${TEAM_NAMES[mech.team]}`);
      if (team.childElementCount === 0) team.append(element("h2", { title: String(players[mech.team]) }, String(players[mech.team])));
      const bars = element("span", { className: "bars" });
      const button = element(
        "button", { type: "button", className: `mech ${TEAM_NAMES[mech.team]}` },
        element("b", {}, `${this.world.battle.classes[mech.kind].letter}${this.numberOf(mech)}`), bars,
      );
      button.addEventListener("click", () => this.select(mech.index === this.selected ? -1 : mech.index));
      team.append(button);
      return { button, bars };
    });
  }

  showPanels() {
    const { battle } = this.world;
    this.after.mechs.forEach((mech, index) => {
      const { button, bars } = this.roster[index];
      const kind = battle.classes[mech.kind];
      button.classList.toggle("dead", !mech.alive);
      button.classList.toggle("selected", index === this.selected);
      button.setAttribute("aria-pressed", String(index === this.selected));
      button.title = `${mechName(mech, battle)}, ${kind.name}`;
      const hidden = this.fog && this.selected >= 0 && !this.seen?.[index];
      bars.replaceChildren(bar(hidden ? 0 : mech.armour / kind.armour, "armour"), bar(hidden ? 0 : mech.heat / kind.heat, "heat"));
    });
    this.after.teams.forEach((team, index) => {
      byId(`score-${TEAM_NAMES[index]}`).replaceChildren(bar(team.score / battle.score, TEAM_NAMES[index]), ` ${team.score.toFixed(1)}`);
    });
    const seconds = this.after.decision * battle.seconds;
    byId("clock").textContent = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
    byId("decision").textContent = `decision ${this.after.decision} of ${this.simulation.decisions}`;
    this.showFeed();
    byId("ending").textContent = this.after.over ? this.ending() : "";
    const panel = byId("inspector");
    panel.hidden = this.selected < 0;
    if (this.selected >= 0) {
      const mech = this.after.mechs[this.selected];
      byId("selected").textContent = mechName(mech, battle);
      byId("details").replaceChildren(...this.inspector.show(this.after, this.selected, this.time < this.after.decision));
      for (const tab of TABS) byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === this.inspector.tab));
    }
  }

  /** What has happened in the last seconds. */
  showFeed() {
    const { battle } = this.world;
    const now = this.after.decision;
    const recent = (this.scan?.marks ?? []).filter((mark) => mark.decision <= now && (now - mark.decision) * battle.seconds < FEED_SECONDS);
    const name = (/** @type {number} */ mech) => mechName(this.after.mechs[mech], battle);
    byId("feed").replaceChildren(
      ...recent.slice(-4).map(({ kind, team, mech, by }) => {
        const text = `${name(mech)} ${FEED[kind]}${kind === "death" && by >= 0 && by !== mech ? ` by ${name(by)}` : ""}`;
        return element("li", { className: TEAM_NAMES[team] }, text);
      }),
    );
  }

  ending() {
    const { winner, reason } = this.after;
    const how = reason.replace("_", " ");
    return winner < 0 ? `draw: ${how}` : `${TEAM_NAMES[winner]} wins: ${how}`;
  }

  /** @param {import("./scan.js").Scan} scan */
  report(scan) {
    this.scan = scan;
    const { decisions } = this.simulation;
    const { stamp } = this.simulation.replay.header;
    const [ours, theirs] = [this.world.engine, stamp?.engine_hash].map((hash) => String(hash ?? "?").slice(0, 12));
    const engine = ours === theirs ? `engine ${ours}` : `engine ${ours}, recorded by ${theirs}`;
    if (scan.done) this.showPanels();
    const badge = byId("verified");
    if (scan.different !== null) {
      badge.textContent = `differs from the recording at decision ${scan.different} (${engine})`;
      badge.className = "bad";
    } else {
      badge.textContent = `${scan.checked} of ${decisions} decisions equal (${engine})`;
      badge.className = scan.done ? "good" : "";
    }
  }

  /** @param {number} mech or -1 */
  select(mech) {
    this.selected = mech >= 0 && mech < this.simulation.mechs ? mech : -1;
    if (this.selected < 0) this.follows = false;
    this.refresh();
  }

  refresh() {
    this.updateSight();
    this.showPanels();
    byId("follow").setAttribute("aria-pressed", String(this.follows));
    byId("fog").setAttribute("aria-pressed", String(this.fog));
    this.writeAddress();
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    if (playing && this.time >= this.simulation.decisions) this.goTo(0);
    this.playing = playing;
    byId("play").textContent = playing ? "❚❚" : "▶";
    byId("play").setAttribute("aria-label", playing ? "pause" : "play");
    if (!playing) this.writeAddress();
  }

  /** @param {number} by steps in the list of speeds */
  changeSpeed(by) {
    const place = Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(this.speed) + by));
    this.speed = SPEEDS[place];
    byId("speed").textContent = `${this.speed} ×`;
  }

  /** Pause, and show the state after a decision. @param {number} decision */
  stop(decision) {
    this.goTo(Math.round(decision));
    this.setPlaying(false);
  }

  /** The next or the previous event of the timeline. @param {number} direction 1 or -1 */
  jump(direction) {
    const marks = (this.scan?.marks ?? []).map((mark) => mark.decision);
    const ahead = marks.filter((each) => (each - this.time) * direction > 0.01);
    if (ahead.length) this.stop(direction > 0 ? Math.min(...ahead) : Math.max(...ahead));
  }

  follow() {
    if (this.selected < 0) this.selected = this.after.mechs.findIndex((mech) => mech.alive);
    this.follows = !this.follows;
    if (this.follows) this.camera.distance = Math.min(this.camera.distance, 28);
    this.refresh();
  }

  top() {
    this.follows = false;
    const { size } = this.world.battle;
    Object.assign(this.camera, { x: size / 2, y: size / 2, z: 2, elevation: 1.55, azimuth: -Math.PI / 2, distance: size * 1.3 });
    this.refresh();
  }

  toggleFog() {
    if (this.selected < 0) this.selected = this.after.mechs.findIndex((mech) => mech.alive);
    this.fog = !this.fog;
    this.refresh();
  }

  listen() {
    /** @type {Record<string, () => void>} */
    const actions = {
      play: () => this.setPlaying(!this.playing), back: () => this.stop(Math.ceil(this.time) - 1), next: () => this.stop(Math.floor(this.time) + 1),
      slower: () => this.changeSpeed(-1), faster: () => this.changeSpeed(1), follow: () => this.follow(), top: () => this.top(),
      fog: () => this.toggleFog(), help: () => this.help(), close: () => this.select(-1),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
    for (const tab of TABS) {
      byId(`tab-${tab}`).addEventListener("click", () => {
        this.inspector.tab = tab;
        this.showPanels();
      });
    }
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.readAddress());
    this.listenToPointers();
    const bar = byId("timeline");
    /** @param {PointerEvent} event */
    const seek = (event) => this.stop(this.timeline.at(event.clientX - bar.getBoundingClientRect().left));
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      seek(event);
    });
    bar.addEventListener("pointermove", (event) => event.buttons && seek(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      " ": () => this.setPlaying(!this.playing), f: () => this.follow(), v: () => this.toggleFog(), t: () => this.top(),
      "+": () => this.changeSpeed(1), "=": () => this.changeSpeed(1), "-": () => this.changeSpeed(-1),
      ArrowRight: () => (event.shiftKey ? this.jump(1) : this.stop(Math.floor(this.time) + 1)),
      ArrowLeft: () => (event.shiftKey ? this.jump(-1) : this.stop(Math.ceil(this.time) - 1)),
      Home: () => this.stop(0), End: () => this.stop(this.simulation.decisions),
      Escape: () => this.select(-1), "?": () => this.help(), h: () => this.help(),
    };
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action) action();
    else if (/^[1-9]$/.test(event.key)) this.select(Number(event.key) - 1);
    else return;
    event.preventDefault();
  }

  listenToPointers() {
    const { canvas, camera } = this;
    /** @type {Map<number, {x: number, y: number}>} */
    const down = new Map();
    let moved = 0;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const from = down.get(event.pointerId);
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      moved += Math.abs(dx) + Math.abs(dy);
      if (down.size === 2) {
        const [a, b] = [...down.values()];
        const other = a === from ? b : a;
        const before = Math.hypot(from.x - other.x, from.y - other.y);
        camera.zoom(before / Math.max(1, Math.hypot(event.clientX - other.x, event.clientY - other.y)));
        camera.pan(-dx / canvas.clientHeight / 2, dy / canvas.clientHeight / 2);
      } else if (event.buttons === 2 || event.shiftKey) {
        this.follows = false;
        camera.pan(-dx / canvas.clientHeight, dy / canvas.clientHeight);
      } else camera.turn(dx * 0.006, dy * 0.006);
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    });
    const up = (/** @type {PointerEvent} */ event) => {
      if (down.delete(event.pointerId) && moved < 6 && event.type === "pointerup") this.pick(event.offsetX, event.offsetY);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      camera.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.002))));
    }, { passive: false });
  }

  /** Select the mech at a place of the picture. @param {number} x @param {number} y pixels */
  pick(x, y) {
    let [best, nearest] = [-1, 28];
    this.after.mechs.forEach((mech, index) => {
      const place = this.scene.places[index];
      if (!place?.shown || !mech.alive) return;
      const at = project(this.camera.matrix, place.x, place.y, place.z + 1);
      if (!at) return;
      const off = Math.hypot(at.x * this.canvas.clientWidth - x, at.y * this.canvas.clientHeight - y);
      if (off < nearest) [best, nearest] = [index, off];
    });
    if (best >= 0) this.select(best);
  }

  help() {
    byId("keys").hidden = !byId("keys").hidden;
  }

  /** The address: ``#t=83&mech=3``, the time in decisions and the mech's number in the arrays. */
  readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const [time, mech] = ["t", "mech"].map((name) => Number.parseInt(asked.get(name) ?? "", 10));
    if (Number.isFinite(mech)) this.selected = mech >= 0 && mech < this.simulation.mechs ? mech : -1;
    if (Number.isFinite(time)) this.stop(time);
    else this.goTo(this.time);
    this.updateSight();
    this.showPanels();
  }

  writeAddress() {
    const parts = [`t=${Math.round(this.time)}`];
    if (this.selected >= 0) parts.push(`mech=${this.selected}`);
    try {
      history.replaceState(null, "", `#${parts.join("&")}`);
    } catch {
      // a page in a notebook's frame may have no address
    }
  }
}
