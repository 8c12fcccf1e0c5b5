// An orbiting camera.

import { lookAt, multiply, perspective } from "./math.js";

const LOWEST = 0.12;
const HIGHEST = 1.55;

export class Camera {
  /** @param {number} size of the map, m */
  constructor(size) {
    this.size = size;
    this.x = size / 2;
    this.y = size / 2;
    this.z = 2;
    this.distance = size * 1.05;
    this.azimuth = -Math.PI / 2 - 0.5;
    this.elevation = 0.85;
    /** @type {import("./math.js").Vector} */
    this.eye = [0, 0, 0];
    this.matrix = new Float32Array(16);
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
    const lens = perspective(aspect < 1 ? 1.1 : 0.8, aspect, near, this.distance + 3 * this.size);
    this.matrix = multiply(lens, lookAt(this.eye, [this.x, this.y, this.z], [0, 0, 1]));
    return this.matrix;
  }
}
