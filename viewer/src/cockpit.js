// The state of the person's own mech, and what it is told to do.

import { bar, byId, element, number, table } from "./dom.js";
import { mechName } from "./moments.js";

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
  const states = [
    [!mech.alive, "destroyed"], [mech.fallen, "fallen"], [mech.shutdown, "shut down"], [mech.legs <= 0, "no legs"],
    [mech.jets, "jump jets"], [mech.radiates === 1, "ECM"], [mech.radiates === 2, "ECCM"], [autopilot, "autopilot"],
  ].filter(([is]) => is).map(([, text]) => String(text));
  const target = moment.mechs[mech.target];
  const visible = simulation.field("visible");
  const away = target && visible(row * simulation.mechs + mech.target) > 0 ? Math.hypot(target.x - mech.x, target.y - mech.y) : null;
  byId("cockpit").replaceChildren(
    element("h2", {}, `${mechName(mech, battle)}, ${kind.name}`, element("em", {}, states.join(", "))),
    table([
      ["armour", bar(mech.armour / kind.armour, "armour"), number(Math.max(0, mech.armour))],
      ["legs", bar(mech.legs / kind.legs, "legs"), number(Math.max(0, mech.legs))],
      ["heat", bar(mech.heat / kind.heat, "heat"), number(mech.heat)],
    ]),
    table(weapons(simulation, mech, away)),
    element("p", {}, target ? `target ${mechName(target, battle)}, ${away === null ? "not seen" : `${number(away)} m`}` : "no target"),
  );
}

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
    const state = !loaded(item) ? "empty" : !ready(item) ? `${number(wait)} s` : away !== null && away > weapon.range ? `ready, ${number(weapon.range)} m` : "ready";
    return [[`${mount + 1}`, name, bar(1 - wait / Math.max(0.01, weapon.cooldown), "ready"), `${state}${left > 0 ? `, ${left} left` : ""}`]];
  });
}
