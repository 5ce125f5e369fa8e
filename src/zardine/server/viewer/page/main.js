// The page: the tree of nodes, and the one that the address names.

import { ArrayView, attributes } from "./array.js";
import { bytes, make } from "./elements.js";
import { elsewhere } from "./elsewhere.js";
import { GeometryView } from "./geometry.js";
import { beginMove, greet, json, listen, report, served } from "./server.js";
import { fromAddress, toAddress } from "./state.js";
import { headOf, showMembers } from "./group.js";
import { SmallPictures } from "./small.js";
import { Tree } from "./tree.js";

const main = document.getElementById("main");
const notice = document.getElementById("notice");
const title = document.getElementById("title");
const meter = document.getElementById("meter");
let tree;
let view = null;
let facts = null;
let state = {};
let opening = 0;
let shown = null; // the name of the store of the node that is opened

listen("meter", (name, move, all) => {
  if (name !== shown) return; // the tree asks other stores
  const whole = served.nodes.length > 1 ? `this page, of ${name}` : "this page";
  meter.textContent = `this move: ${move.requests} requests, ${bytes(move.bytes)}, ${move.decoded} chunks decoded; ${whole}: ${all.requests}, ${bytes(all.bytes)}`;
  meter.dataset.requests = all.requests;
  meter.dataset.moveRequests = move.requests;
  meter.dataset.decoded = all.decoded;
});

listen("changed", (why) => {
  if (notice.dataset.changed) return;
  notice.dataset.changed = "true";
  view?.close();
  notice.replaceChildren(
    `What is stored was changed (${why}). What you see is as it was. `,
    make("button", { type: "button", onclick: () => {
      tree.refresh();
      open(state);
    } }, "Show it as it is now"),
  );
  notice.hidden = false;
});

function keep(next, lasting) {
  state = next;
  history[lasting ? "pushState" : "replaceState"](null, "", toAddress(next));
}

async function open(wanted, lasting = false) {
  const number = ++opening;
  view?.close();
  view = facts = null;
  notice.hidden = true;
  delete notice.dataset.changed;
  shown = wanted.name;
  beginMove();
  try {
    const found = await json(wanted, "node");
    if (number !== opening) return;
    if (found.image && wanted.mode !== "group") {
      await open({ ...wanted, path: found.image }, lasting);
      return;
    }
    facts = found;
    title.textContent = [wanted.name, wanted.path].filter(Boolean).join(" / ");
    document.title = `${wanted.path || wanted.name} · zardine`;
    tree.mark(wanted.name, wanted.path ?? "");
    if (facts.kind === "array") {
      view = new ArrayView(main, facts, wanted, keep);
      keep(view.state, lasting);
    } else if (facts.vectors && !facts.vectors.error && facts.vectors.levels.length) {
      view = new GeometryView(main, facts, wanted, keep);
      keep(view.state, lasting);
    } else {
      keep({ name: wanted.name, path: wanted.path, mode: wanted.mode }, lasting);
      const about = [`Group of Zarr v${facts.format}`, facts.consolidated ? "its metadata are consolidated" : ""].filter(Boolean).join(", ");
      const error = facts.vectors?.error ? make("p", { className: "error" }, facts.vectors.error) : "";
      const variables = make("div", { id: "variables" });
      main.replaceChildren(...headOf(facts.attributes), make("p", {}, about), error, variables, elsewhere(wanted, facts) ?? "", make("h2", {}, "Attributes"), attributes(facts.attributes));
      view = new SmallPictures(wanted);
      if (!facts.vectors) showMembers(variables, wanted, view, (path) => open({ name: wanted.name, path }, true)).catch(report);
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      report(error);
      main.replaceChildren(make("p", { className: "error" }, error.message));
    }
  }
}

async function watch() {
  if (facts && !document.hidden && !notice.dataset.changed) {
    try {
      await json(state, "changes", { snapshot: facts.snapshot, state: facts.state });
    } catch (error) {
      if (error.name !== "AbortError" && error.name !== "TypeError") report(error);
    }
  }
  setTimeout(watch, 1000 * (facts?.watch ?? 3));
}

async function start() {
  await greet();
  const { nodes } = served;
  const toggle = document.getElementById("toggle-tree");
  const nav = document.getElementById("nav");
  const narrow = matchMedia("(max-width: 850px)");
  const fold = (isFolded) => {
    nav.hidden = isFolded;
    toggle.setAttribute("aria-expanded", String(!isFolded));
  };
  fold(narrow.matches);
  narrow.addEventListener("change", () => fold(narrow.matches));
  toggle.addEventListener("click", () => fold(!nav.hidden));
  tree = new Tree(document.getElementById("tree"), nodes, (name, path, isGroup) => {
    if (narrow.matches && !isGroup) fold(true);
    open({ name, path }, true);
  });
  const filter = document.getElementById("filter");
  let timer;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => tree.filter(filter.value), 150);
  });
  const go = () => open({ name: nodes[0], ...fromAddress(location.hash) });
  addEventListener("popstate", go);
  await go();
  setTimeout(watch, 3000);
}

start().catch(report);
