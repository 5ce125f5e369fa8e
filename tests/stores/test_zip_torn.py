"""Zip archives that were cut short, or not finished: read as they were before and not silently, or not at all."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest

import zardine
from stores.zip_programs import program
from zardine.errors import StoreError, TornShardWarning
from zardine.storage import MemoryStore, ZipStore
from zardine.stores.zip.directory import ZipDirectory

OLD = {"changed": b"old" * 20, "erased": b"gone", "kept": b"same"}
NEW = {"changed": b"new" * 30, "kept": b"same", "added": b"more"}


def open_path(path, data):
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return ZipStore(path)


def open_inside(path, data):
    values = MemoryStore()
    values.set("a.zip", data)
    return ZipStore.inside(values, "a.zip")


def written_twice(path):
    """The archive after each of two flushes."""
    with ZipStore(path) as store:
        for key, value in OLD.items():
            store.set(key, value)
    first = path.read_bytes()
    with ZipStore(path) as store:
        store.set("changed", NEW["changed"])
        store.set("added", NEW["added"])
        store.erase("erased")
    return first, path.read_bytes()


def look(opening, path, data):
    """What is in the archive, and how many warnings that gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = opening(path, data)
        found = {key: bytes(store.get(key)) for key in store.list()}
        ranges = {key: bytes(store.read(key, ((1, 2),)).parts[0]) for key in found}
    assert {key: value[1:3] for key, value in found.items()} == ranges
    assert {each.category for each in caught} <= {TornShardWarning}
    return found, len(caught)


@pytest.mark.parametrize("opening", [open_path, open_inside])
def test_cut_at_every_byte(tmp_path, opening):
    first, second = written_twice(tmp_path / "a.zip")
    path = tmp_path / "cut.zip"
    assert look(opening, path, second) == (NEW, 0)
    assert look(opening, path, first) == (OLD, 0)
    for length in range(len(first) + 1, len(second)):
        assert look(opening, path, second[:length]) == (OLD, 1), length
    for length in range(len(first)):
        with pytest.raises(StoreError, match=r"not a zip archive, or not a whole one: (there is no directory|it is e)"):
            opening(path, second[:length])


def test_every_damaged_byte_is_told(tmp_path):
    first, second = written_twice(tmp_path / "a.zip")
    path = tmp_path / "damaged.zip"
    for at in range(len(first), len(second)):
        damaged = bytearray(second)
        damaged[at] ^= 0xFF
        try:
            found, told = look(open_path, path, damaged)
        except StoreError:
            continue
        if told:
            assert found == OLD
        else:  # a time, or a byte that nobody reads; or a name, so that it is no key
            assert found.items() <= NEW.items(), at


@pytest.mark.parametrize("cut", [1, 22, 100, 300])
def test_an_array_in_a_cut_archive(tmp_path, cut):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        zardine.create_array(store, shape=(1000,), chunks=(10,), shards=(100,), dtype="i4")
    with ZipStore(path) as store:
        zardine.open_array(store)[...] = np.arange(1, 1001)
    data = path.read_bytes()[:-cut]
    copy = tmp_path / "copy.zip"
    copy.write_bytes(data)
    with pytest.warns(TornShardWarning, match=rf"copy\.zip is cut short .* {len(data)}\. It is read as it was before"):
        array = zardine.open(copy, mode="r")
    assert array[:5].tolist() == [0] * 5
    single = tmp_path / "single.zip"
    with ZipStore(single) as store:
        zardine.create_array(store, data=np.arange(100))
    single.write_bytes(single.read_bytes()[:-1])
    for mode in ("r", "r+", "a", "w-"):
        with pytest.raises(StoreError, match=r"no directory of entries .* put a whole copy in its place, or remove it"):
            zardine.open(single, mode=mode, shape=(3,), dtype="i4")


@pytest.mark.parametrize("content", [b"", b"x", bytes(1000), b"PK\x03\x04 and no more"])
@pytest.mark.parametrize("url", ["{}", "zip://{}"])
def test_what_is_no_archive_is_replaced(tmp_path, content, url):
    path = tmp_path / "a.zip"
    place = url.format(path)
    for mode in ("r", "r+", *(("a", "w-") if content else ())):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="not a zip archive"):
            zardine.open_array(place, mode=mode, **({} if mode[0] == "r" else {"shape": (3,), "dtype": "i4"}))
        assert path.read_bytes() == content
    for mode in ("w", *(() if content else ("a", "w-", None))):
        path.write_bytes(content)
        array = zardine.open_array(place, mode=mode, shape=(3,), dtype="i4")
        array[...] = 7
        array.store.close()
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert archive.infolist()[0].header_offset == 0
        assert zardine.open(place, mode="r")[...].tolist() == [7, 7, 7]
        del array
    path.write_bytes(content)
    group = zardine.open_group(place, mode="w")
    group.store.close()
    assert zipfile.ZipFile(path).namelist() == ["zarr.json"]


def test_what_is_no_archive_stays_until_it_is_replaced(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"no archive")
    with pytest.raises(TypeError, match="shape"):
        zardine.open_array(path, mode="w")
    with pytest.raises(StoreError, match="not a zip archive"):  # one node is to be replaced, not the whole file
        zardine.open_array(path, path="node", mode="w", shape=(3,), dtype="i4")
    assert path.read_bytes() == b"no archive"
    with pytest.raises(StoreError, match="not a zip archive"):
        ZipStore(path)


def test_other_bytes_are_no_directory(tmp_path):
    first, _ = written_twice(tmp_path / "a.zip")
    path = tmp_path / "other.zip"
    for data in (b"", b"x", b"<html>404</html>", bytes(100_000), b"PK\x05\x06", b"PK\x05\x06" + bytes(17)):
        with pytest.raises(StoreError, match="not a zip archive, or not a whole one"):
            open_path(path, data)
    for tail in (b"\n", bytes(100_000), b"PK\x05\x06" * 10, b"PK\x05\x06" + bytes(22), b"PK\x05\x06" + b"\xff" * 18):
        assert look(open_path, path, first + tail) == (OLD, 1)
    assert look(open_path, path, b"PK\x05\x06" + bytes(18)) == ({}, 0)
    with pytest.raises(StoreError, match="no directory"):  # begun as an archive without entries
        open_path(path, b"PK\x05\x06" + bytes(18) + first[:50])


def test_many_ends_of_one_directory_take_no_time(tmp_path, monkeypatch):
    """Each claims the same entries, and what was claimed before, and none of them is right."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(300):
            archive.writestr(f"k{number}", b"")
    data = bytearray(path.read_bytes())
    start, end = data.index(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    del data[end:]
    first = bytes(data) + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 300, 300, len(data) - start, start, 0)
    for _ in range(90):
        data += struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 300, 300, len(data) - start, start, 0)
    path.write_bytes(data + b"more")
    tried, parse = [], ZipDirectory._parse
    monkeypatch.setattr(ZipDirectory, "_parse", lambda self, end: tried.append(end) or parse(self, end))
    with pytest.raises(StoreError, match="no directory"):
        ZipStore(path)
    assert 3 <= len(tried) <= 12
    path.write_bytes(first + b"more")
    with pytest.warns(TornShardWarning):
        assert len(list(ZipStore(path).list())) == 300


def test_an_archive_that_is_a_value_is_not_taken_for_the_one_around_it(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for key in OLD:
            archive.writestr(key, b"of the inner one")
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        store.set("k", b"v")
    whole = path.read_bytes()
    with ZipStore(path) as store:
        store.set("nested", inner.getvalue())
    data = path.read_bytes()
    end = data.index(inner.getvalue()) + len(inner.getvalue())
    copy = tmp_path / "copy.zip"
    for length in (end, end + 1, end + 10):
        assert look(open_path, copy, data[:length]) == ({"k": b"v"}, 1)
        with pytest.raises(StoreError, match="no directory"):
            open_path(copy, data[len(whole) : length])


def test_bytes_before_an_archive_are_allowed_as_ever(tmp_path):
    first, _ = written_twice(tmp_path / "a.zip")
    path = tmp_path / "program.zip"
    assert look(open_path, path, b"#!/bin/sh\n" + first) == (OLD, 0)
    with ZipStore(path) as store:
        store.set("more", b"x")
    assert look(open_path, path, path.read_bytes()) == ({**OLD, "more": b"x"}, 0)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("kept") == OLD["kept"]
        assert archive.testzip() is None


def mend_by_writing(path):
    with ZipStore(path) as store:
        store.set("kept", b"same")


def mend_by_compacting(path):
    ZipStore(path).compact()


def mend_by_repairing(path):
    assert [each.kind for each in zardine.repair(path).actions] == ["leftover"]


@pytest.mark.parametrize("mend", [mend_by_writing, mend_by_compacting, mend_by_repairing])
@pytest.mark.filterwarnings("ignore::zardine.errors.TornShardWarning")
def test_verify_tells_of_it_and_it_can_be_mended(tmp_path, mend):
    path = tmp_path / "a.zip"
    _, second = written_twice(path)
    path.write_bytes(second[:-1])
    store = ZipStore(path)
    assert list(store.leftovers()) == list(store.faults()) != []
    report = zardine.verify(path)
    assert [each.kind for each in report.faults if "cut short or was not finished" in each.message] == ["torn"]
    del store
    mend(path)
    assert list(ZipStore(path).faults()) == list(ZipStore(path).leftovers()) == []
    assert look(open_path, path, path.read_bytes()) == (OLD, 0)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == sorted(OLD)


@pytest.mark.filterwarnings("error")
def test_while_another_process_writes_nothing_is_wrong(tmp_path):
    path = tmp_path / "a.zip"
    with program(path) as other:
        other.tell("first=1")
        assert list(ZipStore(path).list()) == []  # a new archive, nothing of which is finished yet
        assert list(ZipStore(path).faults()) == []
        other.tell("flush")
        assert list(ZipStore(path).list()) == ["first"]
        other.tell("second=2")
        store = ZipStore(path)
        assert list(store.list()) == ["first"]
        assert list(store.faults()) == list(store.leftovers()) == []
        with pytest.raises(StoreError, match="another process writes"):
            store.set("k", b"x")
        other.kill()
    with pytest.warns(TornShardWarning, match="not finished"):
        assert len(list(store.faults())) == 1
    assert list(store.list()) == ["first"]


def test_a_first_writer_that_was_killed_leaves_no_archive(tmp_path):
    path = tmp_path / "a.zip"
    with program(path) as other:
        other.tell("first=1")
    with pytest.raises(StoreError, match="killed before it finished"):
        ZipStore(path)
    path.unlink()
    ZipStore(path).set("k", b"x")


def test_an_archive_that_is_written_over_is_told_of(tmp_path):
    """Not replaced, as zardine does, but its bytes exchanged for those of another one of the same layout."""
    path, other = tmp_path / "a.zip", tmp_path / "b.zip"
    for place, value in ((path, 1), (other, 2)):
        with ZipStore(place) as store:
            options = {"chunks": (100,), "compressors": None, "checksum": False}
            zardine.create_array(store, data=np.full(100, value, "i4"), **options)
    store = ZipStore(path)
    assert bytes(store.read("c/0", ((8, 4),)).parts[0]) == b"\1\0\0\0"
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=(0, 0))
    for ranges in (((8, 4),), ((0, None),)):
        with pytest.raises(StoreError, match=r"key 'c/0' of .* is damaged"):
            store.read("c/0", ranges)
    assert bytes(ZipStore(path).read("c/0", ((8, 4),)).parts[0]) == b"\2\0\0\0"
