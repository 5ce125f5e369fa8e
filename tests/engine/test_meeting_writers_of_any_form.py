"""Another writer comes between a read and a write: in every form of what is stored, nothing is lost."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import NodeExistsError, StoreError
from zardine.storage import LocalStore, MemoryStore
from zardine.stores.base import WHOLE, ByteRange, Reading
from zardine.stores.local.files import LocalFiles
from zardine.tools.copying.new_place import Target


class Meeting:
    """Calls :attr:`other` once, just after a value was read of a key that ends as :attr:`at` says."""

    other: Callable[[], object] | None = None
    at = "c/0"

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        found: Reading | None = super().read(key, ranges)  # type: ignore[misc]
        if key.endswith(self.at) and self.other is not None:
            other, self.other = self.other, None
            other()
        return found


class MeetingMemory(Meeting, MemoryStore):
    """Its locks exclude others, who are let in nevertheless: as programs that take no locks."""


class MeetingRemote(MeetingMemory):
    """As object stores are: versions, and no locks that hold for others."""

    @property
    def lock_is_exclusive(self) -> bool:
        return False


class UneditedFiles(LocalFiles):
    can_edit = False


class MeetingFiles(Meeting, LocalStore):
    """Local files."""

    files_class = UneditedFiles


def make(kind: str, path: Path) -> Any:
    return {"memory": MeetingMemory, "remote": MeetingRemote}[kind]() if kind != "files" else MeetingFiles(path)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("layout", [{"chunks": (4,)}, {"chunks": (2,), "shards": (4,)}], ids=["chunk", "shard"])
@pytest.mark.parametrize("value", [5, 0])
@pytest.mark.parametrize("kind", ["memory", "remote", "files"])
def test_a_part_of_a_chunk_or_shard(kind: str, value: int, layout: Any, kernel: bool, tmp_path: Path) -> None:
    store = make(kind, tmp_path / "a")
    serializer = {} if kernel else {"filters": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]}
    array = zardine.create_array(store, shape=(4,), dtype="i4", **layout, **serializer)
    array[...] = [1, 0, 0, 0]
    twin = zardine.open_array(make(kind, tmp_path / "a") if kind == "files" else MemoryStore(store._backing.values))
    assert twin[0] == 1
    store.other = lambda: twin.__setitem__(3, 9)
    array[0] = value
    assert store.other is None
    assert zardine.open_array(store)[...].tolist() == [value, 0, 0, 9]


@pytest.mark.parametrize("kind", ["memory", "remote", "files"])
def test_compact_while_a_shard_is_written(kind: str, tmp_path: Path) -> None:
    store = make(kind, tmp_path / "a")
    array = zardine.create_array(
        store, shape=(8,), dtype="i4", chunks=(2,), shards=(8,), compressors=None, config={"chunk_order": "c"}
    )
    array[...] = np.arange(1, 9)
    shard = bytes(store.get("c/0"))
    index_size = array._handle.layout.uniform_shard.index_size
    store.set("c/0", shard[:-index_size] + b"unused" + shard[-index_size:])
    twin = zardine.open_array(make(kind, tmp_path / "a") if kind == "files" else MemoryStore(store._backing.values))

    def change() -> None:
        twin[:2] = 0  # so that every chunk lies elsewhere
        twin[7] = 70

    store.other = change
    zardine.compact(store)
    assert store.other is None
    assert zardine.open_array(store)[...].tolist() == [0, 0, 3, 4, 5, 6, 7, 70]


def test_two_conversions_that_both_found_the_place_free() -> None:
    store = MemoryStore()
    places = [Target(store, "a", source, source) for source in ("one", "two")]
    assert [place.look(overwrite=False, resume=True) for place in places] == [False, False]
    places[0].begin(overwrite=False)
    before = bytes(store.get(places[0].key) or b"")
    with pytest.raises((NodeExistsError, StoreError)):
        places[1].begin(overwrite=False)
    assert bytes(store.get(places[0].key) or b"") == before
