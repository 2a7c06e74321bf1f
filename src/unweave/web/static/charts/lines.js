// Lines over steps: losses, or one line a latent in the colour of its type.

import { cells, h, s, sheet } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { fitting, plot, range, scale } from "./axes.js";

/** lines({x, series: [{name, values, kind, label}]}): names stand at the ends where there is room. */
export function lines({ x, series, xName = "step", yName = "", label = "", height = 260, width = fitting(520), zero = false, log = false }) {
  const named = series.some((one) => one.label);
  const all = series.flatMap((one) => one.values).filter((value) => value !== null);
  const bend = log && all.length > 0 && Math.min(...all) > 0 && Math.max(...all) > LOG_FROM * Math.min(...all);
  const domain = bend ? [Math.min(...all), Math.max(...all)] : range(all, { zero, room: 0 });
  const { svg, xs, ys } = plot({ width, height, right: named ? 34 : 14, x: { domain: range(x, { room: 0 }), ticks: x.length > 1 ? null : x, exact: true }, y: { domain, log: bend }, xName,
    yName: bend ? `${yName}, log scale` : yName, label: `${label}. ${inWords(series)}` });
  for (const one of series) {
    const points = one.values.map((value, place) => (value === null ? null : `${xs(x[place]).toFixed(1)},${ys(value).toFixed(1)}`));
    svg.append(s("polyline", { class: `line ${one.kind ?? "active"}`, points: points.filter(Boolean).join(" ") },
      s("title", {}, `${one.name}: ${number(one.values.at(-1))} at the end`)));
  }
  // a line of one point would not be seen
  if (x.length === 1) svg.append(...series.filter((one) => one.values[0] !== null).map((one) => s("circle", { class: `spot ${one.kind ?? "active"}`, cx: xs(x[0]), cy: ys(one.values[0]), r: 3 })));
  if (named) svg.append(...ends(series, ys, xs(x.at(-1))));
  return svg;
}

/** The numbers behind such lines, at evenly spaced steps where there are many. */
export function linesTable({ x, series, xName = "step", label = "" }) {
  const places = x.length <= MOST_ROWS ? x.map((_, place) => place) : Array.from({ length: MOST_ROWS }, (_, row) => Math.round((row * (x.length - 1)) / (MOST_ROWS - 1)));
  const table = sheet(`${label}, as numbers`, [xName, ...series.map((one) => one.name)],
    places.map((place) => cells(number(x[place]), ...series.map((one) => number(one.values[place])))));
  return h("div", {}, places.length < x.length ? h("p", { class: "quiet" }, `${places.length} of ${number(x.length)} rows`) : null, table);
}

const MOST_ROWS = 50;

/** From where to how many times it a line may reach before its scale is logarithmic. */
const LOG_FROM = 8;

const inWords = (series) => series.slice(0, 12).map((one) => `${one.name}: from ${number(one.values.find((value) => value !== null))} to ${number(one.values.findLast((value) => value !== null))}`).join("; ");

/** Names at the ends of lines, pushed apart where they would touch. */
function ends(series, ys, x) {
  const placed = series.filter((one) => one.label && one.values.at(-1) !== null)
    .map((one) => ({ one, y: ys(one.values.at(-1)) })).sort((a, b) => a.y - b.y);
  for (let i = 1; i < placed.length; i++) placed[i].y = Math.max(placed[i].y, placed[i - 1].y + 11);
  const over = placed.length ? placed.at(-1).y - ys(ys.domain[0]) - 3 : 0;
  if (over > 0) {
    placed.at(-1).y -= over;
    for (let i = placed.length - 2; i >= 0; i--) placed[i].y = Math.min(placed[i].y, placed[i + 1].y - 11);
  }
  return placed.map(({ one, y }) => s("text", { class: `end ${one.kind}`, x: x + 5, y: y + 4 }, one.label));
}

/** A line without anything around it, for a cell of a table. */
export function sparkline(values, { width = 92, height = 24 } = {}) {
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", "aria-hidden": "true", width, height });
  if (values.length < 2) return svg;
  const least = Math.min(...values);
  const high = Math.max(...values);
  const bend = least > 0 && high > 5 * least;
  const ys = scale([least, high], [height - 2, 2], bend);
  const points = values.map((value, i) => `${(1 + (i / (values.length - 1)) * (width - 2)).toFixed(1)},${ys(value).toFixed(1)}`);
  svg.append(s("polyline", { class: "line active", points: points.join(" ") }));
  return svg;
}

/** Two densities over the same bins: mean codes filled, sampled codes as a line, the prior dashed. */
export function histogram({ edges, filled, outline, kind, width = 260, height = 140, label = "" }) {
  const most = Math.max(0.45, Math.min(2.2, Math.max(...filled, ...outline)));
  const { svg, xs, ys } = plot({ width, height, bottom: 36, x: { domain: [edges[0], edges.at(-1)], ticks: [-1, -0.5, 0, 0.5, 1].map((share) => share * edges.at(-1)), exact: true },
    y: { domain: [0, most] }, xName: "value of the latent", yName: "density", label });
  const top = ys.domain[1];
  const cut = (value) => ys(Math.min(value, top)).toFixed(1);
  const steps = (heights) => heights.map((value, i) => `L${xs(edges[i]).toFixed(1)},${cut(value)}L${xs(edges[i + 1]).toFixed(1)},${cut(value)}`).join("");
  const ground = ys(0).toFixed(1);
  const start = `M${xs(edges[0]).toFixed(1)},${ground}`;
  const end = `L${xs(edges.at(-1)).toFixed(1)},${ground}`;
  svg.append(s("path", { class: `area ${kind}`, d: `${start}${steps(filled)}${end}Z` }),
    s("path", { class: "prior", d: normal(xs, ys, edges) }),
    s("path", { class: `line thin ${kind}`, d: `${start}${steps(outline)}${end}` }));
  return svg;
}

/** The numbers behind a histogram, bin by bin. */
export const histogramTable = ({ edges, filled, outline, label }) => sheet(`${label}, as numbers`, ["from", "to", "mean codes", "sampled codes"],
  filled.map((value, bin) => cells(...[edges[bin], edges[bin + 1], value, outline[bin]].map((one) => number(one)))));

function normal(xs, ys, edges) {
  const points = [];
  for (let i = 0; i <= 48; i++) {
    const value = edges[0] + ((edges.at(-1) - edges[0]) * i) / 48;
    points.push(`${xs(value).toFixed(1)},${ys(Math.exp(-0.5 * value * value) / Math.sqrt(2 * Math.PI)).toFixed(1)}`);
  }
  return `M${points.join("L")}`;
}
