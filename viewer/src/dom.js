// Elements without any HTML from texts: names in replays come from strangers.

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

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** A bar of a share. @param {number} share @param {string} kind */
export function bar(share, kind) {
  const width = Math.round(100 * Math.min(1, Math.max(0, share)));
  return element("span", { className: `bar ${kind}` }, element("i", { style: `width:${width}%` }));
}

/** A table of rows of texts. @param {(string | Node)[][]} rows @param {string[]} [head] */
export function table(rows, head) {
  const body = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  const top = head ? [element("tr", {}, ...head.map((cell) => element("th", {}, cell)))] : [];
  return element("table", {}, ...top, ...body);
}

/** @param {number} value */
export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
