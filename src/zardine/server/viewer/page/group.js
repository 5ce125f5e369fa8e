// A group as a page: its title, institution and conventions, and its variables as cards, with the coordinates below.

import { bytes, make } from "./elements.js";
import { titled } from "./frame.js";
import { json } from "./server.js";

const MOST = 100;

/** Return what the attributes say of the group as a whole (CF, 2.6). */
export function headOf(attributes) {
  const text = (name) => (typeof attributes[name] === "string" && attributes[name].trim() ? attributes[name] : null);
  const facts = [["institution", text("institution")], ["conventions", text("Conventions")], ["source", text("source")]].filter(([, value]) => value);
  return [
    text("title") ? make("h2", { id: "caption" }, text("title")) : "",
    facts.length ? make("p", { id: "head" }, facts.map(([name, value]) => `${name}: ${value}`).join(" · ")) : "",
  ];
}

function card(member, picture, open) {
  const dimensions = member.shape?.map((length, i) => (member.dimensions[i] ? `${member.dimensions[i]} ${length}` : String(length))).join(" × ");
  const facts = member.kind === "array" ? [[dimensions, member.dtype, bytes(member.nbytes)].filter(Boolean).join(", ")] : [member.kind === "broken" ? member.error : "group"];
  return make(
    "button", { type: "button", className: "card", onclick: () => open(member.path) },
    picture, make("strong", {}, member.name), member.kind === "array" && member.title !== member.name ? make("span", {}, titled(member)) : null,
    ...facts.map((each) => make("small", { className: member.kind === "broken" ? "error" : "" }, each)),
  );
}

/** Show the members of a group in a place of the page; `open(path)` is called for one that is chosen. `small` draws the pictures in the cards. */
export async function showMembers(place, state, small, open) {
  const { total, members } = await json(state, "members", { start: 0, count: MOST });
  const dimensions = new Set(members.flatMap((each) => each.dimensions ?? []));
  const isCoordinate = (each) => each.shape?.length === 1 && dimensions.has(each.name) && each.dimensions[0] === each.name;
  const list = (title, found) => (found.length ? [make("h2", {}, title), make("div", { className: "cards" }, ...found.map((each) => card(each, isCoordinate(each) ? null : small.place(each), open)))] : []);
  place.replaceChildren(
    ...list("Variables", members.filter((each) => each.kind !== "group" && !isCoordinate(each))),
    ...list("Groups", members.filter((each) => each.kind === "group")),
    ...list("Coordinates", members.filter(isCoordinate)),
    total > members.length ? make("p", {}, `and ${total - members.length} more, in the list of nodes`) : "",
  );
}
