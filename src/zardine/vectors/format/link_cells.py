"""The cells of link arrays: rows of endpoint numbers, plain or in groups. Bytes to arrays and back.

Links within a chunk are plain rows. All others are in groups: ``i64 K``, ``K`` times ``i64`` the byte where a group
starts, and then the rows; each write may add a group, and readers take them all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import ChunkDecodeError
from zardine.vectors.format.ragged import Ints

_ONE_GROUP = np.array([1, 0], "<i8").tobytes()


def encode_links(rows: npt.NDArray[Any], *, grouped: bool) -> bytes:
    """The cell that holds ``rows`` (of the stored integer type); ``grouped``: as one group."""
    return (_ONE_GROUP if grouped else b"") + rows.tobytes()


def decode_links(blob: bytes, dtype: np.dtype[Any], width: int, *, grouped: bool) -> Ints:
    """The rows ``(M, width)`` of a cell, groups one after the other.

    Raises :class:`~zardine.errors.ChunkDecodeError` for bytes that are not whole rows.
    """
    data: bytes | memoryview = blob
    if grouped and blob:
        if len(blob) < 8:
            raise ChunkDecodeError(f"{len(blob)} bytes are too few for the number of link groups")
        count = int.from_bytes(blob[:8], "little", signed=True)
        start = 8 + 8 * count
        if count < 0 or start > len(blob):
            raise ChunkDecodeError(f"{count} groups of links in {len(blob)} bytes")
        edges = [*np.frombuffer(blob, "<i8", count, 8).tolist(), len(blob) - start]
        if edges[0] != 0 or any(a > b for a, b in pairwise(edges)):
            raise ChunkDecodeError("the groups of links do not follow each other")
        data = memoryview(blob)[start:]
    if len(data) % (dtype.itemsize * width):
        raise ChunkDecodeError(f"{len(data)} bytes are no rows of {width} numbers of {dtype.itemsize} bytes")
    return np.frombuffer(data, dtype).astype(np.int64).reshape(-1, width)
