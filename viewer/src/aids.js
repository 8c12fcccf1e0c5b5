// What helps a person who drives: the way to the zone, a crosshair, where hits come from, and a small map.

import { blank, byId, font } from "./dom.js";
import { away } from "./math.js";
import { COLOURS } from "./timeline.js";

const FELT = 1; // s
const HITS = { hit: FELT, splash: FELT };
const ZONE = "#ffd479";

/** @param {import("./labels.js").Labels} labels @param {import("./driver.js").Driver} driver */
export function drawAids(labels, driver) {
  if (!driver.plays) return;
  drawWay(labels);
  if (!driver.drives) return;
  drawHits(labels);
  drawCrosshair(labels, driver);
  drawMap(labels.viewer);
}

/** An arrow to the zone, at the lower edge. @param {import("./labels.js").Labels} labels */
function drawWay({ viewer, paper, width, height }) {
  const { after, camera, scene } = viewer;
  const place = scene.places[viewer.selected];
  if (!place) return;
  const far = Math.max(0, away(after.zone, place) - after.zone.radius);
  paper.save();
  paper.translate(width / 2, height - 50);
  paper.fillStyle = ZONE;
  paper.font = font("600 12");
  paper.shadowColor = "#000";
  paper.shadowBlur = 4;
  paper.fillText(far > 0 ? `zone ${far.toFixed(0)} m` : "in the zone", 0, 28);
  paper.rotate(upwards(camera, place, after.zone));
  paper.beginPath();
  for (const [x, y] of [[0, -14], [9, 8], [0, 4], [-9, 8]]) paper.lineTo(x, y);
  paper.closePath();
  paper.fill();
  paper.restore();
}

/** By how much the direction to a place is turned from upwards in the picture. @param {{azimuth: number}} camera @param {import("./math.js").Place} own @param {import("./math.js").Place} place */
const upwards = ({ azimuth }, own, place) => azimuth + Math.PI - Math.atan2(place.y - own.y, place.x - own.x);

/** Red arcs on the side that hits come from. @param {import("./labels.js").Labels} labels */
function drawHits({ viewer, paper, width, height }) {
  const { scene, selected, camera } = viewer;
  const own = scene.places[selected];
  if (!own) return;
  for (const { event, age } of viewer.happened(HITS)) {
    if (event.target !== selected || event.actor === selected || event.amount < 0.5) continue;
    const turn = upwards(camera, event, { x: event.x - event.dx, y: event.y - event.dy }) - Math.PI / 2; // where it came from
    paper.strokeStyle = `rgba(255, 70, 50, ${0.9 * (1 - age / FELT)})`;
    paper.lineWidth = Math.min(14, 4 + event.amount / 5);
    paper.beginPath();
    paper.arc(width / 2, height / 2, Math.min(width, height) * 0.3, turn - 0.28, turn + 0.28);
    paper.stroke();
  }
}

/** Where the mouse aims; bright while the weapon reaches the target. @param {import("./labels.js").Labels} labels @param {import("./driver.js").Driver} driver */
function drawCrosshair({ viewer, paper, width, height }, driver) {
  if (!driver.mouse) return;
  const [x, y] = [driver.mouse.x * width, driver.mouse.y * height];
  const reaches = driver.reaches(viewer.weapon);
  paper.strokeStyle = reaches ? "#7dff9a" : "#ffffffc0";
  paper.lineWidth = 2;
  paper.beginPath();
  paper.arc(x, y, 9, 0, 2 * Math.PI);
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    paper.moveTo(x + 5 * dx, y + 5 * dy);
    paper.lineTo(x + 15 * dx, y + 15 * dy);
  }
  paper.stroke();
}

/** The map from above, north up, with what the mech knows of mechs. @param {import("./viewer.js").Viewer} viewer */
function drawMap(viewer) {
  const { after, scene, world, selected, ghosts, lit, terrain } = viewer;
  const { paper, width } = blank(/** @type {HTMLCanvasElement} */ (byId("minimap")));
  const { size } = world.battle;
  const scale = width / size;
  paper.imageSmoothingEnabled = false;
  paper.transform(1, 0, 0, -1, 0, width); // north up
  paper.drawImage(mapPicture(terrain, lit), 0, 0, width, width);
  const dot = (/** @type {{x: number, y: number}} */ at, /** @type {string} */ colour, /** @type {number} */ radius) => {
    paper.fillStyle = colour;
    paper.beginPath();
    paper.arc(at.x * scale, at.y * scale, radius, 0, 2 * Math.PI);
    paper.fill();
  };
  paper.strokeStyle = ZONE;
  paper.lineWidth = 1.5;
  paper.beginPath();
  paper.arc(after.zone.x * scale, after.zone.y * scale, after.zone.radius * scale, 0, 2 * Math.PI);
  paper.stroke();
  for (const ghost of ghosts) {
    paper.globalAlpha = 0.5;
    dot(ghost, COLOURS[ghost.team], 2.5);
  }
  paper.globalAlpha = 1;
  after.mechs.forEach((mech, index) => {
    if (mech.alive && scene.places[index].shown && index !== selected) dot(scene.places[index], COLOURS[mech.team], 3);
  });
  const own = scene.places[selected];
  paper.translate(own.x * scale, own.y * scale);
  paper.rotate(own.yaw);
  paper.fillStyle = "#fff";
  paper.beginPath();
  for (const [x, y] of [[7, 0], [-4, 4], [-2, 0], [-4, -4]]) paper.lineTo(x, y);
  paper.fill();
}

const picture = document.createElement("canvas");
/** What is in sight in the picture. @type {Uint8Array | null | undefined} */
let pictured;

/** The terrain from above, a pixel for each cell (y, x); what is not in sight is darker. @param {import("./terrain.js").Terrain} terrain @param {Uint8Array | null} lit */
function mapPicture(terrain, lit) {
  if (pictured === lit && lit) return picture;
  pictured = lit;
  const { size } = terrain;
  picture.width = picture.height = size;
  const image = new ImageData(size, size);
  for (let cell = 0; cell < size * size; cell += 1) {
    const light = !lit || lit[cell] ? 1.4 : 0.8;
    image.data.set([...terrain.topColour(cell).map((part) => light * part), 255], 4 * cell);
  }
  picture.getContext("2d")?.putImageData(image, 0, 0);
  return picture;
}
