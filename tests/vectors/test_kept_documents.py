"""A store that is held open keeps its documents: small looks at each question, and every change is noticed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import MetadataError
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.vectors.format import cell_documents
from zardine.vectors.format.cell_documents import ChunkList, key_texts, parse_keys
from zardine.vectors.storing.cells_again import open_again

GRID = np.stack(np.meshgrid(*[np.arange(10)] * 3, indexing="ij"), -1).reshape(-1, 3)
BOX = [1, 1, 1, 2.9, 2.9, 2.9]


class Far(CountingStore):
    """A store of which each look is a request."""

    @property
    def has_cheap_looks(self) -> bool:
        return False


def grid(store: Any, **options: Any) -> Any:
    vectors.write_points(store, (GRID + 0.5).astype("f4"), chunk_shape=1, **{"shard_shape": 5, **options})
    return store


def asked(store: CountingStore, before: Counter[str]) -> dict[str, int]:
    """How often each key was asked for since ``before``; cells as one."""
    found: Counter[str] = Counter()
    for key, count in (Counter(store.counts.keys) - before).items():
        found["cells" if "/c/" in key else key] += count
    return dict(found)


def test_the_second_question_reads_cells_and_looks_at_what_it_used() -> None:
    store = Far(grid(MemoryStore()))
    held = vectors.open(store)
    assert len(held.read(bbox=BOX)) == 8
    before, nbytes = Counter(store.counts.keys), store.counts.bytes_read
    assert len(held.read(bbox=[3, 3, 3, 4.9, 4.9, 4.9])) == 8
    found = asked(store, before)
    assert found.pop("cells") > 0
    assert found == {"0/zarr.json": 1, "0/vertices/zarr.json": 1, "0/object_index/zarr.json": 1}  # which is not there
    assert store.counts.bytes_read - nbytes < len(store.get("0/vertices/zarr.json") or b"") / 4  # looks have no bytes
    before = Counter(store.counts.keys)
    assert len(held.read(bbox=[20, 20, 20, 21, 21, 21])) == 0
    assert asked(store, before) == found


@pytest.mark.parametrize("far", [True, False])
def test_changes_of_others_are_noticed(far: bool) -> None:
    store = grid(MemoryStore())
    held = vectors.open(Far(store) if far else store)
    assert len(held.read(bbox=BOX)) == 8
    vectors.append_points(store, [[1.5, 1.5, 1.5]])
    assert len(held.read(bbox=BOX)) == 9
    vectors.append_points(store, [[30.5, 1.5, 1.5]])
    assert len(held.read(bbox=[30, 1, 1, 31, 2, 2])) == 1
    expected = sorted(held.read(bbox=BOX).positions.tolist())
    for shape in [(2, 8, 4), (8, 4, 2), None, (4, 2, 8), 3]:  # three of them have an index of the same size
        vectors.reshard(store, shape)
        assert sorted(held.read(bbox=BOX).positions.tolist()) == expected
        assert sorted(held.read(bbox=BOX).positions.tolist()) == expected
    vectors.delete(store, bbox=BOX)
    assert len(held.read(bbox=BOX)) == 0


def test_programs_that_leave_the_document_of_the_level_as_it_is() -> None:
    store = grid(MemoryStore(), shard_shape=None)
    held = vectors.open(store)
    assert len(held.read(bbox=BOX)) == 8
    document = json.loads(bytes(store.get("0/vertices/zarr.json")))
    document["attributes"]["dtype"] = "uint32"
    store.set("0/vertices/zarr.json", json.dumps(document).encode())
    assert held.read(bbox=BOX).positions.dtype == np.uint32


def test_another_store_in_the_same_place() -> None:
    store = grid(MemoryStore())
    held = vectors.open(store)
    assert isinstance(held.read(), vectors.Points)
    vectors.write_mesh(store, GRID[:3] * 1.0, [[0, 1, 2]], chunk_shape=5, overwrite=True)
    assert isinstance(held.read(), vectors.Mesh)
    vectors.write_graph(store, GRID[:3] * 1.0, [[0, 1]], chunk_shape=5, overwrite=True)
    assert isinstance(held.read(bbox=[0] * 3 + [9] * 3), vectors.Graph)


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_geometry_again_and_again(kind: str) -> None:
    store = store_of(kind, shard_shape=2)
    held, fresh = vectors.open(store), vectors.open(store)
    for question in ({}, {"bbox": [-5, -5, -5, 30, 30, 30]}, {"chunks": [[0, 0, 0]]}, {}):
        first, second = held.read(**question), held.read(**question)
        whole = fresh.select(**question).read()
        assert first.positions.tolist() == second.positions.tolist() == whole.positions.tolist()


ASKED: dict[str, Callable[[vectors.Vectors], Any]] = {
    "an object": lambda held: held.objects[3].positions,
    "a slice of objects": lambda held: held.objects[2:5].positions,
    "ids": lambda held: held.objects.ids,
    "a group": lambda held: held.groups[1].positions,
    "members": lambda held: held.groups.members(1),
    "a count": lambda held: np.array(held.select(bbox=BOX).count()),
    "batches": lambda held: np.concatenate([part.positions for part in held.select(bbox=BOX).batches(3)]),
    "a selection": lambda held: held.select(object_ids=[1, 4]).read().positions,
}


@pytest.mark.parametrize("question", ASKED)
def test_all_that_a_held_store_is_asked_uses_what_is_kept(question: str) -> None:
    plain = MemoryStore()
    ids = np.arange(len(GRID)) // 100
    grid(plain, object_ids=ids, groups=[[1], [3, 5]])
    store = Far(plain)
    held, ask = vectors.open(store), ASKED[question]
    expected = ask(vectors.open(plain))
    assert len(expected.reshape(-1)) > 0
    assert ask(held).tolist() == expected.tolist()
    first, before = store.counts.bytes_read, Counter(store.counts.keys)
    assert ask(held).tolist() == expected.tolist()
    documents = set(asked(store, before)) - {"cells"}
    assert all(key.endswith("zarr.json") for key in documents)
    told = sum(len(plain.get(key) or b"") for key in documents - {"zarr.json"})
    assert store.counts.bytes_read - first < first - told / 2  # looks have no bytes
    vectors.append_points(plain, [[1.5, 1.5, 1.5]], object_ids=[3])
    vectors.delete(plain, object_ids=[2])
    assert ask(held).tolist() == ask(vectors.open(plain)).tolist()


def test_a_selection_that_is_held_follows_a_store_of_another_geometry() -> None:
    store = grid(MemoryStore(), object_ids=np.arange(1000) // 100)
    held = vectors.open(store)
    selection, objects = held.select(bbox=[0, 0, 0, 9, 9, 9]), held.objects
    assert isinstance(selection.read(), vectors.Points)
    for write, kind in [
        (lambda: vectors.write_polylines(store, [GRID[:3] * 1.0], chunk_shape=5, overwrite=True), vectors.Polylines),
        (lambda: vectors.write_mesh(store, GRID[:3] * 1.0, [[0, 1, 2]], chunk_shape=5, overwrite=True), vectors.Mesh),
        (lambda: vectors.write_points(store, GRID[:3] * 1.0, chunk_shape=5, overwrite=True), vectors.Points),
    ]:
        write()
        assert selection.count() == 3
        assert sum(len(part.positions) for part in selection.batches(2)) == 3
        assert isinstance(selection.read(), kind)
        assert selection.explain().cells > 0
        if kind is not vectors.Points:
            assert isinstance(objects[0], kind)


def test_lists_of_chunks_as_numbers() -> None:
    chunks = np.array([[0, 0, 9], [0, -3, 4], [2, 0, 0], [-1, 5, 5]])
    texts = key_texts(chunks)
    made = ChunkList.of(texts, 3)
    assert made is not None
    assert made == texts
    assert texts == made
    assert sorted(made) == texts
    assert len(made[1:3]) == 2
    assert made != texts[1:]
    assert made.has(np.array([[0, 0, 9], [0, 0, 8], [2, 0, 0], [3, 0, 0], [-1, 5, 5]])).tolist() == [1, 0, 1, 0, 1]
    assert made.has(np.repeat(chunks, 30, axis=0)).all()
    assert ChunkList.of(["0.0.0", "0.0.0"], 3) is None
    assert ChunkList.of(["0.0"], 3) is None
    assert ChunkList.of(3, 3) is None


GOOD = [
    (["1.2.3", "-4.0.18"], [[1, 2, 3], [-4, 0, 18]]),
    ([" 1.+2.3"], [[1, 2, 3]]),
    (["-7.0." + "9" * 18], [[-7, 0, 10**18 - 1]]),
]
BAD: list[Any] = [
    *(["1.2"], ["1..3"], ["a.b.c"], [""], [1, 2, 3], ["1.2.3", "1.2"], ["1.2.3,4.5.6"], ["--1.2.3"], ["1-.2.3"]),
    *(["1.2." + "9" * 20], ["1.2.3."], ["1.2.3.4", "5.6"], "1.2.3", {"1.2.3": 1}, None),
]


@pytest.mark.parametrize(("keys", "numbers"), GOOD, ids=str)
def test_keys_are_numbers(keys: list[str], numbers: Any) -> None:
    found = parse_keys(keys, 3)
    assert found is not None
    assert found.tolist() == numbers
    assert found.dtype == np.int64


@pytest.mark.parametrize("keys", BAD, ids=str)
def test_keys_that_are_none(keys: Any) -> None:
    assert parse_keys(keys, 3) is None


def test_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_documents, "_AT_ONCE", 7)
    chunks = np.random.default_rng(0).integers(-(10**17), 10**17, (50, 4))
    found = parse_keys([".".join(map(str, chunk)) for chunk in chunks.tolist()], 4)
    np.testing.assert_array_equal(found, chunks)
    assert parse_keys([*["1.1.1.1"] * 20, "1.1.1"], 4) is None


def test_arrays_of_cells_are_those_of_the_documents_that_are_there(tmp_path: Path) -> None:
    """What was opened before counts only while the document, the settings and the store are the same."""
    path, other = tmp_path / "a", tmp_path / "b"
    for each, size in ((path, 10), (other, 20)):
        positions = np.random.default_rng(size).uniform(0, 100, (300, 2))
        vectors.write_points(str(each), positions, chunk_shape=size, shard_shape=3)
    store = LocalStore(path)
    assert [open_again(store, "0/none"), open_again(store, "0"), open_again(MemoryStore(), "0/vertices")] == [None] * 3
    first, second = open_again(store, "0/vertices"), open_again(LocalStore(path, read_only=True), "0/vertices")
    assert first is not None
    assert second is not None
    assert second.array._handle.layout is first.array._handle.layout
    assert second.array._handle.cache_space == first.array._handle.cache_space
    assert (first.array.store.read_only, second.array.store.read_only) == (False, True)
    with zardine.config.set({"array.read_missing_chunks": False}):
        third = open_again(store, "0/vertices")
    assert third is not None
    assert (first.array.config.read_missing_chunks, third.array.config.read_missing_chunks) == (True, False)
    with zardine.config.set({"array.cache": "1 MiB"}):  # for each array as long as somebody has it
        assert open_again(store, "0/vertices") is None
    before = vectors.read_points(str(path), bbox=([0, 0], [50, 50])).positions.tolist()
    moved = tmp_path / "c"
    path.rename(moved)
    other.rename(path)
    after = vectors.read_points(str(path), bbox=([0, 0], [50, 50])).positions.tolist()
    assert before != after
    files = {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}
    assert after == vectors.read_points(MemoryStore(files), bbox=([0, 0], [50, 50])).positions.tolist()
    assert before == vectors.read_points(str(moved), bbox=([0, 0], [50, 50])).positions.tolist()
    document = path / "0/vertices/zarr.json"
    document.write_bytes(document.read_bytes()[:-2])
    with pytest.raises(MetadataError, match="0/vertices"):
        vectors.read_points(str(path), bbox=([0, 0], [50, 50]))
