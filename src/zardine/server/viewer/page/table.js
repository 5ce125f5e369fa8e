// Exact values as a table: what strings, structs and times have in the place of a picture.

import { make } from "./elements.js";
import { json } from "./server.js";

export const ROWS = 50;
const COLUMNS = 12;

function text(cell) {
  if (cell === null) return "damaged";
  return typeof cell === "object" ? Object.entries(cell).map(([name, value]) => `${name}: ${text(value)}`).join("; ") : cell;
}

/** Fill a place with the values from `at` on, along the axes of the picture. */
export async function drawTable(place, state, facts, signal) {
  const axes = facts.shape.length ? state.axes : [];
  const many = axes.length === 2;
  const isStruct = facts.values === "struct" && !many;
  const found = await json(
    state, "table",
    { axes: axes.join(","), at: state.at.join(","), count: (many ? [ROWS, COLUMNS] : axes.map(() => ROWS)).join(","), snapshot: facts.snapshot },
    signal,
  );
  const rows = many ? found.cells : found.cells.map((cell) => (isStruct && cell !== null ? Object.values(cell) : [cell]));
  const first = axes.length ? state.at[axes[0]] : 0;
  const from = many ? state.at[axes[1]] : 0;
  const [down, across] = found.labels;
  const label = (text) => (text === undefined || text === null ? null : make("small", {}, text));
  const heads = many ? (rows[0] ?? []).map((_, i) => [String(from + i), label(across?.[i])]) : isStruct ? Object.keys(facts.fields).map((name) => [name]) : [["value"]];
  place.replaceChildren(
    make(
      "table", { className: "cells" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, axes.length ? axes.map((axis) => facts.axes[axis].name).join(" \\ ") : "element"), ...heads.map((head) => make("th", { scope: "col" }, ...head)))),
      make(
        "tbody", {},
        ...rows.map((row, i) =>
          make(
            "tr", {},
            make("th", { scope: "row" }, axes.length ? String(first + i) : "", label(down?.[i])),
            ...row.map((cell) => make("td", { className: cell === null ? "damaged" : "" }, text(cell))),
          ),
        ),
      ),
    ),
  );
}
