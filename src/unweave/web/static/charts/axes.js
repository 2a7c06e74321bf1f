// Scales, ticks and the frame that every chart stands in.

import { s } from "../lib/dom.js";
import { tick } from "../lib/format.js";

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
  if (place.log) return logTicks(low, high, n);
  const rough = (high - low) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((size) => size * power >= rough) ?? 10);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) {
    found.push(Number(value.toPrecision(12)));
  }
  return found;
}

function logTicks(low, high, n) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const size of [1, 2, 5]) {
      const value = size * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found.length > 2 * n ? found.filter((value) => Math.log10(value) % 1 === 0) : found;
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
  if (low === high) return [low - 0.5, high + 0.5];
  const more = (high - low) * room;
  return [zero && low === 0 ? 0 : low - more, high + more];
}

/** An SVG with horizontal lines, numbers along both axes and their names. */
export function frame({ width = 520, height = 300, left = 52, right = 14, top = 12, bottom = 40, x, y, xName = "",
  yName = "", xTicks, yTicks, label = "" }) {
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
  svg.style.maxWidth = `${Math.round(1.2 * width)}px`;
  for (const value of yTicks ?? (y ? ticks(y, height < 200 ? 3 : 5) : [])) {
    const at = y(value);
    svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      s("text", { class: "tick", x: left - 7, y: at + 4, "text-anchor": "end" }, tick(value)));
  }
  for (const value of xTicks ?? (x ? ticks(x, Math.max(3, Math.floor(width / 110))) : [])) {
    svg.append(s("text", { class: "tick", x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, tick(value)));
  }
  svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  if (xName) svg.append(s("text", { class: "name", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xName));
  if (yName) svg.append(s("text", { class: "name", transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yName));
  return svg;
}

/** The inner rectangle of a frame, for scales. */
export const inner = ({ width = 520, height = 300, left = 52, right = 14, top = 12, bottom = 40 } = {}) =>
  ({ x: [left, width - right], y: [height - bottom, top] });
