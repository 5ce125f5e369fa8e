"""``zardine.verify``: sound data has no faults, and each fault is told with its place."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_golden import CASES, DATA, OLD_CASES

import zardine
from effort import some
from zardine.errors import NodeNotFoundError, StoreError
from zardine.storage import LocalStore
from zardine.stores.local.files import LocalFiles
from zardine.stores.open_files import OpenFile

OVERLAPPING = "hand-made/layout/overlapping-ranges"


def kinds(report: Any) -> list[str]:
    return [fault.kind for fault in report.faults]


def make(store: Any, **more: Any) -> zardine.Array:
    settings = {"shape": (20, 20), "chunks": (2, 5), "shards": (10, 10), "dtype": "i4", "fill_value": -1, **more}
    array = zardine.create_array(store, **settings)
    array[...] = np.arange(400).reshape(20, 20)
    return array


@pytest.mark.parametrize(("deep", "one_in"), [(True, 5), (False, 10)])
def test_golden_files(deep: bool, one_in: int) -> None:
    """All that other programs wrote is sound; all that was damaged by hand is not."""
    wrong = []
    with warnings.catch_warnings(), zardine.config.set({"array.allow_unsafe_pickle_decode": True}):
        warnings.simplefilter("ignore")
        damaged = [case for case in CASES + OLD_CASES if "damage" in case or case["path"] == OVERLAPPING]
        sound = [case for case in CASES + OLD_CASES if case not in damaged]
        for case in [*damaged, *some(sound, one_in)]:
            if case["path"].endswith(".zip") or "optional" in case:
                continue
            report = zardine.verify(str(DATA / case["path"]), deep=deep)
            unknown = set(kinds(report)) == {"unknown"}  # a codec that is not installed
            if case["path"] == OVERLAPPING:
                assert kinds(report) == ["overlap"] * len(report.faults)
            elif "damage" in case:
                if report and (deep or case["damage"]["error"] not in ("ChunkDecodeError", "CorruptionError")):
                    wrong.append(case["path"])
            elif not report and not unknown:
                wrong.append(case["path"])
    assert wrong == []


def test_every_kind_of_fault(tmp_path: Path) -> None:
    root = tmp_path / "g.zarr"
    group = zardine.create_group(str(root))
    make(str(root / "a"))
    make(str(root / "b"), shards=None, chunks=(10, 10))
    group.create_array("c", shape=4, dtype="i4")
    zardine.consolidate_metadata(str(root))
    assert zardine.verify(str(root))
    group["b"].attrs["changed"] = 1
    (root / "a/c/0/0").write_bytes(b"short")
    shard = bytearray((root / "a/c/0/1").read_bytes())
    shard[3] ^= 1
    (root / "a/c/0/1").write_bytes(shard)
    (root / "a/c/1/0").write_bytes((root / "a/c/1/0").read_bytes() + b"\0" * 4)
    (root / "a/c/1/5").write_bytes(b"")
    (root / "a/c/left").write_bytes(b"")
    (root / "a/notes.txt").write_bytes(b"")
    (root / "a/__zardine/damaged/c").mkdir(parents=True)
    (root / "a/__zardine/damaged/c/9").write_bytes(b"")
    (root / "b/c/1/1").write_bytes((root / "b/c/1/1").read_bytes()[:-1])
    (root / "c/zarr.json").write_text("{}")
    (root / "folder").mkdir()
    (root / "folder/file").write_bytes(b"")
    report = zardine.verify(str(root))
    found = [(fault.place, fault.key, fault.chunk, fault.kind) for fault in report.faults]
    assert found == [
        ("/", "zarr.json", None, "consolidated"),
        ("/", "zarr.json", None, "consolidated"),
        ("/a", "a/c/0/0", None, "index"),
        ("/a", "a/c/0/1", (0, 2), "checksum"),
        ("/a", "a/c/1/0", None, "index"),
        ("/a", "a/c/1/5", None, "outside"),
        ("/a", "a/c/left", None, "stray"),
        ("/a", "a/notes.txt", None, "stray"),
        ("/b", "b/c/1/1", (1, 1), "checksum"),
        ("/c", "c/zarr.json", None, "document"),
        ("/c", "c/zarr.json", None, "document"),
        ("/folder", "folder/file", None, "stray"),
    ]
    assert report.faults[3].byte_range is not None
    assert [note.kind for note in report.notes] == ["kept"]
    assert not report
    assert json.dumps(report.to_dict())
    assert (report.nodes, report.objects) == (3, 8)
    part = zardine.verify(str(root), path="b")
    assert kinds(part) == ["checksum"]
    assert kinds(zardine.verify(zardine.open(str(root))["b"])) == ["checksum"]


def test_notes_of_unused_and_shared_bytes() -> None:
    store: dict[str, Any] = {}
    array = make(store)
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    shard = bytes(store["c/0/0"])
    index = layout.index_of(shard)
    index.offsets[3], index.lengths[3] = index.offsets[2], index.lengths[2]
    from zardine.sharding.index import encode_index

    store["c/0/0"] = shard[: -layout.index_size] + bytes(encode_index(index, layout.index_chain))
    report = zardine.verify(store)
    assert report
    assert [note.kind for note in report.notes] == ["shared", "unused"]
    index.lengths[3] -= 1
    store["c/0/0"] = shard[: -layout.index_size] + bytes(encode_index(index, layout.index_chain))
    assert "overlap" in kinds(zardine.verify(store))


def test_shallow_finds_checksums_without_decoding() -> None:
    store: dict[str, Any] = {}
    make(store, chunks=(2, 5), shards=(10, 10))
    data = bytearray(store["c/1/1"])
    data[0] ^= 255
    store["c/1/1"] = bytes(data)
    assert kinds(zardine.verify(store, deep=False)) == ["checksum"]
    unchecked: dict[str, Any] = {}
    make(unchecked, checksum=False)
    data = bytearray(unchecked["c/1/1"])
    data[0] ^= 255
    unchecked["c/1/1"] = bytes(data)
    assert kinds(zardine.verify(unchecked, deep=False)) == []
    assert kinds(zardine.verify(unchecked)) == ["chunk"]


def test_shards_in_shards_name_the_innermost_chunk() -> None:
    inner = zardine.codecs.ShardingCodec(chunk_shape=(2, 5), codecs=("bytes", "crc32c"))
    outer = zardine.codecs.ShardingCodec(chunk_shape=(10, 10), codecs=(inner,))
    store: dict[str, Any] = {}
    array = zardine.create_array(store, shape=(20, 20), chunks=(20, 20), dtype="i4", fill_value=-1, serializer=outer)
    array[...] = np.arange(400).reshape(20, 20)
    data = bytearray(store["c/0/0"])
    data[50] ^= 1
    data[100] ^= 1
    store["c/0/0"] = bytes(data)
    report = zardine.verify(store)
    assert [(fault.chunk, fault.kind) for fault in report.faults] == [((0, 0), "checksum"), ((0, 0), "checksum")]
    assert "inner chunk (0, 1) of it" in report.faults[0].message


def test_progress_and_nothing_there(tmp_path: Path) -> None:
    store: dict[str, Any] = {}
    make(store)
    seen: list[tuple[int, int]] = []
    zardine.verify(store, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert len(set(seen)) > 4
    assert seen[-1] == (4 * 10 * 10 * 4, 4 * 10 * 10 * 4)  # decoded bytes
    with pytest.raises(NodeNotFoundError):
        zardine.verify(str(tmp_path / "missing.zarr"))
    with pytest.raises(NodeNotFoundError):
        zardine.verify(store, path="x")


def test_memory_is_bounded_by_the_window() -> None:
    """A shard is read in parts."""
    store: dict[str, Any] = {}
    zardine.create_array(store, shape=(64, 65536), chunks=(1, 65536), shards=(64, 65536), dtype="u1", compressors=None)[
        ...
    ] = 1
    counted = zardine.storage.CountingStore(zardine.storage.MemoryStore(store))
    with zardine.config.set({"window_bytes": 2**20, "threads": 1}):
        assert zardine.verify(counted)
    assert counted.counts.keys["c/0/0"] > 4


def test_command(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    result = run("verify", path)
    assert result.exit_code == 0
    assert result.stdout.startswith("no faults: 1 node, 4 of 4 shards stored, 40 inner chunks, ")
    assert run("verify", path, "-q").stdout == ""
    (path / "c/0/0").write_bytes(b"x")
    result = run("verify", path, "--no-deep")
    assert result.exit_code == 1
    assert "fault c/0/0: index: the shard has 1 bytes" in result.stdout
    report = json.loads(run("verify", path, "--json").stdout)
    assert report["faults"][0]["key"] == "c/0/0"
    assert run("verify", tmp_path / "none").exit_code == 1


class Appending(zardine.storage.LocalStore):
    """An append is under way while it is listed: the block is stored, and the shape follows a little later."""

    path = ""
    running: threading.Thread | None = None

    def list_prefix(self, prefix: str) -> Iterator[str]:
        if self.running is None:
            stored = threading.Event()
            self.running = threading.Thread(target=self._append, args=(stored,))
            self.running.start()
            stored.wait()
        return super().list_prefix(prefix)

    def _append(self, stored: threading.Event) -> None:
        class Slow(zardine.storage.LocalStore):
            def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
                if key == "zarr.json":
                    stored.set()
                    time.sleep(0.2)
                return super().set(key, value, condition=condition)

        zardine.open_array(Slow(self.root)).append(np.ones((10, 20), "i4"))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("shards", [None, (10, 10)])
def test_an_append_that_is_under_way_is_no_fault(tmp_path: Path, shards: Any, read_only: bool) -> None:
    make(str(tmp_path), shards=shards)
    store = Appending(tmp_path, read_only=read_only)
    report = zardine.verify(store)
    assert store.running is not None
    store.running.join()
    assert report.faults == ()
    assert zardine.open_array(str(tmp_path)).shape == (30, 20)
    assert zardine.verify(str(tmp_path)).objects > report.objects


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("loop", "store"),
        ("out", "store"),
        ("nowhere", "store"),
        ("fifo", "stray"),
        ("directory", "stray"),
    ],
)
def test_what_is_not_listed_in_the_place_of_a_chunk(tmp_path: Path, what: str, kind: str) -> None:
    root = tmp_path / "g.zarr"
    zardine.create_group(str(root))
    make(str(root / "a"))
    (root / "a/c/9").mkdir()  # empty, and no chunk of this array: some programs leave such
    chunk = root / "a/c/1/1"
    chunk.unlink()
    if what == "fifo":
        os.mkfifo(chunk)
    elif what == "directory":
        chunk.mkdir()
    else:
        (tmp_path / "else").write_text("no chunk")
        chunk.symlink_to({"loop": "1", "out": tmp_path / "else", "nowhere": "nowhere"}[what])
    for place in (root, root / "a"):
        report = zardine.verify(str(place))
        assert [(fault.key, fault.kind) for fault in report.faults] == [("a/c/1/1" if place == root else "c/1/1", kind)]
    assert [fault.kind for fault in zardine.repair(str(root)).left] == [kind]


class Vanishing(LocalStore):
    """A store of which a node is erased by another program when it was listed."""

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        found = super().list_dir(prefix)
        for document in ("zarr.json", ".zarray", ".zgroup"):
            if prefix == "gone/":
                super().erase(prefix + document)
        return found


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_a_node_that_is_erased_meanwhile_is_no_fault(tmp_path: Path, kind: str, zarr_format: Any) -> None:
    group = zardine.create_group(str(tmp_path), zarr_format=zarr_format)
    if kind == "array":
        group.create_array("gone", shape=4, dtype="i4")
    else:
        group.create_group("gone")
    report = zardine.verify(Vanishing(tmp_path))
    assert (report.faults, report.nodes) == ((), 1)


class UnreadableFiles(LocalFiles):
    def open(self, key: str) -> OpenFile | None:
        if key == "a/zarr.json":
            raise StoreError("permission denied")
        return super().open(key)


class Unreadable(LocalStore):
    """A store of which a document may not be read."""

    files_class = UnreadableFiles


@pytest.mark.parametrize("document", [b"{", b"[]", None])
def test_chunks_of_a_document_that_tells_nothing_are_not_stray(tmp_path: Path, document: bytes | None) -> None:
    group = zardine.create_group(str(tmp_path))
    make(str(tmp_path / "a"))
    group.create_array("b/d", shape=4, dtype="i4")[...] = 1
    (tmp_path / "b").rename(tmp_path / "a/b")  # perhaps it was a group
    (tmp_path / "e").mkdir()
    for place in ("e/file", "a/b/file"):
        (tmp_path / place).write_bytes(b"")
    if document is not None:
        (tmp_path / "a/zarr.json").write_bytes(document)
    found = zardine.verify((LocalStore if document else Unreadable)(tmp_path)).faults
    assert {(fault.kind, fault.key) for fault in found} == {
        ("document" if document else "store", "a/zarr.json"),
        ("stray", "a/b/file"),
        ("stray", "e/file"),
    }
