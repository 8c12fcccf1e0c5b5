// One pass through the whole battle: is it the one that was recorded, and what happens when?

import { momentReader } from "./moments.js";

const BUDGET_MS = 12;
/** Kinds of events that the timeline shows. */
export const MARKED = ["death", "fall", "shutdown", "legged"];

/**
 * @typedef {object} Mark
 * @property {number} decision
 * @property {string} kind
 * @property {number} team
 * @property {number} mech
 * @property {number} by the mech that did it, or -1
 * @property {boolean} byKnown whether they noticed that one
 * @property {string} weapon that it did it with, or ""
 * @property {boolean} known whether the person's mech and its team noticed it
 *
 * @typedef {object} Scan
 * @property {number[][]} scores of blue and red, by decision
 * @property {number[][]} alive
 * @property {Mark[]} marks
 * @property {Float32Array[]} rewards by decision: (mechs, components)
 * @property {number} checked decisions whose state has been compared
 * @property {number | null} different the first decision after which the state differs
 * @property {boolean} done
 */

/** @returns {Scan} */
export function emptyScan() {
  return { scores: [], alive: [], marks: [], rewards: [], checked: 0, different: null, done: false };
}

/** The hardest of the hits of the mech that did most of their damage. @param {import("./moments.js").Event[]} hits */
function heaviest(hits) {
  const sum = (/** @type {number} */ actor) => hits.reduce((all, hit) => all + (hit.actor === actor ? hit.amount : 0), 0);
  return [...hits].sort((a, b) => sum(b.actor) - sum(a.actor) || b.amount - a.amount)[0];
}

/**
 * Note what a decision brought.
 * @param {Scan} scan
 * @param {import("./simulation.js").Simulation} simulation
 * @param {import("./moments.js").Moment} moment
 * @param {(mech: number) => boolean} [knows] whether the person knows of a mech
 */
export function note(scan, simulation, moment, knows = () => true) {
  scan.scores.push(moment.teams.map((team) => team.score));
  scan.alive.push(moment.teams.map((team) => team.alive));
  scan.rewards.push(new Float32Array(simulation.bytesOf("components").slice().buffer));
  for (const event of moment.events) {
    if (!MARKED.includes(event.kind)) continue;
    const { actor: mech, kind } = event;
    const hit = heaviest(moment.events.filter((other) => other.target === mech && other.when === event.when && ["hit", "splash"].includes(other.kind)));
    const by = hit?.actor ?? -1;
    const weapon = simulation.world.battle.weapons[hit?.weapon ?? -1]?.name ?? "";
    const { team } = moment.mechs[mech];
    scan.marks.push({ decision: moment.decision, kind, team, mech, by, byKnown: by >= 0 && knows(by), weapon, known: knows(mech) });
  }
}

/**
 * @param {import("./simulation.js").Simulation} simulation of its own
 * @param {(scan: Scan) => void} report is called from time to time, and at the end
 */
export async function scanBattle(simulation, report) {
  const { replay } = simulation;
  const read = momentReader(simulation);
  const scan = emptyScan();
  let paused = performance.now();
  for (let decision = 0; decision <= simulation.decisions; decision += 1) {
    if (decision > 0) simulation.step();
    const moment = read();
    note(scan, simulation, moment);
    if (scan.different === null) {
      if (simulation.digest() === replay.digests[decision]) scan.checked = decision;
      else scan.different = decision;
    }
    if (performance.now() - paused > BUDGET_MS) {
      report(scan);
      await new Promise((resume) => setTimeout(resume));
      paused = performance.now();
    }
  }
  const voxels = read().over ? simulation.voxelsDigest() : null;
  if (scan.different === null && replay.header.voxels_digest !== voxels) scan.different = simulation.decisions;
  scan.done = true;
  report(scan);
  return scan;
}
