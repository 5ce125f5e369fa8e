// Ticks beside a picture and beside its bar of colours, the titles of axes, and the scale bar.

import { make } from "./elements.js";
import { roundValues, scaleBar, ticks, titled } from "./frame.js";
import { json } from "./server.js";

export const APART = { rows: 36, columns: 80 }; // pixels between two ticks, at least
const WIDE = 150, CHARACTER = 8, LINE = 14; // the same of names beside each other, of a character, and of a line

/** Return ticks without those whose text would lie over that of the one before. */
function apart(found, side) {
  let end = -Infinity;
  const kept = [...found].sort((a, b) => a[0] - b[0]).filter(([at, text]) => {
    const half = side === "top" ? LINE / 2 : (CHARACTER * text.length) / 2;
    if (at - half < end) return false;
    end = at + half;
    return true;
  });
  return found.filter((each) => kept.includes(each));
}

function put(place, found, side) {
  place.replaceChildren(...apart(found, side).map(([at, text]) => {
    const tick = make("span", {}, text);
    tick.style[side] = `${at.toFixed(1)}px`;
    return tick;
  }));
}

/** Whether the coordinates of an axis are dates or names, which the server tells. */
function isNamed(axis) {
  return Boolean(axis.coordinate) && (axis.kind === "time" || !(axis.knots || axis.step !== undefined));
}

/** Return ticks of an axis between two edges as [edge, text], one for about `pixels` of `size`; dates come from the server. */
export async function ticksOf(state, facts, number, low, high, size, pixels, signal) {
  const axis = facts.axes[number];
  if (!isNamed(axis)) return ticks(axis, low, high, size / pixels);
  const indices = ticks({ length: axis.length }, low, high, Math.min(50, size / Math.max(pixels, WIDE * (pixels > APART.rows)))).map(([edge]) => edge - 0.5);
  if (!indices.length) return [];
  const box = axis.kind === "time" ? [Math.max(0, Math.floor(low)), Math.min(axis.length, Math.ceil(high)) - 1].join(",") : undefined;
  const few = Math.max(2, Math.floor(size / pixels));
  const found = await json(state, "labels", { axes: number, index: indices.join(","), box, count: Math.min(50, few), snapshot: facts.snapshot }, signal);
  if (found.ticks && pixels > APART.rows) { // dates beside each other
    const most = size / (CHARACTER * Math.max(...found.ticks.map(([, text]) => text.length)) + 16);
    const every = Math.ceil(found.ticks.length / Math.max(1, most));
    found.ticks = found.ticks.filter((_, i) => i % every === 0);
  }
  return found.ticks?.map(([index, text]) => [index + 0.5, text]) ?? indices.map((index, i) => [index + 0.5, found.labels[i] ?? String(index)]);
}

/** Draw the ticks and the titles of the axes of a picture, and its scale bar. */
export async function drawTicks(figure, frame, state, facts, signal) {
  const axes = state.axes.map((axis) => facts.axes[axis]);
  const columns = axes[axes.length - 1];
  const rows = axes.length === 2 ? axes[0] : null;
  const find = (selector) => figure.querySelector(selector);
  const [across, down] = await Promise.all([
    ticksOf(state, facts, state.axes[axes.length - 1], frame.left, frame.right, frame.width, APART.columns, signal),
    rows ? ticksOf(state, facts, state.axes[0], frame.top, frame.bottom, frame.height, APART.rows, signal) : [],
  ]);
  put(find(".ticks.below"), across.map(([edge, text]) => [frame.x(edge), text]), "left");
  put(find(".ticks.left"), down.map(([edge, text]) => [frame.y(edge), text]), "top");
  find(".title.columns").textContent = titled(columns);
  find(".title.rows").textContent = rows ? titled(rows) : "";
  const bar = scaleBar(columns, frame.left, frame.right);
  const stage = find(".stage");
  stage.querySelector(".scale-bar")?.remove();
  if (!bar || figure.dataset.scaled !== "true") return;
  const drawn = make("span", { className: "scale-bar" }, bar.text);
  drawn.style.width = `${(bar.share * frame.width).toFixed(1)}px`;
  stage.append(drawn);
}

/** The pixels that an axis needs for its ticks when it is the rows. */
export function widthOfTicks(axis) {
  return isNamed(axis) ? 150 : 58;
}

/** Draw ticks beside the bar of colours; dates have none, since the bar counts their units. */
export function drawBarTicks(scale, [lo, hi], isTime) {
  const height = scale.querySelector(".bar").getBoundingClientRect().height;
  const found = isTime ? [] : roundValues(lo, hi, Math.max(2, height / 50));
  put(scale.querySelector(".ticks"), found.map(([value, text]) => [height * (1 - (value - lo) / (hi - lo)), text]), "top");
}
