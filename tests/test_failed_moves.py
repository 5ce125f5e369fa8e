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
from zardine.errors import ArrayChangedError, ContainsArrayError, StoreError
from zardine.storage import LocalStore, MemoryStore

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


class CopyingStore(LocalStore):
    """Local files on a file system that cannot rename directories."""

    def move_prefix(self, source: str, dest: str) -> bool:
        return False


def test_a_directory_is_renamed_where_there_is_no_room_for_a_copy(disk: FullDisk) -> None:
    group = prepared(disk.folder / "a.zarr")
    handle = group["g/t"]
    disk.leave(0)
    group.move("g", "h")
    assert (group["h/t"][...] == DATA).all()
    assert sorted(group) == ["h"]
    for use in (lambda: handle[...], lambda: handle.__setitem__(0, 1)):
        with pytest.raises(ArrayChangedError):
            use()
    group.move("h/t", "t")
    assert (group["t"][...] == DATA).all()


@pytest.mark.parametrize("durable", [False, True])
def test_what_lies_at_the_new_place_stays_or_is_replaced(tmp_path: Path, durable: bool) -> None:
    group = prepared(LocalStore(tmp_path, durable=durable))
    (tmp_path / "h/empty").mkdir(parents=True)
    group.move("g", "h")  # an empty directory is in nobody's way
    assert (group["h/t"][...] == DATA).all()
    (tmp_path / "k").mkdir()
    (tmp_path / "k/note.txt").write_text("of somebody")
    group.move("h", "k")
    assert (group["k/t"][...] == DATA).all()
    assert (tmp_path / "k/note.txt").read_text() == "of somebody"
    group.create_array("k2", data=[1])
    with pytest.raises(ContainsArrayError):
        group.move("k", "k2")


def test_an_array_at_a_place_of_another_is_none_that_old_handles_know(tmp_path: Path) -> None:
    group = prepared(tmp_path)
    old = group["g/t"]
    group.move("g/t", "u")
    group.create_array("g/t", data=DATA + 1, chunks=(1, 2048))
    del group["g/t"]
    group.move("u", "g/t")  # where this process has erased another
    with pytest.raises(ArrayChangedError):
        old[0] = 1
    assert (group["g/t"][...] == DATA).all()


def test_every_amount_of_room(disk: FullDisk) -> None:
    failed = 0
    for room in some(range(0, 2**20, disk.step), 2):
        group = prepared(CopyingStore(disk.folder / "a.zarr"))
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


def test_no_chunk_of_a_stopped_move_is_read_as_one_of_a_later_move() -> None:
    store = MemoryStore()
    group = zardine.create_group(store)
    group.create_array("t", data=[1, 0, 3], chunks=(1,), fill_value=0)  # its second chunk is not stored
    for key in ("u/c/1", "u/c/9", "u/README"):
        store.set(key, b"of a stopped move")
    group.move("t", "u")
    assert group["u"][...].tolist() == [1, 0, 3]
    assert [key for key in store.list_prefix("u/") if key in ("u/c/1", "u/c/9", "u/README")] == ["u/README"]
