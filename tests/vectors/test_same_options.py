"""Every geometry takes the same options: of bins, of what is outside of the bounds, of objects that are added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr_vectors.types.graphs import read_graph
from zarr_vectors.types.meshes import read_mesh
from zarr_vectors.types.polylines import read_polylines

from vectors.geometry_samples import rows, values
from vectors.stores_of_all_kinds import COUNT, WRITERS, positions, store_of
from vectors.with_zarr_vectors import agree
from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore
from zardine.vectors import Layout, Polylines, Space

KINDS = pytest.mark.parametrize("kind", sorted(WRITERS))
LINKED = pytest.mark.parametrize("kind", ["graph", "mesh", "skeleton"])


@KINDS
def test_what_was_read_is_written_as_it_was(kind: str) -> None:
    """The functions of each geometry and ``write`` are one way: they store the same bytes."""
    store = MemoryStore()
    WRITERS[kind](store, chunk_shape=40, bin_shape=10, shard_shape=2, bounds=[-40] * 3 + [40] * 3)
    value, groups, again = vectors.open(store).read(), vectors.read_groups(store), MemoryStore()
    more: dict[str, Any] = {"groups": groups.members, "group_attributes": groups.attributes} if groups.members else {}
    if not isinstance(value, Polylines):
        more["object_attributes"] = vectors.read_objects(store).attributes
    layout = Layout(chunk_shape=40, bin_shape=10, shard_shape=2)
    vectors.write(again, value, layout=layout, space=Space(bounds=([-40] * 3, [40] * 3)), **more)
    same = {key for key, each in values(again).items() if values(store)[key] == each}
    assert sorted(values(again)) == sorted(same)


@KINDS
def test_bins_are_what_a_coarser_level_is_made_of(kind: str) -> None:
    store, size = MemoryStore(), 10
    WRITERS[kind](store, chunk_shape=40, bin_shape=size)
    assert vectors.describe_store(store)["bin_shape"] == [size] * 3
    vectors.build_pyramid(store, factors=[(2, 1)], cross_level_links=False)
    coarse = vectors.read_points(store, level=1, attributes=None)
    bins = np.unique(np.floor(positions() / (2 * size)), axis=0)
    assert rows(np.unique(np.floor(coarse.positions / (2 * size)), axis=0)) == rows(bins)
    assert vectors.validate(store).ok
    vectors.open(store, "r+").delete(bbox=[-30] * 3 + [0] * 3)
    assert vectors.describe_store(store)["bin_shape"] == [size] * 3
    assert [each.kind for each in vectors.validate(store).findings] == ["levels-older"]


@pytest.mark.parametrize("kind", ["polylines", "graph", "mesh"])
def test_the_other_program_reads_stores_with_bins(kind: str, tmp_path: Path) -> None:
    store = str(tmp_path / "a.zv")
    WRITERS[kind](store, chunk_shape=40, bin_shape=10)
    if kind == "graph":
        vectors.set_attribute(store, "t", None, kind="link")  # text of links is compared elsewhere
    agree(store)
    box = (np.array([-12.0] * 3), np.array([25.0] * 3))
    ours = vectors.open(store).read(bbox=box)
    if isinstance(ours, Polylines):
        assert read_polylines(store, bbox=box, object_ids=[10, 11, 12, 13])["object_ids"] == ours.object_ids.tolist()
        return
    found = (read_mesh if kind == "mesh" else read_graph)(store, bbox=box)
    assert rows(found["vertices" if kind == "mesh" else "positions"]) == rows(ours.positions)


@KINDS
def test_positions_outside_of_the_bounds(kind: str) -> None:
    store, bounds = MemoryStore(), [-10.0] * 3 + [10.0] * 3
    with pytest.raises(DataError, match="outside of the bounds"):
        WRITERS[kind](store, chunk_shape=20, bounds=bounds)
    if kind not in ("points", "points_of_objects"):
        with pytest.raises(DataError, match="leaves out points"):
            WRITERS[kind](store, chunk_shape=20, bounds=bounds, out_of_bounds="ignore")
    assert values(store) == {}
    WRITERS[kind](store, chunk_shape=20, bounds=bounds, out_of_bounds="expand")
    held = vectors.open(store)
    assert held.bounds == [positions().min(axis=0).tolist(), positions().max(axis=0).tolist()]
    assert len(held) == COUNT
    again = MemoryStore()
    vectors.write(again, held.read(), space=Space(bounds=bounds, out_of_bounds="expand"))
    assert vectors.open(again).bounds == held.bounds
    if kind.startswith("points"):
        vectors.write(again, held.read(), space=Space(bounds=bounds, out_of_bounds="ignore"), overwrite=True)
        inside = (np.abs(positions()) <= 10).all(axis=1)
        assert rows(vectors.read_points(again).positions) == rows(positions()[inside])


@LINKED
def test_objects_that_are_added_bring_their_attributes(kind: str) -> None:
    store = store_of(kind, shard_shape=2)
    held = vectors.open(store, "r+")
    old = held.objects.attributes
    value = held.read(object_ids=[10, 12], attributes=None)
    assert value.object_ids is not None
    ids = np.where(value.object_ids == 10, 10, 77)  # one that is there, one that is new
    more = type(value)(value.positions, *_links(value), {}, object_ids=ids)
    held.append(more, object_attributes={"size": [9.5], "name": ["new"]})
    assert held.objects.ids.tolist() == [10, 11, 12, 13, 77]
    for name, last in (("size", 9.5), ("name", "new")):
        assert held.objects.attributes[name].tolist() == [*old[name].tolist(), last]
    assert len(held.objects[77].positions) == (ids == 77).sum()
    wrong: Any
    for wrong in ({"size": [1, 2]}, {"size": 3}, [1], {"a/b": [1]}):
        with pytest.raises(DataError):
            held.append(more, object_attributes=wrong)  # no id of it is new any more
    add = getattr(vectors, f"append_{kind}")
    add(store, more.positions, *_links(more), object_attributes={"name": ["last"], "weight": [0.5]})
    assert held.objects.attributes["name"].tolist() == [*old["name"].tolist(), "new", "last"]
    assert held.objects.attributes["weight"].tolist()[-1] == 0.5
    assert np.isnan(held.objects.attributes["weight"][:-1]).all()
    assert vectors.validate(store).findings == ()


def _links(value: Any) -> tuple[Any]:
    name = next(each for each in ("parents", "faces", "edges") if hasattr(value, each))
    return (getattr(value, name),)
