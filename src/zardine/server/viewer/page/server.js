// Asking the server, which counts what each request asks of the store.

/** What the server serves: names of nodes, and the origins whose pages it lets in. */
export const served = { nodes: [], origins: [] };

/** Ask the server what it serves. */
export async function greet() {
  Object.assign(served, await (await fetch("nodes.json", { cache: "no-store" })).json());
}

const PAGE = pageName();

/** Return a name that this page has made up, by which the server counts what it asks; the same when it is loaded again. */
function pageName() {
  const made = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const known = sessionStorage.getItem("page") ?? made;
    sessionStorage.setItem("page", known);
    return known;
  } catch {
    return made; // in a frame that may keep nothing
  }
}

const COUNTS = ["requests", "bytes", "decoded"];
const meters = new Map(); // of each store what was counted, and how much of it at the end of the move before
const listeners = { meter: [], changed: [] };

/** Call back when counts have come ("meter"), or when what is stored was changed ("changed"). */
export function listen(what, call) {
  listeners[what].push(call);
}

/** Begin a new move: what is counted from now on is its own. */
export function beginMove() {
  for (const meter of meters.values()) meter.before = { ...meter.all };
}

/** Take the counts of one store, which say what this page has asked of it so far. */
function count(name, response) {
  const text = response.headers.get("zardine-meter");
  if (!text) return;
  const { number, ...counts } = JSON.parse(text);
  const zero = Object.fromEntries(COUNTS.map((what) => [what, 0]));
  const meter = meters.get(name) ?? { number, base: zero, all: zero, before: zero };
  if (number > meter.number) [meter.number, meter.base] = [number, meter.all]; // the server has begun to count anew
  if (number === meter.number) { // else this answer was overtaken
    meter.all = Object.fromEntries(COUNTS.map((what) => [what, Math.max(meter.all[what], meter.base[what] + counts[what])]));
  }
  meters.set(name, meter);
  const move = Object.fromEntries(COUNTS.map((what) => [what, meter.all[what] - meter.before[what]]));
  for (const call of listeners.meter) call(name, move, meter.all);
}

export function address(state, what, parameters) {
  const query = new URLSearchParams({ path: state.path ?? "", page: PAGE });
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  return `api/${encodeURIComponent(state.name)}/${what}?${query}`;
}

async function answer(state, what, parameters, signal) {
  const response = await fetch(address(state, what, parameters), { signal, cache: "no-store" });
  count(state.name, response);
  if (response.status === 409) {
    const { changed } = await response.json();
    for (const call of listeners.changed) call(changed);
    throw new DOMException("changed", "AbortError");
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `the server answered ${response.status}`);
  return response;
}

/** Return JSON that the server gives. */
export async function json(state, what, parameters = {}, signal = undefined) {
  return (await answer(state, what, parameters, signal)).json();
}

const ARRAYS = {
  u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array,
  f4: Float32Array, f8: Float64Array,
};

/** Return facts and typed arrays: a line of JSON, then the bytes of each array, all padded to 8 bytes. */
export async function packed(state, what, parameters = {}, signal = undefined) {
  const buffer = await (await answer(state, what, parameters, signal)).arrayBuffer();
  const all = new Uint8Array(buffer);
  const end = all.indexOf(10);
  const facts = JSON.parse(new TextDecoder().decode(all.subarray(0, end)));
  let offset = end + 1;
  for (const each of facts.arrays) {
    const kind = ARRAYS[each.type];
    const length = each.shape.reduce((a, b) => a * b, 1);
    facts[each.name] = new kind(buffer, offset, length);
    offset += Math.ceil((length * kind.BYTES_PER_ELEMENT) / 8) * 8;
  }
  return facts;
}

/** One thing is asked at a time; of those that come meanwhile the newest waits, and the others are forgotten. */
export class Latest {
  #busy = false;
  #next = null;
  #controller = null;
  #fail;

  constructor(fail = report) {
    this.#fail = fail;
  }

  /** Call `work(signal)` now, or when what is under way has ended. */
  ask(work) {
    this.#next = work;
    if (!this.#busy) this.#run();
  }

  /** End what is under way, and go on with what waits. */
  overtake() {
    this.#controller?.abort();
  }

  /** End what is under way: nobody waits for it any more. */
  cancel() {
    this.#next = null;
    this.#controller?.abort();
  }

  /** Whether something is under way. */
  get isBusy() {
    return this.#busy;
  }

  /** Whether something newer waits. */
  get isOvertaken() {
    return this.#next !== null;
  }

  async #run() {
    this.#busy = true;
    while (this.#next) {
      const work = this.#next;
      this.#next = null;
      this.#controller = new AbortController();
      try {
        await work(this.#controller.signal);
      } catch (error) {
        if (error.name !== "AbortError") this.#fail(error);
      }
    }
    this.#busy = false;
  }
}

/** Show an error where everybody sees it. */
export function report(error) {
  const place = document.getElementById("notice");
  place.textContent = error.message ?? String(error);
  place.hidden = false;
}
