// Elements from a few words. Text is always text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "big", onclick: f}, "Go", …): an HTML element. null and false children are left out. */
export function h(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

/** The same for SVG. */
export function s(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, one]) => element.style.setProperty(key, one));
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Everything inside an element, replaced. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Something that may be wider than the screen: it scrolls by itself, with the keyboard too. */
export const scrolling = (inner, label) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, inner);

/** A table of rows (tr elements) under a head of words. */
export function sheet(label, head, rows) {
  const right = (place) => rows.length > 0 && rows.every((row) => row.children[place]?.classList.contains("right"));
  const top = head.map((words, place) => (words ? h("th", { scope: "col", class: right(place) ? "right" : "" }, words) : h("td")));
  return scrolling(h("table", {}, h("thead", {}, h("tr", {}, top)), h("tbody", {}, rows)), label);
}

/** A row of such a table; numbers, given as text that begins with a digit or a sign, stand to the right. */
export const cells = (...values) => h("tr", {}, values.map((value) => h("td", { class: typeof value === "string" && /^[−–]?[\d∞]/.test(value) ? "right" : "" }, value)));

/** Say something to a screen reader. */
export function announce(words) {
  document.getElementById("announce").textContent = words;
}

/** A function that is called once things have been quiet for a while. */
export function settled(milliseconds, call) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
}

/** Run `make` when an element comes near the screen: what nobody scrolls to is never worked out. */
export function whenSeen(element, make) {
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((one) => one.isIntersecting)) return;
    watch.disconnect();
    make();
  }, { rootMargin: "300px" });
  watch.observe(element);
}

/** Call again and again while an element is on the page; slower while nobody looks. */
export function poll(element, milliseconds, call) {
  const again = async () => {
    if (!element.isConnected) return;
    if (!document.hidden) await call().catch(() => {});
    setTimeout(again, document.hidden ? 4 * milliseconds : milliseconds);
  };
  setTimeout(again, milliseconds);
}
