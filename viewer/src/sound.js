// Sounds that the page makes itself: filtered noise for shots, hits and explosions. Off until they are asked for.

import { away } from "./math.js";

const FAR = 60; // m
/** Of each kind of event: pitch in Hz, seconds, strength. @type {Record<string, [number, number, number]>} */
const SOUNDS = { shot: [1400, 0.09, 0.25], hit: [500, 0.14, 0.35], impact: [220, 0.3, 0.5], death: [90, 1.1, 1], fall: [140, 0.4, 0.5], shutdown: [320, 0.7, 0.4] };
/** Pitches of weapons. @type {Record<string, number>} */
const PITCHES = { laser: 2600, gauss: 300, missiles: 700, autocannon: 1100, flamer: 500, painter: 3200, smoke: 400 };

export class Sound {
  constructor() {
    /** @type {AudioContext | null} */
    this.context = null;
    /** @type {AudioBuffer | null} */
    this.noise = null;
  }

  get on() {
    return this.context?.state === "running";
  }

  async toggle() {
    if (!this.context) {
      this.context = new AudioContext();
      this.noise = this.context.createBuffer(1, this.context.sampleRate, this.context.sampleRate);
      const samples = this.noise.getChannelData(0);
      for (let i = 0; i < samples.length; i += 1) samples[i] = 2 * Math.random() - 1;
      await this.context.resume();
    } else await (this.on ? this.context.suspend() : this.context.resume());
  }

  /**
   * @param {import("./moments.js").Event[]} events of a decision
   * @param {{x: number, y: number}} ears
   * @param {any} battle
   * @param {number} seconds in which the decision is shown
   */
  play(events, ears, battle, seconds) {
    if (!this.on) return;
    for (const event of events) {
      const sound = SOUNDS[event.kind];
      const near = 1 - away(event, ears) / FAR;
      if (!sound || near <= 0) continue;
      const [pitch, lasts, strength] = sound;
      const weapon = battle.weapons[event.weapon]?.name;
      this.burst(event.when * seconds, event.kind === "shot" ? Object.hasOwn(PITCHES, weapon) ? PITCHES[weapon] : pitch : pitch, lasts, strength * near * near);
    }
  }

  /** @param {number} after s @param {number} pitch Hz @param {number} lasts s @param {number} strength 0 to 1 */
  burst(after, pitch, lasts, strength) {
    const context = /** @type {AudioContext} */ (this.context);
    const start = context.currentTime + after;
    const [source, filter, gain] = [context.createBufferSource(), context.createBiquadFilter(), context.createGain()];
    source.buffer = this.noise;
    filter.type = "bandpass";
    filter.frequency.setValueAtTime(pitch, start);
    filter.frequency.exponentialRampToValueAtTime(pitch / 3, start + lasts);
    gain.gain.setValueAtTime(strength, start);
    gain.gain.exponentialRampToValueAtTime(0.001, start + lasts);
    source.connect(filter).connect(gain).connect(context.destination);
    source.start(start, Math.random() * 0.5, lasts);
  }
}
