"""Files that a local store keeps open: whatever happens to a value is noticed, and nothing is kept too long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zardine.errors import InvalidKeyError
from zardine.stores.local.files import LocalFiles
from zardine.stores.local.store import LocalStore
from zardine.stores.open_files import OpenFile, kept_files


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    kept_files.clear()  # and count from zero, whatever was interrupted before
    store = LocalStore(tmp_path / "base")
    store.set("d/k", b"first")
    return store


def kept(store: LocalStore, key: str) -> OpenFile | None:
    files = store.files.keep_open([key])
    return None if files is None else files[0]


def content(file: OpenFile | None) -> bytes | None:
    return None if file is None else bytes(file.read((0, None)))


def is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def test_a_file_is_opened_once(store: LocalStore) -> None:
    file = kept(store, "d/k")
    assert file is not None
    assert file is kept(store, "d/k")
    with file:
        pass
    assert content(kept(store, "d/k")) == b"first"


def test_what_others_do_is_noticed(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "base" / "d" / "k"
    for step in range(3):
        assert content(kept(store, "d/k")) == path.read_bytes()
        (tmp_path / "new").write_bytes(b"other")
        os.replace(tmp_path / "new", path)
        assert content(kept(store, "d/k")) == b"other"
        with path.open("r+b") as file:
            file.write(b"edit" + bytes([step]))
        os.utime(path, ns=(step, step))
        assert content(kept(store, "d/k")) == b"edit" + bytes([step])
    path.unlink()
    assert kept(store, "d/k") is None


def test_a_changed_file_with_its_old_times_is_noticed(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "base" / "d" / "k"
    before = kept(store, "d/k")
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"1234!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert kept(store, "d/k") is not before


def test_a_link_that_leads_out_is_noticed(store: LocalStore, tmp_path: Path) -> None:
    assert kept(store, "d/k") is not None
    (tmp_path / "base" / "d").rename(tmp_path / "base" / "e")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "k").write_bytes(b"secret")
    (tmp_path / "base" / "d").symlink_to(tmp_path / "out")
    with pytest.raises(InvalidKeyError):
        kept(store, "d/k")


@pytest.mark.parametrize("how", ["set", "erase", "erase_prefix", "erase_all", "edit"])
def test_our_own_writers_let_go_of_it(store: LocalStore, how: str) -> None:
    file = kept(store, "d/k")
    assert file is not None
    number = file.fd
    del file
    assert is_open(number)
    if how == "set":
        store.set("d/k", b"second")
    elif how == "erase":
        store.erase("d/k")
    elif how == "erase_prefix":
        store.erase_prefix("d/")
    elif how == "erase_all":
        store.erase_prefix("")
    else:
        with store.files.edit("d/k"):
            pass
    assert not is_open(number)


def test_no_more_than_a_few_are_kept_and_who_reads_one_may_go_on(store: LocalStore) -> None:
    first = kept(store, "d/k")
    for number in range(200):
        store.set(f"many/{number}", b"%d" % number)
        assert content(kept(store, f"many/{number}")) == b"%d" % number
    assert len(kept_files) == kept_files.limit
    assert (str(store.root), "d/k") not in kept_files
    assert content(first) == b"first"


def test_a_forked_child_has_none(store: LocalStore) -> None:
    file = kept(store, "d/k")
    assert file is not None
    number = file.fd
    del file
    child = os.fork()
    if child == 0:
        right = not is_open(number) and len(kept_files) == 0 and content(kept(store, "d/k")) == b"first"
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert content(kept(store, "d/k")) == b"first"


def test_a_subclass_that_opens_files_itself_sees_all(tmp_path: Path) -> None:
    class WatchingFiles(LocalFiles):
        def open(self, key: str) -> OpenFile | None:
            seen.append(key)
            return super().open(key)

    class Watching(LocalStore):
        files_class = WatchingFiles

    seen: list[str] = []
    store = Watching(tmp_path)
    store.set("k", b"1")
    assert kept(store, "k") is None
    assert seen == []


def test_several_are_looked_at_together(store: LocalStore) -> None:
    """One that has changed is opened anew, and the others stay; without one of them there is none."""
    for key in ("d/a", "d/b", "d/c"):
        store.set(key, key.encode())
    keys = ["d/a", "d/b", "d/c"]
    before = store.files.keep_open(keys)
    assert before is not None
    again = store.files.keep_open(keys)
    assert again is not None
    assert all(one is other for one, other in zip(before, again, strict=True))
    (store.root / "d" / "b").write_bytes(b"other")
    after = store.files.keep_open(keys)
    assert after is not None
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert [content(file) for file in after] == [b"d/a", b"other", b"d/c"]
    store.erase("d/c")
    assert store.files.keep_open(keys) is None
