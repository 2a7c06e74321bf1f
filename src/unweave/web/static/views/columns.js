// A run on a table: sliders for every latent, and the columns that follow the hand, each in its own units.

import { decodeRows, get, run as address } from "../lib/api.js";
import { recall, remember } from "../lib/address.js";
import { h, s, settled, sheet, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { inColumn, number } from "../lib/format.js";
import { newest } from "../lib/pictures.js";
import { lines, linesTable } from "../charts/lines.js";
import { REACH } from "./sliders.js";
import { codesAlong, STEPS, WIDTH } from "./strips.js";

const MOST_CHARTS = 24;
const WIDEST = 3;

/** The code that is being steered, and the row that the model makes of it. */
export class ColumnSteering {
  constructor(run, found) {
    this.run = run;
    this.found = found;
    this.code = this.begun = [...found.start];
    this.sliders = new Map();
    this.keep = settled(250, () => remember({ code: this.code.map((value) => Number(value.toFixed(3))).join(",") }));
    this.row = newest((code) => decodeRows(run.id, [code]), (rows, took, problem) => this.#shown(rows, problem));
    this.element = this.#build();
  }

  async start() {
    const given = (recall("code") ?? "").split(",").map(Number);
    const valid = recall("code") && given.length === this.run.latents && given.every(Number.isFinite);
    await this.#from(this.found.start_row);
    if (valid) this.set(given, false);
    await this.#examples();
  }

  set(code, kept = true) {
    this.code = [...code];
    for (const [latent, { slider, output }] of this.sliders) {
      slider.value = code[latent];
      output.textContent = (Math.abs(code[latent]) < 0.005 ? "0.00" : code[latent].toFixed(2)).replace("-", "−");
    }
    this.row(this.code);
    if (kept) this.keep();
  }

  #build() {
    this.lines = this.run.columns.map((column) => ({ column, now: h("td", { class: "right" }, "–"), before: h("td", { class: "right quiet" }, "–"), bar: s("rect", { y: 2, height: 8, x: 50, width: 0, fill: "currentColor", opacity: 0.75 }) }));
    const rows = this.lines.map(({ column, now, before, bar }) => h("tr", {}, h("td", {}, column.name), now,
      h("td", {}, s("svg", { viewBox: "0 0 100 12", width: 120, height: 14, "aria-hidden": "true" }, s("line", { x1: 50, x2: 50, y1: 0, y2: 12, stroke: "currentColor", opacity: 0.4 }), bar)), before));
    const listed = sheet("The decoded row", ["column", "decoded", "from its mean", "started from"], rows);
    listed.style.setProperty("max-height", "64vh");
    listed.style.setProperty("overflow-y", "auto");
    this.told = h("p", { class: "quiet", role: "status" });
    this.choice = h("select", { onchange: () => this.#from(Number(this.choice.value)) });
    const back = h("button", { type: "button", onclick: () => this.set(this.begun) }, "Back to the start");
    const zero = h("button", { type: "button", onclick: () => this.set(this.code.map(() => 0)) }, "All to 0");
    return h("section", { class: "steer table", id: "steer" },
      h("div", { class: "stage" }, h("label", {}, "start from ", this.choice), listed,
        h("p", { class: "quiet about-bars" }, `A bar reaches its end ${WIDEST} deviations from the column's mean.`), this.told),
      h("div", { class: "controls" }, h("h2", {}, "Move the latents"), h("p", { class: "quiet" }, "The busiest first. Find out which columns each one moves, then try a passive one."),
        h("div", { class: "buttons" }, back, zero), h("div", { class: "sliders" }, this.found.latents.map((one) => this.#slider(one)))));
  }

  #slider(one) {
    const name = `latent-${one.latent}`;
    const output = h("output", { for: name });
    const slider = h("input", { type: "range", id: name, min: -REACH, max: REACH, step: 0.05, "aria-label": `latent ${one.latent}, ${one.type}`,
      oninput: () => this.set(this.code.map((value, latent) => (latent === one.latent ? Number(slider.value) : value))) });
    this.sliders.set(one.latent, { slider, output });
    return h("div", { class: `slider ${one.type}` },
      h("label", { for: name }, h("b", {}, `latent ${one.latent}`), h("span", { class: `chip ${one.type}` }, one.type)),
      slider, output, h("span", { class: "note" }, one.kl < 0.01 ? "KL under 0.01 nats" : `KL ${number(one.kl)} nats`));
  }

  #shown(rows, problem) {
    this.told.textContent = problem ? problem.message : "";
    if (problem) return;
    this.lines.forEach(({ column, now, bar }, place) => {
      now.textContent = inColumn(rows[0][place], column.deviation);
      const reach = 50 * Math.max(-1, Math.min(1, (rows[0][place] - column.mean) / column.deviation / WIDEST));
      bar.setAttribute("x", 50 + Math.min(0, reach));
      bar.setAttribute("width", Math.abs(reach));
    });
  }

  async #examples() {
    const told = await get(address(this.run.id, "/examples?n=12&seed=0"));
    const words = (place) => told.names.map((name, i) => `${name} ${number(told.factors[place][i])}`).join(", ");
    const rows = told.rows.includes(this.found.start_row) ? [] : [h("option", { value: String(this.found.start_row) }, `row ${this.found.start_row + 1}`)];
    show(this.choice, rows, told.rows.map((row, place) => h("option", { value: String(row) }, [`row ${row + 1}`, words(place)].filter(Boolean).join(": "))));
    this.choice.value = String(this.found.start_row);
  }

  async #from(row) {
    const [told, rows] = await Promise.all([get(address(this.run.id, `/examples?rows=${row}`)), get(address(this.run.id, `/examples/rows?rows=${row}`))]);
    this.begun = told.codes[0];
    this.lines.forEach(({ column, before }, place) => { before.textContent = inColumn(rows.rows[0][place], column.deviation); });
    this.set(this.begun);
  }
}

/** One chart a column: its value along every latent, around the example nearest the middle. */
export async function columnCharts(place, run, found) {
  const latents = found.latents.map((one) => one.latent);
  const rows = await decodeRows(run.id, codesAlong(found.start, latents));
  const x = Array.from({ length: STEPS }, (_, step) => -WIDTH + (2 * WIDTH * step) / (STEPS - 1));
  const moves = (column) => Math.max(...latents.map((_, latent) => {
    const values = rows.slice(latent * STEPS, (latent + 1) * STEPS).map((row) => row[column]);
    return (Math.max(...values) - Math.min(...values)) / run.columns[column].deviation;
  }));
  const chosen = run.columns.map((_, column) => column).sort((a, b) => moves(b) - moves(a)).slice(0, MOST_CHARTS).sort((a, b) => a - b);
  const charts = chosen.map((column) => {
    const series = found.latents.map((one, place) => ({ name: `latent ${one.latent}`, kind: one.type, label: one.type === "passive" ? "" : String(one.latent),
      values: rows.slice(place * STEPS, (place + 1) * STEPS).map((row) => row[column]) }));
    const { name } = run.columns[column];
    const drawn = { x, series, xName: "value of the latent", yName: name, label: `${name} along every latent`, height: 190, width: 300 };
    return figure(lines(drawn), { name: `${run.id}-${name}`, caption: name, table: () => linesTable(drawn) });
  });
  const left = run.columns.length - chosen.length;
  place.append(h("div", { class: "small-figures" }, charts), left > 0 ? h("p", { class: "quiet" }, `${left} columns that move less are not shown.`) : "");
}
