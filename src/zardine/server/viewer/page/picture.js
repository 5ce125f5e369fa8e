// The picture: asks for pixels of what is seen, draws them, and says which element a place on the screen is.

import { Frame, flips } from "./frame.js";
import { LOOKS, looksOf, mask, mix, paint, percentiles, sorted, tile } from "./looks.js";
import { Latest, packed, report } from "./server.js";

/** A canvas that shows a box of two axes of an array. */
export class Picture {
  #canvas;
  #overlay;
  #asking;
  #state;
  #facts;
  #shown = null;
  #patterns;
  #listener;
  #refining = false;
  #painted = null; // the pixels that are shown, in colours
  #drawnAs = "";
  drawn = 0;

  /** `listener(shown)` is called whenever pixels have come, `fail(error)` if none do. */
  constructor(canvas, overlay, listener, fail = report) {
    this.#asking = new Latest(fail);
    this.#canvas = canvas;
    this.#overlay = overlay;
    this.#listener = listener;
    const context = canvas.getContext("2d");
    this.#patterns = LOOKS.map((look) => context.createPattern(tile(look), "repeat"));
  }

  get shown() {
    return this.#shown;
  }

  /** The box that is seen, in elements: top, bottom, left, right. One row high for a picture of one axis. */
  get box() {
    return this.boxOf(this.#state, this.#facts);
  }

  /** The box that a state shows of an array. */
  boxOf({ box, axes }, { shape }) {
    const whole = axes.length === 2 ? [0, shape[axes[0]], 0, shape[axes[1]]] : [0, 1, 0, shape[axes[0]]];
    if (!box) return whole;
    return axes.length === 2 && box.length === 4 ? box : box.length === 2 ? [0, 1, ...box] : whole;
  }

  /** Where the elements lie in a rectangle of the size of the picture. */
  frame(width = this.#canvas.width, height = this.#canvas.height) {
    return new Frame(this.box, width, height, flips(this.#state.axes.map((axis) => this.#facts.axes[axis])));
  }

  /** Show a state of an array; `fresh` where other elements are wanted than before, not only other colours. */
  show(state, facts, fresh = true) {
    if (this.#shown && String(this.#shown.state.axes) !== String(state.axes)) this.#shown = null;
    this.#state = state;
    this.#facts = facts;
    if (!fresh && this.#shown) {
      this.draw();
      return;
    }
    this.draw();
    if (this.#refining) this.#asking.overtake(); // something of it was shown already
    this.#asking.ask((signal) => this.#load(signal));
  }

  /** Nobody waits for pixels any more. */
  cancel() {
    this.#asking.cancel();
  }

  /** Return the element below a place on the canvas, in CSS pixels, as [row, column]; null outside of the array. */
  element(x, y) {
    const bounds = this.#canvas.getBoundingClientRect();
    const frame = this.frame(bounds.width, bounds.height);
    const [row, column] = [Math.floor(frame.row(y)), Math.floor(frame.column(x))];
    const { axes } = this.#state;
    const [rows, columns] = axes.length === 2 ? axes.map((axis) => this.#facts.shape[axis]) : [1, this.#facts.shape[axes[0]]];
    return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
  }

  /** What is asked of the server for the box that is seen. */
  request() {
    const { axes, at, reduce, field, part } = this.#state;
    const [top, bottom, left, right] = this.box;
    const shape = this.#facts.shape;
    const [rows, columns] = axes.length === 2 ? axes.map((axis) => shape[axis]) : [1, shape[axes[0]]];
    const down = [Math.max(0, Math.floor(top)), Math.min(rows, Math.ceil(bottom))];
    const across = [Math.max(0, Math.floor(left)), Math.min(columns, Math.ceil(right))];
    const steps = [step(bottom - top, this.#canvas.height), step(right - left, this.#canvas.width)];
    const both = axes.length === 2;
    return {
      axes: axes.join(","), at: at.join(","), reduce, field, part, snapshot: this.#facts.snapshot,
      box: (both ? [...down, ...across] : across).join(","),
      step: (both ? steps : steps.slice(1)).join(","),
    };
  }

  async #load(signal) {
    this.#refining = false;
    const state = this.#state;
    const request = this.request();
    for (let seconds = 0.2; ; seconds = 0.5) {
      const found = await this.#ask(state, { ...request, seconds }, signal);
      this.#take(found, state);
      if (found.finished || this.#asking.isOvertaken) return;
      this.#refining = true;
    }
  }

  /** Ask for one picture; or for one of each channel, which come as `planes` of the first. */
  async #ask(state, request, signal) {
    if (state.mode !== "channels") return packed(state, "picture", request, signal);
    const { axis, channels } = this.#facts.channels;
    const active = channels.map((channel, i) => ({ ...channel, i })).filter((channel) => channel.active);
    const planes = [];
    for (const channel of active) {
      const at = state.at.map((i, number) => (number === axis ? channel.i : i));
      planes.push({ ...(await packed(state, "picture", { ...request, at: at.join(",") }, signal)), channel });
    }
    return { ...planes[0], planes, finished: planes.every((plane) => plane.finished) };
  }

  #take(found, state) {
    const [height, width] = found.arrays[0].shape;
    this.#shown = { ...found, width, height, state, looks: looksOf(found.states, this.#facts) };
    this.#shown.sorted = sorted(found.pixels, this.#shown.looks, found.states);
    this.drawn += 1;
    this.draw();
    this.#canvas.dataset.drawn = String(this.drawn);
    this.#canvas.dataset.finished = String(found.finished);
    this.#listener(this.#shown);
  }

  /** The ends of the contrast: those of the state, else percentiles of what is seen. */
  contrast() {
    const [lo, hi] = percentiles(this.#shown?.sorted ?? [], 2, 98);
    const of = (text, other) => (text === undefined || text === "" || !Number.isFinite(Number(text)) ? other : Number(text));
    const ends = [of(this.#state.lo, lo), of(this.#state.hi, hi)];
    return ends[0] < ends[1] ? ends : [ends[0], ends[0] + 1];
  }

  /** Draw what is there again, in the colours of the state. */
  draw() {
    const canvas = this.#canvas;
    const bounds = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    const size = [Math.max(1, Math.round(bounds.width * scale)), Math.max(1, Math.round(bounds.height * scale))];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const [lo, hi] = this.contrast();
    const { map } = this.#state;
    const colours = `${lo} ${hi} ${map}`;
    const drawnAs = `${this.drawn} ${Boolean(this.#shown)} ${size} ${this.box} ${colours}`;
    if (drawnAs === this.#drawnAs) return; // it looks as it did
    this.#drawnAs = drawnAs;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!this.#shown) return;
    const shown = this.#shown;
    if (this.#painted?.shown !== shown || this.#painted.colours !== colours) {
      const { width, height, looks, states, pixels, planes } = shown;
      const image = planes ? mix(planes, looks, width, height) : paint(pixels, looks, states, width, height, { lo, hi, map });
      const masks = LOOKS.map((_, number) => mask(looks, number + 1, width, height));
      this.#painted = { shown, colours, image: bitmap(image), masks: masks.map((each) => each && bitmap(each)) };
    }
    this.#blit(context, this.#painted.image, null);
    this.#painted.masks.forEach((image, number) => image && this.#blit(context, image, this.#patterns[number]));
  }

  /** Draw an image of the picture's pixels where they lie; where there is a pattern, that in their place. */
  #blit(context, image, pattern) {
    const { rows, columns } = this.#shown;
    const canvas = this.#canvas;
    const frame = this.frame();
    const place = frame.rectangle([rows[0], rows[0] + image.height * rows[2]], [columns[0], columns[0] + image.width * columns[2]]);
    const draw = (drawing) => { // an axis that is flipped turns the image about the middle of its place
      drawing.save();
      drawing.translate(place[0] + place[2] / 2, place[1] + place[3] / 2);
      drawing.scale(frame.flipColumns ? -1 : 1, frame.flipRows ? -1 : 1);
      drawing.drawImage(image, -place[2] / 2, -place[3] / 2, place[2], place[3]);
      drawing.restore();
    };
    // beyond the array lies nothing, though the last pixel may reach there
    const { axes } = this.#state;
    const ends = axes.length === 2 ? axes.map((axis) => this.#facts.shape[axis]) : [1, this.#facts.shape[axes[0]]];
    context.save();
    context.beginPath();
    context.rect(...frame.rectangle([0, ends[0]], [0, ends[1]]));
    context.clip();
    context.imageSmoothingEnabled = false;
    if (!pattern) {
      draw(context);
    } else {
      const layer = new OffscreenCanvas(canvas.width, canvas.height);
      const drawing = layer.getContext("2d");
      drawing.imageSmoothingEnabled = false;
      draw(drawing);
      drawing.globalCompositeOperation = "source-in";
      drawing.fillStyle = pattern;
      drawing.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(layer, 0, 0);
    }
    context.restore();
  }
}

/** Return an image as something that can be drawn, larger or smaller. */
function bitmap(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Return how many elements become one pixel: a power of two, so that what was read serves again. */
function step(elements, pixels) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(elements / Math.max(1, pixels))));
}
