"""Zip archives: the suite, what other programs see and write, writers that die, and archives made to harm."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
import subprocess
import sys
import time
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import zardine
from zardine.errors import ReadOnlyError, StoreError, TornShardWarning, UnsupportedError
from zardine.storage import CountingStore, LocalStore, MemoryStore, ZipStore
from zardine.stores.zip import directory as zip_directory
from zardine.testing.store import StoreConformance


class TestZip(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path

    def make_store(self):
        return ZipStore(self.root / "a.zip")

    def open_again(self, store):
        return ZipStore(store.path)


VALUES = np.arange(256).reshape(16, 16)


def create(place):
    array = zardine.create_array(place, shape=(16, 16), chunks=(2, 2), shards=(8, 8), dtype="i4")
    array[...] = VALUES
    return array


def test_an_array_in_an_archive(tmp_path):
    path = f"{tmp_path}/a.zip"
    array = create(path)
    assert (zardine.open(path, mode="r")[...] == VALUES).all()  # the same archive, before it is flushed
    array.store.close()
    assert (zardine.open(f"zip://{path}", mode="r")[3:9, 5] == VALUES[3:9, 5]).all()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert sorted(archive.namelist()) == ["c/0/0", "c/0/1", "c/1/0", "c/1/1", "zarr.json"]
    with ZipStore(path) as store:
        group = zardine.open_group(f"{tmp_path}/g.zip", mode="w")
        group.create_array("x/y", shape=(3,), dtype="i4")[...] = 7
        assert zardine.open(f"{tmp_path}/g.zip::x/y")[...].tolist() == [7, 7, 7]
        zardine.open_array(store)[0, 0] = 99
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == len(set(archive.namelist())) == 5
    assert zardine.open(path)[0, 0] == 99


def test_replacing_and_compacting(tmp_path):
    store = ZipStore(tmp_path / "a.zip")
    for number in range(20):
        store.set("k", bytes([number]) * 1000)
        store.set(f"k{number}", b"x" * 100)
    store.erase("k3")
    store.flush()
    before = os.path.getsize(store.path)
    with zipfile.ZipFile(store.path) as archive:
        assert sorted(archive.namelist()) == sorted(store.list())
        assert archive.read("k") == bytes([19]) * 1000
    saved = store.compact()
    assert saved > 19_000
    assert os.path.getsize(store.path) == before - saved
    assert store.get("k") == bytes([19]) * 1000
    assert store.compact() <= 0
    store.set("k", b"after")
    store.close()
    assert store.get("k") == b"after"  # a store that is used again opens it anew
    with zipfile.ZipFile(store.path) as archive:
        assert archive.read("k") == b"after"
        assert archive.testzip() is None
    assert os.listdir(tmp_path) == ["a.zip"]
    store.erase_prefix("")
    store.close()
    assert zipfile.ZipFile(store.path).namelist() == []


def test_archives_of_others_are_read_and_added_to(tmp_path):
    path = tmp_path / "foreign.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a/b", b"old")
        archive.writestr("a/b", b"0123456789" * 1000)
        archive.writestr("../out", b"x")
        archive.writestr("/abs", b"x")
        archive.writestr("dir/", b"")
        archive.comment = b"with a comment"
    store = ZipStore(path)
    assert list(store.list()) == ["a/b"]
    assert store.get("a/b") == b"0123456789" * 1000
    assert store.read("a/b", ((5, 3), (-2, None))).parts == (b"567", b"89")
    store.set("new", b"y")
    store.close()
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist().count("a/b") == 1
        assert archive.read("new") == b"y"


_KILLED = """
import os, sys
from zardine.storage import ZipStore
store = ZipStore(sys.argv[1])
store.set("flushed", b"1")
store.flush()
store.set("lost", b"2" * 100000)
os._exit(9)
"""


def test_a_killed_writer_leaves_what_it_flushed(tmp_path):
    path = tmp_path / "a.zip"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)]).returncode == 9
    with pytest.warns(TornShardWarning, match="cut short or was not finished"):
        store = ZipStore(path)
    assert list(store.list()) == ["flushed"]
    store.set("more", b"3")
    store.close()
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["flushed", "more"]
        assert archive.testzip() is None


_FORGETS = "import sys, zardine; zardine.open_group(sys.argv[1], mode='w').create_group('g')"


def test_a_program_that_closes_nothing_leaves_a_whole_archive(tmp_path):
    path = tmp_path / "a.zip"
    subprocess.run([sys.executable, "-c", _FORGETS, str(path)], check=True)
    assert sorted(zipfile.ZipFile(path).namelist()) == ["g/zarr.json", "zarr.json"]


def test_one_process_at_a_time_writes(tmp_path):
    store = ZipStore(tmp_path / "a.zip")
    store.set("k", b"x")
    code = "import sys; from zardine.storage import ZipStore; ZipStore(sys.argv[1]).set('k', b'y')"
    run = subprocess.run([sys.executable, "-c", code, store.path], capture_output=True, text=True)
    assert "another process writes to" in run.stderr
    store.close()
    subprocess.run([sys.executable, "-c", code, store.path], check=True)
    assert ZipStore(store.path).get("k") == b"y"
    child = os.fork()
    if child == 0:
        try:
            store.set("k", b"child")
            store.close()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ZipStore(store.path).get("k") == b"child"


def test_an_archive_within_another_store():
    values = MemoryStore()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        inner = MemoryStore()
        create(inner)
        for key in inner.list():
            archive.writestr(key, inner.get(key))
        archive.writestr("pad", bytes(500_000))
    values.set("deep/a.zip", buffer.getvalue())
    counting = CountingStore(values)
    store = ZipStore.inside(counting, "deep/a.zip")
    array = zardine.open_array(store)
    counting.reset()
    assert (array[4:6, 4:6] == VALUES[4:6, 4:6]).all()
    assert counting.counts.bytes_read < 20_000
    assert store.read_only
    assert list(store.with_read_only(False).list_dir("")[1]) == ["c/"]
    for write in (lambda: store.set("k", b"x"), lambda: store.erase_prefix(""), store.compact):
        with pytest.raises(ReadOnlyError, match="written to local files only"):
            write()
    values.set("deep/a.zip", buffer.getvalue()[:-1] + b"x")
    with pytest.raises(StoreError, match="replaced while it was open"):
        array[...]
    with pytest.raises(StoreError, match=r"no zip archive .* archives are only written to local files"):
        ZipStore.inside(values, "nothing.zip")


def stored(entries, path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in entries.items():
            archive.writestr(name, value)
    return bytearray(path.read_bytes())


def test_overlapping_entries_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    data = stored({"a": b"x" * 100, "b": b"y" * 100}, path)
    first, second = (at for at in range(len(data)) if data[at : at + 4] == b"PK\x01\x02")
    assert data[first + 42 : first + 46] == bytes(4)
    data[second + 42 : second + 46] = bytes(4)  # the second entry lies where the first one does
    path.write_bytes(data)
    with pytest.raises(StoreError, match="overlap"):
        ZipStore(path)


def test_bombs_are_not_inflated(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(50_000_000))
    monkeypatch.setattr(zip_directory, "MOST_INFLATED", 10_000_000)
    with pytest.raises(StoreError, match="inflate to 50000000"):
        ZipStore(path).get("bomb")
    monkeypatch.undo()
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 1000)  # it says that it is small
    path.write_bytes(data)
    with pytest.raises(StoreError, match="another length"):
        ZipStore(path).get("bomb")


def test_every_damaged_byte_is_an_error_or_changes_nothing(tmp_path):
    path = tmp_path / "a.zip"
    data = stored({"k": bytes(range(50)), "l": b"other"}, path)
    names = set()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        path.unlink()
        path.write_bytes(damaged)
        try:
            store = ZipStore(path)
            value = store.get("k")
        except StoreError as error:
            names.add(type(error).__name__)
            continue
        assert value == bytes(range(50)), at  # a damaged name is not taken for a key that is missing
    assert not [name for name in names if name.startswith("_")]  # users are shown them
    for length in range(1, len(data)):
        path.unlink()
        path.write_bytes(data[:length])
        with pytest.raises(StoreError, match="not a zip archive"):
            ZipStore(path)


def in_a_path(path, data):
    path.write_bytes(data)
    return ZipStore(path)


def in_a_value(path, data):
    values = MemoryStore()
    values.set("a.zip", data)
    return ZipStore.inside(values, "a.zip")


def in_bytes(path, data):
    return ZipStore(io.BytesIO(data))


def in_a_file(path, data):
    path.write_bytes(data)
    return ZipStore(open(path, "rb"))


@pytest.mark.parametrize("opening", [in_a_path, in_a_value, in_bytes, in_a_file])
def test_a_chunk_whose_name_is_damaged_is_not_one_that_was_never_stored(tmp_path, opening):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    data = path.read_bytes()
    name, directory = data.rindex(b"c/0/1"), data.index(b"PK\x01\x02")
    assert name > directory
    own = data[name : name + 5]
    for damaged in (b"c/0/0", b"c/0/7", b"x/0/1", b"../01", b"c/0/\xff"):
        harmed = data[:name] + damaged + data[name + 5 :]
        array = zardine.open_array(opening(tmp_path / "damaged.zip", harmed), mode="r")
        with pytest.raises(StoreError, match=r"'c/0/1' of .* is damaged: the directory calls it"):
            array[0:8, 8:16]
        assert array[8, 8] == VALUES[8, 8]
        (tmp_path / "damaged.zip").unlink(missing_ok=True)
    shorter = bytearray(data)
    at = name - 46
    shorter[at + 28 : at + 34] = struct.pack("<3H", 4, 0, 1)  # the last letter is a comment
    with pytest.raises(StoreError, match=r"the directory calls it 'c/0/'"):
        opening(tmp_path / "damaged.zip", bytes(shorter)).get("c/0/1")
    assert own == b"c/0/1"


def test_in_an_archive_of_any_size_a_damaged_name_is_not_a_missing_key(tmp_path):
    path = tmp_path / "a.zip"
    data = stored({f"c/{number}": b"x%d" % number for number in range(300)}, path)
    for damaged in (b"c/298", b"c/2x9"):
        name = data.rindex(b"c/299")
        harmed = bytes(data[:name] + damaged + data[name + 5 :])
        store = in_a_path(tmp_path / f"{damaged[-2:].decode()}.zip", harmed)
        with pytest.raises(StoreError, match=f"the directory calls it '{damaged.decode()}', and the name before it"):
            store.get("c/299")
        assert store.get("c/297") == b"x297"
        assert store.get("c/300") is None


def test_a_chunk_whose_name_is_damaged_can_be_written_anew(tmp_path):
    path = tmp_path / "a.zip"
    data = stored({"k": b"1", "l": b"2"}, path)
    at = data.rindex(b"l")
    data[at : at + 1] = b"m"
    with in_a_path(tmp_path / "b.zip", bytes(data)) as store:
        with pytest.raises(StoreError, match="damaged"):
            store.get("l")
        store.set("l", b"3")
        assert store.get("l") == b"3"
    with ZipStore(tmp_path / "b.zip") as store:
        assert store.get("l") == b"3"
        store.erase("l")


def headers_of(data):
    """Where the header before each entry begins."""
    return [at for at in range(len(data)) if data[at : at + 4] == b"PK\x03\x04"]


def test_encrypted_entries_are_named(tmp_path):
    path = tmp_path / "a.zip"
    data = stored({"k": b"1", "l": b"2"}, path)
    data[headers_of(data)[1] + 6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    store = in_a_path(tmp_path / "b.zip", bytes(data))
    assert store.get("k") == b"1"
    with pytest.raises(StoreError, match=r"key 'l' of .* is encrypted"):
        store.get("l")


def test_what_a_header_says_of_its_length_is_not_trusted(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("k")
        info.extra = struct.pack("<2H", 0xCAFE, 1996) + bytes(1996)
        archive.writestr(info, b"value")
        archive.writestr("l", b"other")
    data = bytearray(path.read_bytes())
    assert ZipStore(path).get("k") == b"value"
    own = bytearray(data)
    own[30] ^= 1
    with pytest.raises(StoreError, match=r"'k' .* is not the one that the directory tells of"):
        in_a_path(tmp_path / "name.zip", bytes(own)).get("k")
    at = headers_of(data)[1]
    data[at + 28 : at + 30] = b"\xff\xff"
    with pytest.raises(StoreError, match=r"'l' .* reaches beyond the archive"):
        in_a_path(tmp_path / "length.zip", bytes(data)).get("l")


def test_a_directory_of_another_number_of_entries(tmp_path):
    data = stored({"k": b"1", "l": b"2"}, tmp_path / "a.zip")
    at = data.rindex(b"PK\x05\x06")
    data[at + 8 : at + 12] = struct.pack("<2H", 3, 3)
    with pytest.raises(StoreError, match="not the one that its end tells of"):
        in_a_path(tmp_path / "b.zip", bytes(data))


def test_reads_that_give_a_part_at_a_time(tmp_path, monkeypatch):
    """As the system does of more than 2 GiB."""
    path = tmp_path / "a.zip"
    stored({"k": bytes(range(100))}, path)
    store, pread = ZipStore(path), os.pread
    store.get("k")
    monkeypatch.setattr(os, "pread", lambda file, length, at: pread(file, min(length, 7), at))
    assert store.get("k") == bytes(range(100))
    assert store.read("k", ((3, 90),)).parts[0] == bytes(range(3, 93))


def test_threads_take_turns_at_an_open_file(tmp_path):
    class SlowFile(io.BytesIO):
        def seek(self, *where):
            try:
                return super().seek(*where)
            finally:
                time.sleep(0.001)

    values = {f"k{number}": bytes([number]) * 50 for number in range(8)}
    store = ZipStore(SlowFile(bytes(stored(values, tmp_path / "a.zip"))))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(store.get, list(values) * 5)) == list(values.values()) * 5


def test_paths(tmp_path):
    (tmp_path / "dir.zip").mkdir()
    assert isinstance(zardine.open_group(tmp_path / "dir.zip", mode="w").store, LocalStore)
    with pytest.raises(StoreError, match="is a directory"):
        ZipStore(tmp_path / "dir.zip")
    store = ZipStore(tmp_path / "new.zip")
    assert not os.path.exists(store.path)
    assert store.get("k") is None
    store.set("k", b"x")
    twin = pickle.loads(pickle.dumps(store))
    assert (twin, hash(twin), str(twin)) == (store, hash(store), f"zip://{store.path}")
    assert twin.get("k") == b"x"
    with pytest.raises(zardine.errors.NodeNotFoundError):
        zardine.open(tmp_path / "none.zip", mode="r")
    assert not os.path.exists(tmp_path / "none.zip")


def test_versions_are_those_of_the_entries(tmp_path):
    store = ZipStore(tmp_path / "a.zip")
    versions = [store.set("k", value) for value in (b"1", b"2", b"2", b"1")]
    assert len(set(versions)) == 4
    assert all(a != b for a, b in pairwise(versions))


def test_an_archive_in_an_open_file(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    with path.open("rb") as file:
        for opened in (file, io.BytesIO(path.read_bytes()), fsspec_file(path)):
            store = ZipStore(opened)
            assert store.read_only
            assert sorted(store.list_prefix("")) == sorted(ZipStore(path).list_prefix(""))
            found = zardine.open_array(store, mode="r")
            np.testing.assert_array_equal(found[:], VALUES)
            assert found[1, 1] == VALUES[1, 1]
            with pytest.raises(ReadOnlyError, match="written to local files only"):
                store.set("k", b"")
            with pytest.raises(TypeError, match="its file is open in this one"):
                pickle.dumps(store)


def test_open_files_of_other_kinds(tmp_path):
    """Those whose ``read`` gives other bytes-like things, and whose ``seek`` says nothing."""
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    obstore = pytest.importorskip("obstore")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        reader = obstore.open_reader(obstore.store.LocalStore(tmp_path), "a.zip")
        for opened in (reader, mapped):
            np.testing.assert_array_equal(zardine.open_array(ZipStore(opened), mode="r")[:], VALUES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_read_from_an_open_file(tmp_path):
    """It would read at the place where the other process reads."""
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    with path.open("rb") as file:
        array = zardine.open_array(ZipStore(file), mode="r")
        child = os.fork()
        if child == 0:
            try:
                array[...]
            except StoreError as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        np.testing.assert_array_equal(array[...], VALUES)


def test_what_lies_in_archives_elsewhere_is_copied(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    for number, store in enumerate(
        (ZipStore(io.BytesIO(path.read_bytes())), ZipStore.inside(LocalStore(tmp_path), "a.zip"))
    ):
        target = tmp_path / f"{number}.zarr"
        zardine.convert(store, target)
        np.testing.assert_array_equal(zardine.open_array(target, mode="r")[:], VALUES)


def test_open_files_that_hold_no_archive_or_lose_it(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        create(store)
    late = ZipStore(opened := io.BytesIO(path.read_bytes()))
    opened.close()
    with pytest.raises(StoreError, match=r"cannot read the zip archive in .*closed"):
        late.read("zarr.json")
    with pytest.raises(StoreError, match=r"cannot read a zip archive from .*closed"):
        ZipStore(opened)
    with pytest.raises(UnsupportedError, match="by their path"):
        ZipStore(io.BytesIO(), mode="w")
    with pytest.raises(StoreError, match="is not a zip archive"):
        ZipStore(io.BytesIO(b"nothing of the kind"))
    with path.open(encoding="latin-1") as text, pytest.raises(TypeError, match="open it in binary mode"):
        ZipStore(text)
    torn = ZipStore(opened := io.BytesIO(path.read_bytes()))
    opened.truncate(100)
    with pytest.raises(StoreError, match="cut short"):
        [torn.read(key) for key in torn.list_prefix("")]


def fsspec_file(path):
    return pytest.importorskip("fsspec").open(f"file://{path}", "rb").open()
