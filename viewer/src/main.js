// A page with one replay.

import { fromBase64, gunzip, PageError, readReplay, split } from "./data.js";
import { byId, element } from "./dom.js";
import { Simulation } from "./simulation.js";
import { scanBattle } from "./scan.js";
import { Viewer } from "./viewer.js";

/** @param {string} id */
async function part(id) {
  return gunzip(/** @type {Uint8Array<ArrayBuffer>} */ (fromBase64(byId(id)?.textContent ?? "", id)), id);
}

async function start() {
  const [world, memory] = split(await part("world"), "world");
  const rowBytes = world.arrays.actions.shape[0] * world.arrays.actions.shape[1] * 4;
  const replay = readReplay(await part("replay"), rowBytes);
  const module = await WebAssembly.compile(await part("engine")).catch(() => {
    throw new PageError("The engine is damaged, or this browser has no WebAssembly.");
  });
  const viewer = new Viewer(new Simulation(module, world, memory, replay, true));
  Object.assign(globalThis, { echelon: viewer }); // for the console
  viewer.run();
  const scan = await scanBattle(new Simulation(module, world, memory, replay, false), (found) => viewer.report(found));
  document.body.dataset.verified = scan.different === null ? "equal" : String(scan.different);
}

start().catch((error) => {
  const text = error instanceof PageError ? error.message : `This page could not be started: ${error}`;
  document.body.dataset.failed = "yes";
  byId("message").replaceChildren(element("p", {}, text));
  byId("message").hidden = false;
  if (!(error instanceof PageError)) throw error;
});
