// The battle, simulated by the engine itself in WebAssembly.

import { PageError } from "./data.js";
import { sha256 } from "./sha256.js";

const PAGE_BYTES = 65536;
const SPARE_PAGES = 16;
const SNAPSHOT_EVERY = 20;
const SNAPSHOT_BYTES = 1 << 26;

/**
 * A reader of one field of an array's records.
 * @typedef {(row: number, item?: number) => number} Field
 */

export class Simulation {
  /**
   * @param {WebAssembly.Module} module
   * @param {any} world its description
   * @param {Uint8Array} whole the memory at the battle's start
   * @param {import("./data.js").Replay} replay
   * @param {boolean} seeks whether it will go back, too
   */
  constructor(module, world, whole, replay, seeks) {
    const { base, bytes, changing } = world.memory;
    if (bytes !== whole.length || !(changing <= bytes)) throw new PageError("The battle's memory is truncated or altered.");
    const memory = new WebAssembly.Memory({ initial: Math.ceil((base + bytes) / PAGE_BYTES) + SPARE_PAGES });
    /** @type {any} */
    this.exports = new WebAssembly.Instance(module, { env: { memory } }).exports;
    if (this.exports.__heap_base.value > base) throw new PageError("The engine and the battle's memory do not fit.");
    this.world = world;
    this.replay = replay;
    this.bytes = new Uint8Array(memory.buffer);
    this.view = new DataView(memory.buffer);
    /** The decision that the state is after. */
    this.decision = 0;
    this.bytes.set(whole, base);
    /** The part of the memory that the battle changes. */
    this.memory = this.bytes.subarray(base, base + changing);
    /** @type {Map<number, Uint8Array>} */
    this.snapshots = new Map([[0, whole.subarray(0, changing)]]);
    this.seeks = seeks;
    this.every = SNAPSHOT_EVERY;
    const { at, shape } = world.arrays.actions;
    this.actionsAt = at;
    this.rowBytes = shape[0] * shape[1] * 4;
    this.mechs = shape[0];
  }

  get decisions() {
    return this.replay.digests.length - 1;
  }

  /** Take the next decision of the replay. */
  step() {
    const from = this.decision * this.rowBytes;
    this.bytes.set(this.replay.actions.subarray(from, from + this.rowBytes), this.actionsAt);
    this.call("step");
    this.decision += 1;
    if (this.seeks && this.decision % this.every === 0) this.keep();
  }

  /** Begin another battle. @param {Uint8Array} start its part of the memory @param {import("./data.js").Replay} replay */
  begin(start, replay) {
    this.memory.set(start);
    this.decision = 0;
    this.replay = replay;
    this.every = SNAPSHOT_EVERY;
    this.snapshots = new Map([[0, start]]);
  }

  /** Take a decision with the actions in the memory, and add it to the replay. */
  extend() {
    const { replay, decision } = this;
    if (decision !== this.decisions) throw new Error(`The battle is at decision ${decision} of ${this.decisions}.`);
    this.call("step");
    replay.actions.set(this.bytesOf("actions"), decision * this.rowBytes); // after the step has cleaned them
    this.decision += 1;
    replay.digests.push(this.digest());
    if (this.seeks && this.decision % this.every === 0) this.keep();
  }

  /** Keep the present state; of too many every second one is dropped. */
  keep() {
    const { snapshots } = this;
    if (!snapshots.has(this.decision)) snapshots.set(this.decision, this.memory.slice());
    while (snapshots.size * this.memory.length > SNAPSHOT_BYTES && snapshots.size > 2) {
      this.every *= 2;
      for (const decision of snapshots.keys()) if (decision % this.every !== 0) snapshots.delete(decision);
    }
  }

  /**
   * Go to the state after a decision.
   * @param {number} decision
   */
  seek(decision) {
    if (decision < this.decision || decision > this.decision + SNAPSHOT_EVERY) {
      let nearest = 0;
      for (const kept of this.snapshots.keys()) if (kept <= decision && kept > nearest) nearest = kept;
      if (nearest > this.decision || decision < this.decision) {
        this.memory.set(/** @type {Uint8Array} */ (this.snapshots.get(nearest)));
        this.decision = nearest;
      }
    }
    while (this.decision < decision) this.step();
  }

  /** @param {string} name of a call that the world describes */
  call(name) {
    const [entry, words] = this.world.calls[name];
    const status = this.exports[`echelon_${entry}`](words);
    if (status !== 0) throw new PageError(`The engine stopped with status ${status}.`);
  }

  /** @param {string} name */
  bytesOf(name) {
    const { at, shape, bytes } = this.world.arrays[name];
    const count = shape.reduce((/** @type {number} */ all, /** @type {number} */ side) => all * side, 1);
    return this.bytes.subarray(at, at + count * bytes);
  }

  digest() {
    return sha256(this.world.digested.map((/** @type {string} */ name) => this.bytesOf(name)));
  }

  voxelsDigest() {
    return sha256(this.world.voxels.map((/** @type {string} */ name) => this.bytesOf(name)));
  }

  /**
   * A reader of a field of records, or of an array of numbers without a field.
   * @param {string} name of the array
   * @param {string} [field]
   * @returns {Field}
   */
  field(name, field) {
    const array = this.world.arrays[name];
    const [offset, type] = field === undefined ? [0, array.type] : array.fields[field];
    const size = Number(type.slice(2));
    const view = /** @type {any} */ (this.view);
    const getter = `get${TYPES[type.slice(1)]}`;
    if (!view[getter]) throw new PageError(`The type ${type} is unknown.`);
    return (row, item = 0) => Number(view[getter](array.at + row * array.bytes + offset + item * size, true));
  }
}

/** What a DataView calls the types of NumPy. @type {Record<string, string>} */
const TYPES = {
  f8: "Float64", f4: "Float32", i4: "Int32", u4: "Uint32", i2: "Int16", u2: "Uint16", i1: "Int8", u1: "Uint8", b1: "Uint8", i8: "BigInt64", u8: "BigUint64",
};
