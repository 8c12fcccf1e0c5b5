// The state of the person's own mech, and what it is told to do.

import { bar, byId, element, number, table, whole } from "./dom.js";
import { away as distance } from "./math.js";
import { mechName, statesOf } from "./moments.js";

/**
 * @param {import("./simulation.js").Simulation} simulation
 * @param {import("./moments.js").Moment} moment
 * @param {number} row of the mech
 * @param {boolean} autopilot
 */
export function showCockpit(simulation, moment, row, autopilot) {
  const { battle } = simulation.world;
  const mech = moment.mechs[row];
  const kind = battle.classes[mech.kind];
  const states = [...statesOf(mech).filter((state) => state !== "transmits"), ...(autopilot ? ["autopilot"] : [])];
  const target = moment.mechs[mech.target];
  const visible = simulation.field("visible");
  const away = target && visible(row * simulation.mechs + mech.target) > 0 ? distance(mech, target) : null;
  byId("cockpit").replaceChildren(
    element("h2", {}, `${mechName(mech, battle)}, ${kind.name}`, element("em", {}, states.join(", "))),
    condition(mech, kind),
    table(weapons(simulation, mech, away)),
    element("p", {}, target ? `target ${mechName(target, battle)}, ${away === null ? "not seen" : `${Math.round(away)} m`}` : "no target"),
  );
}

/** Armour, legs and heat. @param {import("./moments.js").Mech} mech @param {any} kind its class */
export const condition = (mech, kind) => table([["armour", mech.armour, kind.armour], ["legs", mech.legs, kind.legs], ["heat", mech.heat, kind.heat]]
  .map(([name, value, most]) => [name, bar(value / most, name), whole(value, most)]));

/** @param {import("./simulation.js").Simulation} simulation @param {import("./moments.js").Mech} mech @param {number | null} away m */
function weapons(simulation, mech, away) {
  const { battle } = simulation.world;
  const [cooldown, charges] = ["cooldown", "charges"].map((name) => simulation.field("mechs", name));
  simulation.call("possibilities");
  const [ready, loaded] = ["can_ready", "can_loaded"].map((name) => simulation.field(name));
  const { weapons: mounted } = battle.classes[mech.kind];
  return mounted.flatMap((/** @type {string | null} */ name, /** @type {number} */ mount) => {
    if (!name) return [];
    const weapon = battle.weapons.find((/** @type {any} */ each) => each.name === name);
    const item = mech.index * mounted.length + mount;
    const wait = (cooldown(mech.index, mount) / battle.ticks) * battle.seconds;
    const left = charges(mech.index, mount);
    const far = away !== null && away > weapon.range;
    const state = !loaded(item) ? "empty" : !ready(item) ? `${wait.toFixed(1)} s` : far ? `out of range, ${number(weapon.range)} m` : "ready";
    return [[`${mount + 1}`, name, bar(1 - wait / Math.max(0.01, weapon.cooldown), "ready"), `${state}${left > 0 ? `, ${left} left` : ""}`]];
  });
}
