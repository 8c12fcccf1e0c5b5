// What is drawn and listed of the state after a decision.

import { clamp } from "./math.js";

/**
 * @typedef {object} Mech
 * @property {number} index
 * @property {number} team
 * @property {number} kind index of the class
 * @property {number} x
 * @property {number} y
 * @property {number} z
 * @property {number} yaw
 * @property {number} armour
 * @property {number} legs
 * @property {number} heat
 * @property {number} stability
 * @property {boolean} alive
 * @property {boolean} fallen
 * @property {boolean} shutdown
 * @property {boolean} jets
 * @property {number} radiates 0 nothing, 1 ECM, 2 ECCM
 * @property {number} target
 * @property {boolean} transmits
 * @property {boolean} speaks whether its message is not empty
 * @property {number[]} paintedBy the packs that have painted it
 * @property {number} pack
 *
 * @typedef {object} Event
 * @property {string} kind
 * @property {number} actor
 * @property {number} target
 * @property {number} weapon
 * @property {number} x
 * @property {number} y
 * @property {number} z
 * @property {number} amount
 * @property {number} dx direction of a hit
 * @property {number} dy
 * @property {number} when share of the decision, 0 to 1
 *
 * @typedef {object} Team
 * @property {number} score
 * @property {number} share
 * @property {number} alive
 *
 * @typedef {object} Moment
 * @property {number} decision
 * @property {Mech[]} mechs
 * @property {{owner: number, weapon: number, x: number, y: number, z: number, vx: number, vy: number, vz: number}[]} projectiles
 * @property {{x: number, y: number, z: number, radius: number, team: number}[]} clouds
 * @property {Event[]} events
 * @property {Team[]} teams
 * @property {{x: number, y: number, radius: number}} zone
 * @property {boolean} over
 * @property {number} winner
 * @property {string} reason
 */

/** @param {import("./simulation.js").Simulation} simulation */
export function momentReader(simulation) {
  const { world } = simulation;
  /** Readers of the fields of an array that are single numbers. @param {string} array @returns {Record<string, import("./simulation.js").Field>} */
  const fields = (array) => Object.fromEntries(
    Object.entries(/** @type {Record<string, [number, string, number]>} */ (world.arrays[array].fields))
      .filter(([, [, , count]]) => count === 1)
      .map(([name]) => [name, simulation.field(array, name)]),
  );
  const [mech, shot, cloud, event, team, battle] = ["mechs", "projectiles", "clouds", "events", "teams", "battles"].map(fields);
  const message = simulation.field("mechs", "message");
  const words = world.arrays.mechs.fields.message[2];
  const paint = simulation.field("paint", "ticks");
  const packs = Array.from({ length: world.arrays.paint.shape[0] }, (_, pack) => pack);
  /** @param {number} count @param {(row: number) => any} make */
  const rows = (count, make) => Array.from({ length: count }, (_, row) => make(row));
  /** @param {Record<string, import("./simulation.js").Field>} of @param {number} row */
  const record = (of, row) => Object.fromEntries(Object.entries(of).map(([name, read]) => [name, read(row)]));

  /** @returns {Moment} */
  return () => {
    const tick = battle.tick(0);
    return {
      decision: simulation.decision,
      mechs: rows(simulation.mechs, (row) => ({
        ...record(mech, row),
        index: row,
        kind: mech.mech_class(row),
        alive: mech.alive(row) !== 0,
        fallen: mech.fallen(row) > 0,
        shutdown: mech.shutdown(row) !== 0,
        jets: mech.jet(row) > 0,
        transmits: mech.transmits(row) !== 0,
        speaks: mech.transmits(row) !== 0 && Array.from({ length: words }, (_, item) => message(row, item)).some(Boolean),
        paintedBy: packs.filter((pack) => paint(pack * simulation.mechs + row) > 0),
      })),
      projectiles: rows(battle.num_projectiles(0), (row) => record(shot, row)),
      clouds: rows(battle.num_clouds(0), (row) => record(cloud, row)),
      events: rows(battle.num_events(0), (row) => ({
        ...record(event, row),
        kind: world.names.events[event.kind(row)],
        when: clamp(1 - (tick - event.tick(row)) / world.battle.ticks),
      })),
      teams: rows(2, (row) => ({ score: team.score(row), share: team.share(row), alive: team.mechs_alive(row) })),
      zone: { x: battle.zone_x(0), y: battle.zone_y(0), radius: battle.zone_radius(0) },
      over: battle.over(0) !== 0,
      winner: battle.winner(0),
      reason: world.names.reasons[battle.reason(0)],
    };
  };
}

export const TEAMS = ["Blue", "Red"];
export const COLOUR_NAMES = ["blue", "red"];

/** The one name of a mech: "Red M6" is the medium mech `red_6` of the environments. @param {Mech} mech @param {any} battle */
export function mechName(mech, battle) {
  const number = mech.team === 0 ? mech.index : mech.index - battle.blue;
  return `${TEAMS[mech.team]} ${battle.classes[mech.kind].letter}${number}`;
}

/** What a mech is at the moment, in words. @param {Mech} mech @returns {string[]} */
export function statesOf(mech) {
  const states = /** @type {[boolean, string][]} */ ([
    [!mech.alive, "destroyed"], [mech.fallen, "fallen"], [mech.shutdown, "shut down"], [mech.legs <= 0, "no legs"],
    [mech.jets, "jump jets"], [mech.radiates === 1, "ECM"], [mech.radiates === 2, "ECCM"], [mech.transmits, "transmits"],
  ]);
  return states.filter(([is]) => is).map(([, text]) => text);
}
