// What shots, hits and deaths look like for a while: discs and beams by their age.

import { mix } from "./math.js";

const WEAPON_COLOURS = /** @type {Record<string, number[]>} */ ({
  laser: [0.45, 0.95, 1], flamer: [1, 0.62, 0.15], painter: [0.35, 1, 0.5], missiles: [1, 0.75, 0.4],
  gauss: [0.75, 0.8, 1], autocannon: [1, 0.9, 0.5], smoke: [0.8, 0.8, 0.8],
});
const FALLBACK = [1, 0.9, 0.7];
/** @param {string | null | undefined} weapon */
export const colourOf = (weapon) => (weapon && Object.hasOwn(WEAPON_COLOURS, weapon) ? WEAPON_COLOURS[weapon] : FALLBACK);

/** Seconds for which a kind of event can be seen. @type {Record<string, number>} */
export const LASTS = { shot: 0.16, hit: 0.35, paint: 0.3, splash: 0.5, impact: 0.9, interception: 0.5, shutdown: 2, fall: 1.2, hazard: 0.5, death: 4 };

/**
 * @param {import("./scene.js").Scene} scene
 * @param {import("./moments.js").Event} event
 * @param {number} age s
 * @param {import("./moments.js").Moment} moment
 */
export function drawEffect(scene, event, age, moment) {
  const weapon = scene.battle.weapons[event.weapon];
  const done = age / LASTS[event.kind];
  const fade = 1 - done;
  const colour = colourOf(weapon?.name);
  const { x, y, z } = event;
  /** @param {number} dx @param {number} dy @param {number} dz @param {number} radius @param {number[]} tint @param {number} alpha */
  const puff = (dx, dy, dz, radius, tint, alpha) => scene.discs.push(x + dx, y + dy, z + dz, radius, tint[0], tint[1], tint[2], alpha);
  /** Puffs around the place. @param {number} count @param {(i: number, cos: number, sin: number) => void} put */
  const around = (count, put) => {
    for (let i = 0; i < count; i += 1) put(i, Math.cos(i * 2.4), Math.sin(i * 2.4));
  };
  switch (event.kind) {
    case "shot":
      puff(0, 0, 0, 0.5 + 0.5 * fade, [1, 0.95, 0.8], fade);
      puff(0, 0, 0, 1.3 * fade, colour, 0.5 * fade);
      break;
    case "hit":
    case "paint": {
      if (!weapon?.projectile) beamOf(scene, event, moment, age, colour);
      puff(0, 0, 0, 0.5 + 0.7 * done, colour, fade);
      if (event.amount >= 1) around(4, (_, cos, sin) => puff(cos * done, sin * done, 0.8 * done, 0.22, [1, 0.9, 0.6], fade));
      break;
    }
    case "splash":
      puff(0, 0, 0, 0.6 + done, [1, 0.7, 0.3], 0.6 * fade);
      break;
    case "impact": {
      const radius = 0.5 + (weapon?.splash || 0.3) * Math.sqrt(done);
      puff(0, 0, 0, radius, [1, 0.78, 0.35], fade * fade);
      around(3, (i, cos, sin) => puff(0.4 * cos, 0.4 * sin, 0.5 + 1.2 * done + 0.2 * i, radius * 0.9, [0.34, 0.32, 0.3], 0.5 * fade));
      break;
    }
    case "interception":
      puff(0, 0, 0, 0.9 + 0.5 * done, [0.5, 1, 0.95], fade);
      break;
    case "fall":
      around(6, (_, cos, sin) => puff(2 * done * cos, 2 * done * sin, 0.3, 0.5 + done, [0.62, 0.56, 0.48], 0.5 * fade));
      break;
    case "shutdown":
      around(4, (i, cos, sin) => puff(0.5 * cos, 0.5 * sin, 1.5 + 1.6 * done + 0.4 * i, 0.5 + 0.5 * done, [0.85, 0.88, 0.9], 0.5 * fade));
      break;
    case "death":
      if (age < 0.7) around(7, (i, cos, sin) => puff(2.2 * age * cos, 2.2 * age * sin, 1 + age * i * 0.4, 1.7 - age, [1, 0.45 + 0.07 * i, 0.1], 1 - age / 0.7));
      if (age < 0.3) puff(0, 0, 1, 4 * (0.3 - age) * 4, [1, 0.95, 0.8], 0.9);
      around(6, (i, cos, sin) => puff(0.5 * cos, 0.5 * sin, 1 + 5 * done * (0.5 + i / 8), 0.7 + 1.1 * done, [0.16, 0.15, 0.15], 0.6 * fade));
      break;
    default:
  }
}

/** The beam of a weapon without projectiles. @param {import("./scene.js").Scene} scene @param {import("./moments.js").Event} event @param {import("./moments.js").Moment} moment @param {number} age @param {number[]} colour */
function beamOf(scene, event, moment, age, colour) {
  const shooter = scene.places[event.actor];
  if (age > 0.2 || !shooter?.shown) return;
  const height = scene.battle.classes[moment.mechs[event.actor].kind].size[2] * 0.62;
  const [x, y, z] = [shooter.x, shooter.y, shooter.z + height];
  const [dx, dy, dz] = [event.x - x, event.y - y, event.z - z];
  const flat = Math.hypot(dx, dy);
  const fade = 1 - age / 0.2;
  const flames = scene.battle.weapons[event.weapon]?.name === "flamer";
  if (flames) {
    for (let i = 1; i <= 7; i += 1) {
      const share = i / 7;
      scene.discs.push(mix(x, event.x, share), mix(y, event.y, share), mix(z, event.z, share), 0.25 + 0.6 * share, 1, 0.75 - 0.35 * share, 0.15, 0.75 * fade);
    }
    return;
  }
  for (const [thick, alpha, tint] of /** @type {[number, number, number[]][]} */ ([[0.16, 0.35, colour], [0.05, 0.95, [1, 1, 1]]])) {
    scene.beams.push(
      x + dx / 2, y + dy / 2, z + dz / 2, Math.hypot(flat, dz) / 2, thick, thick,
      Math.atan2(dy, dx), Math.atan2(dz, flat), 1, 0, ...tint, alpha * fade,
    );
  }
}
