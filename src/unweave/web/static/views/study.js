// A study: any number against any other, distributions by objective and strength, and which numbers agree.

import { get } from "../lib/api.js";
import { recall, remember, toRun, visit } from "../lib/address.js";
import { h, poll, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { column, number } from "../lib/format.js";
import { known, spearman } from "../lib/statistics.js";
import { runs } from "../lib/table.js";
import { heat } from "../charts/heat.js";
import { COLOURS, scatter, violins } from "../charts/points.js";

const MOST_METRICS = 22;
const MOST_GROUPS = 24;

export async function open(place, { name }) {
  const [study] = await Promise.all([get(`/api/studies/${encodeURIComponent(name)}`), runs.refresh()]);
  new Study(place, study);
}

class Study {
  constructor(place, study) {
    this.study = study;
    this.filter = recall("filter") ?? "";
    this.state = h("p", { class: "quiet", role: "status" });
    this.parts = h("div");
    const box = h("input", { type: "search", value: this.filter, placeholder: "Filter runs, as in the table", "aria-label": "Filter runs",
      oninput: () => { this.filter = box.value; remember({ filter: box.value }); this.update(); } });
    show(place, h("div", { class: "heading" }, h("h1", {}, study.title), this.state), h("div", { class: "tools" }, box), this.parts);
    this.update();
    poll(place, 3000, async () => {
      if (await runs.refresh()) this.update();
    });
  }

  update() {
    const asked = this.study.ids ? new Set(this.study.ids) : null;
    this.places = runs.filter(this.filter).filter((place) => !asked || asked.has(runs.ids[place]));
    const done = this.places.filter((place) => runs.value("state", place) === "done").length;
    this.state.textContent = `${number(done)} of ${number(asked ? asked.size : this.places.length)} runs are done`;
    this.numeric = runs.numeric(this.places);
    if (this.places.length < 2 || !this.numeric.length) {
      show(this.parts, h("p", { class: "notice" }, "A study needs two runs or more with numbers that differ. Measure some with: unweave evaluate runs/RUN"));
      return;
    }
    const measured = this.numeric.filter(isMeasured);
    const pick = (given, fallback) => (this.numeric.includes(recall(given)) ? recall(given) : fallback);
    this.x = pick("x", this.numeric.find((name) => name === "objective.beta") ?? measured[0] ?? this.numeric[0]);
    this.y = pick("y", measured.find((name) => name === "scores.mean.mig") ?? measured[0] ?? this.numeric.at(-1));
    this.groups = groupsOf(this.places);
    const none = measured.length ? null : h("p", { class: "notice" }, "Nothing is measured yet, so only settings can be drawn. Measure with: unweave evaluate runs/RUN");
    show(this.parts, none, this.#scatter(), this.#violins(), this.#correlations(measured.length > 1 ? measured : this.numeric), this.#marks());
  }

  #choice(key, words) {
    const select = h("select", { id: `choose-${key}`, onchange: () => { remember({ [key]: select.value }); this.update(); } },
      this.numeric.map((name) => h("option", { value: name, selected: name === this[key] }, column(name))));
    return h("label", {}, `${words} `, select);
  }

  #scatter() {
    const names = [...new Set(this.places.map((place) => runs.value("objective.name", place) ?? "–"))].sort();
    const points = this.places.map((place) => ({ id: runs.ids[place], x: runs.value(this.x, place), y: runs.value(this.y, place), group: runs.value("objective.name", place) ?? "–", words: runs.ids[place] }))
      .filter((one) => known(one.x) && known(one.y));
    const both = spearman(points.map((one) => one.x), points.map((one) => one.y));
    const legend = h("p", { class: "legend" }, names.map((name, at) => h("span", {}, dot(COLOURS[at % COLOURS.length]), ` ${name} `)));
    const marks = ["x", "y"].flatMap((axis) => this.#marked(this[axis]).map((one) => ({ axis, ...one })));
    return h("section", { id: "scatter" }, h("h2", {}, "One against the other"), h("div", { class: "tools" }, this.#choice("x", "across"), this.#choice("y", "up")), legend,
      figure(scatter({ points, groups: names, xName: column(this.x), yName: column(this.y), marks, onpick: (id) => visit(toRun(id)), label: `${column(this.y)} against ${column(this.x)}` }),
        { name: `${this.study.name}-scatter`, caption: `${number(points.length)} runs; rank correlation ${number(both, 2)}. A click on a point opens its run.` }));
  }

  #violins() {
    const marks = this.#marked(this.y);
    const shown = this.groups.map((group) => ({ ...group, values: group.places.map((place) => runs.value(this.y, place)), ids: group.places.map((place) => runs.ids[place]) }))
      .map((group) => ({ ...group, ids: group.ids.filter((_, at) => known(group.values[at])), values: group.values.filter(known) })).filter((group) => group.values.length).slice(0, MOST_GROUPS);
    return h("section", { id: "violins" }, h("h2", {}, "By objective and strength"),
      shown.length ? figure(violins({ groups: shown, yName: column(this.y), marks, onpick: (id) => visit(toRun(id)), label: `${column(this.y)} by objective and strength` }),
        { name: `${this.study.name}-violins`, wide: true, caption: `${column(this.y)}: every dot is a run, the line is the median; a shape is drawn from five runs on.` }) : h("p", { class: "quiet" }, "No run has this number."));
  }

  #correlations(names) {
    const chosen = names.slice(0, MOST_METRICS);
    const columns = chosen.map((name) => this.places.map((place) => runs.value(name, place)));
    const values = columns.map((x) => columns.map((y) => spearman(x, y)));
    const shown = chosen.map(column);
    return h("section", { id: "correlations" }, h("h2", {}, "Which numbers agree"), h("p", {}, "Spearman's rank correlation over these runs. A click on a cell shows the two above."),
      figure(heat({ values, rows: shown, columns: shown, diverging: true, limits: [-1, 1], label: "Rank correlations", onpick: (i, j) => { remember({ x: chosen[j], y: chosen[i] }); this.update(); this.parts.querySelector("#scatter").scrollIntoView({ behavior: "smooth" }); } }),
        { name: `${this.study.name}-rank-correlations`, caption: names.length > MOST_METRICS ? `The first ${MOST_METRICS} of ${names.length} numbers.` : "" }));
  }

  /** Published values of one column: those that name it, nothing that merely mentions it. */
  #marked(name) {
    const fits = (one) => one.column === name || ["", "mean "].some((word) => `${word}${column(name)}`.toLowerCase() === one.what.toLowerCase());
    return this.study.marks.filter((one) => one.value !== null && fits(one)).map((one) => ({ value: one.value, words: one.what }));
  }

  #marks() {
    const told = [this.study.note, ...this.study.protocols].filter(Boolean);
    const protocols = told.length ? h("section", { id: "protocols" }, h("h2", {}, "How it was measured"), h("ul", {}, told.map((words) => h("li", {}, words)))) : null;
    if (!this.study.marks.length) return protocols;
    const rows = this.study.marks.map((one) => h("tr", {}, h("td", {}, one.what), h("td", {}, one.value === null ? one.published : number(one.value)), h("td", {}, number(one.ours)), h("td", {}, one.verdict)));
    return h("section", { id: "published" }, h("h2", {}, "Published beside ours"), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["claim", "published", "ours", "verdict"].map((words) => h("th", {}, words)))), h("tbody", {}, rows))), protocols);
  }
}

const STRENGTHS = ["objective.beta", "objective.capacity", "objective.off_diagonal", "objective.gamma"];

/** Whether a column was measured, rather than set: its family is none of a config's. */
const isMeasured = (name) => name.includes(".") && !["objective", "world", "network", "likelihood", "optimiser", "plan"].includes(name.split(".")[0]);

/** The number of an objective that differs among its runs; where none does, the first it has. */
function strengthOf(places, names) {
  const had = [...STRENGTHS, ...names].filter((name) => names.includes(name) && runs.value(name, places[0]) !== null);
  return had.find((name) => new Set(places.map((place) => runs.value(name, place))).size > 1) ?? had[0];
}

/** Runs by objective and by the strength of its regulariser. */
function groupsOf(places) {
  const names = runs.names().filter((name) => name.startsWith("objective.") && name !== "objective.name");
  const found = new Map();
  const objectives = [...new Set(places.map((place) => runs.value("objective.name", place)))].sort();
  const strengths = new Map(objectives.map((objective) => [objective, strengthOf(places.filter((place) => runs.value("objective.name", place) === objective), names)]));
  for (const place of places) {
    const objective = runs.value("objective.name", place);
    const own = strengths.get(objective);
    const strength = own ? runs.value(own, place) : null;
    const key = `${objective}\n${own ? `${column(own).replace("objective.", "")} ${number(strength)}` : ""}`;
    if (!found.has(key)) found.set(key, { name: key, places: [], order: [objective, strength], colour: COLOURS[objectives.indexOf(objective) % COLOURS.length] });
    found.get(key).places.push(place);
  }
  return [...found.values()].sort((a, b) => String(a.order[0]).localeCompare(String(b.order[0])) || a.order[1] - b.order[1]);
}

function dot(colour) {
  const made = h("i", { class: "swatch" });
  made.style.background = colour;
  return made;
}
