"""The axes of pictures: what CF attributes say of them, and where the page draws rows, columns and ticks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest

import zardine
from server.browser import chromium, grey, see
from servers import servers
from zardine.server.viewer.axes import axis_kind, points_upwards

__all__ = ["chromium", "see"]

NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}


@pytest.mark.parametrize(
    ("attributes", "name", "kind", "upwards"),
    [
        ({"standard_name": "latitude"}, "y", "latitude", True),
        ({"units": "degreeN"}, "y", "latitude", True),
        ({"units": "degrees_E"}, "x", "longitude", False),
        ({"units": "degrees", "standard_name": "grid_latitude"}, "rlat", "grid_latitude", True),
        ({}, "lat", "latitude", True),
        ({"axis": "Y", "units": "m"}, "n", "y", True),
        ({"standard_name": "projection_x_coordinate"}, "n", "x", False),
        ({"positive": "down", "units": "m"}, "depth", "vertical", False),
        ({"positive": "up", "units": "m"}, "height", "vertical", True),
        ({"units": "hPa"}, "level", "vertical", False),
        ({"axis": "Z", "standard_name": "depth"}, "z", "vertical", False),
        ({"axis": "Z", "units": "km"}, "z", "vertical", True),
        ({"units": "days since 2000-01-01"}, "t", "time", False),
        ({"units": "m", "axis": 3, "positive": None}, "y", None, False),
    ],
)
def test_kinds_and_directions(attributes: dict[str, Any], name: str, kind: str | None, upwards: bool) -> None:
    assert axis_kind(attributes, name) == kind
    assert points_upwards(attributes, kind) == upwards


def write(
    root: Any, values: Any, rows: tuple[str, Any, dict[str, Any]], columns: tuple[str, Any, dict[str, Any]]
) -> None:
    for name, found, attributes in (rows, columns):
        root.create_array(name, data=np.asarray(found), dimension_names=(name,), attributes=attributes)
    root.create_array("v", data=values, chunks=(2, 3), dimension_names=(rows[0], columns[0]))


@pytest.mark.parametrize(
    ("rows", "columns", "flipped"),
    [
        (("lat", [-30, -10, 10, 30], NORTH), ("lon", [0, 60, 120, 180, 240, 300], EAST), (True, False)),
        (("lat", [30, 10, -10, -30], NORTH), ("lon", [170, 175, 180, -175, -170, -165], EAST), (False, False)),
        (("lat", [30, 10, -10, -30], NORTH), ("lon", [300, 240, 180, 120, 60, 0], EAST), (False, True)),
        (("z", [0, 5, 10, 30], {"positive": "down"}), ("x", [0, 1, 2, 3, 4, 5], {}), (False, False)),
        (("z", [30, 10, 5, 0], {"positive": "down"}), ("x", [0, 1, 2, 3, 4, 5], {}), (True, False)),
        (("z", [0, 5, 10, 30], {"units": "m", "axis": "Z"}), ("x", [5, 4, 3, 2, 1, 0], {}), (True, False)),
        (("lat", [10, 30, 20, 40], NORTH), ("lon", [0, 1, 2, 3, 4, 5], EAST), (False, False)),
    ],
)
def test_directions_on_the_screen(
    see: Any, tmp_path: Path, rows: Any, columns: Any, flipped: tuple[bool, bool]
) -> None:
    """Pixels, the pointer, keys, the chosen chunk and a zoomed box agree on the direction of both axes."""
    values = np.arange(24, dtype="i4").reshape(4, 6)
    write(zardine.open_group(tmp_path / "a.zarr", mode="w"), values, rows, columns)
    page = see(tmp_path / "a.zarr", "v", map="grey", lo=0, hi=24)
    page.wait_for_picture()
    order = tuple(slice(None, None, -1 if each else 1) for each in flipped)
    seen = values[order]
    np.testing.assert_array_equal(page.elements((4, 6))[..., 0], grey(seen, 0, 24))
    page.point(1, 4, (4, 6), click=True)
    row, column = (int(each[0]) for each in np.nonzero(values == seen[1, 4]))
    page.page.wait_for_selector(f"#status[data-at='{row},{column}']")
    assert page.text("#status").endswith(f": {seen[1, 4]}")
    page.page.wait_for_selector("#chunk[data-state=stored]")
    assert f"v/c/{row // 2}/{column // 3}" in page.text("#chunk")
    page.page.focus("#picture")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowLeft")
    row, column = (int(each[0]) for each in np.nonzero(values == seen[2, 3]))
    page.page.wait_for_selector(f"#status[data-at='{row},{column}']")
    page.open("v", map="grey", lo=0, hi=24, box="1,3,2,6")
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((2, 4))[..., 0], grey(values[1:3, 2:6][order], 0, 24))
    page.page.wait_for_function("() => /:3, 2:6]$|slice/.test(document.getElementById('expression').textContent)")


def stage(page: Any) -> tuple[float, float]:
    box = page.page.locator("#picture").bounding_box()
    return box["width"], box["height"]


def test_pictures_are_true_to_scale(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("image", data=np.arange(512 * 512, dtype="u4").reshape(512, 512))
    write(
        root.create_group("north"),
        np.zeros((11, 21)),
        ("lat", np.linspace(55, 65, 11), NORTH),
        ("lon", np.arange(21.0), EAST),
    )
    size = {"units": "m", "axis": "X"}
    write(
        root.create_group("metres"),
        np.zeros((50, 50)),
        ("y", np.arange(50) * 20.0, size),
        ("x", np.arange(50) * 10.0, size),
    )
    page = see(tmp_path / "a.zarr", "image", options={"viewport": {"width": 1400, "height": 900}})
    page.wait_for_picture()
    width, height = stage(page)
    assert width == height > 300
    page.page.click("#one-to-one")
    page.wait_for_picture(2)
    assert stage(page) == (512, 512)
    assert page.pixels().shape[:2] == (512, 512)
    page.page.select_option("#aspect", "fill")
    page.wait_for_picture(3)
    assert stage(page)[0] > 1.5 * stage(page)[1]
    page.open("north/v")
    page.wait_for_picture()
    width, height = stage(page)
    assert height / 11 == pytest.approx(width / 21 * 2, rel=0.01)  # a degree of longitude is half as long at 60°N
    assert "60°N" in page.text(".ticks.left")
    assert "5°E" in page.text(".ticks.below")
    page.open("metres/v")
    page.wait_for_picture()
    width, height = stage(page)
    assert height == pytest.approx(2 * width, rel=0.01)
    assert page.text(".scale-bar") == "100 m"
    assert page.page.locator(".scale-bar").bounding_box()["width"] == pytest.approx(width / 5, abs=1)


def test_titles_scales_and_coordinates_of_two_dimensions(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    scale = [{"type": "scale", "scale": [0.5, 0.25]}]
    image = root.create_group("image", attributes={
        "ome": {"multiscales": [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]},
    })  # fmt: skip
    image.create_array("0", data=np.zeros((40, 80)), dimension_names=("y", "x"))
    ocean = {"long_name": "Sea surface temperature", "units": "degC", "coordinates": "nav_lat nav_lon missing"}
    root.create_array("sst", data=np.linspace(0, 10, 200).reshape(10, 20), dimension_names=("y", "x"), attributes=ocean)
    for name in ("nav_lat", "nav_lon"):
        root.create_array(name, data=np.zeros((10, 20)), dimension_names=("y", "x"))
    page = see(tmp_path / "a.zarr", "image/0")
    page.wait_for_picture()
    width, height = stage(page)
    assert height == pytest.approx(width, rel=0.01)  # 40 × 0.5 µm and 80 × 0.25 µm
    assert page.text(".scale-bar") == "5 µm"
    page.open("sst", lo=0, hi=10)
    page.wait_for_picture()
    assert page.text("#caption") == "Sea surface temperature [degC]"
    assert page.text("#by-index") == "Drawn by index: the coordinates nav_lat and nav_lon have two dimensions."
    bar = [float(each) for each in page.page.locator(".ticks.right span").all_inner_texts()]
    assert bar[0] == 0
    assert bar[-1] == 10
    assert page.page.locator(".ticks.left span").first.inner_text() == "0"


@pytest.mark.parametrize("first", [-180, 0, 170])
@pytest.mark.parametrize("south", [-1, 1])
def test_coastlines(see: Any, tmp_path: Path, first: int, south: int) -> None:
    """Coasts lie where they are for longitudes of -180 to 180, of 0 to 360 and across 180°, and can be turned off."""
    longitudes = np.arange(first + 1, first + 361, 2.0)
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    lat = ("lat", south * np.arange(-89, 90, 2.0), NORTH)
    write(root, np.zeros((90, 180)), lat, ("lon", (longitudes + 180) % 360 - 180 if first == 170 else longitudes, EAST))
    page = see(tmp_path / "a.zarr", "v", options={"viewport": {"width": 1400, "height": 900}})
    page.wait_for_picture()
    page.page.wait_for_selector(".figure[data-coast=true]")
    drawn = """([longitude, latitude]) => { const c = document.getElementById('overlay');
        const x = Math.round(longitude * c.width), y = Math.round(latitude * c.height);
        const d = c.getContext('2d').getImageData(x - 6, y - 6, 13, 13).data;
        return d.some((each, i) => i % 4 === 3 && each); }"""

    def coast_near(longitude: float, latitude: float) -> bool:
        return bool(page.page.evaluate(drawn, [((longitude - first) % 360) / 360, (90 - latitude) / 180]))

    capes = [(18.5, -34.3), (-9.2, 38.7), (-67.5, -55.5), (146.5, -43.5)]  # Good Hope, Lisbon, Horn, Tasmania
    assert [coast_near(*each) for each in capes] == [True] * 4
    assert [coast_near(*each) for each in [(-30, 30), (-140, -30), (90, -30), (-110, -16.3), (10, 71.5)]] == [False] * 5
    page.page.uncheck("#coast")
    page.page.wait_for_function("() => location.hash.includes('coast=0')")
    assert not any(coast_near(*each) for each in capes)


def test_pages_without_a_map_load_no_coastlines(see: Any, tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "a.zarr", data=np.zeros((9, 9)))
    page = see(tmp_path / "a.zarr")
    page.wait_for_picture()
    assert not page.page.is_visible("#coast")
    loaded = "() => performance.getEntriesByType('resource').some(each => each.name.includes('vendor/coast'))"
    assert page.page.evaluate(loaded) is False


def test_lines_have_dates_units_and_zoom(see: Any, tmp_path: Path) -> None:
    """An array of one axis opens as a line with the table; a dragged range is shown finer, "fit" goes back."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    units = {"units": "days since 2001-01-01"}
    root.create_array("time", data=np.arange(400), dimension_names=("time",), attributes=units)
    facts = {"long_name": "River discharge", "units": "m3 s-1"}
    root.create_array("flow", data=np.arange(400.0), chunks=(100,), dimension_names=("time",), attributes=facts)
    root.create_array("plane", data=np.zeros((400, 3)), dimension_names=("time", "x"))
    page = see(tmp_path / "a.zarr", "flow")
    page.wait_for_picture()
    page.page.wait_for_selector("#profile[data-points] .uplot")
    assert page.text("#caption") == "River discharge [m3 s-1]"
    assert json.loads(page.page.get_attribute("#profile", "data-points")) == list(range(64))
    assert page.page.locator("#cells td").first.inner_text() == "0.0"
    assert page.page.locator(".ticks.below span").first.inner_text() == "2001-01"
    plot = page.page.locator("#profile .u-over").bounding_box()
    y = plot["y"] + plot["height"] / 2
    page.page.mouse.move(plot["x"] + plot["width"] * 0.5, y)
    page.page.mouse.down()
    page.page.mouse.move(plot["x"] + plot["width"] * 0.75, y, steps=3)
    page.page.mouse.up()
    page.page.wait_for_function("() => JSON.parse(document.getElementById('profile').dataset.points)[0] > 100")
    low, high = map(int, page.page.url.partition("box=")[2].partition("&")[0].split(","))
    page.page.wait_for_selector("#expression >> text=sel(time=slice(")
    assert abs(low - 200) < 4
    assert abs(high - 300) < 4
    page.page.click("#fit")
    page.page.wait_for_function("() => JSON.parse(document.getElementById('profile').dataset.points)[0] === 0")
    page.open("plane")
    page.wait_for_picture()
    page.page.wait_for_selector(".ticks.left span >> text=2001-01")


@pytest.mark.parametrize(
    "query", [{"axes": "0", "index": "5"}, {"axes": "2", "index": "0"}, {"axes": "0", "index": ",".join("0" * 65)}, {}]
)
def test_labels_of_indices_that_do_not_exist(tmp_path: Path, query: dict[str, str]) -> None:
    zardine.create_array(tmp_path / "a.zarr", data=np.zeros((5, 2)))
    with zardine.view(tmp_path / "a.zarr") as shown, pytest.raises(HTTPError, match="400"):
        urlopen(f"{shown.url}api/a.zarr/labels?{urlencode(query)}")


def test_a_group_is_a_page_of_its_variables(see: Any, tmp_path: Path) -> None:
    attributes = {"title": "A model run", "institution": "An institute", "Conventions": "CF-1.11"}
    root = zardine.open_group(tmp_path / "a.zarr", mode="w", attributes=attributes)
    write(root, np.zeros((3, 4)), ("lat", [0, 1, 2], NORTH), ("lon", [0, 1, 2, 3], EAST))
    root["v"].attrs.update(long_name="Wind", units="m s-1")
    root.create_group("more")
    page = see(tmp_path / "a.zarr", options={"viewport": {"width": 800, "height": 600}})
    page.page.wait_for_selector("#variables .card")
    assert page.text("#caption") == "A model run"
    assert page.text("#head") == "institution: An institute · conventions: CF-1.11"
    assert page.text("#variables").split("\n") == [
        *("Variables", "v", "Wind [m s-1]", "lat 3 × lon 4, float64, 96 B", "Groups", "more", "group", "Coordinates"),
        *("lat", "lat 3, int64, 24 B", "lon", "lon 4, int64, 32 B"),
    ]
    page.page.evaluate(servers.axe().read_text())
    found = page.page.evaluate("axe.run()")
    assert [each["id"] for each in found["violations"] if each["impact"] in ("serious", "critical")] == []
    page.page.click(".card >> text=Wind")
    page.wait_for_picture()
    assert page.text("#caption") == "Wind [m s-1]"
