// The borders of chunks and shards over the picture, and what was found of them.

/** Return the borders within `low` to `high` of an axis whose chunks have one length, or begin where a list says. */
function borders(chunks, low, high) {
  if (!chunks) return [];
  if (Array.isArray(chunks)) return chunks.filter((each) => each > low && each < high);
  const found = [];
  if ((high - low) / chunks > 400) return found;
  for (let at = Math.ceil(low / chunks) * chunks; at < high; at += chunks) if (at > low) found.push(at);
  return found;
}

/** Draw over a picture of axes in a frame: the borders of chunks and shards if wanted, and `marks`, blocks of elements to be outlined, with a colour each. `below(canvas)` draws first. */
export function drawGrid(canvas, frame, axes, hasBorders, marks, cursor, below) {
  canvas.width = frame.width;
  canvas.height = frame.height;
  const context = canvas.getContext("2d");
  below(canvas);
  const lines = (chunks, low, high, vertical) => {
    for (const at of borders(chunks, low, high)) {
      context.beginPath();
      const place = Math.round(vertical ? frame.x(at) : frame.y(at)) + 0.5;
      context.moveTo(vertical ? place : 0, vertical ? 0 : place);
      context.lineTo(vertical ? place : canvas.width, vertical ? canvas.height : place);
      context.stroke();
    }
  };
  const both = (which, width, colour) => {
    context.lineWidth = width;
    context.strokeStyle = colour;
    if (axes.length === 2) lines(axes[0][which], frame.top, frame.bottom, false);
    lines(axes[axes.length - 1][which], frame.left, frame.right, true);
  };
  if (hasBorders) {
    both("chunks", 1, "rgb(255 255 255 / 55%)");
    if (axes[0].shards) {
      both("shards", 4, "rgb(0 0 0 / 70%)");
      both("shards", 2, "#ffffff");
    }
  }
  for (const { rows, columns, colour, dashed } of marks) {
    context.setLineDash(dashed ? [6, 4] : []);
    context.lineWidth = 3;
    context.strokeStyle = colour;
    context.strokeRect(...frame.rectangle(rows, columns));
  }
  context.setLineDash([]);
  if (cursor) {
    const [x, y] = [frame.x(cursor[1] + 0.5), frame.y(cursor[0] + 0.5)];
    for (const [width, colour] of [[4, "#000000"], [2, "#ffffff"]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(x - 10, y);
      context.lineTo(x + 10, y);
      context.moveTo(x, y - 10);
      context.lineTo(x, y + 10);
      context.stroke();
    }
  }
}
