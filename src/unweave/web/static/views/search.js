// A dimension search: the numbers that were tried, in order, drawn as they come.

import { get } from "../lib/api.js";
import { toRun, visit } from "../lib/address.js";
import { h, poll, s, sheet, show } from "../lib/dom.js";
import { figure } from "../lib/figure.js";
import { number, path as pathOf } from "../lib/format.js";
import { fitting, plot, range } from "../charts/axes.js";
import { oneStop } from "../charts/points.js";

export async function open(place, { name }) {
  const address = `/api/searches/${encodeURIComponent(name)}`;
  let known = "";
  const draw = (found) => {
    const now = JSON.stringify(found);
    if (now === known) return;
    known = now;
    show(place, page(found));
  };
  draw(await get(address));
  poll(place, 2000, async () => draw(await get(address)));
}

function page(found) {
  const words = found.answer !== null ? found.findings[0] ?? `${found.title} answers ${number(found.answer)}.`
    : found.running ? `Still searching: model ${found.visits.length} is training …` : "Not finished; the same command goes on where it stopped.";
  const judged = found.visits.filter((one) => one.first !== null);
  return [h("div", { class: "heading" }, h("div", {}, h("h1", {}, `How many ${found.over}?`), h("p", { class: "quiet" }, pathOf(found.name))), h("span", { class: `state ${found.answer !== null ? "done" : found.running ? "running" : "unfinished"}` }, found.answer !== null ? "done" : found.running ? "searching" : "unfinished")),
    h("section", {}, h("p", { class: "lead", role: "status" }, words), found.findings.filter((one) => one !== words).map((one) => h("p", {}, one)),
      h("p", { class: "quiet" }, `A model is trained for each number that is tried. Once it has more latents than it can use, the spare ones turn passive, and ${found.first} and ${found.second} part.`)),
    h("section", { id: "path" }, h("h2", {}, "The path"), h("div", { class: "charts" }, figure(path(found), { name: `${found.name}-path`, caption: "In the order of trying. Blue circles passed, orange diamonds did not; hollow ones are still training. A click opens the model." }),
      judged.length ? figure(criterion(found, judged), { name: `${found.name}-criterion`, caption: "The difference that decides. Below the line every latent is of use." }) : null)),
    h("section", {}, h("h2", {}, "Every model"), table(found))];
}

function path(found) {
  const values = found.visits.map((one) => one.value);
  const log = Math.min(...values) > 0 && Math.max(...values) > 3 * Math.min(...values);
  const domain = log ? [Math.min(...values) / 1.25, Math.max(...values) * 1.25] : range(values, { room: 0.15 });
  const { svg, xs, ys, at } = plot({ height: 280, width: fitting(520), x: { domain: [0.5, Math.max(found.visits.length, 6) + 0.5], ticks: found.visits.map((_, place) => place + 1), exact: true },
    y: { domain, log, ticks: values, exact: true }, xName: "model, in the order of trying", yName: found.over, label: "Numbers in the order in which they were tried; the table below has them all" });
  if (found.answer !== null && found.answer > 0) svg.append(s("line", { class: "mark", x1: at.x[0], x2: at.x[1], y1: ys(found.answer), y2: ys(found.answer) }), s("text", { class: "end active", x: at.x[1], y: ys(found.answer) - 5, "text-anchor": "end" }, `answer ${number(found.answer)}`));
  svg.append(s("polyline", { class: "way", points: found.visits.map((one, place) => `${xs(place + 1)},${ys(one.value)}`).join(" ") }));
  return marked(svg, found.visits.map((one, place) => point(one, xs(place + 1), ys(one.value))));
}

function criterion(found, judged) {
  const sorted = [...judged].sort((a, b) => a.value - b.value);
  const differences = sorted.map((one) => one.first - one.second);
  const tried = sorted.map((one) => one.value);
  const { svg, xs, ys, at } = plot({ height: 280, width: fitting(520), x: { domain: range(tried, { room: 0.08 }), ticks: tried, exact: true }, y: { domain: range([...differences, found.threshold ?? 0, 0]) },
    xName: found.over, yName: `${found.first} − ${found.second}`, label: "The criterion over the numbers that were tried; the table below has them all" });
  if (found.threshold !== null) svg.append(s("line", { class: "mark", x1: at.x[0], x2: at.x[1], y1: ys(found.threshold), y2: ys(found.threshold) }), s("text", { class: "tick", x: at.x[0] + 4, y: ys(found.threshold) - 5 }, `threshold ${number(found.threshold)}`));
  svg.append(s("polyline", { class: "way", points: sorted.map((one, place) => `${xs(one.value)},${ys(differences[place])}`).join(" ") }));
  return marked(svg, sorted.map((one, place) => point(one, xs(one.value), ys(differences[place]))));
}

function marked(svg, marks) {
  svg.append(...marks);
  svg.setAttribute("role", "group");
  oneStop(marks);
  return svg;
}

/** Shape and colour say how it went: nobody has to see colours. */
function point(one, x, y) {
  const kind = one.passes === null ? "open" : one.passes ? "active" : "mixed";
  const words = `${number(one.value)}: ${one.passes === null ? one.state : one.passes ? "passes" : "does not pass"}`;
  const given = { class: `visit ${kind}`, role: "link", "aria-label": words };
  const made = kind === "mixed" ? s("rect", { ...given, x: x - 5, y: y - 5, width: 10, height: 10, transform: `rotate(45 ${x} ${y})` }) : s("circle", { ...given, cx: x, cy: y, r: 6 });
  made.append(s("title", {}, words));
  made.addEventListener("click", () => visit(toRun(one.id)));
  return made;
}

function table(found) {
  const types = (one) => Object.entries(one.types).filter(([, n]) => n).map(([kind, n]) => h("span", { class: `chip ${kind}` }, `${n} ${kind}`));
  const state = (one) => (one.state === "running" ? `training, step ${number(one.step)} of ${number(one.steps)}` : one.state);
  const rows = found.visits.map((one) => h("tr", {}, h("td", {}, h("a", { href: toRun(one.id), "data-link": true }, number(one.value))), h("td", {}, state(one)), h("td", {}, one.passes === null ? "–" : one.passes ? "yes" : "no"),
    h("td", { class: "right" }, number(one.first)), h("td", { class: "right" }, number(one.second)), h("td", {}, types(one))));
  return sheet("Every model of this search", [found.over, "state", "passes", found.first, found.second, "latents of that model"], rows);
}
