"""The records that ZipStore writes, as the module ``zipfile`` reads them: large, many, and those of other programs."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zipfile
from zlib import crc32

import pytest

from zardine.errors import InvalidKeyError, StoreError, TornShardWarning
from zardine.storage import CountingStore, MemoryStore, ZipStore
from zardine.stores.zip import directory as zip_directory
from zardine.stores.zip import file as zip_file
from zardine.stores.zip.records import directory_bytes, entry

LARGE = 5 * 2**30


@pytest.mark.parametrize("count", [65_534, 65_535, 65_536])
def test_directories_of_many_entries(count):
    infos = [entry(f"k/{number}", 0, 0, 40 * number) for number in range(count)]
    data = bytes(40 * count) + directory_bytes(infos, 40 * count, b"")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert [info.header_offset for info in archive.infolist()] == [info.header_offset for info in infos]
    assert (b"PK\x06\x06" in data[-150:]) == (count >= 65_535)


def test_an_archive_of_many_entries(tmp_path):
    path, count = tmp_path / "many.zip", 65_600
    with ZipStore(path) as store:
        for number in range(count - 1):
            store.set(f"k/{number}", b"")
        store.set("last", b"value")
    first = path.stat().st_size
    with ZipStore(path) as store:
        assert len(list(store.list())) == count
        store.set("k/0", b"replaced")
        store.set("new", b"x")
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == len(set(archive.namelist())) == count + 1
        assert (archive.read("k/0"), archive.read("last")) == (b"replaced", b"value")
    data = path.read_bytes()
    for length in (len(data) - 1, len(data) - 30, first + 1):  # without one, or both, of the records at the end
        path.unlink()
        path.write_bytes(data[:length])
        with pytest.warns(TornShardWarning):
            store = ZipStore(path)
        assert len(list(store.list())) == count
        assert store.get("k/0") == b""
    store.compact()
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == count


def test_entries_that_lie_far_back(tmp_path):
    """The file has a hole, so that what is written behind it begins behind 4 GiB."""
    path = tmp_path / "far.zip"
    store = ZipStore(path)
    store.set("near", b"1" * 100)
    store._archive()._writer.end = LARGE
    values = {"near": b"1" * 100, "far": b"2" * 100, "grüße": b"3"}
    for key, value in list(values.items())[1:]:
        store.set(key, value)
    store.close()
    assert path.stat().st_blocks * 512 < 2**20
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("far").header_offset == LARGE
        assert {name: archive.read(name) for name in archive.namelist()} == values
    assert store.read("far", ((-1, None),)).parts == (b"2",)
    with store:
        store.set("more", b"4")
        store.erase("more")
    assert store.compact() > LARGE - 1000
    assert {key: store.get(key) for key in store.list()} == values
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_entries_of_others_stay_as_they_are(tmp_path):
    path = tmp_path / "foreign.zip"
    infos = []
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("plain", "grüße", "dir/", "../out", "/abs"):
            info = zipfile.ZipInfo(name, (2021, 3, 4, 5, 6, 8))
            info.compress_type = zipfile.ZIP_STORED if name.endswith("/") else zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            info.comment = b"of " + name.encode()
            info.extra = struct.pack("<HH4s", 0x7777, 4, b"mine")
            info.create_system = 3
            archive.writestr(info, b"" if name.endswith("/") else b"0123456789" * 50)
        with archive.open("streamed", "w", force_zip64=True) as file:
            file.write(b"streamed")
        archive.comment = b"a comment"
        infos = archive.infolist()
    with zipfile.ZipFile(path, "a") as archive:
        before = {info.filename: _facts(info) for info in archive.infolist()}
    assert len(infos) == len(before) == 6
    with ZipStore(path) as store:
        store.set("new", b"x")
    with zipfile.ZipFile(path) as archive:
        assert {info.filename: _facts(info) for info in archive.infolist() if info.filename != "new"} == before
        assert archive.comment == b"a comment"
        assert archive.testzip() is None
    store = ZipStore(path)
    assert store.read("grüße", ((10, 5),)).parts == (b"01234",)
    assert store.get("streamed") == b"streamed"
    store.compact()
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["grüße", "new", "plain", "streamed"]
        assert archive.comment == b"a comment"
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


def _facts(info):
    names = "date_time compress_type comment extra create_system internal_attr external_attr header_offset CRC"
    return [getattr(info, name) for name in (*names.split(), "compress_size", "file_size", "flag_bits")]


def test_comments_that_look_like_the_end(tmp_path):
    """The module ``zipfile`` does not read such archives."""
    path = tmp_path / "a.zip"
    comment = b"PK\5\6" + bytes(18) + b"more PK\5\6"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("k", b"1")
        archive.comment = comment
    with ZipStore(path) as store:
        assert store.get("k") == b"1"
        store.set("l", b"2")
    store.compact()
    assert path.read_bytes().endswith(comment)
    assert {key: ZipStore(path).get(key) for key in store.list()} == {"k": b"1", "l": b"2"}


def test_names_with_old_letters_are_found_again(tmp_path):
    """Names that are not UTF-8: they are written again as they are."""
    path = tmp_path / "old.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gr__e", b"old letters")
    path.write_bytes(path.read_bytes().replace(b"gr__e", b"gr\x81\xe1e"))
    with ZipStore(path) as store:
        assert list(store.list()) == ["grüße"]
        assert store.get("grüße") == b"old letters"
        store.set("new", b"x")
    assert path.read_bytes().count(b"gr\x81\xe1e") == 3
    store = ZipStore(path)
    assert store.get("grüße") == b"old letters"
    store.compact()
    assert ZipStore(path).get("grüße") == b"old letters"


def test_duplicates_of_others_are_seen_once(tmp_path):
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (b"1", b"22", b"333"):
            archive.writestr("k", value)
    store = ZipStore(path)
    assert (list(store.list()), store.get("k")) == (["k"], b"333")
    store.set("k", b"4444")
    store.close()
    assert zipfile.ZipFile(path).namelist() == ["k"]
    store.erase("k")
    store.close()
    assert zipfile.ZipFile(path).namelist() == []
    assert list(ZipStore(path).list()) == []


def test_names_that_are_too_long(tmp_path):
    store = ZipStore(tmp_path / "a.zip")
    store.set("k" * 65_535, b"x")
    with pytest.raises(InvalidKeyError, match="at most 65535 bytes"):
        store.set("ü" * 32_768, b"x")
    store.close()
    assert zipfile.ZipFile(store.path).namelist() == ["k" * 65_535]


def test_what_is_no_file_is_no_archive(tmp_path):
    path = tmp_path / "pipe.zip"
    os.mkfifo(path)
    with pytest.raises(StoreError, match="no regular file"):
        ZipStore(path)


def test_how_far_back_a_directory_is_looked_for_elsewhere(tmp_path, monkeypatch):
    with ZipStore(tmp_path / "a.zip") as store:
        store.set("k", b"1")
    values = MemoryStore()
    values.set("a.zip", (tmp_path / "a.zip").read_bytes() + bytes(500_000))
    with pytest.warns(TornShardWarning):
        assert ZipStore.inside(values, "a.zip").get("k") == b"1"
    monkeypatch.setattr(zip_file, "_LOOK_BACK", 400_000)
    with pytest.raises(StoreError, match="in the last 400000 of its 5"):
        ZipStore.inside(values, "a.zip")


def test_few_requests_open_an_archive_elsewhere(tmp_path):
    with ZipStore(tmp_path / "a.zip") as store:
        store.set("large", bytes(300_000))
        store.set("small", b"1")
    values = CountingStore(MemoryStore({"a.zip": (tmp_path / "a.zip").read_bytes()}))
    store = ZipStore.inside(values, "a.zip")
    assert values.reset().requests == 1
    assert store.get("small") == b"1"
    assert values.reset().requests == 0
    assert store.read("large", ((5, 5),)).parts == (bytes(5),)
    assert values.reset().requests == 2


def test_to_look_whether_a_compressed_entry_is_there_inflates_nothing(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("k", bytes(1000))
    store = ZipStore(tmp_path / "a.zip")
    monkeypatch.setattr(zip_directory.zlib, "decompressobj", None)
    assert store.exists("k")
    assert store.size("k") == 1000
    assert store.version("k") is not None


def test_how_an_archive_at_the_root_of_a_store_is_called():
    class Root(MemoryStore):
        def __str__(self):
            return "http://host/"

    values = Root()
    values.set("a.zip", b"PK\5\6" + bytes(18))
    assert str(ZipStore.inside(values, "a.zip")) == "http://host/a.zip"


@pytest.mark.parametrize("reach", [1, 20, 60])
def test_an_entry_that_reaches_into_the_directory(tmp_path, reach):
    data = b"0123456789"
    body = bytearray()
    infos = []
    for name in ("a", "b"):
        info = entry(name, len(data), crc32(data), len(body))
        infos.append(info)
        body += local_header(info) + data
    start = len(body)
    infos[-1].file_size += reach
    infos[-1].compress_size += reach
    whole = bytes(body) + directory_bytes(infos, start, b"")
    (tmp_path / "a.zip").write_bytes(whole)
    for ranges in (((0, None),), ((2, 15),), ((0, 0),)):
        with pytest.raises(StoreError, match="reaches beyond the entries"):
            ZipStore(tmp_path / "a.zip").read("b", ranges)
    with pytest.raises(StoreError, match="reaches beyond the entries"):
        list(ZipStore(tmp_path / "a.zip").list())
    with pytest.raises(StoreError, match="reaches beyond the entries"):
        ZipStore.inside(MemoryStore({"a.zip": whole}), "a.zip").read("b")


def local_header(info):
    """What stands before the bytes of an entry; its sizes as they are now."""
    name = info.filename.encode()
    fields = (b"PK\3\4", 20, 0, 0, 0, 33, info.CRC, info.compress_size, info.file_size, len(name), 0)
    return struct.pack("<4s5H3I2H", *fields) + name
