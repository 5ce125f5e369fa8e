// The hierarchy: members are asked for when a group is opened, a hundred at a time.

import { bytes, make } from "./elements.js";
import { json, report } from "./server.js";

const PAGE = 100;

function described({ dtype, shape, nbytes }) {
  return `${[dtype, shape.join(" × ")].filter(Boolean).join(" ")}, ${bytes(nbytes)}`;
}

/** The tree of all nodes that are served; `open(name, path, isGroup)` is called for one that is chosen. */
export class Tree {
  #place;
  #open;
  #names;
  #buttons = new Map();
  #opened = new Set();
  #filter = "";
  #filling = 0;
  #marked = "";

  constructor(place, names, open) {
    this.#place = place;
    this.#names = names;
    this.#open = open;
    this.#draw();
  }

  /** Show only nodes whose names have `text` in them. */
  filter(text) {
    this.#filter = text;
    this.#draw();
  }

  /** Show the nodes that are there now. */
  refresh() {
    this.#draw();
  }

  /** Mark the node that is shown, and open the groups above it. */
  mark(name, path) {
    this.#marked = `${name}\n${path}`;
    if (!this.#buttons.has(this.#marked) && (path.includes("/") || !this.#filling)) {
      for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) this.#opened.add(`${name}\n${path.slice(0, end)}`);
      this.#draw();
    }
    for (const [key, button] of this.#buttons) {
      if (key === this.#marked) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    this.#reveal();
  }

  /** Scroll the tree so that the marked node is seen. */
  #reveal() {
    const nav = this.#place.parentElement;
    const bounds = this.#buttons.get(this.#marked)?.getBoundingClientRect();
    const frame = nav.getBoundingClientRect();
    if (!bounds?.height || (bounds.top >= frame.top && bounds.bottom <= Math.min(frame.bottom, innerHeight))) return;
    nav.scrollTop += bounds.top - frame.top - nav.clientHeight / 3;
  }

  #draw() {
    this.#buttons.clear();
    const roots = this.#names.map((name) => this.#item({ name, path: "", kind: "root" }, name, this.#filter, true));
    this.#place.replaceChildren(make("ul", { className: "tree" }, ...roots));
  }

  #item(node, store, contains, expanded) {
    const facts = node.kind === "array" ? described(node) : node.kind === "broken" ? node.error : "";
    const below = make("ul");
    const key = `${store}\n${node.path}`;
    const isGroup = node.kind !== "array" && node.kind !== "broken";
    const button = make(
      "button",
      {
        type: "button",
        "aria-expanded": isGroup ? String(expanded) : undefined,
        onclick: () => {
          if (isGroup && node.kind === "group") {
            const opened = below.childElementCount === 0;
            if (opened) this.#opened.add(key);
            else this.#opened.delete(key);
            if (opened) this.#fill(below, node.path, store, "", 0);
            else below.replaceChildren();
            button.setAttribute("aria-expanded", String(opened));
          }
          this.#open(store, node.path, isGroup);
        },
      },
      node.name,
      facts ? make("small", { className: node.kind === "broken" ? "error" : "" }, facts) : null,
    );
    this.#buttons.set(key, button);
    if (key === this.#marked) button.setAttribute("aria-current", "true");
    if (expanded) this.#fill(below, node.path, store, contains, 0);
    return make("li", {}, button, below);
  }

  /** The name of the member of a group that the marked node is, or lies in. */
  #markedBelow(store, path) {
    const [name, marked] = this.#marked.split("\n");
    const prefix = path ? `${path}/` : "";
    return name === store && marked && marked.startsWith(prefix) ? marked.slice(prefix.length).split("/")[0] : "";
  }

  async #fill(list, path, store, contains, start) {
    this.#filling += 1;
    try {
      const found = await json({ name: store, path }, "members", { contains, start, count: PAGE });
      for (const each of found.members) list.append(this.#item(each, store, "", each.kind === "group" && this.#opened.has(`${store}\n${each.path}`)));
      if (found.array) this.#buttons.get(`${store}\n${path}`)?.append(make("small", {}, described(found.array)));
      const next = start + PAGE;
      const wanted = this.#markedBelow(store, path);
      if (wanted && !contains && next < found.total && !found.members.some((each) => each.name === wanted) && !this.#buttons.has(`${store}\n${path ? `${path}/` : ""}${wanted}`)) {
        const { members } = await json({ name: store, path }, "members", { contains: wanted, start: 0, count: PAGE });
        for (const each of members.filter((one) => one.name === wanted)) list.append(this.#item(each, store, "", each.kind === "group" && this.#opened.has(`${store}\n${each.path}`)));
      }
      this.#reveal();
      if (next < found.total) {
        const more = make(
          "button",
          {
            type: "button",
            onclick: () => {
              more.parentElement.remove();
              this.#fill(list, path, store, contains, next);
            },
          },
          `… ${found.total - next} more`,
        );
        list.append(make("li", {}, more));
      }
    } catch (error) {
      report(error);
    }
    this.#filling -= 1;
  }
}
