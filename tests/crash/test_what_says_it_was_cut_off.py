"""The record beside a shard that is edited: who reads it, who mends by it, who removes it, and what it cannot do."""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from crash.torn import killed_states, put_state, state_of
from zardine.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zardine.engine.index_cache import INDEXES
from zardine.errors import CorruptionError, InvalidKeyError, ShardIndexError, TornShardWarning
from zardine.sharding.index import ShardIndex, encode_index
from zardine.storage import CachedStore, CountingStore, LocalStore, PrefixStore, Store
from zardine.stores.local.beside import EditRecord, RecordFile, Table
from zardine.stores.local.files import LocalFiles
from zardine.tools.checking.chunk import nested_sharding

LOCATIONS = pytest.mark.parametrize("location", ["end", "start"])
APPEND: Any = {"write_strategy": "append", "most_unused": 1.0}
RECORD = "c/.zardine-edit-0.tmp"
BEFORE = np.array([1, 2, 3, 4, 5, 6, 0, 0])
AFTER = np.array([1, 2, 3, 9, 5, 6, 0, 0])


def made(path: Path, location: str = "end", store: Store | None = None) -> zardine.Array:
    shards: Any = {"shape": (8,), "index_location": location}
    array = zardine.create_array(
        path if store is None else store,
        shape=(8,),
        chunks=(2,),
        shards=shards,
        dtype="i8",
        compressors=None,
        fill_value=0,
        config=APPEND,
    )
    array[...] = BEFORE
    return array


def write(array: zardine.Array) -> None:
    array[3] = 9


def torn(path: Path, location: str = "end", store: Store | None = None) -> np.ndarray[Any, Any]:
    """A shard whose writer was killed; gives what is to be read of it.

    With the index at the end it died in the new chunk, with the index at the start in the middle of that.
    """
    array = made(path, location, store)
    states = killed_states(path, lambda: write(array))
    first, last = (states[i]["c/0"] for i in (0, -1))
    if location == "start":
        put_state(next(state for state in states if state["c/0"][:68] not in (first[:68], last[:68])), path)
        return AFTER
    put_state(next(state for state in states if len(first) + 8 == len(state["c/0"])), path)
    return BEFORE


def read_quietly(where: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return zardine.open_array(where, mode="r")[...]


WRAPPERS: dict[str, Callable[[Path], Store]] = {
    "alone": LocalStore,
    "prefix": lambda path: PrefixStore(LocalStore(path.parent), path.name),
    "cached": lambda path: CachedStore(LocalStore(path)),
    "counting": lambda path: CountingStore(LocalStore(path)),
    "all": lambda path: CachedStore(CountingStore(PrefixStore(LocalStore(path.parent), path.name))),
}


@LOCATIONS
@pytest.mark.parametrize("kind", WRAPPERS)
def test_through_every_wrapper(kind: str, location: str, tmp_path: Path) -> None:
    """Reading needs no right to write, and writes nothing; the next write puts the shard in order."""
    path = tmp_path / "a"
    values = torn(path, location)
    left = state_of(path)
    store = WRAPPERS[kind](path)
    for each in (store.with_read_only(True), store):
        with pytest.warns(TornShardWarning, match="was cut off"):
            np.testing.assert_array_equal(zardine.open_array(each)[...], values)
        with pytest.warns(TornShardWarning, match="was cut off"):
            assert zardine.open_array(each)[5] == 6
        with pytest.warns(TornShardWarning):
            assert zardine.open_array(each, config={"cache": 2**20})[5] == 6
    assert state_of(path) == left
    zardine.open_array(store, config=APPEND)[0] = 7
    values = values.copy()
    values[0] = 7
    for reader in (read_quietly(store), read_quietly(path), zarr.open_array(path, mode="r")[...]):
        np.testing.assert_array_equal(reader, values)
    assert os.listdir(path / "c") == ["0"]


@LOCATIONS
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
@pytest.mark.parametrize("way", ["partial", "whole", "emptied", "hard link", "read-only file"])
def test_the_next_write_of_any_kind(way: str, strategy: str, location: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    values = torn(path, location).copy()
    array = zardine.open_array(path, config={"write_strategy": strategy})
    if way == "hard link":
        shutil.copytree(path, tmp_path / "b", copy_function=os.link)
    if way == "read-only file":
        (path / "c/0").chmod(0o444)
    part = slice(0, {"whole": 8, "emptied": 8}.get(way, 1))
    values[part] = array[part] = 0 if way == "emptied" else 7
    np.testing.assert_array_equal(read_quietly(path), values)
    if way == "emptied":
        assert not (path / "c").exists()
    else:
        assert os.listdir(path / "c") == ["0"]
    if way == "hard link":
        with pytest.warns(TornShardWarning):
            assert zardine.open_array(tmp_path / "b")[5] == 6


@LOCATIONS
def test_a_copy_of_the_folder_and_a_link_to_the_shard(location: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    values = torn(path, location)
    subprocess.run(["cp", "-r", path, tmp_path / "copy"], check=True)
    shutil.copytree(path, path / "linked")
    (path / "linked/c/0").unlink()
    (path / "linked" / RECORD).unlink()
    (path / "linked/c/0").symlink_to("../../c/0")
    for each in (tmp_path / "copy", path / "linked"):
        with pytest.warns(TornShardWarning):
            np.testing.assert_array_equal(
                zardine.open_array(path, path=os.path.relpath(each, path))[...]
                if each.parent == path
                else zardine.open_array(each)[...],
                values,
            )


@LOCATIONS
def test_without_the_record_it_is_damage(location: str, tmp_path: Path) -> None:
    """Also where it is not whole, belongs to another shard, or to one that was replaced."""
    torn(tmp_path, location)
    record = tmp_path / RECORD
    good = record.read_bytes()
    other = EditRecord.decode(good)
    assert other is not None
    moved = EditRecord(
        other.length, Table(other.before.size, other.before.at, 1), Table(other.after.size, other.after.at, 1)
    )
    bad: list[bytes | None] = [None, good[:-1], good + b"x", bytes([good[0] ^ 1]) + good[1:], moved.encode(), b""]
    for each in bad:
        record.unlink(missing_ok=True)
        if each is not None:
            record.write_bytes(each)
        array = zardine.open_array(tmp_path, config=APPEND)
        before = state_of(tmp_path)
        with pytest.raises(CorruptionError):
            array[5]
        with pytest.raises(CorruptionError, match="nothing was written"):
            array[5] = 1
        assert (tmp_path / "c/0").read_bytes() == before["c/0"]
        assert [fault.kind for fault in zardine.verify(tmp_path).faults] == ["index"]


@LOCATIONS
def test_a_file_that_others_made_longer_is_another_one(location: str, tmp_path: Path) -> None:
    torn(tmp_path, location)
    with (tmp_path / "c/0").open("ab") as file:
        file.write(bytes(300))
    with pytest.raises(CorruptionError):
        zardine.open_array(tmp_path)[5]
    with pytest.raises(CorruptionError, match="nothing was written"):
        zardine.open_array(tmp_path)[5] = 1


@LOCATIONS
def test_repair_and_verify(location: str, tmp_path: Path) -> None:
    values = torn(tmp_path, location)
    (fault,) = zardine.verify(tmp_path).faults
    assert (fault.kind, fault.key) == ("index", "c/0")
    assert "the last write was cut off, so it is read as it was" in fault.message
    left = state_of(tmp_path)
    tried = zardine.repair(tmp_path, dry_run=True, older_than=0)
    assert {action.kind for action in tried.actions} == {"kept", "repaired", "leftover"}
    assert state_of(tmp_path) == left
    done = zardine.repair(tmp_path)
    assert {action.kind for action in done.actions} == {"kept", "repaired"}
    assert "its record says which index counts; 3 of 3 inner chunks saved" in done.actions[1].message
    assert not done.left
    np.testing.assert_array_equal(read_quietly(tmp_path), values)
    assert os.listdir(tmp_path / "c") == ["0"]
    assert zardine.verify(tmp_path)


def test_repair_without_the_record_says_what_it_finds(tmp_path: Path) -> None:
    torn(tmp_path)
    (tmp_path / RECORD).unlink()
    (fault,) = zardine.verify(tmp_path).faults
    assert "no record says that a write was cut off, but an earlier index is in it" in fault.message
    left = state_of(tmp_path)
    tried = zardine.repair(tmp_path, dry_run=True)
    assert "an earlier index" in tried.actions[1].message
    assert state_of(tmp_path) == left
    assert zardine.repair(tmp_path)
    np.testing.assert_array_equal(read_quietly(tmp_path), BEFORE)


@LOCATIONS
def test_leftovers(location: str, tmp_path: Path) -> None:
    """To remove them undoes the edit, or finishes it, so that the record is needed no more."""
    values = torn(tmp_path, location)
    store = LocalStore(tmp_path)
    left = state_of(tmp_path)
    assert list(store.list()) == ["c/0", "zarr.json"]
    assert list(store.leftovers(0)) == [str(tmp_path / RECORD)]
    assert [note.key for note in zardine.verify(tmp_path).notes] == []
    os.utime(tmp_path / RECORD)
    assert store.remove_leftovers() == 0
    assert state_of(tmp_path) == left
    assert store.remove_leftovers(0) == 1
    assert sorted(state_of(tmp_path)) == ["c/0", "zarr.json"]
    np.testing.assert_array_equal(read_quietly(tmp_path), values)
    with pytest.raises(InvalidKeyError):
        store.get(RECORD)


def test_leftovers_of_files_that_are_gone_or_shared(tmp_path: Path) -> None:
    torn(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=os.link)
    store = LocalStore(tmp_path / "a")
    assert store.remove_leftovers(0) == 0  # it cannot be undone in a file with two names, so it is still needed
    with pytest.warns(TornShardWarning):
        assert zardine.open_array(tmp_path / "a")[5] == 6
    (tmp_path / "a/c/0").unlink()
    assert store.remove_leftovers(0) == 1
    assert LocalStore(tmp_path / "b").remove_leftovers(0) == 1
    np.testing.assert_array_equal(read_quietly(tmp_path / "b"), BEFORE)


def test_repair_removes_what_is_left_and_a_dry_run_does_not(tmp_path: Path) -> None:
    """Of a writer that died when all was written, and of one that had not begun to replace a file."""
    array = made(tmp_path)
    put_state(killed_states(tmp_path, lambda: write(array))[-2], tmp_path)
    unfinished = tmp_path / f"c/.zardine-{'0' * 16}.tmp"
    unfinished.write_bytes(b"half")
    left = state_of(tmp_path)
    assert RECORD in left
    assert {note.kind for note in zardine.verify(tmp_path).notes} <= {"unused"}  # they are too young
    for dry_run in (True, False):
        done = zardine.repair(tmp_path, older_than=0, dry_run=dry_run)
        assert [action.kind for action in done.actions] == ["leftover", "leftover"]
        if dry_run:
            assert state_of(tmp_path) == left
    assert sorted(state_of(tmp_path)) == ["c/0", "zarr.json"]
    np.testing.assert_array_equal(read_quietly(tmp_path), AFTER)


def test_verify_lists_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torn(tmp_path)
    leftovers = LocalStore.leftovers
    monkeypatch.setattr(LocalStore, "leftovers", lambda store, older_than=3600.0: leftovers(store, older_than - 3600.0))
    notes = [note for note in zardine.verify(tmp_path).notes if note.kind == "leftover"]
    assert [note.key for note in notes] == [str(tmp_path / RECORD)]


@LOCATIONS
def test_a_writer_that_finds_what_another_left(location: str, tmp_path: Path) -> None:
    """It died when its edit was done, or before it had begun: the next one puts that in order, and then its own."""
    for number in (-1, 0):
        path = tmp_path / str(number)
        array = made(path, location)
        states = killed_states(path, lambda array=array: write(array))
        data = states[number]["c/0"]
        part = slice(68) if location == "start" else slice(len(data) - 68, None)
        same = [state for state in states if len(state["c/0"]) == len(data) and state["c/0"][part] == data[part]]
        put_state(next(state for state in same if RECORD in state), path)
        zardine.open_array(path, config=APPEND)[0] = 7
        values = (BEFORE if number == 0 else AFTER).copy()
        values[0] = 7
        np.testing.assert_array_equal(read_quietly(path), values)
        assert os.listdir(path / "c") == ["0"]
        shard = path / "c/0"
        good = shard.read_bytes()
        for length in range(len(good)):  # no index before is one any more
            shard.write_bytes(good[:length])
            INDEXES.clear()
            try:
                found = zardine.open_array(path, mode="r")[0]
            except CorruptionError:
                continue
            assert (location, found) == ("start", 7)


def test_a_reader_that_meets_the_writer_who_mends(tmp_path: Path) -> None:
    """It has opened the torn file, which is replaced, with its record, before the reader gets the lock."""
    made(tmp_path / "new")[0] = 7
    torn(tmp_path / "a")
    array = zardine.open_array(tmp_path / "a", mode="r")
    real, replaced = LocalFiles.open, []

    def open_file(files: LocalFiles, key: str) -> Any:
        file = real(files, key)
        if key == "c/0" and len(replaced) < 2:
            replaced.append(key)
            if len(replaced) == 2:  # the one that is read under a lock
                (tmp_path / "new/c/0").replace(tmp_path / "a/c/0")
                (tmp_path / "a" / RECORD).unlink()
        return file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalFiles, "open", open_file)
        assert array[...].tolist() == [7, *BEFORE[1:]]
    assert len(replaced) == 2


def test_names_that_leave_no_room_for_a_record(tmp_path: Path) -> None:
    """The shard is replaced whole then."""
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="name too long"):
            RecordFile(directory, "x" * 250, durable=False).write(EditRecord(4, Table(4, 0, 0), Table(8, 4, 0)))
    finally:
        os.close(directory)
    store = LocalStore(tmp_path)
    for length, edited in ((237, True), (238, False), (255, False)):
        store.set("x" * length, b"value")
        with store.files.edit("x" * length) as file:
            assert (file is not None) == edited


def test_a_torn_shard_is_counted(tmp_path: Path) -> None:
    torn(tmp_path)
    assert zardine.open_array(tmp_path).nchunks_initialized == 3


def nested(path: Path | dict[str, Any], dtype: str = "u2", **more: Any) -> zardine.Array:
    """Shards in a shard, each of four."""
    inner = ShardingCodec(chunk_shape=(2, 2), **more)
    outer = ShardingCodec(chunk_shape=(4, 4), codecs=(inner,))
    array = zardine.create_array(path, shape=(8, 8), chunks=(8, 8), dtype=dtype, compressors=None, serializer=outer)
    array[...] = 1
    array[4:, 4:] = 0
    array[7, 7] = 5
    return array


def test_the_index_of_a_shard_in_a_shard_is_never_taken_for_the_one_around(tmp_path: Path) -> None:
    array = nested(tmp_path)
    file = tmp_path / "c/0/0"
    good = file.read_bytes()
    bad = bytearray(good)
    bad[-67] ^= 64
    file.write_bytes(bad)
    with pytest.raises(CorruptionError):
        zardine.open_array(tmp_path)[:4, :4]
    with pytest.raises(CorruptionError, match="nothing was written"):
        zardine.open_array(tmp_path)[4:, 4:] = 9
    assert file.read_bytes() == bad
    assert zardine.repair(tmp_path)
    np.testing.assert_array_equal(read_quietly(tmp_path), array[...])
    assert (array[:4, :4] == 1).all()


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("kind", ["files", "memory"])
def test_a_shard_that_is_cut_where_one_in_it_ends(kind: str, location: str, tmp_path: Path) -> None:
    """What is left ends in a valid index, as it does for each of the shards in it: all tools refuse it."""
    store: Any = tmp_path if kind == "files" else zardine.storage.MemoryStore()
    inner = {"codecs": (BytesCodec(), Crc32cCodec()), "index_location": location}
    array = nested(store, **inner)
    values = array[...]
    keep = array.store
    good = bytes(keep.get("c/0/0") or b"")
    layout = array._handle.layout.uniform_shard
    assert layout is not None
    index = layout.index_of(good)
    ends = index.offsets[index.stored()] + index.lengths[index.stored()]
    for end in ends.tolist():
        keep.set("c/0/0", good[:end])
        mode = zardine.open_array(store, mode="r")
        for part in (np.s_[:4, :4], np.s_[:4, 4:], np.s_[4:, :4], np.s_[4:, 4:], np.s_[...]):
            with pytest.raises(CorruptionError):
                mode[part]
        with pytest.raises(CorruptionError):
            zardine.open_array(store)[0, 0] = 9
        assert zardine.verify(store).faults
        assert zardine.compact(store).faults
        before = bytes(keep.get("c/0/0") or b"")
        zardine.repair(store, keep_damaged=False)
        assert bytes(keep.get("c/0/0") or b"") == before
    keep.set("c/0/0", good)
    np.testing.assert_array_equal(array[...], values)
    assert len(ends) == 4


def test_chunks_that_have_the_form_of_an_index(tmp_path: Path) -> None:
    """An index that names nothing is 64 bytes of ones and their checksum, as is a chunk of -1."""
    array = zardine.create_array(tmp_path, shape=(32,), chunks=(8,), shards=(32,), dtype="i8", compressors=None)
    array[...] = -1
    array[8:16] = 0
    file = tmp_path / "c/0"
    good = file.read_bytes()
    assert good[:64] == b"\xff" * 64
    for length in range(len(good)):
        if length == 68:
            continue  # no byte differs from a shard of which nothing is stored
        file.write_bytes(good[:length])
        with pytest.raises(CorruptionError):
            zardine.open_array(tmp_path)[8:16]
        with pytest.raises(CorruptionError):
            zardine.open_array(tmp_path)[...]
        with pytest.raises(CorruptionError):
            zardine.open_array(tmp_path)[9] = 1
        assert file.read_bytes() == good[:length]
    file.write_bytes(good[:136])
    assert [fault.kind for fault in zardine.verify(tmp_path).faults] == ["index"]


def test_a_nested_shard_whose_index_points_outside(tmp_path: Path) -> None:
    """Its entries are looked at before the bytes there are taken for chunks."""
    inner = ShardingCodec(chunk_shape=(2,), codecs=(BytesCodec(),))
    outer = ShardingCodec(chunk_shape=(8,), codecs=(inner,))
    array = zardine.create_array(tmp_path, shape=(16,), chunks=(16,), dtype="u8", compressors=None, serializer=outer)
    array[...] = np.arange(1, 17)
    layout = array._handle.layout.uniform_shard
    chain = array._handle.layout.chain((8,))
    assert layout is not None
    data = bytearray(chain.encode(np.arange(1, 9, dtype="u8")))
    inside = nested_sharding(chain)
    assert inside is not None
    index = inside.layout.index_of(data)
    offsets = index.offsets.copy()
    offsets[3] = len(data) - inside.layout.index_size - 8  # in the index itself
    data[-inside.layout.index_size :] = encode_index(ShardIndex(offsets, index.lengths), inside.layout.index_chain)
    with pytest.raises(ShardIndexError, match="outside the data"):
        chain.decode(bytes(data))


def test_repair_gives_way_to_who_has_written_meanwhile() -> None:
    """A program that takes no locks has put a sound shard there, after it was read and before it is replaced."""
    inner = zardine.storage.MemoryStore()
    array = zardine.create_array(inner, data=BEFORE, chunks=2, shards=8)
    good = bytes(inner.get("c/0") or b"")
    bad = bytearray(good)
    bad[-1] ^= 1

    class Meeting(zardine.storage.WrapperStore):
        meets = 1

        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "c/0" and Meeting.meets:
                Meeting.meets -= 1
                inner.set(key, newer)
            return super().set(key, value, condition=condition)

    array[0] = 8
    newer = bytes(inner.get("c/0") or b"")
    inner.set("c/0", bytes(bad))
    zardine.repair(Meeting(inner))
    assert Meeting.meets == 0
    assert zardine.open_array(inner)[0] == 8


@LOCATIONS
def test_a_record_that_could_not_be_removed_does_no_harm(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is done: nobody sees what was before, however the file is cut; the next edit has no need of it."""
    array = made(tmp_path, location)
    old = (tmp_path / "c/0").read_bytes()

    def refused(self: RecordFile) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "remove", refused)
        write(array)
    assert (tmp_path / RECORD).exists()
    new = (tmp_path / "c/0").read_bytes()
    assert len(new) != len(old)
    for where in (tmp_path, CachedStore(LocalStore(tmp_path)), CountingStore(LocalStore(tmp_path))):
        INDEXES.clear()
        assert (read_quietly(where) == AFTER).all()
    damaged = 0
    for length in range(len(new)):
        for changed in (new[:length], new[:length] + bytes([new[length] ^ 255]) + new[length + 1 :]):
            (tmp_path / "c/0").write_bytes(changed)
            INDEXES.clear()
            try:
                assert (read_quietly(tmp_path) == AFTER).all()
            except zardine.errors.DataError:
                damaged += 1
    assert damaged > len(new)
    (tmp_path / "c/0").write_bytes(new)
    INDEXES.clear()
    array = zardine.open_array(tmp_path, mode="r+", config=APPEND)
    array[4] = 7
    assert not (tmp_path / RECORD).exists()
    assert (read_quietly(tmp_path) == [1, 2, 3, 9, 7, 6, 0, 0]).all()
