// Small pictures, and lines, in the cards of a group: each is asked for when its card is seen, few at a time, and none
// that costs much.

import { completed } from "./array.js";
import { make } from "./elements.js";
import { proportion } from "./frame.js";
import { GUESSED } from "./looks.js";
import { Picture } from "./picture.js";
import { json, packed } from "./server.js";

const AT_ONCE = 4;
const MOST_BYTES = 2 ** 25, MOST_CHUNKS = 64; // decoded for one of them
const WIDTH = 200, HEIGHT = 96; // pixels

/** The number of chunks along an axis; infinite if the server does not say. */
function chunksOf({ chunks, length }) {
  return Array.isArray(chunks) ? chunks.length : chunks ? Math.ceil(length / chunks) : Infinity;
}

function isCheap(facts, state, nbytes) {
  const planes = state.mode === "channels" ? facts.channels.channels.length : 1;
  const chunks = planes * state.axes.reduce((product, axis) => product * chunksOf(facts.axes[axis]), 1);
  return chunks <= MOST_CHUNKS && chunks * nbytes <= MOST_BYTES;
}

function resize(canvas, width, height) {
  [canvas.style.width, canvas.style.height] = [width, height].map((each) => `${Math.max(8, Math.round(each))}px`);
}

/** Draws the small pictures of the members of a group at `state`. */
export class SmallPictures {
  #state;
  #waiting = [];
  #running = 0;
  #controller = new AbortController();
  #pictures = [];
  #members = new Map();
  #observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) {
        this.#waiting = this.#waiting.filter((each) => each !== target);
      } else if (this.#members.has(target) && !this.#waiting.includes(target)) this.#waiting.push(target);
    }
    this.#run();
  }, { rootMargin: "50px" });

  constructor(state) {
    this.#state = state;
  }

  /** End everything that is under way. */
  close() {
    this.#observer.disconnect();
    this.#waiting = [];
    this.#controller.abort();
    for (const each of this.#pictures) each.cancel();
  }

  /** Return the place of the picture of an array; null if the array can have none. */
  place(member) {
    if (!member.shape?.length || member.shape.includes(0) || member.chunk_nbytes > MOST_BYTES) return null;
    const place = make("span", { className: "small", "aria-hidden": "true" });
    this.#members.set(place, member);
    this.#observer.observe(place);
    return place;
  }

  #run() {
    while (this.#running < AT_ONCE && this.#waiting.length) {
      const place = this.#waiting.shift();
      const member = this.#members.get(place);
      this.#members.delete(place);
      this.#observer.unobserve(place);
      this.#running += 1;
      this.#draw(place, member).catch(() => false).then((drawn) => {
        place.dataset.drawn = String(Boolean(drawn));
        this.#running -= 1;
        this.#run();
      });
    }
  }

  /** Draw one; false if it costs too much, or its elements cannot be drawn. */
  async #draw(place, member) {
    const state = { name: this.#state.name, path: member.path };
    const facts = await json(state, "node", {}, this.#controller.signal);
    if (!["number", "complex", "time"].includes(facts.values)) return false;
    const shown = completed(state, facts);
    if (!isCheap(facts, shown, member.chunk_nbytes)) return false;
    const canvas = make("canvas", {});
    place.append(canvas);
    return shown.axes.length === 1 ? this.#line(canvas, shown, facts) : this.#picture(canvas, shown, facts);
  }

  #picture(canvas, state, facts) {
    const [rows, columns] = state.axes.map((axis) => facts.axes[axis]);
    const ratio = ((proportion(rows, columns) ?? 0) * rows.length) / columns.length;
    const isTrue = ratio > 1 / 12 && ratio < 12;
    resize(canvas, isTrue ? Math.min(WIDTH, HEIGHT / ratio) : WIDTH, isTrue ? Math.min(HEIGHT, WIDTH * ratio) : HEIGHT);
    return new Promise((resolve, reject) => {
      const picture = new Picture(canvas, null, (drawn) => drawn.finished && resolve(true), reject);
      this.#pictures.push(picture);
      this.#controller.signal.addEventListener("abort", reject);
      picture.show(state, facts);
    });
  }

  async #line(canvas, state, facts) {
    const length = facts.shape[0];
    const step = 2 ** Math.max(0, Math.ceil(Math.log2(length / WIDTH)));
    const query = { axes: 0, at: 0, box: `0,${length}`, step, snapshot: facts.snapshot, seconds: 1 };
    const { pixels, states } = await packed(state, "picture", query, this.#controller.signal);
    const is = (i) => states[i] & 1 && !(states[i] & GUESSED) && Number.isFinite(pixels[i]);
    const values = Array.from(pixels).filter((_, i) => is(i));
    if (!values.length) return false;
    const [lo, hi] = values.reduce(([least, most], each) => [Math.min(least, each), Math.max(most, each)], [Infinity, -Infinity]);
    resize(canvas, WIDTH, HEIGHT);
    const scale = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [WIDTH * scale, HEIGHT * scale];
    const context = canvas.getContext("2d");
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    context.lineWidth = 1.5 * scale;
    context.lineJoin = "round";
    const inset = 3 * scale;
    let isOn = false;
    pixels.forEach((value, i) => {
      if (!is(i)) {
        isOn = false;
        return;
      }
      const x = inset + (i / Math.max(1, pixels.length - 1)) * (canvas.width - 2 * inset);
      const y = canvas.height - inset - (hi > lo ? (value - lo) / (hi - lo) : 0.5) * (canvas.height - 2 * inset);
      if (isOn) context.lineTo(x, y);
      else context.moveTo(x, y);
      isOn = true;
    });
    context.stroke();
    return true;
  }
}
