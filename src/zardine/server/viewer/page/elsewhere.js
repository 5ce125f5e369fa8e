// Links to viewers of others, which read from this server where it lets their pages in.

import { make } from "./elements.js";
import { served } from "./server.js";

const VIEWERS = [
  {
    name: "neuroglancer", origin: "https://neuroglancer-demo.appspot.com", shows: ["array"],
    address: (source, name) => `/#!${encodeURIComponent(JSON.stringify({ layers: [{ type: "image", source: `${source}/|zarr3:`, name }] }))}`,
  },
  { name: "vizarr", origin: "https://hms-dbmi.github.io", shows: ["array", "image"], address: (source) => `/vizarr/?source=${encodeURIComponent(source)}` },
  { name: "Browzarr", origin: "https://browzarr.io", shows: ["group"], address: (source) => `/?store=${encodeURIComponent(source)}` },
];

/** Return a paragraph of links for an array, or a group, at a path of what is served; null where none can show it. */
export function elsewhere({ name, path = "" }, { kind, attributes }) {
  const source = (inner) => new URL(`../v3/${[name, ...inner.split("/")].filter(Boolean).map(encodeURIComponent).join("/")}`, location.href.split("#")[0]).href;
  const above = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
  const places = { [kind]: path };
  if (kind === "array" && path) places.group = above; // they show the arrays of a group
  if (kind === "group" && (attributes.ome?.multiscales ?? attributes.multiscales)) places.image = path;
  const found = VIEWERS.map((viewer) => [viewer, viewer.shows.find((what) => what in places)]).filter(([, what]) => what);
  if (!found.length) return null;
  const lacking = found.map(([viewer]) => viewer.origin).filter((origin) => !served.origins.includes("*") && !served.origins.includes(origin));
  const links = found.flatMap(([viewer, what], i) => [
    i === 0 ? "" : i === found.length - 1 ? " or " : ", ",
    make("a", { href: viewer.origin + viewer.address(source(places[what]), path || name), target: "_blank", rel: "noopener noreferrer" }, viewer.name),
  ]);
  const words = lacking.length ? ` Such a page can read only from a server that was started with ${lacking.map((origin) => `--cors ${origin}`).join(" ")}.` : "";
  return make("p", { id: "elsewhere" }, "Open in ", ...links, `. ${found.length > 1 ? "They get" : "It gets"} the address with its token.${words}`);
}
