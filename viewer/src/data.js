// The parts of a page: base64 texts of gzip streams. Whatever is wrong with them becomes a sentence (PageError).

import { sha256 } from "./sha256.js";

export class PageError extends Error {}

const MAX_PART_BYTES = 1 << 26;
const MAX_HEADER_BYTES = 1 << 22;
export const DIGEST_BYTES = 32;

/**
 * The bytes of a gzip stream.
 * @param {Uint8Array<ArrayBuffer>} data
 * @param {string} what
 */
export async function gunzip(data, what) {
  if (typeof DecompressionStream === "undefined") {
    throw new PageError("This browser is too old: it has no DecompressionStream.");
  }
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const pieces = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > MAX_PART_BYTES) throw new PageError(`The ${what} is larger than ${MAX_PART_BYTES} bytes.`);
      pieces.push(value);
    }
  } catch (error) {
    if (error instanceof PageError) throw error;
    throw new PageError(`The ${what} is damaged or truncated.`);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/**
 * The bytes of a base64 text.
 * @param {string} text
 * @param {string} what
 */
export function fromBase64(text, what) {
  try {
    return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  } catch {
    throw new PageError(`The ${what} is damaged or truncated.`);
  }
}

/**
 * The JSON in the first line, and the bytes after it.
 * @param {Uint8Array} data
 * @param {string} what
 * @returns {[any, Uint8Array]}
 */
export function split(data, what) {
  const end = data.indexOf(10);
  if (end < 0 || end > MAX_HEADER_BYTES) throw new PageError(`The ${what} has no header.`);
  try {
    return [JSON.parse(new TextDecoder().decode(data.subarray(0, end))), data.subarray(end + 1)];
  } catch {
    throw new PageError(`The header of the ${what} is damaged.`);
  }
}

/**
 * A replay's file.
 * @typedef {object} Replay
 * @property {any} header
 * @property {Uint8Array} actions bytes of float32 (decisions, mechs, entries)
 * @property {string[]} digests of the state at the start and after every decision
 */

/**
 * Read a replay's file.
 * @param {Uint8Array} data unpacked
 * @param {number} rowBytes bytes of the actions of one decision
 * @param {string} expected SHA-256 of the header of the battle that the page simulates
 * @returns {Replay}
 */
export function readReplay(data, rowBytes, expected) {
  const [header, body] = split(data, "replay");
  if (header?.format !== "echelon-replay") throw new PageError("This is not a replay of Echelon.");
  if (header.version !== 2) throw new PageError(`The replay has version ${Number(header.version)} of the format, this page reads 2.`);
  const { decisions, players } = header;
  if (!Number.isInteger(decisions) || decisions < 0 || !Array.isArray(players) || players.length !== 2) {
    throw new PageError("The header of the replay is damaged.");
  }
  const end = decisions * rowBytes;
  if (body.length !== end + (decisions + 1) * DIGEST_BYTES) throw new PageError("The replay is truncated or altered.");
  if (sha256([data.subarray(0, data.length - body.length - 1)]) !== expected) {
    throw new PageError("The header of the replay was altered: it is not that of the battle in this page.");
  }
  const digests = [];
  for (let at = end; at < body.length; at += DIGEST_BYTES) {
    digests.push([...body.subarray(at, at + DIGEST_BYTES)].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
  }
  return { header, actions: body.subarray(0, end), digests };
}
