// A manipulation of images: an example before and after, at any strength, and what both sides' models make of it.

import { get, manipulatedPixels, run as address } from "../lib/api.js";
import { recall, remember, toRun } from "../lib/address.js";
import { cells, h, s, settled, sheet, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { number, path } from "../lib/format.js";
import { image, newest } from "../lib/pictures.js";
import { fitting } from "../charts/axes.js";

const STRONGEST = 0.5;
const SIDES = { foster: ["fostered", "The change is to suit these models: entangled ones, unless it is a control."],
  diminish: ["diminished", "It is to hurt these: disentangled ones, unless it is a control."] };

/** Three pictures that follow the sliders, and codes that follow the pictures. */
export async function manipulation(place, run) {
  const values = numbers(recall("values"));
  const first = await get(address(run.id, `/manipulation?${query(values, amount(recall("epsilon")))}`));
  const chosen = { values: first.factors.map((one) => one.value), epsilon: first.epsilon };
  const screens = ["original", "change", "altered"].map((name) => screen(run, name));
  const took = h("p", { class: "quiet took" });
  const codes = h("div", { class: "seen" });
  const keep = settled(250, () => remember({ values: chosen.values.join(","), epsilon: chosen.epsilon === first.trained_epsilon ? null : chosen.epsilon }));
  const draw = newest(async () => {
    const asked = query(chosen.values, chosen.epsilon);
    return Promise.all([manipulatedPixels(run.id, asked), get(address(run.id, `/manipulation?${asked}`))]);
  }, (found, ms, problem) => {
    if (problem) return void (took.textContent = problem.message);
    const [pictures, told] = found;
    screens.forEach(({ canvas }, which) => canvas.getContext("2d").putImageData(image(pictures, which), 0, 0));
    screens[2].canvas.dataset.took = ms.toFixed(1);
    took.textContent = `no pixel moves by more than ${number(told.farthest)} · in ${Math.max(1, Math.round(ms))} ms`;
    show(codes, sides(told.models, run));
  });
  const moved = () => { draw(true); keep(); };
  const strength = slider("epsilon", "ε", { min: 0, max: STRONGEST, step: 0.005, value: chosen.epsilon },
    (value) => { chosen.epsilon = value; moved(); });
  const back = h("button", { type: "button", onclick: () => strength.set(first.trained_epsilon) }, `ε as trained: ${number(first.trained_epsilon)}`);
  const factors = first.factors.map((one, which) => slider(`factor-${which}`, one.name, { min: 0, max: one.size - 1, step: 1, value: one.value },
    (value) => { chosen.values[which] = value; moved(); }));
  show(place,
    h("section", { class: "alter", id: "alter" }, h("h2", {}, "An image before and after"),
      h("p", {}, "The change is a function of the factors alone and shown amplified: grey where nothing changes, black and white where a pixel moves by the whole of ε. What would leave the range of pixels is reflected back into it."),
      h("div", { class: "altering" },
        h("div", {}, h("div", { class: "screens three" }, screens.map((one) => one.element)), took),
        h("div", { class: "sliders" }, strength.element, h("div", { class: "buttons" }, back), factors.map((one) => one.element)))),
    h("section", { id: "codes" }, h("h2", {}, "What the models make of it"),
      h("p", {}, "Mean codes of the original (ring) and of the altered image (dot) from the models that the change was made from; the bar is σ of the original's code. None of them was trained on altered images."),
      codes));
  draw(true);
}

const numbers = (text) => (text ?? "").split(",").filter(Boolean).map(Number).filter(Number.isInteger);
const amount = (text) => (text !== null && Number.isFinite(Number(text)) ? Number(text) : null);
const query = (values, epsilon) => [...values.map((value) => `values=${value}`), ...(epsilon === null ? [] : [`epsilon=${epsilon}`])].join("&");

function screen(run, name) {
  const [, height, width] = run.shape;
  const words = { original: "The original image", change: "The change, amplified", altered: "The altered image" }[name];
  const canvas = h("canvas", { class: `pixels ${name}`, width, height, role: "img", "aria-label": words });
  return { canvas, element: h("figure", {}, canvas, h("figcaption", {}, name)) };
}

/** A slider with its name and value. */
function slider(id, name, given, moved) {
  const output = h("output", { for: id });
  const input = h("input", { type: "range", id, ...given, "aria-label": name, oninput: () => tell(Number(input.value)) });
  const say = (value) => { output.textContent = given.step < 1 ? value.toFixed(3) : String(value); };
  const tell = (value) => { say(value); moved(value); };
  input.value = given.value;
  say(Number(given.value));
  return { element: h("div", { class: "slider active" }, h("label", { for: id }, h("b", {}, name)), input, output),
    set: (value) => { input.value = value; tell(value); } };
}

/** Codes of every model, side by side. */
function sides(models, run) {
  return models.map((one, which) => {
    const [name, words] = SIDES[one.side];
    const title = h("h3", { title: words }, `${name}: `, one.missing ? path(one.id) : h("a", { href: toRun(one.id), "data-link": true }, path(one.id)));
    if (one.missing) return h("div", {}, title, h("p", { class: "quiet" }, one.missing));
    const shift = Math.sqrt(one.before.reduce((sum, value, i) => sum + ((one.after[i] - value) / Math.max(one.deviation[i], 1e-6)) ** 2, 0) / one.before.length);
    return h("div", {}, title, figure(arrows(one), { name: `${run.id}-${one.side}-${which}`, table: () => moves(one), caption: `moved by ${number(shift, 2)} σ a latent (root mean square)` }));
  });
}

const moves = ({ before, after }) => sheet("Codes before and after, as numbers", ["latent", "before", "after"],
  before.map((value, i) => cells(String(i), number(value, 3), number(after[i], 3))));

/** One row a latent, from −4 to 4, or as far as the codes go. */
function arrows({ before, after, deviation, side }) {
  const [left, right, row, width] = [58, 14, 24, fitting(420)];
  const height = before.length * row + 40;
  const reach = Math.max(4, 2 * Math.ceil(Math.max(...before.map(Math.abs), ...after.map(Math.abs)) / 2));
  const at = (value) => left + ((Math.max(-reach, Math.min(reach, value)) + reach) / (2 * reach)) * (width - left - right);
  const kind = side === "foster" ? "mixed" : "active";
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
    "aria-label": before.map((value, i) => `latent ${i}: ${number(value, 2)} to ${number(after[i], 2)}`).join(", ") });
  for (const value of [-reach, -reach / 2, 0, reach / 2, reach]) {
    svg.append(s("line", { class: "grid", x1: at(value), x2: at(value), y1: 4, y2: height - 34 }),
      s("text", { class: "tick", x: at(value), y: height - 21, "text-anchor": "middle" }, String(value).replace("-", "−")));
  }
  svg.append(s("text", { class: "name", x: at(0), y: height - 5, "text-anchor": "middle" }, "value of the code"));
  before.forEach((value, i) => {
    const y = 4 + row * (i + 0.5);
    svg.append(s("text", { class: "tick", x: left - 8, y: y + 4, "text-anchor": "end" }, `latent ${i}`),
      s("line", { class: "spread", x1: at(value - deviation[i]), x2: at(value + deviation[i]), y1: y, y2: y }),
      s("line", { class: `line ${kind}`, x1: at(value), x2: at(after[i]), y1: y, y2: y }),
      s("circle", { class: `ring ${kind}`, cx: at(value), cy: y, r: 4.5 }),
      s("circle", { class: `spot ${kind}`, cx: at(after[i]), cy: y, r: 4 }, s("title", {}, `${number(value, 3)} → ${number(after[i], 3)}`)));
  });
  return svg;
}
