"use strict";
// Sliders that choose a frame of a strip of frames. Everything works on what the page already holds.
for (const explorer of document.querySelectorAll("[data-explorer]")) {
  const sliders = [...explorer.querySelectorAll("input[type=range]")];
  const sweep = explorer.querySelector("[data-sweep]");
  const middle = (slider) => Math.floor((Number(slider.max) + 1) / 2);
  let begun = null;

  const show = (slider, frame) => {
    const values = slider.dataset.values.split(" ");
    const card = slider.closest(".card");
    slider.value = frame;
    slider.setAttribute("aria-valuetext", values[frame]);
    card.querySelector("output").textContent = values[frame];
    card.querySelector("img").style.objectPosition = (100 * frame) / Math.max(1, values.length - 1) + "% 0";
  };

  const stop = () => {
    begun = null;
    sweep.setAttribute("aria-pressed", "false");
    sweep.textContent = "▶ Move all latents";
  };

  // one way and back in four seconds; where motion is unwanted, only once and slowly
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const tick = (now) => {
    if (begun === null) return;
    if (begun === 0) begun = now;
    const turn = (now - begun) / (calm.matches ? 10000 : 4000);
    for (const slider of sliders) {
      const last = Number(slider.max);
      show(slider, Math.round(last * (0.5 + 0.5 * Math.sin(2 * Math.PI * turn))));
    }
    if (calm.matches && turn >= 1) stop();
    else requestAnimationFrame(tick);
  };

  sweep.addEventListener("click", () => {
    if (begun !== null) return stop();
    begun = 0;
    sweep.setAttribute("aria-pressed", "true");
    sweep.textContent = "❚❚ Stop";
    requestAnimationFrame(tick);
  });
  explorer.querySelector("[data-centre]").addEventListener("click", () => {
    stop();
    for (const slider of sliders) show(slider, middle(slider));
  });
  for (const slider of sliders) {
    slider.addEventListener("input", () => {
      stop();
      show(slider, Number(slider.value));
    });
  }
  explorer.classList.add("live");
}

// Words beside the pointer, for points of a figure that carry some.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
document.addEventListener("pointerover", (event) => {
  const point = event.target.closest("[data-tip]");
  tip.hidden = !point;
  if (point) tip.textContent = point.dataset.tip;
});
document.addEventListener("pointermove", (event) => {
  if (tip.hidden) return;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.transform = `translate(${Math.max(8, left)}px, ${event.clientY + 18}px)`;
});

// A click on the head of a table that says so sorts it by that column, a second one the other way round.
for (const head of document.querySelectorAll("[data-sortable] th")) {
  const sort = () => {
    const rows = [...head.closest("table").tBodies[0].rows];
    const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const value = (row) => row.cells[head.cellIndex].textContent.trim().replace("−", "-").replaceAll(",", "");
    const number = (row) => (value(row) === "" || value(row) === "–" ? Infinity : Number(value(row)));
    const numeric = rows.every((row) => !Number.isNaN(number(row)));
    rows.sort((a, b) => way * (numeric ? (number(a) - number(b)) || 0 : value(a).localeCompare(value(b))));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    head.closest("table").tBodies[0].append(...rows);
  };
  head.tabIndex = 0;
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => (event.key === "Enter" ? sort() : undefined));
}
