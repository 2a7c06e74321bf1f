// A matrix as colours, its values written in where there is room.

import { h, s, sheet } from "../lib/dom.js";
import { number, shortened } from "../lib/format.js";
import { fitting, wide } from "./axes.js";

const SEQUENTIAL = [[245, 248, 250], [91, 163, 207], [8, 48, 92]];
const DIVERGING = [[140, 59, 0], [232, 144, 90], [247, 247, 245], [91, 163, 207], [8, 69, 126]];

/** heat({values, rows, columns, diverging, splits, onpick}): the first row at the top, what colours mean at the bottom. */
export function heat({ values, rows, columns, diverging = false, limits = null, splits = [null, null], label = "",
  rowName = "", columnName = "", onpick = null }) {
  const longest = (names) => Math.max(...names.map((name) => wide(cut(name))));
  const left = (rowName ? 24 : 8) + longest(rows);
  const cell = Math.max(16, Math.min(46, Math.floor((fitting(640) - left) / columns.length), Math.floor(620 / rows.length)));
  const slanted = longest(columns) > cell - 6;
  // a slanted name leans to the right by three quarters of its length; where that does not fit, names stand upright
  const leaning = Math.max(0, ...columns.map((name, j) => 0.77 * wide(cut(name)) - cell * (columns.length - j - 0.5)));
  const angle = !slanted ? 0 : left + cell * columns.length + leaning + 10 > fitting(800) ? 90 : 40;
  const top = slanted ? 14 + (angle === 90 ? 1 : 0.66) * longest(columns) : 26;
  const right = 10 + (angle === 40 ? leaning : 0);
  const width = Math.max(left + cell * columns.length + right, left + SCALE + 60);
  const below = top + cell * rows.length + (columnName ? 24 : 8);
  const height = below + 30;
  const [low, high] = limits ?? reach(values, diverging);
  const written = cell >= 26 && Math.max(...values.flat().map((value) => (value === null ? 0 : wide(inside(value))))) < cell;
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: onpick ? "group" : "img", "aria-label": `${label}. The table below has every number.`, class: "chart heat" });
  svg.style.maxWidth = `${Math.round(width * 1.15)}px`;
  rows.forEach((name, i) => svg.append(s("text", { class: "tick", x: left - 6, y: top + cell * (i + 0.5) + 4, "text-anchor": "end" }, cut(name))));
  columns.forEach((name, j) => svg.append(columnTick(name, left + cell * (j + 0.5), top - 7, angle)));
  rows.forEach((row, i) => columns.forEach((column, j) => {
    svg.append(...box(values[i][j], { x: left + cell * j, y: top + cell * i, cell, low, high, diverging, written,
      words: `${row} · ${column}: ${number(values[i][j])}`, onpick: onpick && (() => onpick(i, j)) }));
  }));
  svg.append(...lines(splits, { left, top, cell, rows, columns }), ...colours(left, below + 4, low, high, diverging));
  if (columnName) svg.append(s("text", { class: "name", x: left + (cell * columns.length) / 2, y: below - 6, "text-anchor": "middle" }, columnName));
  if (rowName) svg.append(s("text", { class: "name", transform: `translate(11 ${top + (cell * rows.length) / 2}) rotate(-90)`, "text-anchor": "middle" }, rowName));
  return svg;
}

/** The same numbers as a table, for whoever cannot see colours or wants to copy them. */
export const heatTable = ({ values, rows, columns, label }) => sheet(label, ["", ...columns],
  rows.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), values[i].map((value) => h("td", { class: "right" }, number(value))))));

const SCALE = 120;

/** What the colours stand for: a bar from the lowest to the highest value. */
function colours(left, top, low, high, diverging) {
  const parts = Array.from({ length: 24 }, (_, i) => s("rect", { x: left + (i * SCALE) / 24, y: top, width: SCALE / 24 + 0.5, height: 8, fill: `rgb(${blend(diverging ? DIVERGING : SEQUENTIAL, i / 23)})` }));
  const ends = [[low, 0, "start"], [high, SCALE, "end"]].map(([value, at, anchor]) => s("text", { class: "tick", x: left + at, y: top + 21, "text-anchor": anchor }, number(value)));
  return [...parts, ...ends];
}

function reach(values, diverging) {
  const known = values.flat().filter((value) => value !== null);
  if (!known.length) return [0, 1];
  if (diverging) {
    const most = Math.max(1e-12, ...known.map(Math.abs));
    return [-most, most];
  }
  const [low, high] = [Math.min(0, ...known), Math.max(...known)];
  return [low, high > low ? high : low + 1];
}

function columnTick(name, x, y, angle) {
  const given = angle ? { transform: `translate(${x + 4} ${y}) rotate(-${angle})`, "text-anchor": "start" } : { x, y, "text-anchor": "middle" };
  return s("text", { class: "tick", ...given }, cut(name));
}

function box(value, { x, y, cell, low, high, diverging, written, words, onpick }) {
  const share = value === null ? null : (value - low) / (high - low);
  const colour = share === null ? [128, 136, 144] : blend(diverging ? DIVERGING : SEQUENTIAL, share);
  const rect = s("rect", { x: x + 0.5, y: y + 0.5, width: cell - 1, height: cell - 1, rx: 2, fill: `rgb(${colour})`,
    "fill-opacity": share === null ? 0.15 : 1, class: onpick ? "pick" : "" }, s("title", {}, words));
  if (onpick) rect.addEventListener("click", onpick);
  if (!written || value === null) return [rect];
  const dark = 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2] < 135;
  return [rect, s("text", { class: "inside", x: x + cell / 2, y: y + cell / 2 + 3.5, "text-anchor": "middle", fill: dark ? "#fff" : "#1a2430" }, inside(value))];
}

const inside = (value) => (Math.abs(value) >= 100 ? number(Math.round(value)) : value.toFixed(2).replace("-0.00", "0.00").replace("-", "−"));

function blend(anchors, share) {
  const place = Math.max(0, Math.min(1, share)) * (anchors.length - 1);
  const low = Math.min(anchors.length - 2, Math.floor(place));
  return anchors[low].map((from, i) => Math.round(from + (anchors[low + 1][i] - from) * (place - low)));
}

/** Where an encoder ends and a decoder begins. */
function lines([row, column], { left, top, cell, rows, columns }) {
  const made = [];
  if (row) made.push(s("line", { class: "split", x1: left, x2: left + cell * columns.length, y1: top + cell * row, y2: top + cell * row }));
  if (column) made.push(s("line", { class: "split", y1: top, y2: top + cell * rows.length, x1: left + cell * column, x2: left + cell * column }));
  return made;
}

const cut = (name) => shortened(name, 40);
