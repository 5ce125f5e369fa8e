// Coastlines over a picture whose axes are latitude and longitude.

import { indexAt, valueAt } from "./frame.js";

let loading = null;

/** Whether two axes make a map. */
export function isMap(axes) {
  const kinds = axes.map((axis) => axis.kind).sort();
  return kinds.length === 2 && kinds[0] === "latitude" && kinds[1] === "longitude" && axes.every((axis) => axis.length > 1 && (axis.knots || axis.step));
}

/** Return the lines of coasts, which are loaded when they are first asked for. */
export function coasts() {
  loading ??= import("./vendor/coast.js").then(({ COAST }) => COAST.map((line) => {
    const points = Float64Array.from(line);
    for (let i = 2; i < points.length; i++) points[i] += points[i - 2];
    return points.map((each) => each / 100);
  }));
  return loading;
}

/** Draw coasts onto a canvas, at all longitudes that the axis has: of -180 to 180 and of 0 to 360. */
export function drawCoast(canvas, frame, [rows, columns], lines) {
  const context = canvas.getContext("2d");
  const isTurned = columns.kind === "latitude"; // latitudes run along the columns
  const axis = isTurned ? rows : columns;
  const ends = [valueAt(axis, 0), valueAt(axis, axis.length - 1)].sort((a, b) => a - b);
  const path = new Path2D();
  for (let turn = 360 * Math.ceil((ends[0] - 181) / 360); turn - 181 <= ends[1]; turn += 360) {
    for (const line of lines) {
      for (let i = 0; i < line.length; i += 2) {
        const [longitude, latitude] = [line[i] + turn, line[i + 1]];
        const x = frame.x(indexAt(columns, isTurned ? latitude : longitude) + 0.5);
        const y = frame.y(indexAt(rows, isTurned ? longitude : latitude) + 0.5);
        if (i) path.lineTo(x, y);
        else path.moveTo(x, y);
      }
    }
  }
  context.lineJoin = "round";
  const scale = window.devicePixelRatio || 1;
  for (const [width, colour] of [[2.5, "rgb(255 255 255 / 55%)"], [1, "#000000"]]) {
    context.lineWidth = width * scale;
    context.strokeStyle = colour;
    context.stroke(path);
  }
}
