"""Five neurons of a fly and their synapses as Zarr Vectors stores: written, asked for a region and by id, drawn.

``python demo/neurons.py data [folder]``: writes ``neurons.zv``, ``synapses.zv`` and ``neurons.png`` into the folder, by
default the current one. It replaces what an earlier run left there and nothing else.

The data: projection neurons of the hemibrain connectome (Scheffer et al., eLife 2020, doi:10.7554/eLife.57443), as they
lie in the package ``navis`` on PyPI; ``data`` is where that is unpacked. Its coordinates are voxels of 8 nm.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PolyCollection

from zardine import vectors
from zardine.storage import CountingStore, LocalStore
from zardine.vectors import Layout, Points, Skeleton, Space

LAYOUT = Layout(chunk_shape=500, shard_shape=16, compressor="zstd")
SPACE = Space(axes=[{"name": name, "type": "space", "unit": "8 nm"} for name in "xyz"])
HORN = (2500, 20500, 12500, 8000, 26000, 18500)
"""The lateral horn, where the neurons end: the lowest and the highest corner."""
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2")
FRONT = [0, 2]
"""The axes of a picture from the front; the second one points down."""


def neurons(folder: Path) -> Skeleton:
    """Return all trees as one value; the objects have the numbers that the connectome gives them."""
    files = sorted(folder.glob("*.swc"))
    trees = [Skeleton.from_swc(file) for file in files]
    before = np.cumsum([0, *map(len, trees)])
    parents = [np.where(tree.parents < 0, -1, tree.parents + start) for tree, start in zip(trees, before, strict=False)]
    return Skeleton(
        np.concatenate([tree.positions for tree in trees]),
        np.concatenate(parents),
        {"radius": np.concatenate([tree.attributes["radius"] for tree in trees])},
        np.repeat([int(file.stem) for file in files], [len(tree) for tree in trees]),
    )


def synapses(folder: Path) -> Points:
    """Return all synapses of these neurons: which one, and whether it sends or receives there."""
    rows = [
        (int(file.stem), *row)
        for file in sorted(folder.glob("*.csv"))
        for row in csv.reader(file.read_text().splitlines()[1:])
    ]
    columns: Any = list(zip(*rows, strict=True))
    return Points(
        np.array(columns[4:7], np.float32).T,
        {"type": np.array(columns[3]), "confidence": np.array(columns[8], np.float32)},
        np.array(columns[0]),
    )


def main() -> None:
    """Run all of it."""
    data, folder = Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    trees, points = neurons(data / "swc"), synapses(data / "synapses")
    start = time.perf_counter()
    for name, value in (("neurons", trees), ("synapses", points)):
        there = (folder / f"{name}.zv" / "zarr.json").exists()
        vectors.write(str(folder / f"{name}.zv"), value, layout=LAYOUT, space=SPACE, overwrite=there)
    took = time.perf_counter() - start
    stored = vectors.open(str(folder / "neurons.zv"), mode="r+")
    print(f"{len(stored.objects)} neurons of {len(trees):,} vertices, {len(points):,} synapses in {took:.2f} s")

    counting = CountingStore(LocalStore(str(folder / "synapses.zv")))
    near = vectors.read_points(counting, bbox=HORN, where={"type": "pre"})
    reads = sum(number for key, number in counting.counts.keys.items() if "/c/" in key)
    print(f"{len(near):,} synapses in the lateral horn send to others; found with {reads} requests for data")
    number = int(trees.object_ids[0])
    print(f"neuron {number} alone has {len(stored.objects[number]):,} vertices")

    levels = stored.build_pyramid(factors=[(1, 1), (2, 1)])
    counts = [len(stored.read(level=level)) for level in (0, *levels)]
    print(f"Levels {[0, *levels]} have {', '.join(f'{count:,}' for count in counts)} vertices")
    report = stored.validate()
    assert report.ok, report.findings
    print(f"{len(report.errors)} errors, {len(report.warnings)} warnings")
    draw(data / "volumes" / "neuropil.obj", trees, near, folder / "neurons.png")


def draw(volume: Path, trees: Skeleton, near: Points, target: Path) -> None:
    """The neurons in the outline of the brain, and the lateral horn with the synapses found there."""
    mpl.use("Agg")
    figure, (whole, horn) = pyplot.subplots(1, 2, figsize=(13, 5.6), width_ratios=(1.3, 1), layout="constrained")
    mesh = [line.split() for line in volume.read_text().splitlines()]
    corners = np.array([line[1:4] for line in mesh if line[:1] == ["v"]], float)
    faces = np.array([[int(each.split("/")[0]) - 1 for each in line[1:4]] for line in mesh if line[:1] == ["f"]])
    whole.add_collection(PolyCollection(corners[faces][:, :, FRONT], facecolor="0.55", alpha=0.03))
    below = np.flatnonzero(trees.parents >= 0)
    ends = np.stack([trees.positions[below], trees.positions[trees.parents[below]]], axis=1)[:, :, FRONT]
    number = np.unique(trees.object_ids, return_inverse=True)[1][below]
    colours = np.array([mpl.colors.to_rgba(colour) for colour in COLOURS])[number]
    for axes, scale in ((whole, 0.008), (horn, 0.02)):
        widths = np.clip(trees.attributes["radius"][below] * scale, 0.25, 3)
        axes.add_collection(LineCollection(ends, colors=colours, linewidths=widths, capstyle="round"))
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
    horn.scatter(*near.positions[:, FRONT].T, s=4, color="black", linewidth=0, zorder=3)
    left, _, low, right, _, high = HORN
    (west, top), (east, bottom) = trees.positions.min(axis=0)[FRONT], trees.positions.max(axis=0)[FRONT]
    whole.plot([left, right, right, left, left], [low, low, high, high, low], color="black", linewidth=0.8)
    whole.set_xlim(west - 9000, east + 13000)
    whole.set_ylim(bottom + 9000, top - 7000)
    horn.set_xlim(left, right)
    horn.set_ylim(high, low)
    whole.set_title("five neurons of the hemibrain connectome, in the outline of the brain")
    horn.set_title(f"the box: the lateral horn, and {len(near):,} synapses that send")
    figure.savefig(target, dpi=100)
    print(f"{target}: look at it")


if __name__ == "__main__":
    main()
