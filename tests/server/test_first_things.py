"""What a user sees first, compared with pictures that a person has looked at: maps, images, lines, tables, vectors.

Where a picture differs for good reason, ``python tests/server/first_things.py`` makes the references anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zardine
from server import first_things
from server.browser import chromium
from servers import servers

__all__ = ["chromium"]

TOLERANCE = 8.0
"""Largest difference of the mean colour of a block of 16 × 16 pixels of the small pictures, of 0 to 255."""
MOST_BYTES = 400_000
DRAWN = {
    "group": ".small canvas",
    "neurons": "#space",
    "points": "#space",
    "times": "#profile",
    "table": "#cells table",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with zardine.view(first_things.write(tmp_path_factory.mktemp("first"))) as shown:
        yield shown


@pytest.mark.parametrize("view", first_things.VIEWS)
@pytest.mark.parametrize("name", first_things.THINGS)
def test_what_is_seen_first_looks_as_it_did(chromium: Any, shown: Any, tmp_path: Path, name: str, view: str) -> None:
    """It looks as its reference does, nothing sticks out of the page, and axe finds nothing serious."""
    kept = (first_things.REFERENCES / f"{name}-{view}.png").read_bytes()
    with first_things.opened(chromium, shown.url, name, view) as page:
        seen = first_things.reduced(first_things.shot(page))
        (tmp_path / f"{name}-{view}.png").write_bytes(seen)
        assert first_things.difference(seen, kept) < TOLERANCE, f"see {tmp_path}"
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert not page.is_visible("#notice")
        page.evaluate(servers.axe().read_text())
        found = page.evaluate("rules => axe.run(rules)", {} if view == "small" else {"runOnly": ["color-contrast"]})
        serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []


@pytest.mark.parametrize("name", [name for name in first_things.THINGS if name != "table"])
def test_a_picture_upside_down_is_noticed(chromium: Any, shown: Any, name: str) -> None:
    kept = (first_things.REFERENCES / f"{name}-large.png").read_bytes()
    with first_things.opened(chromium, shown.url, name, "large") as page:
        page.evaluate(
            "selector => document.querySelectorAll(selector).forEach(each => each.style.transform = 'scaleY(-1)')",
            DRAWN.get(name, "#picture"),
        )
        seen = first_things.reduced(first_things.shot(page))
    assert first_things.difference(seen, kept) > TOLERANCE


@pytest.mark.parametrize("name", ["global", "regional", "orca", "image", "colours"])
def test_series_and_details_are_above_the_fold(chromium: Any, shown: Any, name: str) -> None:
    with first_things.opened(chromium, shown.url, name, "large") as page:
        for selector, most in (("#picture", 900), ("#profile .u-wrap", 900), ("#chunk", 740)):
            box = page.locator(selector).bounding_box()
            assert box["y"] + (box["height"] if selector != "#chunk" else 60) <= most, selector


def test_references_are_small() -> None:
    sizes = [each.stat().st_size for each in first_things.REFERENCES.iterdir()]
    assert len(sizes) == len(first_things.THINGS) * len(first_things.VIEWS)
    assert sum(sizes) < MOST_BYTES
