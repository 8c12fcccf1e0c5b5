// Plays whole battles in WebAssembly: node battle.mjs echelon.wasm job.json image.bin
// The image is the memory from __heap_base on, with the arrays and the argument words of all calls. The job names the calls
// of the first decision and of the others, what to read after each decision, and when a battle is over. Prints JSON: the
// number of decisions, a SHA-256 over what was read, and microseconds per decision.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [wasm, jobFile, imageFile] = process.argv.slice(2);
const job = JSON.parse(readFileSync(jobFile));
const image = readFileSync(imageFile);
const pages = Math.ceil((job.base + image.length) / 65536) + 16;
const memory = new WebAssembly.Memory({ initial: pages });
const module = await WebAssembly.compile(readFileSync(wasm));
const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
if (exports.__heap_base.value > job.base) throw new Error(`the heap begins at ${exports.__heap_base.value}`);
const bytes = new Uint8Array(memory.buffer);
bytes.set(image, job.base);

const run = (calls) => {
  for (const [name, words] of calls) {
    const status = exports[`echelon_${name}`](words);
    if (status !== 0) throw new Error(`${name}: status ${status}`);
  }
};
const hash = createHash("sha256");
const read = () => job.read.forEach(([at, size]) => hash.update(bytes.subarray(at, at + size)));

run(job.begin);
read();
let decisions = 0;
const start = performance.now();
while (bytes[job.over] === 0) {
  job.clear.forEach(([at, size]) => bytes.fill(0, at, at + size));
  run(job.decide);
  read();
  decisions += 1;
}
const microseconds = ((performance.now() - start) * 1000) / decisions;
console.log(JSON.stringify({ decisions, digest: hash.digest("hex"), microseconds }));
