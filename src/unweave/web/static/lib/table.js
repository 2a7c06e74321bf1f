// The table of runs, kept by columns as the server sends it, and merged with what changes.

import { get } from "./api.js";

export class Runs {
  constructor() {
    this.version = 0;
    this.complete = false;
    this.found = 0;
    this.ids = [];
    this.place = new Map();
    this.columns = new Map();
    this.shared = {};
    this.loading = null;
  }

  /** Fetch what is new; true when anything changed. */
  async refresh() {
    this.loading ??= this.#fetch().finally(() => { this.loading = null; });
    return this.loading;
  }

  async #fetch() {
    const answer = await get(`/api/runs?since=${this.version}`);
    const { whole } = answer;
    const changed = whole || answer.n_rows > 0 || answer.gone.length > 0 || this.complete !== answer.complete;
    if (whole) this.#replace(answer);
    else if (answer.n_rows || answer.gone.length) this.#merge(answer);
    this.version = answer.version;
    this.complete = answer.complete;
    this.found = answer.n_found;
    return changed;
  }

  #replace(answer) {
    this.columns.clear();
    this.shared = answer.shared;
    for (const { name, words, values } of answer.columns) {
      this.columns.set(name, words ? values.map((place) => (place < 0 ? null : words[place])) : values);
    }
    this.ids = this.columns.get("id") ?? [];
    this.#number();
  }

  #merge(answer) {
    const news = new Map(answer.columns.map(({ name, words, values }) => [name, words ? values.map((at) => (at < 0 ? null : words[at])) : values]));
    for (const name of news.keys()) if (!this.columns.has(name)) this.#unfold(name);
    for (const name of Object.keys(this.shared)) if (!news.has(name) || news.get(name).some((value) => value !== this.shared[name])) this.#unfold(name);
    const ids = news.get("id") ?? [];
    ids.forEach((id, row) => {
      const at = this.place.get(id) ?? this.ids.length;
      if (at === this.ids.length) this.place.set(id, at);
      for (const [name, column] of this.columns) column[at] = news.has(name) ? news.get(name)[row] ?? null : null;
      this.ids = this.columns.get("id");
    });
    if (answer.gone.length) this.#drop(new Set(answer.gone));
  }

  /** Columns in the order of how many runs have them. */
  mostKnown(names) {
    const known = (column) => column.reduce((sum, value) => sum + (value !== null && value !== undefined), 0);
    const count = new Map(names.map((name) => [name, this.columns.has(name) ? known(this.columns.get(name)) : this.ids.length]));
    return [...names].sort((a, b) => count.get(b) - count.get(a));
  }

  /** A column that all runs shared, or none had, as one of its own. */
  #unfold(name) {
    this.columns.set(name, new Array(this.ids.length).fill(name in this.shared ? this.shared[name] : null));
    delete this.shared[name];
  }

  #drop(gone) {
    const kept = this.ids.map((id, place) => (gone.has(id) ? -1 : place)).filter((place) => place >= 0);
    for (const [name, column] of this.columns) this.columns.set(name, kept.map((place) => column[place]));
    this.ids = this.columns.get("id") ?? [];
    this.#number();
  }

  #number() {
    this.place = new Map(this.ids.map((id, place) => [id, place]));
  }

  value(name, place) {
    return this.columns.has(name) ? this.columns.get(name)[place] ?? null : this.shared[name] ?? null;
  }

  row(id) {
    const place = this.place.get(id);
    return place === undefined ? null : (name) => this.value(name, place);
  }

  /** All names, and those that hold numbers that differ. */
  names() {
    return [...this.columns.keys(), ...Object.keys(this.shared)];
  }

  numeric(places = null) {
    return [...this.columns].filter(([name, column]) => {
      if (name === "modified" || name === "updates") return false;
      const values = (places ? places.map((place) => column[place]) : column).filter((value) => value !== null && value !== undefined);
      return values.length > 1 && values.every((value) => typeof value === "number") && values.some((value) => value !== values[0]);
    }).map(([name]) => name);
  }

  /** Places of the rows that a query like «beta_tcvae seed=3 mig>0.2» lets through. */
  filter(query) {
    const tests = query.trim().split(/\s+/).filter(Boolean).map((word) => this.#test(word));
    const found = [];
    for (let place = 0; place < this.ids.length; place++) if (tests.every((test) => test(place))) found.push(place);
    return found;
  }

  #test(word) {
    const compared = word.match(/^([^<>=!]+)(>=|<=|!=|>|<|=)(.+)$/);
    if (!compared) return this.#mentions(word.toLowerCase());
    const [, key, sign, text] = compared;
    const name = this.#named(key);
    if (!name) return () => false;
    const given = Number(text);
    const compare = { ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b }[sign];
    if (compare) return (place) => this.value(name, place) !== null && compare(Number(this.value(name, place)), given);
    const equal = (value) => (typeof value === "number" ? value === given : String(value ?? "").toLowerCase() === text.toLowerCase());
    return sign === "=" ? (place) => equal(this.value(name, place)) : (place) => !equal(this.value(name, place));
  }

  /** The column that a short name stands for: «beta» for «objective.beta», «mig» for «scores.mean.mig». */
  #named(key) {
    const names = this.names();
    const plain = key.toLowerCase();
    const aliases = { objective: "objective.name", world: "world.name", network: "network.name", run: "id", active: "latents.active", passive: "latents.passive", mixed: "latents.mixed" };
    return [aliases[plain], plain].find((name) => names.includes(name)) ?? names.find((name) => name.toLowerCase().endsWith(`.${plain}`)) ?? null;
  }

  #mentions(word) {
    const texts = ["id", "state", "world.name", "objective.name", "network.name"];
    return (place) => texts.some((name) => String(this.value(name, place) ?? "").toLowerCase().includes(word));
  }

  /** Places in the order of a column; nothing comes last either way. */
  sorted(places, name, down) {
    const column = this.columns.get(name);
    if (!column) return places;
    const sign = down ? -1 : 1;
    return [...places].sort((a, b) => {
      const [x, y] = [column[a], column[b]];
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    });
  }
}

/** One table for all views. */
export const runs = new Runs();
