// The things to draw at a moment between two decisions.

import { mix, mixAngle } from "./math.js";

/** @typedef {import("./moments.js").Moment} Moment */
/** @typedef {import("./moments.js").Mech} Mech */

/** Blue and vermilion differ in lightness, too, and with all common kinds of colour blindness. */
export const TEAMS = [
  [0.2, 0.52, 0.98],
  [0.93, 0.36, 0.14],
];
const DARK = [0.13, 0.14, 0.17];
const METAL = [0.42, 0.44, 0.48];
const WEAPON_COLOURS = /** @type {Record<string, number[]>} */ ({
  laser: [0.45, 0.95, 1], flamer: [1, 0.62, 0.15], painter: [0.35, 1, 0.5], missiles: [1, 0.75, 0.4],
  gauss: [0.75, 0.8, 1], autocannon: [1, 0.9, 0.5], smoke: [0.8, 0.8, 0.8],
});
const FALLBACK = [1, 0.9, 0.7];
/** @param {string | null | undefined} weapon */
const colourOf = (weapon) => (weapon && Object.hasOwn(WEAPON_COLOURS, weapon) ? WEAPON_COLOURS[weapon] : FALLBACK);

export class Scene {
  /** @param {any} world */
  constructor(world) {
    this.world = world;
    this.battle = world.battle;
    /** Numbers of boxes, see BOX_FLOATS. @type {number[]} */
    this.boxes = [];
    /** @type {number[]} */
    this.beams = [];
    /** @type {number[]} */
    this.discs = [];
    /** Circles on the ground: x, y, radius, width of the edge, colour, strength. @type {number[]} */
    this.circles = [];
    /** Where each mech is drawn. @type {{x: number, y: number, z: number, yaw: number, shown: boolean}[]} */
    this.places = [];
  }

  /**
   * @param {Moment} before
   * @param {Moment} after
   * @param {number} share of the decision that has passed, 0 to 1
   * @param {{selected: number, sees: (mech: number) => boolean, lit: (x: number, y: number) => boolean, ghosts: any[], time: number}} options
   */
  build(before, after, share, { selected, sees, lit, ghosts, time }) {
    for (const list of [this.boxes, this.beams, this.discs, this.circles]) list.length = 0;
    this.places = after.mechs.map((mech, index) => {
      const from = before.mechs[index];
      const shown = (mech.alive || from.alive) && sees(index);
      return {
        x: mix(from.x, mech.x, share), y: mix(from.y, mech.y, share), z: mix(from.z, mech.z, share),
        yaw: mixAngle(from.yaw, mech.yaw, share), shown,
      };
    });
    this.ground(after, selected, time);
    after.mechs.forEach((mech, index) => {
      if (this.places[index].shown && (mech.alive || share < 0.9)) this.mech(mech, this.places[index], before.mechs[index], share);
    });
    this.shots(before, after, share, sees, lit);
    for (const cloud of after.clouds) {
      const [{ x, y }, r] = [cloud, 0.9 * cloud.radius];
      if ([[x, y], [x - r, y], [x + r, y], [x, y - r], [x, y + r]].some(([px, py]) => lit(px, py))) this.cloud(cloud);
    }
    for (const ghost of ghosts) this.ghost(ghost, time);
  }

  /** @param {Moment} moment @param {number} selected @param {number} time */
  ground({ zone, teams, mechs }, selected, time) {
    const held = teams.map((team) => team.share);
    const colour = held[0] > held[1] ? TEAMS[0] : held[1] > held[0] ? TEAMS[1] : [0.95, 0.95, 0.9];
    this.circles.push(zone.x, zone.y, zone.radius, 0.35, ...colour, held[0] === held[1] ? 0.35 : 0.7);
    mechs.forEach((mech, index) => {
      const place = this.places[index];
      if (!mech.alive || !place.shown) return;
      if (mech.radiates > 0 && this.circles.length < 8 * 8) {
        const tint = mech.radiates === 1 ? [0.8, 0.4, 1] : [0.4, 1, 0.9];
        const pulse = 0.18 + 0.06 * Math.sin(6 * time + index);
        this.circles.push(place.x, place.y, Math.min(this.battle.ecm, 14), 0.4, ...tint, pulse);
      }
      if (index === selected) this.circles.push(place.x, place.y, 1.6 + 0.1 * Math.sin(5 * time), 0.25, 1, 1, 1, 0.9);
    });
  }

  /**
   * A box: its centre relative to a place that is turned by `yaw`.
   * @param {{x: number, y: number, z: number, yaw: number}} place
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

  /** @param {Mech} mech @param {{x: number, y: number, z: number, yaw: number}} place @param {Mech} from @param {number} share */
  mech(mech, place, from, share) {
    const kind = this.battle.classes[mech.kind];
    const [length, width, height] = kind.size;
    const colour = TEAMS[mech.team];
    const body = mech.shutdown ? colour.map((each) => 0.45 * each) : colour;
    const walked = Math.hypot(mech.x - from.x, mech.y - from.y);
    const stride = walked > 0.05 ? 0.22 * length * Math.sin(3.2 * (place.x + place.y)) : 0;
    const roll = mech.fallen ? (from.fallen ? 1.45 : 1.45 * share) : from.fallen ? 1.45 * (1 - share) : 0;
    /** @param {number[]} centre @param {number[]} half @param {number[]} tint @param {number} [glow] */
    const put = (centre, half, tint, glow = 0) => this.part(place, centre, half, tint, glow, roll);
    const [l, w, h] = [length / 2, width / 2, height];
    for (const side of [-1, 1]) {
      put([side * stride, side * w * 0.55, h * 0.2], [l * 0.32, w * 0.26, h * 0.2], DARK);
      put([side * stride + l * 0.15, side * w * 0.55, h * 0.04], [l * 0.5, w * 0.3, h * 0.04], METAL);
    }
    put([0, 0, h * 0.44], [l * 0.5, w * 0.6, h * 0.06], METAL);
    put([-l * 0.05, 0, h * 0.66], [l * 0.72, w * 0.66, h * 0.18], body);
    put([l * 0.4, 0, h * 0.86], [l * 0.3, w * 0.3, h * 0.1], mech.shutdown ? DARK : [0.75, 0.93, 1], mech.shutdown ? 0 : 0.8);
    put([-l * 0.55, 0, h * 0.86], [l * 0.26, w * 0.45, h * 0.12], DARK);
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

  /** @param {Moment} before @param {Moment} after @param {number} share @param {(mech: number) => boolean} sees @param {(x: number, y: number) => boolean} lit */
  shots(before, after, share, sees, lit) {
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
    for (const event of after.events) {
      const weapon = weapons[event.weapon];
      const since = share - event.when * 0.9;
      if (since < 0 || since > 0.7 || !(lit(event.x, event.y) || (event.target >= 0 && sees(event.target)))) continue;
      const fade = 1 - since / 0.7;
      const colour = colourOf(weapon?.name);
      const shooter = event.actor >= 0 && sees(event.actor) ? this.places[event.actor] : undefined;
      if ((event.kind === "hit" || event.kind === "paint") && shooter && (!weapon || !weapon.projectile)) {
        const height = this.battle.classes[after.mechs[event.actor].kind].size[2] * 0.62;
        this.beam(shooter.x, shooter.y, shooter.z + height, event, event.kind === "paint" ? WEAPON_COLOURS.painter : colour, fade, weapon?.name === "flamer");
      }
      if (event.kind === "hit") this.discs.push(event.x, event.y, event.z, 0.5 + 0.5 * since, ...colour, fade);
      if (event.kind === "impact") {
        const radius = 0.4 + (weapon?.splash || 0.3) * since;
        this.discs.push(event.x, event.y, event.z, radius, 1, 0.75, 0.3, fade, event.x, event.y, event.z + since, radius * 1.4, 0.3, 0.28, 0.26, 0.6 * fade);
      }
      if (event.kind === "shot") this.discs.push(event.x, event.y, event.z, 0.5, ...colour, fade);
      if (event.kind === "interception") this.discs.push(event.x, event.y, event.z, 0.8, 0.5, 1, 0.95, fade);
      if (event.kind === "death") {
        for (let i = 0; i < 6; i += 1) {
          const [angle, out] = [i * 1.05, 1.6 * since];
          this.discs.push(event.x + Math.cos(angle) * out, event.y + Math.sin(angle) * out, event.z + 1 + since * i * 0.3, 1.4 - 0.6 * since, 1, 0.45 + 0.07 * i, 0.1, fade);
        }
      }
    }
  }

  /** @param {number} x @param {number} y @param {number} z @param {{vx: number, vy: number, vz: number}} shot @param {string} [weapon] */
  streak(x, y, z, { vx, vy, vz }, weapon) {
    const flat = Math.hypot(vx, vy);
    const long = Math.min(1.4, 0.25 + 0.03 * Math.hypot(flat, vz));
    const colour = colourOf(weapon);
    this.boxes.push(x, y, z, long, 0.07, 0.07, Math.atan2(vy, vx), Math.atan2(vz, flat), 1, 0, ...colour, 1);
    if (weapon === "missiles" || weapon === "smoke") {
      const length = Math.hypot(flat, vz) || 1;
      for (let i = 1; i <= 4; i += 1) {
        const back = i * 0.5 / length;
        this.discs.push(x - back * vx, y - back * vy, z - back * vz, 0.18 + 0.06 * i, 0.8, 0.78, 0.75, 0.45 - 0.09 * i);
      }
    }
  }

  /**
   * @param {number} x @param {number} y @param {number} z @param {{x: number, y: number, z: number}} end
   * @param {number[]} colour @param {number} fade @param {boolean} wide
   */
  beam(x, y, z, end, colour, fade, wide) {
    const [dx, dy, dz] = [end.x - x, end.y - y, end.z - z];
    const flat = Math.hypot(dx, dy);
    const half = Math.hypot(flat, dz) / 2;
    const thick = wide ? 0.28 : 0.06;
    this.beams.push(
      (x + end.x) / 2, (y + end.y) / 2, (z + end.z) / 2, half, thick, thick,
      Math.atan2(dy, dx), Math.atan2(dz, flat), 1, 0, ...colour, 0.85 * fade,
    );
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
