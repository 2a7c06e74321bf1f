// Every view has an address. What is chosen on a page goes into the query, so that a reload or a friend sees the same.

/** Change some entries of the query without a new entry in the history; empty ones are taken out. */
export function remember(entries) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(entries)) {
    if (value === null || value === undefined || value === "") here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  }
  history.replaceState(history.state, "", here);
}

export const recall = (name) => new URL(location.href).searchParams.get(name);

/** Go to another view. */
export function visit(address) {
  history.pushState(null, "", address);
  dispatchEvent(new Event("visit"));
}

export const toRun = (id) => `/run/${encodeURIComponent(id)}`;
