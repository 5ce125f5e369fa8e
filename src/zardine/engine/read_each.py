"""Reading chunk by chunk, for who shows what is stored: each with its place, its version, and its damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import FoundChunks
from zardine.engine.read import decode_chunk, find_part, stored_bytes
from zardine.errors import CorruptionError, DataError
from zardine.indexing.plan import ObjectPart
from zardine.stores.base import Version


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
    """Yield the chunks that a plan takes of one stored object. Damage is told, not raised.

    All of them are of one version of the object. Raises :class:`~zardine.errors.ArrayChangedError` where the array is
    of another generation by now, and :class:`~zardine.errors.StoreError` where the store fails.
    """
    key = handle.key(part.object)
    check_fresh(handle)
    try:
        found = find_part(handle, part, key, files=handle.store.gives_files)
    except DataError as error:
        check_fresh(handle, surely=True)
        version = handle.store.version(key)
        for i in range(part.count):
            yield SeenChunk(part.chunk(i), key, version, True, error=error)
        return
    with closing(found):
        for i in range(part.count):
            yield _see(handle, part, i, found, key)


def _see(handle: ArrayHandle, part: ObjectPart, i: int, found: FoundChunks, key: str) -> SeenChunk:
    place = part.chunk(i)
    data = stored_bytes(handle, part, i, found, key)
    if data is None:
        return SeenChunk(place, key, found.version, found.is_stored)
    where = found.byte_range(i)
    try:
        values = decode_chunk(handle, part, i, data, key, where)
    except DataError as error:
        edited = isinstance(error, CorruptionError) and (found.in_file or handle.store.edits_files)
        if edited and not found.unlocked:  # perhaps someone was editing the file: look again when nobody does
            with closing(find_part(handle, part, key, files=True, unlocked=True)) as settled:
                return _see(handle, part, i, settled, key)
        check_fresh(handle, surely=True)
        return SeenChunk(place, key, found.version, True, where, error=error)
    if not found.unlocked and not handle.layout.is_checked and not found.is_unedited():
        with closing(find_part(handle, part, key, files=True, unlocked=True)) as settled:
            return _see(handle, part, i, settled, key)
    return SeenChunk(place, key, found.version, True, where, values)


__all__ = ["SeenChunk", "read_each"]
