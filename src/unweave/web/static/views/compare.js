// Two runs: their layers, their matched latents, and the same walk through both.

import { decode, decodeMany, get, run as address } from "../lib/api.js";
import { recall, remember, toRun } from "../lib/address.js";
import { h, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { number, path } from "../lib/format.js";
import { image, newest } from "../lib/pictures.js";
import { runs } from "../lib/table.js";
import { heat, heatTable } from "../charts/heat.js";
import { STEPS, WIDTH, stripSheet } from "./strips.js";

export async function open(place) {
  await runs.refresh();
  const result = h("div");
  const done = runs.filter("state=done").map((at) => runs.ids[at]);
  const chosen = { left: recall("left"), right: recall("right") };
  const list = h("datalist", { id: "done" }, done.slice(0, 2000).map((id) => h("option", { value: id })));
  const pick = (side) => h("input", { id: `pick-${side}`, list: "done", value: chosen[side] ?? "", placeholder: "a finished run", "aria-label": `${side} run`, spellcheck: "false", autocomplete: "off",
    onchange: (event) => { chosen[side] = event.target.value.trim(); remember(chosen); compare(result, chosen); } });
  show(place, h("div", { class: "heading" }, h("h1", {}, "Compare two runs")), h("div", { class: "tools" }, pick("left"), h("span", {}, "with"), pick("right"), list), result);
  if (!chosen.left && done.length > 1) show(result, h("p", { class: "notice" }, "Choose two finished runs of one world, or tick two in the table of runs."));
  await compare(result, chosen);
}

async function compare(place, { left, right }) {
  if (!left || !right) return;
  show(place, h("p", { class: "quiet loading" }, "Comparing every layer with every layer …"));
  try {
    const query = `left=${encodeURIComponent(left)}&right=${encodeURIComponent(right)}`;
    const [found, first, second] = await Promise.all([get(`/api/compare?${query}`), get(address(left)), get(address(right))]);
    show(place, inWords(found, first, second), walk(found, first, second), layers(found), latents(found));
  } catch (problem) {
    show(place, h("p", { class: "notice", role: "alert" }, problem.message));
  }
}

function inWords(found, first, second) {
  const strong = found.matches.filter((one) => Math.abs(one.correlation) > 0.8).length;
  const words = found.score === null || found.identical ? null
    : `${strong} of ${found.matches.length} matched latents say nearly the same (correlation above 0.8). Mean agreement of matched latents: ${number(found.score, 2)}; 1 would be the same code up to order and sign.`;
  const name = (run) => h("a", { href: toRun(run.id), "data-link": true }, `${run.title} (${path(run.id)})`);
  return h("section", {}, h("p", {}, "Left: ", name(first), h("br"), "Right: ", name(second)), h("p", { class: "lead" }, found.answer), words ? h("p", {}, words) : null);
}

/** The same traversal in both: a matched pair, the right one mirrored where their sign differs. */
function walk(found, first, second) {
  if (!first.is_image || !found.matches.length) return null;
  const pairs = [...found.matches].sort((a, b) => Math.abs(b.correlation) - Math.abs(a.correlation));
  const holder = h("div");
  const [, height, width] = first.shape;
  const screens = ["left", "right"].map((side) => h("canvas", { class: "pixels live", width, height, role: "img", "aria-label": `What the ${side} run draws` }));
  const section = h("section", { id: "walk" }, h("h2", {}, "The same walk through both"), h("p", {}, "Both start from the code of the same picture. The slider moves a latent on the left and its partner on the right; where they correlate negatively, the partner moves the other way."), holder);
  start().catch((problem) => show(holder, h("p", { class: "notice" }, problem.message)));
  return section;

  async function start() {
    const rows = await get(address(first.id, "/latents")).then((one) => `rows=${one.start_row}`);
    const codes = (await Promise.all([first, second].map((run) => get(address(run.id, `/examples?${rows}`))))).map((told) => told.codes[0]);
    const ids = [first.id, second.id];
    const draw = screens.map((screen, side) => newest((code) => decode(ids[side], [code]), (pictures) => pictures && screen.getContext("2d").putImageData(image(pictures), 0, 0)));
    const slider = h("input", { type: "range", min: -3, max: 3, step: 0.05, value: 0, id: "walk-slider", "aria-label": "Move the matched latents" });
    const select = h("select", { id: "walk-pair", "aria-label": "matched pair" }, pairs.map((one, at) => h("option", { value: String(at) }, `left ${one.left} ↔ right ${one.right} (${number(one.correlation, 2)})`)));
    const strips = h("div");
    const moved = (value) => {
      const pair = pairs[Number(select.value)];
      return codes.map((code, side) => {
        const copy = [...code];
        copy[side ? pair.right : pair.left] = side && pair.correlation < 0 ? -value : value;
        return copy;
      });
    };
    const go = () => moved(Number(slider.value)).forEach((code, side) => draw[side](code));
    const sheet = async () => {
      const values = Array.from({ length: STEPS }, (_, step) => -WIDTH + (2 * WIDTH * step) / (STEPS - 1));
      const along = values.map(moved);
      const both = await Promise.all(ids.map((id, side) => decodeMany(id, along.map((one) => one[side]))));
      const pair = pairs[Number(select.value)];
      const pictures = { ...both[0], n: 2 * STEPS, bytes: new Uint8Array([...both[0].bytes, ...both[1].bytes]) };
      const named = [{ latent: pair.left, side: "left", type: found.left_types[pair.left], kl: null }, { latent: pair.right, side: "right", type: found.right_types[pair.right], kl: null }];
      show(strips, figure(stripSheet(pictures, named, { title: (one) => `${one.side}, latent ${one.latent}`, note: (one) => one.type }), { name: "same-walk", wide: true, caption: "The left run above, the right run below." }));
    };
    slider.addEventListener("input", go);
    select.addEventListener("change", () => { go(); sheet(); });
    show(holder, h("div", { class: "tools" }, select, slider), h("div", { class: "screens two" }, screens.map((screen, side) => h("figure", {}, screen, h("figcaption", {}, side ? "right" : "left")))), strips);
    go();
    await sheet();
  }
}

function layers(found) {
  const one = (name, values, words) => {
    const drawn = { values, rows: found.rows, columns: found.columns, splits: found.splits, limits: [0, 1], rowName: "left", columnName: "right", label: `${name} of all layers` };
    return figure(heat(drawn), { name, wide: innerWidth < 760, caption: words, table: () => heatTable(drawn) });
  };
  return h("section", { id: "layers" }, h("h2", {}, "Layer by layer"), h("p", {}, `How alike the layers are for the same ${found.n_examples} examples: 1 is the same up to rotation and scale. The lines part encoder and decoder. Where the two measures differ, quote the smaller.`),
    h("div", { class: "charts wide-ones" }, one("CKA", found.cka, "CKA (unbiased)"), one("Procrustes", found.procrustes, "Procrustes similarity")));
}

function latents(found) {
  const name = (types) => types.map((type, latent) => `${latent} ${type}`);
  const drawn = { values: found.correlation, rows: name(found.left_types), columns: name(found.right_types), diverging: true, limits: [-1, 1], rowName: "left", columnName: "right", label: "Correlations of the latents of both runs" };
  return h("section", { id: "matched" }, h("h2", {}, "Latent by latent"), h("p", {}, "Correlations of mean codes. A run that learned the same has one strong cell in each row; passive latents follow nothing, or anything."),
    figure(heat(drawn), { table: () => heatTable(drawn), name: "matched-latents", caption: "Blue: they move together. Orange: in opposite ways." }));
}
