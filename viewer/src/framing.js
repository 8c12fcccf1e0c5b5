// Where the camera looks: at the whole map, at a mech, or at the fight.

import { away } from "./math.js";

/** @typedef {import("./viewer.js").Viewer} Viewer */

/** See the whole map between the panels, each team's side at its panel. @param {Viewer} viewer */
export function frameMap({ canvas, camera, across }) {
  const [width, height] = [Math.max(1, canvas.clientWidth), Math.max(1, canvas.clientHeight)];
  camera.aspect = width / height;
  camera.overview(across, [width > 760 ? 110 / width : 0, 56 / height, 8 / height]);
}

/** Move to the selected mech, or to where the fight is. @param {Viewer} viewer @param {{event: import("./moments.js").Event}[]} effects */
export function followFight({ camera, scene, selected, after, world }, effects) {
  const followed = scene.places[selected];
  if (followed) {
    camera.approach(followed, 0.15);
    return;
  }
  const places = scene.places.filter((place, index) => place.shown && after.mechs[index].alive);
  const points = [...places, ...effects.filter(({ event }) => event.kind !== "death").map(({ event }) => event)];
  if (points.length === 0) return;
  const middle = (/** @type {"x" | "y"} */ axis) => points.reduce((sum, each) => sum + each[axis], 0) / points.length;
  const place = { x: middle("x"), y: middle("y"), z: 0 };
  const wide = points.reduce((sum, each) => sum + away(each, place), 0) / points.length;
  camera.approach(place, 0.04, Math.min(1.1 * world.battle.size, 18 + 2.2 * wide));
}

/** The direction from the middle of blue's mechs to that of red's. @param {import("./moments.js").Mech[]} mechs */
export function fromBlueToRed(mechs) {
  const middle = (/** @type {"x" | "y"} */ axis, /** @type {number} */ team) => {
    const own = mechs.filter((mech) => mech.team === team);
    return own.reduce((sum, mech) => sum + mech[axis], 0) / own.length;
  };
  const [x, y] = [middle("x", 1) - middle("x", 0), middle("y", 1) - middle("y", 0)];
  const far = Math.hypot(x, y) || 1;
  return { x: x / far, y: y / far };
}
