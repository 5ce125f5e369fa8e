"""The array that a read is to fill with ``out=``: refused where its elements share memory, filled in any other form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import zardine
from zardine.storage import MemoryStore

SHAPE = (12, 8)
VALUES = np.arange(96, dtype="i4").reshape(SHAPE)
ROWS = np.arange(0, 12, 2)
MASK = VALUES % 3 == 0

READS: dict[str, Callable[[Any, Any], Any]] = {
    "basic": lambda a, out: a.get_basic_selection((slice(None), slice(None)), out=out),
    "inside one chunk": lambda a, out: a.get_basic_selection((slice(0, 2), slice(1, 3)), out=out),
    "orthogonal": lambda a, out: a.get_orthogonal_selection((ROWS, slice(None)), out=out),
    "coordinates": lambda a, out: a.get_coordinate_selection((ROWS, ROWS % 8), out=out),
    "mask": lambda a, out: a.get_mask_selection(MASK, out=out),
    "blocks": lambda a, out: a.get_block_selection((0, 0), out=out),
}


def shared(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    """Writable arrays, elements of which share memory."""
    dtype = np.dtype(dtype)
    size, memory = dtype.itemsize, np.zeros(4096, np.uint8).view(dtype)
    broadcast = as_strided(memory, shape, (0,) * len(shape))
    rows = as_strided(memory, shape, (0,) * (len(shape) - 1) + (size,)) if len(shape) > 1 else broadcast
    windows = as_strided(memory, shape, tuple(size * 2 for _ in shape)) if len(shape) > 1 else broadcast
    halves = np.ndarray(shape, dtype, memory, strides=tuple(size // 2 for _ in shape))
    return [broadcast, rows, windows, halves]


def apart(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    """Arrays of any layout in memory, elements of which do not share any."""
    plain = np.full(shape, -1, dtype)
    wide = np.full([2 * n + 1 for n in shape], -1, dtype)
    packed = np.full(shape, -1, np.dtype([("a", "u1"), ("value", dtype)]))
    return [
        plain,
        np.full(shape[::-1], -1, dtype).T,
        wide[tuple(slice(1, None, 2) for _ in shape)],
        plain.copy()[tuple(slice(None, None, -1) for _ in shape)],
        packed["value"],
    ]


@pytest.fixture(params=["memory", "memory, sharded", "files", "files, sharded", "a codec that the kernel lacks"])
def array(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = tmp_path / "a.zarr" if "files" in request.param else MemoryStore()
    shards = (8, 8) if "sharded" in request.param else None
    compressors = {"name": "numcodecs.bz2", "configuration": {"level": 1}} if "lacks" in request.param else "auto"
    a = zardine.create_array(store, shape=SHAPE, chunks=(4, 4), shards=shards, dtype="i4", compressors=compressors)
    a[...] = VALUES
    return a


@pytest.mark.parametrize("read", READS)
def test_elements_that_share_memory_are_refused(array: Any, read: str) -> None:
    call = READS[read]
    expected = call(array, None)
    for out in shared(expected.shape, array.dtype):
        with pytest.raises(ValueError, match="elements of out share memory"):
            call(array, out)
        assert not out.any()


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize("read", READS)
def test_any_other_layout_is_filled(array: Any, read: str, dtype: str) -> None:
    call = READS[read]
    expected = call(array, None)
    for out in apart(expected.shape, dtype):
        assert call(array, out) is out
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("read", READS)
def test_what_cannot_be_written_is_refused(array: Any, read: str) -> None:
    call = READS[read]
    expected = call(array, None)
    out = np.zeros(expected.shape, array.dtype)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        call(array, out)
    assert not out.any()
