import assert from "node:assert/strict";
import { test } from "node:test";
import { sentence, turningPoint } from "../src/card.js";
import { emptyScan, note } from "../src/scan.js";

const simulation = { world: { battle: { weapons: [{ name: "laser" }, { name: "gauss" }] } }, bytesOf: () => new Uint8Array(4) };
const hit = (actor, amount, weapon, when = 0.5) => ({ kind: "hit", actor, target: 2, amount, weapon, when });
const death = (when = 0.5) => ({ kind: "death", actor: 2, target: -1, amount: 0, weapon: -1, when });
const moment = (events) => ({
  decision: 7, events, mechs: [0, 0, 1].map((team, index) => ({ team, index })), teams: [{ score: 1, alive: 2 }, { score: 0, alive: 1 }],
});
const mark = (events, knows) => {
  const scan = emptyScan();
  note(scan, simulation, moment(events), knows);
  return scan.marks[0];
};

for (const [name, events, by, weapon] of [
  ["the mech that did most of the damage", [hit(0, 5, 0), hit(1, 30, 1), hit(0, 6, 0), death()], 1, "gauss"],
  ["its hits together", [hit(0, 20, 0), hit(1, 30, 1), hit(0, 21, 0), death()], 0, "laser"],
  ["nobody for a death by lava after a hit", [hit(0, 20, 0, 0.25), death(0.75)], -1, ""],
]) {
  test(`a death is the work of ${name}`, () => {
    const found = mark(events);
    assert.deepEqual([found.by, found.weapon, found.team, found.decision], [by, weapon, 1, 7]);
  });
}

test("who did not see a mech does not learn its name", () => {
  const events = [hit(1, 30, 1), death()];
  const names = (number) => `mech ${number}`;
  const seen = mark(events, () => true);
  assert.equal(sentence(seen, names, !seen.byKnown), "mech 2 destroyed by mech 1, gauss");
  const unseen = mark(events, (mech) => mech === 2);
  assert.deepEqual([unseen.known, unseen.byKnown], [true, false]);
  assert.equal(sentence(unseen, names, !unseen.byKnown), "mech 2 destroyed");
});

test("the decisive moment is that from which on the winner leads", () => {
  const scan = { ...emptyScan(), scores: [[0, 0], [1, 0], [1, 2], [3, 2], [4, 2]], alive: [[2, 2], [2, 2], [1, 2], [1, 2], [1, 1]] };
  assert.equal(turningPoint(scan, 0, "zone_control"), 3);
  assert.equal(turningPoint(scan, 0, "elimination"), 4);
  assert.equal(turningPoint(scan, -1, "time_limit"), null);
});
