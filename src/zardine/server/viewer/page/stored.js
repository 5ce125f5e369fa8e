// Where elements are stored: the chunk that was picked, and what is damaged.

import { bytes, make } from "./elements.js";
import { Latest, beginMove, json } from "./server.js";

function rows(found) {
  const ratio = found.length ? (found.nbytes / found.length).toPrecision(3) : null;
  const facts = [
    ["Key", found.key],
    [found.shard ? "Inner chunk" : "Chunk", `(${found.chunk.join(", ")})`],
    found.shard ? ["Shard", `(${found.shard.join(", ")})`] : null,
    ["Elements from", `(${found.start.join(", ")}), shape (${found.shape.join(", ")})`],
    ["State", found.state === "stored" ? "stored, and sound" : found.state === "missing" ? (found.object ? "not stored in its shard: it reads as the fill value" : "not stored: it reads as the fill value") : found.error],
    found.length === null ? null : ["Bytes", `${found.length.toLocaleString("en")} from offset ${found.offset.toLocaleString("en")}`],
    ["In memory", bytes(found.nbytes) + (ratio ? `, ratio ${ratio}` : "")],
    ["Codecs", found.codecs.join(" → ")],
    found.object_nbytes === undefined || found.object_nbytes === null ? null : [found.shard ? "Bytes of the shard" : "Bytes of the object", found.object_nbytes.toLocaleString("en")],
    found.inner === undefined ? null : ["Inner chunks stored", `${found.inner} of ${found.inner_total}`],
    found.unused === undefined ? null : ["Unused bytes in the shard", found.unused.toLocaleString("en")],
  ];
  return facts.filter(Boolean);
}

/** Return the part of the page about the chunk that was picked; `mark(blocks)` outlines some in the picture. */
export function drawStored(facts, state, mark) {
  const asking = new Latest();
  const place = make("div", { id: "chunk" }, make("p", {}, "Click into the picture, or press Enter at the cross, to see where a value is stored."));
  const section = make("section", { "aria-label": "Where it is stored" }, make("h2", {}, "Where it is stored"), place);
  const listen = () => {
    const main = section.parentElement;
    main.addEventListener("pick", (event) => {
      asking.ask(async (signal) => {
        const found = await json(state(), "chunk", { at: event.detail.join(","), snapshot: facts.snapshot }, signal);
        place.replaceChildren(make("table", {}, make("tbody", {}, ...rows(found).map(([label, value]) => make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, value))))));
        place.dataset.state = found.state;
        mark([{ start: found.start, shape: found.shape, colour: found.state === "damaged" ? "#e6007a" : "#00d0ff" }]);
      });
    });
  };
  queueMicrotask(listen);
  return section;
}
