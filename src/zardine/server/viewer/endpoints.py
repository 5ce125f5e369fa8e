"""What the page asks for: ``view/`` is the page itself, ``view/api/NAME/WHAT?path=...`` the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, Final, cast

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

import zardine
from zardine.engine.workers import for_each, most_requests
from zardine.indexing.plan import GridPart
from zardine.metadata.documents import GroupMetadata
from zardine.nodes.array import Array
from zardine.server.data import not_found
from zardine.server.served import Served
from zardine.server.threads import in_thread
from zardine.server.viewer.canvas import REDUCTIONS, Frame, Reduction
from zardine.server.viewer.checking import verification
from zardine.server.viewer.coordinates import dates_along, labels, labels_along
from zardine.server.viewer.expression import Span, expression
from zardine.server.viewer.facts import WATCH, WATCH_FAR, array_facts, as_json, group_facts, members
from zardine.server.viewer.geometry import MOST_VERTICES, describe, geometry, is_vectors, share_of
from zardine.server.viewer.picture import MOST_PIXELS, View, draw, picture_of
from zardine.server.viewer.pyramid import coarser
from zardine.server.viewer.snapshot import ChangedError, Snapshot
from zardine.server.viewer.values import PARTS, exact, kind_of
from zardine.server.viewer.viewed import Pages, Viewed
from zardine.server.viewer.waiting import while_waited_for
from zardine.server.viewer.where import chunk_at, objects_of

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
)
"""For the page: it runs no code and asks no server but this one. Notebooks of this machine may show it in a frame."""

_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MOST_MEMBERS: Final = 500
"""Nodes of a group that one answer has."""
_MOST_CELLS: Final = 20_000
"""Elements of a table."""
_MOST_LABELS: Final = 64
"""Coordinates that one answer has."""
_MOST_SAVED: Final = 2**28
"""Bytes of a selection that is saved."""
_MOST_OF_A_NAME: Final = 64
"""Characters that count of what a page calls itself."""
_SECONDS: Final = 0.25
_MOST_SECONDS: Final = 2.0
"""How long an answer may take that is given as far as it has come: as a rule, and at most."""


class Refusal(Exception):  # noqa: N818 - what a client asked for is not there, or makes no sense
    """An answer that is no value: its status, and the reason in words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def view_routes(served: Mapping[str, Served], origins: Collection[str] = ()) -> list[Route]:
    """Return the routes of the page and of what it asks for; ``origins`` are those whose pages may read, too."""
    pages = Pages(served)

    async def redirect(request: Request) -> Response:
        return RedirectResponse("view/")

    async def nodes(request: Request) -> Response:
        return JSONResponse({"nodes": list(served), "origins": sorted(origins)})

    def endpoint(work: Callable[[Viewed, str, _Query, Callable[[], bool]], Response]) -> Callable[..., Any]:
        async def answer(request: Request) -> Response:
            name = request.path_params["name"]
            if name not in served:
                return not_found("nothing of this name is served")
            query = _Query(request.query_params)
            path = query.text("path").strip("/")

            def run(gone: Callable[[], bool]) -> Response:
                found = pages.viewed(name, query.page())
                try:
                    response = work(found, path, query, gone)
                except ChangedError as error:
                    response = JSONResponse({"changed": str(error)}, 409)
                response.headers["zardine-meter"] = json.dumps(found.meter())
                return response

            try:
                response = await while_waited_for(request, run)
            except Refusal as refusal:
                response = Response(f"{refusal}\n", refusal.status, media_type="text/plain")
            return Response(status_code=499) if response is None else response

        return answer

    async def verify(request: Request) -> Response:
        name, query = request.path_params["name"], _Query(request.query_params)
        if name not in served:
            return not_found("nothing of this name is served")
        found = await in_thread(pages.viewed, name, query.page())
        lines = verification(found.served, query.text("path").strip("/"))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    return [
        Route("/view", redirect),
        Route("/view/nodes.json", nodes),
        *(Route(f"/view/api/{{name}}/{name}", endpoint(work)) for name, work in _ENDPOINTS.items()),
        Route("/view/api/{name}/verify", verify),
        Route("/view/{file:path}", _file),
    ]


async def _file(request: Request) -> Response:
    name = request.path_params["file"] or "index.html"
    path = PurePosixPath(name)
    if path.suffix not in _TYPES or ".." in path.parts or path.is_absolute() or "\\" in name:
        return not_found("the page has no such file")
    found = files("zardine.server.viewer").joinpath("page", *path.parts)
    if not found.is_file():
        return not_found("the page has no such file")
    body = await in_thread(found.read_bytes)
    return Response(body, media_type=_TYPES[path.suffix], headers={"content-security-policy": _POLICY})


class _Query:
    """The parameters of a request, checked."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def text(self, name: str, default: str = "") -> str:
        return self._parameters.get(name, default)

    def page(self) -> str:
        """Return what the page calls itself."""
        return self.text("page")[:_MOST_OF_A_NAME]

    def number(self, name: str, default: int | None = None) -> int:
        text = self._parameters.get(name)
        if text is None and default is not None:
            return default
        if text is None or not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 19):
            raise Refusal(400, f"{name} is an integer, not {text!r}")
        return int(text)

    def numbers(self, name: str, count: int) -> tuple[int, ...]:
        text = self._parameters.get(name, "")
        parts = text.split(",") if text else []
        if len(parts) != count or not all(each.isascii() and each.isdigit() and len(each) < 19 for each in parts):
            raise Refusal(400, f"{name} is {count} numbers with commas between, not {text!r}")
        return tuple(map(int, parts))

    def axes(self, rank: int) -> tuple[int, ...]:
        """Return one axis, or two different ones; none of an array without any."""
        found = self.numbers("axes", min(rank, self.text("axes").count(",") + 1))
        if len(found) > 2 or len(set(found)) != len(found) or any(axis >= rank for axis in found):
            raise Refusal(400, f"axes are one or two different ones of {rank}")
        return found

    def corners(self, rank: int) -> list[list[float]] | None:
        """Return the lowest and the highest corner of a box; ``None`` where none is given."""
        text = self._parameters.get("box")
        if not text:
            return None
        try:
            found = [float(each) for each in text.split(",")]
        except ValueError:
            found = []
        if len(found) != 2 * rank or not np.isfinite(found).all():
            raise Refusal(400, f"box is {2 * rank} numbers, the lowest and the highest corner, not {text[:99]!r}")
        return [found[:rank], found[rank:]]

    def seconds(self) -> float:
        try:
            found = float(self._parameters.get("seconds", _SECONDS))
        except ValueError:
            found = _SECONDS
        return min(max(found, 0.0), _MOST_SECONDS)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        found = self._parameters.get(name, choices[0])
        if found not in choices:
            raise Refusal(400, f"{name} is one of {', '.join(choices)}, not {found!r}")
        return found

    def at(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        found = self.numbers("at", len(shape))
        if any(i >= length for i, length in zip(found, shape, strict=True)):
            raise Refusal(400, f"an index is beyond the array of shape {shape}")
        return found

    def snapshot(self) -> int | None:
        return self.number("snapshot") if "snapshot" in self._parameters else None

    def view(self, array: Array) -> View:
        """Return the picture that is asked for: ``axes``, ``at``, ``box`` of elements, ``step`` of each axis."""
        if array.ndim == 0 or array.size == 0:
            raise Refusal(400, "an array without an axis, or without elements, has no picture")
        at = self.at(array.shape)
        axes = self.axes(array.ndim)
        box, steps = self.numbers("box", 2 * len(axes)), self.numbers("step", len(axes))
        frames = []
        for number, axis in enumerate(axes):
            start, stop, step = box[2 * number], box[2 * number + 1], steps[number]
            if not 0 <= start < stop <= array.shape[axis] or step < 1:
                raise Refusal(400, f"the box is not within the array of shape {array.shape}, or a step is below 1")
            frames.append(Frame(start - start % step, stop, step))
        rows = frames[0] if len(axes) == 2 else Frame(0, 1, 1)
        if rows.pixels * frames[-1].pixels > MOST_PIXELS:
            raise Refusal(400, f"a picture has {MOST_PIXELS} pixels at most")
        down = axes[0] if len(axes) == 2 else None
        field = self.text("field") or None
        if (field is None) != (array.dtype.names is None) or (field and field not in (array.dtype.names or ())):
            raise Refusal(400, f"field is one of {array.dtype.names}")
        kind = kind_of(array.dtype if field is None else array.dtype[field])
        if kind not in ("number", "complex", "time"):
            raise Refusal(400, f"elements of {array.metadata.data_type.name} have no picture")
        plain = tuple(0 if axis in axes else i for axis, i in enumerate(at))
        reduction = cast(Reduction, self.choice("reduce", REDUCTIONS))
        return View(down, axes[-1], plain, rows, frames[-1], reduction, field, self.choice("part", PARTS))


def _missing(what: str, path: str) -> str:
    shown = path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"
    return f"there is no {what} {shown!r} here"


_LONGEST: Final = 200
"""Characters of a path that an error shows at most."""


def _members(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    count = min(max(query.number("count", 100), 1), _MOST_MEMBERS)
    found = members(viewed.served, path, query.text("contains"), max(query.number("start", 0), 0), count)
    if found is None:
        raise Refusal(404, _missing("group", path))
    return _json(found)


def _node(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    node = viewed.served.node(path)
    if node is None:
        raise Refusal(404, _missing("array or group", path))
    watch = {"watch": WATCH if viewed.store.has_cheap_looks else WATCH_FAR}
    if isinstance(node, GroupMetadata):
        facts = {**group_facts(viewed.served, node, path), **watch}
        if not is_vectors(node):
            return _json({**facts, "state": viewed.group_state(path, node.zarr_format)})
        steady = viewed.steady(path)
        return _json({**facts, "snapshot": steady.number, "vectors": describe(viewed.place(path, steady))})
    return _json({**array_facts(viewed.served, _snapshot(viewed, path, None), path), **watch})


def _snapshot(viewed: Viewed, path: str, number: int | None) -> Snapshot:
    found = viewed.snapshot(path, number)
    if found is None:
        raise Refusal(404, _missing("array", path))
    return found


def _picture(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    snapshot = _snapshot(viewed, path, query.snapshot())
    source, view, level = coarser(viewed.served, snapshot, path, query.view(snapshot.array))
    picture = picture_of(source, view)
    draw(picture, query.seconds(), gone)
    pixels, states = picture.canvas.finished()
    at = list(query.at(snapshot.array.shape))
    down, across = level["factors"]
    facts = {
        "rows": [each * down for each in (view.rows.start, view.rows.stop, view.rows.step)],
        "columns": [each * across for each in (view.columns.start, view.columns.stop, view.columns.step)],
        "level": level["path"],
        "chunks": picture.seen,
        "total": picture.total,
        "damaged": picture.damaged,
        "missing": picture.missing,
        "finished": picture.is_finished,
        "labels": labels(viewed.served, snapshot, path, tuple(at)),
    }
    return _packed(facts, {"pixels": pixels, "states": states})


def _expression(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """Return the Python expression of a box of ``axes``, with all of the axes ``whole`` and one index of each other."""
    snapshot = _snapshot(viewed, path, query.snapshot())
    shape = snapshot.array.shape
    spans: list[Span] = list(query.at(shape)) if snapshot.array.size else [None] * len(shape)
    axes = query.axes(len(shape))
    box = query.numbers("box", 2 * len(axes)) if query.text("box") else None
    for number, axis in enumerate(axes):
        low, high = (0, shape[axis]) if box is None else box[2 * number : 2 * number + 2]
        if not 0 <= low <= high <= shape[axis]:
            raise Refusal(400, f"the box is not within the array of shape {shape}")
        spans[axis] = None if (low, high) == (0, shape[axis]) or low == high else (low, high)
    whole = query.number("whole", -1)
    if 0 <= whole < len(shape):
        spans[whole] = None
    return _json({"expression": expression(viewed.served, snapshot, path, spans, query.text("field") or None)})


def _value(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    snapshot = _snapshot(viewed, path, query.snapshot())
    at = query.at(snapshot.array.shape)
    found = _cell(snapshot, at)
    found["labels"] = labels(viewed.served, snapshot, path, at)
    return _json(found)


def _cell(snapshot: Snapshot, at: tuple[int, ...]) -> dict[str, Any]:
    part = next(snapshot.parts(at, tuple(i + 1 for i in at)))
    seen = next(snapshot.read(part))
    if seen.error is not None:
        return {"state": "damaged", "error": str(seen.error)}
    if seen.values is None:
        return {"state": "missing", "text": exact(snapshot.array.metadata.fill[()])}
    value = seen.values[part.inner(0)].reshape(-1)[0]
    absent = snapshot.marks.absent(np.asarray(value))
    return {"state": "fill" if absent is not None and absent.any() else "value", "text": exact(value)}


def _table(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """Exact texts of a block; ``null`` where a chunk is damaged."""
    snapshot = _snapshot(viewed, path, query.snapshot())
    array = snapshot.array
    if array.size == 0:
        return _json({"cells": [], "damaged": 0, "labels": []})
    starts, stops = list(query.at(array.shape)), [i + 1 for i in query.at(array.shape)]
    axes = query.axes(array.ndim)
    counts = query.numbers("count", len(axes))
    for axis, count in zip(axes, counts, strict=True):
        stops[axis] = min(starts[axis] + max(count, 1), array.shape[axis])
    lengths = [stop - start for start, stop in zip(starts, stops, strict=True)]
    if int(np.prod(lengths)) > _MOST_CELLS:
        raise Refusal(400, f"a table has {_MOST_CELLS} cells at most")
    cells = np.empty(lengths, object)
    damaged = 0

    def read(part: GridPart) -> None:
        nonlocal damaged
        for i, seen in enumerate(() if gone() else snapshot.read(part)):
            place = part.outer(i)
            if seen.error is not None:
                damaged += 1
            elif seen.values is None:
                cells[place] = exact(array.metadata.fill[()])
            else:
                block = seen.values[part.inner(i)]
                texts = np.empty(block.shape, object)
                for index in np.ndindex(block.shape):
                    texts[index] = exact(block[index])
                cells[place] = texts

    for_each(read, snapshot.parts(tuple(starts), tuple(stops)), int(np.prod(lengths)), most_requests(array.store))
    order = [axis for axis in range(array.ndim) if axis not in axes] + list(axes)
    plain = cells.transpose(order).reshape([lengths[axis] for axis in axes] or [1])
    along = [labels_along(viewed.served, snapshot, path, axis, starts[axis], stops[axis]) for axis in axes]
    return _json({"cells": plain.tolist(), "damaged": damaged, "labels": along})


def _labels(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """The coordinates, as text, at up to :data:`_MOST_LABELS` indices of one axis.

    With ``box``, two indices, round dates between these as ``ticks``, about as many, if the coordinates are times.
    """
    snapshot = _snapshot(viewed, path, query.snapshot())
    shape = snapshot.array.shape
    axis = query.axes(len(shape))[0] if shape else 0
    count = query.text("index").count(",") + 1
    if not shape or count > _MOST_LABELS:
        raise Refusal(400, f"labels are those of at most {_MOST_LABELS} indices of an axis")
    if query.text("box"):
        low, high = query.numbers("box", 2)
        if not low <= high < shape[axis]:
            raise Refusal(400, f"the box is not within the array of shape {shape}")
        wanted = min(max(query.number("count", count), 1), _MOST_LABELS)
        dates = dates_along(viewed.served, snapshot, path, axis, (low, high), wanted)
        if len(dates) > 1:
            return _json({"ticks": dates})
    found = []
    for index in query.numbers("index", count):
        if index >= shape[axis]:
            raise Refusal(400, f"index {index} is beyond the axis of length {shape[axis]}")
        at = tuple(index if i == axis else 0 for i in range(len(shape)))
        found.append(labels(viewed.served, snapshot, path, at)[axis])
    return _json({"labels": found})


def _chunk(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    snapshot = _snapshot(viewed, path, query.snapshot())
    return _json(chunk_at(snapshot, query.at(snapshot.array.shape)))


def _objects(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    snapshot = _snapshot(viewed, path, query.snapshot())
    return _json(objects_of(snapshot, query.view(snapshot.array), gone))


def _advice(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """What a plane as it is seen, and a series through it, cost with other chunks and shards."""
    array = _snapshot(viewed, path, query.snapshot()).array
    if array.size == 0 or array.ndim == 0:
        raise Refusal(400, "an array without an axis, or without elements, has no other shapes")
    axes = query.axes(array.ndim)
    lines = [axis for axis in range(array.ndim) if axis not in axes] or [axes[-1]]
    box = ",".join(str(length) if axis in axes else "1" for axis, length in enumerate(array.shape))
    found = zardine.advise(array, access=[f"box:{box}", f"line:{lines[0]}"], store=array.store, ratio=1.0)
    names = ["the plane seen", f"a series along {lines[0]}"]
    choices = [
        {
            "name": each.name,
            "chunks": each.chunks,
            "shards": each.shards,
            "objects": each.objects,
            "reads": [
                {"name": name, "requests": cost.requests, "nbytes": cost.nbytes}
                for name, cost in zip(names, each.reads, strict=True)
            ],
        }
        for each in found.choices
    ]
    return _json({"choices": choices, "axis": lines[0]})


def _geometry(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    node = viewed.served.node(path)
    if not isinstance(node, GroupMetadata) or not is_vectors(node):
        raise Refusal(404, _missing("store of Zarr Vectors", path))
    place = viewed.place(path, viewed.steady(path, query.snapshot()).while_waited_for(gone))
    facts = describe(place)
    level = query.number("level", 0)
    found = [each for each in facts.get("levels", ()) if each["level"] == level]
    if not found:
        raise Refusal(400, f"there is no level {level}")
    box = query.corners(len(facts["axes"]))
    if found[0]["vertex_count"] * share_of(box, facts["bounds"]) > MOST_VERTICES:
        raise Refusal(
            400, f"about {MOST_VERTICES} vertices are shown at a time: choose a smaller box, or another level"
        )
    attribute = query.text("attribute") or None
    if attribute is not None and attribute not in found[0]["vertex_attributes"]:
        raise Refusal(400, f"there is no attribute {attribute!r} of vertices")
    return _packed(*geometry(place, level, box, attribute))


def _changes(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """Whether a group, vectors or an array are as the page knows them."""
    node = viewed.served.node(path)
    if isinstance(node, GroupMetadata) and query.text("state"):
        if viewed.group_state(path, node.zarr_format) != query.text("state"):
            viewed.served.forget_all()
            raise ChangedError("a group, or what is in it")
    elif isinstance(node, GroupMetadata) and is_vectors(node):
        viewed.steady(path, query.snapshot()).check()
    elif node is None or (query.text("state") and not isinstance(node, GroupMetadata)):
        raise ChangedError("what was there is no more")
    else:
        _snapshot(viewed, path, query.snapshot()).check()
    return _json({"changed": False})


def _npy(viewed: Viewed, path: str, query: _Query, gone: Callable[[], bool]) -> Response:
    """The elements of the picture's box, in full, as a file of NumPy's format. A damaged chunk is an error."""
    import io

    snapshot = _snapshot(viewed, path, query.snapshot())
    array = snapshot.array
    if array.dtype.hasobject or array.dtype.kind == "T":
        raise Refusal(400, "elements of this type have no form in .npy files")
    view = query.view(array)
    index: list[int | slice] = list(view.at)
    index[view.across] = slice(query.numbers("box", 4 if view.down is not None else 2)[-2], view.columns.stop)
    if view.down is not None:
        index[view.down] = slice(query.numbers("box", 4)[0], view.rows.stop)
    count = int(np.prod([i.stop - i.start for i in index if isinstance(i, slice)], dtype=object))
    if count * array.dtype.itemsize > _MOST_SAVED:
        raise Refusal(400, f"{count * array.dtype.itemsize} bytes are more than {_MOST_SAVED}: zoom in to save less")
    values = np.asarray(array[tuple(index)])
    if view.down is not None and view.down > view.across:
        values = values.T
    body = io.BytesIO()
    np.save(body, values, allow_pickle=False)
    name = re.sub(r"[^\w .+@-]", "_", path.rpartition("/")[2] or "array", flags=re.ASCII)
    return Response(
        body.getvalue(),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}.npy"'},
    )


_ENDPOINTS: Final[dict[str, Callable[[Viewed, str, _Query, Callable[[], bool]], Response]]] = {
    "members": _members,
    "node": _node,
    "picture": _picture,
    "value": _value,
    "expression": _expression,
    "table": _table,
    "labels": _labels,
    "chunk": _chunk,
    "objects": _objects,
    "changes": _changes,
    "advice": _advice,
    "geometry": _geometry,
    "npy": _npy,
}


def _json(value: Any) -> Response:
    return Response(as_json(value), media_type="application/json")


def _packed(facts: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Response:
    """Answer with a line of JSON, padded to a multiple of 8 bytes, and the bytes of arrays, each so padded."""
    described, bodies = [], []
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        described.append({"name": name, "type": little.dtype.str.strip("<|"), "shape": list(array.shape)})
        bodies.append(little.tobytes() + b"\0" * (-little.nbytes % 8))
    head = as_json({**facts, "arrays": described})
    head += b" " * (-(len(head) + 1) % 8) + b"\n"
    return Response(head + b"".join(bodies), media_type="application/octet-stream")


__all__ = ["view_routes"]
