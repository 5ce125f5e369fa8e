"""``Pipeline.decode_box``, the entry for a box of elements across the chunks of several objects, against NumPy."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cases import NUMBERS, Format, any_format, any_output, opaque, smooth

KERNEL = pytest.importorskip("zardine._kernel")

FILL = 7


class Stored:
    """An array in files of shards, or of chunks, some of which are not stored."""

    def __init__(self, rng: np.random.Generator, fmt: Format, ndim: int, folder: Path, *, sharded: bool) -> None:
        self.fmt = fmt
        self.chunk = tuple(int(n) for n in rng.integers(1, 7, ndim))
        self.per_object = tuple(int(n) for n in rng.integers(1, 4, ndim)) if sharded else (1,) * ndim
        self.objects = tuple(int(n) for n in rng.integers(1, 4, ndim))
        self.strides = tuple(int(np.prod(self.per_object[i + 1 :])) for i in range(ndim)) if sharded else (0,) * ndim
        self.shape = tuple(np.multiply(np.multiply(self.chunk, self.per_object), self.objects).tolist())
        self.content = smooth(rng, self.shape, fmt.dtype)
        self.folder = folder
        self.places: dict[tuple[int, ...], Any] = {}
        for at in product(*map(range, self.objects)):
            data, table = b"", []
            for local in product(*map(range, self.per_object)):
                corner = [(o * p + k) * c for o, p, k, c in zip(at, self.per_object, local, self.chunk, strict=True)]
                part = tuple(slice(low, low + c) for low, c in zip(corner, self.chunk, strict=True))
                if sharded and rng.random() < 0.2:
                    self.content[part] = fmt.fill_array
                    table.append((-1, -1))
                    continue
                encoded = fmt.encode(self.content[part])
                table.append((len(data), len(encoded)))
                data += encoded
            (folder / str(at)).write_bytes(data)
            self.places[at] = tuple(np.ascontiguousarray(column) for column in np.array(table, np.int64).T)

    def read(self, box: tuple[slice, ...], out: np.ndarray, limits: tuple[int, bool] = (10**6, True)) -> Any:
        """Have the kernel read a box."""
        spans = [c * p for c, p in zip(self.chunk, self.per_object, strict=True)]
        ranges = [range(part.start // span, -(-part.stop // span)) for part, span in zip(box, spans, strict=True)]
        touched = list(product(*ranges))
        files = [os.open(self.folder / str(at), os.O_RDONLY) for at in touched]
        try:
            grid = KERNEL.UniformGrid(self.chunk, self.per_object, self.strides)
            first = tuple(part.start for part in box)
            objects = [(file, *self.places[at]) for file, at in zip(files, touched, strict=True)]
            most, missing = limits
            call = self.fmt.pipeline().decode_box
            return call(objects, grid, first, opaque(out), most=most, missing=missing, threads=2)
        finally:
            for file in files:
                os.close(file)


def any_box(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[slice, ...]:
    starts = [int(rng.integers(0, n)) for n in shape]
    return tuple(slice(start, int(rng.integers(start, n)) + 1) for start, n in zip(starts, shape, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_like_numpy(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    ndim = seed % 4
    stored = Stored(rng, any_format(rng, ndim, seed), ndim, tmp_path, sharded=seed % 3 > 0)
    for _ in range(4):
        box = any_box(rng, stored.shape)
        out = any_output(rng, stored.content[box].shape, stored.fmt.dtype)
        assert stored.read(box, out) is None
        assert out.tobytes() == stored.content[box].tobytes()


def test_what_is_too_long_or_missing_or_damaged_is_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    fmt = Format("<u2", (0, 1), [("zstd", 3, False), ("crc32c",)], fill=FILL)
    while True:
        stored = Stored(rng, fmt, 2, tmp_path, sharded=True)
        if any((table[0] < 0).any() for table in stored.places.values()) and len(stored.places) > 1:
            break
    everything = tuple(slice(0, n) for n in stored.shape)
    out = np.zeros(stored.shape, "<u2")
    assert stored.read(everything, out) is None
    assert isinstance(stored.read(everything, out, (10**6, False)), str)
    longest = max(int(lengths.max()) for _, lengths in stored.places.values())
    assert stored.read(everything, out, (longest, True)) is None
    assert isinstance(stored.read(everything, out, (longest - 1, True)), str)
    at = next(at for at, (_, lengths) in stored.places.items() if lengths.max() > 0)
    data = bytearray((tmp_path / str(at)).read_bytes())
    data[-1] ^= 1
    (tmp_path / str(at)).write_bytes(data)
    assert isinstance(stored.read(everything, out), str)


def test_any_number(tmp_path: Path) -> None:
    """Whatever the numbers are: an answer, or a ``ValueError``."""
    rng = np.random.default_rng(2)
    (tmp_path / "file").write_bytes(bytes(range(64)))
    pipeline = Format("<u2", (0, 1), fill=FILL).pipeline()
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    done = 0
    for _ in range(3000):
        grid: list[list[int]] = [[4, 4], [2, 1], [1, 0]]
        first, out = [0, 0], np.zeros((4, 4), "<u2")
        table = [np.array([0, 32], np.int64), np.array([32, 32], np.int64)]
        number = int(rng.choice(NUMBERS))
        case = int(rng.integers(5))
        if case == 0:
            grid[int(rng.integers(3))][int(rng.integers(2))] = number
        elif case == 1:
            first[int(rng.integers(2))] = number
        elif case == 2:
            table[int(rng.integers(2))][0] = number
        elif case == 3:
            out = np.zeros((int(rng.choice([0, 1, 9, 2**40])), 0), "<u2")
        elif case == 4:
            table = [column[:1] for column in table]
            first[0] = int(rng.integers(9))
        objects: list[Any] = [(fd, *table)] * int(rng.integers(1, 3))
        try:
            uniform = KERNEL.UniformGrid(*map(tuple, grid))
            pipeline.decode_box(objects, uniform, tuple(first), opaque(out), most=64, missing=True, threads=1)
            done += 1
        except (ValueError, OverflowError):
            pass
    os.close(fd)
    assert done > 100
