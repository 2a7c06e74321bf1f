// A figure: an SVG with a caption, and a way to take it along as PNG or SVG.

import { h, s, scrolling } from "./dom.js";

const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity",
  "font-size", "font-weight", "font-family", "text-anchor", "image-rendering"];

/** figure(svg, {name, caption, table}): with buttons that download exactly what is seen, and the numbers behind it. */
export function figure(svg, { name, caption = "", wide = false, table = null } = {}) {
  const save = (kind) => h("button", { type: "button", class: "small", onclick: () => download(svg, name, kind),
    "aria-label": `Download this figure as ${kind.toUpperCase()}` }, kind.toUpperCase());
  const behind = table && h("details", { class: "behind" }, h("summary", { "aria-label": `${caption || name}, as a table` }, "as a table"));
  // on a small screen it scrolls rather than shrinks: its names stay as large as other text
  const { width } = svg.viewBox.baseVal;
  if (wide) svg.style.minWidth = `${innerWidth < 760 ? Math.round(0.9 * width) : Math.min(560, width)}px`;
  // made when it is opened: most never are
  behind?.addEventListener("toggle", () => behind.children.length > 1 || behind.append(table()));
  return h("figure", { class: wide ? "wide" : "" }, wide ? scrolling(svg, caption || "figure") : svg,
    h("figcaption", {}, h("span", {}, caption), h("span", { class: "saves" }, save("png"), save("svg"))), behind);
}

/** Draw figures again and leave the tables open that were, with the focus where it was. */
export function redrawn(place, draw) {
  const before = [...place.querySelectorAll(".behind")].map((one) => [one.open, one.contains(document.activeElement)]);
  draw();
  [...place.querySelectorAll(".behind")].forEach((one, i) => {
    one.open = before[i]?.[0] ?? false;
    if (before[i]?.[1]) one.firstElementChild.focus({ preventScroll: true });
  });
}

async function download(svg, name, kind) {
  const text = standalone(svg);
  const vector = new Blob([text], { type: "image/svg+xml" });
  saveAs(kind === "svg" ? vector : await raster(vector, svg), `${name}.${kind}`);
}

/** The SVG with every style written out, on the page's own ground. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const key of COPIED) to[place].setAttribute(key, style.getPropertyValue(key));
  });
  const { width, height } = svg.viewBox.baseVal;
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
  copy.prepend(s("rect", { width, height, fill: ground }));
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

async function raster(vector, svg) {
  const { width, height } = svg.viewBox.baseVal;
  const address = URL.createObjectURL(vector);
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const board = h("canvas", { width: 2 * width, height: 2 * height });
  board.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => board.toBlob(resolve, "image/png"));
}

function saveAs(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
