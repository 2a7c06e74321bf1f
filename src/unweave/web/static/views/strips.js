// Traversals: one row of pictures a latent.

import { decodeMany } from "../lib/api.js";
import { h, s, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { number, tick } from "../lib/format.js";
import { change, mosaic } from "../lib/pictures.js";
import { wide } from "../charts/axes.js";

const STEPS = 11;
const WIDTH = 2.5;

/** Strips around the code that is being steered when they are asked for, drawn anew on demand. */
export async function strips(place, run, found, steering) {
  const holder = h("div");
  const again = h("button", { type: "button", onclick: () => draw() }, "Draw again around the present code");
  const draw = async () => {
    const latents = found.latents.map((one) => one.latent);
    const pictures = await decodeMany(run.id, codesAlong(steering.code, latents));
    steering.effects(latents.map((latent, row) => [latent, change(pictures, row * STEPS, STEPS)]));
    show(holder, figure(stripSheet(pictures, found.latents), { name: `${run.id}-traversals`, wide: true,
      caption: "One row a latent, the busiest first; columns are values of that latent." }));
  };
  place.append(h("p", {}, again), holder);
  await draw();
}

/** Codes with one latent moved, latent after latent. */
export function codesAlong(base, latents) {
  return latents.flatMap((latent) => Array.from({ length: STEPS }, (_, step) => {
    const code = [...base];
    code[latent] = -WIDTH + (2 * WIDTH * step) / (STEPS - 1);
    return code;
  }));
}

/** Rows of pictures with their names, as one SVG. */
export function stripSheet(pictures, latents, { steps = STEPS, title = (one) => `latent ${one.latent}`,
  note = (one) => `${one.type} · ${one.kl < 0.01 ? 0 : number(one.kl, 2)} nats` } = {}) {
  const cell = Math.max(48, Math.min(64, pictures.width));
  const tall = Math.round((cell * pictures.height) / pictures.width);
  const left = 14 + Math.ceil(Math.max(...latents.map((one) => Math.max(1.25 * wide(title(one)), wide(note(one))))));
  const row = tall + 6;
  const [width, height] = [left + steps * cell + 2, latents.length * row + 40];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart sheet-figure", role: "img", "aria-label": `Traversals of ${latents.length} latents` });
  latents.forEach((one, place) => {
    const strip = mosaic(pictures, steps, { first: place * steps, n: steps, gap: 0 });
    const y = place * row;
    svg.append(s("text", { class: `end ${one.type}`, x: left - 10, y: y + tall / 2 - 2, "text-anchor": "end" }, title(one)),
      s("text", { class: "tick", x: left - 10, y: y + tall / 2 + 13, "text-anchor": "end" }, note(one)),
      s("image", { x: left, y, width: steps * cell, height: tall, href: strip.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated" }));
  });
  const shown = [...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => (share < 0.5 ? Math.floor : Math.ceil)(share * (steps - 1))))];
  for (const step of shown) {
    svg.append(s("text", { class: "tick", x: left + (step + 0.5) * cell, y: height - 24, "text-anchor": "middle" }, tick(-WIDTH + (2 * WIDTH * step) / (steps - 1))));
  }
  svg.append(s("text", { class: "name", x: left + (steps * cell) / 2, y: height - 6, "text-anchor": "middle" }, "value of the latent"));
  return svg;
}

export { STEPS, WIDTH };
