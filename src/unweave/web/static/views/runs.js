// The table of runs: live filters, any column to sort by, only the rows on the screen are drawn.

import { get } from "../lib/api.js";
import { recall, remember, toRun, visit } from "../lib/address.js";
import { announce, h, poll, show } from "../lib/dom.js";
import { ago, column, number, path, shortened } from "../lib/format.js";
import { runs } from "../lib/table.js";
import { wide } from "../charts/axes.js";
import { sparkline } from "../charts/lines.js";

const ROW = 38;
const FIRST = ["state", "world.name", "objective.name", "objective.beta", "latents", "latents.active", "latents.passive",
  "seed"];
const SCORES = /^scores(@[^.]+)?\.mean\.(mig|dci(\.disentanglement)?|factor_vae_score)$/;
const sparks = new Map();

export async function open(place) {
  await runs.refresh();
  new Table(place);
}

class Table {
  constructor(place) {
    this.place = place;
    this.chosen = new Set((recall("select") ?? "").split(",").filter(Boolean));
    this.sort = recall("sort") ?? "modified";
    this.down = recall("order") !== "up";
    this.columns = (recall("columns") ?? "").split(",").filter(Boolean);
    this.active = 0;
    this.drawn = { first: -1, last: -1 };
    this.#build();
    this.update();
    poll(place, 1500, async () => {
      if (await runs.refresh()) this.update();
    });
  }

  #build() {
    this.filter = h("input", { type: "search", id: "filter", placeholder: "Filter: beta_vae, seed=0, beta>4, mig>0.2 …", value: recall("filter") ?? "",
      "aria-label": "Filter runs", autocomplete: "off", spellcheck: "false" });
    this.filter.addEventListener("input", () => {
      this.active = 0;
      this.scroll.scrollTop = 0;
      this.update();
      remember({ filter: this.filter.value });
    });
    this.count = h("span", { class: "quiet", role: "status" });
    this.compare = h("button", { type: "button", class: "main", onclick: () => this.#compare() }, "Compare");
    this.chooser = h("details", { class: "chooser" }, h("summary", {}, "Columns"), h("div", { class: "choices" }));
    this.states = h("div", { class: "states" });
    this.head = h("div", { class: "row head", role: "row" });
    this.body = h("div", { class: "body", role: "rowgroup" });
    this.scroll = h("div", { class: "runs-scroll", tabindex: "0", role: "grid", "aria-label": "Runs. Arrow keys move, Enter opens, Space selects." },
      h("div", { class: "sheet", role: "presentation" }, h("div", { class: "top", role: "rowgroup" }, this.head), this.body));
    this.scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroll.addEventListener("keydown", (event) => this.#key(event));
    this.empty = h("div", { class: "empty" });
    show(this.place, h("div", { class: "heading" }, h("h1", {}, "Runs"), this.count),
      h("div", { class: "tools" }, this.filter, this.states, this.chooser, this.compare), this.scroll, this.empty);
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.scroll);
  }

  /** Filter, sort, and draw again. */
  update() {
    const names = runs.names();
    if (!this.columns.length) this.shown = [...FIRST.filter((name) => names.includes(name)), ...runs.mostKnown(names.filter((name) => SCORES.test(name))).slice(0, 2)];
    else this.shown = this.columns.filter((name) => names.includes(name));
    this.numbers = new Set([...this.shown, "id", "modified"].filter(isNumeric));
    const found = runs.filter(this.filter.value);
    this.rows = runs.sorted(found, this.sort, this.down);
    const all = Math.max(runs.found, runs.ids.length);
    const reading = runs.complete ? "" : `, reading ${number(all)} folders …`;
    this.count.textContent = `${number(found.length)} of ${number(runs.ids.length)} runs${reading}`;
    this.scroll.setAttribute("aria-rowcount", found.length + 1);
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.drawn = { first: -1, last: -1 };
    this.#head();
    this.#states(found);
    this.#choices(names);
    this.#chosen();
    this.#empty(found.length);
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 6);
    const last = Math.min(this.rows.length, first + Math.ceil(this.scroll.clientHeight / ROW) + 14);
    if (first === this.drawn.first && last === this.drawn.last) return;
    this.drawn = { first, last };
    show(this.body, this.rows.slice(first, last).map((place, i) => this.#row(place, first + i)));
    this.#sparks(this.rows.slice(first, last).map((place) => runs.ids[place]));
  }

  #head() {
    const cell = (name) => {
      const sorted = this.sort === name;
      return h("div", { class: `cell ${this.numbers.has(name) && name !== "modified" ? "right" : ""}`, role: "columnheader", "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" },
        h("button", { type: "button", title: name, tabindex: "-1", onclick: () => this.#sort(name) }, column(name), sorted ? (this.down ? " ↓" : " ↑") : ""));
    };
    const plain = (words, shown) => h("div", { class: "cell", role: "columnheader" }, shown ? words : h("span", { class: "unseen" }, words));
    this.body.parentElement.style.setProperty("--columns", this.#grid());
    show(this.head, plain("selected", false), cell("id"), plain("loss", true), this.shown.map(cell), cell("modified"));
  }

  /** Every column as wide as its longest word, within reason. */
  #grid() {
    const longest = (name, shown) => this.rows.slice(0, 3000).reduce((most, place) => { const words = shown(runs.value(name, place)); return words.length > most.length ? words : most; }, "");
    const room = (words, size) => (1.06 * wide(words) * size) / 11;
    const pixels = (name) => Math.ceil(Math.max(1.1 * room(`${column(name)}${this.sort === name ? " ↓" : ""}`, 12.3) + 20, name === "state" ? 1.1 * room(longest(name, (value) => (value === "running" ? "running 100 %" : String(value))), 13) + 42 : Math.min(260, room(longest(name, number), 13.5) + 20)));
    const most = innerWidth < 760 ? 24 : 52;
    const names = Math.ceil(Math.max(130, room(longest("id", (id) => shortened(path(id), most)), 15) + 26));
    const last = Math.ceil(room("59 minutes ago", 13.5) + 20);
    const total = () => 38 + names + 104 + last + this.shown.reduce((sum, name) => sum + pixels(name), 0);
    // scores that nobody asked for are shown where there is room
    while (!this.columns.length && SCORES.test(this.shown.at(-1)) && total() > this.scroll.clientWidth) this.shown.pop();
    return `38px minmax(${names}px, 1fr) 104px ${this.shown.map((name) => `${pixels(name)}px`).join(" ")} ${last}px`;
  }

  #row(place, at) {
    const id = runs.ids[place];
    const box = h("input", { type: "checkbox", checked: this.chosen.has(id), "aria-label": `Select ${id}`, tabindex: "-1", onchange: () => this.#choose(id) });
    const cell = (kind, ...inner) => h("div", { class: `cell ${kind}`, role: "gridcell" }, inner);
    const spark = cell("");
    spark.dataset.spark = id;
    this.#spark(spark, sparks.get(key(id)));
    const row = h("div", { class: `row ${at === this.active ? "here" : ""}`, role: "row", "aria-rowindex": at + 2, "data-run": id },
      cell("", box), cell("name", h("a", { href: toRun(id), title: path(id), "data-link": true, tabindex: "-1" }, shortened(path(id), innerWidth < 760 ? 24 : 52))), spark,
      this.shown.map((name) => this.#cell(name, place)), cell("quiet", ago(runs.value("modified", place) ?? 0)));
    row.style.top = `${at * ROW}px`;
    return row;
  }

  #spark(cell, values) {
    show(cell, values ? sparkline(values) : null, values?.length ? h("span", { class: "unseen" }, `ends at ${number(values.at(-1))}`) : null);
  }

  #cell(name, place) {
    const value = runs.value(name, place);
    if (name !== "state") return h("div", { class: `cell ${this.numbers.has(name) ? "right" : ""}`, role: "gridcell" }, number(value));
    const step = runs.value("step", place);
    const share = value === "running" && step ? ` ${Math.round((100 * step) / (runs.value("updates", place) || 1))} %` : "";
    return h("div", { class: "cell", role: "gridcell" }, h("span", { class: `state ${value}`, title: runs.value("failure", place) }, value + share));
  }

  async #sparks(ids) {
    const missing = ids.filter((id) => !sparks.has(key(id))).slice(0, 60);
    if (!missing.length) return;
    missing.forEach((id) => sparks.set(key(id), []));
    const { losses } = await get(`/api/sparklines?${missing.map((id) => `ids=${encodeURIComponent(id)}`).join("&")}`).catch(() => ({ losses: {} }));
    for (const [id, values] of Object.entries(losses)) {
      sparks.set(key(id), values);
      const cell = this.body.querySelector(`[data-spark="${CSS.escape(id)}"]`);
      if (cell) this.#spark(cell, values);
    }
  }

  #sort(name) {
    this.down = this.sort === name ? !this.down : this.numbers.has(name) || name === "modified";
    this.sort = name;
    remember({ sort: name, order: this.down ? null : "up" });
    this.update();
    announce(`sorted by ${column(name)}`);
  }

  #states(found) {
    const counts = {};
    for (const place of found) counts[runs.value("state", place)] = (counts[runs.value("state", place)] ?? 0) + 1;
    const toggle = (state) => {
      const word = `state=${state}`;
      const words = this.filter.value.split(/\s+/).filter((one) => one && !one.startsWith("state="));
      this.filter.value = this.filter.value.includes(word) ? words.join(" ") : [...words, word].join(" ");
      this.filter.dispatchEvent(new Event("input"));
    };
    const names = Object.keys(counts).length ? Object.keys(counts) : [];
    show(this.states, names.sort().map((state) => h("button", { type: "button", class: `state ${state}`, "aria-pressed": String(this.filter.value.includes(`state=${state}`)),
      onclick: () => toggle(state) }, `${number(counts[state])} ${state}`)));
  }

  #choices(names) {
    if (this.chooser.open) return;
    const change = (name, on) => {
      const kept = this.shown.filter((one) => one !== name);
      this.columns = on ? [...kept, name] : kept;
      remember({ columns: this.columns.join(",") });
      this.chooser.open = true;
      this.update();
    };
    const usual = names.filter((name) => !["id", "modified", "step", "updates"].includes(name));
    show(this.chooser.lastChild, usual.map((name) => h("label", {}, h("input", { type: "checkbox", checked: this.shown.includes(name),
      onchange: (event) => change(name, event.target.checked) }), ` ${column(name)}`)));
  }

  #choose(id) {
    if (this.chosen.has(id)) this.chosen.delete(id);
    else this.chosen.add(id);
    remember({ select: [...this.chosen].join(",") });
    this.#chosen();
  }

  #chosen() {
    const n = this.chosen.size;
    this.compare.textContent = n === 0 ? "Tick two to compare" : n === 1 ? "Tick one more" : n === 2 ? "Compare these two" : `Compare the first two of ${n}`;
    this.compare.disabled = n < 2;
  }

  #compare() {
    const [left, right] = [...this.chosen];
    visit(`/compare?left=${encodeURIComponent(left)}&right=${encodeURIComponent(right)}`);
  }

  #empty(n) {
    this.scroll.hidden = n === 0;
    const none = runs.ids.length === 0 && runs.complete;
    if (none) get("/api/store").then(({ note }) => { if (note && runs.ids.length === 0) show(this.empty, h("h2", {}, "No runs here"), h("p", {}, note)); });
    show(this.empty, n ? null : none
      ? [h("h2", {}, "No runs yet"), h("p", {}, "Train one, and it appears here by itself:"), h("pre", {}, "unweave demo")]
      : h("p", {}, runs.complete ? "No run fits this filter." : "Reading …"));
  }

  #key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 };
    if (event.key in moves) {
      this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + moves[event.key]));
      const top = this.active * ROW;
      if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
      if (top + 2 * ROW > this.scroll.scrollTop + this.scroll.clientHeight - ROW) this.scroll.scrollTop = top + 3 * ROW - this.scroll.clientHeight;
      this.drawn = { first: -1, last: -1 };
      this.draw();
      announce(runs.ids[this.rows[this.active]] ?? "");
    } else if (event.key === "Enter" && event.target === this.scroll) visit(toRun(runs.ids[this.rows[this.active]]));
    else if (event.key === " " && event.target === this.scroll) {
      this.#choose(runs.ids[this.rows[this.active]]);
      this.drawn = { first: -1, last: -1 };
      this.draw();
    } else return;
    event.preventDefault();
  }
}

const isNumeric = (name) => {
  const column = runs.columns.get(name);
  return column ? column.some((value) => typeof value === "number") : typeof runs.shared[name] === "number";
};

/** A sparkline is drawn anew when its run has changed. */
const key = (id) => `${id} ${runs.row(id)?.("modified")}`;
