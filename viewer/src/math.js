// 4 x 4 matrices, by columns, and vectors.

/** @typedef {[number, number, number]} Vector */

/** @param {Vector} a @param {Vector} b @returns {Vector} */
export const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
/** @param {Vector} a @param {Vector} b @returns {Vector} */
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
/** @param {Vector} a @param {Vector} b */
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
/** @param {Vector} a @returns {Vector} */
export const normalize = (a) => {
  const length = Math.hypot(...a) || 1;
  return [a[0] / length, a[1] / length, a[2] / length];
};
/** @typedef {{x: number, y: number}} Place */
/** The distance of two places on the map. @param {Place} a @param {Place} b */
export const away = (a, b) => Math.hypot(b.x - a.x, b.y - a.y);
/** The angle to the left by which a place is off the heading of a mech, from -pi to pi. @param {Place & {yaw: number}} a @param {Place} b */
export const bearing = (a, b) => mixAngle(0, Math.atan2(b.y - a.y, b.x - a.x) - a.yaw, 1);
/** @param {number} share @returns {number} from 0 to 1 */
export const clamp = (share) => Math.min(1, Math.max(0, share));
/** @param {number} a @param {number} b @param {number} share */
export const mix = (a, b, share) => a + (b - a) * share;
/** @param {number} a @param {number} b @param {number} share */
export const mixAngle = (a, b, share) => {
  const difference = ((((b - a) % (2 * Math.PI)) + 3 * Math.PI) % (2 * Math.PI)) - Math.PI;
  return a + difference * share;
};

/** @param {Float32Array} a @param {Float32Array} b */
export function multiply(a, b) {
  const out = new Float32Array(16);
  for (let column = 0; column < 4; column += 1) {
    for (let row = 0; row < 4; row += 1) {
      let sum = 0;
      for (let k = 0; k < 4; k += 1) sum += a[4 * k + row] * b[4 * column + k];
      out[4 * column + row] = sum;
    }
  }
  return out;
}

/** @param {number} angle radians @param {number} aspect @param {number} near @param {number} far */
export function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  const depth = 1 / (near - far);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (near + far) * depth, -1, 0, 0, 2 * near * far * depth, 0]);
}

/** @param {Vector} eye @param {Vector} target @param {Vector} up */
export function lookAt(eye, target, up) {
  const back = normalize(subtract(eye, target));
  const right = normalize(cross(up, back));
  const above = cross(back, right);
  return new Float32Array([
    right[0], above[0], back[0], 0,
    right[1], above[1], back[1], 0,
    right[2], above[2], back[2], 0,
    -dot(right, eye), -dot(above, eye), -dot(back, eye), 1,
  ]);
}

/** Screen position (share of width and height from the upper left corner) of a point, or null behind the camera. */
export function project(/** @type {Float32Array} */ matrix, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ z) {
  const w = matrix[3] * x + matrix[7] * y + matrix[11] * z + matrix[15];
  if (w <= 0.01) return null;
  const px = (matrix[0] * x + matrix[4] * y + matrix[8] * z + matrix[12]) / w;
  const py = (matrix[1] * x + matrix[5] * y + matrix[9] * z + matrix[13]) / w;
  return { x: (px + 1) / 2, y: (1 - py) / 2, distance: w };
}
