// A battle in progress: the players of the page act, and the mech of the person does what its pilot wants.

import { fromBase64, gunzip, PageError, split } from "./data.js";
import { byId } from "./dom.js";
import { COLOUR_NAMES, momentReader } from "./moments.js";
import { emptyScan, note } from "./scan.js";

const NEWLINE = new Uint8Array([10]);

/**
 * The start of a battle.
 * @typedef {object} Start
 * @property {number} number
 * @property {string[]} players
 * @property {string} header of the replay's file, without what only the course of the battle shows
 * @property {Uint8Array} memory
 */

export class Game {
  /**
   * @param {import("./simulation.js").Simulation} simulation
   * @param {Start} first
   */
  constructor(simulation, first) {
    this.simulation = simulation;
    const { play } = simulation.world;
    /** The row of the mech that the person asked for, or -1: the person watches. @type {number} */
    this.asked = play.mech;
    this.mech = this.asked;
    this.loads = Boolean(play.loads);
    this.autopilot = false;
    /** The names of the levels that the opponent can have, if it has one. @type {string[] | null} */
    this.levels = play.levels;
    /** The level that the opponent has from the next start on: its place among these. @type {number} */
    this.level = play.level;
    /** The next starts that the page brings. */
    this.texts = (byId("starts").textContent ?? "").split(" ").filter(Boolean);
    this.read = momentReader(simulation);
    this.start = first;
    this.scan = emptyScan();
    this.over = false;
    /** Digest of the voxels at the end. @type {string | null} */
    this.voxels = null;
    this.restart();
  }

  /** Let the opponent have the chosen level. */
  applyLevel() {
    if (!this.levels) return;
    const { simulation, level } = this;
    const { at, shape } = simulation.world.arrays.level;
    for (let row = 0; row < shape[0]; row += 1) simulation.view.setBigInt64(at + 8 * row, BigInt(level), true);
    this.start = this.named(this.start);
  }

  /** A start whose opponent has the name of its level. @param {Start} start @returns {Start} */
  named(start) {
    const { team } = this.simulation.world.play;
    const players = start.players.slice();
    players[team] = /** @type {string[]} */ (this.levels)[this.level];
    const name = '"(?:[^"\\\\]|\\\\.)*"';
    const list = new RegExp(`("players": \\[)(${name}), (${name})\\]`);
    const header = start.header.replace(list, (_, before, blue, red) => {
      const names = [blue, red];
      names[team] = JSON.stringify(players[team]);
      return `${before}${names.join(", ")}]`;
    });
    return { ...start, players, header };
  }

  /** Begin the battle again. */
  restart() {
    this.applyLevel();
    const { simulation, start } = this;
    const { max_steps: most } = simulation.world.battle;
    simulation.begin(start.memory, { header: { players: start.players }, actions: new Uint8Array(most * simulation.rowBytes), digests: [] });
    simulation.replay.digests.push(simulation.digest());
    this.scan = emptyScan();
    note(this.scan, simulation, this.read());
    this.over = false;
    this.voxels = null;
    this.mech = this.asked;
    this.autopilot = false;
  }

  /** Begin the next battle. Raises PageError if there is none. */
  async next() {
    const number = this.start.number + 1;
    const data = await this.load(number);
    const [about, memory] = split(await gunzip(data, "battle"), "battle");
    if (about.number !== number || memory.length !== this.simulation.memory.length) {
      throw new PageError("The next battle is damaged.");
    }
    this.start = { ...about, memory };
    this.restart();
  }

  /** @param {number} number @returns {Promise<Uint8Array<ArrayBuffer>>} */
  async load(number) {
    if (!this.loads) {
      const text = this.texts[number - 1];
      if (text === undefined) throw new PageError("This page has no more battles: play one again, or make another page.");
      return /** @type {Uint8Array<ArrayBuffer>} */ (fromBase64(text, "battle"));
    }
    const answer = await fetch(`battles/${number}`).catch(() => null);
    if (!answer?.ok) throw new PageError("The server of this page has ended: start 'echelon play' again.");
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** The mech whose knowledge the person has: the own one, or after its death the first living one of its team. */
  get eyes() {
    const [alive, team] = ["alive", "team"].map((name) => this.simulation.field("mechs", name));
    const rows = Array.from({ length: this.simulation.mechs }, (_, row) => row);
    if (this.mech < 0 || alive(this.mech)) return this.mech;
    return rows.find((row) => alive(row) && team(row) === team(this.mech)) ?? this.mech;
  }

  /**
   * Take a decision.
   * @param {(Float32Array) | null} action of the person's mech; null: that of its team's player
   */
  decide(action) {
    const { simulation } = this;
    const { world } = simulation;
    const actions = simulation.bytesOf("actions");
    const seen = this.seen();
    actions.fill(0);
    for (const team of COLOUR_NAMES) if (world.calls[team]) simulation.call(team);
    if (action && this.mech >= 0) {
      const bytes = new Uint8Array(action.buffer, action.byteOffset, action.byteLength);
      actions.set(bytes, this.mech * bytes.length);
    }
    simulation.extend();
    const now = this.seen();
    const moment = this.read();
    note(this.scan, simulation, moment, (mech) => seen[mech] || now[mech]);
    this.over = moment.over;
    if (this.over) this.voxels = simulation.voxelsDigest();
  }

  /** Which mechs the person knows of: those of the team, and those that `eyes` sees; all if the person watches. @returns {boolean[]} */
  seen() {
    const { simulation, eyes: mech } = this;
    const team = simulation.field("mechs", "team");
    const visible = simulation.field("visible");
    return Array.from({ length: simulation.mechs }, (_, other) => (
      mech < 0 || team(other) === team(mech) || visible(mech * simulation.mechs + other) > 0
    ));
  }

  /** The replay's file, as Python reads it. */
  async file() {
    const { replay, rowBytes } = this.simulation;
    const decisions = this.simulation.decisions;
    const text = `${this.start.header.slice(0, -1)}, "decisions": ${decisions}, "voxels_digest": ${JSON.stringify(this.voxels)}}`;
    const digests = new Uint8Array(replay.digests.flatMap((digest) => (digest.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))));
    const parts = [new TextEncoder().encode(text), NEWLINE, replay.actions.slice(0, decisions * rowBytes), digests];
    const stream = new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"));
    return new Response(stream).blob();
  }
}
