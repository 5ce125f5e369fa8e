"""Reading chunk by chunk, for who shows what is stored: each with its place, its version, and its damage.

The kernel decodes where it can, a few chunks at a time in threads; what it refuses goes through the codec chain, which
says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.file_index import with_writer
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import one_chunk
from zardine.engine.locate import FoundChunks
from zardine.engine.read import decode_chunk, find_part, row_batches, stored_bytes
from zardine.engine.workers import for_each
from zardine.errors import CorruptionError, DataError
from zardine.indexing.plan import ObjectPart
from zardine.settings import thread_count
from zardine.stores.base import Version
from zardine.stores.file_seam import files_to_edit, files_to_read


@dataclass(frozen=True, slots=True, eq=False)
class SeenChunk:
    """One chunk, as it was found: its ``values``, or that it is not stored, or the ``error`` that it gives."""

    place: tuple[int, ...]
    """Grid coordinates of the chunk."""
    key: str
    """Of the stored object: the chunk itself, or its shard."""
    version: Version | None
    """Of that object; ``None`` where it is not stored, or the store has no versions."""
    object_is_stored: bool
    byte_range: tuple[int, int] | None = None
    """Offset and length in the object; ``None``: the chunk is not stored."""
    values: npt.NDArray[Any] | None = None
    """The whole chunk, also what lies beyond the array."""
    error: DataError | None = None


def read_each(handle: ArrayHandle, part: ObjectPart) -> Iterator[SeenChunk]:
    """Yield the chunks that a plan takes of one stored object, in its order. Damage is told, not raised.

    All of them are of one version of the object. Raises :class:`~zardine.errors.ArrayChangedError` where the array is
    of another generation by now, and :class:`~zardine.errors.StoreError` where the store fails.
    """
    key = handle.key(part.object)
    check_fresh(handle)
    try:
        found = find_part(handle, part, key, files=files_to_read(handle.store) is not None, together=1)
    except DataError as error:
        check_fresh(handle, surely=True)
        version = handle.store.version(key)
        for i in range(part.count):
            yield SeenChunk(part.chunk(i), key, version, True, error=error)
        return
    batches = row_batches(handle, part.count)
    together = 2 * thread_count()
    with closing(found):
        for start in range(0, len(batches), together):
            group = batches[start : start + together]
            seen: dict[int, SeenChunk] = {}

            def see(rows: range, seen: dict[int, SeenChunk] = seen) -> None:
                for i in rows:
                    seen[i] = _see(handle, part, i, found, key)

            for_each(see, group, len(group))
            yield from (seen[i] for rows in group for i in rows)


def _see(handle: ArrayHandle, part: ObjectPart, i: int, found: FoundChunks, key: str) -> SeenChunk:
    place = part.chunk(i)
    data = stored_bytes(handle, part, i, found, key)
    if data is None:
        return SeenChunk(place, key, found.version, found.is_stored)
    where = found.byte_range(i)
    try:
        values = _decode(handle, part, i, data, key, where)
    except DataError as error:
        edited = isinstance(error, CorruptionError) and (found.in_file or files_to_edit(handle.store) is not None)
        if edited and not found.unlocked:  # perhaps someone was editing the file: look again when nobody does
            with closing(find_part(handle, part, key, files=True, unlocked=True)) as settled:
                return _see(handle, part, i, settled, key)
        check_fresh(handle, surely=True)
        if isinstance(error, CorruptionError):
            error = with_writer(error, found.stalled_file())
        return SeenChunk(place, key, found.version, True, where, error=error)
    if not handle.layout.is_checked and not found.unlocked and not found.is_unedited():
        with closing(find_part(handle, part, key, files=True, unlocked=True)) as settled:
            return _see(handle, part, i, settled, key)
    if not handle.layout.is_checked:
        found.check_untorn(key)
    return SeenChunk(place, key, found.version, True, where, values)


def _decode(
    handle: ArrayHandle, part: ObjectPart, i: int, data: BytesLike, key: str, where: tuple[int, int]
) -> npt.NDArray[Any]:
    layout = handle.layout
    shape, dtype = part.chunk_shape(i), layout.metadata.dtype
    if layout.pipeline is not None and layout.fits_memory and one_chunk(shape) is not None:
        try:
            out = np.empty(shape, dtype)
            place = np.zeros(1, np.int64), np.full(1, len(data), np.int64)
            decoded = layout.pipeline.decode_box(
                [(data, *place)],
                one_chunk(shape),
                (0,) * len(shape),
                out.view(f"V{dtype.itemsize}"),
                most=len(data),
                missing=False,
                threads=1,
            )
            if decoded is None:
                return out
        except MemoryError:
            pass  # told below
    return decode_chunk(handle, part, i, data, key, where)


__all__ = ["SeenChunk", "read_each"]
