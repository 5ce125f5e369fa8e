"""Forms that are no longer written: the first layout of the object index, ``cross_chunk_links``; other compressors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import values
from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.storage import MemoryStore


def _document(store: MemoryStore, node: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(bytes(store.get(f"{node}/zarr.json") or b""))
    return found


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("compressor", ["blosc", "gzip"])
def test_compressors(kind: str, compressor: str) -> None:
    plain = read_all(store_of(kind), kind)
    turn = list(WRITERS).index(kind) % 2 == (compressor == "gzip")
    for shard in (None, 2) if SOAK else (2 if turn else None,):
        store = store_of(kind, compressor=compressor, shard_shape=shard)
        assert {tuple(each["compressors"]) for each in vectors.get_shard_info(store).values()} == {(compressor,)}
        assert read_all(store, kind) == plain
        assert vectors.validate(store).findings == ()


def test_the_first_layout_of_the_object_index() -> None:
    """Ids are numbers of rows."""
    store = store_of("polylines")
    lines = vectors.read_polylines(store)
    about = _document(store, "0/object_index")
    attributes = about["attributes"]
    assert isinstance(attributes, dict)
    attributes["layout"] = "vlen_manifests_v1"
    store.set("0/object_index/zarr.json", json.dumps(about).encode())
    store.erase_prefix("0/object_index/object_ids/")
    store.erase_prefix("0/groups/")
    store.erase_prefix("0/group_attributes/")
    found = vectors.read_polylines(store)
    assert found.object_ids.tolist() == [0, 1, 2, 3]
    assert np.array_equal(found.positions, lines.positions)
    assert np.array_equal(vectors.read_polylines(store, object_ids=[2]).positions, lines[2])
    assert vectors.validate(store).ok


def test_cross_chunk_links_are_sharded_with_the_rest() -> None:
    store = store_of("graph")
    before = values(store)
    for key, value in before.items():
        if key.startswith("0/links/0/"):
            store.set(key.replace("0/links/0/", "0/cross_chunk_links/0/"), value)
    for node in ("0/cross_chunk_links", "0/cross_chunk_links/0"):
        store.set(f"{node}/zarr.json", json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode())
    whole, flat = read_all(store, "graph"), values(store)
    vectors.shard_store(store, 4)
    sharded = vectors.get_shard_info(store)
    assert all(each["shard_shape"] for name, each in sharded.items() if "cross_chunk_links" in name and each["chunks"])
    assert read_all(store, "graph") == whole
    assert vectors.validate(store).ok
    vectors.unshard_store(store)
    assert {key: value for key, value in values(store).items() if "/c/" in key} == {
        key: value for key, value in flat.items() if "/c/" in key
    }
