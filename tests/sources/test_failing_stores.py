"""A store fails while a file is read: that is raised, whatever was about to be read; nothing is left out instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest

import zardine
from effort import some
from zardine.errors import StoreError
from zardine.sources.opening import shown
from zardine.stores.base import WHOLE, ByteRange, Reading, Store
from zardine.stores.local.store import LocalStore
from zardine.stores.wrappers.wrapper import WrapperStore

VALUES = np.random.default_rng(0).integers(0, 9, (300, 400)).astype("<i4")


class Failing(WrapperStore):
    """Reads so often, and then not any more."""

    def __init__(self, store: Store, reads: int) -> None:
        super().__init__(store)
        self.left = reads

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        """Read, or fail."""
        self.left -= 1
        if self.left < 0:
            raise StoreError("the network is gone")
        return super().read(key, ranges)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups, scales and attributes in many blocks, with elements that only the library reads."""
    path = tmp_path_factory.mktemp("failing") / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(400.0)).make_scale("x")
        for number in range(6):
            made = file.create_dataset(f"g{number}/a", data=VALUES, chunks=(50, 50), compression="lzf")
            made.dims[1].attach_scale(file["x"])
            made.attrs["many"] = np.arange(7000, dtype="i8")
            file.create_dataset(f"g{number}/text", data=["a" * 3000] * 40)
    return path


def test_every_read_may_fail(file: Path) -> None:
    def read(reads: int) -> tuple[int, dict[str, object]]:
        store = Failing(LocalStore(file.parent, read_only=True), reads)
        opened = shown(store, file.name)
        documents: dict[str, object] = {key: bytes(opened.get(key) or b"") for key in opened.list_prefix("")}
        assert not list(opened.left_out())
        assert not list(opened.remarks())
        return reads - store.left, documents

    count, expected = read(10**6)
    assert count > 30
    assert zardine.sources.open(file)["g3/a"].dimension_names[1] == "x"
    for reads in some(range(count), 4):
        with pytest.raises(StoreError, match=r"^the network is gone"):
            read(reads)
    assert read(count) == (count, expected)
