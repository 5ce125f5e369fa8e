"""The picture: for each workload of which something is wanted, every implementation's time relative to zardine's."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from implementations import OURS
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from results import Results, milliseconds
from workloads import Workload

COLOURS = {
    "tensorstore": "#d1772b",
    "zarrs": "#8a6bb0",
    "zarrista": "#c65b7c",
    "zarr": "#9a9a9a",
    "zarr fused": "#5e7f3e",
}
TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)
BAR = 0.15


def draw(results: Results, path: Path) -> None:
    """One row for each workload, one bar for each peer; the line at 1 is zardine, bars to the right are slower."""
    chosen = [
        w for w in results.workloads if w.wanted is not None and results.cell(w.name, OURS).seconds and results.ratio(w)
    ]
    if not chosen:
        return
    peers = [name for name in results.variants(compared=True) if name != OURS]
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.62 * len(chosen)), layout="constrained")
    for number, peer in enumerate(peers):
        rows, lengths = [], []
        for row, workload in enumerate(chosen):
            cell = results.cell(workload.name, peer)
            if cell.seconds is not None and not cell.wrong:
                rows.append(row + (number - (len(peers) - 1) / 2) * BAR)
                lengths.append(cell.seconds / results.cell(workload.name, OURS).seconds)
        offsets = [length - 1 for length in lengths]
        axes.barh(rows, offsets, left=1, height=BAR * 0.9, color=COLOURS.get(peer), label=peer)
        for row, length in zip(rows, lengths, strict=True):
            side = {"ha": "left", "x": length * 1.02} if length >= 1 else {"ha": "right", "x": length / 1.02}
            text = f"{length:.2f}" if length < 1 else f"{length:.1f}" if length < 10 else f"{length:.0f}"
            axes.text(y=row, s=text, va="center", fontsize=6.5, color="#444444", **side)
    mark_wanted(axes, chosen)
    axes.axvline(1, color="#1f5fa8", linewidth=2)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
    axes.set_yticks(range(len(chosen)), [label(results, workload) for workload in chosen], fontsize=8.5)
    axes.set_ylim(len(chosen) - 0.4, -0.6)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.8), high * 1.15)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Time relative to zardine (line; its milliseconds beside the name): longer is slower", fontsize=10)
    figure.legend(loc="outside lower center", ncols=len(peers) + 1, frameon=False, fontsize=9)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def mark_wanted(axes: plt.Axes, chosen: list[Workload]) -> None:
    """A tick where the fastest peer should be at the least."""
    for row, workload in enumerate(chosen):
        known = {"label": "wanted of the best peer"} if row == 0 else {}
        axes.plot([workload.wanted] * 2, [row - 0.42, row + 0.42], color="#1f5fa8", linewidth=1, linestyle=":", **known)


def label(results: Results, workload: Workload) -> str:
    return f"{workload.title}  ({milliseconds(results.cell(workload.name, OURS).seconds)})"
