"""Zip archives in whose directory an entry has another name than before it: what is read, told of, written and kept."""

from __future__ import annotations

import gzip
import io
import mmap
import struct
import tempfile
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import zardine
from zardine.errors import StoreError
from zardine.storage import CountingStore, MemoryStore, ZipStore
from zardine.stores.zip import directory as zip_directory
from zardine.stores.zip.file import ObjectBytes

VALUES = np.arange(1, 9, dtype="i4")


def make_array(path, name="a"):
    """Four chunks, the last one written last."""
    with ZipStore(path) as store:
        array = zardine.create_group(store).create_array(name, shape=(8,), chunks=(2,), dtype="i4")
        for start in range(0, 8, 2):
            array[start : start + 2] = VALUES[start : start + 2]


def rename(path, old, new, *, before=False):
    """Damage a name: in the directory, or the one that stands ``before`` the entry."""
    data = bytearray(path.read_bytes())
    first = data.rindex(b"PK\x05\x06")
    first = data.rindex(b"zarr.json", 0, first) if before else struct.unpack_from("<I", data, first + 16)[0]
    at = data.index(old) if before else data.index(old, first)
    data[at : at + len(old)] = new
    path.write_bytes(data)


def read(path):
    return zardine.open_group(ZipStore(path), mode="r")["a"][...]


@pytest.mark.parametrize("damaged", [b"a/c/3", b"a/c/7", b"../c/", b"a/c/\0"])
def test_a_damaged_name_stays_one_whatever_is_done_with_the_archive(tmp_path, damaged):
    path = tmp_path / "a.zip"
    make_array(path)
    rename(path, b"a/c/1", damaged)
    both = f"the directory calls it {damaged.decode()!r}, and the name before it is 'a/c/1'".replace("\\", r"\\")
    for change in (
        lambda store: None,
        lambda store: zardine.open_group(store, mode="r+").attrs.update(x=1),
        lambda store: zardine.open_group(store, mode="r+")["a"].__setitem__(slice(6, 8), VALUES[6:]),
        lambda store: store.erase("nothing"),
    ):
        with ZipStore(path) as store:
            change(store)
        with pytest.raises(StoreError, match=both):
            read(path)
        assert (zardine.open_group(ZipStore(path))["a"][2 + 2 :] == VALUES[4:]).all()
        checked = zardine.verify(path)
        assert not checked.ok
        assert any(each.place == "/" and "is damaged" in str(each) and "a/c/1" in str(each) for each in checked.faults)
        assert not [each for each in checked.faults if each.kind in ("outside", "stray")]
        with pytest.raises(StoreError, match=both):
            zardine.copy_store(ZipStore(path), MemoryStore())
        size = path.stat().st_size
        with ZipStore(path) as store, pytest.raises(StoreError, match=f"is not rewritten: .*{both}"):
            store.compact()
        assert path.stat().st_size == size
        assert list(ZipStore(path).list_prefix("a/c/")) == ["a/c/0", "a/c/1", "a/c/2", "a/c/3"]
        assert dict(ZipStore(path).list_versions("a/c/"))["a/c/1"] is None
    with zipfile.ZipFile(path) as archive:
        assert damaged.decode() in [info.orig_filename for info in archive.infolist()]
    rename(path, damaged, b"a/c/1")  # the first in the directory
    assert (read(path) == VALUES).all()


def test_what_a_damaged_name_hides_can_be_written_and_erased(tmp_path):
    for written in ([[9, 9], [0, 0]], [[0, 0]], [[0, 0], [5, 6], [0, 0]]):
        for damaged in (b"a/c/3", b"a/c/7", b"../c/"):
            path = tmp_path / "a.zip"
            path.unlink(missing_ok=True)
            make_array(path)
            rename(path, b"a/c/1", damaged)
            with ZipStore(path) as store:
                array = zardine.open_group(store, mode="r+")["a"]
                for values in written:
                    array[2:4] = values
                    assert array[...].tolist() == [1, 2, *values, 5, 6, 7, 8]
            assert read(path).tolist() == [1, 2, 0, 0, 5, 6, 7, 8]
            assert zardine.verify(path).ok
            with ZipStore(path) as store:
                store.compact()
            assert read(path).tolist() == [1, 2, 0, 0, 5, 6, 7, 8]


def test_a_value_that_is_to_be_new_does_not_replace_one_whose_name_is_damaged(tmp_path):
    from zardine.stores.base import Condition

    path = tmp_path / "a.zip"
    make_array(path)
    rename(path, b"a/c/1", b"a/c/7")
    with ZipStore(path) as store:
        with pytest.raises(StoreError, match="is damaged"):
            store.set("a/c/1", b"new", condition=Condition(None))
        store.set("a/c/9", b"new", condition=Condition(None))
        store.set("a/c/7", b"of that name", condition=None)
        assert store.get("a/c/7") == b"of that name"
    store = ZipStore(path)
    assert store.get("a/c/7") == b"of that name"
    with pytest.raises(StoreError, match="is damaged"):
        store.get("a/c/1")
    assert list(store.list_prefix("a/c/")) == [f"a/c/{number}" for number in (0, 1, 2, 3, 7, 9)]


def test_all_of_a_prefix_is_erased(tmp_path):
    path = tmp_path / "a.zip"
    make_array(path)
    rename(path, b"a/c/1", b"a/c/7")
    with ZipStore(path) as store:
        store.erase_prefix("a/")
        assert store.get("a/c/1") is store.get("a/c/7") is None
    assert list(ZipStore(path).list()) == ["zarr.json"]
    assert zipfile.ZipFile(path).namelist() == ["zarr.json"]


def entries(path, *pairs):
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in pairs:
            archive.writestr(name, value)


def test_of_values_of_one_name_an_older_one_is_not_read_for_the_damaged_one(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("k1", b"old"), ("k2", b"other"), ("k1", b"new"))
    data = bytearray(path.read_bytes())
    at = data.rindex(b"k1")
    data[at : at + 2] = b"k2"
    path.write_bytes(data)
    for _ in range(2):
        store = ZipStore(path)
        assert store.get("k3") is None
        for key in ("k1", "k2"):
            with pytest.raises(StoreError, match="the directory calls it 'k2', and the name before it is 'k1'"):
                store.get(key)
        store.close()
        with ZipStore(path) as store:
            store.set("new", b"1")
    with zipfile.ZipFile(path) as archive:
        assert [info.filename for info in archive.infolist()] == ["k1", "k2", "k2", "new"]


def test_one_that_is_replaced_by_later_ones_is_in_the_way_of_nothing(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("k1", b"old"), ("k1", b"1"), ("k2", b"2"))
    data = bytearray(path.read_bytes())
    at = data.index(b"k1", data.index(b"PK\x01\x02"))
    data[at : at + 2] = b"k2"
    path.write_bytes(data)
    assert list(ZipStore(path).faults()) == []
    with ZipStore(path) as store:
        store.erase("k1")
        store.erase("k2")
    assert list(ZipStore(path).list()) == []
    assert ZipStore(path).get("k1") is None


def test_the_name_before_an_entry_may_be_the_damaged_one(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("k", b"1"), ("l", b"2"))
    whole = path.read_bytes()
    for own, is_told in ((b"m", True), (b"\0", False), (b"/", False)):
        data = bytearray(whole)
        at = data.index(b"l")
        data[at : at + 1] = own
        path.write_bytes(data)
        store = ZipStore(path)
        assert store.get("j") is None
        for key in ("l", own.decode()) if is_told else ("l",):
            with pytest.raises(StoreError, match="the directory calls it 'l', and the name"):
                store.get(key)
        assert list(store.list()) == ["k", "m" if is_told else "l"]
        with ZipStore(path) as store:
            store.erase_prefix("")
        assert zipfile.ZipFile(path).namelist() == []


def headers(count, length):
    """An archive of entries that are called ``a`` by the directory, and claim names of ``length`` bytes."""
    local, central = bytearray(), bytearray()
    for number in range(count):
        fields = struct.pack("<3H3I2H", 0, 0, 0, number, 0, 0, length, 0)
        central += b"PK\x01\x02" + struct.pack(
            "<4B4H3I5H2I", 20, 0, 20, 0, 0, 0, 0, 0, number, 0, 0, 1, *[0] * 5, len(local)
        )
        central += b"a"
        local += b"PK\x03\x04" + struct.pack("<2H", 20, 0) + fields + b"b"
    local += b"x" * 70_000
    return bytes(local + central) + struct.pack(
        "<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(central), len(local), 0
    )


@pytest.mark.parametrize("where", ["path", "bytes"])
def test_claims_of_long_names_take_neither_memory_nor_time(tmp_path, where):
    path = tmp_path / "a.zip"
    path.write_bytes(headers(3000, 65535))
    tracemalloc.start()
    try:
        store = ZipStore(path if where == "path" else io.BytesIO(path.read_bytes()))
        for reading in (lambda: store.get("b"), lambda: list(store.list()), lambda: store.list_dir("")):
            with pytest.raises(StoreError, match="more than 1000 entries have other names"):
                reading()
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert any("more than 1000" in each for each in store.faults())
    if where == "path":
        for change in (lambda: store.set("k", b"1"), lambda: store.erase_prefix(""), store.compact):
            with pytest.raises(StoreError, match="more than 1000"):
                change()
        assert path.read_bytes() == headers(3000, 65535)
        with ZipStore(path, mode="w") as store:
            store.set("k", b"1")
        assert zipfile.ZipFile(path).namelist() == ["k"]


@pytest.mark.parametrize("length", [1000, 1025, 65535])
def test_a_name_that_is_no_such_entrys_own_is_not_kept(tmp_path, length):
    """It would reach over the next header, or is too long."""
    path = tmp_path / "a.zip"
    path.write_bytes(headers(2, length))
    store = ZipStore(path)
    for each in store._now().misnamed():
        assert each.own is None or len(each.own) == length == 1000
    with pytest.raises(StoreError, match="is damaged"):
        store.get("a")


def test_names_that_are_no_keys_are_told_of(tmp_path):
    path = tmp_path / "a.zip"
    make_array(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a/", b"")
        for number in range(103):
            archive.writestr(f"../{number}", b"x")
        archive.writestr("b/", b"with bytes")
    messages = [str(each) for each in zardine.verify(path).faults]
    assert len(messages) == 101
    assert "the entry '../0' at byte" in messages[0]
    assert "is no key" in messages[0]
    assert "4 more" in messages[-1]
    assert (read(path) == VALUES).all()
    with ZipStore(path) as store:
        store.set("k", b"1")
    assert len(zipfile.ZipFile(path).namelist()) == 6 + 1 + 105


def test_names_that_are_no_keys_stay_so_beside_damaged_ones(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("../1", b"1"), ("../2", b"2"), ("kkkk", b"3"), ("../3", b"4"))
    rename(path, b"kkkk", b"../2")
    rename(path, b"../3", b"../1")
    for number in range(2):
        with ZipStore(path) as store:
            store.set(f"n{number}", b"x")
            with pytest.raises(StoreError, match=r"calls it '../2'"):
                store.get("kkkk")
            assert list(store.list()) == ["kkkk", "n0", "n1"][: number + 2]
        assert zipfile.ZipFile(path).namelist() == ["../1", "../2", "../2", "../1", "n0", "n1"][: number + 5]


def test_verify_tells_of_damaged_names_of_what_belongs_to_nothing(tmp_path):
    path = tmp_path / "a.zip"
    make_array(path)
    with ZipStore(path) as store:
        for key in ("a/junk1", "junk2", "a/c/0/zarr.json"):
            store.set(key, b"?")
    for old, new in ((b"a/junk1", b"a/junk3"), (b"junk2", b"junk4"), (b"a/c/0/zarr", b"a/c/0/zbrr")):
        rename(path, old, new)
    messages = [str(each) for each in zardine.verify(path).faults]
    for name in ("a/junk1", "junk2", "a/c/0/zarr.json"):
        assert any(each.startswith("/: ") and f"the name before it is {name!r}" in each for each in messages)


def test_names_are_compared_once_and_when_it_matters(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    entries(path, *((f"c/{number}", b"x") for number in range(1000)))
    asked, compare = [], zip_directory.compare_names
    monkeypatch.setattr(zip_directory, "compare_names", lambda *args: asked.append(1) or compare(*args))
    store = ZipStore(path)
    assert store.get("c/999") == b"x"
    assert asked == []
    for number in range(3):
        assert store.get(f"d/{number}") is None
    assert len(list(store.list())) == 1000
    store.set("d/1", b"y")
    store.flush()
    assert asked == [1]


def test_every_damaged_bit_is_an_error_or_changes_nothing(tmp_path):
    """Not even when the archive is written to."""
    path, wanted = tmp_path / "a.zip", {"k/é": b"first", "k/1": b"second", "k/3": b"third"}
    with ZipStore(path) as store:
        for key, value in wanted.items():
            store.set(key, value)
    whole = path.read_bytes()
    names = ("k/2", *wanted, "k/7")  # one that is missing first: then all names are compared
    refused = 0

    def values(open_it):
        found = {}
        try:
            store = open_it()
            for key in names:
                try:
                    found[key] = store.get(key)
                except StoreError:
                    continue
        except StoreError:
            pass
        return found

    for at in range(len(whole)):
        for bit in range(8):
            data = bytearray(whole)
            data[at] ^= 1 << bit
            found = values(lambda data=data: ZipStore(io.BytesIO(data)))
            assert all(value == wanted.get(key) for key, value in found.items()), (at, bit, found)
            refused += len(found) < len(names)
            if not found or len(found) == len(names):
                continue
            path.write_bytes(data)
            with ZipStore(path) as store:
                try:
                    store.set("more", b"x")
                except StoreError:
                    continue
            after = values(lambda: ZipStore(path))
            assert all(value == wanted.get(key) for key, value in after.items()), (at, bit, after)
            assert set(after) == set(found), (at, bit)
    assert refused > len(whole)


def flip_letters(data, name):
    """Take the flag from the directory that a name is in UTF-8."""
    data = bytearray(data)
    data[data.rindex(name.encode()) - 46 + 9] ^= 0x08
    return bytes(data)


def test_a_name_whose_letters_are_damaged_is_not_a_missing_key(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("é/1", b"value"), ("large", bytes(200_000)), ("z", b"last"))
    values = MemoryStore()
    values.set("a.zip", flip_letters(path.read_bytes(), "é/1"))
    path.write_bytes(values.get("a.zip"))
    for store in (ZipStore.inside(values, "a.zip"), ZipStore(path), ZipStore(io.BytesIO(values.get("a.zip")))):
        with pytest.raises(StoreError, match=r"'é/1' of .* is damaged: the directory calls it '├⌐/1'"):
            store.get("é/1")
        assert store.get("è/1") is None
        assert store.get("z") == b"last"


def test_of_an_archive_elsewhere_only_names_at_hand_are_compared(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("c/1", b"far"), ("large", bytes(200_000)), ("c/2", b"near"))
    data = path.read_bytes()
    values = MemoryStore()
    for far, near in ((b"c/3", b"c/2"), (b"c/1", b"c/4")):
        harmed = bytearray(data)
        for old, new in ((b"c/1", far), (b"c/2", near)):
            at = harmed.rindex(old)
            harmed[at : at + 3] = new
        values.set("a.zip", bytes(harmed))
        counting = CountingStore(values)
        store = ZipStore.inside(counting, "a.zip")
        assert counting.counts.reads == 1
        if near == b"c/4":
            with pytest.raises(StoreError, match="the directory calls it 'c/4'"):
                store.get("c/2")
        else:
            assert store.get("c/1") is None  # nobody knows
            with pytest.raises(StoreError, match="not the one that the directory tells of"):
                store.get("c/3")


def test_open_files_that_lie_at_hand(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("l", b"1"), ("k", b"2"))
    rename_last = path.read_bytes()
    at = rename_last.rindex(b"k")
    data = rename_last[:at] + b"m" + rename_last[at + 1 :]
    path.write_bytes(data)
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    with (
        open(path, "rb") as buffered,
        open(path, "rb", buffering=0) as raw,
        open(path, "r+b") as both,
        tempfile.SpooledTemporaryFile(max_size=2**20) as spooled,
        tempfile.NamedTemporaryFile() as named,
        mmap.mmap(buffered.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        spooled.write(data)
        named.write(data)
        fsspec = pytest.importorskip("fsspec")
        opened = fsspec.open(str(path), "rb").open()
        for near in (io.BytesIO(data), buffered, raw, both, spooled, named, mapped, opened):
            with pytest.raises(StoreError, match="the directory calls it 'm'"):
                ZipStore(near).get("k")
        opened.close()
        assert not spooled._rolled  # nothing was written to a disk
    with gzip.open(tmp_path / "a.gz") as file:
        assert not ObjectBytes(file).is_at_hand(0)  # to go back in it is to inflate it anew
        assert ZipStore(file).get("l") == b"1"


def test_a_name_that_reaches_into_the_next_header_is_not_an_entrys_own(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("k", b"value"), ("l", b"2"))
    data = bytearray(path.read_bytes())
    for length, own in ((6, "kvalue"), (8, None)):  # the mark of the next header would be part of the name
        data[26:28] = struct.pack("<H", length)
        path.write_bytes(data)
        assert [each.own for each in ZipStore(path)._now().misnamed()] == [own]


def test_a_header_without_its_mark_is_an_error(tmp_path):
    path = tmp_path / "a.zip"
    entries(path, ("k", b"value"), ("l", b"2"))
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is not the one that the directory tells of"):
        ZipStore(path).get("k")
    store = ZipStore(path)
    assert store.get("j") is None
    with pytest.raises(StoreError, match="the name that stands before it is no key"):
        store.get("k")


def test_what_is_written_while_a_reader_looks_is_found_or_not_there(tmp_path, monkeypatch):
    """It does not fall between being told of as damaged and being there."""
    path = tmp_path / "a.zip"
    entries(path, ("k", b"value"))
    rename(path, b"k", b"m")
    store, writer = ZipStore(path), ZipStore(path)
    letters = zip_directory.ZipDirectory._check_letters

    def write_first(self, key):
        writer.set("k", b"new")
        return letters(self, key)

    monkeypatch.setattr(zip_directory.ZipDirectory, "_check_letters", write_first)
    assert store.get("k") == b"new"
    monkeypatch.undo()
    store.close()
