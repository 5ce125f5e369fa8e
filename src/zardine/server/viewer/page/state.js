// What is seen, as a value that lies in the address of the page: it can be kept, sent, and gone back to.

const NUMBERS = ["axes", "at", "box"];
const TEXTS = ["name", "path", "map", "lo", "hi", "reduce", "field", "part", "mode", "stored", "level", "aspect", "pixels", "coast"];

/** Return the state that an address says. */
export function fromAddress(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  for (const name of TEXTS) if (found.has(name)) state[name] = found.get(name);
  for (const name of NUMBERS) {
    const text = found.get(name);
    if (text && /^-?[\d.]+(e[-+]?\d+)?(,-?[\d.]+(e[-+]?\d+)?)*$/.test(text)) {
      const numbers = text.split(",").map(Number);
      if (numbers.every(Number.isFinite)) state[name] = numbers;
    }
  }
  return state;
}

/** Return the address of a state. */
export function toAddress(state) {
  const parts = [];
  for (const name of [...TEXTS, ...NUMBERS]) {
    const value = state[name];
    if (value === undefined || value === null || value === "") continue;
    parts.push(`${name}=${encodeURIComponent(String(value)).replace(/%2C/g, ",").replace(/%2F/g, "/")}`);
  }
  return "#" + parts.join("&");
}
