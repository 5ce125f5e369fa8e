"""What is lost is an error that names it, whoever asks; and ``repair`` does not hide it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import rows
from vectors.stores_of_all_kinds import LINKS, WRITERS, at_once, positions, read_all, store_of
from zardine import vectors
from zardine.errors import CorruptionError
from zardine.storage import MemoryStore
from zardine.tools.report import Repairs

KINDS_AND_SHARDS = [
    (kind, shard) for turn, kind in enumerate(WRITERS) for shard in ([None, 2] if SOAK else [[None, 2][turn % 2]])
]
SMALL = ([-30, -30, -30], [-21, -21, -21])
"""A box within the chunk (-2, -2, -2)."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)


def erase(store: MemoryStore, prefix: str) -> int:
    keys = [key for key in store.list() if key.startswith(prefix)]
    for key in keys:
        store.erase(key)
    return len(keys)


def relist(store: MemoryStore, node: str, keys: list[str] | None) -> None:
    document = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))
    document["attributes"].pop("nonempty_chunks")
    if keys is not None:
        document["attributes"]["nonempty_chunks"] = keys
    store.set(f"{node}/zarr.json", json.dumps(document).encode())


def one_cell_of(store: MemoryStore, node: str) -> str:
    return next(key for key in sorted(store.list()) if key.startswith(f"{node}/") and "/c/" in key)


LISTED_AND_SHARDS = [[(True, None), (False, 8)], [(False, None), (True, 8)]]
"""Two of the four for each kind, so that each two of the three meet."""


@pytest.mark.parametrize(
    ("kind", "listed", "shard"),
    [(kind, *each) for number, kind in enumerate(WRITERS) for each in LISTED_AND_SHARDS[number % 2]],
)
def test_lost_vertices(kind: str, listed: bool, shard: int | None) -> None:
    store = store_of(kind, shard_shape=shard)
    filled = next(iter(vectors.read_fragments(store).chunks.tolist()))
    assert erase(store, "0/vertices/c/")
    if not listed:
        for node in ("0/vertices", "0/vertex_fragments"):
            relist(store, node, None)
    low = np.array(filled) * 20.0
    for query in ({}, {"chunks": [filled]}, {"bbox": (low, low + 19)}, {"bbox": ([-99] * 3, [99] * 3)}):
        with pytest.raises(CorruptionError, match=r"lost|stored"):
            read_all(store, kind, **query)
    assert not vectors.validate(store).ok


@pytest.mark.parametrize("kind", WRITERS)
def test_emptied_vertices(kind: str) -> None:
    """As a conversion of the reference package leaves them that was killed after it had deleted the array."""
    store = store_of(kind)
    filled = next(iter(vectors.read_fragments(store).chunks.tolist()))
    erase(store, "0/vertices/c/")
    relist(store, "0/vertices", [])
    for query in ({}, {"chunks": [filled]}, {"bbox": SMALL}):
        with pytest.raises(CorruptionError, match="lost"):
            read_all(store, kind, **query)
    assert vectors.repair(store) == Repairs((), (), dry_run=False)
    erase(store, "0/vertex_fragments/c/")
    relist(store, "0/vertex_fragments", [])
    for query in ({}, {"chunks": [filled]}, {"bbox": SMALL}):
        with pytest.raises(CorruptionError, match="lost"):
            read_all(store, kind, **query)
    assert not vectors.validate(store).ok
    assert vectors.repair(store).actions == ()
    assert not vectors.validate(store).ok


@pytest.mark.parametrize("kind", WRITERS)
def test_a_cell_that_one_of_both_lists_forgot(kind: str) -> None:
    store = store_of(kind)
    lost = one_cell_of(store, "0/vertices")
    listed = json.loads(bytes(store.get("0/vertices/zarr.json") or b""))["attributes"]["nonempty_chunks"]
    store.erase(lost)
    fewer = [key for key in listed if [int(n) + 2 for n in key.split(".")] != [int(n) for n in lost.split("/")[3:]]]
    assert len(fewer) == len(listed) - 1
    relist(store, "0/vertices", fewer)
    chunk = [int(n) - 2 for n in lost.split("/")[3:]]
    low = np.array(chunk) * 20.0
    for query in ({}, {"chunks": [chunk]}, {"bbox": (low, low + 19)}):
        with pytest.raises(CorruptionError, match="lost"):
            read_all(store, kind, **query)
    assert not vectors.validate(store).ok
    vectors.repair(store)
    assert not vectors.validate(store).ok
    with pytest.raises(CorruptionError, match="lost"):
        read_all(store, kind)


def test_lists_that_are_wrong_in_the_same_way() -> None:
    """All that a box can then notice is the number of vertices, if it is over the whole grid."""
    store = store_of("points")
    lost = one_cell_of(store, "0/vertices")
    key = ".".join(str(int(n) - 2) for n in lost.split("/")[3:])
    for node in ("0/vertices", "0/vertex_fragments"):
        listed = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))["attributes"]["nonempty_chunks"]
        relist(store, node, [each for each in listed if each != key])
    box = ([-99] * 3, [99] * 3)
    assert len(vectors.read_points(store, bbox=box)) == len(vectors.read_points(store)) == len(positions())
    store.erase(lost)
    store.erase(lost.replace("vertices", "vertex_fragments"))
    for query in ({}, {"bbox": box}):
        with pytest.raises(CorruptionError, match="lost"):
            vectors.read_points(store, **query)


@pytest.mark.parametrize("kind", ["graph", "skeleton", "mesh"])
@pytest.mark.parametrize("emptied", [False, True])
def test_lost_links(kind: str, emptied: bool) -> None:
    store = store_of(kind)
    lost = one_cell_of(store, "0/links/0")  # links between one chunk and another
    store.erase(lost)
    if emptied:
        node = lost.rpartition("/c/")[0]
        erase(store, f"{node}/c/")
        relist(store, node, [])
    with pytest.raises(CorruptionError, match="lost"):
        read_all(store, kind)
    assert not vectors.validate(store).ok
    vectors.repair(store)
    assert not vectors.validate(store).ok
    vectors.repair(store, drop_lost=True)
    assert vectors.validate(store).ok, vectors.validate(store).findings
    assert read_all(store, kind)


@pytest.mark.parametrize("kind", WRITERS)
def test_dropping_what_is_lost_leaves_the_rest(kind: str) -> None:
    store = store_of(kind)
    store.erase(one_cell_of(store, "0/vertex_attributes/n"))
    assert not vectors.validate(store).ok
    vectors.repair(store)
    assert not vectors.validate(store).ok
    with pytest.raises(CorruptionError):
        read_all(store, kind)
    assert any("filled up" in each.message for each in vectors.repair(store, drop_lost=True).actions)
    assert vectors.validate(store).ok


@pytest.mark.parametrize("kind", WRITERS)
def test_chunks_that_only_an_attribute_still_names(kind: str) -> None:
    store = store_of(kind)
    lost = one_cell_of(store, "0/vertices")
    chunk = [int(n) - 2 for n in lost.split("/")[3:]]
    count = int(vectors.read_fragments(store).vertex_counts.sum())
    fewer = count - len(vectors.read_points(store, chunks=[chunk], attributes=None))
    for node in ("0/vertices", "0/vertex_fragments"):
        store.erase(lost.replace("0/vertices", node))
        listed = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))["attributes"]["nonempty_chunks"]
        relist(store, node, [each for each in listed if each != ".".join(map(str, chunk))])
    document = json.loads(bytes(store.get("0/zarr.json") or b""))
    document["attributes"]["zarr_vectors_level"]["vertex_count"] = fewer
    store.set("0/zarr.json", json.dumps(document).encode())
    low = np.array(chunk) * 20.0
    for query in ({}, {"chunks": [chunk]}, {"bbox": (low, low + 19)}):
        with pytest.raises(CorruptionError, match="lost"):
            read_all(store, kind, **query)
    assert not vectors.validate(store).ok
    vectors.repair(store)
    assert not vectors.validate(store).ok
    assert any("forgot the values" in each.message for each in vectors.repair(store, drop_lost=True).actions)
    assert vectors.validate(store).ok, vectors.validate(store).errors
    assert len(vectors.read_points(store)) == fewer


@pytest.mark.parametrize(("kind", "shard"), KINDS_AND_SHARDS)
def test_lost_fragments(kind: str, shard: int | None) -> None:
    store = store_of(kind, shard_shape=shard)
    whole = rows(vectors.read_points(store).positions)
    store.erase(one_cell_of(store, "0/vertex_fragments"))
    with pytest.raises(CorruptionError):
        read_all(store, kind)
    vectors.repair(store)
    assert not vectors.validate(store).ok
    assert any("whose fragments are lost" in each.message for each in vectors.repair(store, drop_lost=True).actions)
    assert vectors.validate(store).ok, vectors.validate(store).errors
    left = rows(vectors.read_points(store).positions)
    assert left == whole if kind == "points" else len(left) < len(whole)
    assert read_all(store, kind)


def test_lost_values_of_links() -> None:
    store = store_of("graph")
    store.erase(one_cell_of(store, "0/link_attributes/w/0"))
    with pytest.raises(CorruptionError):
        vectors.read_graph(store)
    vectors.repair(store)
    assert not vectors.validate(store).ok
    assert any("filled up" in each.message for each in vectors.repair(store, drop_lost=True).actions)
    assert vectors.validate(store).ok
    weights = vectors.read_graph(store).edge_attributes["w"]
    assert np.isnan(weights).any()
    assert len(weights) == LINKS


def test_lost_parametric_objects() -> None:
    for what, found in (("objects/c/", "parametric"), ("objects/", "parametric"), ("names/c/", "values-absent")):
        store = store_of("points")
        assert erase(store, f"parametric/{what}")
        assert found in vectors.validate(store).codes
        if found == "parametric":
            with pytest.raises(CorruptionError):
                vectors.read_parametric_objects(store)


def test_repair_does_what_it_can_and_says_what_it_cannot() -> None:
    store = store_of("graph")
    key = one_cell_of(store, "0/vertex_attributes/n")
    store.set(key, bytes(store.get(key) or b"")[:-3])
    relist(store, "0/vertex_attributes/rgb", None)
    told = vectors.repair(store)
    assert any(each.place == "0" and "vertex_attributes/n" in each.message for each in told.left)
    where = {each.place for each in told.actions if each.message.startswith("nonempty_chunks names")}
    assert where == {"0/vertex_attributes/rgb"}
    assert not told.ok
    assert {each.place for each in vectors.validate(store).errors} == {"0/vertex_attributes/n"}


def test_lost_manifests_and_ids() -> None:
    for node in ("manifests", "object_ids"):
        store = store_of("polylines")
        assert erase(store, f"0/object_index/{node}/c/")
        queries: list[dict[str, Any]] = [{}, {"object_ids": [10]}]
        for query in queries:
            with pytest.raises(CorruptionError, match="lost"):
                vectors.read_polylines(store, **query)
        assert "object-index" in vectors.validate(store).codes
    store = MemoryStore()
    vectors.write_points(store, positions(), chunk_shape=20, object_ids=[7] * 40)
    assert erase(store, "0/object_index/object_ids/c/")  # one id, of which an array of zeros would be another one
    with pytest.raises(CorruptionError, match="lost"):
        vectors.read_points(store, attributes=None)
    store = store_of("polylines")
    erase(store, "0/object_index/object_ids/")
    assert "object-index" in vectors.validate(store).codes
    found = {}
    for node in ("groups", "group_attributes/label", "object_attributes/size"):
        store = store_of("polylines")
        assert erase(store, f"0/{node}/c/")
        (finding,) = vectors.validate(store).findings
        assert finding.place == f"0/{node}"
        found[node] = finding.code
    assert found == {
        "groups": "group",
        "group_attributes/label": "values-absent",
        "object_attributes/size": "values-absent",
    }


def test_an_index_of_links_that_is_missing_or_cut() -> None:
    for what in ("missing", "cut"):
        store = store_of("graph", chunk_shape=40)
        if what == "missing":
            erase(store, "0/link_fragments/")
        else:
            key = one_cell_of(store, "0/link_fragments")
            store.set(key, bytes(store.get(key) or b"")[:-9])
        assert "link-fragments" in vectors.validate(store).codes


def test_claims_that_are_false() -> None:
    store = store_of("graph")
    document = json.loads(bytes(store.get("zarr.json") or b""))
    document["attributes"]["zarr_vectors"]["links_convention"] = "implicit_sequential"
    store.set("zarr.json", json.dumps(document).encode())
    assert "convention" in vectors.validate(store).codes
    store = MemoryStore()
    vectors.write_points(store, positions(), chunk_shape=20, object_ids=np.arange(40) % 3, checksum=False)
    from zardine.vectors.format.fragment_index import encode_indexes

    key = one_cell_of(store, "0/vertex_fragments")
    blob = bytes(store.get(key) or b"")[8:]
    from zardine.vectors.format.fragment_index import decode_index

    index = decode_index(blob, 2**20)
    turned = encode_indexes(np.array([0, 1]), np.array([len(index.rows)]), index.rows[::-1].copy())[0]
    store.set(key, (1).to_bytes(4, "little") + len(turned).to_bytes(4, "little") + turned)
    codes = vectors.validate(store).codes
    assert len(index.rows) < 2 or "tile-claim" in codes


GRID = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 10.0 + 5
CONVERSIONS = [
    lambda store: vectors.shard_store(store, 4),
    vectors.unshard_store,
    lambda store: vectors.reshard(store, 3),
    lambda store: vectors.reshard(store, None),
]


def store_of_cells(shard: int | None) -> MemoryStore:
    store = MemoryStore()
    vectors.write_points(store, GRID, chunk_shape=10, shard_shape=shard, vertex_attributes={"n": np.arange(64)})
    return store


def drop_cell(store: MemoryStore, node: str, cell: tuple[int, int, int]) -> None:
    """Remove a cell without a word in any document."""
    if not vectors.get_shard_info(store)[node]["shard_shape"]:
        store.erase(f"{node}/c/" + "/".join(map(str, cell)))
        return
    document = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))
    import zardine

    array = zardine.open_array(store, path=node, mode="r+")
    array[cell] = b""
    assert json.loads(bytes(store.get(f"{node}/zarr.json") or b"")) == document


def damage_shape(store: MemoryStore, node: str, shape: list[int]) -> None:
    document = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))
    document["shape"] = shape
    store.set(f"{node}/zarr.json", json.dumps(document).encode())


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


@pytest.mark.parametrize("node", ["0/vertices", "0/vertex_fragments", "0/vertex_attributes/n"])
@pytest.mark.parametrize("shard", [None, 2])
@pytest.mark.parametrize("fault", ["lost", "off the grid", "off the grid and not listed"])
def test_conversions_change_nothing_where_a_cell_is_lost(fault: str, shard: int | None, node: str) -> None:
    store = store_of_cells(shard)
    if fault == "lost":
        drop_cell(store, node, (1, 2, 3))
    else:
        damage_shape(store, node, [1, 1, 1] if shard is None else [2, 2, 2])
        if "not listed" in fault:
            relist(store, node, None)
    before = contents(store)
    for convert in CONVERSIONS:
        if shard is None and convert is not CONVERSIONS[0] and convert is not CONVERSIONS[2]:
            continue  # it is stored so
        with pytest.raises(CorruptionError, match=r"lost|off the grid") as caught:
            convert(store)
        assert caught.value.array == node
        assert contents(store) == before
    if node != "0/vertex_fragments":
        with pytest.raises(CorruptionError):
            vectors.read_points(store, bbox=([11, 21, 31], [19, 29, 39]))


@pytest.mark.parametrize("shard", [None, 2])
@pytest.mark.parametrize("shape", [[1, 1, 1], [4, 4, 3], [4, 2, 4]])
def test_a_box_that_touches_a_cell_off_the_grid(shape: list[int], shard: int | None) -> None:
    store = store_of_cells(shard)
    damage_shape(store, "0/vertices", shape)
    damage_shape(store, "0/vertex_fragments", shape)
    outside = [n * 10 for n in (3, 3, 3)]
    for box in (
        (outside, [99] * 3),
        (outside, [n + 9 for n in outside]),
        ([1, 1, 1], [39, 39, 39]),
        ([-9] * 3, [99] * 3),
    ):
        with pytest.raises(CorruptionError, match="off the grid"):
            vectors.read_points(store, bbox=box)
    with pytest.raises(CorruptionError, match=r"off the grid|lost"):
        vectors.read_points(store, chunks=[(3, 3, 3)])
    if shape != [1, 1, 1]:  # there that is all, and the number of vertices is wrong
        assert vectors.read_points(store, bbox=([1] * 3, [9] * 3)).positions.tolist() == [[5, 5, 5]]
    assert len(vectors.read_points(store, bbox=([100] * 3, [200] * 3))) == 0
    assert len(vectors.read_points(store, bbox=([-100] * 3, [-50] * 3))) == 0
