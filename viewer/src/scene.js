// The things to draw at a moment between two decisions.

import { colourOf, drawEffect } from "./effects.js";
import { away, clamp, mix, mixAngle } from "./math.js";

/** @typedef {import("./moments.js").Moment} Moment */
/** @typedef {import("./moments.js").Mech} Mech */

/** Blue and vermilion differ in lightness, too, and with all common kinds of colour blindness. */
export const TEAMS = [
  [0.2, 0.52, 0.98],
  [0.93, 0.36, 0.14],
];
const DARK = [0.13, 0.14, 0.17];
const METAL = [0.42, 0.44, 0.48];

/** @typedef {{x: number, y: number, z: number, yaw: number, shown: boolean}} Place */

export class Scene {
  /** @param {any} world */
  constructor(world) {
    this.world = world;
    this.battle = world.battle;
    /** Numbers of boxes, see BOX of gl.js. @type {number[]} */
    this.boxes = [];
    /** @type {number[]} */
    this.beams = [];
    /** @type {number[]} */
    this.discs = [];
    /** Where each mech is drawn. @type {Place[]} */
    this.places = [];
  }

  /**
   * @param {import("./viewer.js").Viewer} viewer
   * @param {number} share of the decision that has passed, 0 to 1
   * @param {{event: import("./moments.js").Event, age: number}[]} effects with their ages in s
   * @param {number} time s
   */
  build(viewer, share, effects, time) {
    const { before, after, ghosts } = viewer;
    const lit = (/** @type {number} */ x, /** @type {number} */ y) => viewer.isLit(x, y);
    for (const list of [this.boxes, this.beams, this.discs]) list.length = 0;
    this.places = after.mechs.map((mech, index) => {
      const from = before.mechs[index];
      const shown = (mech.alive || from.alive) && viewer.sees(index);
      return {
        x: mix(from.x, mech.x, share), y: mix(from.y, mech.y, share), z: mix(from.z, mech.z, share),
        yaw: mixAngle(from.yaw, mech.yaw, share), shown,
      };
    });
    after.mechs.forEach((mech, index) => {
      const place = this.places[index];
      if (place.shown && (mech.alive || share < 0.9)) this.mech(mech, place, before.mechs[index], share);
    });
    this.shots(before, after, share, lit);
    for (const { event, age } of effects) drawEffect(this, event, age, after);
    for (const cloud of after.clouds) {
      const [{ x, y }, r] = [cloud, 0.9 * cloud.radius];
      if ([[x, y], [x - r, y], [x + r, y], [x, y - r], [x, y + r]].some(([px, py]) => lit(px, py))) this.cloud(cloud);
    }
    for (const ghost of ghosts) this.ghost(ghost, time);
  }

  /**
   * A box: its centre relative to a place that is turned by `yaw`.
   * @param {Place} place
   * @param {number[]} centre @param {number[]} half @param {number[]} colour @param {number} [glow] @param {number} [roll]
   */
  part(place, centre, half, colour, glow = 0, roll = 0) {
    let [x, y, z] = centre;
    if (roll) [y, z] = [Math.cos(roll) * y - Math.sin(roll) * z, Math.sin(roll) * y + Math.cos(roll) * z];
    const [cos, sin] = [Math.cos(place.yaw), Math.sin(place.yaw)];
    this.boxes.push(
      place.x + cos * x - sin * y, place.y + sin * x + cos * y, place.z + z,
      half[0], half[1], half[2], place.yaw, 0, glow, roll, colour[0], colour[1], colour[2], 1,
    );
  }

  /** @param {Mech} mech @param {Place} place @param {Mech} from @param {number} share */
  mech(mech, place, from, share) {
    const kind = this.battle.classes[mech.kind];
    const [length, width, height] = kind.size;
    const colour = TEAMS[mech.team];
    const body = mech.shutdown ? colour.map((each) => 0.45 * each) : colour;
    const walked = away(mech, from);
    const stride = walked > 0.05 ? 0.22 * length * Math.sin(3.2 * (place.x + place.y)) : 0;
    const roll = mech.fallen ? (from.fallen ? 1.45 : 1.45 * share) : from.fallen ? 1.45 * (1 - share) : 0;
    /** @param {number[]} centre @param {number[]} half @param {number[]} tint @param {number} [glow] */
    const put = (centre, half, tint, glow = 0) => this.part(lying, centre, half, tint, glow, roll);
    const [l, w, h] = [length / 2, width / 2, height];
    const lying = { ...place, z: place.z + w * Math.sin(roll) };
    const bulk = clamp((height - 1.5) / 2); // what a class can do is its silhouette, not its name
    for (const side of [-1, 1]) {
      put([side * stride, side * w * 0.55, h * 0.2], [l * (0.2 + 0.16 * bulk), w * (0.16 + 0.14 * bulk), h * 0.2], DARK);
      put([side * stride + l * 0.15, side * w * 0.55, h * 0.04], [l * 0.5, w * (0.22 + 0.12 * bulk), h * 0.04], METAL);
      if (bulk > 0.9) put([-l * 0.05, side * w * 0.92, h * 0.92], [l * 0.5, w * 0.24, h * 0.14], body);
      if (kind.jets) put([-l * 0.72, side * w * 0.42, h * 0.62], [l * 0.2, w * 0.16, h * 0.22], METAL);
    }
    put([0, 0, h * 0.44], [l * 0.5, w * 0.6, h * 0.06], METAL);
    put([-l * 0.05, 0, h * 0.66], [l * 0.72, w * (0.5 + 0.2 * bulk), h * 0.18], body);
    put([l * 0.4, 0, h * 0.86], [l * 0.3, w * 0.3, h * 0.1], mech.shutdown ? DARK : [0.75, 0.93, 1], mech.shutdown ? 0 : 0.8);
    put([-l * 0.55, 0, h * 0.86], [l * 0.26, w * 0.45, h * 0.12], DARK);
    if (kind.electronics) {
      put([-l * 0.5, 0, h * 1.3], [l * 0.05, w * 0.05, h * 0.34], METAL);
      put([-l * 0.5, 0, h * 1.62], [l * 0.08, w * 0.55, h * 0.05], mech.radiates ? [0.8, 0.6, 1] : METAL, mech.radiates ? 1 : 0);
    }
    // the silhouettes of the teams differ, not only their colours: blue has a flat plate, red two spikes
    if (mech.team === 0) put([-l * 0.1, 0, h * 1.0], [l * 0.42, w * 0.6, h * 0.02], body, 0.3);
    else for (const side of [-1, 1]) put([-l * 0.2, side * w * 0.5, h * 1.05], [l * 0.12, w * 0.1, h * 0.16], body, 0.3);
    kind.weapons.forEach((/** @type {string | null} */ weapon, /** @type {number} */ mount) => {
      if (!weapon) return;
      const side = mount % 2 === 0 ? 1 : -1;
      const low = mount < 2 ? 0.62 : 0.84;
      const tint = colourOf(weapon).map((each) => 0.55 * each);
      put([l * 0.55, side * w * 0.95, h * low], [l * (weapon === "gauss" ? 0.95 : 0.6), w * 0.14, h * 0.06], METAL);
      put([l * (weapon === "gauss" ? 1.4 : 1.1), side * w * 0.95, h * low], [l * 0.12, w * 0.16, h * 0.07], tint, 0.5);
    });
    if (mech.jets) {
      for (const side of [-1, 1]) this.discs.push(place.x, place.y + side * 0.2, place.z + 0.1, 0.7, 0.55, 0.8, 1, 0.8);
    }
    const heat = mech.heat / kind.heat;
    if (heat > 0.7) this.discs.push(place.x, place.y, place.z + h * 0.8, h * 0.7, 1, 0.35, 0.1, Math.min(0.5, heat - 0.6));
    if (mech.shutdown) this.discs.push(place.x, place.y, place.z + h * 1.2, h * 0.5, 0.6, 0.6, 0.6, 0.35);
  }

  /** The boxes of a mech of a class that stands at (0, 0). @param {number} kind @param {number} team */
  model(kind, team) {
    this.boxes.length = 0;
    const place = { x: 0, y: 0, z: 0, yaw: team === 0 ? 0.5 : 2.6, shown: true };
    const mech = /** @type {any} */ ({ ...place, kind, team, heat: 0, radiates: 0, fallen: false, shutdown: false, jets: false });
    this.mech(mech, place, mech, 1);
    return this.boxes;
  }

  /** Projectiles in flight. @param {Moment} before @param {Moment} after @param {number} share @param {(x: number, y: number) => boolean} lit */
  shots(before, after, share, lit) {
    const seconds = this.battle.seconds;
    const { weapons } = this.battle;
    for (const shot of after.projectiles) {
      const back = (1 - share) * seconds;
      const owner = this.places[shot.owner];
      const [x, y, z] = [shot.x - back * shot.vx, shot.y - back * shot.vy, shot.z - back * shot.vz];
      const ahead = owner ? (x - owner.x) * shot.vx + (y - owner.y) * shot.vy : 1;
      if (ahead > 0 && lit(x, y)) this.streak(x, y, z, shot, weapons[shot.weapon]?.name);
    }
    const ended = after.events.filter((event) => ["impact", "hit", "splash"].includes(event.kind));
    for (const shot of before.projectiles) {
      const end = ended.find((event) => event.actor === shot.owner && event.weapon === shot.weapon && share < event.when);
      if (!end || !lit(shot.x, shot.y)) continue;
      const done = share / Math.max(0.05, end.when);
      this.streak(mix(shot.x, end.x, done), mix(shot.y, end.y, done), mix(shot.z, end.z, done), shot, weapons[shot.weapon]?.name);
    }
  }

  /** @param {number} x @param {number} y @param {number} z @param {{vx: number, vy: number, vz: number}} shot @param {string} [weapon] */
  streak(x, y, z, { vx, vy, vz }, weapon) {
    const flat = Math.hypot(vx, vy);
    const long = Math.min(1.6, 0.3 + 0.035 * Math.hypot(flat, vz));
    const colour = colourOf(weapon);
    this.boxes.push(x, y, z, long, 0.08, 0.08, Math.atan2(vy, vx), Math.atan2(vz, flat), 1, 0, ...colour, 1);
    this.discs.push(x, y, z, 0.45, ...colour, 0.5);
    if (weapon === "missiles" || weapon === "smoke") {
      const length = Math.hypot(flat, vz) || 1;
      for (let i = 1; i <= 4; i += 1) {
        const back = i * 0.5 / length;
        this.discs.push(x - back * vx, y - back * vy, z - back * vz, 0.18 + 0.06 * i, 0.8, 0.78, 0.75, 0.45 - 0.09 * i);
      }
    }
  }

  /** @param {{x: number, y: number, z: number, radius: number, team: number}} cloud */
  cloud({ x, y, z, radius, team }) {
    const [red, green, blue] = TEAMS[team].map((part) => mix(0.73, part, 0.3));
    for (let i = 0; i < 9; i += 1) {
      const [angle, out] = [i * 2.4, radius * 0.55 * Math.sqrt(i / 9)];
      this.discs.push(x + Math.cos(angle) * out, y + Math.sin(angle) * out, z + 0.25 * radius * Math.sin(i * 1.7), radius * 0.62, red, green, blue, 0.34);
    }
  }

  /** An enemy that the selected mech's pack remembers. @param {any} ghost @param {number} time */
  ghost({ x, y, z, team, age }, time) {
    const alpha = Math.max(0.2, 0.65 - 0.05 * age) * (0.85 + 0.15 * Math.sin(4 * time));
    const [red, green, blue] = TEAMS[team];
    this.beams.push(x, y, z, 0.35, 0.35, 0.9, Math.PI / 4, 0, 1, 0, red, green, blue, alpha);
  }
}
