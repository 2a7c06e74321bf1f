// Lines over steps: losses, or one line a latent in the colour of its type.

import { s } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { fitting, frame, inner, range, scale } from "./axes.js";

/** lines({x, series: [{name, values, kind, label}]}): names stand at the ends where there is room. */
export function lines({ x, series, xName = "step", yName = "", label = "", height = 260, width = fitting(520), zero = false, log = false }) {
  const named = series.some((one) => one.label);
  const box = { width, height, right: named ? 34 : 14 };
  const at = inner(box);
  const all = series.flatMap((one) => one.values);
  const positive = all.filter((value) => value > 0);
  const bend = log && positive.length === all.filter((value) => value !== null).length;
  const xs = scale(range(x, { room: 0 }), at.x);
  const ys = scale(bend ? [Math.min(...positive), Math.max(...positive)] : range(all, { zero }), at.y, bend);
  const svg = frame({ ...box, x: xs, y: ys, xName, yName, label });
  for (const one of series) {
    const points = one.values.map((value, place) => (value === null || (bend && value <= 0) ? null : `${xs(x[place]).toFixed(1)},${ys(value).toFixed(1)}`));
    svg.append(s("polyline", { class: `line ${one.kind ?? "active"}`, points: points.filter(Boolean).join(" ") },
      s("title", {}, `${one.name}: ${number(one.values.at(-1))} at the end`)));
  }
  if (named) svg.append(...ends(series, ys, xs(x.at(-1))));
  return svg;
}

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
export function histogram({ edges, filled, outline, kind, width = 240, height = 110, label = "" }) {
  const box = { width, height, left: 6, right: 6, top: 8, bottom: 20 };
  const at = inner(box);
  const most = Math.max(0.45, Math.min(2.2, Math.max(...filled, ...outline)));
  const xs = scale([edges[0], edges.at(-1)], at.x);
  const ys = scale([0, most], at.y);
  const svg = frame({ ...box, x: xs, y: null, xTicks: [-3, 0, 3], label });
  const cut = (value) => ys(Math.min(value, most)).toFixed(1);
  const steps = (heights) => heights.map((value, i) => `L${xs(edges[i]).toFixed(1)},${cut(value)}L${xs(edges[i + 1]).toFixed(1)},${cut(value)}`).join("");
  const ground = ys(0).toFixed(1);
  const start = `M${xs(edges[0]).toFixed(1)},${ground}`;
  const end = `L${xs(edges.at(-1)).toFixed(1)},${ground}`;
  svg.append(s("path", { class: `area ${kind}`, d: `${start}${steps(filled)}${end}Z` }),
    s("path", { class: "prior", d: normal(xs, ys, edges) }),
    s("path", { class: `line thin ${kind}`, d: `${start}${steps(outline)}${end}` }));
  return svg;
}

function normal(xs, ys, edges) {
  const points = [];
  for (let i = 0; i <= 48; i++) {
    const value = edges[0] + ((edges.at(-1) - edges[0]) * i) / 48;
    points.push(`${xs(value).toFixed(1)},${ys(Math.exp(-0.5 * value * value) / Math.sqrt(2 * Math.PI)).toFixed(1)}`);
  }
  return `M${points.join("L")}`;
}
