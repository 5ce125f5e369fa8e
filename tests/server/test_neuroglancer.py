"""neuroglancer's own page, in a real browser, draws an array out of ``/v3`` and geometry out of ``/precomputed``."""

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
from zardine import vectors
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


@contextmanager
def shown(state: dict[str, Any]) -> Iterator[Any]:
    """Give neuroglancer's page in that state."""
    playwright = servers.package("playwright.sync_api")
    Bundle.state = {"showAxisLines": False, "showScaleBar": False, **state}
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=servers.chromium(),
            args=[
                *("--no-sandbox", "--disable-dev-shm-usage", "--ignore-gpu-blocklist"),
                *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a graphics card
            ],
        )
        page = browser.new_page(viewport=WINDOW)
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def colours(page: Any, **options: Any) -> npt.NDArray[np.uint8]:
    """What is seen, or a part of it: ``(height, width, 4)``, red, green, blue and opacity."""
    picture = base64.b64encode(page.screenshot(**options)).decode()
    height, width, found = page.evaluate(
        """async (picture) => {
          const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
          const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
          context.drawImage(image, 0, 0);
          const data = context.getImageData(0, 0, image.width, image.height).data;
          let text = "";
          for (let i = 0; i < data.length; i += 32768) text += String.fromCharCode(...data.subarray(i, i + 32768));
          return [image.height, image.width, btoa(text)];
        }""",
        picture,
    )
    return np.frombuffer(base64.b64decode(found), np.uint8).reshape(height, width, 4)


def shot(page: Any) -> npt.NDArray[np.uint8]:
    """The grey of what is seen in the middle, one pixel for each element."""
    height, width = SHAPE
    corner = (WINDOW["width"] - width * ZOOM) // 2, (WINDOW["height"] - height * ZOOM) // 2
    seen = colours(page, clip={"x": corner[0], "y": corner[1], "width": width * ZOOM, "height": height * ZOOM})
    return seen[ZOOM // 2 :: ZOOM, ZOOM // 2 :: ZOOM, 0]


@pytest.mark.parametrize("kind", ["sharded", "v2 in an archive"])
def test_neuroglancer_draws_what_is_served(tmp_path: Path, kind: str) -> None:
    """An element is four pixels wide, and as grey as it is large; its page is of another origin, which is let in."""
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
    with bundle() as origin, zardine.serve({"a": node}, cors=[origin]) as server:
        shader = "void main() { emitGrayscale(toNormalized(getDataValue())); }"
        state = {
            "dimensions": {name: [1, ""] for name in "zyx"},
            "displayDimensions": list("xyz"),
            "position": [1.5, SHAPE[0] / 2, SHAPE[1] / 2],
            "crossSectionScale": 1 / ZOOM,
            "layout": "xy",
            "layers": [{"type": "image", "name": "a", "source": f"{server.url}v3/a/|zarr3:", "shader": shader}],
        }
        with shown(state) as page:
            page.goto(f"{origin}/v/it/")
            for _ in range(60):  # it draws chunk by chunk
                if np.array_equal(shot(page), values[1]):
                    break
                page.wait_for_timeout(500)
            np.testing.assert_array_equal(shot(page), values[1])


def test_neuroglancer_draws_geometry_that_is_served(tmp_path: Path) -> None:
    """Points, lines, boxes, skeletons and meshes, each in its place in its colour; no request of them is refused."""
    places = {"points": (20, 20), "lines": (80, 20), "boxes": (20, 80), "trees": (80, 80), "mesh": (50, 50)}
    paints = {"points": "ff0000", "lines": "00ff00", "boxes": "0000ff", "trees": "ffff00", "mesh": "ff00ff"}
    nodes: dict[str, Any] = {name: tmp_path / name for name in places}
    long, square = np.array([[-8, 0], [8, 0]]), np.array([[-8, -8], [8, -8], [8, 8], [-8, 8]])

    def at(name: str, corners: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.column_stack((corners + places[name], np.full(len(corners), 50.0)))

    options: Any = {"chunk_shape": 25, "axes": [{"name": name, "unit": "nanometer"} for name in "xyz"]}
    vectors.write_points(nodes["points"], at("points", long / 8), **options)
    vectors.write_lines(nodes["lines"], at("lines", long)[None], **options)
    box = at("boxes", square[[0, 2]]) + np.array([[0, 0, -5], [0, 0, 5]])
    of_boxes = {"neuroglancer": {"annotation_type": "axis_aligned_bounding_box"}}
    vectors.write_lines(nodes["boxes"], box[None], crs=of_boxes, **options)
    vectors.write_skeleton(nodes["trees"], at("trees", long), [-1, 0], object_ids=[7, 7], **options)
    vectors.write_mesh(nodes["mesh"], at("mesh", square), [[0, 1, 2], [0, 2, 3]], object_ids=[9] * 4, **options)
    shaders = {"points": "setPointMarkerSize(15.0);", "lines": "setLineWidth(10.0);", "boxes": ""}
    refused: list[str] = []
    with bundle() as origin, zardine.serve(nodes, cors=[origin]) as server:
        layers: list[dict[str, Any]] = []
        for name, paint in paints.items():
            layer: dict[str, Any] = {"name": name, "source": f"precomputed://{server.url}precomputed/{name}"}
            if name in shaders:
                colour = ", ".join(str(int(paint[place : place + 2], 16) / 255) for place in (0, 2, 4))
                shader = f"void main() {{ setColor(vec3({colour})); {shaders[name]} }}"
                layers.append({"type": "annotation", "shader": shader, **layer})
            else:
                number = "7" if name == "trees" else "9"
                wide = {"skeletonRendering": {"mode3d": "lines", "lineWidth3d": 10}}
                about = {"segments": [number], "segmentColors": {number: f"#{paint}"}, **wide}
                layers.append({"type": "segmentation", **about, **layer})
        state = {
            "dimensions": {name: [1e-9, "m"] for name in "xyz"},
            "position": [50, 50, 50],
            "layout": "3d",
            "projectionScale": 120,
            "showSlices": False,
            "layers": layers,
        }
        with shown(state) as page:
            page.on("requestfailed", lambda asked: refused.append(asked.url))
            page.on(
                "response",
                lambda told: refused.append(told.url) if told.status >= 400 and server.url in told.url else None,
            )
            page.goto(f"{origin}/v/it/")
            left = dict(paints)
            for _ in range(60):
                seen = colours(page)[..., :3].astype(int)
                seen[:80, :30] = 0  # the names of the axes, in colours, too
                left = {name: paint for name, paint in paints.items() if not _is_seen(seen, paint, places[name])}
                if not left:
                    break
                page.wait_for_timeout(500)
    assert left == {}
    assert refused == []


def _is_seen(seen: npt.NDArray[np.int64], paint: str, place: tuple[int, int]) -> bool:
    """Whether more than a few pixels have that colour, and all of them lie where they should: 2.8 to a unit, about."""
    colour = np.array([int(paint[start : start + 2], 16) for start in (0, 2, 4)])
    rows, columns = np.nonzero((np.abs(seen - colour) < 40).all(axis=2))
    wanted = [(each - 50) * 2.8 + size / 2 for each, size in zip(place, WINDOW.values(), strict=True)]
    near = (np.abs(columns - wanted[0]) < 50) & (np.abs(rows - wanted[1]) < 50)
    return len(rows) > 50 and bool(near.all())
