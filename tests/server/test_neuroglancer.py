"""neuroglancer's own page, in a real browser, draws an array out of ``/v3``."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import zardine
from servers import servers
from zardine.storage import ZipStore

SHAPE, ZOOM = (64, 96), 4
WINDOW = {"width": 500, "height": 340}


class Bundle(SimpleHTTPRequestHandler):
    """The files of neuroglancer's Python package, and the two questions that its page asks the Python side."""

    state: dict[str, Any]
    ended = threading.Event()

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix("/v/it"))

    def do_GET(self) -> None:
        if not self.path.startswith("/events/"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for key, value in (("c", {"showUIControls": False, "showLayerPanel": False}), ("s", self.state)):
            self.wfile.write(f"data: {json.dumps({'k': key, 's': value, 'g': '1'})}\n\n".encode())
        self.wfile.flush()
        self.ended.wait()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"g": "2"}')

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def bundle() -> Iterator[str]:
    """Serve the page from an origin of its own, which this gives."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Bundle, directory=str(servers.neuroglancer()))) as server:
        server.daemon_threads, server.block_on_close = True, False
        Bundle.ended.clear()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        Bundle.ended.set()
        server.shutdown()


def shot(page: Any) -> npt.NDArray[np.uint8]:
    """The grey of what is seen in the middle, one pixel for each element."""
    height, width = SHAPE
    corner = (WINDOW["width"] - width * ZOOM) // 2, (WINDOW["height"] - height * ZOOM) // 2
    clip = {"x": corner[0], "y": corner[1], "width": width * ZOOM, "height": height * ZOOM}
    picture = base64.b64encode(page.screenshot(clip=clip)).decode()
    data = page.evaluate(
        """async (picture) => {
          const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
          const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
          context.drawImage(image, 0, 0);
          return Array.from(context.getImageData(0, 0, image.width, image.height).data).filter((_, i) => i % 4 == 0);
        }""",
        picture,
    )
    shown = np.array(data, np.uint8).reshape(height * ZOOM, width * ZOOM)
    return shown[ZOOM // 2 :: ZOOM, ZOOM // 2 :: ZOOM]


@pytest.mark.parametrize("kind", ["sharded", "v2 in an archive"])
def test_neuroglancer_draws_what_is_served(tmp_path: Path, kind: str) -> None:
    """An element is four pixels wide, and as grey as it is large; its page is of another origin, which is let in."""
    playwright = servers.package("playwright.sync_api")
    values = np.zeros((3, *SHAPE), "u1")
    y, x = np.mgrid[0 : SHAPE[0], 0 : SHAPE[1]]
    values[1] = np.where(y < 32, 255 - x // 24 * 60, x // 24 * 60)
    values[1, 20:30, 50:70] = np.arange(200).reshape(10, 20)
    if kind == "sharded":
        node: Any = tmp_path / "a.zarr"
        options = {"shards": (2, 32, 32), "dimension_names": ("z", "y", "x")}
        zardine.create_array(node, data=values, chunks=(1, 16, 16), **options)
    else:
        node = tmp_path / "a.zip"
        with ZipStore(node, mode="w") as archive:
            array = zardine.create_array(archive, data=values, chunks=(2, 20, 25), zarr_format=2)
            array.attrs["_ARRAY_DIMENSIONS"] = ["z", "y", "x"]
    with (
        bundle() as origin,
        zardine.serve({"a": node}, cors=[origin]) as server,
        playwright.sync_playwright() as running,
    ):
        shader = "void main() { emitGrayscale(toNormalized(getDataValue())); }"
        Bundle.state = {
            "dimensions": {name: [1, ""] for name in "zyx"},
            "displayDimensions": list("xyz"),
            "position": [1.5, SHAPE[0] / 2, SHAPE[1] / 2],
            "crossSectionScale": 1 / ZOOM,
            "layout": "xy",
            "showAxisLines": False,
            "showScaleBar": False,
            "layers": [{"type": "image", "name": "a", "source": f"{server.url}v3/a/|zarr3:", "shader": shader}],
        }
        browser = running.chromium.launch(
            executable_path=servers.chromium(),
            args=[
                *("--no-sandbox", "--disable-dev-shm-usage", "--ignore-gpu-blocklist"),
                *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a graphics card
            ],
        )
        page = browser.new_page(viewport=WINDOW)
        page.goto(f"{origin}/v/it/")
        for _ in range(60):  # it draws chunk by chunk
            if np.array_equal(shot(page), values[1]):
                break
            page.wait_for_timeout(500)
        np.testing.assert_array_equal(shot(page), values[1])
        browser.close()
