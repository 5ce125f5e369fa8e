"""Filesystems of fsspec whose ``info`` tells no version of a file."""

from __future__ import annotations

import pytest

import zardine
from servers import servers
from zardine.storage import FsspecStore

fsspec = servers.package("fsspec")
memory = servers.package("fsspec.implementations.memory")


class Plain(memory.MemoryFileSystem):
    """Tells of a file no more than its size."""

    store: dict = {}  # noqa: RUF012 - as the class above has it
    pseudo_dirs = [""]  # noqa: RUF012
    cachable = False

    def info(self, path, **kwargs):
        found = super().info(path, **kwargs)
        return {name: found[name] for name in ("name", "size", "type")}


def test_a_change_that_could_undo_another_warns() -> None:
    with pytest.warns(UserWarning, match="no conditional writes"):
        zardine.create_array(FsspecStore(Plain(), "/a"), shape=(4,), chunks=(4,), dtype="i4")[...] = 1
    array = zardine.open_array(FsspecStore(Plain(), "/a"), mode="r+")
    with pytest.warns(UserWarning, match="no conditional writes"):
        array[0] = 5
    other = zardine.open_array(FsspecStore(Plain(), "/a"), mode="r+")
    with pytest.warns(UserWarning, match="no conditional writes"):
        other.attrs["x"] = 1
    assert other[...].tolist() == [5, 1, 1, 1]
