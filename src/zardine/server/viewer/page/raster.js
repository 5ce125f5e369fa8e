// Drawing points, lines and triangles in space into an image, each pixel as the nearest of them.

/** An image with the distance of each pixel. */
export class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.depth = new Float32Array(width * height).fill(Infinity);
    this.which = new Int32Array(width * height).fill(-1); // the vertex that is drawn there
  }

  #put(x, y, z, colour, vertex) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const at = y * this.width + x;
    if (z >= this.depth[at]) return;
    this.depth[at] = z;
    this.which[at] = vertex;
    const data = this.image.data;
    [data[4 * at], data[4 * at + 1], data[4 * at + 2], data[4 * at + 3]] = [colour[0], colour[1], colour[2], 255];
  }

  /** Draw a square of `size` pixels. */
  point([x, y, z], colour, size, vertex) {
    const from = [Math.round(x - size / 2), Math.round(y - size / 2)];
    for (let row = 0; row < size; row++) for (let column = 0; column < size; column++) this.#put(from[0] + column, from[1] + row, z, colour, vertex);
  }

  /** Draw a line; its ends may have different colours. */
  line(from, to, colour, other, vertex = -1) {
    const steps = Math.min(4096, Math.max(1, Math.ceil(Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])))));
    for (let i = 0; i <= steps; i++) {
      const share = i / steps;
      const mixed = (a, b) => a + (b - a) * share;
      this.#put(Math.round(mixed(from[0], to[0])), Math.round(mixed(from[1], to[1])), mixed(from[2], to[2]), share < 0.5 ? colour : other, vertex);
    }
  }

  /** Draw a triangle, the darker the more it is turned away. */
  triangle(a, b, c, colour, vertex) {
    const area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (!area) return;
    const normal = [(b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1]), (b[2] - a[2]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[2] - a[2]), area];
    const light = 0.35 + 0.65 * Math.abs(normal[2] / Math.hypot(...normal));
    const shaded = [colour[0] * light, colour[1] * light, colour[2] * light];
    const [left, right] = [Math.max(0, Math.floor(Math.min(a[0], b[0], c[0]))), Math.min(this.width - 1, Math.ceil(Math.max(a[0], b[0], c[0])))];
    const [top, bottom] = [Math.max(0, Math.floor(Math.min(a[1], b[1], c[1]))), Math.min(this.height - 1, Math.ceil(Math.max(a[1], b[1], c[1])))];
    for (let y = top; y <= bottom; y++) {
      for (let x = left; x <= right; x++) {
        const u = ((b[0] - x) * (c[1] - y) - (b[1] - y) * (c[0] - x)) / area;
        const v = ((c[0] - x) * (a[1] - y) - (c[1] - y) * (a[0] - x)) / area;
        if (u >= 0 && v >= 0 && u + v <= 1) this.#put(x, y, u * a[2] + v * b[2] + (1 - u - v) * c[2], shaded, vertex);
      }
    }
  }
}
