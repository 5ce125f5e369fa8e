// A store of Zarr Vectors: points, lines, graphs and meshes in space, coarser levels first where the finest is large.

import { colours, MAPS } from "./colours.js";
import { choice, make } from "./elements.js";
import { Raster } from "./raster.js";
import { Latest, beginMove, packed } from "./server.js";

const PLAIN = [70, 140, 220], CELL = [150, 160, 170], SHARD = [225, 120, 30];

/** The part of the page that shows a store of vectors. */
export class GeometryView {
  #place;
  #facts;
  #state;
  #change;
  #asking = new Latest();
  #shown = null;
  #turn = [0.6, -0.5];
  #zoom = 1;
  #parts = {};
  #raster = null;

  /** `change(state, lasting)` is called when something else is to be seen. */
  constructor(place, facts, state, change) {
    [this.#place, this.#facts, this.#change] = [place, facts.vectors, change];
    const level = facts.vectors.levels.some((each) => String(each.level) === state.level) ? Number(state.level) : facts.vectors.first;
    this.#state = { ...state, level: String(level), map: MAPS.includes(state.map) ? state.map : MAPS[0] };
    this.#build(facts);
    this.#load();
  }

  get state() {
    return this.#state;
  }

  /** End what is under way. */
  close() {
    this.#asking.cancel();
  }

  get #level() {
    return this.#facts.levels.find((each) => String(each.level) === this.#state.level);
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
    parts.canvas = make("canvas", { id: "space", tabIndex: 0, role: "img", "aria-label": "Picture in space: arrow keys turn it, plus and minus zoom" });
    parts.status = make("p", { className: "status", id: "status", "aria-live": "polite" });
    parts.read = make("p", { className: "status", id: "read" });
    parts.attribute = make("span", {});
    parts.box = stored.axes.map((axis, i) => ["lowest", "highest"].map((what, end) =>
      make("input", { type: "number", step: "any", className: "number", "aria-label": `${axis.name}, ${what}`, value: this.#state.box?.[end * stored.axes.length + i] ?? stored.bounds[end][i] })));
    const names = stored.levels.map((each) => String(each.level));
    const texts = Object.fromEntries(stored.levels.map((each) => [each.level, `${each.level}: ${each.vertex_count.toLocaleString("en")} vertices`]));
    const level = make("label", {}, "level ", choice(names, this.#state.level, (value) => this.#to({ level: value })));
    level.querySelectorAll("option").forEach((option) => (option.textContent = texts[option.value]));
    const grid = make("input", { type: "checkbox", id: "stored", checked: Boolean(this.#state.stored), onchange: () => this.#to({ stored: grid.checked ? "1" : "" }, false) });
    this.#place.replaceChildren(
      make("p", {}, `Zarr Vectors ${stored.format_version}: ${stored.geometry_types.join(", ")}`),
      make("div", { className: "controls" }, level, parts.attribute,
        make("label", {}, "colours ", choice(MAPS, this.#state.map, (value) => this.#to({ map: value }, false))), make("label", {}, grid, " cells and shards")),
      make("div", { className: "stage", style: "" }, parts.canvas), parts.status, parts.read,
      make("fieldset", { className: "controls" }, make("legend", {}, "Box"),
        ...stored.axes.flatMap((axis, i) => [make("span", {}, axis.name), ...parts.box[i]]),
        make("button", { type: "button", id: "into-box", onclick: () => this.#into() }, "show this box at the finest level"),
        make("button", { type: "button", id: "no-box", onclick: () => this.#to({ box: undefined, level: String(stored.first) }) }, "show all")),
      make("details", {}, make("summary", {}, "About this store"), make("pre", {}, JSON.stringify({ ...facts.vectors, first: undefined }, null, 1))),
    );
    parts.canvas.parentElement.style.aspectRatio = "3 / 2";
    this.#listen();
  }

  #attributes() {
    const names = ["", ...this.#level.vertex_attributes];
    const chosen = names.includes(this.#state.field ?? "") ? this.#state.field ?? "" : "";
    const select = choice(names, chosen, (value) => this.#to({ field: value }), { "": "none" });
    select.id = "attribute";
    this.#parts.attribute.replaceChildren(make("label", {}, "attribute ", select));
    return chosen;
  }

  #into() {
    const box = [0, 1].flatMap((end) => this.#parts.box.map((pair) => Number(pair[end].value)));
    this.#to({ box, level: String(this.#facts.levels[0].level) });
  }

  #load() {
    const attribute = this.#attributes();
    beginMove();
    this.#asking.ask(async (signal) => {
      this.#shown = await packed(this.#state, "geometry", { level: this.#state.level, attribute, box: this.#state.box?.join(",") }, signal);
      const { vertices, edges, faces } = this.#shown;
      this.#parts.read.textContent = [`${vertices.toLocaleString("en")} vertices`, edges ? `${edges.toLocaleString("en")} edges` : "", faces ? `${faces.toLocaleString("en")} faces` : "", `of level ${this.#state.level}`].filter(Boolean).join(", ");
      this.#draw();
      this.#parts.canvas.dataset.vertices = vertices;
    });
  }

  /** Return what takes a place in space to the screen: x, y, and how far away it is. */
  #projection(width, height) {
    const { bounds } = this.#facts;
    const [low, high] = bounds.map((corner) => [0, 1, 2].map((i) => corner[i] ?? 0));
    const middle = low.map((value, i) => (value + high[i]) / 2);
    const size = Math.hypot(...low.map((value, i) => high[i] - value)) || 1;
    const scale = (Math.min(width, height) / size) * this.#zoom;
    const flat = this.#facts.axes.length < 3;
    const [sinA, cosA, sinB, cosB] = flat ? [0, 1, 0, 1] : [Math.sin(this.#turn[0]), Math.cos(this.#turn[0]), Math.sin(this.#turn[1]), Math.cos(this.#turn[1])];
    return (x, y, z) => {
      [x, y, z] = [x - middle[0], y - middle[1], z - middle[2]];
      const across = cosA * x + sinA * y;
      const away = -sinA * x + cosA * y;
      return flat ? [width / 2 + x * scale, height / 2 - y * scale, 0] : [width / 2 + across * scale, height / 2 - (cosB * z - sinB * away) * scale, (cosB * away + sinB * z) * scale];
    };
  }

  #draw() {
    const { canvas } = this.#parts;
    const bounds = canvas.getBoundingClientRect();
    [canvas.width, canvas.height] = [Math.max(1, Math.round(bounds.width)), Math.max(1, Math.round(bounds.height))];
    const raster = (this.#raster = new Raster(canvas.width, canvas.height));
    const project = this.#projection(canvas.width, canvas.height);
    if (this.#shown) this.#drawVertices(raster, project);
    if (this.#state.stored) this.#drawCells(raster, project); // behind vertices that are as near
    canvas.getContext("2d").putImageData(raster.image, 0, 0);
  }

  #drawVertices(raster, project) {
    const { positions, values } = this.#shown;
    const count = positions.length / 3;
    const places = new Array(count);
    for (let i = 0; i < count; i++) places[i] = project(positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]);
    const table = colours(this.#state.map);
    let [lo, hi] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < lo) lo = value;
      if (value > hi) hi = value;
    }
    const last = table.length / 3 - 1;
    const colour = (i) => {
      if (!values.length || Number.isNaN(values[i])) return PLAIN;
      const at = 3 * Math.round(((values[i] - lo) / (hi - lo || 1)) * last);
      return [table[at], table[at + 1], table[at + 2]];
    };
    const lines = this.#shown.lines;
    for (let i = 0; i < lines.length; i += 2) raster.line(places[lines[i]], places[lines[i + 1]], colour(lines[i]), colour(lines[i + 1]), lines[i]);
    const corners = this.#shown.triangles;
    for (let i = 0; i < corners.length; i += 3) raster.triangle(places[corners[i]], places[corners[i + 1]], places[corners[i + 2]], colour(corners[i]), corners[i]);
    if (!lines.length && !corners.length) for (let i = 0; i < count; i++) raster.point(places[i], colour(i), count > 20000 ? 2 : 4, i);
  }

  #drawCells(raster, project) {
    const level = this.#level;
    const low = this.#facts.bounds[0].map((value, i) => Math.floor(value / level.chunk_shape[i]) * level.chunk_shape[i]);
    const draw = (size, counts, colour) => {
      const rank = size.length;
      if (counts.reduce((a, b) => a * (b + 1), 1) > 4096) return;
      const full = (list, other) => [0, 1, 2].map((i) => (i < rank ? list[i] : other));
      const [n, step, from] = [full(counts, 0), full(size, 0), full(low, 0)];
      for (let axis = 0; axis < rank; axis++) {
        const [p, q] = [0, 1, 2].filter((each) => each !== axis);
        for (let i = 0; i <= n[p]; i++) {
          for (let j = 0; j <= n[q]; j++) {
            const [a, b] = [[...from], [...from]];
            a[p] = b[p] = from[p] + i * step[p];
            a[q] = b[q] = from[q] + j * step[q];
            b[axis] = from[axis] + n[axis] * step[axis];
            raster.line(project(...a), project(...b), colour, colour);
          }
        }
      }
    };
    if (level.shard_shape) draw(level.chunk_shape.map((length, i) => length * level.shard_shape[i]), level.grid_shape.map((count, i) => Math.ceil(count / level.shard_shape[i])), SHARD);
    draw(level.chunk_shape, level.grid_shape, CELL);
  }

  #listen() {
    const { canvas } = this.#parts;
    let held = null;
    canvas.style.touchAction = "none";
    canvas.addEventListener("pointerdown", (event) => {
      held = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        this.#turn = [this.#turn[0] + (event.clientX - held[0]) / 150, this.#turn[1] + (event.clientY - held[1]) / 150];
        held = [event.clientX, event.clientY];
        this.#draw();
        return;
      }
      const bounds = canvas.getBoundingClientRect();
      this.#point(Math.floor(event.clientX - bounds.left), Math.floor(event.clientY - bounds.top));
    });
    for (const what of ["pointerup", "pointercancel"]) canvas.addEventListener(what, () => (held = null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#zoom *= event.deltaY < 0 ? 1.25 : 0.8;
      this.#draw();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
      if (event.key in turns) this.#turn = this.#turn.map((angle, i) => angle + turns[event.key][i]);
      else if (event.key === "+" || event.key === "=") this.#zoom *= 1.25;
      else if (event.key === "-") this.#zoom *= 0.8;
      else return;
      event.preventDefault();
      this.#draw();
    });
    new ResizeObserver(() => this.#draw()).observe(canvas.parentElement);
  }

  #point(x, y) {
    const vertex = this.#raster?.which[y * this.#raster.width + x] ?? -1;
    if (vertex < 0 || !this.#shown) return;
    const place = this.#facts.axes.map((axis, i) => `${axis.name} ${this.#shown.positions[3 * vertex + i]}`);
    const value = this.#shown.values.length ? `: ${this.#state.field} ${this.#shown.values[vertex]}` : "";
    this.#parts.status.textContent = `${place.join(", ")}${value}`;
  }
}
