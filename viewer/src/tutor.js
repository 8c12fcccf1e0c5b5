// The first minute of a first battle: one thing after another, each until it is done.

import { byId } from "./dom.js";
import { away } from "./math.js";

const READ = 20; // decisions in which a sentence can be read

/** @typedef {import("./driver.js").Driver} Driver */

/** When each of the page's lessons is done. @type {((driver: Driver, since: number, start: {x: number, y: number}) => boolean)[]} */
const DONE = [
  ({ own }, _, start) => away(own, start) > 6,
  ({ own, viewer: { after: { zone } } }) => away(own, zone) < zone.radius + 15,
  ({ viewer, pilot }, since) => pilot.target >= 0 || (viewer.target >= 0 && since > READ),
  ({ viewer }) => viewer.happened({ shot: 1 }).some(({ event }) => event.actor === viewer.selected),
  (_, since) => since > READ,
  (_, since) => since > READ,
];

export class Tutor {
  constructor() {
    this.step = DONE.length;
    this.since = 0;
    this.start = { x: 0, y: 0 };
  }

  /** @param {Driver} driver @param {boolean} first whether this is the first battle of the page */
  begin({ own }, first) {
    this.step = first ? 0 : DONE.length;
    this.since = 0;
    this.from({ own });
  }

  /** The mech begins here. @param {{own: {x: number, y: number}}} driver */
  from({ own }) {
    this.start = { x: own.x, y: own.y };
  }

  /** Show what is next, after each decision. @param {Driver} driver */
  follow(driver) {
    const now = driver.viewer.after.decision;
    if (driver.drives && this.step < DONE.length && DONE[this.step](driver, now - this.since, this.start)) {
      this.step += 1;
      this.since = now;
    }
    const hint = byId("hint");
    hint.hidden = !driver.drives || this.step >= DONE.length || driver.game.autopilot;
    [...hint.children].forEach((lesson, step) => { /** @type {HTMLElement} */ (lesson).hidden = step !== this.step; });
  }
}
