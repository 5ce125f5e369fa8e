"""Files that are written piece by piece before they take the place of a key: what may come in between."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError
from zardine.stores.base import Condition, Version
from zardine.stores.local import new_file
from zardine.stores.local.store import LocalStore
from zardine.stores.wrappers.cached import CachedStore


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_file_is_beside_its_place(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.new_value("a/k") as new:
        assert files(tmp_path) == []  # before there is anything to write
        new.write([b"first"])
        assert [path.read_bytes() for path in (tmp_path / "a").iterdir()] == [b"first"]
        assert list(store.list()) == []
        new.put()
        assert files(tmp_path) == ["a", "a/k"]
    assert files(tmp_path) == ["a", "a/k"]


def test_rights_stay_and_an_empty_value_is_one(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("k", b"old")
    (tmp_path / "k").chmod(0o640)
    with store.new_value("k") as new:
        new.put()
    assert store.get("k") == b""
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("made_anew", [False, True])
def test_a_directory_that_was_erased_meanwhile(tmp_path: Path, locked: bool, made_anew: bool) -> None:
    store = LocalStore(tmp_path)
    with store.new_value("a/k") as new:
        new.write([b"new"])
        shutil.rmtree(tmp_path / "a")
        if made_anew:
            store.set("a/other", b"")
        if locked:
            with store.lock("a/k"), pytest.raises(ConditionFailedError):
                new.put()
        else:
            with pytest.raises(ConditionFailedError):
                new.put()
    assert list(store.list()) == (["a/other"] if made_anew else [])


def test_a_directory_that_is_erased_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    open_file = os.open

    def late(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags == new_file.NEW:
            opened.append(path)
            if len(opened) == 1:
                (tmp_path / "a").rmdir()
        return open_file(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", late)
    store = LocalStore(tmp_path)
    with store.new_value("a/k") as new:
        new.write([b"new"])
        new.put()
    assert len(opened) == 2
    assert store.get("a/k") == b"new"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, parts: Sequence[BytesLike], offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwritev", full)
    store = LocalStore(tmp_path)
    message = r"cannot write key 'a/k'.*No space left"
    with pytest.raises(StoreError, match=message) as raised, store.new_value("a/k") as new:
        new.write([b"new"])
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(tmp_path / "a/k")
    assert files(tmp_path) == []


def test_errors_of_who_makes_the_bytes_are_not_those_of_the_file(tmp_path: Path) -> None:
    store, own = LocalStore(tmp_path), OSError(errno.EIO, "of a codec that reads files")

    def make() -> None:
        with store.new_value("a/k") as new:
            new.write([b"new"])
            raise own

    with pytest.raises(OSError, match="of a codec") as raised:
        make()
    assert raised.value is own
    assert files(tmp_path) == []


def test_room_that_files_take_which_are_closed_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def once(name: str) -> None:
        call = getattr(os, name)

        def made(*args: Any, **options: Any) -> Any:
            calls.append(name)
            if calls.count(name) == 1 and (name != "open" or args[1] == new_file.NEW):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **options)

        monkeypatch.setattr(os, name, made)

    store = LocalStore(tmp_path)
    store.set("k", b"old")
    monkeypatch.setattr(new_file, "made_room", lambda error: error.errno == errno.ENOSPC)
    monkeypatch.setattr("zardine.stores.open_files.made_room", lambda error: error.errno == errno.ENOSPC)
    once("pwritev")
    once("replace")
    with store.new_value("k") as new:
        new.write([b"new"])
        new.put()
    assert (calls.count("pwritev"), calls.count("replace")) == (2, 2)
    assert store.get("k") == b"new"
    assert files(tmp_path) == ["k"]


def test_who_wants_to_see_what_is_set_sees_it(tmp_path: Path) -> None:
    seen: list[bytes] = []

    class Seeing(LocalStore):
        def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
            seen.append(bytes(value))
            return super().set(key, value, condition=condition)

    cached = CachedStore(Seeing(tmp_path))
    assert cached.get("k") is None
    with cached.new_value("k") as new:
        new.write([b"n", b"ew"])
        new.put()
    assert seen == [b"new"]
    assert cached.get("k") == b"new"
