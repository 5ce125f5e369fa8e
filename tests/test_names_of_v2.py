"""Names that nodes of Zarr v2 may have, and those of v3 may not: with two underscores in front, and of periods only."""

import numpy as np
import pytest

import zardine
from zardine.storage import LocalStore, MemoryStore

NAMES = ["__x", "...", "....", "__", "_x_"]


def stores(tmp_path):
    yield MemoryStore()
    yield LocalStore(tmp_path / "local")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_made_listed_and_opened(tmp_path, name):
    for store in stores(tmp_path):
        root = zardine.open_group(store, mode="w", zarr_format=2)
        root.create_array(name, shape=(3,), dtype="i4")[...] = 5
        below = root.create_group(f"g/{name}")
        below.create_array("a", shape=(2,), dtype="u1")[...] = 7
        assert sorted(root.keys()) == sorted([name, "g"])
        assert name in root
        assert list(root["g"]) == [name]
        assert root[name][...].tolist() == [5] * 3
        assert zardine.open_array(store, path=f"g/{name}/a", mode="r")[...].tolist() == [7, 7]
        assert zardine.open_group(store, path=f"g/{name}", mode="r")["a"].shape == (2,)
        report = zardine.verify(store)
        assert report.nodes == 5
        assert (report.faults, report.notes) == ((), ())
        zardine.consolidate_metadata(store)
        consolidated = zardine.open_group(store, mode="r", use_consolidated=True)
        assert sorted(consolidated.keys()) == sorted([name, "g"])
        assert consolidated[f"g/{name}/a"][...].tolist() == [7, 7]
        del root[name]
        assert name not in zardine.open_group(store, use_consolidated=False)


@pytest.mark.parametrize("name", ["__x", "...", ".", "..", "a/__x", ".../a"])
def test_v3_has_none_of_them(name):
    root = zardine.open_group(MemoryStore(), mode="w", zarr_format=3)
    with pytest.raises(ValueError, match="invalid node path"):
        root.create_array(name, shape=2, dtype="i4")
    with pytest.raises(ValueError, match="invalid node path"):
        zardine.create_group(root.store, path=name, zarr_format=3)
    assert name not in root
    assert list(root.store.list()) == ["zarr.json"]


@pytest.mark.parametrize("name", [".", "..", "a/../b", "a\0b"])
def test_some_names_nothing_has(name):
    root = zardine.open_group(MemoryStore(), mode="w", zarr_format=2)
    with pytest.raises(ValueError, match="invalid node path"):
        root.create_group(name)
    with pytest.raises(ValueError, match="invalid node path"):
        zardine.open_array(root.store, path=name)


def test_what_zardine_keeps_is_no_node(tmp_path):
    store = LocalStore(tmp_path)
    root = zardine.open_group(store, mode="w", zarr_format=2)
    a = root.create_array("a", shape=(4,), chunks=(2,), dtype="i4", compressors={"id": "zlib", "level": 1})
    a[...] = np.arange(4)
    store.set("a/0", b"damaged")
    store.set("__zardine/something", b"x")
    zardine.repair(store)
    assert list(root) == ["a"]
    assert {note.kind for note in zardine.verify(store).notes} <= {"kept", "reserved"}
