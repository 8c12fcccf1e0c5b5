import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK, Terrain, VERTEX_BYTES } from "../src/terrain.js";

const MATERIALS = [
  { name: "air", colour: [0, 0, 0], opacity: 0 },
  { name: "dirt", colour: [250, 90, 70], opacity: 1 },
  { name: "glass", colour: [150, 214, 240], opacity: 0.3 },
];
const battle = { size: 30, height: 4, materials: MATERIALS, bedrock: [70, 70, 66] };
const faces = (buffer) => buffer.byteLength / VERTEX_BYTES / 4;

function world() {
  const voxels = new Uint8Array(4 * 30 * 30);
  const terrain = new Terrain(voxels, battle);
  assert.deepEqual(terrain.changed().sort(), [0, 1, 2, 3]);
  return { voxels, terrain };
}

test("an empty map is its ground", () => {
  const { terrain } = world();
  assert.equal(faces(terrain.mesh(0)[0]), CHUNK * CHUNK);
  assert.equal(faces(terrain.mesh(1)[0]), CHUNK * (30 - CHUNK));
});

test("a voxel hides the ground below it and shows five faces", () => {
  const { voxels, terrain } = world();
  voxels[5 * 30 + 5] = 1;
  assert.deepEqual(terrain.changed(), [0]);
  assert.equal(faces(terrain.mesh(0)[0]), CHUNK * CHUNK - 1 + 5);
  assert.deepEqual(terrain.changed(), []);
});

test("glass is drawn apart, without faces between its voxels, and hides nothing", () => {
  const { voxels, terrain } = world();
  voxels[5 * 30 + 5] = 2;
  voxels[5 * 30 + 6] = 2;
  terrain.changed();
  const [opaque, clear] = terrain.mesh(0);
  assert.equal(faces(opaque), CHUNK * CHUNK);
  assert.equal(faces(clear), 8);
});

test("a change at a chunk's border changes its neighbour, too", () => {
  const { voxels, terrain } = world();
  voxels[5 * 30 + CHUNK] = 1;
  assert.deepEqual(terrain.changed().sort(), [0, 1]);
});

test("colours stay within a byte", () => {
  const { voxels, terrain } = world();
  voxels.fill(1);
  terrain.changed();
  const bytes = new Uint8Array(terrain.mesh(0)[0]);
  for (let at = 16; at < bytes.length; at += VERTEX_BYTES) assert.ok(bytes[at] > 100);
});
