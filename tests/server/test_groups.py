"""The page of a group, and the tree beside it: small pictures, images of OME-NGFF, what is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from server.browser import chromium, see

__all__ = ["chromium", "see"]

LARGE = {"viewport": {"width": 1400, "height": 900}}
DONE = "() => [...document.querySelectorAll('.small')].every(each => each.dataset.drawn)"


def test_cards_have_small_pictures(see: Any, tmp_path: Path) -> None:
    """North is up, colours are colours, 1-D arrays are lines; text and large chunks have none, coordinates neither."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    north = {"units": "degrees_north"}
    root.create_array("lat", data=np.arange(8.0), dimension_names=("lat",), attributes=north)
    south_to_north = np.repeat(np.arange(8.0), 8).reshape(8, 8)
    root.create_array("map", data=south_to_north, dimension_names=("lat", "x"))
    root.create_array("photo", data=np.full((8, 8, 3), (200, 30, 60), "u1"))
    root.create_array("line", data=np.sin(np.arange(300) / 20), dimension_names=("time",))
    root.create_array("text", data=np.array(["a"], "T"))
    root.create_array("struct", data=np.zeros((8, 8), [("a", "S3"), ("b", "f4")]))
    root.create_array("large", shape=(4096, 4096), chunks=(4096, 4096), dtype="f4", fill_value=0)
    root.create_array("many", shape=(4096, 4096), chunks=(16, 16), dtype="f4", fill_value=0)
    page = see(tmp_path / "a.zarr", options=LARGE)
    page.page.wait_for_selector(".small canvas")
    page.page.wait_for_function(DONE)
    colours = page.page.evaluate("""() => Object.fromEntries([...document.querySelectorAll('.small canvas')].map(
        canvas => {
        const {width, height} = canvas, context = canvas.getContext('2d');
        const at = y => [...context.getImageData(width >> 1, y, 1, 1).data.slice(0, 3)];
        return [canvas.closest('.card').querySelector('strong').textContent, [at(2), at(height - 3)]]; }))""")
    assert set(colours) == {"map", "photo", "line"}
    assert colours["map"] == [[253, 231, 37], [68, 1, 84]]
    assert colours["photo"] == [[200, 30, 60]] * 2
    assert not page.page.is_visible("#notice")


def test_a_group_of_many_arrays_floods_nothing(see: Any, tmp_path: Path) -> None:
    """Only cards that are seen ask for pictures, four at a time."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    first = root.create_array("n000", data=np.arange(64.0).reshape(8, 8))
    for i in range(1, 500):
        (tmp_path / f"a.zarr/n{i:03}/c/0").mkdir(parents=True)
        for name in ("zarr.json", "c/0/0"):
            (tmp_path / f"a.zarr/n{i:03}" / name).write_bytes((tmp_path / "a.zarr/n000" / name).read_bytes())
    assert first.shape == (8, 8)
    page = see(tmp_path / "a.zarr", options={"viewport": {"width": 800, "height": 600}})
    asked: list[str] = []
    under_way, most = set(), [0]

    def begin(request: Any) -> None:
        if "/picture?" in request.url or "/node?" in request.url:
            asked.append(request.url)
            under_way.add(request.url)
            most[0] = max(most[0], len(under_way))

    page.page.on("request", begin)
    page.page.on("requestfinished", lambda request: under_way.discard(request.url))
    page.page.reload()
    page.page.wait_for_selector(".small canvas")
    page.page.wait_for_load_state("networkidle")
    pictures = [each for each in asked if "/picture?" in each]
    assert 3 <= len(pictures) <= 18
    assert most[0] <= 12
    page.page.mouse.move(400, 300)
    page.page.mouse.wheel(0, 6000)
    page.page.wait_for_function("n => document.querySelectorAll('.small canvas').length > n", arg=len(pictures))


def test_a_group_of_ome_opens_as_its_image(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    axes = [{"name": name, "type": "space"} for name in "yx"]
    image = root.create_group("cells", attributes={
        "ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [{"path": "missing"}, {"path": "0"}]}]},
    })  # fmt: skip
    image.create_array("0", data=np.arange(64).reshape(8, 8))
    page = see(tmp_path / "a.zarr", "cells")
    page.wait_for_picture()
    assert page.text("#title") == "data / cells/0"
    assert page.text("#image-of") == "A level of the image cells: its group"
    page.page.click("#image-of a")
    page.page.wait_for_selector("#variables .card")
    assert "multiscales" in page.text("#main")
    page.page.go_back()
    page.wait_for_picture()


def test_the_tree_shows_what_is_selected_and_arrays_at_the_root(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    for i in range(140):
        root.create_array(f"n{i:03}", data=np.arange(4))
    page = see(tmp_path / "a.zarr", "n132")  # of the first hundred it is none
    selected = page.page.locator("#tree [aria-current=true]")
    selected.wait_for()
    page.page.wait_for_function("""() => {
        const box = document.querySelector('#tree [aria-current=true]').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight; }""")
    array = zardine.create_array(tmp_path / "b.zarr", data=np.zeros((3, 4)))
    page = see(array)
    page.page.wait_for_selector("#tree small")
    assert page.text("#tree") == "data\nfloat64 3 × 4, 96 B"


@pytest.mark.parametrize("width", [800, 1000])
def test_the_tree_folds_away_on_small_screens(see: Any, tmp_path: Path, width: int) -> None:
    zardine.create_array(tmp_path / "a.zarr", name="x", data=np.zeros((3, 4)))
    page = see(tmp_path / "a.zarr", options={"viewport": {"width": width, "height": 600}})
    page.page.wait_for_selector("#variables .card")
    assert page.page.is_visible("#tree") == (width > 850)
    assert page.page.get_attribute("#toggle-tree", "aria-expanded") == str(width > 850).lower()
    if width <= 850:
        page.page.click("#toggle-tree")
        page.page.click("#tree >> text=x")
        page.wait_for_picture()
        assert not page.page.is_visible("#tree")


def test_tables_have_coordinates_in_their_heads(see: Any, tmp_path: Path) -> None:
    """Dates of every calendar, degrees, and names."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    units = {"units": "days since 2001-02-01", "calendar": "360_day"}
    root.create_array("time", data=np.arange(27, 33), dimension_names=("time",), attributes=units)
    north = {"units": "degrees_north"}
    root.create_array("lat", data=[-10.5, 0, 10.5], dimension_names=("lat",), attributes=north)
    root.create_array("v", data=np.zeros((6, 3)), dimension_names=("time", "lat"))
    page = see(tmp_path / "a.zarr", "v")
    page.wait_for_picture()
    page.page.click("#table summary")
    page.page.wait_for_selector("#cells td")
    heads = "() => [...document.querySelectorAll('#cells th small')].map(each => each.textContent)"
    dates = ["2001-02-28", "2001-02-29", "2001-02-30", "2001-03-01", "2001-03-02", "2001-03-03"]
    assert page.page.evaluate(heads) == ["10.5°S", "0°", "10.5°N", *dates]


@pytest.mark.parametrize(
    ("calendar", "texts"),
    [("360_day", ["2001-02-30", "2001-03-01"]), ("noleap", ["2001-02-28", "2001-03-01"])],
)
def test_axes_of_series_have_round_dates(see: Any, tmp_path: Path, calendar: str, texts: list[str]) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    units = {"units": "days since 2001-02-01", "calendar": calendar}
    first = 29 if calendar == "360_day" else 27
    root.create_array("time", data=np.arange(first, first + 2), dimension_names=("time",), attributes=units)
    root.create_array("years/time", data=np.arange(3600), dimension_names=("time",), attributes=units)
    root.create_array("v", data=np.zeros(2), dimension_names=("time",))
    root.create_array("years/v", data=np.zeros((3600, 2)), dimension_names=("time", "x"))
    page = see(tmp_path / "a.zarr", "v")
    page.wait_for_picture()
    ticks = "() => [...document.querySelectorAll('.ticks.below span')].map(each => each.textContent)"
    page.page.wait_for_function(f"() => ({ticks})().length > 1")
    assert [each for each in page.page.evaluate(ticks) if ":" not in each] == texts
    page.open("years/v", axes="1,0")
    page.wait_for_picture()
    page.page.wait_for_function(f"() => ({ticks})().length > 1")
    years = page.page.evaluate(ticks)
    assert all(each.isdigit() and 2002 <= int(each) <= 2011 for each in years), years
