// Questions to the server. Whatever goes wrong becomes one sentence to show.

export class Problem extends Error {
  constructor(words, status) {
    super(words);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is `unweave explore` still running?", 0);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const words = typeof told.detail === "string" ? told.detail : `the server answered ${answer.status}`;
  throw new Problem(words, answer.status);
}

export const get = async (path) => (await ask(path)).json();

export const run = (id, more = "") => `/api/runs/${encodeURIComponent(id)}${more}`;

/** Pictures as they come: {n, height, width, channels, bytes}. */
async function pictures(answer) {
  const [n, height, width, channels] = answer.headers.get("x-shape").split(",").map(Number);
  return { n, height, width, channels, bytes: new Uint8Array(await answer.arrayBuffer()) };
}

export async function decode(id, codes) {
  const headers = { "content-type": "application/json" };
  return pictures(await ask(run(id, "/decode"), { method: "POST", headers, body: JSON.stringify({ codes }) }));
}

/** Rows of a table for codes, as many as one likes, in the units of its columns. */
export async function decodeRows(id, codes) {
  const headers = { "content-type": "application/json" };
  const rows = [];
  for (let first = 0; first < codes.length; first += 200) {
    const body = JSON.stringify({ codes: codes.slice(first, first + 200) });
    rows.push(...(await (await ask(run(id, "/decode/rows"), { method: "POST", headers, body })).json()).rows);
  }
  return rows;
}

/** As many codes as one likes, in pieces that the server takes. */
export async function decodeMany(id, codes) {
  const parts = [];
  for (let first = 0; first < codes.length; first += 100) parts.push(await decode(id, codes.slice(first, first + 100)));
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.length, 0));
  let place = 0;
  for (const part of parts) {
    bytes.set(part.bytes, place);
    place += part.bytes.length;
  }
  return { ...parts[0], n: codes.length, bytes };
}

export const examplePixels = async (id, query) => pictures(await ask(run(id, `/examples/pixels?${query}`)));

export const manipulatedPixels = async (id, query) => pictures(await ask(run(id, `/manipulation/pixels?${query}`)));

export async function encode(id, file) {
  const headers = { "content-type": "application/octet-stream" };
  return (await ask(run(id, "/encode"), { method: "POST", headers, body: file })).json();
}
