// What a person wants of a mech: held keys, mouse and gamepad, as an action.

import { away, bearing } from "./math.js";

const HELD = /** @type {Record<string, [string, number]>} */ ({
  KeyW: ["throttle", 1], ArrowUp: ["throttle", 1], KeyS: ["throttle", -1], ArrowDown: ["throttle", -1],
  KeyA: ["strafe", 1], KeyD: ["strafe", -1], KeyQ: ["turn", 1], ArrowLeft: ["turn", 1], KeyE: ["turn", -1], ArrowRight: ["turn", -1],
  Space: ["jet", 1], ShiftLeft: ["vent", 1], ShiftRight: ["vent", 1],
  left: ["primary", 1], right: ["secondary", 1], middle: ["special", 1],
  Digit1: ["primary", 1], Digit2: ["secondary", 1], Digit3: ["tertiary", 1], Digit4: ["special", 1],
});
const MOUNTS = ["primary", "secondary", "tertiary", "special"];
const BUTTONS = { left: 1, right: 2, middle: 4 }; // bits in a mouse event
const DISPLAYS = ["nearest", "dangerous", "damaged"];
const STILL = 0.07; // rad within which the mech does not turn to the mouse
const NEAR = 1.5; // m
const STICK = 0.15;

export class Pilot {
  /** @param {any} world */
  constructor(world) {
    this.seconds = world.battle.seconds;
    this.classes = world.battle.classes;
    /** @type {string[]} */
    this.entries = world.names.actions.map((/** @type {[string, string]} */ [name]) => name);
    /** @type {Set<string>} */
    this.down = new Set();
    /** Keys and buttons that have gone down since the last action, however short. @type {Set<string>} */
    this.tapped = new Set();
    /** The mech that the person chose, -1 for none. */
    this.target = -1;
    /** The mount that was fired last, -1 for none. */
    this.mount = -1;
    this.clear();
  }

  /** Forget everything: a battle begins. */
  clear() {
    this.down.clear();
    this.tapped.clear();
    /** The place on the ground under the mouse, once it has moved. @type {{x: number, y: number} | null} */
    this.pointer = null;
    this.target = -1;
    this.electronics = "";
    this.display = 0;
    this.mount = -1;
  }

  /** A key or a button goes down. @param {string} code of the key @returns {boolean} whether it drives the mech */
  press(code) {
    if (code === "KeyF" || code === "KeyG") {
      const wanted = code === "KeyF" ? "ecm" : "eccm";
      this.electronics = this.electronics === wanted ? "" : wanted;
    } else if (code === "KeyX") this.display = (this.display + 1) % DISPLAYS.length;
    else if (HELD[code]) this.hold(code);
    else return false;
    return true;
  }

  /** @param {string} code of a key or a button */
  hold(code) {
    const mount = MOUNTS.indexOf(HELD[code][0]);
    if (mount >= 0) this.mount = mount;
    this.down.add(code);
    this.tapped.add(code);
  }

  /** @param {string} code */
  release(code) {
    this.down.delete(code);
  }

  /** @param {number} buttons as in a mouse event */
  holdButtons(buttons) {
    for (const [code, bit] of Object.entries(BUTTONS)) {
      if (!(buttons & bit)) this.release(code);
      else if (!this.down.has(code)) this.hold(code);
    }
  }

  /** Choose the next of the mechs in the contact rows as target. @param {number[]} contacts @param {number} target the present one */
  nextTarget(contacts, target) {
    const known = contacts.filter((mech) => mech >= 0);
    this.target = known[(known.indexOf(target) + 1) % known.length] ?? -1;
  }

  /**
   * @param {import("./moments.js").Mech} mech
   * @param {number[]} contacts its contact rows that can be chosen
   * @returns {Float32Array} the action
   */
  action(mech, contacts) {
    /** @type {Record<string, number>} */
    const wanted = {};
    for (const code of new Set([...this.down, ...this.tapped])) {
      const [entry, value] = HELD[code];
      wanted[entry] = (wanted[entry] ?? 0) + value;
    }
    this.tapped.clear();
    this.readGamepad(wanted);
    wanted.turn ??= this.turnToPointer(mech);
    const row = contacts.indexOf(this.target);
    if (row >= 0) wanted[`target_${row}`] = 1;
    if (this.electronics) wanted[this.electronics] = 1;
    wanted[`display_${DISPLAYS[this.display]}`] = 1;
    return Float32Array.from(this.entries, (entry) => Math.min(1, Math.max(-1, wanted[entry] ?? 0)));
  }

  /** @param {import("./moments.js").Mech} mech */
  turnToPointer(mech) {
    if (!this.pointer) return 0;
    const off = bearing(mech, this.pointer);
    const most = this.classes[mech.kind].turn * this.seconds;
    return away(mech, this.pointer) < NEAR || Math.abs(off) < STILL || most <= 0 ? 0 : off / most;
  }

  /** The standard layout: left stick moves, right stick turns, triggers and shoulders fire. @param {Record<string, number>} wanted */
  readGamepad(wanted) {
    const pad = globalThis.navigator?.getGamepads?.().find((each) => each?.mapping === "standard");
    if (!pad) return;
    const stick = (/** @type {number} */ axis) => (Math.abs(pad.axes[axis]) > STICK ? -pad.axes[axis] : 0);
    for (const [entry, axis] of /** @type {[string, number][]} */ ([["strafe", 0], ["throttle", 1], ["turn", 2]])) {
      if (stick(axis)) wanted[entry] = stick(axis);
    }
    for (const [entry, button] of /** @type {[string, number][]} */ ([["primary", 7], ["secondary", 6], ["tertiary", 5], ["special", 4], ["jet", 0], ["vent", 1]])) {
      if (pad.buttons[button]?.pressed) wanted[entry] = 1;
    }
  }
}
