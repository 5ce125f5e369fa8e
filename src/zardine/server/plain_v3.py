"""Any array as plain Zarr v3, made while one asks for it: ``/v3/NAME/...``, unsharded, of types that browsers know.

What other programs may not know becomes the nearest thing that they do: floats of 16 bits and fewer are float32,
integers below a byte int8 or uint8, dates and durations int64 with the attribute ``units``, text of any kind
``string``, structs raw bytes. Byte strings of any length are given as zarr-python calls them,
``variable_length_bytes``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import Response

import zardine
from zardine.errors import ArrayChangedError, InvalidKeyError, StoreError, UnsupportedError, ZardineError
from zardine.hierarchy.find import child_names
from zardine.json_document import JSON
from zardine.metadata.axis_names import XARRAY, dimension_names
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.server.data import MadeValue, not_found, send_value, unknown
from zardine.server.served import Served
from zardine.server.threads import in_large_thread, in_thread
from zardine.storage import MemoryStore
from zardine.stores.base import is_key

_MOST_OF_A_CHUNK: Final = 2**26
"""Bytes of a decoded chunk that is given as it is; larger ones are given in parts."""

_LARGE: Final = 2**22
"""Bytes of a chunk of which few are made at the same time."""

_MOST_BELOW: Final = 1000
"""Nodes below a group whose documents are put into its own."""
_MOST_ASKED: Final = 50
"""The same where each is a request."""

_BYTES: Final = "variable_length_bytes"

_UNITS = {"D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds"}
_UNITS |= {"ns": "nanoseconds"}


@dataclass(frozen=True, slots=True, eq=False)
class PlainArray:
    """An array, and its ``twin`` without chunks, which says how they would be stored as plain v3."""

    source: Array
    twin: Array
    document: bytes

    def has(self, place: tuple[int, ...]) -> bool:
        """Return whether ``place`` is one of the grid of chunks."""
        return all(i * n < length for i, n, length in zip(place, self.twin.chunks, self.twin.shape, strict=True))

    @property
    def chunk_nbytes(self) -> int:
        """The bytes of a decoded chunk."""
        return prod(self.twin.chunks) * self.twin.dtype.itemsize

    def chunk(self, place: tuple[int, ...]) -> bytes:
        """Return the encoded chunk at ``place``."""
        shape = self.twin.chunks
        starts = [i * n for i, n in zip(place, shape, strict=True)]
        try:
            found = self.source[tuple(slice(start, start + n) for start, n in zip(starts, shape, strict=True))]
        except InvalidKeyError as error:  # such as a link that leads out: "not found" would be taken for fill values
            raise StoreError(str(error)) from error
        values = _plain_values(np.asarray(found), self.twin.dtype)
        if values.shape != shape:
            padded = np.full(shape, self.twin.metadata.fill, self.twin.dtype)
            padded[tuple(slice(n) for n in values.shape)] = values
            values = padded
        return bytes(self.twin._handle.layout.chain(shape).encode(values))


_OF_ONE = 2**14
"""Bytes of one of them, about."""


def _known(served: Served, path: str, source: Array, gzip: bool) -> PlainArray:
    """Return how the array at ``path`` is given, as it was made before if the array is the same."""
    known: PlainArray | None = served.made.get((path, gzip))
    if known is None or known.source is not source:
        known = plain(source, gzip)
        served.made.put((path, gzip), known, _OF_ONE)
    return known


def plain(source: Array, gzip: bool = False) -> PlainArray:
    """Return how ``source`` is given: with codec ``bytes``, and ``gzip`` behind it where that is wanted.

    Raises :class:`~zardine.errors.UnsupportedError` for what v3 has no type for.
    """
    dtype = _plain_dtype(source)
    attributes: dict[str, JSON] = dict(source.attrs.asdict())
    names = dimension_names(source.metadata)
    if any(names):
        attributes.pop(XARRAY, None)  # the document says it now
    if source.dtype.kind in "Mm" and "units" not in attributes:
        unit, count = np.datetime_data(source.dtype)
        if unit in _UNITS and count == 1:
            attributes["units"] = _UNITS[unit] + (" since 1970-01-01" if source.dtype.kind == "M" else "")
    fill = np.asarray(source.metadata.fill)
    store = MemoryStore()
    twin = zardine.create_array(
        store,
        shape=source.shape,
        chunks=_chunk_shape(source) if source.ndim else "auto",
        dtype=_BYTES if dtype == np.object_ else dtype,
        fill_value=_plain_values(fill, dtype)[()],
        compressors=[{"name": "gzip", "configuration": {"level": 1}}] if gzip else None,
        filters=None,
        checksum=False,
        attributes=attributes,
        dimension_names=names if any(names) else None,
        zarr_format=3,
    )
    return PlainArray(source, twin, bytes(store.get("zarr.json") or b""))


async def plain_v3(request: Request, served: Served, key: str, gzip: bool = False) -> Response:
    """Answer a request for a document or a chunk of the plain form, with ``gzip`` if chunks are to be compressed."""
    if not is_key(key):
        return not_found("no array or group is called so here")
    media_type = "application/json" if key.endswith("zarr.json") else "application/octet-stream"
    value: MadeValue | None = None
    for last in (False, True):
        try:
            found = await in_thread(_maker, served, key, gzip)
            if found is not None:
                make, nbytes = found
                value = await (in_large_thread if nbytes > _LARGE else in_thread)(MadeValue, make, media_type)
        except ArrayChangedError:
            if last:
                raise
            served.forget_all()
        else:
            break
    if value is None:
        return await unknown(request, served, key, "no array, group or chunk is called so here")
    return await send_value(request, value)


def _maker(served: Served, key: str, gzip: bool) -> tuple[Callable[[], bytes], int] | None:
    """Return what makes the value of ``key``, and about how many bytes it has; ``None`` if there is no such value."""
    parts = key.split("/")
    if parts[-1] == "zarr.json":
        path = "/".join(parts[:-1])
        node = served.node(path)
        if isinstance(node, Array):
            document = _known(served, path, node, gzip).document
        elif node is not None:
            document = _group_document(served, path, node, gzip)
        else:
            return None
        return (lambda: document), len(document)
    for place in range(len(parts) - 1, -1, -1):
        numbers = parts[place + 1 :]
        if parts[place] != "c" or not all(each.isascii() and each.isdigit() and len(each) < 19 for each in numbers):
            continue
        path = "/".join(parts[:place])
        node = served.node(path)
        if isinstance(node, Array) and node.ndim == len(numbers):
            chunk = tuple(map(int, numbers))
            known = _known(served, path, node, gzip)
            if [str(i) for i in chunk] != numbers or not known.has(chunk):
                return None
            return partial(known.chunk, chunk), known.chunk_nbytes
    return None


def _group_document(served: Served, path: str, group: GroupMetadata, gzip: bool) -> bytes:
    """Return the document of a group: with those of all nodes below, if they are few, since clients cannot list."""
    store = MemoryStore()
    zardine.create_group(store, attributes=dict(group.attributes))
    try:
        below = _below(served, path, group)
        for name, node in sorted(below, key=lambda each: each[0]):
            if isinstance(node, Array):
                with suppress(UnsupportedError):  # who asks for that one is told; it harms no other
                    store.set(f"{name}/zarr.json", _known(served, join_path(path, name), node, gzip).document)
            else:
                zardine.create_group(store, path=name, attributes=dict(node.attributes))
    except ArrayChangedError:
        raise
    except ZardineError:  # of a node below: who asks for that is told
        below = []
    if below:
        zardine.consolidate_metadata(store)
    return bytes(store.get("zarr.json") or b"")


def _below(served: Served, path: str, group: GroupMetadata) -> list[tuple[str, Array | GroupMetadata]]:
    """Return the nodes below a group by their paths relative to it; none where they are many, or cannot be listed."""
    most = _MOST_BELOW if served.store.has_cheap_looks else _MOST_ASKED
    found: list[tuple[str, Array | GroupMetadata]] = []
    waiting = [("", group)]
    for above, each in waiting:
        if each.consolidated_metadata is not None:
            names = [join_path(above, name) for name in each.consolidated_metadata]
        elif served.store.supports_listing:
            place = served.key(join_path(path, above))
            names = [join_path(above, name) for name in child_names(served.store, place, each.zarr_format)]
        else:
            return []
        if len(found) + len(names) > most:
            return []
        for name in names:
            node = served.node(join_path(path, name))
            if node is not None:
                found.append((name, node))
            if isinstance(node, GroupMetadata) and each.consolidated_metadata is None:
                waiting.append((name, node))
    return found


def _chunk_shape(source: Array) -> tuple[int, ...]:
    """Return the shape of the inner chunks; of unequal ones the largest; parts of very large ones."""
    shape = [max(1, *(extent for extent, _ in axis.runs)) for axis in source._handle.layout.grids.chunks]
    while prod(shape) * source.dtype.itemsize > _MOST_OF_A_CHUNK:
        longest = shape.index(max(shape))
        shape[longest] = (shape[longest] + 1) // 2
    return tuple(shape)


def _plain_dtype(source: Array) -> np.dtype[Any]:
    dtype, name = source.dtype, source.metadata.data_type.name
    if source.metadata.data_type.of_v2_only and dtype == np.object_:
        raise UnsupportedError(
            f"{source.name} holds Python objects, which Zarr v3 has no data type for: it is served as it is stored, "
            "below /data, and not here"
        )
    if dtype.kind in "Mm":
        return np.dtype(np.int64)
    if dtype.kind in "UTS":
        return np.dtypes.StringDType()
    if dtype.kind == "V" and dtype.isbuiltin == 2:  # of ml_dtypes
        return np.dtype(np.int8 if name.startswith("int") else np.uint8 if name.startswith("uint") else np.float32)
    if dtype.kind == "f" and dtype.itemsize == 2:
        return np.dtype(np.float32)
    return np.dtype(f"V{dtype.itemsize}") if dtype.kind == "V" else dtype.newbyteorder("=")


def _plain_values(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "Mm" or dtype.kind == "V":
        return np.ascontiguousarray(values).reshape(values.shape).view(dtype)
    if values.dtype.kind == "S":
        texts = [each.decode("utf-8", "backslashreplace") for each in values.ravel()]
        return np.array(texts, dtype).reshape(values.shape)
    return values.astype(dtype)
