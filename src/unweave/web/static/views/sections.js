// The parts of a run's page that explain: reconstructions, diagnosis, histograms, training, metrics, the run itself.

import { decodeMany, examplePixels, get, run as address } from "../lib/api.js";
import { h, s, sheet, show } from "../lib/dom.js";
import { figure, redrawn } from "../lib/figure.js";
import { exampleOf, metric as metricName, number, tick, within } from "../lib/format.js";
import { mosaic } from "../lib/pictures.js";
import { fitting } from "../charts/axes.js";
import { heat, heatTable } from "../charts/heat.js";
import { histogram, histogramTable, lines, linesTable } from "../charts/lines.js";

export async function rebuilt(place, run) {
  const query = "n=12&seed=1";
  const [told, originals] = await Promise.all([get(address(run.id, `/examples?${query}`)), examplePixels(run.id, query)]);
  const drawn = await decodeMany(run.id, told.codes);
  const cell = fitting(640) < 640 ? 40 : 64;
  const tall = Math.round((cell * originals.height) / originals.width);
  const svg = s("svg", { viewBox: `0 0 ${96 + 12 * (cell + 4)} ${2 * tall + 10}`, class: "chart sheet-figure", role: "img", "aria-label": "Originals above their reconstructions" });
  [["original", originals], ["reconstructed", drawn]].forEach(([name, pictures], row) => {
    const y = row * (tall + 6);
    svg.append(s("text", { class: "tick", x: 88, y: y + tall / 2 + 4, "text-anchor": "end" }, name));
    for (let place = 0; place < pictures.n; place++) {
      svg.append(s("image", { x: 96 + place * (cell + 4), y, width: cell, height: tall, href: mosaic(pictures, 1, { first: place, n: 1 }).toDataURL(), "image-rendering": "pixelated" }));
    }
  });
  place.append(figure(svg, { name: `${run.id}-reconstructions`, wide: true, caption: "From mean codes. What is blurred or missing was too dear to keep." }));
}

const EXPLAINED = {
  rate: ["rate", "nats a code tells about its example"],
  distortion: ["distortion", "what the reconstruction misses, in nats"],
  trace_difference: ["trace difference", "about the number of passive latents"],
  delta_kl: ["Δ KL", "below 0.03 every latent is either precise or off"],
  dto: ["DtO", "distance of the decoder's directions to the latents' own; 0 is aligned"],
  dto_of_random_directions: ["DtO of chance", "what random directions would have"],
  self_consistency: ["self-consistency", "how well codes survive decoding and encoding again; 1 is perfect"],
};

export async function diagnosis(place, run) {
  const wait = h("p", { class: "quiet loading" }, "Looking at codes and decoder …");
  place.append(wait);
  const found = await get(address(run.id, "/diagnosis"));
  const item = (one) => h("li", { class: one.weight }, h("b", { class: "weight" }, one.weight), h("p", {}, one.text), h("p", {}, "→ ", one.advice), h("p", { class: "quiet" }, one.reference));
  const exact = found.latents.every((one) => one.mean_variance === 0); // without noise the KL is no information
  const facts = Object.entries(found.numbers).filter(([name]) => !exact || !["rate", "trace_difference"].includes(name)).map(([name, value]) => h("div", {}, h("dt", {}, EXPLAINED[name][0]), h("dd", {}, number(value), h("span", { class: "quiet" }, EXPLAINED[name][1].replace("example", exampleOf(run))))));
  const rows = found.latents.map((one) => h("tr", {}, h("td", {}, `latent ${one.latent}`), h("td", {}, h("span", { class: `chip ${one.type}` }, one.type)), h("td", {}, one.evidence),
    h("td", { class: "right" }, number(one.kl)), h("td", { class: "right" }, number(one.mean_variance)),
    h("td", {}, one.partner === null ? "–" : `${number(one.correlation, 2)} with latent ${one.partner}`)));
  wait.replaceWith(found.findings.length ? h("ul", { class: "findings" }, found.findings.map(item)) : h("p", {}, "Nothing stands out: this model looks healthy."),
    h("dl", { class: "numbers" }, facts),
    sheet("Every latent", ["latent", "type", "why", "KL (nats)", "mean σ²", "strongest correlation"], rows),
    h("p", { class: "quiet" }, `From ${found.n_examples.toLocaleString("en")} examples. σ² is how unsure the encoder is: near 0 it knows, near 1 it says nothing.`));
}

export function histograms(place, found) {
  const one = (latent) => {
    const drawn = { edges: found.edges, filled: latent.mean_histogram, outline: latent.sampled_histogram, kind: latent.type, label: `Histogram of latent ${latent.latent}` };
    return figure(histogram(drawn), { name: `latent-${latent.latent}-histogram`, caption: `latent ${latent.latent}, ${latent.type}`, table: () => histogramTable(drawn) });
  };
  place.append(h("div", { class: "small-figures" }, found.latents.map(one)));
}

const UNITS = { kl: "KL (nats)" };
const TERMS = { kl: "KL in all", foster: "loss of the fostered side", diminish: "loss of the diminished side", gap: "fostered − diminished" };
const termName = (name) => TERMS[name] ?? name.replaceAll("_", " ");

/** Losses and KL; `types` colours the latents where they are known. */
export async function training(place, id, types, state = "done") {
  const found = await get(address(id, "/history"));
  const clear = () => [...place.querySelectorAll(".charts, .quiet.none")].forEach((one) => one.remove());
  if (!found.steps.length) {
    clear();
    place.append(h("p", { class: "quiet none" }, state === "running" ? "Nothing is recorded yet: the first checkpoint comes within half a minute." : "Nothing was recorded before it stopped."));
    return;
  }
  const kl = found.kl.map((values, latent) => ({ name: `latent ${latent}`, values, kind: types?.[latent] ?? "active", label: String(latent) }));
  const shown = (found.terms.gap ? ["foster", "diminish", "gap"] : ["loss", "reconstruction", "kl"]).filter((name) => name in found.terms);
  const names = shown.length ? shown : Object.keys(found.terms).slice(0, 3);
  const chart = (drawn, given) => figure(lines(drawn), { ...given, table: () => linesTable(drawn) });
  const charts = () => h("div", { class: "charts" },
    kl.some((one) => one.values.some(Boolean)) ? chart({ x: found.steps, series: kl, yName: "KL (nats)", label: "KL of every latent over training", zero: true }, { name: `${id}-kl`, caption: "KL of every latent: those that are switched off fall to 0 and stay there." }) : null,
    names.map((name) => chart({ x: found.steps, series: [{ name: termName(name), values: found.terms[name] }], yName: UNITS[name] ?? termName(name), label: `${termName(name)} over training`, log: name !== "kl" && !found.terms.gap }, { name: `${id}-${name}`, caption: termName(name) })));
  redrawn(place, () => {
    clear();
    place.append(charts());
  });
}

export async function scores(place, run) {
  const wait = h("p", { class: "quiet loading" }, "Measuring …");
  place.append(wait);
  const found = await get(address(run.id, "/scores"));
  const intervals = found.scores.some((one) => one.low !== null) ? ", with 95 % intervals" : "";
  const words = found.kept
    ? `Measured by unweave evaluate${intervals}: ${found.protocol}.`
    : `A quick look: ${found.protocol}. For every metric with intervals: unweave evaluate ${run.path}`;
  const names = [...new Set(found.scores.map((one) => one.metric))];
  const of = (metric, which) => found.scores.find((one) => one.metric === metric && one.representation === which);
  const better = (metric) => ({ true: "higher is better", false: "lower is better" })[(of(metric, "mean") ?? of(metric, "sampled")).higher_is_better] ?? "describes, does not judge";
  const rows = names.map((metric) => h("tr", {}, h("td", {}, metricName(metric)), scoreCell(of(metric, "mean")), scoreCell(of(metric, "sampled")), h("td", { class: "quiet" }, better(metric))));
  wait.replaceWith(h("p", {}, words), names.length ? sheet("Scores", ["metric", "mean codes", "sampled codes", "which way"], rows) : h("p", { class: "quiet" }, noScores(found)),
    ...trivial(found.trivial.filter((name) => names.includes(name))), ...leftOut(found.left_out, names), ...[matrices(found.matrices, run)].filter(Boolean));
}

/** Why there are none: no factors, or factors without classes to count. */
const noScores = (found) => (found.matrices.some((one) => one.title.includes("factor"))
  ? "The quick look counts classes, and the factors of this world are continuous." : "This world has no factors to compare codes with.");

function scoreCell(one) {
  if (!one) return h("td", { class: "right" }, "–");
  if (one.value === null || one.low === null || one.high === null) return h("td", { class: "right", title: one.paper }, number(one.value));
  const [value, low, high] = within(one.value, one.low, one.high);
  return h("td", { class: "right", title: one.paper }, value, h("span", { class: "quiet" }, ` ${low} … ${high}`));
}

const trivial = (names) => (names.length ? [h("p", { class: "quiet" }, `With one factor alone, what compares factors is 1 for any code that varies: ${names.map(metricName).join(", ")}.`)] : []);

/** What was not measured, each reason once. */
function leftOut(reasons, measured) {
  const by = new Map();
  for (const [metric, why] of Object.entries(reasons)) if (!measured.includes(metric)) by.set(why, [...(by.get(why) ?? []), metricName(metric)]);
  return [...by].map(([why, names]) => h("p", { class: "quiet" }, `Left out (${why}): ${names.join(", ")}.`));
}

/** One matrix at a time, chosen from a list. */
function matrices(all, run) {
  if (!all.length) return null;
  const holder = h("div");
  const name = (one) => `${one.metric ? `${metricName(one.metric)}: ` : ""}${one.title}, ${one.representation} codes`;
  const draw = () => {
    const one = all[Number(select.value)];
    const drawn = { values: one.values, rows: one.rows, columns: one.columns, diverging: one.diverging, label: name(one) };
    show(holder, figure(heat(drawn), { table: () => heatTable(drawn), name: `${run.id}-${one.metric || "matrix"}-${one.representation}`, caption: name(one) }));
  };
  const select = h("select", { onchange: draw }, all.map((one, place) => h("option", { value: String(place) }, name(one))));
  draw();
  return h("div", { class: "matrix" }, h("h3", {}, "The matrix behind a score"), h("label", {}, "show ", select), holder,
    h("p", { class: "quiet" }, "A disentangled code has one strong cell in each column: one latent for each factor. Rows of passive latents are empty in sampled codes; their means, though tiny, may follow a factor."));
}

/** The sum of a file: its beginning tells it apart. */
const DIGEST = /\b([0-9a-f]{12})[0-9a-f]{20,}\b/g;

export function about(place, run, kinds = ["npz", "parquet"]) {
  const flat = (value, above = "") => Object.entries(value).flatMap(([key, inner]) => {
    const name = above ? `${above}.${key}` : key;
    return inner !== null && typeof inner === "object" && !Array.isArray(inner) ? flat(inner, name) : [[name, inner]];
  });
  const item = (value) => (value !== null && typeof value === "object" ? Object.values(value).join(" ") : tick(value));
  const shown = (value, between) => (Array.isArray(value) ? value.map(item).join(between) : typeof value === "boolean" ? (value ? "yes" : "no") : number(value)) || "–";
  const fact = ([name, value]) => {
    const words = shown(value, name === "command" ? " " : ", ");
    return h("div", {}, h("dt", {}, name), h("dd", { title: words }, words.replaceAll(DIGEST, "$1…")));
  };
  const facts = flat({ ...run.config, ...run.environment }).map(fact);
  const take = (kind) => h("a", { class: "button", href: address(run.id, `/codes.${kind}?n=10000`), download: "" }, `codes as ${kind}`);
  const taken = kinds.length ? [h("p", {}, kinds.flatMap((kind) => [take(kind), " "])), h("p", { class: "quiet" }, "Mean, variance, sample and KL of up to 10,000 examples, with their factors.")] : null;
  place.append(...[taken, h("dl", { class: "facts" }, facts)].flat().filter(Boolean));
}
