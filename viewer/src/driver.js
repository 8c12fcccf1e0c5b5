// A person's game in the viewer: what is shown of it, its keys, and its menu.

import { showCockpit } from "./cockpit.js";
import { PageError } from "./data.js";
import { byId, element } from "./dom.js";
import { mix, mixAngle } from "./math.js";
import { mechName } from "./moments.js";
import { Pilot } from "./pilot.js";

const CHOICES = 5; // contact rows that an action can choose as target
const DISTANCE = 28; // m, of the camera
const ELEVATION = 0.62;
const VIEWER_KEYS = ["+", "=", "-", "?", "h"]; // those that a player has, too
/** @type {Record<string, string>} */
const MENU_KEYS = { Enter: "start", Escape: "start", KeyP: "start", KeyN: "another", KeyR: "again", KeyL: "save" };

export class Driver {
  /** @param {import("./viewer.js").Viewer} viewer @param {import("./game.js").Game} game */
  constructor(viewer, game) {
    this.viewer = viewer;
    viewer.driver = this;
    this.game = game;
    this.pilot = new Pilot(viewer.world);
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
      const mech = viewer.after.mechs[game.mech];
      Object.assign(viewer.camera, { x: mech.x, y: mech.y, z: mech.z, distance: DISTANCE, elevation: ELEVATION, azimuth: mech.yaw + Math.PI });
    }
    this.inspects = this.ended = false;
    this.wasRunning = true;
    this.sync();
    viewer.refresh();
    byId("verified").textContent = `battle ${game.start.number + 1}`;
    byId("verified").className = "";
    viewer.setPlaying(false);
    const { players } = game.start;
    const mech = viewer.after.mechs[game.mech];
    const who = mech ? `You drive ${mechName(mech, viewer.world.battle)}, a ${viewer.world.battle.classes[mech.kind].name}.` : "You watch.";
    this.showMenu(`${players[0]} v ${players[1]}`, `${who} Hold the zone, or destroy the other team.`, "Start");
  }

  /** Let the viewer show what the person may know. */
  sync() {
    const { viewer, game } = this;
    if (this.plays) Object.assign(viewer, { selected: game.eyes, fog: true, follows: true });
    this.drove = this.drives;
    byId("cockpit").hidden = !this.drives;
    document.body.classList.toggle("running", this.running);
    document.body.classList.toggle("driving", this.plays);
  }

  /** Take the next decision. */
  decide() {
    const { viewer, game, pilot } = this;
    let action = null;
    if (this.drives && !game.autopilot) {
      const contacts = this.contacts();
      if (!contacts.includes(pilot.target)) pilot.target = -1;
      const mech = viewer.after.mechs[game.mech];
      pilot.pointer = this.mouse && viewer.camera.ground(this.mouse.x, this.mouse.y, mech.z);
      action = pilot.action(mech, contacts);
    }
    game.decide(action);
  }

  /** Show the state after the decision. */
  decided() {
    const { drove, wasRunning } = this;
    this.sync();
    if (drove && !this.drives && this.running) {
      this.inspects = false;
      byId("verified").textContent = "Your mech is destroyed. Click one of your team to drive it.";
    }
    if (wasRunning && !this.running) Object.assign(this.viewer, { fog: false, follows: false, selected: -1 });
    this.wasRunning = this.running;
  }

  /** The battle is over, and its end has been shown. */
  showEnd() {
    const { viewer, game } = this;
    if (this.ended) return;
    this.ended = true;
    const { winner } = viewer.after;
    const own = game.mech < 0 ? -1 : viewer.after.mechs[game.mech].team;
    const title = winner < 0 || own < 0 ? viewer.ending() : `${winner === own ? "Won" : "Lost"}: ${viewer.after.reason.replace("_", " ")}`;
    byId("verified").textContent = `battle ${game.start.number + 1}, ${viewer.simulation.decisions} decisions`;
    viewer.camera.overview();
    viewer.refresh();
    this.showMenu(title, "The timeline goes through the battle; everything can be seen now.", "Look back");
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
    if (closes || VIEWER_KEYS.includes(event.key)) return false;
    if (this.drives && this.pressInBattle(event)) {
      event.preventDefault();
      this.viewer.showPanels();
    }
    return true;
  }

  /** @param {KeyboardEvent} event */
  pressInMenu(event) {
    const id = MENU_KEYS[event.code];
    const focused = document.activeElement?.closest("#menu button");
    if (!id || event.repeat || (event.code === "Enter" && focused)) return; // a button with the focus is pressed anyway
    event.preventDefault();
    byId(id).click();
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key is one of the game's */
  pressInBattle({ code, repeat }) {
    if (code === "Tab" || code === "KeyT") this.pilot.nextTarget(this.contacts(), this.viewer.after.mechs[this.game.mech].target);
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
    const { viewer, game } = this;
    const own = viewer.after.mechs[game.mech];
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
    this.sync();
    this.viewer.refresh();
  }

  /** Move the camera behind the mech. */
  chase() {
    const { camera, scene } = this.viewer;
    const place = scene.places[this.viewer.selected];
    if (!place) return;
    const ahead = 0.4 * camera.distance;
    const [x, y] = [place.x + Math.cos(place.yaw) * ahead, place.y + Math.sin(place.yaw) * ahead];
    camera.azimuth = mixAngle(camera.azimuth, place.yaw + Math.PI, 0.06);
    camera.x = mix(camera.x, x, 0.15);
    camera.y = mix(camera.y, y, 0.15);
    camera.z = mix(camera.z, place.z + 1, 0.1);
  }

  showPanels() {
    if (this.drives) showCockpit(this.viewer.simulation, this.viewer.after, this.game.mech, this.game.autopilot);
  }

  pause() {
    this.viewer.setPlaying(false);
    this.showMenu("Paused", "", this.running ? "Continue" : "Look back");
  }

  /** @param {string} title @param {string} text @param {string} start the first button's text */
  showMenu(title, text, start) {
    const menu = byId("menu");
    /** @param {string} id @param {string} label @param {() => void | Promise<void>} action */
    const button = (id, label, action) => {
      const made = element("button", { type: "button", id }, label);
      made.addEventListener("click", () => this.act(action));
      return made;
    };
    menu.replaceChildren(
      element("h2", {}, title),
      element("p", { id: "note" }, text),
      element(
        "p", { className: "buttons" },
        button("start", start, () => this.close()),
        button("again", "Again (R)", () => {
          this.game.restart();
          this.begin();
        }),
        button("another", "Next map (N)", async () => {
          byId("note").textContent = "The next map is on its way.";
          await this.game.next();
          this.begin();
        }),
        button("save", "Save replay (L)", () => this.save()),
      ),
    );
    menu.append(/** @type {HTMLTemplateElement} */ (byId("driving-keys")).content.cloneNode(true));
    menu.hidden = false;
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
