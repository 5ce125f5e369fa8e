// How values look: colours by contrast, and a pattern each for what is no value.

import { categoryOf, colours, pack } from "./colours.js";

export const VALUE = 1, MISSING = 2, DAMAGED = 4, FILL = 8, NAN = 16, GUESSED = 32;

/** What is no value: its bit, its name, and how its pattern is drawn. A pixel looks like the first one that it has. */
export const LOOKS = [
  { bit: DAMAGED, name: "damaged", base: "#b3005e", mark: "#ffffff", lines: [[0, 0, 8, 8], [8, 0, 0, 8]] },
  { bit: NAN, name: "NaN", base: "#8f8f8f", mark: "#8f8f8f", lines: [] },
  { bit: FILL, name: "fill value", base: "#d9d2c3", mark: "#7a6f57", lines: [[0, 4, 8, 4]] },
  { bit: MISSING, name: "not stored", base: "#ffffff", mark: "#7d8b99", lines: [[0, 8, 8, 0]] },
];

/** Return the tile that a look repeats. */
export function tile(look) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 8;
  const context = canvas.getContext("2d");
  context.fillStyle = look.base;
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = look.mark;
  for (const [x0, y0, x1, y1] of look.lines) {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }
  return canvas;
}

/** Return which look each pixel has: 0 for a value, else one more than its place in LOOKS. */
export function looksOf(states, { marks }) {
  const found = new Uint8Array(states.length);
  for (let i = 0; i < states.length; i++) {
    const state = states[i];
    if (state & DAMAGED) found[i] = 1;
    else if (state & VALUE) found[i] = 0;
    else if (state & NAN) found[i] = 2;
    else if (state & FILL) found[i] = marks ? 3 : 0;
    else if (state & MISSING) found[i] = 4;
  }
  return found;
}

const SAMPLE = 2 ** 14;

/** Return values of a picture that are drawn as colours, sorted: both ends, and so many of the others. */
export function sorted(pixels, looks, states) {
  const stride = Math.ceil(pixels.length / SAMPLE) | 1; // odd, so that it goes through all columns
  const kept = new Float64Array(Math.ceil(pixels.length / stride) + 2);
  let count = 0;
  let [lo, hi] = [Infinity, -Infinity];
  for (let i = 0, next = 0; i < pixels.length; i++) {
    const value = pixels[i];
    if (looks[i] || !states[i] || states[i] & GUESSED || value - value !== 0) continue; // neither NaN nor infinite
    if (value < lo) lo = value;
    if (value > hi) hi = value;
    if (i >= next) {
      kept[count++] = value;
      next = i + stride;
    }
  }
  if (lo > hi) return kept.subarray(0, 0);
  kept[count++] = lo;
  kept[count++] = hi;
  return kept.subarray(0, count).sort();
}

/** Return the values below which are `low` and `high` percent. */
export function percentiles(values, low, high) {
  if (!values.length) return [0, 1];
  const at = (percent) => values[Math.min(values.length - 1, Math.round((percent / 100) * (values.length - 1)))];
  const [lo, hi] = [at(low), at(high)];
  return lo < hi ? [lo, hi] : values[0] < values[values.length - 1] ? [values[0], values[values.length - 1]] : [lo, lo + 1];
}

/** Return an image of the values: below `lo` the first colour of a map, from `hi` on the last one. */
export function paint(pixels, looks, states, width, height, { lo, hi, map }) {
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const table = colours(map);
  const count = table.length / 3;
  const shades = Uint32Array.from({ length: count }, (_, i) => pack(table[3 * i], table[3 * i + 1], table[3 * i + 2]));
  const named = map === "categories";
  const scale = count / (hi - lo);
  for (let i = 0; i < pixels.length; i++) {
    if (looks[i] || !states[i]) continue;
    const value = pixels[i];
    const at = named ? categoryOf(value, count) : (value - lo) * scale;
    out[i] = shades[at >= 0 ? (at < count ? Math.floor(at) : count - 1) : 0];
  }
  return image;
}

/**
 * Return an image of several channels: each adds its colour, as bright as its value is between its ends. One of them may
 * say how opaque each pixel is.
 */
export function mix(planes, looks, width, height) {
  const image = new ImageData(width, height);
  const out = image.data;
  const opacity = planes.find(({ channel }) => channel.opacity);
  for (const { pixels, channel } of planes) {
    if (channel.opacity) continue;
    const colour = [0, 2, 4].map((at) => parseInt(channel.colour.slice(at, at + 2), 16));
    const scale = 1 / (channel.hi - channel.lo || 1);
    for (let i = 0; i < pixels.length; i++) {
      const share = Math.min(1, Math.max(0, (pixels[i] - channel.lo) * scale));
      for (let c = 0; c < 3; c++) out[4 * i + c] += share * colour[c]; // the array of bytes rounds, and ends at 255
    }
  }
  for (let i = 0; i < looks.length; i++) out[4 * i + 3] = looks[i] ? 0 : opacity ? opacity.pixels[i] : 255;
  return image;
}

/** Return a mask of the pixels that have a look, or null where none has. */
export function mask(looks, which, width, height) {
  if (!looks.includes(which)) return null;
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  for (let i = 0; i < looks.length; i++) if (looks[i] === which) out[i] = 0xff000000;
  return image;
}
