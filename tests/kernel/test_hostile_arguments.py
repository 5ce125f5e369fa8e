"""Numbers of any size as arguments: refused, or done without leaving the output. (Documents may claim any shape.)

A build with overflow checks (``make test-debug``) tells of sums and products that no longer fit.
"""

from __future__ import annotations

import os
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cases import CRC, NUMBERS, Format, decode_chunk

pytest.importorskip("zardine._kernel")

EXTENTS = (2**31, 2**61, 2**62 - 1, 2**62, 2**63 - 1)
STEPS: list[list[Any]] = [[], [CRC], [("gzip", 1)], [("zstd", 1, False), CRC], [("blosc", "lz4", 5, 1, 2, 0)]]
GUARD = 64
STORED = bytes(range(48))


class Call:
    """Arguments that nearly fit together: any of their numbers may be spoiled."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.spoils = rng.random() < 0.4
        self.ndim = int(rng.integers(1, 4))
        self.order = tuple(int(axis) for axis in rng.permutation(self.ndim))
        self.item = int(rng.choice([1, 2, 8]))
        self.pipeline = Format(f"V{self.item}", self.order, STEPS[seed % len(STEPS)], fill=b"\1" * self.item).pipeline()
        self.extents = [int(each) for each in rng.integers(1, 6, self.ndim)]
        if rng.random() < 0.7:  # a chunk as large as can be, or larger
            largest = (2**63 - 1) // (self.item * prod(self.extents[1:]))
            self.extents[0] = int(rng.choice([largest, min(largest + 1, 2**63 - 1), *EXTENTS]))
            rng.shuffle(self.extents)
        self.counts = [int(rng.integers(min(extent, 3) + 1)) for extent in self.extents]
        self.memory = np.full(2 * GUARD + 27 * self.item, 0xAB, np.uint8)
        self.place = self.number(0), self.number(int(rng.choice([-1, 8, 48])))

    def number(self, right: int) -> int:
        """``right``, or now and then anything."""
        return int(self.rng.choice(NUMBERS)) if self.spoils and self.rng.random() < 0.1 else right

    def array(self, *right: int) -> np.ndarray:
        """An argument."""
        return np.array([self.number(each) for each in right], np.int64)

    def out(self, shape: list[int]) -> np.ndarray:
        """The output, in the middle of the memory."""
        size = prod(shape) * self.item
        return self.memory[GUARD : GUARD + size].view(f"V{self.item}").reshape(shape)

    def indices(self, extent: int, count: int) -> list[int]:
        """Evenly spaced over the whole extent."""
        return [extent - 1] * count if count < 2 else [i * ((extent - 1) // (count - 1)) for i in range(count)]

    def axis(self, extent: int, count: int) -> tuple[Any, ...]:
        """As ``decode`` takes it."""
        indices = self.indices(extent, count)
        first, step = (indices[0] if indices else 0), (indices[1] - indices[0] if count > 1 else 1)
        if self.rng.random() < 0.5:
            columns = (self.array(each) for each in (extent, first, count, 0))
            return ("s", *columns, self.number(step))
        places = self.array(*range(count)) if self.rng.random() < 0.5 else None
        return ("l", self.array(extent), self.array(0, count), self.array(*indices), places)

    def decode(self, source: bytes | int) -> Any:
        jobs = np.array([[0, *self.place, *[0] * self.ndim]], np.int64)
        axes = [self.axis(*each) for each in zip(self.extents, self.counts, strict=True)]
        return self.pipeline.decode([source], jobs, axes, self.out(self.counts), 2)

    def decode_points(self, source: bytes | int) -> Any:
        count = self.counts[0]
        points = [self.array(*self.indices(extent, count)) for extent in self.extents]
        extents = [self.array(extent) for extent in self.extents]
        jobs = np.array([[0, *self.place, 0]], np.int64)
        bounds, places = self.array(0, count), self.array(*range(count))
        return self.pipeline.decode_points([source], jobs, extents, bounds, points, places, self.out([count]), 2)

    def decode_box(self, source: int) -> Any:
        first = tuple(self.number(extent - count) for extent, count in zip(self.extents, self.counts, strict=True))
        extents = tuple(self.number(extent) for extent in self.extents)
        reason = decode_chunk(self.pipeline, source, *self.place, extents, first, self.out(self.counts))
        return [] if reason is None else [(0, reason)]


@pytest.mark.parametrize("entry", ["decode", "decode_points", "decode_box"])
def test_any_number(entry: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(STORED)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    outcomes: Counter[str] = Counter()
    try:
        for seed in range(4000):
            call = Call(seed)
            source = STORED if seed % 2 else fd
            try:
                failures = getattr(call, entry)(source)
            except (ValueError, OverflowError):
                outcomes["refused"] += 1
            else:
                assert "panic" not in str(failures), f"seed {seed}: {failures}"
                assert "memory" not in str(failures), f"seed {seed}: {failures}"
                outcomes["failed" if failures else "done"] += 1
            used = call.item * prod(call.counts[:1] if entry == "decode_points" else call.counts)
            assert (call.memory[:GUARD] == 0xAB).all(), f"seed {seed}"
            assert (call.memory[GUARD + used :] == 0xAB).all(), f"seed {seed}"
    finally:
        os.close(fd)
    assert min(outcomes[each] for each in ("refused", "failed", "done")) > 200, outcomes
