// The page: picture, lists, keys and time.

import { Camera } from "./camera.js";
import { listen } from "./controls.js";
import { bar, byId, element } from "./dom.js";
import { Painter } from "./gl.js";
import { Inspector, TABS } from "./inspector.js";
import { drawLabels } from "./labels.js";
import { mix } from "./math.js";
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
    /** The person's game, if the page is one. @type {import("./driver.js").Driver | null} */
    this.driver = null;
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
    this.timeline = new Timeline(/** @type {HTMLCanvasElement} */ (byId("timeline")), () => simulation.decisions, battle.score);
    this.roster = this.makeRoster();
    listen(this);
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
    const { driver, simulation } = this;
    if (driver?.running && this.time + decisions > simulation.decisions) driver.decide();
    this.goTo(this.time + decisions);
    if (this.time < simulation.decisions || driver?.running) return;
    this.setPlaying(false);
    driver?.showEnd();
  }

  /** Show the start of another battle. */
  restart() {
    this.time = 0;
    this.before = this.after = this.read();
    this.selected = -1;
    this.meshTerrain();
    this.roster = this.makeRoster();
    this.refresh();
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
    const share = this.time - this.before.decision;
    const hides = this.fog && this.selected >= 0;
    this.scene.build(this.before, this.after, share, {
      selected: this.driver?.plays ? -1 : this.selected,
      sees: (mech) => !hides || (this.seen?.[mech] ?? true),
      lit: (x, y) => !this.lit || this.lit[Math.floor(y) * this.world.battle.size + Math.floor(x)] > 0,
      ghosts: this.ghosts,
      time: seconds,
    });
    if (this.driver?.plays) this.driver.chase();
    const followed = this.follows && !this.driver?.plays ? this.scene.places[this.selected] : undefined;
    if (followed) {
      const ease = 0.15;
      this.camera.x = mix(this.camera.x, followed.x, ease);
      this.camera.y = mix(this.camera.y, followed.y, ease);
      this.camera.z = mix(this.camera.z, followed.z + 1, ease);
    }
    this.painter.draw(this.camera, this.scene);
    drawLabels(this, share);
    this.timeline.draw(this.scan, this.marks(), this.time);
  }

  /** @param {import("./moments.js").Mech} mech */
  numberOf(mech) {
    return mech.team === 0 ? mech.index : mech.index - this.world.battle.blue;
  }

  makeRoster() {
    const { players } = this.simulation.replay.header;
    for (const team of TEAM_NAMES) byId(`roster-${team}`).replaceChildren();
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
    const noticed = new Set(this.marks().filter((mark) => mark.kind === "death").map((mark) => mark.mech));
    const dead = (/** @type {number} */ mech) => (this.driver?.running ? noticed.has(mech) : !this.after.mechs[mech].alive);
    this.after.mechs.forEach((mech, index) => {
      const { button, bars } = this.roster[index];
      const kind = battle.classes[mech.kind];
      button.classList.toggle("dead", dead(index));
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
    byId("decision").textContent = `decision ${this.after.decision}${this.driver?.running ? "" : ` of ${this.simulation.decisions}`}`;
    this.showFeed();
    byId("ending").textContent = this.after.over ? this.ending() : "";
    const panel = byId("inspector");
    panel.hidden = this.selected < 0 || (this.driver?.plays === true && !this.driver.inspects);
    this.driver?.showPanels();
    if (!panel.hidden) {
      const mech = this.after.mechs[this.selected];
      byId("selected").textContent = mechName(mech, battle);
      byId("details").replaceChildren(...this.inspector.show(this.after, this.selected, this.time < this.after.decision));
      for (const tab of TABS) byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === this.inspector.tab));
    }
  }

  /** The events of the timeline that may be shown. */
  marks() {
    const marks = this.scan?.marks ?? [];
    return this.driver?.running ? marks.filter((mark) => mark.known) : marks;
  }

  /** What has happened in the last seconds. */
  showFeed() {
    const { battle } = this.world;
    const now = this.after.decision;
    const recent = this.marks().filter((mark) => mark.decision <= now && (now - mark.decision) * battle.seconds < FEED_SECONDS);
    const name = (/** @type {number} */ mech) => mechName(this.after.mechs[mech], battle);
    byId("feed").replaceChildren(
      ...recent.slice(-4).map(({ kind, team, mech, by }) => {
        const text = `${name(mech)} ${FEED[kind]}${kind === "death" && by >= 0 && by !== mech && (!this.fog || this.seen?.[by]) ? ` by ${name(by)}` : ""}`;
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
    const stated = `as the file states: players, engine ${ours}${ours === theirs ? "" : `, recorded by ${theirs}`}`;
    if (scan.done) this.showPanels();
    const badge = byId("verified");
    if (scan.different !== null) {
      badge.textContent = `differs from the recording at decision ${scan.different} (${stated})`;
      badge.className = "bad";
    } else {
      badge.textContent = `${scan.checked} of ${decisions} decisions equal (${stated})`;
      badge.className = scan.done ? "good" : "";
    }
  }

  /** @param {number} mech or -1 */
  select(mech) {
    if (this.driver?.plays) {
      this.driver.choose(mech);
      return;
    }
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
    if (playing && this.driver?.menuOpen) {
      if (!this.driver.busy) this.driver.close();
      return;
    }
    if (playing && this.time >= this.simulation.decisions && !this.driver?.running) this.goTo(0);
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
    if (this.driver?.running) return;
    this.goTo(Math.round(decision));
    this.setPlaying(false);
  }

  /** The next or the previous event of the timeline. @param {number} direction 1 or -1 */
  jump(direction) {
    const marks = this.marks().map((mark) => mark.decision);
    const ahead = marks.filter((each) => (each - this.time) * direction > 0.01);
    if (ahead.length) this.stop(direction > 0 ? Math.min(...ahead) : Math.max(...ahead));
  }

  follow() {
    if (this.driver?.plays) return;
    if (this.selected < 0) this.selected = this.after.mechs.findIndex((mech) => mech.alive);
    this.follows = !this.follows;
    if (this.follows) this.camera.distance = Math.min(this.camera.distance, 28);
    this.refresh();
  }

  top() {
    if (this.driver?.plays) return;
    this.follows = false;
    const { size } = this.world.battle;
    Object.assign(this.camera, { x: size / 2, y: size / 2, z: 2, elevation: 1.55, azimuth: -Math.PI / 2, distance: size * 1.3 });
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

  help() {
    byId("keys").hidden = !byId("keys").hidden;
  }

  /** The address: ``#t=83&mech=3``, the time in decisions and the mech's number in the arrays. */
  readAddress() {
    if (this.driver) return;
    const asked = new URLSearchParams(location.hash.slice(1));
    const [time, mech] = ["t", "mech"].map((name) => Number.parseInt(asked.get(name) ?? "", 10));
    if (Number.isFinite(mech)) this.selected = mech >= 0 && mech < this.simulation.mechs ? mech : -1;
    if (Number.isFinite(time)) this.stop(time);
    else this.goTo(this.time);
    this.updateSight();
    this.showPanels();
  }

  writeAddress() {
    if (this.driver) return;
    const parts = [`t=${Math.round(this.time)}`];
    if (this.selected >= 0) parts.push(`mech=${this.selected}`);
    try {
      history.replaceState(null, "", `#${parts.join("&")}`);
    } catch {
      // a page in a notebook's frame may have no address
    }
  }
}
