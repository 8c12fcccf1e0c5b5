import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { sha256 } from "../src/sha256.js";

test("digests are those of Node, for every length and cut", () => {
  for (let length = 0; length < 300; length += 1) {
    const data = randomBytes(length);
    const cut = length % 7;
    const expected = createHash("sha256").update(data).digest("hex");
    assert.equal(sha256([data.subarray(0, cut), data.subarray(cut)]), expected);
  }
  const large = randomBytes(200_001);
  assert.equal(sha256([large]), createHash("sha256").update(large).digest("hex"));
});
