// A page with one replay, or with a game.

import { fromBase64, gunzip, PageError, readReplay, split } from "./data.js";
import { byId, element } from "./dom.js";
import { Driver } from "./driver.js";
import { Game } from "./game.js";
import { Simulation } from "./simulation.js";
import { scanBattle } from "./scan.js";
import { Viewer } from "./viewer.js";

const END_SECONDS = 6; // for which the end of a battle is shown, before the next one

/** @param {string} id */
async function part(id) {
  return gunzip(/** @type {Uint8Array<ArrayBuffer>} */ (fromBase64(byId(id)?.textContent ?? "", id)), id);
}

async function start() {
  const [world, memory] = split(await part("world"), "world");
  const module = await WebAssembly.compile(await part("engine")).catch(() => {
    throw new PageError("The engine is damaged, or this browser has no WebAssembly.");
  });
  if (world.play) play(module, world, memory);
  else await showReplay(module, world, memory);
}

/** @param {WebAssembly.Module} module @param {any} world @param {Uint8Array} memory */
async function showReplay(module, world, memory) {
  const rowBytes = world.arrays.actions.shape[0] * world.arrays.actions.shape[1] * 4;
  const replay = readReplay(await part("replay"), rowBytes, world.header);
  const viewer = new Viewer(new Simulation(module, world, memory, replay, true));
  Object.assign(globalThis, { echelon: viewer }); // for the console
  viewer.run();
  if (world.live) watch(viewer, world.live);
  const scan = await scanBattle(new Simulation(module, world, memory, replay, false), (found) => viewer.report(found));
  document.body.dataset.verified = scan.different === null ? "equal" : String(scan.different);
}

/** @param {WebAssembly.Module} module @param {any} world @param {Uint8Array} memory */
function play(module, world, memory) {
  if (world.play.loads) stayAlive();
  const start = { ...world.play.start, memory: memory.subarray(0, world.memory.changing) };
  const simulation = new Simulation(module, world, memory, { header: start, actions: new Uint8Array(0), digests: [] }, true);
  const game = new Game(simulation, start);
  const viewer = new Viewer(simulation);
  new Driver(viewer, game);
  Object.assign(globalThis, { echelon: viewer });
  viewer.run();
  document.body.dataset.ready = "yes";
}

/** Show the next battle of a run that trains, once this one has ended. @param {Viewer} viewer @param {number} number of this battle */
async function watch(viewer, number) {
  stayAlive();
  for (let seconds = 0; ; seconds += 1) {
    await new Promise((resume) => setTimeout(resume, 1000));
    if (viewer.playing || viewer.selected >= 0 || viewer.time < viewer.simulation.decisions) seconds = 0;
    if (seconds < END_SECONDS) continue;
    const answer = await fetch(`next/${number}`).catch(() => null);
    if (!answer?.ok || (await answer.json()).number === number) continue;
    history.replaceState(null, "", location.pathname); // without the time, at which the next one would stand still
    location.reload();
    return;
  }
}

/** The server ends when its last page is closed, and with it this request. */
async function stayAlive() {
  for (let failures = 0; failures < 3; failures += 1) {
    try {
      const reader = (await fetch("alive")).body?.getReader();
      while (reader && !(await reader.read()).done) failures = 0;
    } catch {
      // the server has ended, or the connection was lost
    }
    await new Promise((resume) => setTimeout(resume, 1000));
  }
  byId("verified").textContent = "The server has ended: this battle can be finished, but there is no next one.";
}

start().catch((error) => {
  const text = error instanceof PageError ? error.message : `This page could not be started: ${error}`;
  document.body.dataset.failed = "yes";
  byId("message").replaceChildren(element("p", {}, text));
  byId("message").hidden = false;
  if (!(error instanceof PageError)) throw error;
});
