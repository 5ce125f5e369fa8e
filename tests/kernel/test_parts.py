"""Parts of chunks: only what is asked for is decoded, and it is right; the checksum is that of all stored bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import some

from .cases import COMPRESSORS, CRC, Format, Step, decode_chunk, opaque, smooth

pytest.importorskip("zardine._kernel")

SHAPE = (20, 96, 128)
"""Elements of two bytes: 480 KB, of which compressors make several blocks."""
PARTS = [
    np.s_[0:1, :, :],
    np.s_[9:10, 5:7, :],
    np.s_[19:20, 95:96, 127:128],
    np.s_[:, 40:41, :],
    np.s_[:, :, 77:78],
    np.s_[3:17, 10:11, 0:128],
    np.s_[:, 0:1, 0:1],
    np.s_[2:3, 3:4, 64:65],
]
STEPS: list[list[Step]] = [[], [CRC], *([each] for each in COMPRESSORS), *([each, CRC] for each in COMPRESSORS)]
BLOCKS: list[list[Step]] = [
    [("blosc", name, 5, shuffle, typesize, blocksize), CRC]
    for name, shuffle, typesize, blocksize in product(("lz4", "zstd"), (0, 1, 2), (2, 3, 16), (0, 4096, 65536))
]


def decode_block(fmt: Format, encoded: bytes, shape: tuple[int, ...], part: tuple[slice, ...]) -> Any:
    """The elements of a part, or why there are none."""
    first, counts = tuple(each.start or 0 for each in part), np.empty(shape)[part].shape
    out = np.empty(counts, fmt.dtype)
    reason = decode_chunk(fmt.pipeline(), encoded, 0, len(encoded), shape, first, opaque(out))
    return out if reason is None else reason


def chunk_of(shape: tuple[int, ...], dtype: Any = "<u2") -> np.ndarray:
    """Values that compress here and there."""
    rng = np.random.default_rng(3)
    chunk = smooth(rng, shape, dtype)
    chunk[:5] ^= rng.integers(0, 2**16, chunk[:5].shape).astype(dtype)
    return chunk


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("steps", [*STEPS, *some(BLOCKS, 5)], ids=str)
def test_parts_are_those_of_the_whole(steps: list[Step], order: tuple[int, ...]) -> None:
    chunk = chunk_of(SHAPE)
    fmt = Format("<u2", order, steps, swap=len(steps) % 2 == 0)
    encoded = fmt.encode(chunk)
    for part in PARTS:
        assert np.array_equal(decode_block(fmt, encoded, SHAPE, part), chunk[part])


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_points(steps: list[Step]) -> None:
    rng = np.random.default_rng(8)
    chunk = chunk_of(SHAPE)
    fmt = Format("<u2", (0, 1, 2), steps)
    encoded = fmt.encode(chunk)
    for count in (1, 3, 1000):
        points = [rng.integers(0, 4 if count == 1000 else n, count) for n in SHAPE]
        out = np.empty(count, "<u2")
        bounds, places = np.array([0, count]), np.arange(count)
        jobs = np.array([[0, 0, len(encoded), 0]])
        extents = [np.array([n]) for n in SHAPE]
        assert fmt.pipeline().decode_points([encoded], jobs, extents, bounds, points, places, opaque(out), 1) == []
        assert np.array_equal(out, chunk[tuple(points)])


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
def test_damage_anywhere_is_noticed_whatever_is_asked_for(compressor: Step) -> None:
    chunk = chunk_of((40, 32, 32))
    fmt = Format("<u2", (0, 1, 2), [compressor, CRC])
    encoded = fmt.encode(chunk)
    for at in np.random.default_rng(5).integers(0, len(encoded), 20):
        damaged = bytearray(encoded)
        damaged[at] ^= 64
        assert isinstance(decode_block(fmt, bytes(damaged), chunk.shape, np.s_[0:1, 0:1, 0:1]), str)


@pytest.mark.parametrize("compressor", [("gzip", 5), ("zstd", 3, True)], ids=str)
def test_checksums_of_the_content_are_verified_where_nothing_else_is(compressor: Step) -> None:
    chunk = chunk_of(SHAPE)
    fmt = Format("<u2", (0, 1, 2), [compressor])
    encoded = bytearray(fmt.encode(chunk))
    encoded[-1 if compressor[0] == "zstd" else -5] ^= 1
    assert isinstance(decode_block(fmt, bytes(encoded), SHAPE, np.s_[0:1, 0:1, :]), str)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
def test_parts_of_damaged_chunks_without_a_checksum_are_right_or_refused_or_other_values(compressor: Step) -> None:
    """Never is memory used that is not the chunk's: run by ``make asan`` too."""
    chunk = chunk_of((24, 64, 64))
    fmt = Format("<u2", (0, 1, 2), [compressor])
    encoded = fmt.encode(chunk)
    rng = np.random.default_rng(6)
    for _ in range(60):
        damaged = bytearray(encoded)
        for at in rng.integers(0, min(len(encoded), int(rng.choice([16, 64, 10**6]))), int(rng.integers(1, 4))):
            damaged[at] = int(rng.integers(0, 256))
        for part in PARTS[:5]:
            clipped = tuple(
                slice(min(each.start or 0, n - 1), each.stop and min(each.stop, n))
                for each, n in zip(part, chunk.shape, strict=True)
            )
            found = decode_block(fmt, bytes(damaged), chunk.shape, clipped)
            assert isinstance(found, str) or found.shape == np.empty(chunk.shape)[clipped].shape


NOISY = np.random.default_rng(5).integers(0, 4096, SHAPE).astype("<u2")
"""So that the encoded bytes are more than what is read at once of any chunk."""


def sources_of(encoded: bytes, path: Path) -> Iterator[tuple[Any, int]]:
    """What the kernel reads piece by piece, and where the encoded bytes begin in it."""
    path.write_bytes(b"before" + encoded + b"behind")
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd, 6
    finally:
        os.close(fd)
    yield bytearray(b"x" + encoded), 1


@pytest.mark.parametrize("step", [each for each, *_ in some(BLOCKS, 7)], ids=str)
def test_blocks_are_read_alone(step: Step, tmp_path: Path) -> None:
    for level in (5, 0):
        fmt = Format("<u2", (0, 1, 2), [(step[0], step[1], level, *step[3:])])
        encoded = fmt.encode(NOISY)
        assert len(encoded) > 2**17
        for source, offset in sources_of(encoded, tmp_path / "file"):
            for part in PARTS:
                out = np.empty(NOISY[part].shape, "<u2")
                first = tuple(each.start or 0 for each in part)
                call = partial(decode_chunk, fmt.pipeline())
                assert call(source, offset, len(encoded), SHAPE, first, opaque(out)) is None
                assert np.array_equal(out, NOISY[part])
                assert call(source, offset, len(encoded) - 1, SHAPE, first, opaque(out)) is not None


def test_damaged_blocks_never_give_what_others_left(tmp_path: Path) -> None:
    """What is read piece by piece is what the same bytes give at once, or nothing."""
    rng = np.random.default_rng(6)
    fmt = Format("<u2", (0, 1, 2), [("blosc", "lz4", 5, 1, 2, 65536)])
    right = fmt.encode(NOISY)
    same = refused = 0
    for number in range(60):
        damaged = bytearray(right)
        for _ in range(int(rng.integers(1, 4))):
            near = int(rng.choice([16, 64, len(right)]))
            damaged[int(rng.integers(near))] = int(rng.integers(256))
        part = PARTS[number % len(PARTS)]
        want = decode_block(fmt, bytes(damaged), SHAPE, part)
        for source, offset in sources_of(bytes(damaged), tmp_path / "file"):
            out = np.empty(NOISY[part].shape, "<u2")
            first = tuple(each.start or 0 for each in part)
            if decode_chunk(fmt.pipeline(), source, offset, len(damaged), SHAPE, first, opaque(out)) is None:
                assert np.array_equal(out, want)
                same += 1
            else:
                refused += 1
    assert same > 15
    assert refused > 15
