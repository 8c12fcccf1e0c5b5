// What is written over the picture: names and armour of mechs, damage, remembered enemies, the target.

import { drawAids } from "./aids.js";
import { blank, byId, font, number, whole } from "./dom.js";
import { away, clamp, project } from "./math.js";
import { mechName } from "./moments.js";
import { COLOURS } from "./timeline.js";

const TARGET = "#ffd23f";
const DAMAGE = { hit: 0.4, splash: 0.4, hazard: 0.4 }; // s that a number is shown
const FADES = 0.6; // share of the way to the farthest mech at which labels begin to fade
/** Where a label may be: shares of its half width to the right, pixels down. */
const PLACES = [[0, 0], [0, -22], [-1.1, -10], [1.1, -10], [0, -44], [-1.2, -34], [1.2, -34], [0, -66], [-1.2, 40], [1.2, 40]];
/** @type {Record<string, string>} */
const SIGNS = { fallen: "▾", "shut down": "○", ECM: "ECM", ECCM: "ECCM", transmits: "≋" };
const ELECTRONICS = ["", "ECM jams enemies within", "ECCM restores links within"];

/** @typedef {{x: number, y: number, distance: number}} Spot in pixels */

export class Labels {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("labels"));
    /** @type {CanvasRenderingContext2D} */
    this.paper = /** @type {any} */ (null);
    this.width = this.height = 0;
    /** Rectangles that are taken: left, top, right, bottom. @type {number[][]} */
    this.taken = [];
  }

  draw() {
    Object.assign(this, blank(this.canvas));
    this.paper.textAlign = "center";
    this.taken = [];
    this.drawTarget();
    this.drawMechs();
    this.drawGhosts();
    this.drawDamage();
    if (this.viewer.driver) drawAids(this, this.viewer.driver);
  }

  /** Where a place is in the picture, in pixels; null outside of it. @param {number} x @param {number} y @param {number} z @returns {Spot | null} */
  spot(x, y, z) {
    const at = project(this.viewer.camera.matrix, x, y, z);
    if (!at || at.x < -0.05 || at.x > 1.05 || at.y < -0.05 || at.y > 1.05) return null;
    return { x: at.x * this.width, y: at.y * this.height, distance: at.distance };
  }

  drawMechs() {
    const { after, scene, world, selected, hovered, target } = this.viewer;
    const spots = after.mechs.flatMap((mech, index) => {
      const place = scene.places[index];
      const at = place?.shown && mech.alive ? this.spot(place.x, place.y, place.z + world.battle.classes[mech.kind].size[2] * 1.3) : null;
      return at ? [{ mech, at, first: index === hovered ? 3 : index === selected ? 2 : index === target ? 1 : 0 }] : [];
    });
    const farthest = Math.max(1, ...spots.map(({ at }) => at.distance));
    const nearest = Math.min(farthest, ...spots.map(({ at }) => at.distance));
    spots.sort((a, b) => b.first - a.first || a.at.distance - b.at.distance);
    for (const { mech, at, first } of spots) {
      const far = (at.distance - nearest) / Math.max(20, farthest - nearest);
      this.paper.globalAlpha = first ? 1 : 1 - 0.35 * Math.max(0, far - FADES) / (1 - FADES);
      this.drawMech(mech, at, first === 3 || (first === 2 && !this.viewer.driver?.plays));
    }
    this.paper.globalAlpha = 1;
  }

  /** @param {import("./moments.js").Mech} mech @param {Spot} at @param {boolean} large whether it says all */
  drawMech(mech, at, large) {
    const { paper, viewer } = this;
    const { battle } = viewer.world;
    const kind = battle.classes[mech.kind];
    const own = viewer.after.mechs[viewer.selected];
    const states = viewer.statesOf(mech);
    const signs = states.map((state) => (state === "transmits" && !mech.speaks ? "" : SIGNS[state])).filter(Boolean);
    if (mech.paintedBy.some((pack) => !own || pack === own.pack)) signs.push("◆");
    const title = `${mechName(mech, battle)}${large ? ` ${kind.name}` : ""}${signs.length ? ` ${signs.join(" ")}` : ""}`;
    const lines = [title];
    if (large) {
      lines.push(`armour ${whole(mech.armour, kind.armour)}`);
      if (states.length) lines.push(states.join(", "));
      if (mech.radiates > 0) lines.push(`${ELECTRONICS[mech.radiates]} ${number(battle.ecm)} m`);
    }
    paper.font = font(`600 ${large ? 12 : 11}`);
    const wide = Math.max(...lines.map((line) => paper.measureText(line).width)) + 10;
    const high = 14 * lines.length + 6;
    const box = this.free(at, wide, high);
    if (!box) { // only a dot is left of it
      paper.fillStyle = COLOURS[mech.team];
      paper.fillRect(at.x - 4, at.y - 4, 8, 4);
      return;
    }
    this.taken.push(box);
    if (box[3] < at.y - 8 || box[1] > at.y) { // a line to its mech
      paper.strokeStyle = COLOURS[mech.team];
      paper.lineWidth = 1;
      paper.beginPath();
      paper.moveTo(at.x, at.y);
      paper.lineTo((box[0] + box[2]) / 2, box[1] > at.y ? box[1] : box[3]);
      paper.stroke();
    }
    paper.fillStyle = large ? "#0c1016e0" : "#0c1016b0";
    paper.beginPath();
    paper.roundRect(box[0], box[1], wide, high, 4);
    paper.fill();
    lines.forEach((line, row) => {
      paper.fillStyle = row ? "#dfe5ee" : mech.team === 0 ? "#9cc6ff" : "#ffb18c";
      paper.fillText(line, (box[0] + box[2]) / 2, box[1] + 13 + 14 * row);
    });
    paper.fillStyle = "#000a";
    paper.fillRect(box[0] + 4, box[3] - 4, wide - 8, 3);
    paper.fillStyle = COLOURS[mech.team];
    paper.fillRect(box[0] + 4, box[3] - 4, (wide - 8) * clamp(mech.armour / kind.armour), 3);
  }

  /** The first free place for a label near a mech, of some. @param {Spot} at @param {number} wide @param {number} high */
  free(at, wide, high) {
    for (const [dx, dy] of PLACES) {
      const [x, y] = [at.x + (dx * wide) / 2, at.y - 2 + dy];
      const box = [x - wide / 2, y - high, x + wide / 2, y];
      if (!this.taken.some(([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t)) return box;
    }
    return null;
  }

  /** Brackets around the target of the selected mech, with its distance. */
  drawTarget() {
    const { paper, viewer } = this;
    const [own, place] = [viewer.scene.places[viewer.selected], viewer.scene.places[viewer.target]];
    if (!own || !place?.shown || !viewer.after.mechs[viewer.target].alive || !viewer.after.mechs[viewer.selected].alive) return;
    const tall = viewer.world.battle.classes[viewer.after.mechs[viewer.target].kind].size[2];
    const [middle, top] = [this.spot(place.x, place.y, place.z + tall / 2), this.spot(place.x, place.y, place.z + tall * 1.1)];
    if (!middle || !top) return;
    const half = Math.max(12, (middle.y - top.y) * 1.5);
    paper.strokeStyle = TARGET;
    paper.lineWidth = 2;
    for (const [dx, dy] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
      const [x, y] = [middle.x + dx * half, middle.y + dy * half];
      paper.beginPath();
      paper.moveTo(x - dx * half * 0.5, y);
      paper.lineTo(x, y);
      paper.lineTo(x, y - dy * half * 0.5);
      paper.stroke();
    }
    paper.fillStyle = TARGET;
    paper.font = font("600 11");
    const far = away(place, own);
    const { weapon } = viewer;
    paper.fillText(`${far.toFixed(0)} m${weapon && far > weapon.range ? `, ${weapon.name} out of range` : ""}`, middle.x, middle.y + half + 13);
  }

  drawGhosts() {
    const { paper, viewer } = this;
    paper.font = font("600 11");
    paper.fillStyle = "#ffffffb0";
    for (const ghost of viewer.ghosts) {
      const at = this.spot(ghost.x, ghost.y, ghost.z + 1.6);
      if (at) paper.fillText(`${mechName(viewer.after.mechs[ghost.mech], viewer.world.battle)}? ${ghost.age.toFixed(0)} s ago`, at.x, at.y);
    }
  }

  /** Damage of the last moments, at the mechs. */
  drawDamage() {
    const { paper, viewer } = this;
    paper.font = font("700 13");
    for (const { event, age } of viewer.happened(DAMAGE)) {
      const target = viewer.scene.places[event.target];
      const at = target?.shown && event.amount >= 0.5 ? this.spot(target.x, target.y, target.z + 1.5 + 4 * age) : null;
      if (!at) continue;
      paper.fillStyle = `rgba(255, 240, 200, ${1 - age / DAMAGE.hit})`;
      paper.fillText(`−${event.amount.toFixed(0)}`, at.x + 18, at.y);
    }
  }
}
