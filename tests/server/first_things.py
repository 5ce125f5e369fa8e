"""Ten things that a user opens first, and what the page looks like with them, of which ``references/`` has pictures.

``python tests/server/first_things.py`` makes these anew, and those in ``docs/first``. Look at them before a commit.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import iris_sample_data
import numpy as np
import numpy.typing as npt
from PIL import Image

import zardine
from zardine import vectors

REFERENCES: Final = Path(__file__).parent / "references"
DOCS: Final = Path(__file__).parents[2] / "docs" / "first"
WIDTH: Final = 350
"""Pixels of a reference."""
SHOWN_IN_DOCS: Final = ("global", "times", "group", "neurons")
VIEWS: Final[dict[str, dict[str, Any]]] = {
    "large": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"},
    "small": {"viewport": {"width": 800, "height": 600}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
}
_PICTURE: Final = "#picture[data-finished=true]"
_TICKS: Final = "document.querySelector('.ticks.below span')"
_MAP: Final = f"{_TICKS} && document.querySelector('.figure[data-coast=true]')"
_LINE: Final = "document.querySelector('#profile .uplot')"

THINGS: Final[dict[str, tuple[str, str, str]]] = {
    "global": ("map/sst", _PICTURE, _MAP),
    "regional": ("america/air_temperature", _PICTURE, _MAP),
    "orca": ("orca/votemper", _PICTURE, _TICKS),
    "image": ("image", _PICTURE, _TICKS),
    "colours": ("photo", _PICTURE, _TICKS),
    "times": ("series/rain", _PICTURE, f"{_LINE} && document.querySelector('#cells td')"),
    "table": ("stations", "#cells td", "true"),
    "group": ("group", ".card", "document.querySelectorAll('.small canvas').length >= 4"
        " && [...document.querySelectorAll('.small')].every(each => each.dataset.drawn)"),
    "neurons": ("neurons", "#space[data-vertices]", "true"),
    "points": ("points", "#space[data-vertices]", "true"),
}  # fmt: skip
"""By name: the path, what must be there, and what must be true, before a picture of the page is taken."""


def write(folder: Path) -> Path:
    """Write all of them below one folder that is served as it is."""
    place = folder / "first.zarr"
    root = zardine.open_group(place, mode="w")
    _write_map(root)
    files = Path(iris_sample_data.path)
    for name, file in (("america", "A1B_north_america"), ("orca", "orca2_votemper")):
        zardine.convert(next(files.rglob(f"{file}.nc")), place / name)
    y, x = np.mgrid[0:512, 0:512]
    cells = 40 + 60 * np.exp(-((y - 90) ** 2 + (x - 130) ** 2) / 3000) + 0.1 * x
    for row, column, radius in ((140, 350, 60), (330, 180, 90), (400, 420, 30)):
        cells[(y - row) ** 2 + (x - column) ** 2 < radius**2] += 90
    cells[470:490, 30:230] = 220
    root.create_array("image", data=cells.astype("u1"), chunks=(128, 128))
    photo = np.stack([x // 2, y // 2, 255 - (x + y) // 4], axis=2)
    photo[60:160, 60:260] = (240, 40, 40)
    photo[(y - 330) ** 2 + (x - 360) ** 2 < 90**2] = (250, 220, 60)
    root.create_array("photo", data=photo.astype("u1"), chunks=(128, 128, 3))
    _write_series(root)
    stations = np.array(
        [(b"BERGEN", 60.38, 5.33, 12, True), (b"BREST", 48.39, -4.49, 94, False), (b"BARI", 41.13, 16.87, 5, True)],
        dtype=[("name", "S8"), ("latitude", "f4"), ("longitude", "f4"), ("height", "i2"), ("automatic", "?")],
    )
    root.create_array("stations", data=stations, dimension_names=("station",))
    _write_group(root)
    _write_vectors(place)
    return place


def _write_map(root: Any) -> None:
    lat, lon = np.arange(-88.5, 90, 3), np.arange(1.5, 360, 3)
    values = (
        28 * np.cos(np.radians(lat))[:, None] ** 2 + 3 * np.sin(np.radians(2 * lon)) * np.cos(np.radians(lat))[:, None]
    )
    group = root.create_group("map", attributes={"title": "A map of the world"})
    for name, found, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
        group.create_array(name, data=found, dimension_names=(name,), attributes={"units": units, "standard_name": {
            "lat": "latitude", "lon": "longitude"}[name]})  # fmt: skip
    facts = {"long_name": "Sea surface temperature", "units": "degC"}
    group.create_array(
        "sst", data=(values + 0.05 * lat[:, None]).astype("f4"), dimension_names=("lat", "lon"), attributes=facts
    )


def _write_series(root: Any) -> None:
    group = root.create_group("series")
    time = np.arange(5 * 360)
    units = {"units": "days since 2001-01-01", "calendar": "360_day"}
    group.create_array("time", data=time, dimension_names=("time",), attributes=units)
    rain = 3 + 2 * np.sin(time / 57.3) + 0.8 * np.sin(time / 3.1) + time / 900
    facts = {"long_name": "Rain of a model run", "units": "mm day-1"}
    group.create_array("rain", data=rain.astype("f4"), chunks=(360,), dimension_names=("time",), attributes=facts)


def _write_group(root: Any) -> None:
    attributes = {"title": "A model run", "institution": "An institute", "Conventions": "CF-1.11", "source": "a model"}
    group = root.create_group("group", attributes=attributes)
    lat, lon = np.linspace(30, 70, 41), np.linspace(-20, 40, 61)
    for name, found, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
        group.create_array(name, data=found, dimension_names=(name,), attributes={"units": units})
    time = np.arange(120)
    units = {"units": "days since 2001-01-01", "calendar": "noleap"}
    group.create_array("time", data=time, dimension_names=("time",), attributes=units)
    for number, (name, title, unit) in enumerate((
        ("tas", "Air temperature", "K"), ("pr", "Precipitation", "kg m-2 s-1"), ("uas", "Eastward wind", "m s-1"),
        ("psl", "Pressure at sea level", "Pa"),
    )):  # fmt: skip
        values = np.sin(lat / (5 + number))[:, None] + np.cos(lon / (9 - number)) + lat[:, None] / 40
        group.create_array(
            name, data=(values * (1 + time[:3, None, None])).astype("f4"), chunks=(1, 41, 61),
            dimension_names=("step", "lat", "lon"), attributes={"long_name": title, "units": unit},
        )  # fmt: skip
    facts = {"long_name": "Mean temperature", "units": "K"}
    group.create_array("mean", data=280 + 9 * np.sin(time / 20), dimension_names=("time",), attributes=facts)
    group.create_array("words", data=np.array(["one", "two"], "T"), dimension_names=("word",))


def _write_vectors(place: Path) -> None:
    random = np.random.default_rng(7)
    lines = []
    for number in range(6):
        start = np.array([200.0 * (number % 3), 260.0 * (number // 3), 0])
        for _ in range(5):
            steps = random.normal(size=(60, 3)) * 6 + random.normal(size=3) * 4
            lines.append(start + np.cumsum(steps, axis=0))
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "xyz"]
    vectors.write_polylines(place / "neurons", lines, chunk_shape=(200, 200, 200), axes=axes)
    positions = random.normal(size=(3000, 3)) * (40, 25, 10) + (100, 60, 30)
    vectors.write_points(
        place / "points",
        positions,
        vertex_attributes={"height": positions[:, 2].astype("f4")},
        chunk_shape=(50, 50, 50),
    )


_HIDE: Final = r"""() => {
    document.getElementById('meter').textContent = '';
    const texts = document.createTreeWalker(document.getElementById('main'), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        texts.currentNode.data = texts.currentNode.data.replace(/file:\/\/\/[^"]*first[.]zarr/, 'first.zarr');
    }
    scrollTo(0, 0);
}"""
"""Takes out of a page what is another each time: counts, and the folder of a test."""


@contextmanager
def opened(chromium: Any, url: str, name: str, view: str) -> Iterator[Any]:
    """Open the page of one thing, wait until it is all there, and yield it."""
    path, selector, condition = THINGS[name]
    page = chromium.new_page(**VIEWS[view])
    page.set_default_timeout(60_000)
    try:
        page.goto(f"{url}#name=first.zarr&path={path}")
        page.wait_for_selector(selector)
        page.wait_for_function(f"() => Boolean({condition}) && document.querySelector('#tree li li')")
        if name in ("global", "regional", "orca", "image", "colours"):
            box = page.locator("#picture").bounding_box()
            page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.45)
            page.wait_for_selector("#profile .uplot")
            page.wait_for_selector("#chunk[data-state]")
            page.wait_for_selector("#status[data-at]")
        if name not in ("group", "neurons", "points"):
            page.wait_for_selector("#expression:not(:empty)")
        page.wait_for_load_state("networkidle")
        page.evaluate(_HIDE)
        yield page
    finally:
        page.close()


def shot(page: Any) -> bytes:
    """Return a picture of the part of the page that is seen first, as PNG."""
    return bytes(page.screenshot(animations="disabled", caret="hide"))


def reduced(png: bytes, width: int = WIDTH, colours: int = 64) -> bytes:
    """Return a picture made small, of few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    small = image.resize((width, round(image.height * width / image.width)), Image.Resampling.BOX)
    out = io.BytesIO()
    small.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def difference(first: bytes, second: bytes, block: int = 16) -> float:
    """Return the largest difference of the mean colours of two pictures in any block of so many pixels, of 0 to 255."""
    means = []
    for each in (first, second):
        image = Image.open(io.BytesIO(each)).convert("RGB")
        pixels: npt.NDArray[np.float64] = np.asarray(image, np.float64)
        rows, columns = (length // block for length in pixels.shape[:2])
        whole = pixels[: rows * block, : columns * block]
        means.append(whole.reshape(rows, block, columns, block, 3).mean(axis=(1, 3)))
    return 255.0 if means[0].shape != means[1].shape else float(np.abs(means[0] - means[1]).max())


def each_picture(chromium: Any, folder: Path, keep: Callable[[str, str, bytes], None], names: list[str]) -> None:
    """Call ``keep(name, view, png)`` for every thing in every view."""
    with zardine.view(write(folder)) as shown:
        for view in VIEWS:
            for name in names or THINGS:
                with opened(chromium, shown.url, name, view) as page:
                    keep(name, view, shot(page))


def make(names: list[str]) -> None:
    """Make the references, and the pictures of the docs, anew."""
    from playwright.sync_api import sync_playwright

    def keep(name: str, view: str, png: bytes) -> None:
        REFERENCES.mkdir(exist_ok=True)
        DOCS.mkdir(exist_ok=True)
        (REFERENCES / f"{name}-{view}.png").write_bytes(reduced(png))
        if view == "large" and name in SHOWN_IN_DOCS:
            (DOCS / f"{name}.png").write_bytes(reduced(png, 700, 96))
        (Path(tempfile.gettempdir()) / f"first-{name}-{view}.png").write_bytes(png)

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        each_picture(browser, Path(folder), keep, names)
        browser.close()


if __name__ == "__main__":
    make(sys.argv[1:])
