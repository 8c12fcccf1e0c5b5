// What a battle came to: who won by what, who did most, and the moment that decided it.

import { button, clock, element, number, table, tenths } from "./dom.js";
import { mechName, TEAMS } from "./moments.js";

/** How a battle ended. @param {import("./moments.js").Moment} moment */
export const howOf = ({ reason }) => ({ elimination: "a team is destroyed", zone_control: "the zone was held" }[reason] ?? reason.replace("_", " "));

/** @param {import("./moments.js").Moment} moment */
export function ending(moment) {
  return moment.winner < 0 ? `Draw: ${howOf(moment)}` : `${TEAMS[moment.winner]} wins: ${howOf(moment)}`;
}

/** What happened, as a sentence. @param {import("./scan.js").Mark} mark @param {(mech: number) => string} name @param {boolean} [hides] whether the other mech is not known */
export function sentence({ kind, mech, by, weapon }, name, hides = false) {
  const what = { death: "destroyed", fall: "falls", shutdown: "shuts down", legged: "loses its legs" }[kind];
  const other = kind === "death" && by >= 0 && by !== mech && !hides ? ` by ${name(by)}${weapon ? `, ${weapon}` : ""}` : "";
  return `${name(mech)} ${what}${other}`;
}

/**
 * The decision from which on the winner is ahead until the end: in the score, but first in living mechs if these decide the battle.
 * @param {import("./scan.js").Scan} scan @param {number} winner @param {string} reason
 */
export function turningPoint(scan, winner, reason) {
  if (winner < 0) return null;
  const ahead = (/** @type {number[]} */ of) => of[winner] - of[1 - winner];
  const leads = (/** @type {number} */ at) => ((reason === "elimination" && ahead(scan.alive[at])) || ahead(scan.scores[at])) > 0;
  let decision = scan.scores.length - 1;
  while (decision > 0 && leads(decision)) decision -= 1;
  return decision + 1 < scan.scores.length ? decision + 1 : null;
}

/**
 * @param {import("./viewer.js").Viewer} viewer at the end of the battle
 * @returns {Node[]}
 */
export function summary(viewer) {
  const { after, scan, world, simulation } = viewer;
  const { battle } = world;
  const of = (/** @type {string} */ name, /** @type {number} */ mech) => simulation.field("statistics", name)(mech);
  const teams = [0, 1].map((team) => after.mechs.filter((mech) => mech.team === team));
  const sum = (/** @type {string} */ name, /** @type {number} */ team) => teams[team].reduce((all, mech) => all + of(name, mech.index), 0);
  const left = (/** @type {number} */ team) => `${teams[team].filter((mech) => mech.alive).length} of ${teams[team].length}`;
  const rows = [
    ["zone", ...after.teams.map((team) => `${tenths(team.score)} of ${number(battle.score)}`)],
    ["left", left(0), left(1)],
    ["kills", ...[0, 1].map((team) => tenths(sum("kills", team)))],
    ["damage", ...[0, 1].map((team) => number(Math.round(sum("damage_dealt", team))))],
  ];
  const worth = (/** @type {import("./moments.js").Mech} */ mech) => 100 * of("kills", mech.index) + of("damage_dealt", mech.index);
  const best = after.mechs.reduce((one, other) => (worth(other) > worth(one) ? other : one));
  const name = (/** @type {number} */ mech) => mechName(after.mechs[mech], battle);
  const did = `${tenths(of("kills", best.index))} kills, ${number(Math.round(of("damage_dealt", best.index)))} damage`;
  const parts = [table(rows, ["", ...TEAMS]), element("p", {}, `Best mech: ${name(best.index)}, ${battle.classes[best.kind].name}: ${did}.`)];
  const turn = scan && scan.scores.length > after.decision ? turningPoint(scan, after.winner, after.reason) : null;
  if (scan && turn !== null) {
    const mark = scan.marks.find((each) => each.decision === turn && each.kind === "death" && each.team !== after.winner);
    const text = mark ? sentence(mark, name) : `${TEAMS[after.winner]} takes the lead`;
    const moment = button({ id: "decisive" }, () => viewer.watchFrom(turn), `${clock(turn * battle.seconds)} ${text}`);
    parts.push(element("p", {}, "What decided it: ", moment));
  }
  return parts;
}
