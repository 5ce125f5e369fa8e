"""The picture in ``docs/view.md``: ``python tests/server/docs_picture.py`` makes it anew."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import zardine

PICTURE = Path(__file__).parents[2] / "docs" / "view.png"
SIZE = {"width": 1100, "height": 1450}


def write(folder: Path) -> Path:
    """Write a small hierarchy with something of everything."""
    root = zardine.open_group(folder / "weather.zarr", mode="w", attributes={"title": "an example"})
    y, x = np.mgrid[0:180, 0:300]
    wind = root.create_array(
        "wind/speed", shape=(24, 180, 300), chunks=(6, 30, 50), shards=(24, 90, 150), dtype="f4", fill_value=-999,
        dimension_names=("time", "y", "x"), attributes={"units": "m s-1"},
    )  # fmt: skip
    for hour in range(24):
        values = 8 + 5 * np.sin(x / 24 + hour / 4) * np.cos(y / 30) + 2 * np.sin((x + 2 * y) / 17 - hour / 3)
        values[130:150, 200:240] = np.nan
        wind[hour, :, :250] = values[:, :250]
    time = root.create_array("wind/time", data=np.arange(24), dimension_names=("time",))
    time.attrs["units"] = "hours since 2026-01-01"
    root.create_array("wind/quality", data=np.ones((24, 180, 300), "u1"), chunks=(6, 30, 50), shards=(24, 90, 150))
    root.create_array("stations", data=np.array(["Bergen", "Brest", "Bari"], np.dtypes.StringDType()))
    key = folder / "weather.zarr/wind/speed/c/0/0/1"
    shard = bytearray(key.read_bytes())
    index = np.frombuffer(shard[-4 * 3 * 3 * 16 - 4 : -4], "<u8").reshape(4, 3, 3, 2)
    shard[int(index[1, 2, 0, 0]) + 40] ^= 1
    key.write_bytes(shard)
    return folder / "weather.zarr"


def shoot(chromium: Any, store: Path, target: Path) -> None:
    """Show it as a person would, and take a picture of that."""
    with zardine.view(store) as shown:
        page = chromium.new_page(viewport=SIZE, color_scheme="light")
        page.goto(f"{shown.url}#name=weather.zarr&path=wind/speed&at=9,0,0&stored=1")
        page.wait_for_selector("#picture[data-finished=true]")
        page.wait_for_selector("#tree >> text=quality")
        page.evaluate("document.getElementById('picture').dataset.before = true")
        page.click("#tree >> text=speed")
        page.wait_for_selector("#picture[data-finished=true]:not([data-before])")
        page.check("#stored")
        page.fill("#axes input[type=number]", "9")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('label-0').textContent == '2026-01-01 09:00:00'")
        page.wait_for_selector("#picture[data-finished=true]")
        box = page.locator("#picture").bounding_box()
        page.locator("#picture").click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.4})
        page.wait_for_selector("#chunk[data-state=stored]")
        page.wait_for_selector("#profile .uplot")
        page.wait_for_function("() => document.getElementById('objects').textContent")
        page.screenshot(path=str(target))
        page.close()


def make() -> None:
    """Make the picture of the docs."""
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.gettempdir()) / "example"  # which the picture shows
    folder.mkdir()
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        shoot(browser, write(folder), PICTURE)
        browser.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    make()
