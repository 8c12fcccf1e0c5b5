// The battle as it is shown: the time, the camera, the selected mech.

import { readAddress, writeAddress } from "./address.js";
import { Camera } from "./camera.js";
import { listen } from "./controls.js";
import { byId } from "./dom.js";
import { LASTS } from "./effects.js";
import { followFight, frameMap, fromBlueToRed } from "./framing.js";
import { Painter } from "./gl.js";
import { Ground } from "./ground.js";
import { Inspector } from "./inspector.js";
import { Labels } from "./labels.js";
import { momentReader, statesOf } from "./moments.js";
import { Panels } from "./panels.js";
import { Scene } from "./scene.js";
import { cellsInSight, ghostsOf } from "./sight.js";
import { Sound } from "./sound.js";
import { Terrain } from "./terrain.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const SLOW_FRAME = 0.045; // s
const LEAST_SCALE = 0.4;
const GROUND_RATE = 15; // times a second that the marks of a selected mech are drawn
const SHORTEST = 240; // decisions on the timeline of a battle in progress
const NEAR = 28; // m, of the camera from a mech

export class Viewer {
  /** @param {import("./simulation.js").Simulation} simulation */
  constructor(simulation) {
    this.simulation = simulation;
    this.world = simulation.world;
    /** Decisions whose events are kept. */
    this.kept = Math.ceil(LASTS.death / this.world.battle.seconds);
    const read = momentReader(simulation);
    this.read = () => this.remember(read());
    /** @type {import("./scan.js").Scan | null} */
    this.scan = null;
    /** The person's game, if the page is one. @type {import("./driver.js").Driver | null} */
    this.driver = null;
    /** Events that can still be seen, by decision. @type {Map<number, import("./moments.js").Event[]>} */
    this.recent = new Map();
    this.before = this.read();
    this.after = this.before;
    /** Time in decisions. */
    this.time = 0;
    this.playing = true;
    this.speed = 1;
    this.selected = -1;
    this.follows = false;
    this.fog = false;
    /** Whether the camera is above the map. */
    this.fromAbove = false;
    /** The direction from blue's start to red's. */
    this.across = fromBlueToRed(this.after.mechs);
    /** The mech under the pointer, or -1. */
    this.hovered = -1;
    /** The mount whose range is drawn. */
    this.mount = -1;
    /** @type {any[]} */
    this.ghosts = [];
    /** @type {Uint8Array | null} */
    this.lit = null;
    /** @type {boolean[] | undefined} */
    this.seen = undefined;
    /** What the marks on the ground were drawn of. */
    this.marked = "";
    const { battle } = this.world;
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("picture"));
    this.camera = new Camera(battle.size);
    this.painter = new Painter(this.canvas, battle.size);
    this.terrain = new Terrain(simulation.bytesOf("voxels"), battle);
    this.scene = new Scene(this.world);
    this.ground = new Ground(battle);
    this.inspector = new Inspector(simulation, () => this.scan, (mount) => { this.mount = mount; });
    this.timeline = new Timeline(/** @type {HTMLCanvasElement} */ (byId("timeline")), () => (this.driver?.running ? Math.max(simulation.decisions, SHORTEST) : simulation.decisions), battle);
    this.sound = new Sound();
    this.overlay = new Labels(this);
    this.panels = new Panels(this);
    this.panels.makeRoster();
    this.overview();
    listen(this);
    this.meshTerrain();
    readAddress(this);
  }

  run() {
    let last = performance.now();
    let slow = 0;
    const frame = (/** @type {number} */ now) => {
      const passed = Math.min(0.1, Math.max(0, now - last) / 1000); // the first frame may have begun before
      last = now;
      slow = passed > SLOW_FRAME ? slow + 1 : Math.max(0, slow - 1);
      if (slow > 8) {
        this.painter.scale = Math.max(LEAST_SCALE, 0.75 * this.painter.scale);
        slow = 0;
      }
      if (this.playing) this.advance((passed / this.world.battle.seconds) * this.speed);
      this.camera.passed = passed;
      this.draw(now / 1000);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** @param {number} decisions */
  advance(decisions) {
    const { driver, simulation } = this;
    if (driver?.running && this.time + decisions > simulation.decisions) driver.decide();
    const { decision } = this.after;
    this.goTo(this.time + decisions);
    const { battle } = this.world;
    if (this.after.decision === decision + 1) {
      this.sound.play(this.after.events.filter((event) => this.notices(event)), this.camera, battle, battle.seconds / this.speed);
    }
    if (this.time < simulation.decisions || driver?.running) return;
    this.setPlaying(false);
    driver?.showEnd();
  }

  /** Show the start of another battle. */
  restart() {
    this.time = 0;
    this.recent.clear();
    this.marked = "";
    this.before = this.after = this.read();
    this.across = fromBlueToRed(this.after.mechs);
    this.selected = this.hovered = this.mount = -1;
    this.meshTerrain();
    this.panels.makeRoster();
    this.refresh();
  }

  /** Keep what of a moment can be seen for a while. @param {import("./moments.js").Moment} moment */
  remember(moment) {
    this.recent.set(moment.decision, moment.events.filter((event) => event.kind in LASTS));
    for (const decision of this.recent.keys()) if (Math.abs(decision - moment.decision) > this.kept) this.recent.delete(decision);
    return moment;
  }

  /** Whether a mech may be shown. @param {number} mech */
  sees(mech) {
    return !(this.fog && this.selected >= 0) || (this.seen?.[mech] ?? true);
  }

  /** What a mech is at the moment, as far as it may be shown: messages and jets of enemies are not noticed. @param {import("./moments.js").Mech} mech */
  statesOf(mech) {
    const hidden = this.driver?.plays && mech.team !== this.driver.own.team ? ["transmits", "jump jets"] : [];
    return statesOf(mech).filter((state) => !hidden.includes(state));
  }

  /** Whether a place may be shown. @param {number} x @param {number} y m */
  isLit(x, y) {
    const { size } = this.world.battle;
    return !this.lit || (x >= 0 && x < size && this.lit[Math.floor(y) * size + Math.floor(x)] > 0);
  }

  /** Whether an event may be shown and heard. @param {import("./moments.js").Event} event */
  notices(event) {
    const by = { shot: event.actor, interception: -1 }[event.kind] ?? event.target;
    return this.isLit(event.x, event.y) || (by >= 0 && this.sees(by));
  }

  /** Events that are not older than so many seconds for their kind, with their ages in s. @param {Record<string, number>} lasts */
  happened(lasts) {
    const { seconds } = this.world.battle;
    return [...this.recent].flatMap(([decision, events]) => events.flatMap((event) => {
      const age = (this.time - (decision - 1 + 0.9 * event.when)) * seconds;
      return age >= 0 && age <= (lasts[event.kind] ?? -1) ? [{ event, age }] : [];
    }));
  }

  /** Show a time. @param {number} time in decisions */
  goTo(time) {
    this.time = Math.min(this.simulation.decisions, Math.max(0, time));
    const decision = Math.ceil(this.time);
    const from = Math.max(0, decision - 1);
    if (this.after.decision !== decision || this.before.decision !== from) {
      if (this.after.decision === from) this.before = this.after;
      else {
        const ahead = from - this.after.decision; // on the way there are events that can still be seen
        const first = ahead > 0 && ahead <= this.kept ? this.after.decision + 1 : Math.max(0, from - this.kept);
        for (let past = first; past <= from; past += 1) {
          this.simulation.seek(past);
          this.before = this.read();
        }
      }
      this.simulation.seek(decision);
      this.after = this.read();
      this.meshTerrain();
      if (this.driver && decision === this.simulation.decisions) this.driver.decided();
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
    const effects = this.happened(LASTS).filter(({ event }) => this.notices(event));
    this.scene.build(this, this.time - this.before.decision, effects, seconds);
    const marks = `${this.after.decision},${this.selected},${this.mount},${this.selected < 0 ? 0 : Math.floor(GROUND_RATE * seconds)}`;
    if (marks !== this.marked) { // a canvas that is drawn for every picture takes longer than the battle
      this.marked = marks;
      this.ground.draw(this.after, this.scene.places, this.selected, this.weapon);
      this.painter.setMarks(this.ground.canvas);
    }
    if (this.driver?.plays) this.driver.chase();
    else if (this.follows) followFight(this, effects);
    this.painter.draw(this.camera, this.scene);
    this.overlay.draw();
    this.timeline.draw(this.scan, this.marks(), this.time);
  }

  /** The target of the selected mech, or -1. */
  get target() {
    return this.after.mechs[this.selected]?.target ?? -1;
  }

  /** The weapon of the selected mech whose range is drawn. */
  get weapon() {
    const mech = this.after.mechs[this.selected];
    if (!mech) return null;
    const { weapons: mounted } = this.world.battle.classes[mech.kind];
    const name = mounted[this.mount] ?? mounted.find(Boolean);
    return this.world.battle.weapons.find((/** @type {any} */ each) => each.name === name) ?? null;
  }

  /** See the whole map between the panels, each team's side at its panel. */
  overview() {
    this.fromAbove = false;
    frameMap(this);
  }

  /** The events of the timeline that may be shown. */
  marks() {
    const marks = this.scan?.marks ?? [];
    return this.driver?.running ? marks.filter((mark) => mark.known) : marks;
  }

  /** @param {import("./scan.js").Scan} scan */
  report(scan) {
    this.scan = scan;
    if (scan.done) this.showPanels();
    this.panels.report(scan);
  }

  showPanels() {
    this.panels.show();
  }

  /** @param {number} mech or -1 */
  select(mech) {
    if (this.driver?.plays) {
      this.driver.choose(mech);
      return;
    }
    this.selected = mech >= 0 && mech < this.simulation.mechs ? mech : -1;
    this.mount = -1;
    this.refresh();
  }

  refresh() {
    this.updateSight();
    this.showPanels();
    byId("follow").setAttribute("aria-pressed", String(this.follows));
    byId("top").setAttribute("aria-pressed", String(this.fromAbove));
    byId("fog").setAttribute("aria-pressed", String(this.fog));
    writeAddress(this);
  }

  /** @param {boolean} playing */
  setPlaying(playing) {
    if (playing && this.driver?.menuOpen) {
      if (!this.driver.busy) this.driver.close();
      return;
    }
    if (playing && this.time >= this.simulation.decisions && !this.driver?.running) this.goTo(0);
    this.playing = playing;
    byId("play").textContent = playing ? "❚❚" : "▶";
    byId("play").setAttribute("aria-label", playing ? "pause" : "play");
    if (!playing) writeAddress(this);
  }

  /** @param {number} by steps in the list of speeds */
  changeSpeed(by) {
    const place = Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(this.speed) + by));
    this.speed = SPEEDS[place];
    byId("speed").textContent = `${this.speed} ×`;
  }

  /** Pause, and show the state after a decision. @param {number} decision */
  stop(decision) {
    if (this.driver?.running) return;
    this.goTo(Math.round(decision));
    this.setPlaying(false);
  }

  /** Show what leads to a decision. @param {number} decision */
  watchFrom(decision) {
    byId("menu").hidden = true;
    this.stop(Math.max(0, decision - 12));
    this.setPlaying(true);
  }

  /** The next or the previous event of the timeline. @param {number} direction 1 or -1 @param {boolean} [kills] only of those */
  jump(direction, kills = false) {
    const marks = this.marks().filter((mark) => !kills || mark.kind === "death").map((mark) => mark.decision);
    const ahead = marks.filter((each) => (each - this.time) * direction > 0.01);
    if (ahead.length) this.stop(direction > 0 ? Math.min(...ahead) : Math.max(...ahead));
  }

  follow() {
    if (this.driver?.plays) return;
    this.follows = !this.follows;
    this.fromAbove = false;
    if (this.follows && this.selected >= 0) this.camera.distance = Math.min(this.camera.distance, NEAR);
    this.refresh();
  }

  top() {
    if (this.driver?.plays) return;
    const above = !this.fromAbove;
    this.follows = false;
    this.overview();
    if (above) Object.assign(this.camera, { elevation: 1.55, distance: 1.05 * this.camera.distance });
    this.fromAbove = above;
    this.refresh();
  }

  toggleFog() {
    if (this.driver?.plays) return;
    if (this.selected < 0) this.selected = this.after.mechs.findIndex((mech) => mech.alive);
    this.fog = !this.fog;
    this.refresh();
  }

  /** Close what is open: the list of keys, else the inspector. */
  close() {
    if (this.driver?.plays) {
      this.driver.inspects = false;
      this.showPanels();
    } else this.select(-1);
    byId("keys").hidden = true;
  }

  async toggleSound() {
    await this.sound.toggle();
    byId("sound").setAttribute("aria-pressed", String(this.sound.on));
  }

  help() {
    if (this.driver?.plays) {
      this.driver.pause(); // whose menu has the keys
      return;
    }
    byId("keys").hidden = !byId("keys").hidden;
  }
}
