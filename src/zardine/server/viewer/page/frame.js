// Where elements lie on the screen: the box that is seen, the directions of its axes, their coordinates and ticks.

const LENGTHS = { // units of length in metres, and their symbols
  m: [1, "m"], metre: [1, "m"], meter: [1, "m"], metres: [1, "m"], meters: [1, "m"], km: [1e3, "km"], kilometer: [1e3, "km"], kilometre: [1e3, "km"],
  cm: [1e-2, "cm"], centimeter: [1e-2, "cm"], mm: [1e-3, "mm"], millimeter: [1e-3, "mm"], millimetre: [1e-3, "mm"],
  um: [1e-6, "µm"], "µm": [1e-6, "µm"], "μm": [1e-6, "µm"], micrometer: [1e-6, "µm"], micrometre: [1e-6, "µm"], micron: [1e-6, "µm"],
  nm: [1e-9, "nm"], nanometer: [1e-9, "nm"], nanometre: [1e-9, "nm"], angstrom: [1e-10, "Å"],
};
const LATITUDES = ["latitude", "grid_latitude"], LONGITUDES = ["longitude", "grid_longitude"];
const DEGREES = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90];

/** Maps elements of a box (top, bottom, left, right) to a rectangle of `width` × `height`, and back. */
export class Frame {
  constructor(box, width, height, [flipRows, flipColumns]) {
    [this.top, this.bottom, this.left, this.right] = box;
    Object.assign(this, { width, height, flipRows, flipColumns, across: width / (this.right - this.left), down: height / (this.bottom - this.top) });
  }

  x(column) {
    const x = (column - this.left) * this.across;
    return this.flipColumns ? this.width - x : x;
  }

  y(row) {
    const y = (row - this.top) * this.down;
    return this.flipRows ? this.height - y : y;
  }

  column(x) {
    return this.left + (this.flipColumns ? this.width - x : x) / this.across;
  }

  row(y) {
    return this.top + (this.flipRows ? this.height - y : y) / this.down;
  }

  /** The x, y, width and height of the block between two rows and two columns. */
  rectangle(rows, columns) {
    const [x0, x1, y0, y1] = [this.x(columns[0]), this.x(columns[1]), this.y(rows[0]), this.y(rows[1])];
    return [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)];
  }
}

function rises(axis) {
  return axis.knots ? axis.knots[1][0] < axis.knots[1][axis.knots[1].length - 1] : axis.step > 0;
}

/** Whether the axis of the rows, and that of the columns, run against their index on the screen. */
export function flips(axes) {
  const known = (axis) => axis.kind && (axis.knots || axis.step !== undefined);
  const [rows, columns] = axes.length === 2 ? axes : [{}, axes[0]];
  return [Boolean(known(rows)) && rises(rows) === rows.upwards, Boolean(known(columns)) && !rises(columns)];
}

function between(xs, ys, x) {
  const rising = xs[0] < xs[xs.length - 1];
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x === rising) low = middle;
    else high = middle;
  }
  return ys[low] + ((x - xs[low]) / (xs[high] - xs[low])) * (ys[high] - ys[low]);
}

/** The coordinate at an index of an axis, which need not be whole. */
export function valueAt(axis, index) {
  if (axis.knots) return between(axis.knots[0], axis.knots[1], index);
  return axis.step === undefined ? index : axis.first + index * axis.step;
}

/** The index, which need not be whole, at a coordinate of an axis. */
export function indexAt(axis, value) {
  if (axis.knots) return between(axis.knots[1], axis.knots[0], value);
  return axis.step === undefined ? value : (value - axis.first) / axis.step;
}

function meanStep(axis) {
  return Math.abs(valueAt(axis, axis.length - 1) - valueAt(axis, 0)) / Math.max(1, axis.length - 1);
}

/** The size of an element of an axis in metres, and the symbol of its unit; null if the axis measures no length. */
export function lengthOf(axis) {
  const unit = Object.hasOwn(LENGTHS, axis.units ?? "") ? LENGTHS[axis.units] : null;
  return unit && axis.step && axis.kind !== "vertical" ? { size: Math.abs(axis.step) * unit[0], metres: unit[0], symbol: unit[1] } : null;
}

/** The height of an element for a width of 1, true to scale; null if the axes measure different things. */
export function proportion(rows, columns) {
  if (LATITUDES.includes(rows.kind) && LONGITUDES.includes(columns.kind)) {
    const middle = (valueAt(rows, 0) + valueAt(rows, rows.length - 1)) / 2;
    return meanStep(rows) / meanStep(columns) / Math.max(0.1, Math.cos((middle * Math.PI) / 180));
  }
  const [down, across] = [lengthOf(rows), lengthOf(columns)];
  if (down && across) return down.size / across.size;
  return rows.units || columns.units || rows.kind || columns.kind ? null : 1;
}

/** A step of 1, 2 or 5 times a power of ten that is not below `least`. */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * (1 - 1e-9));
}

/** Values between two ends at round numbers, about `count` of them, as [value, text]. */
export function roundValues(low, high, count, steps = null) {
  const least = (high - low) / Math.max(1, count);
  if (!(least > 0) || !Number.isFinite(least)) return [];
  const step = steps?.find((each) => each >= least && least > steps[0] / 2) ?? roundStep(least);
  const digits = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const large = Math.max(Math.abs(low), Math.abs(high));
  const text = (value) => (large >= 1e6 || large < 1e-4 ? String(Number(value.toPrecision(6))) : value.toFixed(digits));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push([i * step, text(i * step + 0)]);
  return found;
}

function degrees(kind, value, text) {
  const turned = kind === "longitude" ? ((((value + 180) % 360) + 360) % 360) - 180 : value;
  const side = Math.abs(turned) < 1e-9 || Math.abs(turned) === 180 ? "" : kind === "longitude" ? (turned > 0 ? "E" : "W") : turned > 0 ? "N" : "S";
  return `${turned === value ? text.replace("-", "") : String(Number(Math.abs(turned).toFixed(6)))}°${side}`;
}

/** Ticks of an axis between two edges (0 is before the first element), as [edge, text]: at round values, else at indices. */
export function ticks(axis, low, high, count) {
  const last = Math.max(axis.length - 1, 0);
  const values = [Math.max(low - 0.5, 0), Math.min(high - 0.5, last)].map((index) => valueAt(axis, index));
  const [from, to] = values[0] < values[1] ? values : [values[1], values[0]];
  const hasValues = axis.knots || axis.step !== undefined;
  const named = axis.kind === "latitude" || axis.kind === "longitude";
  const found = roundValues(from, to, count, named ? DEGREES : null);
  if (hasValues) return found.map(([value, text]) => [indexAt(axis, value) + 0.5, named ? degrees(axis.kind, value, text) : text]);
  return found.filter(([value]) => Number.isInteger(value)).map(([value]) => [value + 0.5, String(value)]);
}

/** A scale bar that is at most a share of a width: its share of the width, and its text; null if `axis` measures no length. */
export function scaleBar(axis, low, high, most = 0.25) {
  const known = lengthOf(axis);
  if (!known) return null;
  const whole = known.size * (high - low);
  const power = 10 ** Math.floor(Math.log10(whole * most));
  const length = [5, 2, 1].map((each) => each * power).find((each) => each <= whole * most) ?? power;
  const [size, symbol] = [[1e3, "km"], [1, "m"], [1e-3, "mm"], [1e-6, "µm"], [1e-9, "nm"]].find(([each]) => length >= each * (1 - 1e-9)) ?? [known.metres, known.symbol];
  return { share: length / whole, text: `${Number((length / size).toPrecision(3))} ${symbol}` };
}

/** A title with its units in brackets, unless the ticks say them. */
export function titled({ title, units, kind }) {
  return units && !/\ssince\s/.test(units) && kind !== "latitude" && kind !== "longitude" ? `${title} [${units}]` : title;
}
