// The address of a page with a replay, ``#t=83&mech=3``: the time in decisions and the mech's number in the arrays.

/** @typedef {import("./viewer.js").Viewer} Viewer */

/** Show what the address asks for. @param {Viewer} viewer */
export function readAddress(viewer) {
  if (viewer.driver) return;
  const asked = new URLSearchParams(location.hash.slice(1));
  const [time, mech] = ["t", "mech"].map((name) => Number.parseInt(asked.get(name) ?? "", 10));
  if (Number.isFinite(mech)) viewer.selected = mech >= 0 && mech < viewer.simulation.mechs ? mech : -1;
  if (Number.isFinite(time)) viewer.stop(time);
  else viewer.goTo(viewer.time);
  viewer.updateSight();
  viewer.showPanels();
}

/** @param {Viewer} viewer */
export function writeAddress(viewer) {
  if (viewer.driver) return;
  const parts = [`t=${Math.round(viewer.time)}`];
  if (viewer.selected >= 0) parts.push(`mech=${viewer.selected}`);
  try {
    history.replaceState(null, "", `#${parts.join("&")}`);
  } catch {
    // a page in a notebook's frame may have no address
  }
}
