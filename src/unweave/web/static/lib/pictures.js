// Bytes to pictures: every pixel is shown as it is.

import { h } from "./dom.js";

/** The n-th picture of an answer as ImageData. */
export function image(pictures, place = 0) {
  const { height, width, channels, bytes } = pictures;
  const data = new ImageData(width, height);
  const size = height * width;
  const start = place * size * channels;
  for (let i = 0; i < size; i++) {
    const from = start + i * channels;
    data.data[4 * i] = bytes[from];
    data.data[4 * i + 1] = bytes[channels === 3 ? from + 1 : from];
    data.data[4 * i + 2] = bytes[channels === 3 ? from + 2 : from];
    data.data[4 * i + 3] = 255;
  }
  return data;
}

/** A canvas that holds one picture. */
export function canvas(pictures, place = 0, given = {}) {
  const made = h("canvas", { width: pictures.width, height: pictures.height, class: "pixels", ...given });
  made.getContext("2d").putImageData(image(pictures, place), 0, 0);
  return made;
}

/** Some pictures side by side, or in rows, on one canvas, a pixel or two apart. */
export function mosaic(pictures, columns, { first = 0, n = pictures.n, gap = 2 } = {}) {
  const rows = Math.ceil(n / columns);
  const { width, height } = pictures;
  const made = h("canvas", { width: columns * (width + gap) - gap, height: rows * (height + gap) - gap, class: "pixels" });
  const context = made.getContext("2d");
  for (let i = 0; i < n; i++) {
    const x = (i % columns) * (width + gap);
    const y = Math.floor(i / columns) * (height + gap);
    context.putImageData(image(pictures, first + i), x, y);
  }
  return made;
}

/** How far pixels change over some pictures, averaged over pixels: 0 to 1. */
export function change(pictures, first, n) {
  const size = pictures.height * pictures.width * pictures.channels;
  let sum = 0;
  for (let i = 0; i < size; i++) {
    let low = 255;
    let high = 0;
    for (let place = first; place < first + n; place++) {
      const value = pictures.bytes[place * size + i];
      if (value < low) low = value;
      if (value > high) high = value;
    }
    sum += high - low;
  }
  return sum / size / 255;
}

/** Ask for what the newest hand wants and skip what was overtaken: one question on its way at a time. */
export function newest(ask, answer) {
  let wanted = null;
  let busy = false;
  const go = async () => {
    busy = true;
    while (wanted) {
      const [given, asked] = wanted;
      wanted = null;
      try {
        answer(await ask(given), performance.now() - asked);
      } catch (problem) {
        answer(null, 0, problem);
      }
    }
    busy = false;
  };
  return (given) => {
    wanted = [given, performance.now()];
    if (!busy) go();
  };
}
