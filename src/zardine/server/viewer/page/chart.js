// Charts: a profile along an axis, and the histogram of what is seen.

import uPlot from "./vendor/uPlot.js";

function options(place, title, label) {
  const colour = getComputedStyle(document.body).color;
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  const axis = { stroke: colour, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884", width: 1 } };
  return {
    title, width: Math.max(240, place.clientWidth), height: 200, cursor: { drag: { setScale: false } },
    scales: { x: { time: false } }, axes: [axis, axis],
    series: [{ label }, { label: "value", stroke: accent, width: 1.5, points: { show: false } }],
  };
}

/** Draw values over indices; `ticks` are [index, text] along these, `label` and `unit` name both axes, `ends` are the first and the last index on the page. `zoom(from, to)` is called for a range that is dragged. */
export function drawProfile(place, title, label, unit, ticks, xs, ys, ends, zoom = null) {
  place.replaceChildren();
  const made = options(place, title, "index");
  made.height = zoom ? 320 : 200;
  const texts = new Map(ticks);
  made.scales.x.range = () => ends;
  made.axes = [
    { ...made.axes[0], label, labelSize: 20, splits: () => [...texts.keys()], values: (_, splits) => splits.map((each) => texts.get(each) ?? "") },
    { ...made.axes[1], label: unit, labelSize: 20, size: 64 },
  ];
  if (zoom) {
    made.hooks = { setSelect: [(plot) => {
      const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((each) => plot.posToVal(each, "x"));
      if (plot.select.width > 4) zoom(from, to);
    }] };
  }
  return new uPlot(made, [xs, ys], place);
}

/** Return the counts of sorted values between two ends, in `count` bins, and the middles of these. */
export function histogram(sorted, lo, hi, count = 64) {
  const counts = new Array(count).fill(0);
  const width = (hi - lo) / count;
  for (const value of sorted) {
    if (value >= lo && value <= hi) counts[Math.min(count - 1, Math.floor((value - lo) / width))] += 1;
  }
  return [counts.map((_, i) => lo + (i + 0.5) * width), counts];
}

/** Draw how many of the values that are seen lie where. */
export function drawHistogram(place, sorted) {
  place.replaceChildren();
  if (!sorted.length) return;
  const [lo, hi] = [sorted[0], sorted[sorted.length - 1]];
  const [xs, ys] = histogram(sorted, lo, hi > lo ? hi : lo + 1);
  const made = options(place, "Values seen", "value");
  made.height = 140;
  made.series[1] = { label: "pixels", stroke: made.series[1].stroke, fill: `${made.series[1].stroke}66`, paths: uPlot.paths.bars({ size: [1] }), points: { show: false } };
  new uPlot(made, [xs, ys], place);
}
