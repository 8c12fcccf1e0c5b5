// The lists around the picture: scores, mechs, events, and what was checked.

import { Camera } from "./camera.js";
import { ending, sentence, summary } from "./card.js";
import { bar, button, byId, clock, element, number, setBar, tenths, whole } from "./dom.js";
import { TABS } from "./inspector.js";
import { COLOUR_NAMES, mechName } from "./moments.js";
import { SYMBOLS } from "./timeline.js";

const FEED_SECONDS = 6;
const FEED_ROWS = 5;
const PORTRAIT = 56; // pixels

export class Panels {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** Whether the person has closed the card of the battle's end. */
    this.closed = false;
    /** @type {{button: HTMLElement, bars: HTMLElement}[]} */
    this.roster = [];
    byId("card-close").addEventListener("click", () => {
      this.closed = true;
      byId("card").hidden = true;
    });
  }

  /** A picture of a mech's class in its team's colour. @param {import("./moments.js").Mech} mech */
  portrait({ kind, team }) {
    const { scene, painter, world } = this.viewer;
    const [, , tall] = world.battle.classes[kind].size;
    const camera = new Camera(world.battle.size);
    Object.assign(camera, { x: 0, y: 0, z: 0.6 * tall, distance: 0.3 + 1.6 * tall, azimuth: -Math.PI / 2, elevation: 0.3 });
    return painter.portrait(scene.model(kind, team), camera, PORTRAIT);
  }

  makeRoster() {
    const { viewer } = this;
    const { players } = viewer.simulation.replay.header;
    for (const team of COLOUR_NAMES) byId(`roster-${team}`).replaceChildren();
    this.roster = viewer.after.mechs.map((mech) => {
      const team = byId(`roster-${COLOUR_NAMES[mech.team]}`);
      if (team.childElementCount === 0) team.append(element("h2", { title: String(players[mech.team]) }, String(players[mech.team])));
      const bars = element("span", { className: "bars" }, bar(0, "armour"), bar(0, "heat"));
      const made = button(
        { className: `mech ${COLOUR_NAMES[mech.team]}` }, () => viewer.select(mech.index === viewer.selected ? -1 : mech.index),
        this.portrait(mech), element("b", {}, mechName(mech, viewer.world.battle)), bars,
      );
      team.append(made);
      return { button: made, bars };
    });
  }

  show() {
    const { viewer } = this;
    const { after, world, driver, selected } = viewer;
    const { battle } = world;
    this.showRoster();
    after.teams.forEach((team, index) => {
      const score = tenths(team.score);
      const title = `${score} of ${number(battle.score)} points of the zone`;
      byId(`score-${COLOUR_NAMES[index]}`).replaceChildren(bar(team.score / battle.score, COLOUR_NAMES[index], title), ` ${score}`);
    });
    byId("clock").textContent = clock(after.decision * battle.seconds);
    byId("decision").textContent = `decision ${after.decision}${driver?.running ? "" : ` of ${viewer.simulation.decisions}`}`;
    this.showFeed();
    this.showCard();
    const panel = byId("inspector");
    panel.hidden = selected < 0 || (driver?.plays === true && !driver.inspects);
    driver?.showPanels();
    if (panel.hidden) return;
    byId("selected").textContent = `${mechName(after.mechs[selected], battle)}, ${battle.classes[after.mechs[selected].kind].name}`;
    byId("details").replaceChildren(...viewer.inspector.show(after, selected, viewer.time < after.decision));
    for (const tab of TABS) byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === viewer.inspector.tab));
  }

  showRoster() {
    const { viewer } = this;
    const { after, world, driver } = viewer;
    const noticed = new Set(viewer.marks().filter((mark) => mark.kind === "death").map((mark) => mark.mech));
    after.mechs.forEach((mech, index) => {
      const { button: row, bars } = this.roster[index];
      const kind = world.battle.classes[mech.kind];
      const hidden = !viewer.sees(index);
      row.classList.toggle("dead", driver?.running ? noticed.has(index) : !mech.alive);
      row.classList.toggle("selected", index === viewer.selected);
      row.setAttribute("aria-pressed", String(index === viewer.selected));
      const armour = `armour ${hidden ? "not known" : whole(mech.armour, kind.armour)}`;
      const heat = `heat ${hidden ? "not known" : whole(mech.heat, kind.heat)}`;
      row.title = [`${mechName(mech, world.battle)}, ${kind.name}`, ...(hidden ? [] : viewer.statesOf(mech)), armour, heat].join("\n");
      setBar(bars.children[0], hidden ? 0 : mech.armour / kind.armour, armour);
      setBar(bars.children[1], hidden ? 0 : mech.heat / kind.heat, heat);
    });
  }

  /** A mech's name. @param {number} mech */
  name(mech) {
    return mechName(this.viewer.after.mechs[mech], this.viewer.world.battle);
  }

  /** What an event of the timeline says. @param {import("./scan.js").Mark} mark */
  say(mark) {
    const { viewer } = this;
    const hides = viewer.driver?.running ? !mark.byKnown : mark.by >= 0 && !viewer.sees(mark.by);
    return sentence(mark, (mech) => this.name(mech), hides);
  }

  /** What has happened in the last seconds. */
  showFeed() {
    const { viewer } = this;
    const { seconds } = viewer.world.battle;
    const now = viewer.after.decision;
    const recent = viewer.marks().filter((mark) => mark.decision <= now && (now - mark.decision) * seconds < FEED_SECONDS);
    byId("feed").replaceChildren(...recent.slice(viewer.driver?.drives ? -3 : -FEED_ROWS).map((mark) => element(
      "li", { className: `${COLOUR_NAMES[mark.team]} ${mark.kind}` }, element("i", {}, SYMBOLS[mark.kind]), this.say(mark),
    )));
  }

  /** The card of the end, once the battle is over and there is no menu that says it. */
  showCard() {
    const { viewer } = this;
    const { after, driver } = viewer;
    byId("ending").textContent = after.over ? ending(after) : "";
    const atEnd = after.over && viewer.time >= viewer.simulation.decisions;
    if (!atEnd) this.closed = false;
    const shown = atEnd && !this.closed && !driver;
    if (shown) {
      byId("card-title").textContent = ending(after);
      byId("card-body").replaceChildren(...summary(viewer));
    }
    byId("card").hidden = !shown;
  }

  /** @param {import("./scan.js").Scan} scan */
  report(scan) {
    const { viewer } = this;
    const { decisions, replay } = viewer.simulation;
    const [ours, theirs] = [viewer.world.engine, replay.header.stamp?.engine_hash].map((hash) => String(hash ?? "?").slice(0, 12));
    const stated = `as the file states: players, engine ${ours}${ours === theirs ? "" : `, recorded by ${theirs}`}`;
    const differs = scan.different !== null;
    const badge = byId("verified");
    badge.className = differs ? "bad" : scan.done ? "good" : "";
    badge.textContent = differs ? `✗ differs at decision ${scan.different}` : scan.done ? "✓ verified" : `${scan.checked} of ${decisions}`;
    badge.title = differs
      ? `differs from the recording at decision ${scan.different} (${stated})`
      : `${scan.checked} of ${decisions} decisions equal (${stated})`;
  }

  /** Say what is under the pointer on the timeline. @param {import("./scan.js").Mark | null} mark @param {number} x pixels of the window */
  tip(mark, x) {
    const tip = byId("tip");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = `${clock(mark.decision * this.viewer.world.battle.seconds)} ${this.say(mark)}`;
    tip.style.left = `${Math.min(Math.max(x, 90), innerWidth - 90)}px`;
  }
}
