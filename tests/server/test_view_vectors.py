"""Vectors in the page, in a real browser: where they are drawn, which level is, and what a box of them is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.browser import chromium, see
from servers import servers
from zardine import vectors

__all__ = ["chromium", "see"]


def test_vectors_in_the_plane_lie_where_they_are(see: Any, tmp_path: Path) -> None:
    positions = np.array([[-1, -1], [1, 1], [0, 0.5], [0.5, -0.25]])
    vectors.write_points(
        tmp_path / "p.zv", positions, vertex_attributes={"t": [0.0, 1.0, 0.0, 1.0]}, chunk_shape=(1, 1)
    )
    page = see(tmp_path / "p.zv", field="t", map="grey", stored=1)
    page.page.wait_for_selector("#space[data-vertices='4']")
    height, width = page.page.evaluate(
        "() => { const c = document.getElementById('space'); return [c.height, c.width]; }"
    )
    scale = min(height, width) / np.hypot(2, 2)
    for (x, y), shade in zip(positions, (0, 255, 0, 255), strict=True):
        place = int(width / 2 + x * scale), int(height / 2 - y * scale)
        found = page.page.evaluate(
            "([x, y]) => [...document.getElementById('space').getContext('2d').getImageData(x, y, 1, 1).data]",
            list(place),
        )
        assert found == [shade] * 3 + [255]


@pytest.mark.parametrize("kind", ["points", "polylines", "mesh", "graph"])
def test_vectors_of_every_kind(see: Any, tmp_path: Path, kind: str) -> None:
    """Vertices, edges and faces are counted as they are read; a box has those that are in it."""
    positions = np.random.default_rng(1).random((90, 3)) * 10
    store = tmp_path / "v.zv"
    if kind == "points":
        vectors.write_points(store, positions, chunk_shape=(5, 5, 5))
    elif kind == "polylines":
        vectors.write_polylines(store, [positions[:40], positions[40:]], chunk_shape=(5, 5, 5))
    elif kind == "mesh":
        vectors.write_mesh(store, positions, np.arange(90).reshape(30, 3), chunk_shape=(5, 5, 5))
    else:
        vectors.write_graph(store, positions, [[0, 1], [1, 2]], chunk_shape=(5, 5, 5))
    page = see(store)
    page.page.wait_for_selector("#space[data-vertices='90']")
    more = {"points": "", "polylines": ", 88 edges", "mesh": ", 30 faces", "graph": ", 2 edges"}[kind]
    assert page.text("#read") == f"90 vertices{more}, of level 0"
    drawn = "() => document.getElementById('space').toDataURL()"
    before = page.page.evaluate(drawn)
    page.page.focus("#space")
    page.page.keyboard.press("ArrowLeft")
    page.page.wait_for_function(f"before => ({drawn})() != before", arg=before)
    page.page.fill("input[aria-label='x, highest']", "5")
    page.page.click("#into-box")
    inside = {
        "points": lambda: len(vectors.read_points(store, bbox=([0, 0, 0], [5, 10, 10])).positions),
        "polylines": lambda: 90,
        "mesh": lambda: len(vectors.read_mesh(store, bbox=([0, 0, 0], [5, 10, 10])).positions),
        "graph": lambda: len(vectors.read_graph(store, bbox=([0, 0, 0], [5, 10, 10])).positions),
    }[kind]()
    page.page.wait_for_function(
        "n => document.getElementById('read').textContent.startsWith(`${n} vertices`)"
        " && location.hash.includes('box=')",
        arg=inside,
    )


@pytest.fixture
def pyramid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points in three levels, of which only the coarsest is drawn at once."""
    monkeypatch.setattr("zardine.server.viewer.geometry.MOST_AT_ONCE", 400)
    positions = np.random.default_rng(1).random((6000, 3)) * 40
    store = tmp_path / "v.zv"
    vectors.write_points(store, positions, chunk_shape=(10, 10, 10), bin_shape=(2.5, 2.5, 2.5))
    vectors.build_pyramid(store, factors=((2, 1), (2, 1)))
    return store


def counts(store: Path) -> list[int]:
    """How many vertices each level has."""
    return [each["vertex_count"] for each in vectors.describe_store(store)["levels"]]


def test_what_one_comes_near_to_is_refined(see: Any, pyramid: Path) -> None:
    """All is seen by a coarse level; near to it that is by a finer one, and it goes when one is far again."""
    total = counts(pyramid)
    page = see(pyramid)
    page.page.wait_for_selector(f"#space[data-level='2'][data-vertices='{total[2]}']")
    assert total[2] < 400 < total[1]
    page.page.focus("#space")
    for _ in range(9):
        page.page.keyboard.press("+")
    page.page.wait_for_selector("#space[data-detaillevel]")
    shown = page.page.evaluate("() => ({...document.getElementById('space').dataset})")
    assert 0 < int(shown["detailvertices"]) < total[int(shown["detaillevel"])]
    assert f"where you look {int(shown['detailvertices']):,} vertices, of level {shown['detaillevel']}" in page.text(
        "#read"
    )
    page.page.keyboard.press("0")
    page.page.wait_for_selector("#space:not([data-detaillevel])")
    page.page.select_option("#level", "1")
    page.page.wait_for_selector(f"#space[data-level='1'][data-vertices='{total[1]}']")


def test_a_coarse_level_comes_first(see: Any, pyramid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is seen at once, and then the finest level that can be drawn."""
    monkeypatch.setattr("zardine.server.viewer.geometry.MOST_AT_ONCE", 10_000)
    page = see(pyramid)
    page.page.wait_for_selector("#space[data-level='0'][data-vertices='6000']")
    asked = page.page.evaluate(
        "() => performance.getEntriesByType('resource').map(each => each.name)"
        ".filter(name => name.includes('/geometry?')).map(name => new URL(name).searchParams.get('level'))"
    )
    assert asked == ["2", "0"]


def test_a_box_is_dragged(see: Any, pyramid: Path) -> None:
    """What lies in a rectangle of the screen becomes the box, which is shown as fine as it can be."""
    page = see(pyramid)
    page.page.wait_for_selector("#space[data-level='2']")
    page.page.click("#select-box")
    assert page.page.get_attribute("#select-box", "aria-pressed") == "true"
    area = page.page.locator("#space").bounding_box()
    page.page.mouse.move(area["x"] + 2, area["y"] + 2)
    page.page.mouse.down()
    page.page.mouse.move(area["x"] + 0.4 * area["width"], area["y"] + area["height"] - 2, steps=3)
    assert page.page.is_visible(".band")
    page.page.mouse.up()
    page.page.wait_for_function("() => location.hash.includes('box=')")
    box = [float(each) for each in page.page.url.partition("box=")[2].split("&")[0].split(",")]
    low, high = np.array(box[:3]), np.array(box[3:])
    assert (low < high).all()
    assert (high - low < 40).any()
    page.page.wait_for_function("() => document.getElementById('select-box').ariaPressed === 'false'")
    inside = [len(vectors.read_points(pyramid, level=level, bbox=(low, high)).positions) for level in range(3)]
    assert inside[2] < counts(pyramid)[2]
    page.page.wait_for_function(
        "inside => { const {level, vertices} = document.getElementById('space').dataset;"
        " return Number(vertices) === inside[level]; }",
        arg=inside,
    )
    page.page.click("#no-box")
    page.page.wait_for_function("() => !location.hash.includes('box=')")
    page.page.wait_for_selector(f"#space[data-vertices='{counts(pyramid)[2]}']")


def test_a_box_of_the_plane_is_what_is_seen_there(see: Any, tmp_path: Path) -> None:
    positions = np.random.default_rng(1).random((500, 2)) * 10
    vectors.write_points(tmp_path / "p.zv", positions, chunk_shape=(5, 5))
    page = see(tmp_path / "p.zv")
    page.page.wait_for_selector("#space[data-vertices='500']")
    area = page.page.locator("#space").bounding_box()
    low, high = positions.min(axis=0), positions.max(axis=0)
    scale = min(area["width"], area["height"]) / np.hypot(*(high - low))
    middle = (low + high) / 2

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            area["x"] + area["width"] / 2 + (x - middle[0]) * scale,
            area["y"] + area["height"] / 2 - (y - middle[1]) * scale,
        )

    page.page.click("#select-box")
    page.page.mouse.move(*at(2, 7))
    page.page.mouse.down()
    page.page.mouse.move(*at(6, 3), steps=2)
    page.page.mouse.up()
    page.page.wait_for_function("() => location.hash.includes('box=')")
    box = [float(each) for each in page.page.url.partition("box=")[2].split("&")[0].split(",")]
    np.testing.assert_allclose(box, [2, 3, 6, 7], atol=0.1)


def test_vectors_that_are_changed_are_told_of(see: Any, tmp_path: Path) -> None:
    store = tmp_path / "p.zv"
    vectors.write_points(store, np.random.default_rng(1).random((50, 3)) * 10, chunk_shape=(5, 5, 5))
    page = see(store)
    page.page.wait_for_selector("#space[data-vertices='50']")
    vectors.append_points(store, np.random.default_rng(2).random((7, 3)) * 10)
    page.page.wait_for_selector("#notice:has-text('was changed')")
    assert page.page.get_attribute("#space", "data-vertices") == "50"
    page.page.click("#notice button")
    page.page.wait_for_selector("#space[data-vertices='57']")
    page.faults.clear()  # the browser's own words for the answer "conflict"


def test_accessibility(see: Any, pyramid: Path) -> None:
    page = see(pyramid, options={"viewport": {"width": 360, "height": 740}})
    page.page.wait_for_selector("#space[data-vertices]")
    assert page.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.page.evaluate(servers.axe().read_text())
    found = page.page.evaluate("() => axe.run()")
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []


@pytest.fixture
def neurons(tmp_path: Path) -> Path:
    """Three straight lines, each an object."""
    store = tmp_path / "n.zv"
    lines = [np.array([[0.0, at], [10, at]]) for at in (0, 5, 10)]
    attributes = {"kind": ["axon", "dendrite", "axon"], "length": [1.0, 2.0, np.nan], "name": ["A", "B", "C"]}
    vectors.write_polylines(store, lines, object_ids=[7, 2**60 + 1, 9], object_attributes=attributes, chunk_shape=20)
    return store


def colours_of_lines(page: Any) -> list[tuple[int, ...]]:
    """The colours in the middle of each of the three lines, from the lowest on."""
    found = page.page.evaluate(
        """() => {
          const canvas = document.getElementById('space');
          const column = canvas.getContext('2d').getImageData(Math.floor(canvas.width / 2), 0, 1, canvas.height).data;
          const shades = [];
          for (let y = canvas.height - 1; y >= 0; y--) {
            if (column[4 * y + 3] && !column[4 * y + 7]) shades.push([...column.slice(4 * y, 4 * y + 3)]);
          }
          return shades;
        }"""
    )
    return [tuple(each) for each in found]


def test_objects_have_a_colour_each_and_a_legend(see: Any, neurons: Path) -> None:
    page = see(neurons)
    page.page.wait_for_selector("#space[data-vertices='6']")
    legend = "() => [...document.querySelectorAll('#legend span')].map(each => each.textContent.trim())"
    page.page.wait_for_function(f"() => ({legend})().length == 3")
    assert sorted(page.page.evaluate(legend)) == ["A", "B", "C"]
    assert len(set(colours_of_lines(page))) == 3
    page.page.select_option("#attribute", "objects/kind")
    page.page.wait_for_function(f"() => ({legend})().length == 2")
    assert page.page.evaluate(legend) == ["axon", "dendrite"]
    first, second, third = colours_of_lines(page)
    assert first == third != second
    page.page.select_option("#attribute", "objects/length")
    page.page.wait_for_function(f"() => ({legend})().length == 1")
    assert page.page.evaluate(legend)[0].split() == ["1", "2"]
    assert len(set(colours_of_lines(page))) == 3
    page.page.select_option("#attribute", "/")
    page.page.wait_for_function(f"() => ({legend})().length == 0")
    assert len(set(colours_of_lines(page))) == 1


def test_text_of_vertices_has_colours_and_a_legend(see: Any, tmp_path: Path) -> None:
    positions = np.array([[-1, -1], [1, 1], [0, 0.5], [0.5, -0.25]])
    kinds = np.array(["soma", "axon", None, "soma"], object)
    vectors.write_points(tmp_path / "p.zv", positions, vertex_attributes={"kind": kinds}, chunk_shape=(1, 1))
    page = see(tmp_path / "p.zv", field="kind")
    page.page.wait_for_selector("#space[data-vertices='4']")
    page.page.wait_for_selector("#legend span")
    texts = "() => [...document.querySelectorAll('#legend span')].map(each => each.textContent)"
    assert page.page.evaluate(texts) == ["axon", "soma"]
    page.page.hover("#space")
    shades = page.page.evaluate(
        "() => { const c = document.getElementById('space');"
        " const d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);"
        " return [...new Set(d)].filter(Boolean).length; }"
    )
    assert shades == 3  # of two texts, and of what is missing
