// Numbers and names as people read them.

import { SCORES } from "./metric_names.js";

/** Three digits that matter, a true minus sign, thousands apart. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e9) text = size >= 10000 ? value.toLocaleString("en") : String(value);
  else if (size < 1e-4 || size >= 1e9) text = value.toExponential(1).replace("e+", "e");
  else if (size >= 1000) text = Math.round(value).toLocaleString("en");
  else text = value.toFixed(Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(size)))));
  return text.replace("-", "−");
}

/** A value and the ends of its interval, all with as many places: a value never leaves the interval it was rounded with. */
export function within(value, low, high) {
  const half = (high - low) / 2;
  const places = half > 0 ? Math.min(4, Math.max(2, -Math.floor(Math.log10(half)))) : 3;
  const shown = (one) => (Math.abs(one) >= 1000 ? number(Math.round(one)) : one.toFixed(places)).replace("-", "−");
  return [value, low, high].map(shown);
}

/** No digit more than needed, for an axis or a setting. */
export const tick = (value) => (typeof value !== "number" ? number(value) : Math.abs(value) >= 10000 ? number(value) : String(Number(value.toPrecision(5))).replace("-", "−"));

/** With so many places behind the point, thousands apart. */
const written = (value, places) => value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }).replace("-", "−");

const placesOf = (size) => Math.min(12, Math.max(0, -Math.floor(Math.log10(size) + 1e-9)));

/** The numbers of an axis: no digit more than needed, and as many as tell them from each other. */
export function apart(values) {
  const words = values.map(tick);
  if (new Set(words).size === new Set(values).size) return words;
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const step = Math.min(...sorted.slice(1).map((value, place) => value - sorted[place]));
  return values.map((value) => written(value, placesOf(step)));
}

/** A value of a column: where it is far from 0 beside the column's deviation, the digits in which its values differ. */
export const inColumn = (value, deviation) => (Math.abs(value) < 1000 * deviation ? number(value, 4) : written(value, placesOf(deviation / 100)));

/** The name of a run with the path of the store inside the opened one that it is in: «betas:x» is «betas/x». */
export const path = (id) => String(id).replaceAll(":", "/");

/** And back: names may be typed into the address as they are shown. */
export const identity = (path) => path.replaceAll("/", ":");

/** Long names without their middle: their ends tell them apart. */
export const shortened = (words, most) => (words.length > most ? `${words.slice(0, Math.ceil(most / 2) - 1)}…${words.slice(-Math.floor(most / 2))}` : words);

export const percent = (share) => (share < 0.01 ? "less than 1 %" : `${Math.round(100 * share)} %`);

const WORDS = {
  "world.name": "world", "objective.name": "objective", "objective.beta": "β", "objective.gamma": "γ", "objective.capacity": "C", "objective.off_diagonal": "λ", seed: "seed",
  "latents.active": "active", "latents.mixed": "mixed", "latents.passive": "passive", latents: "latents",
  "polarised.n_active": "active (measured)", "polarised.n_mixed": "mixed (measured)", "polarised.n_passive": "passive (measured)", "world.called": "called",
  modified: "changed", "network.name": "network", state: "state", id: "run",
};

/** The name of a metric. */
export const metric = (name) => SCORES[name] ?? name.replaceAll("_", " ");

/** The name of a column without the settings of its measure. */
const plain = (name) => name.replace(/^([^.@]+)@[^.]+/, "$1");

/** Names of some columns in words; settings (words by their hashes) are told where a measure was taken with several. */
export function columns(names, settings = null) {
  const taken = names.map(plain);
  return new Map(names.map((name, at) => [name, column(taken.filter((one) => one === taken[at]).length > 1 ? name : taken[at], settings)]));
}

/** The name of a column in words: «objective.off_diagonal» is «λ», «cost.seconds» is «cost: seconds». */
export function column(name, settings = null) {
  if (WORDS[name]) return WORDS[name];
  const mark = name.match(/^[^.@]+@([^.]+)\./)?.[1];
  if (mark) {
    const known = Object.entries(settings ?? {}).find(([hash]) => hash.startsWith(mark));
    return `${column(plain(name))} (${known?.[1] ?? (settings ? `other settings, ${mark}` : mark)})`;
  }
  const score = name.match(/^scores\.(mean|sampled)\.(.+)$/);
  if (score) return score[1] === "mean" ? metric(score[2]) : `${metric(score[2])} (sampled)`;
  const [family, ...rest] = name.replaceAll("_", " ").split(".");
  if (!rest.length) return family;
  const known = SCORES[name.slice(name.indexOf(".") + 1)];
  if (known) return `${known} (${family})`;
  return family === "objective" ? rest.join(" ") : `${family}: ${rest.join(" ").replace(/^n /, "")}`;
}

/** What the examples of a run are called. */
export const exampleOf = (run) => (run.is_image ? "picture" : run.columns.length ? "row" : "example");

export const KINDS = ["active", "mixed", "passive"];

export const MEANING = {
  active: "In use: it is precise for every example, and moving it changes what is decoded.",
  mixed: "In use for some examples only.",
  passive: "Switched off: it carries nothing, and moving it changes nothing.",
};

/** "3 minutes ago" */
export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  for (const [name, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    const n = Math.floor(past / size);
    if (n >= 1) return `${n} ${name}${n > 1 ? "s" : ""} ago`;
  }
  return "just now";
}
