// The router: an address to a view. Views are modules that fill <main> and keep what is chosen in the address.

import { get } from "./lib/api.js";
import { visit } from "./lib/address.js";
import { announce, h, show } from "./lib/dom.js";
import { identity, path } from "./lib/format.js";
import { runs } from "./lib/table.js";

const VIEWS = [
  [/^\/$/, "runs", "Runs"],
  [/^\/run\/(.+)$/, "run", "Run"],
  [/^\/compare$/, "compare", "Compare"],
  [/^\/study\/(.+)$/, "study", "Study"],
  [/^\/search\/(.+)$/, "search", "Dimension search"],
];

const main = document.getElementById("main");
let store = null;
let current = "";

async function route() {
  const found = VIEWS.map(([pattern, module, title]) => [location.pathname.match(pattern), module, title]).find(([match]) => match);
  current = found ? found[1] : "";
  navigate();
  if (!found) return problem(new Error("There is no such page."));
  const [match, module, title] = found;
  document.title = `${title} · unweave`;
  main.className = `view ${module}`;
  const place = h("div", {}, h("p", { class: "quiet loading" }, "A moment …"));
  show(main, place);
  try {
    const view = await import(`./views/${module}.js`);
    await view.open(place, { name: match[1] ? identity(decodeURIComponent(match[1])) : null, store });
    announce(`${document.title} is shown`);
  } catch (error) {
    if (place.isConnected) problem(error);
  }
}

/** Whatever went wrong, in one sentence, and a way on. */
function problem(error) {
  show(main, h("section", { class: "notice", role: "alert" }, h("h1", {}, "That did not work"), h("p", {}, error.message.replace(/^./, (first) => first.toUpperCase())),
    h("p", {}, h("button", { type: "button", onclick: route }, "Try again"), " ", h("a", { href: "/", "data-link": true }, "All runs"))));
}

function navigate() {
  const links = [["/", "Runs", "Every run"], ["/compare", "Compare", "Two runs side by side"]];
  for (const { name, title, place } of store?.studies ?? []) links.push([`/study/${encodeURIComponent(name)}`, name === "all" ? "Study" : path(name), place ? `${title}, in ${place}` : title]);
  for (const name of store?.searches ?? []) links.push([`/search/${encodeURIComponent(name)}`, `Search: ${short(path(name))}`, path(name)]);
  const here = location.pathname;
  const link = ([address, words, title]) => h("a", { href: address, title, "data-link": true, "aria-current": here === address ? "page" : null }, words);
  const most = innerWidth < 760 ? 3 : 5;
  const few = links.slice(0, most).map(link);
  const rest = links.slice(most).map(link);
  const more = rest.length ? h("details", { class: "more" }, h("summary", {}, `${rest.length} more`), h("div", {}, rest)) : null;
  show(document.getElementById("nav"), few, more);
  document.getElementById("store").textContent = store ? store.name : "";
}

const short = (name) => name.replace(/(^|\/)dimension-/, "$1").replace(/-[0-9a-f]{12}$/, "");

/** Links inside the explorer change the view without loading the page again. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-link]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  visit(link.getAttribute("href"));
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
addEventListener("visit", route);
addEventListener("popstate", route);

/** Light, dark, or as the system has it: kept in this browser. */
const theme = document.getElementById("theme");
const dress = (choice) => {
  document.documentElement.dataset.theme = choice;
  theme.textContent = { light: "☀", dark: "☾", system: "◐" }[choice];
  theme.setAttribute("aria-label", `Colours: ${choice}. Change.`);
  theme.title = `Colours: ${choice}`;
};
let choice = localStorage.getItem("unweave-theme") ?? "system";
dress(choice);
theme.addEventListener("click", () => {
  choice = { system: "light", light: "dark", dark: "system" }[choice];
  localStorage.setItem("unweave-theme", choice);
  dress(choice);
  dispatchEvent(new Event("dressed"));
});

runs.refresh().catch(() => {});
get("/api/store").then((answer) => {
  store = answer;
  navigate();
}).catch(() => {});
route();
