"""What a write into a shard costs: what it changes, on every store, however many chunks the shard has."""

import gc
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import zardine
from effort import some
from zardine.storage import FsspecStore, LocalStore, MemoryStore, Store, ZipStore

FEW, MANY = 64, 8192
LOOKS = 500  # calls: to look again at a document, where time ran out, is half of it; to touch each slot is 8,128
KINDS = ["memory", "local", "new file", "zip", "fsspec"]


def make_store(kind: str, path: Path) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "zip":
        return ZipStore(path / "a.zip")
    if kind == "fsspec":
        return FsspecStore(fsspec.filesystem("memory"), str(path))
    return LocalStore(path / "a")


def calls(work: Callable[[], object]) -> int:
    """How many functions, of Python or in C, are called in ``work``."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what it would close belongs to others
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
@pytest.mark.parametrize(
    ("kind", "values", "order"), list(some(product(KINDS, ["new", "partial", "fill"], ["as_written", "morton"]), 5))
)
def test_the_number_of_slots_does_not_count(kind: str, values: str, order: str, tmp_path: Path) -> None:
    found = []
    for slots in (FEW, MANY):
        (tmp_path / str(slots)).mkdir()
        store = make_store(kind, tmp_path / str(slots))
        array = zardine.create_array(
            store, shape=(slots * 2,), chunks=(2,), shards=(slots * 2,), dtype="i4", config={"chunk_order": order}
        )
        if kind != "new file":
            array[...] = np.arange(slots * 2) + 1
        where: Any = 5 if values == "partial" else slice(4, 6)
        expected = array[...]

        def write(number: int, array: zardine.Array = array, where: Any = where) -> None:
            array[where] = 0 if values == "fill" else number

        if kind != "new file":
            write(7)  # so that all is known that is remembered
        made = min(calls(lambda: write(8)) for _ in range(3))  # of which one may find that it is time to look again
        expected[where] = 0 if values == "fill" else 8
        np.testing.assert_array_equal(zardine.open_array(store)[...], expected)
        found.append(made)
        store.close()
    assert found[1] <= found[0] + LOOKS
