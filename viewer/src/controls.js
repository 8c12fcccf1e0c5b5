// Buttons, keys, mouse and fingers of the viewer.

import { byId } from "./dom.js";
import { TABS } from "./inspector.js";
import { project } from "./math.js";

/** @typedef {import("./viewer.js").Viewer} Viewer */

/** @param {Viewer} viewer */
export function listen(viewer) {
  /** @type {Record<string, () => void>} */
  const actions = {
    play: () => viewer.setPlaying(!viewer.playing), back: () => viewer.stop(Math.ceil(viewer.time) - 1),
    next: () => viewer.stop(Math.floor(viewer.time) + 1), slower: () => viewer.changeSpeed(-1), faster: () => viewer.changeSpeed(1),
    follow: () => viewer.follow(), top: () => viewer.top(), fog: () => viewer.toggleFog(), help: () => viewer.help(),
    close: () => viewer.close(),
  };
  for (const [id, action] of Object.entries(actions)) {
    byId(id).addEventListener("click", () => {
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
  addEventListener("keydown", (event) => pressKey(viewer, event));
  addEventListener("hashchange", () => viewer.readAddress());
  listenToPointers(viewer);
  const bar = byId("timeline");
  /** @param {PointerEvent} event */
  const seek = (event) => viewer.stop(viewer.timeline.at(event.clientX - bar.getBoundingClientRect().left));
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    seek(event);
  });
  bar.addEventListener("pointermove", (event) => event.buttons && seek(event));
}

/** @param {Viewer} viewer @param {KeyboardEvent} event */
function pressKey(viewer, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (viewer.driver?.press(event)) return;
  /** @type {Record<string, () => void>} */
  const keys = {
    " ": () => viewer.setPlaying(!viewer.playing), f: () => viewer.follow(), v: () => viewer.toggleFog(), t: () => viewer.top(),
    "+": () => viewer.changeSpeed(1), "=": () => viewer.changeSpeed(1), "-": () => viewer.changeSpeed(-1),
    ArrowRight: () => (event.shiftKey ? viewer.jump(1) : viewer.stop(Math.floor(viewer.time) + 1)),
    ArrowLeft: () => (event.shiftKey ? viewer.jump(-1) : viewer.stop(Math.ceil(viewer.time) - 1)),
    Home: () => viewer.stop(0), End: () => viewer.stop(viewer.simulation.decisions),
    Escape: () => viewer.close(), "?": () => viewer.help(), h: () => viewer.help(),
  };
  const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
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
    if (viewer.driver?.point(event)) return;
    const from = down.get(event.pointerId);
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    moved += Math.abs(dx) + Math.abs(dy);
    if (down.size === 2) {
      const [a, b] = [...down.values()];
      const other = a === from ? b : a;
      const before = Math.hypot(from.x - other.x, from.y - other.y);
      camera.zoom(before / Math.max(1, Math.hypot(event.clientX - other.x, event.clientY - other.y)));
      camera.pan(-dx / canvas.clientHeight / 2, dy / canvas.clientHeight / 2);
    } else if (event.buttons === 2 || event.shiftKey) {
      viewer.follows = false;
      camera.pan(-dx / canvas.clientHeight, dy / canvas.clientHeight);
    } else camera.turn(dx * 0.006, dy * 0.006);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
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
    const off = Math.hypot(at.x * viewer.canvas.clientWidth - x, at.y * viewer.canvas.clientHeight - y);
    if (off < nearest) [best, nearest] = [index, off];
  });
  return best;
}
