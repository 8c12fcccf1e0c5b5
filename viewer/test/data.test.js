import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { fromBase64, gunzip, PageError, readReplay, split } from "../src/data.js";
import { sha256 } from "../src/sha256.js";

const encode = (header, body) => new Uint8Array(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), Buffer.from(body)]));
const HEADER = { format: "echelon-replay", version: 2, decisions: 1, players: ["a", "b"] };

const digestOf = (header) => sha256([new TextEncoder().encode(JSON.stringify(header))]);

test("a replay's actions and digests", () => {
  const { actions, digests } = readReplay(encode(HEADER, new Uint8Array(8 + 64).fill(3)), 8, digestOf(HEADER));
  assert.equal(actions.length, 8);
  assert.deepEqual(digests, ["03".repeat(32), "03".repeat(32)]);
});

for (const [name, data, message] of [
  ["short", encode(HEADER, new Uint8Array(71)), /truncated or altered/],
  ["of another version", encode({ ...HEADER, version: 9 }, []), /version 9/],
  ["of another format", encode({ format: "x" }, []), /not a replay/],
  ["without players", encode({ ...HEADER, players: "ab" }, new Uint8Array(72)), /header of the replay is damaged/],
  ["with a fraction of a decision", encode({ ...HEADER, decisions: 0.5 }, new Uint8Array(72)), /header of the replay is damaged/],
  ["without a header", new Uint8Array(90), /has no header/],
  ["with other players", encode({ ...HEADER, players: ["b", "a"] }, new Uint8Array(72)), /header of the replay was altered/],
]) {
  test(`a replay ${name} is refused`, () => {
    assert.throws(() => readReplay(data, 8, digestOf(HEADER)), (error) => error instanceof PageError && message.test(error.message));
  });
}

test("streams are unpacked, and damaged or huge ones refused", async () => {
  const packed = new Uint8Array(gzipSync(Buffer.from("hello\nworld")));
  const [header, rest] = split(new Uint8Array(Buffer.from('"hello"\nworld')), "text");
  assert.equal(header, "hello");
  assert.equal(Buffer.from(rest).toString(), "world");
  assert.equal(Buffer.from(await gunzip(packed, "text")).toString(), "hello\nworld");
  await assert.rejects(gunzip(packed.slice(0, 15), "text"), PageError);
  await assert.rejects(gunzip(new Uint8Array(gzipSync(Buffer.alloc(70_000_000))), "text"), /larger than/);
  assert.throws(() => fromBase64("%", "text"), PageError);
});
