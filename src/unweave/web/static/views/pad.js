// A plane of two latents: pictures behind, a dot to drag in front.

import { decodeMany } from "../lib/api.js";
import { recall, remember } from "../lib/address.js";
import { h, settled, show } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { mosaic } from "../lib/pictures.js";
import { REACH } from "./sliders.js";

const SIDE = 9;

export class Pad {
  constructor(run, found, steering) {
    this.run = run;
    this.steering = steering;
    const order = found.latents.map((one) => one.latent);
    const given = (recall("pad") ?? "").split(",").map(Number);
    const valid = given.length === 2 && given[0] !== given[1] && given.every((latent) => order.includes(latent));
    this.axes = valid ? given : [order[0], order[1] ?? order[0]];
    this.types = new Map(found.latents.map((one) => [one.latent, one.type]));
    this.order = order;
    this.element = this.#build();
    this.redraw = settled(200, () => this.#ground());
    this.#ground();
    this.#dot();
    steering.onmove(() => this.#moved());
    steering.mirror((live) => this.mirror.getContext("2d").drawImage(live, 0, 0));
  }

  #build() {
    this.ground = h("div", { class: "ground" });
    this.dot = h("div", { class: "dot-handle" });
    const [, height, width] = this.run.shape;
    this.pad = h("div", { class: "pad", style: { "aspect-ratio": `${width} / ${height}` }, tabindex: "0", role: "application", "aria-label": "Pad of two latents. Arrow keys move the dot." }, this.ground, this.dot);
    this.pad.addEventListener("pointerdown", (event) => { this.pad.setPointerCapture(event.pointerId); this.#drag(event); });
    this.pad.addEventListener("pointermove", (event) => this.pad.hasPointerCapture(event.pointerId) && this.#drag(event));
    this.pad.addEventListener("keydown", (event) => this.#key(event));
    const choice = (axis, words) => {
      const select = h("select", { "aria-label": words, onchange: () => { this.axes[axis] = Number(select.value); remember({ pad: this.axes.join(",") }); this.#ground(); this.#dot(); } },
        this.order.map((latent) => h("option", { value: String(latent), selected: this.axes[axis] === latent }, `latent ${latent} (${this.types.get(latent)})`)));
      return h("label", {}, `${words} `, select);
    };
    this.told = h("p", { class: "quiet" });
    this.mirror = h("canvas", { class: "pixels live", width: this.run.shape[2], height: this.run.shape[1], "aria-hidden": "true" });
    return h("div", { class: "pad-row" }, this.pad, h("div", { class: "pad-side" }, this.mirror, choice(0, "across"), choice(1, "up"), this.told));
  }

  /** Decode a grid around the code that is being steered. */
  async #ground() {
    const { codes, key } = this.#codes();
    if (key === this.key) return;
    this.key = key;
    const pictures = await decodeMany(this.run.id, codes).catch(() => null);
    if (pictures && this.key === key) show(this.ground, mosaic(pictures, SIDE, { gap: 0 }));
  }

  #codes() {
    const codes = [];
    const step = (place) => -REACH + ((place + 0.5) * 2 * REACH) / SIDE;
    for (let row = SIDE - 1; row >= 0; row--) {
      for (let column = 0; column < SIDE; column++) {
        const code = [...this.steering.code];
        code[this.axes[0]] = step(column);
        code[this.axes[1]] = step(row);
        codes.push(code);
      }
    }
    const rest = this.steering.code.filter((_, latent) => !this.axes.includes(latent));
    return { codes, key: JSON.stringify([this.axes, rest.map((value) => value.toFixed(2))]) };
  }

  #drag(event) {
    const box = this.pad.getBoundingClientRect();
    const at = (share) => Math.max(-REACH, Math.min(REACH, -REACH + share * 2 * REACH));
    this.#go(at((event.clientX - box.left) / box.width), at(1 - (event.clientY - box.top) / box.height));
  }

  #go(x, y) {
    const code = [...this.steering.code];
    code[this.axes[0]] = Number(x.toFixed(3));
    code[this.axes[1]] = Number(y.toFixed(3));
    this.steering.set(code);
  }

  #key(event) {
    const step = event.shiftKey ? 0.5 : 0.1;
    const [dx, dy] = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key] ?? [];
    if (dx === undefined) return;
    event.preventDefault();
    const [x, y] = this.axes.map((latent) => this.steering.code[latent]);
    const bound = (value) => Math.max(-REACH, Math.min(REACH, value));
    this.#go(bound(x + dx), bound(y + dy));
  }

  #moved() {
    this.#dot();
    this.redraw();
  }

  #dot() {
    const [x, y] = this.axes.map((latent) => this.steering.code[latent]);
    const share = (value) => Math.max(0, Math.min(1, (value + REACH) / (2 * REACH)));
    this.dot.style.left = `${100 * share(x)}%`;
    this.dot.style.top = `${100 * (1 - share(y))}%`;
    this.told.textContent = `latent ${this.axes[0]} at ${number(x)}, latent ${this.axes[1]} at ${number(y)}`;
  }
}
