"""Values that chunks hold beyond the shape of their array: what an array shows there once it grows.

Whoever creates a chunk puts the fill value there. Other values were left by an append that was cut off before the array
had grown, or by other programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.chunk_grids.axis import Axis
from zardine.codecs.chain import CodecChain
from zardine.engine.handle import ArrayHandle
from zardine.errors import DataError
from zardine.indexing.boxes import boxes_beyond
from zardine.indexing.selection import GridSelection
from zardine.tools.report import Flaw

NOTE = Flaw(
    "beyond",
    "it has values beyond the shape of the array, which a larger array would show: left by an append that was cut off, "
    "or by another program; zardine.repair clears them",
    severity="warning",
)


def reaches_beyond(handle: ArrayHandle, coordinates: Sequence[int]) -> bool:
    """Whether a stored object has room for elements beyond the shape, and whether that has to hold the fill value."""
    layout = handle.layout
    if not layout.metadata.fill_is_defined or layout.is_draft:
        return False
    axes = zip(layout.grids.storage, coordinates, strict=True)
    return any(axis.start(i) + axis.extent(i) > axis.length for axis, i in axes)


def has_values_beyond(handle: ArrayHandle, chain: CodecChain, chunk: Sequence[int], data: BytesLike) -> bool:
    """Whether the encoded chunk at the grid coordinates ``chunk`` has other than the fill value beyond the shape."""
    return cut_chunk(handle, chain, chunk, data) is not None


def cut_chunk(handle: ArrayHandle, chain: CodecChain, chunk: Sequence[int], data: BytesLike) -> npt.NDArray[Any] | None:
    """Return the elements of an encoded chunk, with the fill value beyond the shape.

    ``None`` where it has that there already, or cannot be decoded.
    """
    inside = tuple(
        slice(0, max(0, min(axis.extent(i), axis.length - axis.start(i))))
        for axis, i in zip(handle.layout.grids.chunks, chunk, strict=True)
    )
    shape = chain.spec.shape
    if all(each.stop == size for each, size in zip(inside, shape, strict=True)):
        return None
    try:
        values = chain.decode(data)
        made = np.full(shape, chain.spec.fill, values.dtype)
        made[inside] = values[inside]
        beyond = values.copy()
    except (DataError, MemoryError):
        return None
    beyond[inside] = chain.spec.fill
    return None if chain.is_fill(beyond) else made


def beyond(objects: Sequence[Axis], coordinates: Sequence[int]) -> Iterator[GridSelection]:
    """Yield the elements of a stored object beyond the shape, as boxes that do not overlap."""
    starts = [axis.start(i) for axis, i in zip(objects, coordinates, strict=True)]
    stops = [start + axis.extent(i) for start, axis, i in zip(starts, objects, coordinates, strict=True)]
    cuts = [min(stop, axis.length) for stop, axis in zip(stops, objects, strict=True)]
    yield from boxes_beyond(starts, cuts, stops)
