// Meshes of the voxels, in chunks that are made again when a voxel in them changes.

export const CHUNK = 20;
/** Bytes of a vertex: position (3 floats), normal and glow (2 bytes, 2 spare), colour (4 bytes). */
export const VERTEX_BYTES = 20;

// Of each face: the normal, and the corners counter-clockwise from outside.
/** @type {{normal: number[], corners: number[][]}[]} */
const FACES = [
  { normal: [1, 0, 0], corners: [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]] },
  { normal: [-1, 0, 0], corners: [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1]] },
  { normal: [0, 1, 0], corners: [[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]] },
  { normal: [0, -1, 0], corners: [[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1]] },
  { normal: [0, 0, 1], corners: [[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]] },
];
const SHADE = [1, 0.8, 0.66, 0.56];

export class Terrain {
  /**
   * @param {Uint8Array} voxels (z, y, x) materials, of the simulation
   * @param {any} battle
   */
  constructor(voxels, battle) {
    this.voxels = voxels;
    this.size = battle.size;
    this.height = battle.height;
    this.materials = battle.materials;
    this.bedrock = battle.bedrock;
    this.across = Math.ceil(this.size / CHUNK);
    /** What has been meshed. */
    this.meshed = new Uint8Array(voxels.length).fill(255);
  }

  /** The chunks with voxels that have changed since the last call. */
  changed() {
    /** @type {Set<number>} */
    const found = new Set();
    const { voxels, meshed, size, across } = this;
    for (let i = 0; i < voxels.length; i += 1) {
      if (voxels[i] === meshed[i]) continue;
      meshed[i] = voxels[i];
      const x = i % size;
      const y = Math.floor(i / size) % size;
      // occlusion reaches one voxel beyond
      for (const nx of [x - 1, x, x + 1]) {
        for (const ny of [y - 1, y, y + 1]) {
          if (nx < 0 || ny < 0 || nx >= size || ny >= size) continue;
          found.add(Math.floor(ny / CHUNK) * across + Math.floor(nx / CHUNK));
        }
      }
    }
    return [...found];
  }

  /** The colour of the highest voxel of a cell, brighter where it is high. @param {number} cell y * size + x @returns {number[]} */
  topColour(cell) {
    const { size, height, meshed } = this;
    let z = height - 1;
    while (z >= 0 && meshed[z * size * size + cell] === 0) z -= 1;
    const colour = z < 0 ? this.bedrock : this.materials[meshed[z * size * size + cell]].colour;
    return colour.map((/** @type {number} */ part) => part * (0.6 + (0.5 * (z + 1)) / height));
  }

  /** The material of a voxel; below the map bedrock (-1), beside and above it air. @param {number} x @param {number} y @param {number} z */
  at(x, y, z) {
    if (z < 0) return -1;
    if (x < 0 || y < 0 || x >= this.size || y >= this.size || z >= this.height) return 0;
    return this.meshed[(z * this.size + y) * this.size + x];
  }

  /** @param {number} material */
  solid(material) {
    return material < 0 || this.materials[material].opacity >= 0.4;
  }

  /**
   * Vertices of a chunk's faces, four for each: of the opaque ones, and of those that one sees through.
   * @param {number} chunk
   * @returns {[ArrayBuffer, ArrayBuffer]}
   */
  mesh(chunk) {
    const opaque = new Vertices();
    const clear = new Vertices();
    const left = (chunk % this.across) * CHUNK;
    const low = Math.floor(chunk / this.across) * CHUNK;
    for (let y = low; y < Math.min(low + CHUNK, this.size); y += 1) {
      for (let x = left; x < Math.min(left + CHUNK, this.size); x += 1) {
        for (let z = -1; z < this.height; z += 1) {
          const material = this.at(x, y, z);
          if (material === 0) continue;
          const into = this.solid(material) ? opaque : clear;
          for (let side = z < 0 ? 4 : 0; side < FACES.length; side += 1) {
            const { normal } = FACES[side];
            const next = this.at(x + normal[0], y + normal[1], z + normal[2]);
            if (this.solid(next) || (next === material && next !== 0)) continue;
            this.face(into, side, x, y, z, material);
          }
        }
      }
    }
    return [opaque.take(), clear.take()];
  }

  /**
   * @param {Vertices} into
   * @param {number} side @param {number} x @param {number} y @param {number} z @param {number} material
   */
  face(into, side, x, y, z, material) {
    const { corners } = FACES[side];
    const style = material < 0 ? null : this.materials[material];
    const colour = style ? style.colour : this.bedrock;
    const grain = 0.93 + 0.14 * noise(x, y, z);
    const glow = style?.name === "lava" ? 255 : 0;
    const alpha = !style || style.opacity >= 0.4 ? 255 : 140;
    const tint = glow && noise(x, y, z + 7) > 0.7 ? style.accent : colour;
    for (const corner of corners) {
      const shade = grain * this.occlusion(side, corner, x, y, z);
      into.put(
        x + corner[0], y + corner[1], z + corner[2],
        side, glow, tint[0] * shade, tint[1] * shade, tint[2] * shade, alpha,
      );
    }
  }

  /** How light a corner of a face is, by the voxels beside it. */
  occlusion(/** @type {number} */ side, /** @type {number[]} */ corner, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ z) {
    const { normal } = FACES[side];
    const step = corner.map((each) => 2 * each - 1);
    const axis = normal.findIndex((each) => each !== 0);
    const [p, q] = [0, 1, 2].filter((each) => each !== axis);
    const at = [x + normal[0], y + normal[1], z + normal[2]];
    const one = at.slice();
    one[p] += step[p];
    const two = at.slice();
    two[q] += step[q];
    const both = one.slice();
    both[q] += step[q];
    const blocked = [one, two, both].map((place) => Number(this.solid(this.at(place[0], place[1], place[2]))));
    return SHADE[blocked[0] && blocked[1] ? 3 : blocked[0] + blocked[1] + blocked[2]];
  }
}

class Vertices {
  constructor() {
    this.count = 0;
    this.buffer = new ArrayBuffer(4096 * VERTEX_BYTES);
    this.floats = new Float32Array(this.buffer);
    this.bytes = new Uint8ClampedArray(this.buffer);
  }

  /**
   * @param {number} x @param {number} y @param {number} z @param {number} normal @param {number} glow
   * @param {number} red @param {number} green @param {number} blue @param {number} alpha
   */
  put(x, y, z, normal, glow, red, green, blue, alpha) {
    if ((this.count + 1) * VERTEX_BYTES > this.buffer.byteLength) {
      const larger = new Uint8ClampedArray(2 * this.buffer.byteLength);
      larger.set(this.bytes);
      this.buffer = larger.buffer;
      this.floats = new Float32Array(this.buffer);
      this.bytes = larger;
    }
    const at = this.count * VERTEX_BYTES;
    this.floats.set([x, y, z], at / 4);
    this.bytes.set([normal, glow, 0, 0, red, green, blue, alpha], at + 12);
    this.count += 1;
  }

  take() {
    return this.buffer.slice(0, this.count * VERTEX_BYTES);
  }
}

/** A number from 0 to 1 that follows from a place. */
function noise(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ z) {
  let h = Math.imul(x, 374761393) ^ Math.imul(y, 668265263) ^ Math.imul(z, 2147483647);
  h = Math.imul(h ^ (h >>> 13), 1274126177);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}
