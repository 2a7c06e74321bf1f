// One run: sliders and picture first, then everything that explains them.

import { get, run as address } from "../lib/api.js";
import { h, poll, show, whenSeen } from "../lib/dom.js";
import { exampleOf, KINDS, MEANING, number, path } from "../lib/format.js";
import { about, diagnosis, histograms, rebuilt, scores, training } from "./sections.js";
import { columnCharts, ColumnSteering } from "./columns.js";
import { manipulation } from "./manipulation.js";
import { Steering } from "./sliders.js";
import { Pad } from "./pad.js";
import { strips } from "./strips.js";

export async function open(place, { name }) {
  const about = await get(address(name));
  document.title = `${about.title} · unweave`;
  if (about.state !== "done" || about.message) return waiting(place, about);
  await (about.objective === "perturbation" ? altering(place, about) : finished(place, about));
}

/** A manipulation encodes nothing: what it does to images, its losses, and how it was made. */
async function altering(place, run) {
  const parts = { view: h("div"), training: h("section", { id: "training" }, h("h2", {}, "Over training")), about: h("section", { id: "about" }, h("h2", {}, "This run")) };
  show(place, heading(run), ...Object.values(parts));
  await manipulation(parts.view, run);
  whenSeen(parts.training, () => training(parts.training, run.id, null));
  about(parts.about, run, []);
}

const heading = (about) => h("div", { class: "heading" }, h("div", {}, h("h1", {}, about.title), h("p", { class: "quiet" }, path(about.id))),
  h("span", { class: `state ${about.state}` }, about.state));

/** A run without a model yet, or one whose code is not trusted: its losses, drawn as they come. */
function waiting(place, run) {
  const message = h("p", {}, run.message);
  const bar = h("progress", { max: run.steps, value: run.step });
  const curves = h("section", {}, h("h2", {}, "Over training"));
  const settings = h("section", { id: "about" }, h("h2", {}, "This run"));
  show(place, heading(run), h("section", { class: "notice" }, message, run.state === "running" ? bar : null), curves, settings);
  about(settings, run, []);
  const draw = () => training(curves, run.id, null, run.state);
  draw();
  if (["failed", "done"].includes(run.state)) return;
  poll(place, 2500, async () => {
    const now = await get(address(run.id));
    if (now.state === "done") return open(place, { name: run.id });
    if (now.step !== run.step || now.state !== run.state) {
      Object.assign(run, now);
      message.textContent = now.message;
      bar.value = now.step;
      draw();
    }
  });
}

async function finished(place, run) {
  const status = h("p", { class: "quiet loading" }, "Opening the model and looking at its codes …");
  show(place, heading(run), status);
  const found = await get(address(run.id, "/latents"));
  const types = Object.fromEntries(found.latents.map((one) => [one.latent, one.type]));
  const part = (id, title, words) => h("section", { id }, h("h2", {}, title), words ? h("p", {}, words) : null);
  const parts = {
    traversals: part("traversals", "Traversals", "Each row moves one latent from −2.5 to 2.5 and leaves the others alone. A passive latent's row is the same picture again and again."),
    rebuilt: part("rebuilt", "Originals and reconstructions", "Above, pictures of the world; below, what the model draws from their codes."),
    diagnosis: part("diagnosis", "Diagnosis"),
    histograms: part("histograms", "Where the codes lie", "Filled: mean codes. Line: sampled codes. Dashed: the prior, a standard normal (codes of a learned prior are shown in its deviations). The mean codes of a passive latent sit at 0, and its samples are pure noise: they follow the prior."),
    training: part("training", "Over training"),
    scores: part("scores", "Metrics"),
    about: part("about", "This run"),
  };
  const drawable = run.is_image && !run.no_decoder;
  const tabular = run.columns.length > 0 && !run.no_decoder;
  const steering = drawable ? new Steering(run, found) : null;
  const columns = tabular ? new ColumnSteering(run, found) : null;
  if (tabular) parts.traversals = part("traversals", "What latents do to columns", "Each line moves one latent from −2.5 to 2.5 and leaves the others alone. Columns have their own units.");
  const pad = steering ? h("section", { id: "pad" }, h("h2", {}, "Two latents at once"), h("p", {}, "Drag the dot, or use the arrow keys. The pictures behind it are what the model draws there.")) : null;
  const shown = Object.entries(parts).filter(([key]) => drawable || !["traversals", "rebuilt"].includes(key) || (tabular && key === "traversals"));
  const links = [...(pad ? [["pad", "Two at once"]] : []), ...shown.map(([key, one]) => [key, one.querySelector("h2").textContent])];
  show(place, heading(run), inShort(found, run),
    h("nav", { class: "jump", "aria-label": "On this page" }, links.map(([key, words]) => h("a", { href: `#${key}` }, words))),
    steering ? steering.element : columns ? columns.element : h("p", { class: "notice" }, run.no_decoder ? `${run.no_decoder}.` : "The examples of this run are not pictures, so there is nothing to decode into one."),
    pad, shown.map(([, one]) => one));
  fillWhenSeen(run, found, types, parts, steering, pad);
  if (columns) {
    columns.start();
    whenSeen(parts.traversals, () => columnCharts(parts.traversals, run, found));
  }
}

function fillWhenSeen(run, found, types, parts, steering, pad) {
  const later = (element, make) => element?.isConnected && whenSeen(element, () => Promise.resolve(make()).catch((problem) => element.append(h("p", { class: "notice" }, problem.message))));
  if (steering) {
    steering.start();
    later(pad, () => pad.append(new Pad(run, found, steering).element));
    later(parts.traversals, () => strips(parts.traversals, run, found, steering));
    later(parts.rebuilt, () => rebuilt(parts.rebuilt, run));
  }
  later(parts.diagnosis, () => diagnosis(parts.diagnosis, run));
  later(parts.histograms, () => histograms(parts.histograms, found));
  later(parts.training, () => training(parts.training, run.id, types));
  later(parts.scores, () => scores(parts.scores, run));
  about(parts.about, run);
}

/** How many latents of each type, and what that means. */
function inShort(found, run) {
  const what = exampleOf(run);
  const meaning = (kind) => MEANING[kind].replaceAll("picture", what).replace(run.no_decoder ? /, and moving it.*/ : "", run.no_decoder ? "." : "");
  const told = found.findings.filter((words) => !run.no_decoder || !words.startsWith(run.no_decoder)); // said below it
  const count = (kind) => found.latents.filter((one) => one.type === kind).length;
  const total = found.latents.reduce((sum, one) => sum + one.kl, 0);
  const tile = (kind) => h("div", { class: `tile ${kind}`, title: meaning(kind) }, h("b", {}, count(kind)), h("span", {}, kind), h("p", {}, meaning(kind)));
  return h("section", { class: "short" }, h("div", { class: "tiles" }, KINDS.filter((kind) => count(kind) || kind !== "mixed").map(tile),
    total === 0 ? null : h("div", { class: "tile" }, h("b", {}, number(total)), h("span", {}, "nats of information"), h("p", {}, `What a ${what}'s code tells, summed over latents (KL).`))),
  h("p", {}, told.join(" ")));
}
