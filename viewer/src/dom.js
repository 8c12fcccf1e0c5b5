// Elements without any HTML from texts: names in replays come from strangers.
import { clamp } from "./math.js";

/**
 * An element with text or children.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") made.style.cssText = value;
    else if (name.startsWith("aria-")) made.setAttribute(name, value);
    else Object.assign(made, { [name]: value });
  }
  made.append(...children);
  return made;
}

/** @param {Record<string, any>} properties @param {() => void} action @param {...(Node | string)} children */
export function button(properties, action, ...children) {
  const made = element("button", { type: "button", ...properties }, ...children);
  made.addEventListener("click", action);
  return made;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** A bar of a share. @param {number} share @param {string} kind @param {string} [title] */
export function bar(share, kind, title = kind) {
  const made = element("span", { className: `bar ${kind}` }, element("i"));
  setBar(made, share, title);
  return made;
}

/** Let a bar show another share. @param {Element} bar @param {number} share @param {string} title */
export function setBar(bar, share, title) {
  const width = `${Math.round(100 * clamp(share))}%`;
  const inner = /** @type {HTMLElement} */ (bar.firstElementChild);
  if (inner.style.width !== width) inner.style.width = width;
  /** @type {HTMLElement} */ (bar).title = title;
}

/** A table of rows of texts. @param {(string | Node)[][]} rows @param {string[]} [head] */
export function table(rows, head) {
  const body = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  const top = head ? [element("tr", {}, ...head.map((cell) => element("th", {}, cell)))] : [];
  return element("table", {}, ...top, ...body);
}

/** A number with at most three figures; whole numbers have no decimals. @param {number} value */
export function number(value) {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** A number with at most one decimal. @param {number} value */
export const tenths = (value) => String(Math.round(10 * value) / 10);

/** A number of points, of as many. @param {number} value @param {number} most */
export const whole = (value, most) => `${Math.round(Math.max(0, value))} of ${number(most)}`;

/** Minutes and seconds. @param {number} seconds */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

/** A font of a canvas. @param {string} size with the weight before it, such as "bold 11" */
export const font = (size) => `${size}px system-ui, sans-serif`;

/** Let a canvas have the pixels of the screen, empty. @param {HTMLCanvasElement} canvas */
export function blank(canvas) {
  const scale = globalThis.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const pixels = { width: Math.round(width * scale), height: Math.round(height * scale) };
  if (canvas.width !== pixels.width || canvas.height !== pixels.height) Object.assign(canvas, pixels);
  const paper = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  paper.setTransform(scale, 0, 0, scale, 0, 0);
  paper.clearRect(0, 0, width, height);
  return { paper, width, height };
}
