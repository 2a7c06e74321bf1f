// Scales, ticks and the frame that every chart stands in.

import { s } from "../lib/dom.js";
import { apart } from "../lib/format.js";

/** A scale from values to pixels; `log` needs positive values. */
export function scale([low, high], [from, to], log = false) {
  const bend = log ? Math.log : (value) => value;
  const [first, last] = [bend(low), bend(high)];
  const span = last - first || 1;
  const place = (value) => from + ((bend(value) - first) / span) * (to - from);
  place.invert = (pixel) => {
    const value = first + ((pixel - from) / (to - from)) * span;
    return log ? Math.exp(value) : value;
  };
  place.domain = [low, high];
  place.log = log;
  return place;
}

/** Round values inside a range, about `n` of them. */
export function ticks(place, n = 5) {
  const [low, high] = place.domain;
  return place.log ? logTicks(low, high, n) : evenTicks(low, high, n);
}

/** The same range, widened so that a tick stands at both ends. */
export function rounded([low, high], { n = 5, log = false } = {}) {
  if (!log) {
    const step = evenStep(low, high, n);
    const wider = [round(Math.floor(low / step + slack(low / step)) * step), round(Math.ceil(high / step - slack(high / step)) * step)];
    // a wider range may ask for a wider step
    return evenStep(...wider, n) > step * 1.001 ? rounded(wider, { n }) : wider;
  }
  const around = logTicks(low / 10, high * 10, Infinity);
  return [around.findLast((value) => value <= low * 1.001), around.find((value) => value >= high * 0.999)];
}

/** Ticks of an axis that ends where its values end: both ends, and the round values that leave them room. */
export function endTicks(place, n = 5) {
  const [low, high] = place.domain;
  const room = (high - low) / (1.6 * n);
  return [low, ...evenTicks(low, high, n).filter((value) => value - low > room && high - value > room), high];
}

const evenStep = (low, high, n) => {
  const rough = (high - low) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((size) => size * power >= rough * (1 - 1e-9)) ?? 10);
};

/** What rounding may have done to a number of steps: of a value far from 0 there are many. */
const slack = (steps) => 1e-9 + 4e-16 * Math.abs(steps);

const round = (value) => Number(value.toPrecision(15));

function evenTicks(low, high, n) {
  const step = evenStep(low, high, n);
  const [first, last] = [Math.ceil(low / step - slack(low / step)), Math.floor(high / step + slack(high / step))];
  return Array.from({ length: last - first + 1 }, (_, place) => round((first + place) * step));
}

/** 1, 2 and 5 of every power of ten; of too many only some, both ends among them. */
function logTicks(low, high, n) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const size of [1, 2, 5]) {
      const value = round(size * 10 ** power);
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  const every = Math.ceil((found.length - 1) / (2 * n));
  return every > 1 ? found.filter((_, place) => place === found.length - 1 || (place % every === 0 && place + every / 2 < found.length - 1)) : found;
}

/** A width that fits this screen, so that text keeps its size on a small one. */
export const fitting = (most) => Math.max(300, Math.min(most, document.documentElement.clientWidth - 64));

/** The range of some values with a little room; never empty. */
export function range(values, { zero = false, room = 0.04 } = {}) {
  let low = zero ? 0 : Infinity;
  let high = zero ? 0 : -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  if (low < 0 && low > -1e-9 * high) low = 0;
  if (low === high) return [low - 0.5, high + 0.5];
  const more = (high - low) * room;
  // what is never negative gets no negative axis
  return [low >= 0 ? Math.max(0, low - more) : low - more, high + more];
}

/** Values of an axis whose numbers find room beside each other: both ends, and what fits in between. */
export function spaced(values, place, room) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const kept = sorted.slice(0, 1);
  const last = sorted.at(-1);
  const far = (a, b) => Math.abs(place(a) - place(b)) >= (room(a) + room(b)) / 2;
  for (const value of sorted.slice(1, -1)) if (far(value, kept.at(-1)) && far(value, last)) kept.push(value);
  return sorted.length > 1 && (kept.length > 1 || far(kept[0], last)) ? [...kept, last] : kept;
}

/** Pixels of some words in the letters of ticks, as this browser draws them. */
export function wide(words) {
  pen ??= Object.assign(document.createElement("canvas").getContext("2d"), { font: `11px ${getComputedStyle(document.body).fontFamily}` });
  return pen.measureText(words).width;
}
let pen = null;

/**
 * An SVG with its scales: horizontal lines, numbers along both axes, both ends among them, and their names.
 * x and y are {domain, log, ticks, exact}: `exact` ends the axis where the values end, otherwise at round numbers.
 * `room` is the least there is to be on the left.
 */
export function plot({ width = 520, height = 300, room = 0, right = 14, top = 14, bottom = 40, x = null, y = null, xName = "", yName = "", label = "" }) {
  const nY = height < 200 ? 3 : 5;
  const ys = y && axis(y, [height - bottom, top], nY);
  const yShown = ys ? spaced(y.ticks ?? (y.exact ? endTicks(ys, nY) : ticks(ys, nY)), ys, () => 14) : [];
  const yWords = apart(yShown);
  const left = Math.round(Math.max(room, (yName ? 24 : 10) + 7 + Math.max(10, ...yWords.map(wide))));
  const nX = Math.max(2, Math.floor((width - left) / 95));
  const xs = x && axis(x, [left, width - right], nX);
  const xAll = xs ? (x.ticks ?? (x.exact ? endTicks(xs, nX) : ticks(xs, nX))) : [];
  const xWords = new Map(apart(xAll).map((words, place) => [xAll[place], words]));
  const xShown = xs ? spaced(xAll, xs, (value) => wide(xWords.get(value)) + 12) : [];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
  svg.style.maxWidth = `${Math.round(1.2 * width)}px`;
  for (const [place, value] of yShown.entries()) {
    svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: ys(value), y2: ys(value) }),
      s("text", { class: "tick y", x: left - 7, y: ys(value) + 4, "text-anchor": "end" }, yWords[place]));
  }
  for (const value of xShown) {
    // a number at the very end leans inwards
    const words = xWords.get(value);
    const over = xs(value) + wide(words) / 2 > width;
    svg.append(s("line", { class: "axis", x1: xs(value), x2: xs(value), y1: height - bottom, y2: height - bottom + 4 }),
      s("text", { class: "tick x", x: over ? width - 1 : xs(value), y: height - bottom + 17, "text-anchor": over ? "end" : "middle" }, words));
  }
  svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  if (xName) svg.append(s("text", { class: "name", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, xName));
  if (yName) svg.append(s("text", { class: "name", transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yName));
  return { svg, xs, ys, at: { x: [left, width - right], y: [height - bottom, top] } };
}

function axis({ domain, log = false, exact = false }, pixels, n) {
  return scale(exact ? domain : rounded(domain, { n, log }), pixels, log);
}
