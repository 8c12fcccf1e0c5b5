import assert from "node:assert/strict";
import { test } from "node:test";
import { Pilot } from "../src/pilot.js";

const NAMES = [
  "throttle", "strafe", "jet", "turn", "primary", "secondary", "tertiary", "special", "vent", "target_0", "target_1", "target_2",
  "target_3", "target_4", "ecm", "eccm", "display_nearest", "display_dangerous", "display_damaged", "comm_0",
];
const WORLD = { battle: { seconds: 0.25, classes: [{ turn: 2 }] }, names: { actions: NAMES.map((name) => [name, ""]) } };
const MECH = { kind: 0, x: 10, y: 10, yaw: 0 };
const pilot = () => new Pilot(WORLD);
const acts = (made, contacts = [], mech = MECH) => {
  const action = made.action(mech, contacts);
  return Object.fromEntries(NAMES.map((name, i) => [name, action[i]]).filter(([, value]) => value !== 0));
};
const REST = { display_nearest: 1 };

for (const [code, wanted] of Object.entries({
  KeyW: { throttle: 1 }, ArrowUp: { throttle: 1 }, KeyS: { throttle: -1 }, KeyA: { strafe: 1 }, KeyD: { strafe: -1 }, KeyQ: { turn: 1 },
  ArrowLeft: { turn: 1 }, KeyE: { turn: -1 }, ArrowRight: { turn: -1 }, Space: { jet: 1 }, ShiftLeft: { vent: 1 }, Digit1: { primary: 1 },
  Digit2: { secondary: 1 }, Digit3: { tertiary: 1 }, Digit4: { special: 1 }, KeyF: { ecm: 1 }, KeyG: { eccm: 1 },
})) {
  test(`${code} as long as it is held`, () => {
    const made = pilot();
    assert.ok(made.press(code));
    assert.deepEqual(acts(made), { ...REST, ...wanted });
    assert.deepEqual(acts(made), { ...REST, ...wanted });
    made.release(code);
    if (code === "KeyF" || code === "KeyG") made.press(code); // switches
    assert.deepEqual(acts(made), REST);
  });
}

test("a key that goes down and up between two decisions counts once", () => {
  const made = pilot();
  made.press("Digit1");
  made.release("Digit1");
  assert.deepEqual(acts(made), { ...REST, primary: 1 });
  assert.deepEqual(acts(made), REST);
});

test("opposite keys cancel each other, two for one direction count as one", () => {
  const made = pilot();
  for (const code of ["KeyW", "KeyS", "KeyQ", "ArrowLeft"]) made.press(code);
  assert.deepEqual(acts(made), { ...REST, turn: 1 });
});

test("mouse buttons fire", () => {
  const made = pilot();
  made.holdButtons(1 | 2);
  made.holdButtons(4);
  assert.deepEqual(acts(made), { ...REST, primary: 1, secondary: 1, special: 1 }); // the first two were short
  assert.deepEqual(acts(made), { ...REST, special: 1 });
  made.holdButtons(0);
  assert.deepEqual(acts(made), REST);
});

test("the mech turns to the mouse by as much as it can, and keys overrule it", () => {
  const made = pilot();
  made.pointer = { x: 10, y: 20 };
  assert.deepEqual(acts(made), { ...REST, turn: 1 });
  made.pointer = { x: 20, y: 10 - 10 * Math.tan(0.25) };
  const { turn } = acts(made);
  assert.ok(Math.abs(turn + 0.5) < 1e-6); // 0.25 of 2 rad/s in 0.25 s
  made.pointer = { x: 20, y: 10.1 };
  assert.deepEqual(acts(made), REST); // close enough
  made.pointer = { x: 10.5, y: 10.5 };
  assert.deepEqual(acts(made), REST); // on the mech
  made.pointer = { x: 0, y: 9 };
  assert.equal(acts(made, [], { ...MECH, yaw: 3 }).turn > 0, true); // the short way round
  made.press("KeyE");
  assert.equal(acts(made).turn, -1);
});

test("a target is a mech, whatever its contact row", () => {
  const made = pilot();
  made.nextTarget([7, 5, -1, -1, -1], 5);
  assert.deepEqual(acts(made, [7, 5]), { ...REST, target_0: 1 });
  assert.deepEqual(acts(made, [5, 7]), { ...REST, target_1: 1 });
  made.nextTarget([5, 7], 7);
  assert.equal(made.target, 5);
  assert.deepEqual(acts(made, [9]), REST);
  made.nextTarget([-1, -1], -1);
  assert.equal(made.target, -1);
});

test("other keys do not drive, and a new battle forgets all", () => {
  const made = pilot();
  assert.equal(made.press("KeyZ"), false);
  made.press("KeyX");
  assert.deepEqual(acts(made), { display_dangerous: 1 });
  made.press("KeyW");
  made.press("KeyF");
  made.clear();
  made.press("KeyX");
  made.press("KeyX");
  made.press("KeyX");
  assert.deepEqual(acts(made), REST);
});
