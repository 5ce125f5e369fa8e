"""The stored arrays that are read and written: shapes, chunks and codecs, as the metadata documents they are made from.

Every implementation gets the same document and the same files. Shard indexes end with crc32c, chunks have no checksum
(no peer adds one), except in the layouts named ``+crc``, which show what zardine's own default costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

SIDE = 384
"""Edge of the volume: 384³ uint16, 113 MB."""
CODECS = ("lz4", "zstd", "gzip", "raw")
INNER = {"4k": (8, 16, 16), "8k": (16, 16, 16), "64k": (32, 32, 32), "512k": (64, 64, 64), "4m": (128, 128, 128)}
"""Inner chunk shapes, named by their bytes."""
SHARD = (192, 192, 192)
LARGE_SHARD = (SIDE,) * 3
"""Of the chunks that do not divide the other one."""
UNSHARDED = (96, 96, 96)


@dataclass(frozen=True)
class Layout:
    """One way to store an array."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    chunk: tuple[int, ...]
    shard: tuple[int, ...] | None
    codec: str
    checksum: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    @property
    def itemsize(self) -> int:
        return int(self.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8

    def document(self) -> dict[str, Any]:
        """The ``zarr.json``."""
        codecs = [BYTES if self.itemsize > 1 else {"name": "bytes"}]
        if self.codec != "raw":
            codecs.append(compressor(self.codec, self.itemsize))
        if self.checksum:
            codecs.append(CRC32C)
        if self.shard is not None:
            settings = {"chunk_shape": list(self.chunk), "codecs": codecs, "index_codecs": [BYTES, CRC32C]}
            codecs = [{"name": "sharding_indexed", "configuration": settings | {"index_location": "end"}}]
        outer = self.chunk if self.shard is None else self.shard
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(outer)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": [0.0, 0.0] if self.dtype.startswith("complex") else 0,
            "codecs": codecs,
            "attributes": {},
        }


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C = {"name": "crc32c"}


def compressor(codec: str, itemsize: int) -> dict[str, Any]:
    """The codec's entry in a document, with the settings that all of this benchmark uses."""
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": itemsize, "blocksize": 0}
    if itemsize == 1:
        blosc["shuffle"] = "noshuffle"
    settings = {"lz4": blosc, "zstd": {"level": 3, "checksum": False}, "gzip": {"level": 5}}[codec]
    return {"name": "blosc" if codec == "lz4" else codec, "configuration": settings}


def volume(size: str, codec: str, *, checksum: bool = False) -> Layout:
    """The volume in shards of 192³ with inner chunks of ``size``, or ``"unsharded"`` in chunks of 1.7 MB.

    Chunks of 4 MB lie in one shard.
    """
    name = f"{codec}-{size}" + ("+crc" if checksum else "")
    shape = (SIDE,) * 3
    if size == "unsharded":
        return Layout(name, shape, "uint16", UNSHARDED, None, codec, checksum)
    return Layout(name, shape, "uint16", INNER[size], LARGE_SHARD if size == "4m" else SHARD, codec, checksum)


def edited(codec: str, *, checksum: bool = False) -> Layout:
    """One full shard of 512 inner chunks of 64 KB."""
    name = f"edit-{codec}" + ("+crc" if checksum else "")
    return Layout(name, (256,) * 3, "uint16", (32,) * 3, (256,) * 3, codec, checksum)


def large(codec: str, *, checksum: bool = False) -> Layout:
    """One shard of 1 GiB, of 16,384 inner chunks of 64 KB."""
    name = f"large-{codec}" + ("+crc" if checksum else "")
    return Layout(name, (1024, 1024, 512), "uint16", (32,) * 3, (1024, 1024, 512), codec, checksum)


def filled(codec: str, *, checksum: bool = False) -> Layout:
    """One shard of 216 inner chunks of 64 KB, to be filled one by one."""
    return Layout(f"fill-{codec}", SHARD, "uint16", (32,) * 3, SHARD, codec, checksum)


def rows(codec: str, *, checksum: bool = False) -> Layout:
    """A table of float32 without rows, 4,096 columns: 16 KB a row."""
    return Layout(f"rows-{codec}", (0, 4096), "float32", (16, 512), (256, 4096), codec, checksum)


DTYPES = ("uint8", "int16", "float32", "float64", "complex128")
"""Elements of 1, 2, 4, 8 and 16 bytes."""
SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1_000_003,), (4_096,), (262_144,)),
    2: ((1003, 997), (64, 100), (512, 500)),
    3: ((101, 97, 103), (10, 24, 32), (50, 96, 64)),
    4: ((31, 33, 29, 34), (8, 4, 16, 16), (16, 16, 32, 32)),
    5: ((17, 15, 16, 14, 18), (4, 5, 8, 4, 6), (16, 10, 16, 8, 18)),
}
"""Shape, inner chunk and shard by number of dimensions: about a million elements, nothing divides evenly."""


def variety() -> list[Layout]:
    """25 arrays: each element size in 1 to 5 dimensions; codecs take turns, every sixth is not sharded."""
    found = []
    for i, dtype in enumerate(DTYPES):
        for ndim, (shape, chunk, shard) in SHAPES.items():
            codec = CODECS[(i + ndim) % len(CODECS)]
            sharded = len(found) % 6 != 5
            name = f"{dtype}-{ndim}d-{codec}{'' if sharded else '-unsharded'}"
            found.append(Layout(name, shape, dtype, chunk if sharded else shard, shard if sharded else None, codec))
    return found


def named(name: str) -> Layout:
    """The layout that is called so."""
    for layout in variety():
        if layout.name == name:
            return layout
    base, _, crc = name.partition("+")
    first, _, second = base.partition("-")
    special = {"edit": edited, "fill": filled, "rows": rows, "large": large}
    if first in special:
        return special[first](second, checksum=bool(crc))
    return volume(second, first, checksum=bool(crc))
