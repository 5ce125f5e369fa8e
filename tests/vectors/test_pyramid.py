"""Coarser levels: means of bins, links to them, objects that go on."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import Killed, MortalStore, copy_of, rows, values
from vectors.stores_of_all_kinds import store_of
from zardine import vectors
from zardine.errors import CorruptionError, DataError, SelectionError, ZarrUserWarning
from zardine.storage import MemoryStore
from zardine.vectors import pyramid
from zardine.vectors.content.content import Content
from zardine.vectors.reading.loading import load_cells

P = np.random.default_rng(0).uniform(-50, 50, (400, 3))


@pytest.mark.parametrize("layout", [{}, {"bin_shape": 5}, {"shard_shape": 2, "compressor": "zstd"}])
def test_every_vertex_of_a_level_is_the_mean_of_a_bin(layout: dict[str, Any]) -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=20, **layout)
    assert vectors.build_pyramid(store, factors=[(2, 1), (2, 1)]) == [1, 2]
    size = 2 * layout.get("bin_shape", 20)
    number = np.unique(np.floor(P / size), axis=0, return_inverse=True)[1].reshape(-1)
    means = [P[number == n].mean(axis=0) for n in range(number.max() + 1)]
    coarse = vectors.read_points(store, level=1)
    assert np.allclose(sorted(rows(coarse.positions)), sorted(rows(np.array(means))))
    ends = vectors.read_cross_level_links(store, 0, 1)
    fine = vectors.read_points(store).positions
    assert (np.floor(fine[ends[:, 0]] / size) == np.floor(coarse.positions[ends[:, 1]] / size)).all()
    assert len(ends) == 400
    back = vectors.read_cross_level_links(store, 1, -1)
    assert rows(back[:, ::-1]) == rows(ends)
    assert vectors.validate(store).findings == ()
    info = vectors.get_shard_info(store)
    assert {each["shard_shape"] for each in info.values()} == {info["0/vertices"]["shard_shape"]}


def test_objects_go_on_as_paths() -> None:
    store = MemoryStore()
    line = np.stack([np.linspace(0, 100, 201), np.zeros(201)], axis=1)
    vectors.write_polylines(
        store, [line, line + 300], chunk_shape=10, object_ids=[5, 8], object_attributes={"w": [1, 2]}
    )
    vectors.build_pyramid(store, factors=[(2, 1), (2, 2)])
    coarse = vectors.read_polylines(store, level=1)
    assert coarse.object_ids.tolist() == [5, 8]
    assert np.array_equal(coarse[0][:, 0], np.sort(coarse[0][:, 0]))
    assert coarse.object_attributes["w"].tolist() == [1, 2]
    half = vectors.read_polylines(store, level=2)
    assert sorted(map(len, half.lines))[0] == 0
    assert vectors.validate(store).findings == ()
    vectors.append_polylines(store, [line])
    assert [each["older"] for each in vectors.describe_store(store)["levels"]] == [False, True, True]
    assert [each.kind for each in vectors.validate(store).findings] == ["levels-older"]


@pytest.mark.parametrize("kind", ["points", "lines"])
def test_levels_made_of_small_blocks_are_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = MemoryStore()
    rng = np.random.default_rng(1)
    if kind == "points":
        vectors.write_points(start, rng.uniform(-50, 50, (1200, 3)), chunk_shape=6, bin_shape=2, shard_shape=2)
    else:
        lines = [rng.uniform(-50, 40, 3) + rng.normal(0, 1, (40, 3)).cumsum(axis=0) for _ in range(25)]
        vectors.write_polylines(start, lines, chunk_shape=6, groups=[[1, 3], [0]])
    sizes: list[int] = []
    found = []
    for rows_of_a_block in (2**18, 100):
        monkeypatch.setattr(pyramid, "_ROWS_OF_A_BLOCK", rows_of_a_block)
        monkeypatch.setattr(pyramid, "load_cells", lambda *args, **more: _noting(sizes, load_cells(*args, **more)))
        sizes.clear()
        store = copy_of(start)
        vectors.build_pyramid(store, factors=[(2, 1), (3, 1.5)])
        assert vectors.validate(store).findings == ()
        found.append((values(store), max(sizes)))
    assert found[0][0] == found[1][0]
    assert found[1][1] < found[0][1] / 2


def _noting(sizes: list[int], content: Content) -> Content:
    sizes.append(len(content.positions))
    return content


def test_positions_on_the_faces_of_chunks_that_rounding_blurs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyramid, "_ROWS_OF_A_BLOCK", 1)
    side = np.arange(60) * 0.1
    points = np.stack([side, side[::-1]], axis=1)
    store = MemoryStore()
    vectors.write_points(store, points, chunk_shape=0.1)
    vectors.build_pyramid(store, factors=[(3, 1), (7, 1)])
    assert vectors.validate(store).findings == ()
    for level in (1, 2):
        coarse = vectors.read_points(store, level=level).positions
        for point in coarse:
            assert len(vectors.read_points(store, level=level, bbox=(point, point))) == 1


def test_lost_cells_are_told_before_anything_is_changed() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=50)
    vectors.build_pyramid(store)
    key = next(key for key in values(store) if key.startswith("0/vertices/c/"))
    store.erase(key)
    before = values(store)
    with pytest.raises(CorruptionError):
        vectors.build_pyramid(store, anew=True)
    assert values(store) == before


def test_killed_anywhere_level_0_reads_and_no_level_is_half_made() -> None:
    whole = MemoryStore()
    vectors.write_points(whole, P, chunk_shape=50)
    again = copy_of(whole)
    vectors.build_pyramid(again, factors=[(2, 1), (2, 1)])
    for start in (whole, again):
        changes, done = 0, False
        while not done:
            store = copy_of(start)
            try:
                vectors.build_pyramid(MortalStore(store, changes), factors=[(2, 1)])
                done = True
            except Killed:
                pass
            assert rows(vectors.read_points(store).positions) == rows(P)
            vectors.validate(store)
            vectors.is_sharded(store)
            left = copy_of(store)
            for level in vectors.describe_store(store)["levels"][1:]:
                assert len(vectors.read_points(store, level=level["level"])) == level["vertex_count"] > 0
            vectors.repair(left) if changes % 2 else vectors.shard_store(left)
            assert vectors.validate(left).findings == ()
            assert vectors.build_pyramid(store, factors=[(2, 1)]) == [1]
            assert vectors.validate(store).findings == ()
            changes += 1 if SOAK else 19


def test_what_refers_to_levels_goes_with_them() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=50)
    vectors.build_pyramid(store, factors=[(2, 1), (2, 1)])
    vectors.build_pyramid(store, factors=[(3, 1)], cross_level_links=False)
    with pytest.raises(SelectionError):
        vectors.read_cross_level_links(store, 0, 1)
    assert vectors.validate(store).findings == ()
    vectors.build_pyramid(store, factors=[(2, 1)])
    assert vectors.build_pyramid(store, factors=[]) == []
    assert vectors.validate(store).findings == ()
    assert not [key for key in values(store) if "links" in key]


@pytest.mark.parametrize("kind", ["vertex", "fragment", "object"])
def test_attributes_keep_levels_that_still_agree(kind: str) -> None:
    store = MemoryStore()
    ids = np.arange(400) if kind == "object" else None
    vectors.write_points(store, P, chunk_shape=50, object_ids=ids)
    vectors.build_pyramid(store)
    before, ends = vectors.read_points(store, level=1), vectors.read_cross_level_links(store, 0, 1)
    count = len(vectors.read_fragments(store).chunks) if kind == "fragment" else 400
    vectors.set_attribute(store, "q", np.arange(count), kind=kind)
    if kind == "object":
        assert [each["older"] for each in vectors.describe_store(store)["levels"]] == [False, True]
        vectors.build_pyramid(store)
    else:
        assert vectors.read_points(store, level=1).positions.tolist() == before.positions.tolist()
        assert vectors.read_cross_level_links(store, 0, 1).tolist() == ends.tolist()
    assert vectors.validate(store).findings == ()


def test_bins_divide_the_chunks_of_every_level() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=20)
    vectors.build_pyramid(store, factors=[(1.5, 1), (1.5, 1)])
    shapes = [level["chunk_shape"][0] for level in vectors.describe_store(store)["levels"]]
    assert shapes == [20, 60, 180]
    assert vectors.validate(store).findings == ()
    before = values(store)
    with pytest.raises(DataError, match="do not divide"):
        vectors.build_pyramid(store, factors=[(1.5, 1)], chunk_scale_factors=[2])
    with pytest.raises(DataError, match="do not divide"):
        vectors.build_pyramid(store, factors=[(np.pi, 1)])
    assert values(store) == before


def test_levels_above_all_measure() -> None:
    store = MemoryStore()
    vectors.write_points(store, [[0.5, 0.5], [70, 3]], chunk_shape=10)
    with pytest.raises(DataError, match="chunks of level 33 would be 8589934592 times as large"):
        vectors.build_pyramid(store, factors=[(2, 1)] * 70)
    assert [each["level"] for each in vectors.describe_store(store)["levels"]] == [0]
    assert vectors.build_pyramid(store, factors=[(2**16, 1)] * 2) == [1, 2]
    assert len(vectors.read_points(store, level=2)) == 1
    assert vectors.validate(store).findings == ()


@pytest.mark.parametrize(
    "arguments", [{"factors": [(0.5, 1)]}, {"factors": [(2, np.nan)]}, {"chunk_scale_factors": [0]}]
)
def test_factors_that_make_no_sense(arguments: dict[str, Any]) -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=50)
    with pytest.raises(DataError):
        vectors.build_pyramid(store, **arguments)


def test_parametric_objects() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=50)
    assert vectors.read_parametric_objects(store) == []
    ball = vectors.ParametricObject("sphere", np.array([1.0, 2, 3, 4]), "ball")
    vectors.write_parametric_objects(store, [ball, vectors.ParametricObject("plane", np.array([1.0, 0, 0, 2]))])
    found = vectors.read_parametric_objects(store)
    assert [(each.type, each.name, each.coefficients.tolist()) for each in found] == [
        ("sphere", "ball", [1, 2, 3, 4]),
        ("plane", "", [1, 0, 0, 2]),
    ]
    with pytest.raises(DataError):
        vectors.write_parametric_objects(store, [vectors.ParametricObject("sphere", np.array([1.0]))])
    assert len(vectors.read_parametric_objects(store)) == 2


def test_readers_do_not_know_levels_that_are_unfinished() -> None:
    store = MemoryStore()
    vectors.write_points(store, np.random.default_rng(0).uniform(0, 40, (50, 3)), chunk_shape=10)
    vectors.build_pyramid(store, factors=[(2, 1), (2, 1)])
    document = json.loads(bytes(store.get("2/zarr.json") or b""))
    document["attributes"]["zardine_unfinished"] = True
    store.set("2/zarr.json", json.dumps(document).encode())
    readers: list[Callable[..., Any]] = [vectors.read_points, vectors.read_fragments, vectors.read_objects]
    for read in readers:
        with pytest.raises(SelectionError, match=r"being made or removed.*there are \[0, 1\]"):
            read(store, level=2)
    with pytest.raises(SelectionError, match="being made"):
        vectors.read_cross_level_links(store, 1, 1)
    with pytest.raises(SelectionError, match=r"has no level 3; it has \[0, 1\]"):
        vectors.read_points(store, level=3)
    assert [each["level"] for each in vectors.describe_store(store)["levels"]] == [0, 1]
    assert not any(name.startswith("2/") for name in vectors.get_shard_info(store))
    report = vectors.validate(store)
    assert report.vertex_counts == (50, len(vectors.read_points(store, level=1)))
    assert "level-unfinished" in report.codes
    assert report.ok, report.findings
    for dry_run in (True, False):
        repairs = vectors.repair(store, dry_run=dry_run)
        assert [(each.place, each.message) for each in repairs.actions] == [
            ("2", "removed the level, which was not finished")
        ]
    assert vectors.validate(store).findings == ()
    assert not [key for key in store.list() if key.startswith("2/")]


def test_levels_that_are_not_made_anew_are_told() -> None:
    store = store_of("points")
    build = vectors.build_pyramid
    assert build(store, factors=[(2, 1)] * 3) == [1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build(store) == [1, 2, 3]
    with pytest.warns(ZarrUserWarning, match="levels 2 to 3 are removed and not made anew"):
        assert build(store, factors=[(2, 1)]) == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build(store) == [1]
        assert build(store, factors=[]) == []
