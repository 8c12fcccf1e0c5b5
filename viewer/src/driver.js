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
const VIEWER_KEYS = ["+", "=", "-", "?", "h"]; // those that a person has who drives

export class Driver {
  /** @param {import("./viewer.js").Viewer} viewer @param {import("./game.js").Game} game */
  constructor(viewer, game) {
    this.viewer = viewer;
    viewer.driver = this;
    this.game = game;
    this.pilot = new Pilot(viewer.world);
    /** Where the mouse is, as shares of the picture. @type {{x: number, y: number} | null} */
    this.mouse = null;
    this.inspects = false;
    addEventListener("keyup", (event) => this.pilot.release(event.code));
    addEventListener("blur", () => this.pilot.down.clear());
    this.begin();
  }

  /** Whether the battle is in progress. */
  get running() {
    return !this.game.over;
  }

  /** Whether the person drives a living mech in it. */
  get drives() {
    return this.game.drives(this.viewer.after);
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
    this.sync();
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
    if (this.drives) Object.assign(viewer, { selected: game.mech, fog: true, follows: true });
    else if (viewer.fog && this.running) Object.assign(viewer, { fog: false, follows: false });
    byId("cockpit").hidden = !this.drives;
    document.body.classList.toggle("running", this.running);
    document.body.classList.toggle("driving", this.drives);
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
    const drove = this.viewer.fog;
    this.sync();
    if (drove && !this.drives && this.running) {
      this.inspects = false;
      byId("verified").textContent = "Your mech is destroyed. Click one of your team to drive it.";
    }
    if (!this.running) {
      Object.assign(this.viewer, { fog: false, follows: false, selected: -1 });
      this.viewer.updateSight();
    }
  }

  /** The battle is over, and its end has been shown. */
  ended() {
    const { viewer, game } = this;
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
    const read = this.viewer.simulation.field("mechs", "contacts");
    return Array.from({ length: CHOICES }, (_, row) => read(this.game.mech, row));
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether it was for the game */
  press(event) {
    if (!byId("menu").hidden) {
      /** @type {Record<string, string>} */
      const buttons = { Enter: "start", Escape: "start", KeyP: "start", KeyN: "another", KeyR: "again", KeyL: "save" };
      const id = buttons[event.code];
      if (id && !event.repeat) byId(id).click();
      return id !== undefined;
    }
    if (event.code === "KeyP" || (event.code === "Escape" && byId("keys").hidden && !this.inspects)) {
      if (!event.repeat) this.pause();
      return true;
    }
    if (event.code === "KeyI" && this.drives) {
      this.inspects = !this.inspects;
      this.viewer.showPanels();
      return true;
    }
    if (!this.drives) return false;
    if (event.code === "KeyO") this.game.autopilot = event.repeat ? this.game.autopilot : !this.game.autopilot;
    else if (event.code === "Tab" || event.code === "KeyT") this.pilot.nextTarget(this.contacts());
    else if (event.repeat || !this.pilot.press(event.code)) return !VIEWER_KEYS.includes(event.key);
    this.viewer.showPanels();
    return true;
  }

  /** @param {PointerEvent} event over the picture @returns {boolean} whether it was for the game */
  point(event) {
    if (!this.drives) return false;
    this.mouse = { x: event.offsetX / this.viewer.canvas.clientWidth, y: event.offsetY / this.viewer.canvas.clientHeight };
    this.pilot.holdButtons(event.buttons);
    return true;
  }

  /** The person has clicked a mech. @param {number} mech */
  choose(mech) {
    const { viewer, game } = this;
    const own = viewer.after.mechs[game.mech];
    const chosen = viewer.after.mechs[mech];
    if (this.drives) {
      if (chosen && chosen.team !== own.team) this.pilot.target = mech;
      else if (chosen?.alive && viewer.after.decision === 0) this.take(mech);
    } else if (chosen?.alive && chosen.team === own.team) this.take(mech);
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
    const place = scene.places[this.game.mech];
    if (!place) return;
    const ahead = 0.4 * camera.distance;
    const [x, y] = [place.x + Math.cos(place.yaw) * ahead, place.y + Math.sin(place.yaw) * ahead];
    camera.azimuth = mixAngle(camera.azimuth, place.yaw + Math.PI, 0.06);
    camera.x = mix(camera.x, x, 0.15);
    camera.y = mix(camera.y, y, 0.15);
    camera.z = mix(camera.z, place.z + 1, 0.1);
  }

  showPanels() {
    if (this.drives) showCockpit(this.viewer.simulation, this.viewer.after, this.game.mech, this.pilot, this.game.autopilot);
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
      made.addEventListener("click", () => Promise.resolve().then(action).catch((error) => this.fail(error)));
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
          await this.game.next();
          this.begin();
        }),
        button("save", "Save replay (L)", () => this.save()),
      ),
    );
    menu.append(/** @type {HTMLTemplateElement} */ (byId("driving-keys")).content.cloneNode(true));
    menu.hidden = false;
  }

  close() {
    byId("menu").hidden = true;
    if (this.running) this.viewer.setPlaying(true);
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
