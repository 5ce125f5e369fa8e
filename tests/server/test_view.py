"""The page, in a real browser: what it draws and says is what NumPy, the index and the log of the store say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from server.browser import Page, chromium, grey

__all__ = ["chromium"]


@pytest.fixture
def see(chromium: Any) -> Iterator[Callable[..., Page]]:
    """Serves a node and opens a page of it."""
    with_server: list[tuple[Page, Any]] = []

    def see(node: Any, path: str = "", *, options: dict[str, Any] | None = None, **state: Any) -> Page:
        server = zardine.serve({"data": node})
        page = Page(chromium, server, **(options or {}))
        with_server.append((page, server))
        return page.open(path, **state)

    yield see
    for page, server in with_server:
        page.close()
        server.stop()


def test_a_picture_has_the_colours_of_the_values(see: Any, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(3, 40, 60)).astype("f4")
    zardine.create_array(tmp_path / "a.zarr", name="x", data=values, chunks=(1, 16, 16), shards=(2, 32, 32))
    page = see(tmp_path / "a.zarr", "x", map="grey", lo=-2, hi=2)
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((40, 60))[..., 0], grey(values[0], -2, 2))
    page.page.locator("#axis-0").press("ArrowRight")
    page.wait_for_picture(2)
    np.testing.assert_array_equal(page.elements((40, 60))[..., 1], grey(values[1], -2, 2))
    page.page.select_option("#map", "viridis")
    shown = page.elements((40, 60))
    assert shown[np.unravel_index(values[1].argmin(), (40, 60))].tolist() == [68, 1, 84, 255]
    assert shown[np.unravel_index(values[1].argmax(), (40, 60))].tolist() == [253, 231, 37, 255]
    page.page.fill("#axes input[type=number]", "2")
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("() => location.hash.includes('at=2,0,0')")
    page.page.reload()
    page.wait_for_picture()
    assert page.page.input_value("#axis-0") == "2"  # the address says all of it


def test_the_exact_value_under_the_pointer(see: Any, tmp_path: Path) -> None:
    values = np.array([[2**53 + 1, 2**62 + 1], [-(2**63), 0]])
    zardine.create_array(tmp_path / "a.zarr", data=values)
    page = see(tmp_path / "a.zarr")
    page.wait_for_picture()
    for row, column in np.ndindex(2, 2):
        page.point(row, column, (2, 2))
        page.page.wait_for_selector(f"#status[data-at='{row},{column}']")
        assert page.text("#status") == f"axis 0 {row}, axis 1 {column}: {values[row, column]}"


def test_four_looks(see: Any, tmp_path: Path) -> None:
    """Damaged, not stored, the fill value, NaN, and a value: all look different, and say what they are."""
    array = zardine.create_array(
        tmp_path / "a.zarr",
        shape=(40, 40),
        chunks=(10, 10),
        dtype="f4",
        fill_value=-9,
        config={"write_empty_chunks": True},
    )
    values = np.full((40, 40), 0.5, "f4")
    values[:10, :10], values[:10, 10:20] = np.nan, -9
    array[:20, :20], array[20:, 20:] = values[:20, :20], values[20:, 20:]
    damaged = bytearray((tmp_path / "a.zarr/c/1/0").read_bytes())
    damaged[5] ^= 1
    (tmp_path / "a.zarr/c/1/0").write_bytes(damaged)
    page = see(tmp_path / "a.zarr", map="viridis", lo=0, hi=1)
    page.wait_for_picture()
    shown = page.pixels()
    size = np.array(shown.shape[:2]) // 4
    looks = {}
    for name, row, column in [("nan", 0, 0), ("fill", 0, 1), ("damaged", 1, 0), ("value", 1, 1), ("missing", 0, 3)]:
        block = shown[row * size[0] + 4 : (row + 1) * size[0] - 4, column * size[1] + 4 : (column + 1) * size[1] - 4]
        looks[name] = frozenset(map(tuple, block.reshape(-1, 4).tolist()))
    assert looks["value"] == {(33, 145, 140, 255)}
    assert len(set(looks.values())) == 5
    assert page.text("#read") == "all 16 chunks read, 8 not stored, 1 damaged"
    page.point(15, 5, (40, 40))
    page.page.wait_for_selector("#status[data-at='15,5']")
    assert "crc32c" in page.text("#status")


def test_strings_structs_and_times_are_tables(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("text", data=np.array(["a", "é<b>", ""], dtype=np.dtypes.StringDType()))
    root.create_array("struct", data=np.array([(1, 0.1), (2, 0.2)], dtype=[("n", "i8"), ("v", "f4")]))
    root.create_array("time", data=np.array(["2020-02-29", "NaT"], "M8[D]"))
    root.create_array("complex", data=np.array([1 + 2j, 0.1j]))
    root.create_array("scalar", data=np.float64(0.1))
    page = see(tmp_path / "a.zarr", "text")
    cells = "() => [...document.querySelectorAll('#cells td')].map(each => each.textContent)"
    for path, expected in [
        ("text", ["a", "é<b>", ""]),
        ("struct", ["1", "0.1", "2", "0.2"]),
        ("time", ["2020-02-29", "NaT"]),
        ("complex", ["(1+2j)", "0.1j"]),
        ("scalar", ["0.1"]),
    ]:
        page.open(path)
        if not page.page.evaluate("() => document.getElementById('table').open"):
            page.page.click("#table summary")
        page.page.wait_for_selector("#cells td")
        assert page.page.evaluate(cells) == expected
