// A store of Zarr Vectors: points, lines, graphs and meshes in space. A coarse level is shown at once; the finest one that
// can be drawn follows, and a finer one yet of what is seen when one comes near.

import { categoryColour, colours, gradient, MAPS, pack } from "./colours.js";
import { choice, make } from "./elements.js";
import { scaleBar } from "./frame.js";
import { Raster } from "./raster.js";
import { Latest, beginMove, packed } from "./server.js";
import { edgesOf, isWithin, padded, shareOf, Space } from "./space.js";

const PLAIN = pack(70, 140, 220), CELL = pack(150, 160, 170), SHARD = pack(225, 120, 30), BOX = pack(200, 40, 140);
const ALIKE = "/", OF_OBJECTS = "objects/"; // what no attribute of vertices is called: all in one colour, an attribute of objects
const SHOWN = 12; // names that a legend has
const PATIENCE = 200; // milliseconds without a move before what is seen is refined

const number = (value) => (Number.isFinite(Number(value)) ? Number(value) : 0);
const HUES = 11; // colours of names, without black, which is not seen on a dark page
const hue = (value) => 1 + (value % HUES);
const three = (list) => [0, 1, 2].map((i) => number(list[i] ?? 0));

/** The part of the page that shows a store of vectors. */
export class GeometryView {
  #place;
  #facts;
  #snapshot;
  #state;
  #change;
  #asking = new Latest();
  #base = null; // what is shown of all, or of the box that was chosen
  #detail = null; // what is shown at a finer level in a box of it
  #space;
  #parts = {};
  #raster = null;
  #drawing = false;
  #labels = []; // texts of the attribute that were seen, in the order in which they have colours
  #timer;

  /** `change(state, lasting)` is called when something else is to be seen. */
  constructor(place, facts, state, change) {
    [this.#place, this.#facts, this.#snapshot, this.#change] = [place, facts.vectors, facts.snapshot, change];
    const rank = facts.vectors.axes.length;
    const box = state.box?.length === 2 * rank && state.box.slice(0, rank).every((low, i) => low <= state.box[rank + i]) ? state.box : undefined;
    const level = facts.vectors.levels.some((each) => String(each.level) === state.level) ? state.level : "";
    this.#state = { ...state, level, box, map: MAPS.includes(state.map) ? state.map : MAPS[0] };
    this.#space = new Space(rank < 3);
    this.#space.home(this.#box);
    this.#build(facts);
    this.#load();
  }

  get state() {
    return this.#state;
  }

  /** End what is under way. */
  close() {
    clearTimeout(this.#timer);
    this.#asking.cancel();
  }

  get #bounds() {
    return this.#facts.bounds.map(three);
  }

  /** The box that was chosen, else that of everything: its corners in space. */
  get #box() {
    const { box } = this.#state;
    const rank = this.#facts.axes.length;
    return box ? [three(box.slice(0, rank)), three(box.slice(rank))] : this.#bounds;
  }

  /** The finest level of which a box has no more vertices, about, than can be drawn at once; else the coarsest one. */
  #finest(box) {
    const { levels, most } = this.#facts;
    return levels.find((each) => each.vertex_count * shareOf(box, this.#bounds) <= most) ?? levels[levels.length - 1];
  }

  #levelOf(text) {
    return this.#facts.levels.find((each) => String(each.level) === String(text));
  }

  #to(changes, fresh = true) {
    this.#state = { ...this.#state, ...changes };
    this.#change(this.#state, false);
    if (fresh) this.#load();
    else this.#draw();
  }

  #build(facts) {
    const parts = this.#parts;
    const stored = this.#facts;
    parts.canvas = make("canvas", { id: "space", tabIndex: 0, role: "img", "aria-label": "Picture in space: arrow keys turn it, with Shift they move it, plus and minus zoom" });
    parts.band = make("div", { className: "band", hidden: true });
    parts.status = make("p", { className: "status", id: "status", "aria-live": "polite" });
    parts.read = make("p", { className: "status", id: "read" });
    parts.legend = make("div", { className: "legend", id: "legend" });
    parts.attribute = make("span", {});
    parts.box = stored.axes.map((axis) => ["lowest", "highest"].map((what) => make("input", { type: "number", step: "any", className: "number", "aria-label": `${axis.name}, ${what}` })));
    const names = ["", ...stored.levels.map((each) => String(each.level))];
    const texts = Object.fromEntries([["", "automatic"], ...stored.levels.map((each) => [each.level, `${each.level}: ${each.vertex_count.toLocaleString("en")} vertices`])]);
    const select = choice(names, this.#state.level, (value) => this.#to({ level: value }), texts);
    select.id = "level";
    const grid = make("input", { type: "checkbox", id: "stored", checked: Boolean(this.#state.stored), onchange: () => this.#to({ stored: grid.checked ? "1" : "" }, false) });
    parts.select = make("button", { type: "button", id: "select-box", "aria-pressed": "false", onclick: () => this.#selecting(parts.select.getAttribute("aria-pressed") === "false") }, "select a box in the picture");
    this.#place.replaceChildren(
      make("p", {}, `Zarr Vectors ${stored.format_version}: ${stored.geometry_types.join(", ")}`),
      make("div", { className: "controls" }, make("label", {}, "level ", select), parts.attribute,
        make("label", {}, "colours ", choice(MAPS, this.#state.map, (value) => this.#to({ map: value }, false))), make("label", {}, grid, " cells and shards")),
      make("div", { className: "stage" }, parts.canvas, parts.band),
      make("div", { className: "controls" }, make("button", { type: "button", id: "zoom-in", onclick: () => this.#moved(() => this.#space.magnify(1.5)) }, "+"), make("button", { type: "button", id: "zoom-out", onclick: () => this.#moved(() => this.#space.magnify(1 / 1.5)) }, "−"),
        make("button", { type: "button", id: "fit", onclick: () => this.#moved(() => this.#space.home(this.#box)) }, "whole"), parts.select),
      parts.legend, parts.status, parts.read,
      make("fieldset", { className: "controls" }, make("legend", {}, "Box"),
        ...stored.axes.flatMap((axis, i) => [make("span", {}, axis.name), ...parts.box[i]]),
        make("button", { type: "button", id: "into-box", onclick: () => this.#into([0, 1].flatMap((end) => parts.box.map((pair) => Number(pair[end].value)))) }, "show this box"),
        make("button", { type: "button", id: "no-box", onclick: () => this.#into(undefined) }, "show all")),
      make("details", {}, make("summary", {}, "About this store"), make("pre", {}, JSON.stringify({ ...facts.vectors, most: undefined }, null, 1))),
    );
    parts.canvas.parentElement.id = "spaced";
    this.#listen();
  }

  #attributes() {
    const { objects, object_attributes: ofObjects, vertex_attributes: own } = this.#facts.levels[0];
    const texts = objects > 1 ? { "": "each object", [ALIKE]: "none" } : { "": "none" };
    for (const name of objects > 1 && objects <= this.#facts.most_objects ? ofObjects : []) texts[OF_OBJECTS + name] = `${name} (of objects)`;
    const names = [...Object.keys(texts), ...own];
    const chosen = names.includes(this.#state.field ?? "") ? this.#state.field ?? "" : "";
    const select = choice(names, chosen, (value) => this.#to({ field: value }), texts);
    select.id = "attribute";
    this.#parts.attribute.replaceChildren(make("label", {}, "coloured by ", select));
    return chosen;
  }

  /** Show a box, as many numbers as an address has, or all. */
  #into(box) {
    this.#state = { ...this.#state, box };
    this.#space.home(this.#box);
    this.#selecting(false);
    this.#to({ level: "" });
  }

  #load() {
    clearTimeout(this.#timer);
    this.#labels = [];
    const attribute = this.#attributes();
    const rank = this.#facts.axes.length;
    const shown = this.#state.box ?? this.#facts.bounds.flat();
    this.#parts.box.forEach((pair, i) => pair.forEach((input, end) => (input.value = shown[end * rank + i])));
    beginMove();
    this.#asking.overtake();
    this.#asking.ask(async (signal) => {
      const wanted = this.#state.level ? this.#levelOf(this.#state.level) : this.#finest(this.#box);
      const { levels } = this.#facts;
      const coarsest = levels[levels.length - 1];
      const first = !this.#state.level && coarsest.vertex_count * 4 < wanted.vertex_count ? [coarsest] : [];
      for (const level of [...first, wanted]) {
        this.#base = await this.#ask(level, this.#state.box, attribute, signal);
        this.#detail = null;
        this.#tell();
        this.#draw();
      }
      this.#refineLater();
    });
  }

  async #ask(level, box, attribute, signal) {
    const name = level.vertex_attributes.includes(attribute) ? attribute : "";
    const shown = await packed(this.#state, "geometry", { level: level.level, attribute: name, box: box?.join(","), snapshot: this.#snapshot }, signal);
    return { ...shown, ...(shown.labels ? this.#inColours(shown) : this.#ofObjects(shown, attribute ?? "")) };
  }

  /** Values that are places in the texts of one answer, as places in those of all. */
  #inColours({ values, labels }) {
    for (const text of labels) if (!this.#labels.includes(text)) this.#labels.push(text);
    const places = labels.map((text) => this.#labels.indexOf(text));
    return { values: Float64Array.from(values, (value) => places[value] ?? NaN), labels: this.#labels };
  }

  /** What vertices have of their objects: which these are, or an attribute of them; `labels` are the names of values. */
  #ofObjects({ objects, table }, field) {
    if (field === "" && objects.length && !(table?.ids.length < 2)) {
      const names = table?.attributes.name ?? [];
      return { values: Float64Array.from(objects), labels: table ? table.ids.map((id, row) => String(names[row] ?? `object ${id}`)) : [] };
    }
    const column = field.startsWith(OF_OBJECTS) ? table?.attributes[field.slice(OF_OBJECTS.length)] : undefined;
    if (!column) return {};
    if (!column.some((value) => typeof value === "string")) return { values: Float64Array.from(objects, (row) => column[row] ?? NaN) };
    const labels = [...new Set(column.filter((value) => value !== null))].sort();
    const place = new Map(labels.map((text, at) => [text, at]));
    return { values: Float64Array.from(objects, (row) => place.get(column[row]) ?? NaN), labels };
  }

  #refineLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refine(), PATIENCE);
  }

  /** The vertex that is drawn nearest to the middle of the picture, in the middle half of it; null where none is. */
  #middle() {
    const { width, height, which } = this.#raster ?? { width: 0, height: 0 };
    let [best, nearest] = [-1, (Math.min(width, height) / 4) ** 2];
    for (let y = Math.floor(height / 4); y < (3 * height) / 4; y++) {
      for (let x = Math.floor(width / 4); x < (3 * width) / 4; x++) {
        const distance = (x - width / 2) ** 2 + (y - height / 2) ** 2;
        if (distance < nearest && which[y * width + x] >= 0) [best, nearest] = [which[y * width + x], distance];
      }
    }
    const [shown, i] = this.#vertex(best);
    return shown ? Array.from(shown.positions.subarray(3 * i, 3 * i + 3)) : null;
  }

  /** What a vertex that is drawn belongs to, and its number there. */
  #vertex(which) {
    if (which < 0 || !this.#base) return [null, 0];
    return which < this.#base.vertices ? [this.#base, which] : [this.#detail, which - this.#base.vertices];
  }

  /** Ask for what one has come near to at a finer level, if there is one of which it has few enough vertices. */
  #refine() {
    if (!this.#base || this.#state.level) return;
    const { canvas } = this.#parts;
    const seen = padded(this.#space.near(this.#middle()), [0, 0, 0], this.#box);
    const level = this.#finest(seen);
    if (level.level >= this.#base.level) {
      if (this.#detail) {
        this.#detail = null;
        this.#tell();
        this.#draw();
      }
      return;
    }
    if (this.#detail && this.#detail.level <= level.level && isWithin(seen, this.#detail.box)) return;
    const larger = padded(seen, seen[0].map((value, i) => (seen[1][i] - value) / 10), this.#box);
    const box = this.#finest(larger).level === level.level ? larger : seen;
    const rank = this.#facts.axes.length;
    const whole = this.#state.box ?? this.#facts.bounds.flat();
    const corners = box.flatMap((corner, end) => whole.slice(end * rank, end * rank + rank).map((value, i) => (i < 3 ? corner[i] : value)));
    beginMove();
    this.#asking.ask(async (signal) => {
      const detail = await this.#ask(level, corners, this.#state.field, signal);
      this.#detail = { ...detail, box };
      this.#tell();
      this.#draw();
    });
  }

  /** A box of vertices with half the distance between two of them around it: what they stand for lies there, too. */
  #widened(box) {
    const [low, high] = this.#bounds;
    const shown = this.#detail ?? this.#base;
    const [least, most] = this.#detail ? this.#detail.box : this.#box;
    const along = Math.max(1, shown.vertices) ** (1 / Math.min(3, this.#facts.axes.length));
    const pad = low.map((value, i) => (this.#space.isFlat ? 0 : (most[i] - least[i]) / along / 2) || (high[i] - value) / 1000);
    return padded(box, pad, this.#box);
  }

  #tell() {
    const counts = ({ vertices, edges, faces, level }) => [`${vertices.toLocaleString("en")} vertices`, edges ? `${edges.toLocaleString("en")} edges` : "", faces ? `${faces.toLocaleString("en")} faces` : "", `of level ${level}`].filter(Boolean).join(", ");
    this.#parts.read.textContent = counts(this.#base) + (this.#detail ? `; where you look ${counts(this.#detail)}` : "");
    this.#parts.legend.replaceChildren(...this.#legend());
  }

  /** What colours mean: the names that are seen, or the ends of numbers. */
  #legend() {
    const { values, labels } = this.#base;
    if (labels) {
      const seen = [...new Set(values)].filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
      const entries = seen.slice(0, labels.length ? SHOWN : 0).map((value) => make("span", {}, this.#swatch(categoryColour(hue(value)), "18px"), labels[value] || "(empty)"));
      const more = seen.length - entries.length;
      return more ? [...entries, make("span", {}, entries.length ? `and ${more.toLocaleString("en")} more` : `${more.toLocaleString("en")} objects`)] : entries;
    }
    const [lo, hi] = this.#ends();
    if (!(lo <= hi)) return [];
    return [make("span", {}, `${Number(lo.toPrecision(6))} `, this.#swatch(gradient(this.#state.map).replace("to top", "to right"), "120px"), ` ${Number(hi.toPrecision(6))}`)];
  }

  #swatch(background, width) {
    const swatch = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    Object.assign(swatch.style, { background, width });
    return swatch;
  }

  #clouds() {
    return [this.#base, this.#detail].filter(Boolean).map(({ positions }) => positions);
  }

  /** Look from elsewhere: what was asked for is wanted no more, and what is seen then is refined. */
  #moved(move) {
    if (this.#base && this.#asking.isBusy && String(this.#base.level) === String(this.#state.level || this.#finest(this.#box).level)) this.#asking.cancel();
    move();
    this.#draw();
    this.#refineLater();
  }

  #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#drawNow();
    });
  }

  /** Draw a scale bar where the axes have a unit of length. */
  #drawScale(width) {
    const stage = this.#parts.canvas.parentElement;
    stage.querySelector(".scale-bar")?.remove();
    const bar = scaleBar({ units: this.#facts.axes[0]?.unit, step: 1 }, 0, width / this.#space.scale);
    if (!bar) return;
    const drawn = make("span", { className: "scale-bar" }, bar.text);
    drawn.style.width = `${(bar.share * width).toFixed(1)}px`;
    stage.append(drawn);
  }

  #drawNow() {
    const { canvas } = this.#parts;
    const bounds = canvas.getBoundingClientRect();
    if (!bounds.width) return;
    [canvas.width, canvas.height] = [Math.max(1, Math.round(bounds.width)), Math.max(1, Math.round(bounds.height))];
    this.#space.fit(canvas.width, canvas.height);
    this.#drawScale(canvas.width);
    const raster = (this.#raster = new Raster(canvas.width, canvas.height));
    const ends = this.#ends();
    if (this.#base) this.#drawVertices(raster, this.#base, 0, this.#detail?.box, ends);
    if (this.#detail) this.#drawVertices(raster, this.#detail, this.#base.vertices, null, ends);
    if (this.#state.stored) this.#drawCells(raster); // behind vertices that are as near
    if (this.#state.box) this.#drawEdges(raster, edgesOf(this.#box), BOX);
    canvas.getContext("2d").putImageData(raster.image, 0, 0);
    for (const [name, shown] of [["", this.#base], ["detail", this.#detail]]) {
      if (shown) [canvas.dataset[`${name}vertices`], canvas.dataset[`${name}level`]] = [shown.vertices, shown.level];
      else [`${name}vertices`, `${name}level`].forEach((each) => delete canvas.dataset[each]);
    }
    canvas.dataset.draws = String(Number(canvas.dataset.draws ?? 0) + 1);
  }

  /** The least and the greatest value that are seen. */
  #ends() {
    let [lo, hi] = [Infinity, -Infinity];
    for (const shown of [this.#base, this.#detail]) {
      for (const value of shown?.values ?? []) {
        if (value < lo) lo = value;
        if (value > hi) hi = value;
      }
    }
    return [lo, hi];
  }

  /** Draw vertices, edges or faces, but for those with a vertex in the box that is `left out`; vertex 0 is called `first`. */
  #drawVertices(raster, shown, first, leftOut, [lo, hi]) {
    const { positions, values, labels, lines, triangles } = shown;
    const places = this.#space.project(positions);
    const count = positions.length / 3;
    const table = colours(labels ? "categories" : this.#state.map);
    const last = table.length / 3 - 1;
    const shades = Uint32Array.from({ length: last + 1 }, (_, i) => pack(table[3 * i], table[3 * i + 1], table[3 * i + 2]));
    const colour = (i) => {
      if (!values.length || Number.isNaN(values[i])) return PLAIN;
      if (labels) return shades[hue(values[i])];
      return shades[Math.min(last, Math.max(0, Math.round(((values[i] - lo) / (hi - lo || 1)) * last)))];
    };
    const hidden = leftOut ? Uint8Array.from({ length: count }, (_, i) => [0, 1, 2].every((axis) => positions[3 * i + axis] >= leftOut[0][axis] && positions[3 * i + axis] <= leftOut[1][axis])) : new Uint8Array(count);
    for (let i = 0; i < lines.length; i += 2) {
      const [from, to] = [lines[i], lines[i + 1]];
      if (!hidden[from] && !hidden[to]) raster.line(places, 3 * from, 3 * to, colour(from), colour(to), first + from);
    }
    for (let i = 0; i < triangles.length; i += 3) {
      const [a, b, c] = [triangles[i], triangles[i + 1], triangles[i + 2]];
      if (!hidden[a] && !hidden[b] && !hidden[c]) raster.triangle(places, 3 * a, 3 * b, 3 * c, colour(a), first + a);
    }
    if (lines.length || triangles.length) return;
    const size = count > 20000 ? 2 : 4;
    for (let i = 0; i < count; i++) if (!hidden[i]) raster.point(places, 3 * i, colour(i), size, first + i);
  }

  #drawEdges(raster, ends, colour) {
    const places = this.#space.project(Float64Array.from(ends));
    for (let i = 0; i < places.length; i += 6) raster.line(places, i, i + 3, colour, colour);
  }

  #drawCells(raster) {
    const level = this.#levelOf((this.#detail ?? this.#base)?.level ?? 0) ?? this.#facts.levels[0];
    const [least, most] = [three(this.#box[0]), three(this.#box[1])];
    const draw = (lengths, colour) => {
      const size = [0, 1, 2].map((i) => number(lengths[i]) || Infinity);
      const low = least.map((value, i) => (Number.isFinite(size[i]) ? Math.floor(value / size[i]) * size[i] : value));
      const counts = low.map((value, i) => (Number.isFinite(size[i]) ? Math.max(1, Math.ceil((most[i] - value) / size[i])) : 0));
      if (counts.reduce((product, count) => product * (count + 1), 1) > 4096) return;
      const ends = [];
      for (let axis = 0; axis < 3; axis++) {
        if (!counts[axis]) continue;
        const [p, q] = [0, 1, 2].filter((each) => each !== axis);
        for (let i = 0; i <= counts[p]; i++) {
          for (let j = 0; j <= counts[q]; j++) {
            const from = [...low];
            if (i) from[p] += i * size[p];
            if (j) from[q] += j * size[q];
            const to = [...from];
            to[axis] += counts[axis] * size[axis];
            ends.push(...from, ...to);
          }
        }
      }
      this.#drawEdges(raster, ends, colour);
    };
    if (level.shard_shape) draw(level.chunk_shape.map((length, i) => length * level.shard_shape[i]), SHARD);
    draw(level.chunk_shape, CELL);
  }

  #selecting(wanted) {
    this.#parts.select.setAttribute("aria-pressed", String(wanted));
    this.#parts.canvas.style.cursor = wanted ? "crosshair" : "";
    this.#parts.band.hidden = true;
    if (wanted) this.#parts.status.textContent = "Drag a rectangle over what you want to see; Escape goes back.";
  }

  get #isSelecting() {
    return this.#parts.select.getAttribute("aria-pressed") === "true";
  }

  /** Show the box of what lies in a rectangle of the screen. */
  #select(rectangle) {
    const found = this.#space.boxOf(rectangle, this.#clouds());
    if (!found) {
      this.#parts.status.textContent = "There is nothing in this rectangle.";
      this.#parts.band.hidden = true;
      return;
    }
    const box = this.#widened(found);
    const rank = this.#facts.axes.length;
    const whole = this.#state.box ?? this.#facts.bounds.flat();
    this.#parts.status.textContent = "";
    this.#into(box.flatMap((corner, end) => whole.slice(end * rank, end * rank + rank).map((value, i) => (i < 3 ? corner[i] : number(value)))));
  }

  #listen() {
    const { canvas, band } = this.#parts;
    let held = null;
    canvas.style.touchAction = "none";
    const at = (event) => {
      const bounds = canvas.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };
    const rectangle = (a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[0], b[0]), Math.max(a[1], b[1])];
    canvas.addEventListener("pointerdown", (event) => {
      held = { from: at(event), last: at(event), selects: this.#isSelecting, moves: event.shiftKey || this.#space.isFlat };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!held) {
        this.#point(Math.floor(x), Math.floor(y));
      } else if (held.selects) {
        const [left, top, right, bottom] = rectangle(held.from, [x, y]);
        Object.assign(band.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
        band.hidden = false;
      } else {
        const [dx, dy] = [x - held.last[0], y - held.last[1]];
        const { moves } = held;
        held.last = [x, y];
        this.#moved(() => (moves ? this.#space.pan(dx, dy) : this.#space.rotate(dx / 150, dy / 150)));
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const chosen = held?.selects ? rectangle(held.from, at(event)) : null;
      held = null;
      if (chosen && chosen[2] - chosen[0] > 3 && chosen[3] - chosen[1] > 3) this.#select(chosen);
    });
    canvas.addEventListener("pointercancel", () => {
      held = null;
      band.hidden = true;
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#moved(() => this.#space.magnify(event.deltaY < 0 ? 1.25 : 0.8, ...at(event)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.key in turns) {
        const [across, down] = turns[event.key];
        if (event.shiftKey || this.#space.isFlat) this.#moved(() => this.#space.pan(across * 20, down * 20));
        else this.#moved(() => this.#space.rotate(across / 10, down / 10));
      } else if (event.key === "+" || event.key === "=") this.#moved(() => this.#space.magnify(1.25));
      else if (event.key === "-") this.#moved(() => this.#space.magnify(0.8));
      else if (event.key === "0") this.#moved(() => this.#space.home(this.#box));
      else if (event.key === "Escape") this.#selecting(false);
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.#draw()).observe(canvas.parentElement);
  }

  #point(x, y) {
    const vertex = this.#raster?.which[y * this.#raster.width + x] ?? -1;
    const [shown, i] = this.#vertex(vertex);
    if (!shown || this.#isSelecting) return;
    const place = this.#facts.axes.slice(0, 3).map((axis, each) => `${axis.name} ${shown.positions[3 * i + each]}`);
    const field = (this.#state.field ?? "").replace(OF_OBJECTS, "");
    const value = shown.labels ? shown.labels[shown.values[i]] ?? "" : shown.values[i];
    this.#parts.status.textContent = `${place.join(", ")}${shown.values.length ? `: ${field} ${value}`.replace("  ", " ") : ""}`;
  }
}
