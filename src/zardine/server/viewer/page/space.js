// Looking into space: where a place lies on the screen as one turns, moves and zooms, and which places are seen there.

/** What is looked at, from where. Places are given by three numbers; in the plane the third is 0. */
export class Space {
  turn = [0.6, -0.5];
  zoom = 1;
  #offset = [0, 0]; // of the middle of the screen from that of the box, in units of the data

  constructor(isFlat) {
    this.isFlat = isFlat;
  }

  /** Look at a box, its lowest and highest corner, from as far as all of it is seen. */
  home([low, high]) {
    const size = low.map((value, i) => high[i] - value);
    this.middle = low.map((value, i) => value + size[i] / 2);
    this.size = Math.hypot(...size) || 1;
    this.zoom = 1;
    this.#offset = [0, 0];
  }

  /** Say how large the screen is, in pixels. */
  fit(width, height) {
    [this.width, this.height] = [width, height];
  }

  /** The pixels of one unit. */
  get scale() {
    return (Math.min(this.width, this.height) / this.size) * this.zoom;
  }

  /** Turn by angles; in the plane nothing is turned. */
  rotate(across, down) {
    if (!this.isFlat) this.turn = [this.turn[0] + across, this.turn[1] + down];
  }

  /** Move what is seen by pixels. */
  pan(x, y) {
    this.#offset = [this.#offset[0] - x / this.scale, this.#offset[1] + y / this.scale];
  }

  /** Zoom around a place on the screen, which stays where it is. */
  magnify(factor, x = this.width / 2, y = this.height / 2) {
    const [away, up] = [x - this.width / 2, this.height / 2 - y];
    const before = this.scale;
    this.zoom = Math.min(1e6, Math.max(0.05, this.zoom * factor));
    const change = 1 / before - 1 / this.scale;
    this.#offset = [this.#offset[0] + away * change, this.#offset[1] + up * change];
  }

  /** Return the places on the screen of `positions`, both three numbers each; the third is how far away it is. */
  project(positions) {
    const [sinA, cosA, sinB, cosB] = this.isFlat ? [0, 1, 1, 0] : [Math.sin(this.turn[0]), Math.cos(this.turn[0]), Math.sin(this.turn[1]), Math.cos(this.turn[1])];
    const [mx, my, mz] = this.middle;
    const scale = this.scale;
    const [ox, oy] = [this.width / 2 - this.#offset[0] * scale, this.height / 2 + this.#offset[1] * scale];
    const places = new Float32Array(positions.length);
    for (let i = 0; i < positions.length; i += 3) {
      const [x, y, z] = [positions[i] - mx, positions[i + 1] - my, positions[i + 2] - mz];
      const away = cosA * y - sinA * x;
      const up = this.isFlat ? y : cosB * z - sinB * away;
      places[i] = ox + (cosA * x + sinA * y) * scale;
      places[i + 1] = oy - up * scale;
      places[i + 2] = this.isFlat ? 0 : (cosB * away + sinB * z) * scale;
    }
    return places;
  }

  /**
   * Return the box, lowest and highest corner, of what a rectangle of the screen (left, top, right, bottom) shows. In
   * space it is that of the vertices that are seen there, `clouds` of positions; null where none is.
   */
  boxOf([left, top, right, bottom], clouds) {
    if (this.isFlat) {
      const x = (value) => this.middle[0] + this.#offset[0] + (value - this.width / 2) / this.scale;
      const y = (value) => this.middle[1] + this.#offset[1] + (this.height / 2 - value) / this.scale;
      return [[x(left), y(bottom), 0], [x(right), y(top), 0]];
    }
    const [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
    for (const positions of clouds) {
      const places = this.project(positions);
      for (let i = 0; i < places.length; i += 3) {
        if (!(places[i] >= left && places[i] <= right && places[i + 1] >= top && places[i + 1] <= bottom)) continue;
        for (let axis = 0; axis < 3; axis++) {
          const value = positions[i + axis];
          if (value < low[axis]) low[axis] = value;
          if (value > high[axis]) high[axis] = value;
        }
      }
    }
    return low[0] > high[0] ? null : [low, high];
  }

  /**
   * Return the box of what one has come near to: in space a cube as large as the screen around a place; without one
   * around that in the middle of the screen, as far away as the middle of everything.
   */
  near(place) {
    if (this.isFlat) return this.boxOf([0, 0, this.width, this.height], []);
    const [sinA, cosA, sinB, cosB] = [Math.sin(this.turn[0]), Math.cos(this.turn[0]), Math.sin(this.turn[1]), Math.cos(this.turn[1])];
    const [across, up] = this.#offset;
    const focus = place ?? [
      this.middle[0] + across * cosA + up * sinB * sinA, this.middle[1] + across * sinA - up * sinB * cosA, this.middle[2] + up * cosB,
    ];
    const half = Math.max(this.width, this.height) / this.scale / 2;
    return [focus.map((value) => value - half), focus.map((value) => value + half)];
  }
}

/** Return a box that is larger on both sides of each axis, within another one. */
export function padded([low, high], pad, [least, most]) {
  const within = (value, i) => Math.min(most[i], Math.max(least[i], value));
  return [low.map((value, i) => within(value - pad[i], i)), high.map((value, i) => within(value + pad[i], i))];
}

/** Return how much of a box another one takes, 0 to 1; axes without length do not count. */
export function shareOf([low, high], [least, most]) {
  return least.reduce((share, value, i) => (most[i] > value ? (share * Math.max(0, Math.min(high[i], most[i]) - Math.max(low[i], value))) / (most[i] - value) : share), 1);
}

/** Return whether one box lies in another. */
export function isWithin([low, high], [least, most]) {
  return low.every((value, i) => value >= least[i] && high[i] <= most[i]);
}

/** Return the ends of the twelve edges of a box, as positions; in the plane four of them have a length. */
export function edgesOf([low, high]) {
  const found = [];
  for (let axis = 0; axis < 3; axis++) {
    const [p, q] = [0, 1, 2].filter((each) => each !== axis);
    for (const i of [low, high]) {
      for (const j of [low, high]) {
        for (const end of [low, high]) {
          const corner = [0, 0, 0];
          [corner[axis], corner[p], corner[q]] = [end[axis], i[p], j[q]];
          found.push(...corner);
        }
      }
    }
  }
  return found;
}
