// What is written over the picture: names and armour of mechs, damage, remembered enemies, the way to the zone.

import { project } from "./math.js";

/** @param {import("./viewer.js").Viewer} viewer @param {number} share of the decision that has passed */
export function drawLabels(viewer, share) {
  const { labels } = viewer;
  const scale = globalThis.devicePixelRatio || 1;
  const [width, height] = [labels.clientWidth, labels.clientHeight];
  if (labels.width !== Math.round(width * scale)) labels.width = Math.round(width * scale);
  if (labels.height !== Math.round(height * scale)) labels.height = Math.round(height * scale);
  const paper = /** @type {CanvasRenderingContext2D} */ (labels.getContext("2d"));
  paper.setTransform(scale, 0, 0, scale, 0, 0);
  paper.clearRect(0, 0, width, height);
  paper.textAlign = "center";
  paper.font = "600 11px system-ui, sans-serif";
  viewer.after.mechs.forEach((mech, index) => {
    const place = viewer.scene.places[index];
    if (!place?.shown || !mech.alive) return;
    const kind = viewer.world.battle.classes[mech.kind];
    const at = project(viewer.camera.matrix, place.x, place.y, place.z + kind.size[2] * 1.25);
    if (!at) return;
    const [x, y] = [at.x * width, at.y * height];
    paper.fillStyle = "#0009";
    paper.fillRect(x - 17, y - 19, 34, 17);
    paper.fillStyle = mech.team === 0 ? "#7db4ff" : "#ff9a6b";
    paper.fillText(`${kind.letter}${viewer.numberOf(mech)}${mech.fallen ? " ▾" : ""}${mech.shutdown ? " ○" : ""}`, x, y - 9);
    const own = viewer.after.mechs[viewer.selected];
    if (mech.paintedBy.some((pack) => !own || pack === own.pack)) {
      paper.fillStyle = "#59ff85";
      paper.fillText("◆", x + 24, y - 9);
    }
    if (mech.speaks) {
      paper.fillStyle = "#fff";
      paper.fillText("≋", x - 24, y - 9);
    }
    paper.fillStyle = "#0008";
    paper.fillRect(x - 14, y - 6, 28, 3);
    paper.fillStyle = mech.team === 0 ? "#3385fa" : "#ed5c24";
    paper.fillRect(x - 14, y - 6, 28 * Math.max(0, mech.armour / kind.armour), 3);
  });
  for (const event of viewer.after.events) {
    const since = share - 0.9 * event.when;
    if (event.amount < 0.5 || !["hit", "splash", "hazard"].includes(event.kind) || since < 0) continue;
    const target = viewer.scene.places[event.target];
    const at = target?.shown ? project(viewer.camera.matrix, target.x, target.y, target.z + 2 + 2 * since) : null;
    if (!at) continue;
    paper.fillStyle = `rgba(255, 240, 200, ${1 - since})`;
    paper.fillText(`−${event.amount.toFixed(0)}`, at.x * width, at.y * height);
  }
  paper.fillStyle = "#ffffffb0";
  for (const ghost of viewer.ghosts) {
    const at = project(viewer.camera.matrix, ghost.x, ghost.y, ghost.z + 1.6);
    if (at) {
      const mech = viewer.after.mechs[ghost.mech];
      const { letter } = viewer.world.battle.classes[mech.kind];
      paper.fillText(`${letter}${viewer.numberOf(mech)}? ${ghost.age.toFixed(0)} s`, at.x * width, at.y * height);
    }
  }
  if (viewer.driver?.plays) drawWay(viewer, paper, width, height);
}

/** An arrow to the zone, at the lower edge, and a mark at the target. @param {import("./viewer.js").Viewer} viewer @param {CanvasRenderingContext2D} paper @param {number} width @param {number} height */
function drawWay(viewer, paper, width, height) {
  const { after, camera, scene, driver } = viewer;
  const place = scene.places[viewer.selected];
  if (!place) return;
  const [dx, dy] = [after.zone.x - place.x, after.zone.y - place.y];
  const away = Math.max(0, Math.hypot(dx, dy) - after.zone.radius);
  const turn = camera.azimuth + Math.PI - Math.atan2(dy, dx);
  paper.save();
  paper.translate(width / 2, height - 50);
  paper.fillStyle = "#ffd479";
  paper.fillText(away > 0 ? `zone ${away.toFixed(0)} m` : "in the zone", 0, 26);
  paper.rotate(turn);
  paper.beginPath();
  for (const [x, y] of [[0, -13], [8, 8], [0, 4], [-8, 8]]) paper.lineTo(x, y);
  paper.closePath();
  paper.fill();
  paper.restore();
  const target = scene.places[driver?.drives ? after.mechs[viewer.selected].target : -1];
  const at = target?.shown ? project(camera.matrix, target.x, target.y, target.z + 1) : null;
  if (!at) return;
  paper.strokeStyle = "#ffd479";
  paper.lineWidth = 2;
  paper.strokeRect(at.x * width - 20, at.y * height - 20, 40, 40);
}
