"""Files that lost their names are closed by other threads, and their room is there when it is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crash.space import full_disk
from zardine.stores import late_closing
from zardine.stores.late_closing import close_late
from zardine.stores.local.store import LocalStore

ROUNDS = 200


def nameless(path: Path) -> int:
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    path.unlink()
    return file


def is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def test_all_are_closed(tmp_path: Path) -> None:
    files = [nameless(tmp_path / str(number)) for number in range(300)]
    for file in files:
        close_late(file)
    late_closing._closer.finish()
    assert [file for file in files if is_open(file)] == []
    assert not late_closing._closer.finish()


def test_large_files_do_not_wait_for_others(tmp_path: Path) -> None:
    file = nameless(tmp_path / "a")
    os.truncate(file, late_closing._SMALL + 1)
    close_late(file)
    with late_closing._closer._lock:  # wakes nobody; whoever closes the file says so
        assert late_closing._closer._done.wait_for(lambda: not is_open(file), timeout=60)


def test_a_file_with_a_name_is_closed_at_once(tmp_path: Path) -> None:
    file = os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR, 0o600)
    close_late(file)
    assert not is_open(file)


def test_a_forked_child_closes_its_own(tmp_path: Path) -> None:
    close_late(nameless(tmp_path / "a"))
    child = os.fork()
    if child == 0:
        file = nameless(tmp_path / "b")
        close_late(file)
        late_closing._closer.finish()
        os._exit(int(is_open(file)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("part", [2, 3])
def test_replaced_values_leave_their_room(tmp_path: Path, part: int) -> None:
    """Old and new value fit on the disk, one more does not."""
    with full_disk(tmp_path) as space:
        if space is None:
            pytest.skip("no file system may be mounted here")
        store = LocalStore(tmp_path / "store")
        value = bytes(2**20 * part // 8)
        for number in range(ROUNDS):
            store.set("a", value + str(number).encode())
        assert store.get("a") == value + str(ROUNDS - 1).encode()
