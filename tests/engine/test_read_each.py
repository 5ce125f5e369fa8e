"""Chunks that are told of one by one: in order, decoded by the kernel or the chain, and damage of one is its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine.read_each import read_each
from zardine.errors import CorruptionError
from zardine.indexing.plan import plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.storage import MemoryStore

CHAINS: dict[str, dict[str, Any]] = {
    "kernel": {"compressors": [{"name": "gzip", "configuration": {"level": 1}}]},
    "chain": {"compressors": [{"name": "numcodecs.lzma"}]},
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("where", ["files", "memory"])
def test_each_in_order_and_damage_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chain: str, where: str
) -> None:
    monkeypatch.setattr("zardine.engine.read._BATCH_BYTES", 80)  # two chunks are worth a thread's while
    store: Any = MemoryStore() if where == "memory" else tmp_path / "a.zarr"
    values = np.arange(12 * 40, dtype="i4").reshape(12, 40)
    array = zardine.create_array(store, shape=(12, 40), chunks=(1, 10), shards=(12, 40), dtype="i4", **CHAINS[chain])
    array[:11] = values[:11]
    assert (array._handle.layout.pipeline is not None) == (chain == "kernel" and zardine.__kernel__ is not None)
    selection = GridSelection((AxisSlice(0, 1, 12), AxisSlice(0, 1, 40)), (False,) * 2, (False,) * 2)
    (part,) = plan_grid(selection, array._handle.layout.grids).parts()
    healthy = list(read_each(array._handle, part))
    offset, length = healthy[17].byte_range or (0, 0)
    key = healthy[17].key
    stored = bytearray(array.store.get(key) or b"")
    stored[offset : offset + length] = b"\xff" * length
    array.store.set(key, bytes(stored))
    seen = list(read_each(array._handle, part))
    assert [each.place for each in seen] == [(row, column) for row in range(12) for column in range(4)]
    for number, (each, before) in enumerate(zip(seen, healthy, strict=True)):
        row, column = each.place
        assert each.byte_range == before.byte_range
        if row == 11:
            assert each.byte_range is None is each.values is each.error
        elif number == 17:
            assert each.values is None
            assert isinstance(each.error, CorruptionError)
            assert each.error.chunk == (4, 1)
        else:
            np.testing.assert_array_equal(each.values, values[row : row + 1, 10 * column : 10 * column + 10])
