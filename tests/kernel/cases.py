"""Chunks, selections and codecs for the kernel, each beside what NumPy and the Python codecs make of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zardine.codecs.base import SizeLimit
from zardine.codecs.blosc.codec import BloscCodec
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.gzip import GzipCodec
from zardine.codecs.zstd import ZstdCodec
from zardine.errors import ChunkDecodeError
from zardine.kernel import KERNEL

Step = tuple[Any, ...]

CRC: Step = ("crc32c",)
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
BLOSC_NAMES = ("lz4", "lz4hc", "blosclz", "zstd", "zlib")  # numcodecs has no snappy
COMPRESSORS: list[Step] = [
    ("gzip", 5),
    ("zstd", 3, False),
    ("zstd", -5, True),
    *(("blosc", name, 5, shuffle, 2, 0) for name in BLOSC_NAMES for shuffle in (0, 1, 2)),
    ("blosc", "lz4", 0, 1, 4, 0),
    ("blosc", "lz4", 5, 2, 1, 0),
    ("blosc", "zstd", 1, 1, 8, 512),
]

NUMBERS = (-(2**63), -(2**31), -2, 0, 1, 2**16, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
"""Offsets, lengths and other numbers that a hostile document or index may hold."""
DTYPES = ["bool", "u1", "<u2", "<i4", "<f8", "<c16", "V3", "V12", "<c8", "V24"]
STEPS: list[list[Step]] = [
    [],
    [CRC],
    [CRC, CRC],
    *([each] for each in COMPRESSORS),
    [COMPRESSORS[0], CRC],
    [CRC, COMPRESSORS[1], CRC],
    [COMPRESSORS[3], CRC],
    [CRC, CRC, COMPRESSORS[4], CRC, CRC],
]


def codec_of(step: Step) -> Any:
    """The Python codec that does the same."""
    if step[0] == "crc32c":
        return Crc32cCodec()
    if step[0] == "gzip":
        return GzipCodec(level=step[1])
    if step[0] == "zstd":
        return ZstdCodec(level=step[1], checksum=step[2])
    _, cname, clevel, shuffle, typesize, blocksize = step
    return BloscCodec(cname=cname, clevel=clevel, shuffle=SHUFFLES[shuffle], typesize=typesize, blocksize=blocksize)


def encode_bytes(steps: Sequence[Step], data: bytes) -> bytes:
    """``data`` through the Python codecs."""
    for step in steps:
        data = bytes(codec_of(step).encode(data))
    return data


def decode_bytes(steps: Sequence[Step], data: bytes, nbytes: int) -> bytes:
    """``data`` back through the Python codecs; raises what they raise."""
    limits = []
    exact, limit = True, nbytes
    for step in steps:
        limits.append(SizeLimit(limit, exact))
        codec = codec_of(step)
        exact = exact and codec.encoded_size(limit) is not None
        limit = codec.encoded_limit(limit)
    for step, each in zip(reversed(steps), reversed(limits), strict=True):
        data = codec_of(step).decode(data, each)
    if len(data) != nbytes:
        raise ChunkDecodeError(f"{len(data)} bytes, expected {nbytes}")
    return bytes(data)


@dataclass
class Format:
    """Elements, their order and their codecs: a pipeline, and the same in NumPy and Python."""

    dtype: Any
    order: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    swap: bool = False
    fill: Any = 0

    def __post_init__(self) -> None:
        self.dtype = np.dtype(self.dtype)
        self.fill_array = np.zeros((), self.dtype)
        self.fill_array[...] = self.fill

    @property
    def word(self) -> int:
        """Bytes of a word."""
        size = self.dtype.itemsize
        return size // 2 if self.dtype.kind == "c" else size

    def pipeline(self) -> Any:
        """The kernel's."""
        from zardine._kernel import Pipeline

        return Pipeline(
            item_size=self.dtype.itemsize,
            word_size=self.word,
            swap=self.swap,
            is_bool=self.dtype == np.bool_,
            order=self.order,
            steps=self.steps,
            fill=self.fill_array.tobytes(),
        )

    def raw(self, chunk: np.ndarray) -> bytes:
        """The elements as stored, before any bytes -> bytes codec."""
        chunk = np.ascontiguousarray(chunk.transpose(self.order))
        if self.swap:
            words = chunk.reshape(-1).view(f"V{self.word}") if self.word not in (2, 4, 8) else None
            assert words is None
            chunk = chunk.reshape(-1).view(f"u{self.word}").byteswap()
        return chunk.tobytes()

    def unraw(self, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
        """The chunk whose elements are stored as ``data``."""
        array = np.frombuffer(data, np.uint8)
        if self.swap:
            array = array.view(f"u{self.word}").byteswap().view(np.uint8)
        if self.dtype == np.bool_:
            array = (array != 0).view(np.uint8)
        encoded_shape = tuple(shape[axis] for axis in self.order)
        return array.view(self.dtype).reshape(encoded_shape).transpose(np.argsort(self.order))

    def encode(self, chunk: np.ndarray) -> bytes:
        """A chunk through the Python codecs."""
        return encode_bytes(self.steps, self.raw(chunk))

    def decode(self, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
        """And back."""
        nbytes = self.dtype.itemsize * int(np.prod(shape, dtype=object))
        return self.unraw(decode_bytes(self.steps, data, nbytes), shape)


def any_output(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array of any memory layout."""
    order = rng.permutation(len(shape)) if rng.random() < 0.4 else np.arange(len(shape))
    padding = rng.integers(0, 3, len(shape)) if rng.random() < 0.4 else np.zeros(len(shape), int)
    big = np.zeros([shape[axis] + int(padding[axis]) for axis in order], dtype)
    array = big.transpose(np.argsort(order))[(..., *(slice(0, n) for n in shape))]
    return array[(..., *(slice(None, None, -1 if rng.random() < 0.2 else 1) for _ in shape))]


def any_format(rng: np.random.Generator, ndim: int, i: int) -> Format:
    """A format for chunks of ``ndim`` dimensions; ``i`` chooses the data type."""
    dtype = np.dtype(DTYPES[i % len(DTYPES)])
    order = tuple(int(a) for a in rng.permutation(ndim)) if rng.random() < 0.4 else tuple(range(ndim))
    swap = dtype.kind != "V" and dtype.itemsize > 1 and rng.random() < 0.3
    fill: Any = 7 if dtype.kind in "iufc" else True if dtype.kind == "b" else b"\1\2\3"
    return Format(dtype, order, STEPS[int(rng.integers(len(STEPS)))], swap, fill)


def opaque(array: np.ndarray) -> np.ndarray:
    """``array`` as the kernel takes it: elements without a meaning, any strides."""
    return np.ndarray(
        array.shape, f"V{array.dtype.itemsize}", buffer=array_base(array), strides=array.strides, offset=_offset(array)
    )


def array_base(array: np.ndarray) -> np.ndarray:
    """The one-dimensional memory that holds ``array``."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.flags.c_contiguous
    return base.reshape(-1).view(np.uint8)


def _offset(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0] - array_base(array).__array_interface__["data"][0]


@dataclass
class AxisCase:
    """One axis of a selection: chunks of ``extents``, and per row the elements taken and their places."""

    extents: list[int]
    chunks: list[int]
    inner: list[np.ndarray]
    outer: list[np.ndarray]
    length: int
    argument: tuple[Any, ...]

    def chunk_extent(self, row: int) -> int:
        """Full length of the chunk of a row."""
        return self.extents[self.chunks[row]]


def strided_axis(rng: np.random.Generator, extents: list[int]) -> AxisCase:
    """A slice with a random step over chunks of ``extents``."""
    total = sum(extents)
    step = int(rng.choice([1, 1, 1, 2, 3, max(1, total // 2)]))
    start = int(rng.integers(0, total))
    stop = total if rng.random() < 0.5 else int(rng.integers(start, total)) + 1
    if rng.random() < 0.4:
        start, stop, step = 0, total, 1
    selected = np.arange(start, stop, step)
    return _axis(extents, selected, None, step)


def listed_axis(rng: np.random.Generator, extents: list[int], unique: bool = True) -> AxisCase:
    """Random elements of chunks of ``extents``, in any order."""
    total = sum(extents)
    count = int(rng.integers(1, total + 1))
    selected = rng.choice(total, count, replace=not unique)
    if rng.random() < 0.5:
        return _axis(extents, np.sort(selected), None, None)
    order = np.argsort(np.searchsorted(np.cumsum(extents), selected, side="right"), kind="stable")
    return _axis(extents, selected[order], order, None)


def _axis(extents: list[int], selected: np.ndarray, places: np.ndarray | None, step: int | None) -> AxisCase:
    starts = np.concatenate(([0], np.cumsum(extents)))
    chunk_of = np.searchsorted(starts, selected, side="right") - 1
    chunks, firsts = np.unique(chunk_of, return_index=True)
    bounds = np.append(firsts, len(selected)).astype(np.int64)
    local = (selected - starts[chunk_of]).astype(np.int64)
    rows = [slice(bounds[i], bounds[i + 1]) for i in range(len(chunks))]
    outer = [np.arange(row.start, row.stop) if places is None else places[row] for row in rows]
    lengths = np.array(extents, np.int64)[chunks]
    argument: tuple[Any, ...]
    if step is None:
        argument = ("l", lengths, bounds, local, None if places is None else places.astype(np.int64))
    else:
        argument = ("s", lengths, local[firsts], np.diff(bounds), bounds[:-1].copy(), step)
    return AxisCase(extents, [int(c) for c in chunks], [local[row] for row in rows], outer, len(selected), argument)


def whole_axis(extent: int, count: int = 1) -> tuple[Any, ...]:
    """An axis of ``count`` chunks that are taken whole, as the kernel takes it."""
    rows = np.arange(count, dtype=np.int64)
    full = np.full(count, extent, np.int64)
    return ("s", full, np.zeros(count, np.int64), full, rows * extent, 1)


def smooth(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Values that compress."""
    count = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    values = (np.arange(count) // 3 + rng.integers(0, 4, count)).reshape(shape)
    if dtype.kind in "iufc":
        return values.astype(dtype)
    raw = np.zeros((count, dtype.itemsize), np.uint8)
    raw[:, 0] = values.reshape(-1) & 255
    raw[:, -1] = values.reshape(-1) >> 4 & 255
    return raw.reshape(-1).view(dtype).reshape(shape)


def gzip_member(data: bytes) -> bytes:
    """One gzip member."""
    return zlib.compress(data, 6, 31)


NAMES = b".own-", b".own-edit-", b".end"


@contextmanager
def opened(path: Path, *keys: str, conditions: Any = ()) -> Iterator[Any]:
    """Give where files go below ``path``, as the kernel takes it."""
    assert KERNEL is not None
    base = os.open(path, os.O_RDONLY)
    try:
        files = KERNEL.open_new_files(base, keys, conditions, NAMES, 0)
    finally:
        os.close(base)
    try:
        yield files
    finally:
        if files is not None:
            files.close()


def decode_chunk(
    pipeline: Any, source: Any, offset: Any, length: Any, shape: Any, first: Any, out: Any, **asked: Any
) -> Any:
    """Decode a box that lies in one chunk of a source, which is all of its object; the reason if that fails."""
    assert KERNEL is not None
    grid = KERNEL.UniformGrid(shape, (1,) * len(shape), (0,) * len(shape))
    place = np.array([offset], np.int64), np.array([length], np.int64)
    limits = {"most": 2**63 - 1, "missing": True, "threads": 1}
    return pipeline.decode_box([(source, *place)], grid, first, out, **limits, **asked)
