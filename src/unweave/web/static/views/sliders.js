// Sliders for every latent and the picture that follows the hand.

import { decode, encode, examplePixels, get, run as address } from "../lib/api.js";
import { recall, remember } from "../lib/address.js";
import { h, settled, show } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { canvas, image, newest } from "../lib/pictures.js";

export const REACH = 3;

/** The code that is being steered. Others listen: the pad, the strips. */
export class Steering {
  constructor(run, found) {
    this.run = run;
    this.found = found;
    this.start_code = found.start;
    this.row = Number(recall("row") ?? found.start_row);
    this.code = [...found.start];
    this.listeners = [];
    this.mirrors = [];
    this.sliders = new Map();
    this.keep = settled(250, () => remember({ code: this.code.map((value) => Number(value.toFixed(3))).join(","), row: this.row }));
    this.picture = newest((code) => decode(run.id, [code]), (pictures, took, problem) => this.#shown(pictures, took, problem));
    this.element = this.#build();
  }

  /** Begin with the example and the code that the address names, or the example nearest the middle. */
  async start() {
    const given = (recall("code") ?? "").split(",").map(Number);
    const valid = given.length === this.run.latents && given.every(Number.isFinite) && recall("code");
    await this.#examples();
    await this.#from(this.row, !valid);
    if (valid) this.set(given, false);
  }

  /** Another point of the latent space. */
  set(code, kept = true) {
    this.code = [...code];
    for (const [latent, { slider, output }] of this.sliders) {
      slider.value = code[latent];
      output.textContent = (Math.abs(code[latent]) < 0.005 ? "0.00" : code[latent].toFixed(2)).replace("-", "−");
    }
    this.picture(this.code);
    this.listeners.forEach((listen) => listen(this.code));
    if (kept) this.keep();
  }

  move(latent, value) {
    const code = [...this.code];
    code[latent] = value;
    this.set(code);
  }

  onmove(listen) {
    this.listeners.push(listen);
  }

  /** Another place that shows the picture. */
  mirror(draw) {
    this.mirrors.push(draw);
    draw(this.live);
  }

  #build() {
    const [, height, width] = this.run.shape;
    this.live = h("canvas", { class: "pixels live", width, height, role: "img", "aria-label": "What the model draws for this code" });
    this.original = h("canvas", { class: "pixels", width, height, role: "img", "aria-label": "The example that the code began with" });
    this.took = h("p", { class: "quiet took" });
    this.examples = h("div", { class: "examples", role: "group", "aria-label": "Start from an example" });
    const sweep = h("button", { type: "button", onclick: () => this.#sweep(sweep) }, "▶ Move one after the other");
    const back = h("button", { type: "button", onclick: () => { this.#stop(); this.set(this.start_code); } }, "Back to the start");
    const zero = h("button", { type: "button", onclick: () => { this.#stop(); this.set(this.code.map(() => 0)); } }, "All to 0");
    this.sweepButton = sweep;
    return h("section", { class: "steer", id: "steer" },
      h("div", { class: "stage" }, h("div", { class: "screens" }, h("figure", {}, this.live, h("figcaption", {}, "decoded")), h("figure", {}, this.original, h("figcaption", {}, "started from"))),
        this.took, h("h3", {}, "Start from"), this.examples, this.#ownImage()),
      h("div", { class: "controls" }, h("h2", {}, "Move the latents"), h("p", { class: "quiet" }, "The busiest first. Find out what each one does, then try a passive one."),
        h("div", { class: "buttons" }, sweep, back, zero), h("div", { class: "sliders" }, this.found.latents.map((one) => this.#slider(one)))));
  }

  #slider(one) {
    const name = `latent-${one.latent}`;
    const output = h("output", { for: name });
    const slider = h("input", { type: "range", id: name, min: -REACH, max: REACH, step: 0.05, "aria-label": `latent ${one.latent}, ${one.type}`,
      oninput: () => { this.#stop(); this.move(one.latent, Number(slider.value)); } });
    slider.addEventListener("dblclick", () => this.move(one.latent, this.start_code[one.latent]));
    this.sliders.set(one.latent, { slider, output });
    const share = h("span", { class: "effect" });
    this.sliders.get(one.latent).effect = share;
    return h("div", { class: `slider ${one.type}` },
      h("label", { for: name }, h("b", {}, `latent ${one.latent}`), h("span", { class: `chip ${one.type}` }, one.type)),
      slider, output, h("span", { class: "note" }, one.kl < 0.01 ? "KL under 0.01 nats" : `KL ${number(one.kl)} nats`), share);
  }

  /** Say how far each latent changes the picture, once the strips are known. */
  effects(shares) {
    for (const [latent, share] of shares) this.sliders.get(latent).effect.textContent = share < 0.01 ? "changes nothing" : `changes ${Math.round(100 * share)} % of the picture`;
  }

  #shown(pictures, took, problem) {
    if (problem) {
      this.took.textContent = problem.message;
      return;
    }
    this.live.getContext("2d").putImageData(image(pictures), 0, 0);
    this.live.dataset.took = took.toFixed(1);
    this.mirrors.forEach((mirror) => mirror(this.live));
    this.took.textContent = `picture in ${took < 1 ? "under 1" : Math.round(took)} ms`;
  }

  async #examples() {
    const query = "n=12&seed=0";
    const [told, pictures] = await Promise.all([get(address(this.run.id, `/examples?${query}`)), examplePixels(this.run.id, query)]);
    this.known = new Map(told.rows.map((row, place) => [row, told.codes[place]]));
    const words = (place) => told.names.map((name, i) => `${name} ${number(told.factors[place][i])}`).join(", ") || `row ${told.rows[place]}`;
    show(this.examples, told.rows.map((row, place) => h("button", { type: "button", class: "example", title: words(place), "aria-label": `Start from ${words(place)}`,
      "data-row": row, onclick: () => { this.#stop(); this.#from(row, true); } }, canvas(pictures, place))));
  }

  async #from(row, move) {
    const query = `rows=${row}`;
    try {
      const [told, pictures] = await Promise.all([get(address(this.run.id, `/examples?${query}`)), examplePixels(this.run.id, query)]);
      this.row = row;
      this.start_code = told.codes[0];
      this.original.getContext("2d").putImageData(image(pictures), 0, 0);
    } catch {
      this.row = this.found.start_row;
    }
    for (const one of this.examples.children) one.setAttribute("aria-pressed", String(Number(one.dataset.row) === row));
    if (move) this.set(this.start_code);
  }

  #ownImage() {
    const told = h("span", { class: "quiet", role: "status" });
    const send = async (file) => {
      if (!file) return;
      told.textContent = "encoding …";
      try {
        const answer = await encode(this.run.id, file);
        await this.#original(answer.picture);
        this.start_code = answer.code;
        told.textContent = "this is how the model sees it";
        this.set(answer.code);
      } catch (problem) {
        told.textContent = problem.message;
      }
    };
    const input = h("input", { type: "file", id: "own", accept: "image/*", class: "unseen", onchange: () => send(input.files[0]) });
    const zone = h("label", { for: "own", class: "own" }, "… or an image of your own", input);
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", (event) => { event.preventDefault(); send(event.dataTransfer.files[0]); });
    return h("div", {}, zone, " ", told);
  }

  async #original(png) {
    const picture = new Image();
    picture.src = `data:image/png;base64,${png}`;
    await picture.decode();
    this.original.getContext("2d").drawImage(picture, 0, 0);
  }

  /** Each latent in turn, out and back: what it does is seen without touching anything. */
  #sweep(button) {
    if (this.sweeping) return this.#stop();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const time = calm ? 6000 : 2400;
    const order = this.found.latents.map((one) => one.latent);
    const base = [...this.code];
    button.textContent = "❚❚ Stop";
    let begun = null;
    const tick = (now) => {
      if (!this.sweeping) return;
      begun ??= now;
      const at = Math.floor((now - begun) / time);
      if (at >= order.length) {
        this.#stop();
        return this.set(base);
      }
      const turn = ((now - begun) % time) / time;
      const code = [...base];
      code[order[at]] = base[order[at]] * (1 - Math.sin(Math.PI * turn)) + REACH * 0.85 * Math.sin(2 * Math.PI * turn);
      for (const [latent, { slider }] of this.sliders) slider.closest(".slider").classList.toggle("moving", latent === order[at]);
      this.set(code, false);
      requestAnimationFrame(tick);
    };
    this.sweeping = true;
    requestAnimationFrame(tick);
  }

  #stop() {
    this.sweeping = false;
    this.sweepButton.textContent = "▶ Move one after the other";
    for (const { slider } of this.sliders.values()) slider.closest(".slider").classList.remove("moving");
  }
}
