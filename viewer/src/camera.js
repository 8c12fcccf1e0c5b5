// An orbiting camera.

import { cross, lookAt, multiply, normalize, perspective, subtract } from "./math.js";

const LOWEST = 0.12;
const HIGHEST = 1.55;

export class Camera {
  /** @param {number} size of the map, m */
  constructor(size) {
    this.size = size;
    this.x = this.y = size / 2;
    this.z = this.distance = this.azimuth = this.elevation = 0;
    this.overview();
    /** @type {import("./math.js").Vector} */
    this.eye = [0, 0, 0];
    this.matrix = new Float32Array(16);
    this.aspect = 1;
  }

  /** See the whole map. */
  overview() {
    const { size } = this;
    Object.assign(this, { x: size / 2, y: size / 2, z: 2, distance: 1.05 * size, azimuth: -Math.PI / 2 - 0.5, elevation: 0.85 });
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
