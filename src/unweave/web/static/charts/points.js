// Runs as points: a scatter of one number against another, and violins of one number by group.

import { s } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { density, known, quantile } from "../lib/statistics.js";
import { fitting, plot, range, wide } from "./axes.js";

/** One colour a group, lighter on a dark ground. */
export const COLOURS = Array.from({ length: 8 }, (_, place) => `var(--group-${place})`);
const MOST = 4000;

/** Runs from which on a distribution has a shape. */
export const ENOUGH = 8;

/** scatter({points: [{id, x, y, group, words}], marks, onpick}): a click on a point opens its run. */
export function scatter({ points, groups, xName, yName, marks = [], onpick, label, width = fitting(900), height = 400 }) {
  const shown = points.length > MOST ? points.filter((_, i) => i % Math.ceil(points.length / MOST) === 0) : points;
  const column = (axis) => [...points.map((one) => one[axis]), ...marks.filter((one) => one.axis === axis).map((one) => one.value)];
  const across = column("x");
  const least = Math.min(...across);
  // strengths are tried by doubling
  const log = least > 0 && Math.max(...across) >= 16 * least;
  const few = [...new Set(across)];
  const x = log ? { domain: [least / 1.2, Math.max(...across) * 1.2], log, exact: true } : { domain: range(across), exact: true };
  const short = few.every((value) => Number(value.toPrecision(3)) === value); // settings are, what was measured is not
  if (few.length <= 8 && short) x.ticks = few;
  else if (!log) x.exact = false;
  const { svg, xs, ys, at } = plot({ width, height, x, y: { domain: range(column("y")) }, xName, yName, label });
  for (const one of marks) svg.append(...mark(one, xs, ys, at));
  const size = shown.length > 1500 ? 2.2 : shown.length > 200 ? 3.4 : 5;
  const dots = [...shown].sort((a, b) => a.x - b.x || a.y - b.y).map((one) => {
    const words = `${one.words}: ${xName} ${number(one.x)}, ${yName} ${number(one.y)}`;
    const dot = s("circle", { class: "dot", cx: xs(one.x).toFixed(1), cy: ys(one.y).toFixed(1), r: size,
      fill: COLOURS[groups.indexOf(one.group) % COLOURS.length], role: "link", "aria-label": words, "data-run": one.id }, s("title", {}, words));
    dot.addEventListener("click", () => onpick(one.id));
    return dot;
  });
  svg.append(...dots);
  svg.setAttribute("role", "group");
  oneStop(dots);
  return svg;
}

/** Many marks as one stop of the Tab key: arrow keys go from one to the next, Enter opens. */
export function oneStop(marks) {
  marks.forEach((mark, at) => {
    mark.setAttribute("tabindex", at ? "-1" : "0");
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter") mark.dispatchEvent(new MouseEvent("click"));
      else if (step) marks[Math.max(0, Math.min(marks.length - 1, at + step))].focus();
      else return;
      event.preventDefault();
    });
  });
}

/** A published value as a dashed line with its name. */
function mark({ axis, value, words }, xs, ys, at) {
  const line = axis === "x"
    ? { x1: xs(value), x2: xs(value), y1: at.y[0], y2: at.y[1] }
    : { x1: at.x[0], x2: at.x[1], y1: ys(value), y2: ys(value) };
  const text = axis === "x" ? { x: xs(value) + 4, y: at.y[1] + 10 } : { x: at.x[1], y: ys(value) - 4, "text-anchor": "end" };
  return [s("line", { class: "mark", ...line }, s("title", {}, `published: ${words}, ${number(value)}`)),
    s("text", { class: "tick mark", ...text }, "published")];
}

/** violins({groups: [{name, values, ids, colour}], onpick}): density, quartiles, and the runs themselves. */
export function violins({ groups, yName, marks = [], onpick, label, height = 360 }) {
  const width = Math.max(fitting(560), Math.min(1100, 70 + groups.length * (innerWidth < 760 ? 84 : 104)));
  const lines = groups.map((one) => one.name.split("\n"));
  const slanted = Math.max(...lines.flat().map(wide)) > (width - 70) / groups.length - 6;
  const longest = Math.max(...lines.map((words) => wide(words.join(", "))));
  const bottom = slanted ? 24 + 0.66 * longest : 22 + 14 * Math.max(...lines.map((words) => words.length));
  const room = slanted ? Math.max(0, ...lines.map((words, place) => 0.77 * wide(words.join(", ")) - ((width - 70) / groups.length) * (place + 0.3))) : 0;
  const { svg, ys, at } = plot({ width, height: height + (slanted ? 0.66 * longest - 20 : 0), bottom, room, y: { domain: range([...groups.flatMap((one) => one.values), ...marks.map((one) => one.value)]) }, yName, label });
  for (const one of marks) svg.append(...mark({ ...one, axis: "y" }, null, ys, at));
  const share = (at.x[1] - at.x[0]) / groups.length;
  groups.forEach((group, place) => {
    const middle = at.x[0] + share * (place + 0.5);
    svg.append(...violin(group, middle, Math.min(34, share * 0.42), ys, onpick));
    if (slanted) svg.append(s("text", { class: "tick", transform: `translate(${middle + 4} ${at.y[0] + 14}) rotate(-40)`, "text-anchor": "end" }, lines[place].join(", ")));
    else lines[place].forEach((words, line) => svg.append(s("text", { class: "tick", x: middle, y: at.y[0] + 18 + 14 * line, "text-anchor": "middle" }, words)));
  });
  return svg;
}

function violin({ values, ids, colour }, middle, half, ys, onpick) {
  const sorted = [...values].sort((a, b) => a - b);
  const made = [];
  if (values.length >= ENOUGH && sorted[0] < sorted.at(-1)) {
    const points = Array.from({ length: 33 }, (_, i) => sorted[0] + ((sorted.at(-1) - sorted[0]) * i) / 32);
    const thick = density(values.length > 800 ? values.filter((_, i) => i % Math.ceil(values.length / 800) === 0) : values, points);
    const most = Math.max(...thick);
    const side = (sign) => points.map((value, i) => `${(middle + (sign * half * thick[i]) / most).toFixed(1)},${ys(value).toFixed(1)}`);
    made.push(s("path", { class: "violin", fill: colour, d: `M${[...side(-1), ...side(1).reverse()].join("L")}Z` }));
  }
  const few = values.length > 300 ? [] : values;
  few.forEach((value, i) => {
    const shift = (((i * 0.618) % 1) - 0.5) * half * 0.7;
    const dot = s("circle", { class: "dot", cx: (middle + shift).toFixed(1), cy: ys(value).toFixed(1), r: 3, fill: colour, "data-run": ids[i] }, s("title", {}, `${ids[i]}: ${number(value)}`));
    dot.addEventListener("click", () => onpick(ids[i]));
    made.push(dot);
  });
  const median = ys(quantile(sorted, 0.5));
  made.push(s("line", { class: "median", x1: middle - half * 0.6, x2: middle + half * 0.6, y1: median, y2: median }, s("title", {}, `median ${number(quantile(sorted, 0.5))} of ${values.length}`)));
  return made;
}

