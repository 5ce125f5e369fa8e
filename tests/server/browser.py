"""A real browser for tests of the page: Chromium without a head, and what is asked of the page in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import zardine
from servers import servers


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = servers.package("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=servers.chromium(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Page:
    """A page of the viewer; ``faults`` are what its console said."""

    def __init__(self, chromium: Any, server: Any, **options: Any) -> None:
        options = {"viewport": {"width": 1000, "height": 900}, **options}
        self.server, self.page = server, chromium.new_page(**options)
        self.page.set_default_timeout(30_000)
        self.faults: list[str] = []
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def open(self, path: str, **state: Any) -> Page:
        """Show a node, as an address says it, and wait until it is there."""
        name = self.server.names[0]
        address = "&".join(f"{key}={value}" for key, value in {"name": name, "path": path, **state}.items())
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.url}view/#{address}")
        self.page.wait_for_function("() => document.title.includes('·')")
        return self

    def wait_for_picture(self, at_least: int = 1) -> None:
        """Wait until so many pictures were drawn, the last one finished."""
        self.page.wait_for_function(
            "n => { const {drawn, finished} = document.getElementById('picture')?.dataset ?? {};"
            " return Number(drawn) >= n && finished === 'true'; }",
            arg=at_least,
        )

    def pixels(self) -> npt.NDArray[np.uint8]:
        """What the canvas shows: red, green, blue, opacity."""
        height, width, data = self.page.evaluate(
            "() => { const c = document.getElementById('picture');"
            " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            " let s = ''; for (let i = 0; i < d.length; i += 32768)"
            " s += String.fromCharCode(...d.subarray(i, i + 32768));"
            " return [c.height, c.width, btoa(s)]; }"
        )
        import base64

        return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)

    def elements(self, shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
        """The colour in the middle of each element, where the picture shows ``shape`` of them."""
        shown = self.pixels()
        rows, columns = (
            ((np.arange(n) + 0.5) / n * size).astype(int) for n, size in zip(shape, shown.shape, strict=False)
        )
        return shown[np.ix_(rows, columns)]

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def point(self, row: int, column: int, shape: tuple[int, int], *, click: bool = False) -> None:
        """Move the pointer to an element, where the picture shows ``shape`` of them."""
        box = self.page.locator("#picture").bounding_box()
        x = box["x"] + (column + 0.5) / shape[1] * box["width"]
        y = box["y"] + (row + 0.5) / shape[0] * box["height"]
        self.page.mouse.move(x, y)
        if click:
            self.page.mouse.click(x, y)

    def close(self) -> None:
        """Close the page. Its console must have said no error."""
        self.page.close()
        assert self.faults == [], self.faults


@pytest.fixture
def see(chromium: Any) -> Iterator[Callable[..., Page]]:
    """Serves a node and opens a page of it."""
    with_server: list[tuple[Page, Any]] = []

    def see(node: Any, path: str = "", *, options: dict[str, Any] | None = None, **state: Any) -> Page:
        shown = zardine.view({"data": node})
        page = Page(chromium, shown.server, **(options or {}))
        with_server.append((page, shown))
        return page.open(path, **state)

    yield see
    for page, shown in with_server:
        page.close()
        shown.stop()


def grey(values: npt.NDArray[Any], lo: float, hi: float) -> npt.NDArray[np.uint8]:
    """The shade of values in the map ``grey``."""
    return np.clip(np.floor((values.astype(float) - lo) * (256 / (hi - lo))), 0, 255).astype(np.uint8)
