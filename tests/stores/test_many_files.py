"""Many small files at a time: the kernel's way and the other one do the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zardine.kernel import KERNEL
from zardine.stores.local import many_files
from zardine.stores.local.base_directory import BaseDirectory

VALUES = {f"a/{i % 7}/{i}": bytes([i % 256]) * (i % 50) for i in range(300)}


@pytest.fixture(params=["kernel", "python"])
def base(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseDirectory:
    """An empty base directory; few directories are open, and few files handed on, at a time."""
    if request.param == "python" or KERNEL is None:
        monkeypatch.setattr(many_files, "KERNEL", None)
    monkeypatch.setattr(many_files, "_DIRECTORIES", 3)
    monkeypatch.setattr(many_files, "_FILES", 20)
    return BaseDirectory(str(tmp_path / "base"))


def test_files_are_made_where_nothing_is(base: BaseDirectory) -> None:
    many_files.make_files(base, VALUES.items())
    assert {key: Path(base.path_of(key)).read_bytes() for key in VALUES} == VALUES
    with pytest.raises(FileExistsError):
        many_files.make_files(base, [("a/new", b"1"), ("a/0/0", b"2")])
    assert Path(base.path_of("a/0/0")).read_bytes() == b""
    many_files.make_files(base, [])


def test_files_are_read_whole(base: BaseDirectory, tmp_path: Path) -> None:
    many_files.make_files(base, VALUES.items())
    (tmp_path / "outside").write_bytes(b"x")
    os.symlink(tmp_path / "outside", base.path_of("a/link"))
    found = many_files.read_files(base, [*VALUES, "a/none", "a/0", "a/link"], 40)
    if many_files.KERNEL is None:
        assert set(found) == {None}  # others read them one by one
        return
    assert found == [*(value if len(value) <= 40 else None for value in VALUES.values()), None, None, None]
    os.symlink(tmp_path, base.path_of("a/folder"))
    assert many_files.read_files(base, ["a/folder/outside"], 40) == [None]
    assert many_files.read_files(base, ["b/0"], 40) == [None]


def test_files_are_removed(base: BaseDirectory) -> None:
    many_files.make_files(base, [(f"{i}", b"x") for i in range(40)])
    directory = base.open("")
    try:
        many_files.remove_files([(directory, str(i).encode()) for i in range(45)])
        assert os.listdir(directory) == []
        os.mkdir("sub", dir_fd=directory)
        with pytest.raises(OSError, match="sub"):
            many_files.remove_files([(directory, b"sub")] * 20)
    finally:
        os.close(directory)
