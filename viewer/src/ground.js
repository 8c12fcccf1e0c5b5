// What is drawn on the ground: the zone, electronics, the selected mech, and where its weapon reaches.

import { TEAMS } from "./scene.js";

const PIXELS = 6; // for a metre
const LARGEST = 1024;
const ECM = "#c979ff";
const ECCM = "#6ff0dc";

/** @param {number[]} colour @param {number} alpha */
const css = (colour, alpha) => `rgba(${colour.map((part) => Math.round(255 * part)).join()},${alpha})`;

export class Ground {
  /** @param {any} battle */
  constructor(battle) {
    this.battle = battle;
    this.canvas = document.createElement("canvas");
    this.scale = Math.min(PIXELS, LARGEST / battle.size);
    this.canvas.width = this.canvas.height = Math.round(battle.size * this.scale);
    this.paper = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
  }

  /**
   * @param {import("./moments.js").Moment} moment
   * @param {import("./scene.js").Place[]} places
   * @param {number} selected the mech, or -1
   * @param {any} weapon its weapon, or null
   */
  draw({ zone, teams, mechs }, places, selected, weapon) {
    const { paper, scale, canvas, battle } = this;
    paper.setTransform(scale, 0, 0, scale, 0, 0);
    paper.clearRect(0, 0, canvas.width, canvas.height);
    const [blue, red] = teams.map((team) => team.share);
    const holder = blue > red ? TEAMS[0] : red > blue ? TEAMS[1] : [1, 0.97, 0.85];
    this.ring(zone.x, zone.y, zone.radius, css(holder, 0.95), 0.45, css(holder, blue === red ? 0.12 : 0.28));
    mechs.forEach((mech, index) => {
      if (!mech.alive || !places[index].shown || mech.radiates <= 0) return;
      paper.setLineDash([1.6, 1]);
      const colour = mech.radiates === 1 ? ECM : ECCM;
      this.ring(places[index].x, places[index].y, battle.ecm, colour, 0.3, `${colour}12`);
      paper.setLineDash([]);
    });
    const own = places[selected];
    if (!own?.shown || !mechs[selected].alive) return;
    if (weapon) this.sector(own, weapon);
    this.ring(own.x, own.y, 1.7, "#fff", 0.28, "#fff2");
  }

  /** @param {number} x @param {number} y @param {number} radius @param {string} edge @param {number} width @param {string} fill */
  ring(x, y, radius, edge, width, fill) {
    const { paper } = this;
    paper.beginPath();
    paper.arc(x, y, radius, 0, 2 * Math.PI);
    paper.fillStyle = fill;
    paper.fill();
    paper.strokeStyle = edge;
    paper.lineWidth = width;
    paper.stroke();
  }

  /** Range and arc of a weapon. @param {import("./scene.js").Place} place @param {any} weapon */
  sector({ x, y, yaw }, { range, arc }) {
    const { paper } = this;
    const half = (Math.min(360, arc) / 360) * Math.PI;
    paper.beginPath();
    paper.moveTo(x, y);
    paper.arc(x, y, range, yaw - half, yaw + half);
    paper.closePath();
    paper.fillStyle = "#ffffff14";
    paper.fill();
    paper.strokeStyle = "#ffffff90";
    paper.lineWidth = 0.18;
    paper.stroke();
  }
}
