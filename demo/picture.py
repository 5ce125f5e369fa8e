"""The picture of the demo: one plane as a map, and the two series at one place below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import BoundaryNorm

KELVIN = 273.15
INK, SOFT = "#22313f", "#7b8794"
COLOURS = ("#c0392b", "#2471a3")


def draw(
    file: Path,
    source: Any,
    plane: np.ndarray[Any, Any],
    series: np.ndarray[Any, Any],
    at: tuple[int, int],
    scenarios: tuple[str, ...],
    mark: str,
) -> None:
    """Write ``file`` (PNG): ``plane`` over latitude and longitude, ``series`` (scenario, time) at the place ``at``."""
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": SOFT})
    plt.rcParams.update({"xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left"})
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9.4, 9), height_ratios=(2.2, 1), layout="constrained", facecolor="white"
    )
    west = source.longitude - 360
    latitude, longitude = source.latitude[at[0]], west[at[1]]

    celsius = plane - KELVIN
    low, high = np.floor(celsius.min() / 5) * 5, np.ceil(celsius.max() / 5) * 5
    levels = np.arange(low, high + 1, 5)
    colours = BoundaryNorm(np.arange(low, high + 0.1, 1.25), 256)
    mesh = top.pcolormesh(west, source.latitude, celsius, cmap="RdYlBu_r", norm=colours, shading="nearest")
    lines = top.contour(west, source.latitude, celsius, levels=levels, colors=INK, linewidths=0.5, alpha=0.55)
    top.clabel(lines, fmt="%d°", fontsize=8)
    top.plot(longitude, latitude, "o", ms=9, mfc="white", mec=INK, mew=1.6)
    top.set_aspect(1 / np.cos(np.deg2rad(source.latitude.mean())))
    top.set_xticks(np.arange(-135, -44, 15), [f"{-x}° W" for x in np.arange(-135, -44, 15)])
    top.set_yticks(np.arange(15, 61, 15), [f"{y}° N" for y in np.arange(15, 61, 15)])
    top.set_title(f"Air temperature over North America, {source.years[-1]}", fontsize=15, fontweight="bold", pad=24)
    subtitle = f"annual mean at 1.5 m, scenario {scenarios[0]}: one plane of the sharded array"
    top.text(0, 1.025, subtitle, transform=top.transAxes, color=SOFT)
    bar = figure.colorbar(mesh, cax=top.inset_axes((1.02, 0, 0.022, 1)), ticks=levels)
    bar.set_label("air temperature [°C]")
    bar.minorticks_off()
    bar.outline.set_visible(False)

    for name, values, colour in zip(scenarios, series - KELVIN, COLOURS, strict=True):
        bottom.plot(source.years, values, lw=0.7, color=colour, alpha=0.45)
        smooth = np.convolve(values, np.ones(11) / 11, mode="valid")
        bottom.plot(source.years[5:-5], smooth, lw=2, color=colour)
        bottom.annotate(
            name,
            (source.years[-1] + 2, smooth[-1]),
            va="center",
            color=colour,
            fontweight="bold",
        )
    bottom.set_xlim(source.years[0], source.years[-1] + 11)
    bottom.set_ylabel("air temperature [°C]")
    bottom.grid(axis="y", color="#e5e8eb")
    bottom.spines[["top", "right"]].set_visible(False)
    where = f"{latitude:.1f}° N, {-longitude:.1f}° W"
    bottom.set_title(f"The place marked above ({where}), annual means and 11-year running mean", fontsize=10.5)
    figure.savefig(file, dpi=150, metadata={"Software": mark})
    plt.close(figure)
