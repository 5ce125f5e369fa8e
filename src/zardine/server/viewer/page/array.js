// An array: its picture and what steers it, exact values, where they are stored, and what its document says.

import { categoryColour, gradient, MAPS } from "./colours.js";
import { coasts, drawCoast, isMap } from "./coast.js";
import { drawHistogram, drawProfile } from "./chart.js";
import { bytes, choice, make } from "./elements.js";
import { elsewhere } from "./elsewhere.js";
import { APART, drawBarTicks, drawTicks, ticksOf, widthOfTicks } from "./ticks.js";
import { proportion, titled } from "./frame.js";
import { drawGrid } from "./grid.js";
import { GUESSED, LOOKS, tile } from "./looks.js";
import { Picture } from "./picture.js";
import { toAddress } from "./state.js";
import { Latest, address, beginMove, json, packed } from "./server.js";
import { Stored } from "./stored.js";
import { drawTable, ROWS } from "./table.js";

const DRAWN = ["number", "complex", "time"];
const MOST_CATEGORIES = 32;
const MARGIN = 112; // pixels beside a picture and its ticks, for a title and the bar of colours
const WIDE = 900, TOLD = 400; // pixels from which on what is told of a picture lies beside, and its width there
const BELOW = 170, SERIES = 250, UNDER = 60; // pixels below a picture for its ticks and buttons, for a series, and for its ticks
const BESIDE_A_LINE = 50; // the same beside the strip below a line, which is as wide as that
const MOST_LONG = 12; // a picture whose sides differ more is not true to scale

/** The fields of a struct that can be drawn. */
function drawnFields({ fields }) {
  return Object.keys(fields).filter((name) => DRAWN.includes(fields[name]));
}

/** Return what is seen of an array where the address does not say it. */
export function completed(state, facts) {
  const rank = facts.shape.length;
  const last = facts.channels?.axis === rank - 1 ? 1 : 0; // the axis of colours is none of the picture
  const axes = state.axes?.every((axis) => Number.isInteger(axis) && axis < rank) && new Set(state.axes).size === state.axes.length && state.axes.length <= 2 ? state.axes : rank > 1 ? [rank - 2 - last, rank - 1 - last] : rank ? [0] : [];
  const at = state.at?.length === rank ? state.at.map((i, axis) => Math.max(0, Math.min(Math.floor(i), facts.shape[axis] - 1))) : facts.shape.map(() => 0);
  const lengths = axes.map((axis) => facts.shape[axis]);
  const box = state.box?.length === 2 * axes.length && lengths.every((length, i) => 0 <= state.box[2 * i] && state.box[2 * i] < state.box[2 * i + 1] && state.box[2 * i + 1] <= length) ? state.box : undefined;
  const field = drawnFields(facts).find((name) => name === state.field) ?? (rank > 1 ? drawnFields(facts)[0] : undefined);
  return {
    ...state, axes, at, box, field, mode: facts.channels && !axes.includes(facts.channels.axis) ? state.mode ?? "channels" : "plain", map: MAPS.includes(state.map) ? state.map : facts.dtype === "bool" ? "grey" : Object.keys(facts.meanings).length ? "categories" : MAPS[0],
    reduce: ["nearest", "mean", "max", "min"].includes(state.reduce) ? state.reduce : "nearest",
  };
}

/** The part of the page that shows one array. */
export class ArrayView {
  #place;
  #facts;
  #state;
  #change;
  #picture = null;
  #parts = {};
  #hover = new Latest();
  #tables = new Latest();
  #charts = new Latest();
  #ticks = new Latest();
  #telling = new Latest();
  #cursor = null;
  #marks = [];
  #coasts = null;
  #stored = null;

  /** `change(state, lasting)` is called when something else is to be seen. */
  constructor(place, facts, state, change) {
    this.#place = place;
    this.#facts = facts;
    this.#change = change;
    this.#state = completed(state, facts);
    this.#build();
    this.show(this.#state, true);
  }

  get state() {
    return this.#state;
  }

  /** End everything that is under way. */
  close() {
    this.#picture?.cancel();
    this.#stored.close();
    for (const each of [this.#hover, this.#tables, this.#charts, this.#ticks, this.#telling]) each.cancel();
  }

  /** Show another state of the same array. */
  show(state, fresh = true) {
    this.#state = completed(state, this.#facts);
    const { picture } = this.#parts;
    if (this.#picture) {
      if (fresh) beginMove();
      this.#fit();
      this.#picture.show(this.#state, this.#facts, fresh);
      this.#drawBar();
      this.#drawGrid();
      this.#drawTicks();
      if (fresh && this.#state.axes.length === 1 && this.#facts.shape.length === 1) this.#charts.ask((signal) => this.#profile(this.#state.at, 0, signal));
    }
    if (!this.#picture || this.#parts.table.open) this.#drawTable();
    if (picture) picture.setAttribute("aria-label", `Picture of ${this.#state.path || this.#state.name}; arrow keys move the cross, plus and minus zoom`);
    this.#tell();
    for (const link of this.#place.querySelectorAll("a.npy")) link.href = this.#npy();
  }

  /** Ask for the Python expression of what is seen. */
  #tell() {
    const { axes, at, field, mode } = this.#state;
    const box = this.#picture?.request().box;
    const whole = mode === "channels" ? this.#facts.channels.axis : undefined;
    const { code } = this.#parts;
    code.textContent = "";
    this.#telling.ask(async (signal) => {
      const found = await json(this.#state, "expression", { axes: axes.join(","), at: at.join(","), box, field, whole, snapshot: this.#facts.snapshot }, signal);
      if (!this.#telling.isOvertaken) code.textContent = found.expression;
    });
  }

  #to(changes, { fresh = true, lasting = false } = {}) {
    this.show({ ...this.#state, ...changes }, fresh);
    this.#change(this.#state, lasting);
  }

  #build() {
    const facts = this.#facts;
    const parts = (this.#parts = {});
    const drawn = facts.shape.length && facts.shape.every(Boolean) && (DRAWN.includes(facts.values) || Boolean(this.#state.field));
    parts.status = make("p", { className: "status", id: "status", "aria-live": "polite" });
    parts.read = make("p", { className: "status", id: "read" });
    parts.code = make("code", { id: "expression" });
    parts.cells = make("div", { className: "scroll", id: "cells", tabIndex: 0, role: "region", "aria-label": "Exact values" });
    parts.table = make("details", { id: "table", open: !drawn || facts.shape.length === 1, ontoggle: () => parts.table?.open && this.#drawTable() }, make("summary", {}, "Exact values"), parts.cells);
    const about = make("details", { id: "about", open: !drawn }, make("summary", {}, "About this array"), this.#about());
    parts.drawn = drawn;
    const sections = [make("div", { id: "axes" }, ...this.#sliders())];
    const isLine = facts.shape.length === 1;
    if (!drawn) sections.push(parts.status);
    if (!drawn && facts.shape.length === 1 && drawnFields(facts).length) {
      const { name, path } = this.#state;
      const links = drawnFields(facts).flatMap((field, i) => [i ? ", " : "", make("a", { href: toAddress({ name, path, field }) }, field)]);
      sections.push(make("p", { id: "fields" }, "Draw as a line: ", ...links));
    }
    const expression = [make("p", { className: "copied" }, parts.code, " ", make("button", { type: "button", id: "copy", onclick: () => navigator.clipboard?.writeText(parts.code.textContent) }, "Copy"))];
    this.#stored = new Stored(facts, () => this.#state, (marks) => {
      this.#marks = marks;
      this.#drawGrid();
    }, (at) => this.#go(at), drawn);
    if (drawn) {
      parts.pictured = make("div", { className: "pictured" }, ...this.#stage());
      const histogram = make("details", { id: "values-seen", ontoggle: (event) => event.target.open && this.#drawHistogram() }, make("summary", {}, "Histogram"), parts.histogram);
      parts.seen = make("div", { className: "seen" }, parts.pictured, make("div", { className: "told" }, isLine ? parts.table : parts.profile, this.#stored.section));
      sections.push(parts.seen, ...expression, histogram, isLine ? "" : parts.table, about);
    } else sections.push(...expression, parts.table, this.#stored.section, about);
    this.#place.replaceChildren(...sections);
    if (drawn) this.#listen();
  }

  #sliders() {
    const { shape, axes } = this.#facts;
    const names = axes.map((axis) => axis.name);
    const controls = [];
    if (shape.length > 2) {
      ["rows", "columns"].forEach((what, place) => {
        const label = make("label", {}, `${what} `);
        label.append(choice(names.map((_, i) => i), this.#state.axes[place], (value) => {
          const chosen = [...this.#state.axes];
          const other = chosen.indexOf(Number(value));
          if (other >= 0) chosen[other] = chosen[place];
          chosen[place] = Number(value);
          this.#to({ axes: chosen, box: undefined, pixels: "" }, { lasting: true });
          this.#place.querySelector("#axes").replaceChildren(...this.#sliders());
        }, Object.fromEntries(names.map((name, i) => [i, name]))));
        controls.push(label);
      });
    }
    const rows = controls.length ? [make("div", { className: "controls" }, ...controls)] : [];
    axes.forEach((axis, number) => {
      if ((this.#parts.drawn && this.#state.axes.includes(number)) || axis.length < 2) return;
      if (!this.#parts.drawn && axes.length === 1 && axis.length <= ROWS) return; // the table has all of them
      if (this.#state.mode === "channels" && this.#facts.channels.axis === number) return;
      const shown = make("output", { id: `label-${number}` }, String(this.#state.at[number]));
      const move = (value) => {
        const at = [...this.#state.at];
        at[number] = Math.max(0, Math.min(Number(value) || 0, axis.length - 1));
        slider.value = exact.value = shown.textContent = String(at[number]);
        this.#to({ at });
      };
      const slider = make("input", { type: "range", id: `axis-${number}`, min: 0, max: axis.length - 1, value: this.#state.at[number], "aria-label": axis.name, oninput: () => move(slider.value) });
      const exact = make("input", { type: "number", className: "number", min: 0, max: axis.length - 1, value: this.#state.at[number], "aria-label": `${axis.name}: index`, onchange: () => move(exact.value) });
      rows.push(make("div", { className: "controls" }, make("span", {}, axis.name), slider, exact, shown));
    });
    return rows;
  }

  #stage() {
    const parts = this.#parts;
    const facts = this.#facts;
    parts.picture = make("canvas", { id: "picture", tabIndex: 0, role: "img" });
    parts.overlay = make("canvas", { id: "overlay", "aria-hidden": "true" });
    parts.stage = make("div", { className: "stage" }, parts.picture, parts.overlay);
    parts.bar = make("div", { className: "bar", role: "img" });
    parts.scale = make("div", { className: "scale", "aria-hidden": "true" }, parts.bar, make("div", { className: "ticks right" }), make("div", { className: "title" }, titled(facts)));
    parts.figure = make(
      "div", { className: "figure" },
      make("div", { className: "title rows", "aria-hidden": "true" }), make("div", { className: "ticks left", "aria-hidden": "true" }), parts.stage, parts.scale,
      make("div", { className: "ticks below", "aria-hidden": "true" }), make("div", { className: "title columns", "aria-hidden": "true" }),
    );
    parts.categories = make("div", { className: "legend", id: "categories" });
    parts.lo = make("input", { type: "number", step: "any", className: "number", id: "lo", "aria-label": "lowest value of the colours", onchange: () => this.#to({ lo: parts.lo.value }, { fresh: false }) });
    parts.hi = make("input", { type: "number", step: "any", className: "number", id: "hi", "aria-label": "highest value of the colours", onchange: () => this.#to({ hi: parts.hi.value }, { fresh: false }) });
    parts.histogram = make("div", { id: "histogram" });
    parts.profile = make("div", { id: "profile" });
    const map = make("label", {}, "colours ", choice(MAPS, this.#state.map, (value) => this.#to({ map: value }, { fresh: false })));
    map.querySelector("select").id = "map";
    const reduce = make("label", {}, "many in one pixel ", choice(["nearest", "mean", "max", "min"], this.#state.reduce, (value) => this.#to({ reduce: value })));
    reduce.querySelector("select").id = "reduce";
    const aspect = make("label", {}, "shape ", choice(["", "square", "fill"], this.#state.aspect ?? "", (value) => this.#to({ aspect: value, pixels: "" }), { "": "true to scale", square: "square elements", fill: "fill" }));
    aspect.querySelector("select").id = "aspect";
    const extra = [];
    if (facts.values === "complex") extra.push(make("label", {}, "part ", choice(["abs", "real", "imag", "phase"], this.#state.part, (value) => this.#to({ part: value, lo: "", hi: "" }))));
    if (facts.values === "struct") {
      extra.push(make("label", {}, "field ", choice(drawnFields(facts), this.#state.field, (value) => this.#to({ field: value, lo: "", hi: "" }))));
    }
    parts.check = make("input", { type: "checkbox", id: "stored", checked: Boolean(this.#state.stored), onchange: (event) => this.#showStored(event.target.checked) });
    parts.channels = make("input", { type: "checkbox", id: "channels", checked: this.#state.mode === "channels", onchange: (event) => {
      this.#to({ mode: event.target.checked ? "channels" : "plain" });
      this.#place.querySelector("#axes").replaceChildren(...this.#sliders());
    } });
    parts.coast = make("input", { type: "checkbox", id: "coast", checked: this.#state.coast !== "0", onchange: (event) => this.#to({ coast: event.target.checked ? "" : "0" }, { fresh: false }) });
    const press = (text, id, work) => make("button", { type: "button", id, onclick: work }, text);
    const legend = make("div", { className: "legend", id: "legend" }, ...LOOKS.filter((look) => look.name !== "fill value" || facts.marks).map((look) => {
      const canvas = make("canvas", { width: 18, height: 18, "aria-hidden": "true" });
      const context = canvas.getContext("2d");
      context.fillStyle = context.createPattern(tile(look), "repeat");
      context.fillRect(0, 0, 18, 18);
      return make("span", {}, canvas, look.name);
    }));
    this.#picture = new Picture(parts.picture, parts.overlay, (shown) => this.#taken(shown));
    return [
      make("div", { className: "controls" }, (parts.colours = make("span", { className: "controls" }, map, parts.lo, "to", parts.hi, press("2–98 %", "percentiles", () => this.#to({ lo: "", hi: "" }, { fresh: false })), press("all", "extremes", () => {
        const values = this.#picture.shown?.sorted;
        if (values?.length) this.#to({ lo: String(values[0]), hi: String(values[values.length - 1]) }, { fresh: false });
      }))), reduce, ...extra),
      make("h2", { id: "caption" }, titled(facts)), ...(facts.shape.length === 1 ? [parts.profile] : []), parts.categories, parts.figure, ...this.#notes(),
      make("div", { className: "controls" }, press("+", "zoom-in", () => this.#zoom(0.5)), press("−", "zoom-out", () => this.#zoom(2)), press("fit", "fit", () => this.#to({ box: undefined, pixels: "" })), ...(facts.shape.length > 1 ? [press("1:1", "one-to-one", () => this.#onePixel()), aspect] : []),
        make("label", {}, parts.check, " chunks and shards"), make("label", {}, parts.coast, " coastlines"), ...(facts.channels ? [make("label", {}, parts.channels, " channels as colours")] : []),
        press("save picture", "save-png", () => this.#save()), make("a", { className: "npy", id: "save-npy", href: "#" }, "save values (.npy)"), legend),
      parts.status, parts.read,
    ];
  }

  /** What must be known to read the picture. */
  #notes() {
    const { curvilinear, levels } = this.#facts;
    const { name, path } = this.#state;
    const above = path?.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    const image = levels.length ? [make("p", { id: "image-of", className: "status" }, `A level of the image ${above || name}: `, make("a", { href: toAddress({ name, path: above, mode: "group" }) }, "its group"))] : [];
    return curvilinear.length ? [make("p", { id: "by-index", className: "status" }, `Drawn by index: the coordinates ${curvilinear.join(" and ")} have two dimensions.`)] : image;
  }

  #showStored(wanted) {
    this.#state.stored = wanted ? "1" : "";
    this.#parts.check.checked = wanted;
    this.#change(this.#state, false);
    if (wanted) this.#stored.look(this.#picture.request());
    this.#drawGrid();
  }

  /** Show an element: the picture moves there, and it is picked. */
  #go(at) {
    const { axes } = this.#state;
    const [top, bottom, left, right] = this.#picture?.box ?? [];
    const inside = axes.length === 2 ? at[axes[0]] >= top && at[axes[0]] < bottom && at[axes[1]] >= left && at[axes[1]] < right : at[axes[0]] >= left && at[axes[0]] < right;
    this.#to({ at, box: inside ? this.#state.box : undefined }, { lasting: true });
    this.#place.querySelector("#axes").replaceChildren(...this.#sliders());
    this.#pick([axes.length === 2 ? at[axes[0]] : 0, at[axes[axes.length - 1]]]);
  }

  /** The height of an element for a width of 1; null if the picture fills the place there is. */
  #proportion() {
    const { axes, aspect } = this.#state;
    if (axes.length !== 2 || aspect === "fill") return null;
    return aspect === "square" ? 1 : proportion(...axes.map((axis) => this.#facts.axes[axis]));
  }

  /** The width and the height there are for a picture, with what is told of it beside, or below. */
  #room(isBeside = this.#parts.seen.dataset.layout === "beside") {
    const { figure, seen } = this.#parts;
    const { axes } = this.#state;
    const left = axes.length === 2 ? widthOfTicks(this.#facts.axes[axes[0]]) : 58;
    figure.style.gridTemplateColumns = `1.4rem ${left}px auto 1fr`;
    const width = seen.clientWidth - left - (axes.length === 2 ? MARGIN : BESIDE_A_LINE) - (isBeside ? TOLD : 0);
    const top = figure.getBoundingClientRect().top + scrollY;
    const isWide = seen.clientWidth >= WIDE;
    const most = innerHeight - top - (isWide ? BELOW + (isBeside ? 0 : SERIES) : UNDER);
    return [Math.max(120, width), Math.max(isWide ? 260 : 220, Math.round(most))];
  }

  /** Return the size of the picture in so much room: true to scale if that leaves something to see. */
  #sizeIn([width, height]) {
    const [top, bottom, left, right] = this.#picture.boxOf(this.#state, this.#facts);
    const tall = (this.#proportion() ?? 0) * (bottom - top);
    const ratio = tall / (right - left);
    const isScaled = ratio > 1 / MOST_LONG && ratio < MOST_LONG;
    if (!isScaled) return { isScaled, size: [width, this.#state.axes.length === 2 ? Math.min(height, width) : 60] };
    const scale = this.#state.pixels === "1" ? 1 / (devicePixelRatio || 1) : Math.min(width / (right - left), height / tall);
    return { isScaled, size: [Math.min(width, scale * (right - left)), Math.min(height, scale * tall)] };
  }

  /** Give the picture its size, and place what is told of it where that leaves the picture larger. */
  #fit() {
    const { stage, figure, seen } = this.#parts;
    const isLine = this.#facts.shape.length === 1;
    const [beside, below] = [true, false].map((isBeside) => this.#sizeIn(this.#room(isBeside)));
    const area = ({ size }) => size[0] * size[1];
    const isBeside = seen.clientWidth >= WIDE && (isLine || (beside.isScaled && area(beside) >= 0.9 * area(below)));
    seen.dataset.layout = isBeside ? "beside" : seen.clientWidth >= WIDE ? "below" : "stacked";
    const { size, isScaled } = isBeside ? beside : below;
    const column = Math.max(560, size[0] + seen.clientWidth - TOLD - this.#room(true)[0]);
    seen.style.gridTemplateColumns = isBeside ? `${Math.min(column, seen.clientWidth - TOLD)}px minmax(0, 1fr)` : "";
    [stage.style.width, stage.style.height] = size.map((each) => `${Math.max(8, Math.round(each))}px`);
    figure.dataset.scaled = String(isScaled);
  }

  /** Show one element of the columns on one pixel of the screen. */
  #onePixel() {
    const [room, tall] = this.#room().map((each) => each * (devicePixelRatio || 1));
    const [top, bottom, left, right] = this.#picture.box;
    const ends = this.#state.axes.map((axis) => this.#facts.shape[axis]);
    const span = (low, high, pixels, end) => {
      const size = Math.min(end, Math.floor(pixels));
      const start = Math.round(Math.min(Math.max(0, (low + high - size) / 2), end - size));
      return [start, start + size];
    };
    this.#to({ pixels: "1", box: [...span(top, bottom, tall / (this.#proportion() ?? 1), ends[0]), ...span(left, right, room, ends[1])] });
  }

  #drawTicks() {
    const { figure, picture } = this.#parts;
    const bounds = picture.getBoundingClientRect();
    this.#ticks.ask((signal) => drawTicks(figure, this.#picture.frame(bounds.width, bounds.height), this.#state, this.#facts, signal));
  }

  #taken(shown) {
    const { read } = this.#parts;
    const share = shown.total ? (100 * shown.chunks) / shown.total : 100;
    const part = `${share < 1 ? share.toPrecision(2) : Math.floor(share)} % of ${shown.total} chunks read`;
    const all = shown.total === 1 ? "the one chunk read" : `all ${shown.total} chunks read`;
    const words = shown.chunks === shown.total ? all : shown.finished ? `${part}, a sample from all over the picture: zoom in to see more` : part;
    read.textContent = [words + (shown.level ? ` of the level ${shown.level}` : ""), shown.missing ? `${shown.missing} not stored` : "", shown.damaged ? `${shown.damaged} damaged` : ""].filter(Boolean).join(", ");
    read.dataset.chunks = shown.chunks;
    shown.labels.forEach((label, axis) => {
      const place = document.getElementById(`label-${axis}`);
      if (place) place.textContent = label ?? String(this.#state.at[axis]);
    });
    this.#drawBar();
    this.#drawGrid();
    if (this.#state.stored && shown.finished) this.#stored.look(this.#picture.request());
    if (this.#place.querySelector("#values-seen")?.open) this.#drawHistogram();
  }

  #drawBar() {
    const { bar, categories, lo, hi } = this.#parts;
    const named = this.#state.map === "categories" && this.#state.mode !== "channels";
    const { scale } = this.#parts;
    scale.hidden = named || this.#state.mode === "channels" || this.#state.axes.length === 1; // a line has its own scale
    categories.hidden = !named;
    if (named) this.#drawCategories();
    const ends = this.#picture.contrast();
    bar.style.background = gradient(this.#state.map);
    this.#parts.colours.hidden = this.#state.mode === "channels";
    drawBarTicks(scale, ends, this.#facts.values === "time");
    bar.setAttribute("aria-label", `colours from ${ends[0]} to ${ends[1]}`);
    for (const [input, value] of [[lo, ends[0]], [hi, ends[1]]]) {
      if (document.activeElement !== input) input.value = String(Number(value.toPrecision(7)));
    }
  }

  /** The colours of values that are names: of those that the attributes name, else of those that are seen. */
  #drawCategories() {
    const named = Object.keys(this.#facts.meanings);
    const values = named.length ? named : [...new Set(this.#picture.shown?.sorted ?? [])];
    this.#parts.categories.replaceChildren(...values.slice(0, MOST_CATEGORIES).map((value) => {
      const swatch = make("i", { className: "swatch", "aria-hidden": "true" });
      swatch.style.background = categoryColour(Number(value));
      return make("span", {}, swatch, named.length ? `${value} ${this.#facts.meanings[value]}` : String(value));
    }), values.length > MOST_CATEGORIES ? `and ${values.length - MOST_CATEGORIES} more` : "");
  }

  #drawHistogram() {
    drawHistogram(this.#parts.histogram, this.#picture.shown?.sorted ?? []);
  }

  #drawGrid() {
    const { overlay } = this.#parts;
    if (!overlay) return;
    const axes = this.#state.axes.map((axis) => this.#facts.axes[axis]);
    const frame = this.#picture.frame();
    const onMap = isMap(axes);
    this.#parts.coast.parentElement.hidden = !onMap;
    drawGrid(overlay, frame, axes, Boolean(this.#state.stored), this.#marksSeen(), this.#cursor, (canvas) => {
      if (!onMap || this.#state.coast === "0") return;
      if (this.#coasts) drawCoast(canvas, frame, axes, this.#coasts);
      else this.#loadCoasts();
    });
  }

  async #loadCoasts() {
    this.#coasts = await coasts();
    this.#drawGrid();
    this.#parts.figure.dataset.coast = "true";
  }

  /** The marked blocks of elements that the picture cuts, along its axes. */
  #marksSeen() {
    const { axes, at } = this.#state;
    return this.#marks.filter(({ start, shape }) => at.every((i, axis) => axes.includes(axis) || (i >= start[axis] && i < start[axis] + shape[axis]))).map(({ start, shape, colour, dashed }) => {
      const span = (axis) => [start[axis], start[axis] + shape[axis]];
      return { rows: axes.length === 2 ? span(axes[0]) : [0, 1], columns: span(axes[axes.length - 1]), colour, dashed };
    });
  }

  #drawTable() {
    this.#tables.ask((signal) => drawTable(this.#parts.cells, { ...this.#state, at: this.#corner() }, this.#facts, signal));
  }

  /** Where the table begins: at the first element of the picture that is seen. */
  #corner() {
    if (!this.#picture) return this.#state.at;
    const [top, , left] = this.#picture.box;
    return this.#placeOf([Math.floor(top), Math.floor(left)]);
  }

  #placeOf([row, column]) {
    const at = [...this.#state.at];
    const { axes } = this.#state;
    if (axes.length === 2) at[axes[0]] = row;
    at[axes[axes.length - 1]] = column;
    return at;
  }

  #point(place) {
    if (!place) return;
    const at = this.#placeOf(place);
    this.#hover.ask(async (signal) => {
      const found = await json(this.#state, "value", { at: at.join(","), snapshot: this.#facts.snapshot }, signal);
      const where = this.#facts.axes.map((axis, i) => `${axis.name} ${at[i]}${found.labels[i] ? ` (${found.labels[i]})` : ""}`);
      const text = typeof found.text === "object" ? JSON.stringify(found.text) : found.text;
      const meaning = this.#facts.meanings[found.text];
      const what = found.state === "damaged" ? `damaged: ${found.error}` : found.state === "missing" ? `${text} (not stored: the fill value)` : found.state === "fill" ? `${text} (fill value)` : meaning ? `${text} (${meaning})` : text;
      this.#parts.status.textContent = `${where.join(", ")}: ${what}`;
      this.#parts.status.dataset.at = at.join(",");
    });
  }

  /** A place was chosen: its chunk, and a profile through it, are shown. */
  #pick(place) {
    if (!place) return;
    this.#cursor = place;
    const at = this.#placeOf(place);
    this.#point(place);
    this.#drawGrid();
    this.#stored.pick(at);
    const colours = this.#state.mode === "channels" ? this.#facts.channels.axis : null;
    const others = this.#facts.shape.map((_, axis) => axis).filter((axis) => !this.#state.axes.includes(axis) && axis !== colours && this.#facts.shape[axis] > 1);
    if (this.#facts.shape.length === 1) return; // its line is shown
    const along = others[0] ?? this.#state.axes[this.#state.axes.length - 1];
    this.#charts.ask((signal) => this.#profile(at, along, signal));
  }

  async #profile(at, along, signal) {
    const length = this.#facts.shape[along];
    const isLine = this.#facts.shape.length === 1;
    const [, , from, to] = isLine ? this.#picture.box : [0, 1, 0, length];
    const step = 2 ** Math.max(0, Math.ceil(Math.log2((to - from) / 2048)));
    const { field, part, reduce } = this.#state;
    if (!isLine) beginMove();
    const [found, ticks] = await Promise.all([
      packed(this.#state, "picture", {
        axes: along, at: at.join(","), box: `${from},${to}`, step, field, part, reduce, seconds: 1, snapshot: this.#facts.snapshot,
      }, signal),
      ticksOf(this.#state, this.#facts, along, from, to, this.#parts.profile.clientWidth, APART.columns, signal),
    ]);
    const first = found.columns[0];
    const xs = Array.from(found.pixels, (_, i) => first + i * found.columns[2]);
    const ys = Array.from(found.pixels, (value, i) => (found.states[i] & 1 && !(found.states[i] & GUESSED) ? value : null));
    const others = at.map((i, axis) => (axis === along ? null : `${this.#facts.axes[axis].name} ${found.labels[axis] ?? i}`)).filter(Boolean);
    const title = isLine ? "" : `Along ${this.#facts.axes[along].name}, at ${others.join(", ")}`;
    const zoom = isLine ? (low, high) => this.#to({ box: this.#range(low, high, length) }) : null;
    drawProfile(this.#parts.profile, title, titled(this.#facts.axes[along]), this.#facts.units ?? this.#facts.title, ticks.map(([edge, text]) => [edge - 0.5, text]), xs, ys, [from - 0.5, to - 0.5], zoom);
    this.#parts.profile.dataset.points = JSON.stringify(ys.slice(0, 64));
  }

  /** The box of a range of indices that was dragged. */
  #range(low, high, length) {
    const start = Math.min(Math.max(0, Math.floor(low)), length - 1);
    return [start, Math.max(start + 1, Math.min(length, Math.ceil(high) + 1))];
  }

  #zoom(factor, around = null) {
    const [top, bottom, left, right] = this.#picture.box;
    const [row, column] = around ?? [(top + bottom) / 2, (left + right) / 2];
    const both = this.#state.axes.length === 2;
    const ends = both ? this.#state.axes.map((axis) => this.#facts.shape[axis]) : [1, this.#facts.shape[this.#state.axes[0]]];
    const span = (low, high, middle, end) => {
      const size = Math.min(end, Math.max(Math.min(4, high - low), (high - low) * factor));
      const start = Math.round(Math.min(Math.max(0, middle - (middle - low) * (size / (high - low))), end - size));
      return [start, start + Math.max(1, Math.round(size))];
    };
    const down = span(top, bottom, row, ends[0]);
    const across = span(left, right, column, ends[1]);
    this.#to({ pixels: "", box: both ? [...down, ...across] : across });
  }

  #pan(rows, columns) {
    const [top, bottom, left, right] = this.#picture.box;
    const both = this.#state.axes.length === 2;
    const ends = both ? this.#state.axes.map((axis) => this.#facts.shape[axis]) : [1, this.#facts.shape[this.#state.axes[0]]];
    const span = (low, high, by, end) => {
      const start = Math.round(Math.min(Math.max(0, low + by), Math.max(0, end - (high - low))));
      return [start, start + Math.round(high - low)];
    };
    this.#to({ box: both ? [...span(top, bottom, rows, ends[0]), ...span(left, right, columns, ends[1])] : span(left, right, columns, ends[1]) });
  }

  #listen() {
    const { picture } = this.#parts;
    let held = null;
    const at = (event) => {
      const bounds = picture.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };
    picture.addEventListener("pointerdown", (event) => {
      const bounds = picture.getBoundingClientRect();
      held = { from: at(event), box: this.#picture.box, frame: this.#picture.frame(bounds.width, bounds.height), moved: false };
      picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!held) {
        this.#point(this.#picture.element(x, y));
        return;
      }
      if (Math.hypot(x - held.from[0], y - held.from[1]) < 5 && !held.moved) return;
      held.moved = true;
      const now = this.#picture.box;
      this.#pan(held.box[0] - now[0] + held.frame.row(held.from[1]) - held.frame.row(y), held.box[2] - now[2] + held.frame.column(held.from[0]) - held.frame.column(x));
    });
    picture.addEventListener("pointerup", (event) => {
      if (held && !held.moved) this.#pick(this.#picture.element(...at(event)));
      held = null;
    });
    picture.addEventListener("pointercancel", () => (held = null));
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#zoom(event.deltaY < 0 ? 0.5 : 2, this.#picture.element(...at(event)));
    }, { passive: false });
    picture.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => {
      this.#fit();
      this.#picture.draw();
      this.#drawGrid();
      this.#drawTicks();
    }).observe(this.#parts.seen);
  }

  #key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [top, bottom, left, right] = this.#picture.box;
    if (event.key in moves) {
      const { flipRows, flipColumns } = this.#picture.frame();
      const [down, across] = [moves[event.key][0] * (flipRows ? -1 : 1), moves[event.key][1] * (flipColumns ? -1 : 1)];
      if (event.shiftKey) {
        this.#pan((down * (bottom - top)) / 4, (across * (right - left)) / 4);
      } else {
        const [row, column] = this.#cursor ?? [Math.floor((top + bottom) / 2), Math.floor((left + right) / 2)];
        const next = this.#cursor ? [row + down, column + across] : [row, column];
        this.#cursor = [Math.min(Math.max(next[0], Math.floor(top)), Math.ceil(bottom) - 1), Math.min(Math.max(next[1], Math.floor(left)), Math.ceil(right) - 1)];
        this.#point(this.#cursor);
        this.#drawGrid();
      }
    } else if (event.key === "+" || event.key === "=") this.#zoom(0.5, this.#cursor);
    else if (event.key === "-") this.#zoom(2, this.#cursor);
    else if (event.key === "0") this.#to({ box: undefined, pixels: "" });
    else if (event.key === "Enter") this.#pick(this.#cursor);
    else return;
    event.preventDefault();
  }

  #npy() {
    if (!this.#picture) return "#";
    const request = this.#picture.request();
    return address(this.#state, "npy", request);
  }

  #save() {
    const link = make("a", { download: `${(this.#state.path || this.#state.name).replaceAll("/", "-")}.png` });
    this.#parts.picture.toBlob((blob) => {
      link.href = URL.createObjectURL(blob);
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  #about() {
    const facts = this.#facts;
    const rows = facts.facts.map(([label, value]) => make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, value)));
    return make("div", {}, make("table", {}, make("tbody", {}, ...rows)), elsewhere(this.#state, facts) ?? "", make("h2", {}, "Attributes"), attributes(facts.attributes));
  }
}

/** Return attributes as a table; what is not text or a number as JSON. */
export function attributes(found) {
  const names = Object.keys(found);
  if (!names.length) return make("p", {}, "none");
  return make("table", { className: "attributes" }, make("tbody", {}, ...names.map((name) => {
    const value = found[name];
    return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, typeof value === "string" ? value : JSON.stringify(value)));
  })));
}

export { bytes };
