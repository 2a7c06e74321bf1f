// A study, world by world: a score by setting, any number against any other, and which numbers agree.

import { get } from "../lib/api.js";
import { recall, remember, toRun, visit } from "../lib/address.js";
import { cells, h, poll, sheet, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { column, columns, number, path, tick } from "../lib/format.js";
import { explained, known, quantile, spearman } from "../lib/statistics.js";
import { runs } from "../lib/table.js";
import { heat, heatTable } from "../charts/heat.js";
import { COLOURS, ENOUGH, scatter, violins } from "../charts/points.js";

const MOST_METRICS = 22;
const MOST_GROUPS = 24;
const MOST_LISTED = 500;

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
    this.worlds = h("div");
    const box = h("input", { type: "search", value: this.filter, placeholder: "Filter runs, as in the table", "aria-label": "Filter runs",
      oninput: () => { this.filter = box.value; remember({ filter: box.value }); this.update(); } });
    show(place, h("div", { class: "heading" }, h("div", {}, h("h1", {}, study.title), study.place ? h("p", { class: "quiet" }, `in ${study.place}`) : null), this.state), h("div", { class: "tools" }, box, this.worlds), this.parts);
    this.update();
    poll(place, 3000, async () => {
      if (await runs.refresh()) this.update();
    });
  }

  update() {
    const asked = this.study.ids ? new Set(this.study.ids) : null;
    const all = runs.filter(this.filter).filter((place) => !asked || asked.has(runs.ids[place]));
    const done = all.filter((place) => runs.value("state", place) === "done").length;
    this.state.textContent = `${number(done)} of ${number(asked ? asked.size : all.length)} ${(asked ? asked.size : all.length) === 1 ? "run" : "runs"} done`;
    this.#chooseWorld(all);
    const found = runs.numeric(this.places).filter(isMeasured);
    const scored = this.places.filter((place) => found.some((name) => known(runs.value(name, place))));
    if (scored.length > 1) this.places = scored; // what differs among runs without numbers is no setting of this study
    this.numeric = runs.numeric(this.places).filter((name) => name !== "step");
    if (this.places.length < 2 || !this.numeric.length) {
      show(this.parts, h("p", { class: "notice" }, "A study needs two runs or more of one world with numbers that differ. Measure some with: unweave evaluate runs/RUN"));
      return;
    }
    this.names = columns(this.numeric, this.study.settings);
    const measured = this.numeric.filter(isMeasured);
    const setting = settingOf(this.places, this.numeric);
    this.groups = groupsOf(this.places, setting, this.mixed ? this.nameOf : null);
    const first = firstView(this.places, this.numeric, setting, this.groups);
    const pick = (given, fallback) => (this.numeric.includes(recall(given)) ? recall(given) : fallback);
    this.x = pick("x", first.x);
    this.y = pick("y", first.y);
    const none = measured.length ? null : h("p", { class: "notice" }, "Nothing is measured yet, so only settings can be drawn. Measure with: unweave evaluate runs/RUN");
    show(this.parts, none, this.#violins(), this.#scatter(), this.#correlations(measured.length > 1 ? measured : this.numeric), this.#marks());
  }

  /** Runs of one world at a time: numbers of different worlds do not go together. */
  #chooseWorld(all) {
    const { names, of } = worldsOf(all);
    const count = (name) => all.filter((place) => of(place) === name && runs.value("state", place) === "done").length;
    const largest = [...names].sort((a, b) => count(b) - count(a))[0];
    const asked = recall("world");
    const world = asked === EVERY || names.includes(asked) ? asked : largest;
    this.mixed = world === EVERY && names.length > 1;
    this.nameOf = of;
    this.places = this.mixed ? all : all.filter((place) => of(place) === world);
    const select = h("select", { id: "choose-world", onchange: () => { remember({ world: select.value }); this.update(); } },
      names.map((name) => h("option", { value: name, selected: name === world }, `${name} (${number(count(name))})`)), h("option", { value: EVERY, selected: this.mixed }, "all of them"));
    show(this.worlds, names.length > 1 ? h("label", {}, "world ", select) : null);
  }

  #choice(key, words) {
    const select = h("select", { id: `choose-${key}`, onchange: () => { remember({ [key.slice(0, 1)]: select.value }); this.update(); } },
      this.numeric.map((name) => h("option", { value: name, selected: name === this[key.slice(0, 1)] }, this.names.get(name))));
    return h("label", {}, `${words} `, select);
  }

  #scatter() {
    const names = [...new Set(this.places.map((place) => runs.value("objective.name", place) ?? "–"))].sort();
    const points = this.places.map((place) => ({ id: runs.ids[place], x: runs.value(this.x, place), y: runs.value(this.y, place), group: runs.value("objective.name", place) ?? "–", words: path(runs.ids[place]) }))
      .filter((one) => known(one.x) && known(one.y));
    const both = this.mixed ? null : spearman(points.map((one) => one.x), points.map((one) => one.y));
    const seen = new Set(points.map((one) => one.group));
    const legend = seen.size > 1 ? h("p", { class: "legend" }, names.map((name, at) => (seen.has(name) ? h("span", {}, dot(COLOURS[at % COLOURS.length]), ` ${name} `) : null))) : null;
    const marks = ["x", "y"].flatMap((axis) => this.#marked(this[axis]).map((one) => ({ axis, ...one })));
    const [x, y] = [this.x, this.y].map((name) => this.names.get(name));
    const list = () => sheet(`${y} against ${x}`, ["run", x, y], points.slice(0, MOST_LISTED).map((one) => cells(h("a", { href: toRun(one.id), "data-link": true }, path(one.id)), number(one.x), number(one.y))));
    return h("section", { id: "scatter" }, h("h2", {}, "One against the other"), h("div", { class: "tools" }, this.#choice("x", "across"), this.#choice("y", "up")), legend,
      points.length ? figure(scatter({ points, groups: names, xName: x, yName: y, marks, onpick: (id) => visit(toRun(id)), label: `${y} against ${x}` }),
        { name: `${this.study.name}-scatter`, table: list, caption: `${number(points.length)} runs${both === null ? "" : `; rank correlation ${number(both, 2)}`}. A click on a point opens its run; arrow keys go from point to point.` })
        : h("p", { class: "quiet" }, `No run has both ${x} and ${y}.`));
  }

  #violins() {
    const marks = this.#marked(this.y);
    const shown = this.groups.map((group) => ({ ...group, values: group.places.map((place) => runs.value(this.y, place)), ids: group.places.map((place) => runs.ids[place]) }))
      .map((group) => ({ ...group, ids: group.ids.filter((_, at) => known(group.values[at])), values: group.values.filter(known) })).filter((group) => group.values.length).slice(0, MOST_GROUPS);
    const name = this.names.get(this.y);
    const list = () => sheet(`${name} by setting`, ["setting", "runs", "least", "median", "largest"], shown.map((group) => {
      const sorted = [...group.values].sort((a, b) => a - b);
      return cells(group.name.replaceAll("\n", ", "), number(sorted.length), number(sorted[0]), number(quantile(sorted, 0.5)), number(sorted.at(-1)));
    }));
    return h("section", { id: "violins" }, h("h2", {}, `${name} by setting`), h("div", { class: "tools" }, this.#choice("y-here", "show")),
      shown.length ? figure(violins({ groups: shown, yName: name, marks, onpick: (id) => visit(toRun(id)), label: `${name} by setting` }),
        { name: `${this.study.name}-by-setting`, wide: true, table: list, caption: `Every dot is a run, the line is the median; a shape is drawn from ${ENOUGH} runs on.` }) : h("p", { class: "quiet" }, "No run has this number."));
  }

  #correlations(names) {
    const title = h("h2", {}, "Which numbers agree");
    if (this.mixed) return h("section", { id: "correlations" }, title, h("p", {}, "Runs of several worlds are not correlated: what differs between worlds would look like agreement. Choose one world above."));
    const often = names.filter((name) => this.places.filter((place) => known(runs.value(name, place))).length >= LEAST_RUNS);
    if (often.length < 2) return h("section", { id: "correlations" }, title, h("p", {}, `No two numbers are known of ${LEAST_RUNS} runs or more.`));
    const chosen = often.slice(0, MOST_METRICS);
    const columns = chosen.map((name) => this.places.map((place) => runs.value(name, place)));
    const values = columns.map((x) => columns.map((y) => spearman(x, y, LEAST_RUNS)));
    const shown = chosen.map((name) => this.names.get(name));
    const drawn = { values, rows: shown, columns: shown, diverging: true, limits: [-1, 1], label: "Rank correlations", onpick: (i, j) => { remember({ x: chosen[j], y: chosen[i] }); this.update(); this.parts.querySelector("#scatter").scrollIntoView({ behavior: "smooth" }); } };
    return h("section", { id: "correlations" }, title, h("p", {}, `Spearman's rank correlation over the ${number(this.places.filter((place) => runs.value("state", place) === "done").length)} runs of ${this.nameOf(this.places[0])}. A click on a cell shows the two above.`),
      figure(heat(drawn), { name: `${this.study.name}-rank-correlations`, wide: true, table: () => heatTable(drawn), caption: often.length > MOST_METRICS ? `The first ${MOST_METRICS} of ${often.length} numbers.` : "" }));
  }

  /** Published values of one column: those that name it, nothing that merely mentions it. */
  #marked(name) {
    const fits = (one) => one.column === name || ["", "mean "].some((word) => `${word}${column(name)}`.toLowerCase() === one.what.toLowerCase());
    return this.study.marks.filter((one) => one.value !== null && fits(one)).map((one) => ({ value: one.value, words: one.what }));
  }

  #marks() {
    const told = [...(this.study.note ? [{ words: this.study.note }] : []), ...this.study.protocols];
    const protocols = told.length ? h("section", { id: "protocols" }, h("h2", {}, "How it was measured"), h("ul", {}, told.map(({ words, title }) => h("li", { title }, words)))) : null;
    if (!this.study.marks.length) return protocols;
    const rows = this.study.marks.map((one) => cells(one.what, one.value === null ? one.published : number(one.value), number(one.ours), one.verdict));
    return h("section", { id: "published" }, h("h2", {}, "Published beside ours"), sheet("Published beside ours", ["claim", "published", "ours", "verdict"], rows), protocols);
  }
}

/** Runs that must have a number before it is correlated with another. */
const LEAST_RUNS = 5;

const STRENGTHS = ["objective.beta", "objective.capacity", "objective.off_diagonal", "objective.gamma"];

const CONFIG = ["objective", "world", "network", "likelihood", "optimiser", "plan"];

/** Whether a column was measured, rather than set or spent: its family is none of a config's. */
const isMeasured = (name) => name.includes(".") && ![...CONFIG, "cost"].includes(name.split(".")[0]);

const isSetting = (name) => CONFIG.includes(name.split(".")[0]) || ["latents", "steps", "batch_size", "warmup", "holdout"].includes(name);

const EVERY = "*";

/** The names of all worlds among some runs, options that differ among them, and which one a run has. */
function worldsOf(places) {
  const base = (place) => runs.value("world.called", place) ?? runs.value("world.name", place) ?? "–";
  const options = runs.names().filter((name) => name.startsWith("world.") && !["world.name", "world.called", "world.path"].includes(name));
  const differing = new Map([...new Set(places.map(base))].map((name) => {
    const own = places.filter((place) => base(place) === name);
    return [name, options.filter((option) => new Set(own.map((place) => runs.value(option, place))).size > 1)];
  }));
  const of = (place) => [base(place), ...differing.get(base(place)).filter((option) => runs.value(option, place) !== null).map((option) => `${option.slice(6).replaceAll("_", " ")} ${tick(runs.value(option, place))}`)].join(", ");
  return { names: [...new Set(places.map(of))].sort(), of };
}

/** The number that was varied on purpose: one of the objective's before any other, one of many values before one of few. */
function settingOf(places, numeric) {
  const values = (name) => new Set(places.map((place) => runs.value(name, place)).filter((value) => value !== null));
  return numeric.filter(isSetting).sort((a, b) => b.startsWith("objective.") - a.startsWith("objective.") || values(b).size - values(a).size)[0] ?? null;
}

/** What a study opens on: the score that follows most closely what was varied. */
function firstView(places, numeric, setting, groups) {
  const of = new Map(groups.flatMap((group) => group.places.map((place) => [place, group.name])));
  const share = (name) => explained(places.map((place) => runs.value(name, place)), places.map((place) => of.get(place)));
  const measured = numeric.filter(isMeasured);
  const scores = [/^scores(@[^.]+)?\.mean\./, /^scores[.@]/, /./].map((family) => measured.filter((name) => family.test(name))).find((list) => list.length) ?? [];
  const shares = new Map(scores.map((name) => [name, share(name)]));
  const ranked = [...scores].sort((a, b) => shares.get(b) - shares.get(a) || b.endsWith(".mig") - a.endsWith(".mig"));
  const y = ranked[0] ?? measured[0] ?? numeric.at(-1);
  // a strength that only some objectives have says little: then one score against another
  const common = setting && places.filter((place) => runs.value(setting, place) !== null).length > 0.6 * places.length;
  return { x: (common ? setting : null) ?? ranked[1] ?? setting ?? numeric.find((name) => name !== y) ?? numeric[0], y };
}

/** The number of an objective that differs among its runs; where none does, the first it has. */
function strengthOf(places, names) {
  const had = [...STRENGTHS, ...names].filter((name) => names.includes(name) && runs.value(name, places[0]) !== null);
  return had.find((name) => new Set(places.map((place) => runs.value(name, place))).size > 1) ?? had[0];
}

/** Runs by objective, by the strength of its regulariser, and by what else is varied. */
function groupsOf(places, setting, world) {
  const names = runs.names().filter((name) => name.startsWith("objective.") && name !== "objective.name");
  const found = new Map();
  const objectives = [...new Set(places.map((place) => runs.value("objective.name", place)))].sort();
  const strengths = new Map(objectives.map((objective) => [objective, strengthOf(places.filter((place) => runs.value("objective.name", place) === objective), names)]));
  for (const place of places) {
    const objective = runs.value("objective.name", place);
    const varied = [strengths.get(objective), setting?.startsWith("objective.") ? null : setting].filter((name) => name && runs.value(name, place) !== null);
    const values = varied.map((name) => runs.value(name, place));
    const words = varied.map((name, at) => `${column(name)} ${tick(values[at])}`).join(", ");
    const key = [objective, words, world?.(place)].filter(Boolean).join("\n");
    if (!found.has(key)) found.set(key, { name: key, places: [], order: [world?.(place) ?? "", objective, ...values], colour: COLOURS[objectives.indexOf(objective) % COLOURS.length] });
    found.get(key).places.push(place);
  }
  return [...found.values()].sort((a, b) => inOrder(a.order, b.order));
}

function inOrder(first, second) {
  for (const [at, one] of first.entries()) {
    const other = second[at];
    const sign = typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other));
    if (sign) return sign;
  }
  return 0;
}

function dot(colour) {
  const made = h("i", { class: "swatch" });
  made.style.background = colour;
  return made;
}
