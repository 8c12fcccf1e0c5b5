// What one mech is, sees, does and gets: the panel on the right.

import { condition } from "./cockpit.js";
import { button, element, number, table, tenths } from "./dom.js";
import { away } from "./math.js";
import { mechName, statesOf } from "./moments.js";

export const TABS = ["mech", "senses", "observation", "action", "reward"];

/** @typedef {import("./simulation.js").Simulation} Simulation */

export class Inspector {
  /** @param {Simulation} simulation @param {() => import("./scan.js").Scan | null} scan @param {(mount: number) => void} choose what draws a weapon's range */
  constructor(simulation, scan, choose) {
    this.simulation = simulation;
    this.scan = scan;
    this.choose = choose;
    this.world = simulation.world;
    this.tab = "mech";
    /** Streams of the observation that are unfolded. */
    this.open = new Set(["self"]);
  }

  /**
   * @param {import("./moments.js").Moment} moment
   * @param {number} selected
   * @param {boolean} moving whether the picture is on its way to the moment
   * @returns {Node[]}
   */
  show(moment, selected, moving) {
    const mech = moment.mechs[selected];
    switch (this.tab) {
      case "senses":
        return this.senses(moment, mech);
      case "observation":
        return this.observation(mech);
      case "action":
        return this.action(moment, mech, moving);
      case "reward":
        return this.reward(moment, mech);
      default:
        return this.mech(mech);
    }
  }

  /** @param {import("./moments.js").Mech} mech */
  mech(mech) {
    const kind = this.world.battle.classes[mech.kind];
    const of = (/** @type {string} */ name) => this.simulation.field("statistics", name)(mech.index);
    const cooldown = this.simulation.field("mechs", "cooldown");
    const charges = this.simulation.field("mechs", "charges");
    const { seconds, ticks } = this.world.battle;
    const weapons = kind.weapons.flatMap((/** @type {string | null} */ weapon, /** @type {number} */ mount) => {
      if (!weapon) return [];
      const wait = (cooldown(mech.index, mount) / ticks) * seconds;
      const left = charges(mech.index, mount);
      const state = !mech.alive ? "-" : wait > 0 ? `${wait.toFixed(1)} s` : mech.shutdown || mech.fallen ? "cannot fire" : "ready";
      const choice = button({ className: "weapon", title: "draw its range and arc" }, () => this.choose(mount), weapon);
      return [[this.world.names.mounts[mount], choice, state, left > 0 ? `${left} left` : ""]];
    });
    return [
      element("p", {}, statesOf(mech).join(", ") || "ready"),
      condition(mech, kind),
      table(weapons, ["mount", "weapon", "ready in", "charges"]),
      table([["damage_dealt", "damage_taken"], ["kills", "assists"], ["friendly_damage", "paints"], ["falls", "shutdowns"]].map(
        (names) => names.flatMap((name) => [name.replace("_", " "), tenths(of(name))]),
      )),
    ];
  }

  /** @param {import("./moments.js").Moment} moment @param {import("./moments.js").Mech} mech */
  senses(moment, mech) {
    const { battle } = this.world;
    const list = (/** @type {string} */ name) => {
      const read = this.simulation.field("mechs", name);
      const count = this.world.arrays.mechs.fields[name][2];
      return Array.from({ length: count }, (_, row) => read(mech.index, row)).filter((other) => other >= 0);
    };
    const visible = this.simulation.field("visible");
    const quality = this.simulation.field("mechs", "quality")(mech.index);
    const jam = this.simulation.field("mechs", "jam")(mech.index);
    const name = (/** @type {number} */ other) => mechName(moment.mechs[other], battle);
    const far = (/** @type {import("./math.js").Place} */ it) => `${number(away(it, mech))} m`;
    const [x, y] = ["x", "y"].map((axis) => this.simulation.field("sightings", axis));
    const remembered = (/** @type {number} */ other) => mech.pack * this.simulation.mechs + other;
    const how = ["not", "sensors", "line of sight"];
    const paint = this.simulation.field("paint", "ticks");
    const painted = moment.mechs.filter((other) => paint(mech.pack * this.simulation.mechs + other.index) > 0);
    return [
      element("p", {}, `sensor quality ${number(quality)}, jammed ${number(jam)}`),
      element("h3", {}, "Contacts, in the order of the observation"),
      table(list("contacts").map((other, row) => [String(row), name(other), how[visible(mech.index * this.simulation.mechs + other)], far(moment.mechs[other])])),
      element("h3", {}, "Intel of the pack"),
      table(list("intel").map((other) => [name(other), far({ x: x(remembered(other)), y: y(remembered(other)) })])),
      element("h3", {}, "Painted by the pack"),
      element("p", {}, painted.map((other) => mechName(other, battle)).join(", ") || "none"),
      element("h3", {}, "Messages of pack-mates in this decision"),
      ...this.messages(moment, mech),
    ];
  }

  /** @param {import("./moments.js").Moment} moment @param {import("./moments.js").Mech} mech */
  messages(moment, mech) {
    const message = this.simulation.field("mechs", "message");
    const count = this.world.arrays.mechs.fields.message[2];
    const mates = moment.mechs.filter((other) => other.pack === mech.pack && other.index !== mech.index && other.transmits && other.alive);
    if (mates.length === 0) return [element("p", {}, "none")];
    return mates.map((mate) => {
      const numbers = Array.from({ length: count }, (_, item) => number(message(mate.index, item)));
      return element("p", { className: "numbers" }, `${mechName(mate, this.world.battle)}: ${numbers.join(" ")}`);
    });
  }

  /** @param {import("./moments.js").Mech} mech */
  observation(mech) {
    const read = this.simulation.field("observations");
    const { shape } = this.world.arrays.observations;
    const at = mech.index * shape[1];
    return this.world.names.observation.map((/** @type {any} */ stream) => {
      const { name, start, rows, width, features } = stream;
      const values = Array.from({ length: rows * width }, (_, i) => read(at + start + i));
      const filled = values.filter((value) => value !== 0).length;
      const folded = element("details", { open: this.open.has(name) });
      folded.append(element("summary", {}, `${name} (${filled} of ${values.length} not 0)`));
      folded.addEventListener("toggle", () => {
        const { open } = /** @type {HTMLDetailsElement} */ (folded);
        if (open) this.open.add(name);
        else this.open.delete(name);
        if (open && folded.childElementCount === 1) folded.append(this.stream(values, rows, width, features));
      });
      if (this.open.has(name)) folded.append(this.stream(values, rows, width, features));
      return folded;
    });
  }

  /** @param {number[]} values @param {number} rows @param {number} width @param {[string, string][]} features */
  stream(values, rows, width, features) {
    const shown = [];
    for (let row = 0; row < rows; row += 1) {
      const part = values.slice(row * width, (row + 1) * width);
      if (rows > 1 && part.every((value) => value === 0)) continue;
      if (rows > 60) {
        shown.push([`row ${row}`, part.map(number).join(" "), ""]);
        continue;
      }
      part.forEach((value, i) => shown.push([rows > 1 ? `${row} ${features[i][0]}` : features[i][0], number(value), features[i][1]]));
    }
    return table(shown.length ? shown : [["empty", "", ""]]);
  }

  /** @param {import("./moments.js").Moment} moment @param {import("./moments.js").Mech} mech @param {boolean} moving */
  action(moment, mech, moving) {
    const next = moving ? moment.decision - 1 : moment.decision;
    if (next >= this.simulation.decisions) {
      return [element("p", {}, moment.over ? "The battle is over." : "The replay ends here.")];
    }
    const { actions } = this.simulation.replay;
    const count = this.world.names.actions.length;
    const from = next * this.simulation.rowBytes + 4 * mech.index * count;
    const view = new DataView(actions.buffer, actions.byteOffset + from, 4 * count);
    const values = Array.from({ length: count }, (_, i) => view.getFloat32(4 * i, true));
    const refused = moving ? new Map() : this.refusals(mech, values);
    const rows = this.world.names.actions.map((/** @type {[string, string]} */ [name, meaning], /** @type {number} */ i) => {
      const why = refused.get(name);
      const cell = element("span", { title: meaning, className: why ? "refused" : values[i] > 0 ? "on" : "" }, name);
      return [cell, number(values[i]), why ? `refused: ${why}` : ""];
    });
    return [element("p", {}, `what it does in decision ${next + 1}`), table(rows)];
  }

  /** Why entries of an action have no effect. @param {import("./moments.js").Mech} mech @param {number[]} values */
  refusals(mech, values) {
    this.simulation.call("possibilities");
    const can = (/** @type {string} */ name, item = 0) => {
      const { shape } = this.world.arrays[`can_${name}`];
      return this.simulation.field(`can_${name}`)(mech.index * (shape[1] ?? 1) + item) !== 0;
    };
    /** @type {Map<string, string>} */
    const found = new Map();
    const names = this.world.names.actions.map((/** @type {[string, string]} */ [name]) => name);
    names.forEach((/** @type {string} */ name, /** @type {number} */ i) => {
      if (i < 4 ? values[i] === 0 : values[i] <= 0) return;
      const mount = this.world.names.mounts.indexOf(name);
      const fires = mount >= 0;
      const reasons = /** @type {[boolean, string][]} */ ([
        [!can("present"), "destroyed"], [!can("awake"), "shut down"], [fires && !can("mounted", mount), "no weapon"],
        [fires && !can("loaded", mount), "no charges left"], [fires && !can("ready", mount), "cooling down"],
        [this.world.battle.off.includes(name), "off in this battle"],
        [(name === "ecm" || name === "eccm") && !can("electronics"), "no electronics"],
        [name === "jet" && values[i] > 0 && !can("jets"), "no jump jets"],
        [name.startsWith("target_") && !can("contacts", Number(name.slice(7))), "empty row"],
        [(i < 4 || fires) && !can("able"), "fallen"],
      ]);
      const why = reasons.find(([is]) => is);
      if (why) found.set(name, why[1]);
    });
    return found;
  }

  /** @param {import("./moments.js").Moment} moment @param {import("./moments.js").Mech} mech */
  reward(moment, mech) {
    const rewards = this.scan()?.rewards ?? [];
    const known = rewards.length > moment.decision; // else the first pass has not come so far
    const names = this.world.names.rewards;
    const width = names.length;
    const components = this.simulation.field("components");
    const now = names.map((/** @type {string} */ _, /** @type {number} */ i) => components(mech.index * width + i));
    const sum = names.map(() => 0);
    for (let decision = 1; known && decision <= moment.decision; decision += 1) {
      for (let i = 0; i < width; i += 1) sum[i] += rewards[decision][mech.index * width + i];
    }
    const text = (/** @type {number} */ value) => (known ? number(value) : "…");
    const total = (/** @type {number[]} */ values) => values.reduce((all, each) => all + each, 0);
    const rows = names.map((/** @type {string} */ name, /** @type {number} */ i) => [name, number(now[i]), text(sum[i])]);
    return [table([...rows, ["all", number(total(now)), text(total(sum))]], ["component", "this decision", "so far"])];
  }
}
