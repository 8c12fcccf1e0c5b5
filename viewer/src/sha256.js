// SHA-256 (FIPS 180-4). The browser's own is missing on pages that come over plain HTTP.

const K = new Uint32Array(64);
const START = new Uint32Array(8);
{
  let found = 0;
  for (let n = 2; found < 64; n += 1) {
    let prime = true;
    for (let d = 2; d * d <= n; d += 1) if (n % d === 0) prime = false;
    if (!prime) continue;
    K[found] = (n ** (1 / 3) % 1) * 2 ** 32;
    if (found < 8) START[found] = (n ** 0.5 % 1) * 2 ** 32;
    found += 1;
  }
}

/**
 * The digest of several pieces one after another, in hexadecimal digits.
 * @param {Uint8Array[]} pieces
 */
export function sha256(pieces) {
  const hash = START.slice();
  const words = new Uint32Array(64);
  const block = new Uint8Array(64);
  const view = new DataView(block.buffer);
  let filled = 0;
  let total = 0;
  const compress = () => {
    for (let i = 0; i < 16; i += 1) words[i] = view.getUint32(4 * i);
    for (let i = 16; i < 64; i += 1) {
      const p = words[i - 15];
      const q = words[i - 2];
      const s0 = ((p >>> 7) | (p << 25)) ^ ((p >>> 18) | (p << 14)) ^ (p >>> 3);
      const s1 = ((q >>> 17) | (q << 15)) ^ ((q >>> 19) | (q << 13)) ^ (q >>> 10);
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
    hash[5] += f;
    hash[6] += g;
    hash[7] += h;
  };
  /** @param {Uint8Array} data */
  const update = (data) => {
    let at = 0;
    while (at < data.length) {
      const count = Math.min(64 - filled, data.length - at);
      block.set(data.subarray(at, at + count), filled);
      filled += count;
      at += count;
      if (filled === 64) {
        compress();
        filled = 0;
      }
    }
  };
  for (const piece of pieces) {
    update(piece);
    total += piece.length;
  }
  const padding = new Uint8Array(((119 - (total % 64)) % 64) + 9);
  padding[0] = 0x80;
  const bits = new DataView(padding.buffer);
  bits.setUint32(padding.length - 8, Math.floor((total * 8) / 2 ** 32));
  bits.setUint32(padding.length - 4, (total * 8) >>> 0);
  update(padding);
  return [...hash].map((word) => word.toString(16).padStart(8, "0")).join("");
}
