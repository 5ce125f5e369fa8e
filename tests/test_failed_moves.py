"""A move that fails leaves nothing at the new place, and the same call works then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.space import FullDisk, full_disk
from effort import some
from zardine.errors import StoreError
from zardine.storage import MemoryStore

DATA = np.random.default_rng(0).integers(1, 2**31 - 1, (8, 2048), "i4")  # which does not compress


def prepared(place: Any) -> zardine.Group:
    group = zardine.create_group(place, overwrite=True)
    group.create_array("g/t", data=DATA, chunks=(1, 2048))
    return group


def check(group: zardine.Group, failure: BaseException | None) -> None:
    """Check that a move was done, or left everything at the old place; then it works."""
    if failure is not None:
        assert "h" not in group
        assert not [key for key in group.store.list() if key.startswith("h/")]
        assert (group["g/t"][...] == DATA).all()
        group.move("g", "h")
    assert "g" not in group
    assert (group["h/t"][...] == DATA).all()
    group["h/t"][0] = 0  # it can be written


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FullDisk]:
    with full_disk(tmp_path) as found:
        if found is None:
            pytest.skip("no file system may be mounted")
        yield found


def test_every_amount_of_room(disk: FullDisk) -> None:
    failed = 0
    for room in some(range(0, 2**20, disk.step), 2):
        group = prepared(disk.folder / "a.zarr")
        disk.leave(room)
        failure: StoreError | None = None
        try:
            group.move("g", "h")
        except StoreError as error:
            failure = error
        disk.free()
        check(group, failure)
        if failure is None:
            break
        failed += 1
    assert failed > 3


def test_ctrl_c_while_values_are_copied() -> None:
    class Interrupted(MemoryStore):
        left = 10**9

        def set(self, key: str, value: Any, **more: Any) -> Any:
            version = super().set(key, value, **more)
            self.left -= key.startswith("h/")
            if self.left < 0:
                self.left = 10**9
                raise KeyboardInterrupt
            return version

    for at in range(8):
        store = Interrupted()
        group = prepared(store)
        store.left = at
        with pytest.raises(KeyboardInterrupt):
            group.move("g", "h")
        left = [key for key in store.list() if key.startswith("h/")]
        assert len(left) <= 1  # the value whose version the interrupted call did not give
        group.move("g", "h")
        check(group, None)


def test_copies_of_a_killed_move_are_replaced() -> None:
    store = MemoryStore()
    group = prepared(store)
    store.set("h/t/c/3/0", b"a part of a copy")
    group.move("g", "h")
    check(group, None)
