// An orbiting camera.

import { cross, lookAt, mix, multiply, normalize, perspective, project, subtract } from "./math.js";

const LOWEST = 0.12;
const HIGHEST = 1.55;

export class Camera {
  /** @param {number} size of the map, m */
  constructor(size) {
    this.size = size;
    this.x = this.y = size / 2;
    this.z = this.azimuth = this.elevation = 0;
    this.distance = size;
    /** @type {import("./math.js").Vector} */
    this.eye = [0, 0, 0];
    this.matrix = new Float32Array(16);
    this.aspect = 1;
    /** Seconds since the last picture. */
    this.passed = 1 / 60;
  }

  /**
   * See the whole map between the panels, blue's side on the left as its panel.
   * @param {{x: number, y: number}} right the direction from blue to red
   * @param {number[]} margins shares of the picture at the left and right, above and below
   */
  overview(right, margins) {
    const middle = Math.atan2(-right.x, right.y);
    const views = [-0.5, 0, 0.5].map((turn) => this.fit(middle + turn, margins));
    Object.assign(this, views.reduce((best, other) => (other.distance < best.distance ? other : best)));
  }

  /** The nearest view of the whole map from a side. @param {number} azimuth @param {number[]} margins */
  fit(azimuth, margins) {
    const { size } = this;
    Object.assign(this, { x: size / 2, y: size / 2, z: 0, azimuth, elevation: 0.82 });
    const corners = [0, size].flatMap((x) => [0, size].map((y) => [x, y]));
    const [side, above, below] = margins;
    for (let round = 0; round < 4; round += 1) {
      let [near, far] = [0.3 * size, 4 * size];
      let [low, high] = [0, 1];
      while (far - near > 0.01 * size) {
        this.distance = (near + far) / 2;
        this.update(this.aspect);
        const seen = corners.map(([x, y]) => project(this.matrix, x, y, 0));
        const [xs, ys] = [seen.map((at) => at?.x ?? 9), seen.map((at) => at?.y ?? 9)];
        [low, high] = [Math.min(...ys), Math.max(...ys)];
        if (Math.min(...xs) < side || Math.max(...xs) > 1 - side || high - low > 1 - above - below) near = this.distance;
        else far = this.distance;
      }
      const off = (low + high) / 2 - (1 + above - below) / 2; // of the map's middle from that of the free part
      this.pan(0, -off * 1.2);
    }
    const { x, y, distance } = this;
    return { x, y, distance, azimuth };
  }

  /** The angle of view, vertically. */
  angle() {
    return this.aspect < 1 ? 1.1 : 0.8;
  }

  /**
   * The place at a height under a point of the picture; far ahead if the point is above the horizon.
   * @param {number} x @param {number} y shares of the picture @param {number} z m
   */
  ground(x, y, z) {
    const back = normalize(subtract(this.eye, [this.x, this.y, this.z]));
    const right = normalize(cross([0, 0, 1], back));
    const above = cross(back, right);
    const half = Math.tan(this.angle() / 2);
    const [across, up] = [(2 * x - 1) * half * this.aspect, (1 - 2 * y) * half];
    const [dx, dy, dz] = [0, 1, 2].map((axis) => right[axis] * across + above[axis] * up - back[axis]);
    const far = dz < 0 ? Math.min((z - this.eye[2]) / dz, 4 * this.size) : 4 * this.size;
    return { x: this.eye[0] + dx * far, y: this.eye[1] + dy * far };
  }

  /** @param {number} right @param {number} up radians */
  turn(right, up) {
    this.azimuth -= right;
    this.elevation = Math.min(HIGHEST, Math.max(LOWEST, this.elevation + up));
  }

  /** @param {number} factor */
  zoom(factor) {
    this.distance = Math.min(3 * this.size, Math.max(4, this.distance * factor));
  }

  /** Move over the ground. @param {number} right @param {number} forward shares of the distance */
  pan(right, forward) {
    const [sin, cos] = [Math.sin(this.azimuth), Math.cos(this.azimuth)];
    this.x = Math.min(this.size, Math.max(0, this.x + this.distance * (-sin * right - cos * forward)));
    this.y = Math.min(this.size, Math.max(0, this.y + this.distance * (cos * right - sin * forward)));
  }

  /** Come nearer to a place. @param {{x: number, y: number, z: number}} place @param {number} rate share of the way in a 60th of a second @param {number} [distance] */
  approach(place, rate, distance = this.distance) {
    const share = 1 - (1 - rate) ** (60 * this.passed);
    this.x = mix(this.x, place.x, share);
    this.y = mix(this.y, place.y, share);
    this.z = mix(this.z, place.z + 1, share);
    this.distance = mix(this.distance, distance, share / 2);
  }

  /** @param {number} aspect */
  update(aspect) {
    const flat = Math.cos(this.elevation) * this.distance;
    this.eye = [
      this.x + Math.cos(this.azimuth) * flat,
      this.y + Math.sin(this.azimuth) * flat,
      this.z + Math.sin(this.elevation) * this.distance,
    ];
    const near = Math.max(0.3, this.distance / 60);
    this.aspect = aspect;
    const lens = perspective(this.angle(), aspect, near, this.distance + 3 * this.size);
    this.matrix = multiply(lens, lookAt(this.eye, [this.x, this.y, this.z], [0, 0, 1]));
    return this.matrix;
  }
}
