"""Bytes made by hand, the same on every machine; see ``make_hand_made_old.py``."""

from __future__ import annotations

import itertools
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs.blosc
import numpy as np

numcodecs.blosc.use_threads = False  # so that blocks are always written in the same order

SHAPE, CHUNKS = (7, 5), (4, 3)
EXAMPLE_ATTRIBUTES = {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
"""The attributes in the texts of v1 and v2."""


def put(path: Path, value: bytes | dict[str, Any]) -> None:
    """Store bytes, or a JSON document as zarr-python laid it out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value, indent=4, sort_keys=True).encode())


def chunk_box(place: tuple[int, ...], chunks: tuple[int, ...]) -> tuple[slice, ...]:
    """The part of an array that one chunk covers."""
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, chunks, strict=True))


def chunks_of(
    values: np.ndarray[Any, Any], chunks: tuple[int, ...], beyond: Any = None
) -> Iterator[tuple[tuple[int, ...], np.ndarray[Any, Any]]]:
    """Grid position and elements of each chunk, with ``beyond`` (zeros) where it sticks out of the array."""
    counts = [-(-length // size) for length, size in zip(values.shape, chunks, strict=True)]
    for place in itertools.product(*(range(count) for count in counts)):
        whole = np.zeros(chunks, values.dtype)
        if beyond is not None:
            whole[...] = beyond
        part = values[chunk_box(place, chunks)]
        whole[tuple(slice(length) for length in part.shape)] = part
        yield place, whole


def gzip_member(value: bytes, level: int) -> bytes:
    """A gzip file with nothing in its header that differs between machines."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
    body = deflate.compress(value) + deflate.flush()
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + body + struct.pack("<II", zlib.crc32(value), len(value))


def zstd_frame(value: bytes) -> bytes:
    """A Zstandard frame with one block, not compressed."""
    size = struct.pack("<B", len(value)) if len(value) < 256 else struct.pack("<H", len(value) - 256)
    descriptor = 0x20 | (0x40 if len(value) >= 256 else 0)
    block = struct.pack("<I", len(value) << 3 | 1)[:3]
    return struct.pack("<IB", 0xFD2FB528, descriptor) + size + block + value


def blosc(values: np.ndarray[Any, Any], cname: str = "lz4", clevel: int = 5, shuffle: int = 1) -> bytes:
    """Blosc over the elements in the order in which they lie in memory."""
    return bytes(numcodecs.blosc.compress(values.reshape(-1, order="A"), cname.encode(), clevel, shuffle))
