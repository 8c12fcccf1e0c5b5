"use strict";
// Shows the values of a chart's lines at the pointer. A figure has `data-chart`: `box` (left, right, top, bottom of the
// axes) in units of the picture, `x` (values at left and right), and the `lines` with `label`, `colour`, `x` and `y`.
const SVG = "http://www.w3.org/2000/svg";
const precise = (value) => Number(value.toPrecision(4)).toLocaleString("en");
const share = (value) => `${(100 * value).toFixed(1)} %`;

function nearest(values, wanted) {
  let best = 0;
  for (let n = 1; n < values.length; n += 1) if (Math.abs(values[n] - wanted) < Math.abs(values[best] - wanted)) best = n;
  return best;
}

function follow(figure) {
  const chart = JSON.parse(figure.dataset.chart);
  const picture = figure.querySelector("svg");
  const [left, right, top, bottom] = chart.box;
  const cursor = document.createElementNS(SVG, "line");
  const readout = document.createElement("div");
  readout.className = "readout";
  cursor.setAttribute("class", "cursor");
  const hide = () => { readout.remove(); cursor.remove(); };
  const show = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    if (at.x < left || at.x > right || at.y < top || at.y > bottom) return hide();
    const scale = (chart.x[1] - chart.x[0]) / (right - left);
    const wanted = chart.x[0] + (at.x - left) * scale;
    const found = chart.lines.map((line) => ({ line, n: nearest(line.x, wanted) }));
    const place = found.map(({ line, n }) => line.x[n]).reduce((a, b) => Math.abs(a - wanted) <= Math.abs(b - wanted) ? a : b);
    const shown = found.filter(({ line, n }) => Math.abs(line.x[n] - place) <= 12 * scale);
    readout.replaceChildren(Math.abs(place) < 1000 ? precise(place) : Math.round(place).toLocaleString("en"));
    for (const { line, n } of shown.sort((a, b) => b.line.y[b.n] - a.line.y[a.n])) {
      const row = document.createElement("div");
      const colour = document.createElement("i");
      colour.style.background = line.colour;
      row.append(colour, `${line.label}  ${(chart.share ? share : precise)(line.y[n])}`);
      readout.append(row);
    }
    const x = left + (place - chart.x[0]) / scale;
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) cursor.setAttribute(name, value);
    picture.append(cursor);
    figure.append(readout);
    const frame = figure.getBoundingClientRect();
    const from = event.clientX - frame.left;
    const beside = from + 14 + readout.offsetWidth > frame.width ? from - 14 - readout.offsetWidth : from + 14;
    readout.style.left = `${Math.max(2, beside) + figure.scrollLeft}px`;
    readout.style.top = `${event.clientY - frame.top + 14}px`;
  };
  figure.addEventListener("pointermove", show);
  figure.addEventListener("pointerdown", show);
  figure.addEventListener("pointerleave", hide);
}

for (const figure of document.querySelectorAll("figure[data-chart]")) follow(figure);
for (const details of document.querySelectorAll("details.print")) addEventListener("beforeprint", () => { details.open = true; });
document.body.dataset.ready = "yes";
