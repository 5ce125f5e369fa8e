// Drawing points, lines and triangles in space into an image, each pixel as the nearest of them.

import { pack } from "./colours.js";

/** An image with the distance of each pixel. Places on it are three numbers each, from `at` on in a list of them. */
export class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.depth = new Float32Array(width * height).fill(Infinity);
    this.which = new Int32Array(width * height).fill(-1); // the vertex that is drawn there
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  #put(x, y, z, colour, vertex) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const at = y * this.width + x;
    if (z >= this.depth[at]) return;
    this.depth[at] = z;
    this.which[at] = vertex;
    this.pixels[at] = colour;
  }

  /** Draw a square of `size` pixels. */
  point(places, at, colour, size, vertex) {
    const [left, top, z] = [Math.round(places[at] - size / 2), Math.round(places[at + 1] - size / 2), places[at + 2]];
    for (let row = 0; row < size; row++) for (let column = 0; column < size; column++) this.#put(left + column, top + row, z, colour, vertex);
  }

  /** Draw a line between two places; its halves may have different colours. */
  line(places, from, to, colour, other, vertex = -1) {
    let [x, y, z] = [places[from], places[from + 1], places[from + 2]];
    let [dx, dy, dz] = [places[to] - x, places[to + 1] - y, places[to + 2] - z];
    const span = this.#span(x, y, dx, dy);
    if (!span) return;
    const [first, last] = span;
    const length = Math.max(Math.abs(dx), Math.abs(dy)) * (last - first);
    const steps = Math.max(1, Math.ceil(length));
    for (let i = 0; i <= steps; i++) {
      const share = first + ((last - first) * i) / steps;
      this.#put(Math.round(x + dx * share), Math.round(y + dy * share), z + dz * share, share < 0.5 ? colour : other, vertex);
    }
  }

  /** Return between which shares of a line it lies in the image, or null. */
  #span(x, y, dx, dy) {
    let [first, last] = [0, 1];
    for (const [start, change, size] of [[x, dx, this.width], [y, dy, this.height]]) {
      if (change === 0) {
        if (start < -1 || start > size) return null;
        continue;
      }
      const [a, b] = [(-1 - start) / change, (size - start) / change];
      first = Math.max(first, Math.min(a, b));
      last = Math.min(last, Math.max(a, b));
    }
    return first <= last ? [first, last] : null;
  }

  /** Draw a triangle, the darker the more it is turned away. */
  triangle(places, i, j, k, colour, vertex) {
    const [ax, ay, az, bx, by, bz, cx, cy, cz] = [places[i], places[i + 1], places[i + 2], places[j], places[j + 1], places[j + 2], places[k], places[k + 1], places[k + 2]];
    const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    if (!area || !Number.isFinite(area)) return;
    const normal = [(by - ay) * (cz - az) - (bz - az) * (cy - ay), (bz - az) * (cx - ax) - (bx - ax) * (cz - az), area];
    const light = 0.35 + 0.65 * Math.abs(area / Math.hypot(...normal));
    const shaded = pack((colour & 255) * light, ((colour >> 8) & 255) * light, ((colour >> 16) & 255) * light);
    const [left, right] = [Math.max(0, Math.floor(Math.min(ax, bx, cx))), Math.min(this.width - 1, Math.ceil(Math.max(ax, bx, cx)))];
    const [top, bottom] = [Math.max(0, Math.floor(Math.min(ay, by, cy))), Math.min(this.height - 1, Math.ceil(Math.max(ay, by, cy)))];
    for (let y = top; y <= bottom; y++) {
      for (let x = left; x <= right; x++) {
        const u = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area;
        const v = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area;
        if (u >= 0 && v >= 0 && u + v <= 1) this.#put(x, y, u * az + v * bz + (1 - u - v) * cz, shaded, vertex);
      }
    }
  }
}
