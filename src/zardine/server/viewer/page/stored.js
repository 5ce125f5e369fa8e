// Where elements are stored: the chunk that was picked, what is not there, what is damaged, what other shards would cost.

import { bytes, make } from "./elements.js";
import { Latest, address, json } from "./server.js";

const PICKED = "#00d0ff", FAULTY = "#ff2f92", ABSENT = "#7d8b99";

function rows(found) {
  const ratio = found.length ? (found.nbytes / found.length).toPrecision(3) : null;
  const missing = found.object ? "not stored in its shard: it reads as the fill value" : "not stored: it reads as the fill value";
  const facts = [
    ["Key", found.key],
    [found.shard ? "Inner chunk" : "Chunk", `(${found.chunk.join(", ")})`],
    found.shard ? ["Shard", `(${found.shard.join(", ")})`] : null,
    ["Elements from", `(${found.start.join(", ")}), shape (${found.shape.join(", ")})`],
    ["State", found.state === "stored" ? `stored, and decoded${found.checksum ? "; its checksum is right" : "; it has no checksum"}` : found.state === "missing" ? missing : found.error],
    found.length === null ? null : ["Bytes", `${found.length.toLocaleString("en")} from offset ${found.offset.toLocaleString("en")}`],
    ["In memory", bytes(found.nbytes) + (ratio ? `, ratio ${ratio}` : "")],
    ["Codecs", found.codecs.join(" → ")],
    found.object_nbytes === undefined || found.object_nbytes === null ? null : [found.shard ? "Bytes of the shard" : "Bytes of the object", found.object_nbytes.toLocaleString("en")],
    found.inner === undefined ? null : ["Inner chunks stored", `${found.inner} of ${found.inner_total}`],
    found.unused === undefined ? null : ["Unused bytes in the shard", found.unused.toLocaleString("en")],
  ];
  return facts.filter(Boolean);
}

function table(pairs) {
  return make("table", {}, make("tbody", {}, ...pairs.map(([label, value]) => make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, value)))));
}

/** The part of the page that tells where an array is stored. */
export class Stored {
  #facts;
  #state;
  #mark;
  #go;
  #asking = new Latest();
  #looking = new Latest();
  #verifying = null;
  #picked = [];
  #faulty = [];
  #absent = [];

  /** `state()` is what is seen, `mark(blocks)` outlines blocks of elements in the picture, `go(at)` shows an element. `drawn`: there is a picture. */
  constructor(facts, state, mark, go, drawn) {
    [this.#facts, this.#state, this.#mark, this.#go] = [facts, state, mark, go];
    this.chunk = make("div", { id: "chunk" }, drawn ? make("p", {}, "Click into the picture, or press Enter at the cross, to see where a value is stored.") : "");
    this.objects = make("p", { id: "objects", className: "status" });
    this.verify = make("button", { type: "button", id: "verify", onclick: () => this.#verify() }, "Verify all chunks");
    this.progress = make("progress", { id: "progress", hidden: true, "aria-label": "Verifying", max: 1, value: 0 });
    this.found = make("div", { id: "faults", "aria-live": "polite" });
    this.advice = make("div", { id: "advice", className: "scroll" });
    const ask = make("button", { type: "button", id: "advise", onclick: () => this.#advise() }, "What would other shards cost?");
    this.section = make(
      "section", { "aria-label": "Where it is stored" },
      make("h2", {}, "Where it is stored"), this.chunk, this.objects,
      make("div", { className: "controls" }, this.verify, this.progress, facts.shape.length ? ask : null), this.found, this.advice,
    );
  }

  /** End what is under way. */
  close() {
    this.#asking.cancel();
    this.#looking.cancel();
    this.#verifying?.abort();
  }

  /** Tell of the chunk that has an element. */
  pick(at) {
    this.#asking.ask(async (signal) => {
      const found = await json(this.#state(), "chunk", { at: at.join(","), snapshot: this.#facts.snapshot }, signal);
      this.chunk.replaceChildren(table(rows({ ...found, checksum: this.#facts.checksum })));
      this.chunk.dataset.state = found.state;
      this.#picked = [{ start: found.start, shape: found.shape, colour: found.state === "damaged" ? FAULTY : PICKED }];
      this.#marks();
    });
  }

  /** Look which of the objects below the picture are not there; `request` says which picture it is. */
  look(request) {
    this.#looking.ask(async (signal) => {
      const found = await json(this.#state(), "objects", request, signal);
      const what = this.#facts.axes[0]?.shards ? "shards" : "objects";
      this.objects.textContent = `${found.stored} of ${found.looked} ${what} in view are stored${found.looked < found.total ? ` (of ${found.total})` : ""}`;
      this.#absent = found.missing.map((each) => ({ ...each, colour: ABSENT, dashed: true }));
      this.#marks();
    });
  }

  #marks() {
    this.#mark([...this.#absent, ...this.#faulty, ...this.#picked]);
  }

  async #verify() {
    if (this.#verifying) {
      this.#verifying.abort();
      return;
    }
    this.#verifying = new AbortController();
    this.verify.textContent = "Stop";
    this.progress.hidden = false;
    this.found.replaceChildren();
    try {
      const response = await fetch(address(this.#state(), "verify", {}), { signal: this.#verifying.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (text + value).split("\n");
        text = lines.pop();
        for (const line of lines) this.#verified(JSON.parse(line));
      }
    } catch (error) {
      this.found.textContent = error.name === "AbortError" ? "stopped" : error.message;
    }
    this.#verifying = null;
    this.verify.textContent = "Verify all chunks";
    this.progress.hidden = true;
  }

  #verified(found) {
    if (found.error) {
      this.found.textContent = found.error;
      return;
    }
    this.progress.max = Math.max(1, found.total);
    this.progress.value = found.done;
    if (!found.faults) return;
    const words = `${found.chunks.toLocaleString("en")} chunks in ${found.objects.toLocaleString("en")} objects looked at, ${bytes(found.nbytes)}: `;
    this.#faulty = found.faults.filter((each) => each.start && each.path === (this.#state().path ?? "")).map((each) => ({ ...each, colour: FAULTY }));
    const list = found.faults.map((each) =>
      make("li", {}, each.start ? make("button", { type: "button", onclick: () => this.#go(each.start) }, "show") : null, " ", each.text),
    );
    this.found.replaceChildren(
      make("p", {}, words + (found.fault_count ? `${found.fault_count} faults` : "no faults")),
      make("ul", {}, ...list, ...found.notes.map((note) => make("li", {}, `note: ${note}`))),
    );
    this.found.dataset.faults = found.fault_count;
    this.#marks();
  }

  async #advise() {
    const state = this.#state();
    const found = await json(state, "advice", { axes: state.axes.join(","), snapshot: this.#facts.snapshot });
    const shape = (lengths) => (lengths ? lengths.join(" × ") : "none");
    const reads = found.choices[0].reads.map((each) => each.name.replace(String(found.axis), this.#facts.axes[found.axis].name));
    const head = ["layout", "chunks", "shards", "objects", ...reads.flatMap((name) => [`${name}: requests`, "bytes"])];
    const round = (value) => (value < 10 ? Number(value.toPrecision(2)) : Math.round(value)).toLocaleString("en");
    this.advice.replaceChildren(
      make(
        "table", { className: "cells" },
        make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
        make("tbody", {}, ...found.choices.map((each) => make(
          "tr", {}, make("th", { scope: "row" }, each.name), make("td", {}, shape(each.chunks)), make("td", {}, shape(each.shards)),
          make("td", {}, each.objects.toLocaleString("en")),
          ...each.reads.flatMap((read) => [make("td", {}, round(read.requests)), make("td", {}, bytes(read.nbytes))]),
        ))),
      ),
    );
    this.advice.tabIndex = 0;
  }
}
