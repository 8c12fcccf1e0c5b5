// Buttons, keys, mouse and fingers of the viewer.

import { readAddress } from "./address.js";
import { byId } from "./dom.js";
import { TABS } from "./inspector.js";
import { away, project } from "./math.js";

/** @typedef {import("./viewer.js").Viewer} Viewer */

/** What keys do, by the names of the actions. @type {Record<string, string>} */
const KEYS = {
  " ": "play", ArrowLeft: "back", ArrowRight: "next", "shift ArrowLeft": "event-before", "shift ArrowRight": "event-next", Home: "first", End: "last",
  k: "kill-next", "shift k": "kill-before", "+": "faster", "=": "faster", "-": "slower", f: "follow", v: "fog", t: "top", m: "sound",
  h: "help", "?": "help", Escape: "close",
};

/** What can be done, by the names of the buttons that do it, if there are any. @param {Viewer} viewer @returns {Record<string, () => void>} */
const actionsOf = (viewer) => ({
  play: () => viewer.setPlaying(!viewer.playing), back: () => viewer.stop(Math.ceil(viewer.time) - 1), next: () => viewer.stop(Math.floor(viewer.time) + 1),
  "event-before": () => viewer.jump(-1), "event-next": () => viewer.jump(1), first: () => viewer.stop(0), last: () => viewer.stop(viewer.simulation.decisions),
  "kill-before": () => viewer.jump(-1, true), "kill-next": () => viewer.jump(1, true), slower: () => viewer.changeSpeed(-1), faster: () => viewer.changeSpeed(1),
  follow: () => viewer.follow(), fog: () => viewer.toggleFog(), top: () => viewer.top(), sound: () => viewer.toggleSound(), help: () => viewer.help(),
  close: () => viewer.close(), "keys-close": () => viewer.help(), "watch-again": () => viewer.watchFrom(0),
});

/** @param {Viewer} viewer */
export function listen(viewer) {
  const actions = actionsOf(viewer);
  for (const [id, action] of Object.entries(actions)) {
    byId(id)?.addEventListener("click", () => {
      action();
      byId(id).blur(); // or the space bar would press it again
    });
  }
  for (const tab of TABS) {
    byId(`tab-${tab}`).addEventListener("click", () => {
      viewer.inspector.tab = tab;
      viewer.showPanels();
    });
  }
  addEventListener("keydown", (event) => pressKey(viewer, event, actions));
  addEventListener("hashchange", () => readAddress(viewer));
  listenToPointers(viewer);
  const bar = byId("timeline");
  /** @param {PointerEvent} event */
  const seek = (event) => {
    const x = event.clientX - bar.getBoundingClientRect().left;
    viewer.stop(viewer.timeline.markAt(viewer.marks(), x)?.decision ?? viewer.timeline.at(x));
  };
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    seek(event);
  });
  bar.addEventListener("pointermove", (event) => {
    if (event.buttons) seek(event);
    const mark = viewer.timeline.markAt(viewer.marks(), event.clientX - bar.getBoundingClientRect().left);
    viewer.panels.tip(mark, event.clientX);
  });
  bar.addEventListener("pointerleave", () => viewer.panels.tip(null, 0));
}

/** @param {Viewer} viewer @param {KeyboardEvent} event @param {Record<string, () => void>} actions */
function pressKey(viewer, event, actions) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (viewer.driver?.press(event)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const action = actions[(event.shiftKey && KEYS[`shift ${key}`]) || KEYS[key]];
  if (action) action();
  else if (/^[1-9]$/.test(event.key)) viewer.select(Number(event.key) - 1);
  else return;
  event.preventDefault();
}

/** @param {Viewer} viewer */
function listenToPointers(viewer) {
  const { canvas, camera } = viewer;
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let moved = 0;
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
    viewer.driver?.point(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    viewer.hovered = mechAt(viewer, event.offsetX, event.offsetY);
    if (viewer.driver?.point(event)) return;
    const from = down.get(event.pointerId);
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    moved += Math.abs(dx) + Math.abs(dy);
    if (down.size === 2) {
      const [a, b] = [...down.values()];
      const other = a === from ? b : a;
      const before = away(from, other);
      camera.zoom(before / Math.max(1, away({ x: event.clientX, y: event.clientY }, other)));
      camera.pan(-dx / canvas.clientHeight / 2, dy / canvas.clientHeight / 2);
    } else if (event.buttons === 2 || event.shiftKey) {
      viewer.follows = false;
      camera.pan(-dx / canvas.clientHeight, dy / canvas.clientHeight);
    } else camera.turn(dx * 0.006, dy * 0.006);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  canvas.addEventListener("pointerleave", () => { viewer.hovered = -1; });
  const up = (/** @type {PointerEvent} */ event) => {
    viewer.driver?.point(event);
    if (!down.delete(event.pointerId) || moved >= 6 || event.type !== "pointerup") return;
    const mech = mechAt(viewer, event.offsetX, event.offsetY);
    if (mech >= 0) viewer.select(mech);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.002))));
  }, { passive: false });
}

/** The mech at a place of the picture, or -1. @param {Viewer} viewer @param {number} x @param {number} y pixels */
function mechAt(viewer, x, y) {
  let [best, nearest] = [-1, 28];
  viewer.after.mechs.forEach((mech, index) => {
    const place = viewer.scene.places[index];
    if (!place?.shown || !mech.alive) return;
    const at = project(viewer.camera.matrix, place.x, place.y, place.z + 1);
    if (!at) return;
    const off = away({ x: at.x * viewer.canvas.clientWidth, y: at.y * viewer.canvas.clientHeight }, { x, y });
    if (off < nearest) [best, nearest] = [index, off];
  });
  return best;
}
