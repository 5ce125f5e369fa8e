"""How long ``zardine view`` takes: the first picture of a 1 GB array, and a move of a slider, in Chromium.

``python benchmarks/view.py [FOLDER]`` prints the least, median and most of several runs; beside a move, how long the
server and ``array[i]`` take for the same plane. The array is written into FOLDER, and left there, or is there already.
It needs Chromium (``make servers``) and the dependency group ``test``.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import zardine

RUNS = 5
_MOVES = """async count => {
  const slider = document.getElementById("axis-0"), picture = document.getElementById("picture"), found = [];
  for (let i = 1; i <= count; i++) {
    const before = Number(picture.dataset.drawn), start = performance.now();
    slider.value = i;
    slider.dispatchEvent(new Event("input"));
    while (Number(picture.dataset.drawn) === before || picture.dataset.finished !== "true") {
      await new Promise((done) => setTimeout(done, 1));
    }
    found.push((performance.now() - start) / 1000);
  }
  return found;
}"""


_ANSWERS = """() => performance.getEntriesByType("resource").filter(each => each.name.includes("/picture?"))
  .map(each => each.duration / 1000)"""


def write(folder: Path) -> Path:
    """Write 64 planes of 2048 x 2048 float32, in chunks of 1 MB and shards of 8 planes."""
    rng = np.random.default_rng(1)
    array = zardine.create_array(
        folder / "a.zarr", shape=(64, 2048, 2048), chunks=(1, 512, 512), shards=(8, 2048, 2048), dtype="f4"
    )
    y, x = np.mgrid[0:2048, 0:2048]
    for i in range(0, 64, 8):
        array[i : i + 8] = (np.sin(x / 50 + i) * np.cos(y / 70) + rng.normal(size=(8, 2048, 2048)) / 100).astype("f4")
    return folder / "a.zarr"


def told(what: str, seconds: list[float]) -> None:
    """Print the least, median and most."""
    ends = min(seconds), statistics.median(seconds), max(seconds)
    print(f"{what:<34}" + "".join(f"{1000 * each:9.0f} ms" for each in ends))


def measure(browser: Any, store: Path) -> None:
    """Measure, and print."""
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    first, moves, answers, reads = [], [], [], []
    for _ in range(RUNS):
        with zardine.view(store) as shown:
            start = time.perf_counter()
            page.goto(shown.url)
            page.wait_for_selector("#picture[data-drawn]")
            first.append(time.perf_counter() - start)
            page.wait_for_selector("#picture[data-finished=true]")
            page.evaluate("() => performance.clearResourceTimings()")
            moves += page.evaluate(_MOVES, 10)
            answers += page.evaluate(_ANSWERS)
        array = zardine.open_array(store, mode="r")
        for i in range(11, 21):
            start = time.perf_counter()
            array[i]
            reads.append(time.perf_counter() - start)
    print(f"{'':<34}{'least':>12}{'median':>12}{'most':>12}")
    told("first picture of a 1 GB array", first)
    told("a move of a slider (16 chunks)", moves)
    told("  of that, the server's answer", answers)
    told("array[i], the same plane", reads)


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    try:
        stored = place / "a.zarr" if (place / "a.zarr").exists() else write(place)
        with sync_playwright() as running:
            measure(running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]), stored)
    finally:
        if len(sys.argv) == 1:
            shutil.rmtree(place)
