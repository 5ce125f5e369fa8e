// Ticks beside a picture and beside its bar of colours, the titles of axes, and the scale bar.

import { make } from "./elements.js";
import { roundValues, scaleBar, ticks, titled } from "./frame.js";

const APART = { rows: 36, columns: 80 }; // pixels between two ticks, at least

function put(place, found, side) {
  place.replaceChildren(...found.map(([at, text]) => {
    const tick = make("span", {}, text);
    tick.style[side] = `${at.toFixed(1)}px`;
    return tick;
  }));
}

/** Draw the ticks and the titles of the axes of a picture, and its scale bar. */
export function drawTicks(figure, frame, axes) {
  const columns = axes[axes.length - 1];
  const rows = axes.length === 2 ? axes[0] : null;
  const find = (selector) => figure.querySelector(selector);
  const across = ticks(columns, frame.left, frame.right, frame.width / APART.columns);
  put(find(".ticks.below"), across.map(([edge, text]) => [frame.x(edge), text]), "left");
  const down = rows ? ticks(rows, frame.top, frame.bottom, frame.height / APART.rows) : [];
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

/** Draw ticks beside the bar of colours; dates have none, since the bar counts their units. */
export function drawBarTicks(scale, [lo, hi], isTime) {
  const height = scale.querySelector(".bar").getBoundingClientRect().height;
  const found = isTime ? [] : roundValues(lo, hi, Math.max(2, height / 50));
  put(scale.querySelector(".ticks"), found.map(([value, text]) => [height * (1 - (value - lo) / (hi - lo)), text]), "top");
}
