// A person's game in the viewer: what is shown of it, its keys, and its menu.

import { ending, howOf, summary } from "./card.js";
import { showCockpit } from "./cockpit.js";
import { PageError } from "./data.js";
import { button, byId, element } from "./dom.js";
import { away, bearing, mixAngle } from "./math.js";
import { mechName } from "./moments.js";
import { Pilot } from "./pilot.js";
import { Tutor } from "./tutor.js";

const CHOICES = 5; // contact rows that an action can choose as target
const DISTANCE = 28; // m, of the camera
const ELEVATION = 0.62;
const VIEWER_KEYS = ["+", "=", "-", "m"]; // those that a player has, too
/** @type {Record<string, string>} */
const MENU_KEYS = { Enter: "start", Escape: "start", KeyP: "start", KeyN: "another", KeyR: "again", KeyL: "save" };

export class Driver {
  /** @param {import("./viewer.js").Viewer} viewer @param {import("./game.js").Game} game */
  constructor(viewer, game) {
    this.viewer = viewer;
    viewer.driver = this;
    this.game = game;
    this.pilot = new Pilot(viewer.world);
    this.tutor = new Tutor();
    /** Whether the person drove a mech at the last decision. */
    this.drove = false;
    this.wasRunning = true;
    /** Whether the end of the battle has been shown. */
    this.ended = false;
    /** Where the mouse is, as shares of the picture. @type {{x: number, y: number} | null} */
    this.mouse = null;
    this.inspects = false;
    /** Whether an action of the menu is still at work. */
    this.busy = false;
    addEventListener("keyup", (event) => this.pilot.release(event.code));
    addEventListener("blur", () => this.pilot.down.clear());
    this.begin();
  }

  /** Whether the battle is in progress. */
  get running() {
    return !this.game.over;
  }

  /** Whether the person is a player in it, who knows only what his mech senses. */
  get plays() {
    return this.running && this.game.mech >= 0;
  }

  /** Whether the person drives a living mech in it. */
  get drives() {
    return this.plays && this.viewer.after.mechs[this.game.mech].alive;
  }

  /** The person's mech. */
  get own() {
    return this.viewer.after.mechs[this.game.mech];
  }

  get menuOpen() {
    return !byId("menu").hidden;
  }

  /** Show the start of a battle, and the menu. */
  begin() {
    const { viewer, game, pilot } = this;
    pilot.clear();
    this.mouse = null;
    viewer.scan = game.scan;
    viewer.restart();
    if (this.drives) {
      const { x, y, z, yaw } = this.own;
      Object.assign(viewer.camera, { x, y, z, distance: DISTANCE, elevation: ELEVATION, azimuth: yaw + Math.PI });
      this.tutor.begin(this, game.start.number === 0);
    } else viewer.overview();
    byId("hint").hidden = byId("banner").hidden = true;
    this.inspects = this.ended = false;
    this.wasRunning = true;
    this.sync();
    viewer.refresh();
    this.say(`battle ${game.start.number + 1}`);
    viewer.setPlaying(false);
    const { players } = game.start;
    document.title = `${players.join(" v ")} - Echelon`;
    const { battle } = viewer.world;
    const who = this.own ? `You drive ${mechName(this.own, battle)}, a ${battle.classes[this.own.kind].name}.` : "You watch.";
    const needs = this.own && !matchMedia("(any-pointer: fine)").matches ? " Driving needs a keyboard or a gamepad; the autopilot (O) needs none." : "";
    this.showMenu(`${players[0]} v ${players[1]}`, `${who} Hold the zone for ${battle.score} points, or destroy the other team.${needs}`, "Start");
  }

  /** Let the viewer show what the person may know. */
  sync() {
    const { viewer, game } = this;
    if (this.plays) Object.assign(viewer, { selected: game.eyes, fog: true, follows: true });
    this.drove = this.drives;
    byId("cockpit").hidden = byId("minimap").hidden = !this.drives;
    document.body.classList.toggle("running", this.running);
    document.body.classList.toggle("driving", this.plays);
    document.body.classList.toggle("aiming", this.drives);
  }

  /** Take the next decision. */
  decide() {
    const { viewer, game, pilot } = this;
    let action = null;
    if (this.drives && !game.autopilot) {
      const contacts = this.contacts();
      if (!contacts.includes(pilot.target)) pilot.target = -1;
      pilot.pointer = this.mouse && viewer.camera.ground(this.mouse.x, this.mouse.y, this.own.z);
      action = pilot.action(this.own, contacts);
    }
    viewer.mount = pilot.mount;
    game.decide(action);
  }

  /** Show the state after the decision. */
  decided() {
    const { drove, wasRunning, viewer } = this;
    this.sync();
    if (drove && !this.drives && this.running) {
      this.inspects = false;
      const mark = this.game.scan.marks.filter((each) => each.kind === "death" && each.mech === this.game.mech).at(-1);
      const known = mark?.byKnown && mark.by !== mark.mech;
      byId("banner").hidden = false;
      byId("banner").textContent = `Your mech is destroyed${known ? ` by ${viewer.panels.name(mark.by)}${mark.weapon ? `, ${mark.weapon}` : ""}` : ""}. Click one of your team to drive it.`;
      viewer.hovered = known ? mark.by : -1;
    }
    if (this.drives || !this.running) byId("banner").hidden = true;
    this.tutor.follow(this);
    if (wasRunning && !this.running) Object.assign(viewer, { fog: false, follows: false, selected: -1 });
    this.wasRunning = this.running;
  }

  /** The battle is over, and its end has been shown. */
  showEnd() {
    const { viewer, game } = this;
    if (this.ended) return;
    this.ended = true;
    const { winner } = viewer.after;
    const own = game.mech < 0 ? -1 : viewer.after.mechs[game.mech].team;
    const title = winner < 0 || own < 0 ? ending(viewer.after) : `${winner === own ? "Won" : "Lost"}: ${howOf(viewer.after)}`;
    this.say(`battle ${game.start.number + 1}, ${viewer.simulation.decisions} decisions`);
    viewer.overview();
    viewer.refresh();
    this.showMenu(title, "The timeline goes through the battle; everything can be seen now.", "Look back", summary(viewer));
  }

  /** The contact rows that an action can choose. */
  contacts() {
    const { simulation } = this.viewer;
    if (simulation.world.battle.off.includes("target_0")) return [];
    const read = simulation.field("mechs", "contacts");
    return Array.from({ length: CHOICES }, (_, row) => read(this.game.mech, row));
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the viewer must not take it, too */
  press(event) {
    if (this.menuOpen) {
      this.pressInMenu(event);
      return true;
    }
    const closes = event.code === "Escape" && (this.inspects || !byId("keys").hidden);
    if (event.code === "KeyP" || (event.code === "Escape" && !closes)) {
      event.preventDefault();
      if (!event.repeat) this.pause();
      return true;
    }
    if (!this.plays) return false;
    if (event.key === "?" || event.code === "KeyH") this.pause();
    if (closes || VIEWER_KEYS.includes(event.key)) return false;
    if (this.drives && this.pressInBattle(event)) {
      event.preventDefault();
      this.viewer.showPanels();
    }
    return true;
  }

  /** @param {KeyboardEvent} event */
  pressInMenu(event) {
    if (event.target instanceof HTMLSelectElement && event.code !== "Escape") return;
    const id = MENU_KEYS[event.code];
    const focused = document.activeElement?.closest("#menu button");
    if (!id || event.repeat || (event.code === "Enter" && focused)) return; // a button with the focus is pressed anyway
    event.preventDefault();
    byId(id)?.click();
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key is one of the game's */
  pressInBattle({ code, repeat }) {
    if (code === "Tab" || code === "KeyT") this.pilot.nextTarget(this.contacts(), this.own.target);
    else if (code === "KeyO" && !repeat) this.game.autopilot = !this.game.autopilot;
    else if (code === "KeyI" && !repeat) this.inspects = !this.inspects;
    else return repeat ? code === "Space" || code.startsWith("Arrow") : this.pilot.press(code);
    return true;
  }

  /** @param {PointerEvent} event over the picture @returns {boolean} whether it was for the game */
  point(event) {
    if (!this.plays) return false;
    this.mouse = { x: event.offsetX / this.viewer.canvas.clientWidth, y: event.offsetY / this.viewer.canvas.clientHeight };
    if (this.drives && !this.menuOpen) this.pilot.holdButtons(event.buttons);
    return true;
  }

  /** The person has clicked a mech. @param {number} mech */
  choose(mech) {
    const { viewer, game, own } = this;
    const chosen = viewer.after.mechs[mech];
    const begins = viewer.after.decision === 0;
    if (chosen?.alive && chosen.team === own.team && (begins || !this.drives)) {
      if (begins) game.asked = mech;
      this.take(mech);
    } else if (this.drives && chosen && chosen.team !== own.team && game.seen()[mech]) this.pilot.target = mech;
    viewer.showPanels();
  }

  /** Drive another mech. @param {number} mech */
  take(mech) {
    this.game.mech = mech;
    this.pilot.clear();
    this.mouse = null;
    this.tutor.from(this);
    byId("banner").hidden = true;
    this.sync();
    this.viewer.refresh();
  }

  /** Move the camera behind the mech. */
  chase() {
    const { camera, scene } = this.viewer;
    const place = scene.places[this.viewer.selected];
    if (!place) return;
    const ahead = 0.4 * camera.distance;
    camera.azimuth = mixAngle(camera.azimuth, place.yaw + Math.PI, 0.06);
    camera.approach({ x: place.x + Math.cos(place.yaw) * ahead, y: place.y + Math.sin(place.yaw) * ahead, z: place.z }, 0.15);
  }

  /** Whether a weapon reaches the target, which the mech sees. @param {any} weapon */
  reaches(weapon) {
    const { viewer, own, game } = this;
    const target = viewer.after.mechs[own.target];
    if (!weapon || !target?.alive || !game.seen()[own.target]) return false;
    return away(own, target) <= weapon.range && Math.abs(bearing(own, target)) <= (weapon.arc / 360) * Math.PI;
  }

  /** @param {string} text of the line below */
  say(text) {
    byId("verified").textContent = text;
    byId("verified").className = byId("verified").title = "";
  }

  showPanels() {
    if (this.drives) showCockpit(this.viewer.simulation, this.viewer.after, this.game.mech, this.game.autopilot);
  }

  pause() {
    this.viewer.setPlaying(false);
    this.showMenu("Paused", "", this.running ? "Continue" : "Look back");
  }

  /** @param {string} title @param {string} text @param {string} start the first button's text @param {Node[]} [parts] below the text */
  showMenu(title, text, start, parts = []) {
    const menu = byId("menu");
    const began = this.viewer.simulation.decisions > 0;
    /** @param {string} id @param {string} label @param {() => void | Promise<void>} action */
    const choice = (id, label, action) => button({ id }, () => this.act(action), label);
    menu.replaceChildren(
      element("h2", {}, title),
      element("p", { id: "note" }, text),
      ...parts,
      ...this.levels(),
      element(
        "p", { className: "buttons" },
        choice("start", start, () => this.close()),
        ...(began ? [choice("again", "Again (R)", () => this.again())] : []),
        choice("another", "Next map (N)", async () => {
          byId("note").textContent = "The next map is on its way.";
          await this.game.next();
          this.begin();
        }),
        ...(began ? [choice("save", "Save replay (L)", () => this.save())] : []),
      ),
    );
    menu.append(/** @type {HTMLTemplateElement} */ (byId("driving-keys")).content.cloneNode(true));
    menu.hidden = false;
  }

  again() {
    this.game.restart();
    this.begin();
  }

  /** The choice of the opponent's level in the next battle, or in this one before its first decision. */
  levels() {
    const { game } = this;
    if (!game.levels) return [];
    const choice = /** @type {HTMLSelectElement} */ (element("select", { id: "level" }));
    for (const [number, name] of game.levels.entries()) choice.append(element("option", { value: String(number), selected: number === game.level }, name));
    choice.addEventListener("change", () => {
      game.level = Number(choice.value);
      if (game.simulation.decisions > 0) byId("note").textContent = "The level changes from the next battle on.";
      else {
        this.again();
        byId("level").focus();
      }
    });
    return [element("p", {}, element("label", {}, "Opponent: ", choice))];
  }

  /** Do what a button of the menu says, unless another one is at work. @param {() => void | Promise<void>} action */
  async act(action) {
    if (this.busy) return;
    this.busy = true;
    byId("note").className = "";
    try {
      await action();
    } catch (error) {
      this.fail(error);
    } finally {
      this.busy = false;
    }
  }

  close() {
    byId("menu").hidden = true;
    this.pilot.tapped.clear();
    if (!this.ended) this.viewer.setPlaying(true);
  }

  /** @param {unknown} error */
  fail(error) {
    byId("note").textContent = error instanceof PageError ? error.message : String(error);
    byId("note").className = "bad";
    if (!(error instanceof PageError)) throw error;
  }

  async save() {
    const link = element("a", { href: URL.createObjectURL(await this.game.file()), download: `battle-${this.game.start.number + 1}.replay` });
    link.click();
    byId("note").textContent = `Saved. 'echelon replay ${link.getAttribute("download")}' checks it, and makes a page of it with --html.`;
  }
}
