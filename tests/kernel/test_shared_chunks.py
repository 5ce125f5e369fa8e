"""Large chunks of blosc that are damaged: threads that share one give, and refuse, what one thread does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK, new_seed

from .cases import Format, Step, encode_bytes, opaque, whole_axis

pytest.importorskip("zardine._kernel")

COUNT = 300_000
"""Elements: more bytes than are worth being shared, in several blocks."""
STEPS: list[list[Step]] = [
    [("blosc", "lz4", 5, 1, 4, 0)],
    [("blosc", "zstd", 1, 2, 4, 70_000)],
    [("blosc", "blosclz", 5, 0, 1, 100_000)],
    [("blosc", "zlib", 1, 1, 4, 64 * 1024)],
    [("blosc", "lz4hc", 1, 1, 16, 1000)],
]


@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: steps[0][1])
def test_damage_is_told_by_all_threads(steps: list[Step], tmp_path: Path) -> None:
    seed = new_seed(len(steps[0][1]))
    rng = np.random.default_rng(seed)
    values = (np.arange(COUNT) // 7 * 3 % 1000 + rng.integers(0, 3, COUNT)).astype("<i4")
    whole = encode_bytes(steps, values.tobytes())
    pipeline = Format("<i4", (0,), steps).pipeline()
    path, refused = tmp_path / "chunk", 0
    axes = [whole_axis(COUNT)], [("l", *strided(COUNT, 1001))]
    for number in range(400 if SOAK else 12):
        body = damaged(rng, whole) if number else whole
        path.write_bytes(body)
        file = os.open(path, os.O_RDONLY)
        try:
            for axis in axes:
                count = COUNT if axis[0][0] == "s" else len(axis[0][4])
                found = [
                    decoded(pipeline, source, len(body), axis, count, threads)
                    for source in (body, file)
                    for threads in (1, 3)
                ]
                assert [outcome for outcome, _ in found[1::2]] == [outcome for outcome, _ in found[::2]], seed
                for (outcome, one), (_, three) in zip(found[::2], found[1::2], strict=True):
                    assert outcome or (one == three).all(), (seed, number)
                refused += bool(found[0][0])
                assert number or (found[0][1] == values[axis[0][3] if count < COUNT else slice(None)]).all()
        finally:
            os.close(file)
    assert refused


def damaged(rng: np.random.Generator, body: bytes) -> bytes:
    """``body`` with one to three faults: in the header, in the table of its blocks, in the blocks."""
    data = np.frombuffer(body, "u1").copy()
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data) if rng.random() < 0.7 else 80))
        if rng.random() < 0.5:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            at = at // 4 * 4
            word = np.array(rng.choice([0, 1, 15, 16, len(body) - 4, len(body), 2**31 - 1, 2**31, 2**32 - 1]), "<u4")
            data[at : at + 4] = np.frombuffer(word.tobytes(), "u1")[: len(data) - at]
    return data.tobytes()


def strided(length: int, step: int) -> tuple[Any, ...]:
    """Every ``step``-th element of a chunk, as a list."""
    indices = np.arange(0, length, step)
    return np.array([length]), np.array([0, len(indices)]), indices, np.arange(len(indices))


def decoded(
    pipeline: Any, source: Any, length: int, axis: list[Any], count: int, threads: int
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    out = np.full(count, -7, "<i4")
    jobs = np.array([[0, 0, length, 0]])
    return pipeline.decode([source], jobs, axis, opaque(out), threads), out
