"""Annotations, skeletons and meshes for neuroglancer and of it: out and in again, and read by cloud-volume."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudvolume
import numpy as np
import pytest
from cloudvolume.datasource.precomputed.common import compressed_morton_code
from cloudvolume.datasource.precomputed.skeleton import PrecomputedSkeletonSource

from zardine import config, vectors
from zardine.errors import (
    ChunkTooLargeError,
    CorruptionError,
    DataError,
    NodeExistsError,
    UnsupportedError,
    ZarrUserWarning,
)
from zardine.storage import MemoryStore
from zardine.vectors.exchange.formats import export_vectors, import_vectors
from zardine.vectors.exchange.precomputed import segments, spatial
from zardine.vectors.exchange.precomputed import skeletons as skeletons_of_it
from zardine.vectors.exchange.precomputed.annotations import AnnotationInfo
from zardine.vectors.exchange.precomputed.forests import parents_of_edges
from zardine.vectors.exchange.precomputed.sharding import Sharding

MICRO: Any = [{"name": name, "unit": "micrometer"} for name in "xyz"]
PACKED = pytest.mark.parametrize("sharded", [False, True])


def there_and_back(path: str, tmp_path: Path, **options: Any) -> tuple[Path, str, str]:
    """The folder, the new store, and what was told."""
    folder, again = tmp_path / "out.precomputed", str(tmp_path / "again.zv")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        export_vectors(path, folder, overwrite=True, **options)
        import_vectors(folder, again, overwrite=True, chunk_shape=25)
    return folder, again, "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


def points(path: str, count: int = 1500, **options: Any) -> vectors.Points:
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 100, (count, 3)).astype("f4")
    positions[:2] = [[0, 0, 0], [100, 100, 100]]  # cloud-volume finds cells where bounds and cells are whole numbers
    vectors.write_points(
        path,
        positions,
        chunk_shape=25,
        shard_shape=4,
        vertex_attributes={
            "score": positions[:, 1],
            "Kind": np.where(positions[:, 0] > 50, "tree", "house"),
            "wide": np.arange(count, dtype="u8") + 2**31,
            "small": (np.arange(count) % 100).astype("i2"),
            "colour": rng.integers(0, 255, (count, 3), dtype="u1"),
            "pair": rng.normal(0, 1, (count, 2)).astype("f4"),
            "text": [None, *["a"] * (count - 1)],
            "huge": np.arange(count) * 2**40,
        },
        **options,
    )
    return vectors.read_points(path)


def sorted_by_id(found: vectors.Points) -> vectors.Points:
    assert found.object_ids is not None
    order = np.argsort(found.object_ids)
    values = {name: each[order] for name, each in found.attributes.items()}
    return vectors.Points(found.positions[order], values, found.object_ids[order])


@PACKED
def test_points(tmp_path: Path, sharded: bool) -> None:
    path = str(tmp_path / "a.zv")
    ids = np.arange(1500) * 2**30
    told = {"relationship": ["near", "near", "post"], "segment": [9, 2**40, 9]}
    groups = [[ids[0], ids[5]], [ids[5]], list(ids[700:])]
    old = sorted_by_id(points(path, object_ids=ids, groups=groups, group_attributes=told, axes=MICRO))
    folder, again, text = there_and_back(path, tmp_path, sharded=sharded)
    new = sorted_by_id(vectors.read_points(again))
    assert (new.object_ids == old.object_ids).all()  # type: ignore[union-attr]
    assert (new.positions == old.positions).all()
    same = {"score": "score", "wide": "wide", "small": "small", "colour": "colour", "kind": "Kind"}
    for name, before in same.items():
        assert (new.attributes[name] == old.attributes[before]).all(), name
    assert (np.stack([new.attributes["pair_0"], new.attributes["pair_1"]], axis=1) == old.attributes["pair"]).all()
    assert set(new.attributes) == {*same, "pair_0", "pair_1", "text"}
    found = vectors.read_groups(again)
    assert [each.tolist() for each in found.members] == [sorted(map(int, each)) for each in groups]
    assert found.attributes["relationship"].tolist() == told["relationship"]
    assert found.attributes["segment"].tolist() == told["segment"]
    assert vectors.open(again).axes[0] == {"name": "x", "type": "space", "unit": "micrometer"}
    assert vectors.open(again).crs is None
    for part in (
        "'Kind' is called 'kind' there",
        "'huge' cannot be kept: the format holds integers of up to 32 bits",
        "missing text of the attribute 'text' is written as empty text",
    ):
        assert part in text
    _check_with_cloud_volume(folder, new)


def _check_with_cloud_volume(folder: Path, expected: vectors.Points) -> None:
    info = json.loads((folder / "info").read_text())
    assert info["annotation_type"] == "point"
    info["annotation_type"] = "POINT"  # which is what this program wants, and the specification does not have
    (folder / "info").write_text(json.dumps(info))
    other = cloudvolume.from_cloudpath(f"file://{folder}")
    assert expected.object_ids is not None
    rows = [0, 5, 900]
    found = other.get_by_id([int(expected.object_ids[row]) for row in rows])
    for row in rows:
        each = found[int(expected.object_ids[row])]
        assert (each.geometry[0] == expected.positions[row]).all()
        assert each.properties["score"][0] == expected.attributes["score"][row]
        assert (each.properties["colour"][0] == expected.attributes["colour"][row]).all()
        label = each.properties_enum["kind"][int(each.properties["kind"][0])]
        assert label == expected.attributes["kind"][row]
    assert found[int(expected.object_ids[5])].relationships["rel_0"].tolist() == [9, 2**40]
    near = other.get_by_relationship("near", [9])[9]
    assert sorted(near.ids.tolist()) == expected.object_ids[[0, 5]].tolist()
    everywhere = [other.get_by_bbox((slice(None),) * 3, mip=mip).ids for mip in range(len(info["spatial"]))]
    assert np.array_equal(np.sort(np.concatenate(everywhere)), expected.object_ids)
    assert len(everywhere) > 1


def test_points_that_are_part_of_objects(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    old = points(path, object_ids=np.arange(1500) % 7)
    _, again, _ = there_and_back(path, tmp_path)
    new = vectors.read_points(again)
    for number in range(7):
        before, after = (each.positions[each.object_ids == number] for each in (old, new))
        assert np.array_equal(np.sort(before, axis=0), np.sort(after, axis=0))


def test_points_without_ids_and_none_at_all(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    old = points(path, 20)
    _, again, _ = there_and_back(path, tmp_path)
    new = vectors.read_points(again)
    assert new.object_ids is None
    assert np.array_equal(np.sort(new.positions, axis=0), np.sort(old.positions, axis=0))
    vectors.write_points(path, np.zeros((0, 2)), bounds=(0, 0, 4, 4), overwrite=True)
    _, again, _ = there_and_back(path, tmp_path)
    assert len(vectors.read_points(again)) == 0


@PACKED
@pytest.mark.parametrize("kind", ["line", "axis_aligned_bounding_box"])
def test_lines_and_boxes(tmp_path: Path, kind: Any, sharded: bool) -> None:
    path = str(tmp_path / "a.zv")
    rng = np.random.default_rng(0)
    ends = rng.uniform(0, 100, (2500, 2, 2)).astype("f4")
    ends[:2000, 1] = ends[:2000, 0] + rng.uniform(0, 2, (2000, 2)).astype("f4")
    ids = np.arange(2500) + 10
    vectors.write_lines(path, ends, object_ids=ids, object_attributes={"w": ids}, groups=[[12, 11]], chunk_shape=25)
    folder, again, _ = there_and_back(path, tmp_path, annotation_type=kind, sharded=sharded)
    found = vectors.read_polylines(again)
    assert np.array_equal(np.sort(found.object_ids), ids)
    assert (found.positions.reshape(-1, 2, 2) == ends[found.object_ids - 10]).all()
    assert (found.object_attributes["w"] == found.object_ids).all()
    assert vectors.read_groups(again).members[0].tolist() == [11, 12]
    assert json.loads((folder / "info").read_text())["annotation_type"] == kind
    export_vectors(again, tmp_path / "third", format="precomputed")  # what they were is known
    assert json.loads((tmp_path / "third/info").read_text())["annotation_type"] == kind


@pytest.mark.parametrize("kind", ["point", "line", "axis_aligned_bounding_box"])
def test_every_cell_that_is_touched_has_it(kind: str) -> None:
    """In one level each annotation is in all the cells that it touches, and in no other level."""
    rng = np.random.default_rng(3)
    geometry = rng.uniform(0, 64, (400, 1 if kind == "point" else 2, 3)).astype("f4")
    if kind != "point":
        geometry[:300, 1] = geometry[:300, 0] + rng.normal(0, 3, (300, 3)).astype("f4")
    ids = np.arange(400, dtype=np.uint64)

    def blocks() -> Iterator[tuple[Any, Any]]:
        for start in range(0, 400, 150):
            yield ids[start : start + 150], geometry[start : start + 150]

    space = spatial.Space.of(kind, blocks, 3)
    lower, upper = space.lower, space.upper
    levels = spatial.samples(space, blocks, 50)
    assert len(levels) > 1
    of_levels = [each.among(spatial.ranks_of(ids)) for each in levels]
    assert sorted(np.concatenate(of_levels).tolist()) == list(range(400))
    steps = np.linspace(0, 1, 257)[:, None, None]
    for each, mine in zip(levels, of_levels, strict=True):
        size, shape = np.array(each.level.chunk_size), np.array(each.level.grid_shape)
        assert np.allclose(size * shape, upper - lower)
        rows, cells = space.touched(geometry[mine], shape)
        rows = mine[rows]
        there = {(row, *cell) for row, cell in zip(rows.tolist(), cells.tolist(), strict=True)}
        assert len(there) == len(rows) == each.entries
        counts = np.unique(cells, axis=0, return_counts=True)[1]
        assert (len(counts), counts.max()) == (each.cells, each.level.limit)
        for row in set(rows.tolist()):
            one = geometry[row].astype("f8")
            if kind == "axis_aligned_bounding_box":
                corners = np.floor((np.stack((one.min(axis=0), one.max(axis=0))) - lower) / size)
                first, last = np.clip(corners, 0, np.array(each.level.grid_shape) - 1).astype(int)
                count = int(np.prod(last - first + 1))
                assert count == sum(1 for number, *_ in there if number == row)
                wanted = {tuple(first), tuple(last)}
            else:
                on_it = one[:1] if kind == "point" else (one[0] * (1 - steps) + one[1] * steps).reshape(-1, 3)
                places = np.floor((on_it - lower) / size)
                wanted = set(map(tuple, np.clip(places, 0, np.array(each.level.grid_shape) - 1).astype(int).tolist()))
            assert {(row, *map(int, cell)) for cell in wanted} <= there
        codes = spatial.morton_codes(cells, each.level.grid_shape)
        assert (codes == compressed_morton_code(cells, each.level.grid_shape)).all()
        assert (spatial.cells_of(codes, each.level.grid_shape) == cells).all()


def skeletons(path: str) -> None:
    rng = np.random.default_rng(0)
    parents = np.arange(300) - 1
    parents[::100] = -1
    vectors.write_skeleton(
        path,
        rng.uniform(0, 100, (300, 3)).astype("f4"),
        parents,
        chunk_shape=25,
        object_ids=np.repeat([7, 9, 2**40], 100),
        vertex_attributes={"radius": rng.uniform(0, 1, 300).astype("f4"), "vector": rng.normal(0, 1, (300, 3))},
        object_attributes={"label": ["a", "b", "c"], "size": [1.5, 2, 3]},
        axes=MICRO,
    )


@PACKED
def test_skeletons(tmp_path: Path, sharded: bool) -> None:
    path = str(tmp_path / "a.zv")
    skeletons(path)
    folder, again, text = there_and_back(path, tmp_path, sharded=sharded)
    assert "'vector' is rounded to float32" in text
    for number in (7, 9, 2**40):
        old, new = (vectors.read_skeleton(each, object_ids=[number]) for each in (path, again))
        a, b = (np.lexsort(each.positions.T) for each in (old, new))
        assert (old.positions[a] == new.positions[b]).all()
        above_a, above_b = (
            np.where(each.parents >= 0, each.positions[each.parents][:, 0], -1)[order]
            for each, order in ((old, a), (new, b))
        )
        assert (above_a == above_b).all()
        for name in ("radius", "vector"):
            assert (old.attributes[name][a].astype("f4") == new.attributes[name][b]).all()
        source = PrecomputedSkeletonSource.from_cloudpath(f"file://{folder}")
        (theirs,) = source.get([number])
        assert np.allclose(np.sort(theirs.vertices, axis=0), np.sort(old.positions, axis=0) * 1000)  # nanometres
        assert len(theirs.edges) == 99
        assert np.array_equal(np.sort(theirs.radius), np.sort(old.attributes["radius"]))
        assert np.array_equal(theirs.transform[:, :3], np.eye(3) * 1000)
    found = vectors.read_objects(again)
    assert found.attributes["label"].tolist() == ["a", "b", "c"]
    assert found.attributes["size"].tolist() == [1.5, 2, 3]
    assert vectors.open(again).axes[2]["unit"] == "micrometer"


def test_lines_are_skeletons(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    rng = np.random.default_rng(0)
    lines = [rng.normal(0, 5, (count, 3)).cumsum(axis=0).astype("f4") for count in (50, 3, 1)]
    vectors.write_polylines(path, lines, chunk_shape=20, object_ids=[5, 8, 6], object_attributes={"n": [1, 2, 3]})
    _, again, _ = there_and_back(path, tmp_path)
    found = vectors.read_skeleton(again, object_ids=[5])
    assert (len(found), len(found.edges)) == (50, 49)
    assert vectors.read_objects(again).attributes["n"].tolist() == [1, 3, 2]


def test_a_graph_with_a_circle_stays_one(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], "f4")
    vectors.write_graph(path, corners, [[0, 1], [1, 2], [2, 3], [3, 0]], chunk_shape=20)
    _, again, text = there_and_back(path, tmp_path)
    assert "some skeletons are no trees" in text
    assert len(vectors.read_graph(again).edges) == 4


def test_edges_as_trees() -> None:
    for edges, count, wanted in (
        ([[1, 0], [2, 1]], 3, [-1, 0, 1]),  # from child to parent
        ([[0, 1], [0, 2]], 3, [-1, 0, 0]),  # the other way
        ([[0, 1], [2, 1], [2, 3], [1, 4]], 6, [-1, 0, 1, 2, 1, -1]),  # every way
        ([[0, 1], [1, 2], [2, 0]], 3, None),
        ([[0, 1], [0, 2], [1, 2], [2, 3]], 4, None),
        ([[0, 0]], 1, None),
        ([], 2, [-1, -1]),
    ):
        found = parents_of_edges(np.array(edges, np.int64).reshape(-1, 2), count)
        assert (None if found is None else found.tolist()) == wanted


def test_meshes(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    square = np.array([[0, 0, 0], [30, 0, 0], [30, 30, 0], [0, 30, 0]], "f8")
    both = np.concatenate((square, square + 50))
    options: Any = {"object_ids": [1] * 4 + [5] * 4, "object_attributes": {"size": [1, 2]}, "axes": MICRO}
    vectors.write_mesh(path, both, [[0, 1, 2, 3], [4, 5, 6, 7]], chunk_shape=20, **options)
    folder, again, text = there_and_back(path, tmp_path)
    assert "positions are written in nanometres, [1000.0, 1000.0, 1000.0] times as large" in text
    for number, shift in ((1, 0), (5, 50)):
        found = vectors.read_mesh(again, object_ids=[number])
        assert found.faces.shape == (2, 3)
        wanted = np.sort((square + shift) * 1000, axis=0)
        assert np.array_equal(np.sort(found.positions, axis=0), wanted)
        theirs = cloudvolume.from_cloudpath(f"file://{folder}").get(number)
        assert np.array_equal(np.sort(theirs.vertices, axis=0), wanted)
        assert theirs.faces.shape == (2, 3)
    assert vectors.read_objects(again).attributes["size"].tolist() == [1, 2]
    with pytest.raises(UnsupportedError, match="files of their own: leave sharded out"):
        export_vectors(path, tmp_path / "other", format="precomputed", sharded=True)


def test_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    path, folder = str(tmp_path / "a.zv"), tmp_path / "out"
    skeletons(path)
    export_vectors(path, folder, format="precomputed")
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        export_vectors(path, folder, format="precomputed")
    vectors.delete(path, object_ids=[9])
    export_vectors(path, folder, format="precomputed", overwrite=True)
    names = {each.name for each in folder.iterdir()}
    assert names == {"info", "7", str(2**40), "segment_properties", "mine.txt"}
    with pytest.raises(TypeError, match="the format swc has no option 'sharded'"):
        export_vectors(path, tmp_path / "a.swc", sharded=True)


def test_any_store_and_progress(tmp_path: Path) -> None:
    path, store = str(tmp_path / "a.zv"), MemoryStore()
    skeletons(path)
    seen: list[tuple[int, int]] = []
    export_vectors(path, store, format="precomputed", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1000, 1000)
    import_vectors(store, str(tmp_path / "b.zv"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert len(vectors.open(str(tmp_path / "b.zv"))) == 300


def info_of(folder: Path, **changes: Any) -> None:
    document = json.loads((folder / "info").read_text())
    (folder / "info").write_text(json.dumps({**document, **changes}))


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"@type": "neuroglancer_multilod_draco"}, UnsupportedError, "'neuroglancer_multilod_draco' is not read"),
        ({"@type": None, "scales": [], "skeletons": "s"}, UnsupportedError, "is a volume, .*: give .*/s"),
        ({"annotation_type": "ellipsoid"}, UnsupportedError, "ellipsoids are not read"),
        ({"annotation_type": "disc"}, DataError, "annotation_type is point, line"),
        ({"dimensions": {}}, DataError, "dimensions are a table"),
        (
            {"dimensions": {"x": [0, "m"], "y": [1, "m"], "z": [1, "m"]}},
            DataError,
            "the scale of an axis is a number above",
        ),
        ({"lower_bound": [0, None, 0]}, DataError, "lower_bound: 3 numbers are wanted"),
        ({"properties": [{"id": "a", "type": "float64"}]}, DataError, "a property has an id and a type"),
        ({"properties": [{"id": "a", "type": "int8"}] * 2}, DataError, "one id twice"),
        ({"relationships": [{"id": "a"}]}, DataError, "an index has a key"),
        ({"by_id": {"key": "../../../.."}}, DataError, "leads out of"),
        ({"properties": []}, CorruptionError, "a list of .* annotations|does not take"),
    ],
)
def test_documents_that_are_none(tmp_path: Path, changes: Any, error: Any, text: str) -> None:
    path, folder = str(tmp_path / "a.zv"), tmp_path / "out"
    vectors.write_points(path, np.eye(3), vertex_attributes={"a": [1, 2, 3]}, chunk_shape=2)
    export_vectors(path, folder, format="precomputed")
    info_of(folder, **changes)
    if "by_id" in changes:
        info_of(folder, spatial=[])
    with pytest.raises(error, match=text):
        import_vectors(folder, str(tmp_path / "b.zv"), format="precomputed")
    assert not (tmp_path / "b.zv").exists()


HOSTILE = (None, True, -1, 0.5, 10**400, float("inf"), "", "1" * 30, "../..", [], [[]], {}, {"a": 1}, "\ud800", 2**64)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _places(value[key], (*path, key))


def test_whatever_stands_in_a_document() -> None:
    """Each value of each document is replaced by each of some others: it is read, or said to be wrong."""
    packed = Sharding(minishard_bits=2).document()
    places = {"key": "s", "sharding": packed}
    notes = {
        "dimensions": {"x": [1e-9, "m"]},
        "lower_bound": [0],
        "upper_bound": [1],
        "annotation_type": "point",
        "properties": [{"id": "a", "type": "uint8", "enum_values": [1], "enum_labels": ["x"]}],
        "relationships": [{"id": "r", **places}],
        "by_id": places,
        "spatial": [{"grid_shape": [1], "chunk_size": [1], "limit": 3, **places}],
    }
    trees = {
        "transform": list(skeletons_of_it.IDENTITY),
        "vertex_attributes": [{"id": "r", "data_type": "float32", "num_components": 1}],
        "sharding": packed,
        "segment_properties": "p",
    }
    columns = [
        {"id": "a", "type": "number", "data_type": "float32", "values": [1]},
        {"id": "b", "type": "number", "data_type": "uint8", "values": [1]},
        {"id": "c", "type": "string", "values": ["x"]},
        {"id": "t", "type": "tags", "tags": ["p"], "values": [[0]]},
    ]
    about = {"@type": segments.TYPE, "inline": {"ids": ["1"], "properties": columns}}
    read = refused = 0
    for document, parse in (
        (notes, AnnotationInfo.parse),
        (trees, skeletons_of_it.SkeletonInfo.parse),
        (about, segments.parse),
    ):
        parse(document, "here")  # type: ignore[operator]
        for *above, last in _places(document):
            for hostile in HOSTILE:
                changed = json.loads(json.dumps(document))
                inner = changed
                for key in above:
                    inner = inner[key]
                inner[last] = hostile
                try:
                    parse(changed, "here")  # type: ignore[operator]
                    read += 1
                except DataError:
                    refused += 1
    assert min(read, refused) > 100


def test_parts_that_are_named_twice(tmp_path: Path) -> None:
    """What would be read, and held, many times over is refused."""
    vectors.write_mesh(str(tmp_path / "m.zv"), np.eye(3, dtype="f4"), [[0, 1, 2]], chunk_shape=2)
    mesh = tmp_path / "mesh"
    export_vectors(str(tmp_path / "m.zv"), mesh, format="precomputed")
    (mesh / "0:0").write_text(json.dumps({"fragments": ["0:0:0"] * 2}))
    with pytest.raises(CorruptionError, match="names one part of the mesh twice"):
        import_vectors(mesh, str(tmp_path / "b.zv"))
    points(str(tmp_path / "a.zv"), 20)
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "out", format="precomputed")
    info = json.loads((tmp_path / "out/info").read_text())
    info_of(tmp_path / "out", spatial=info["spatial"] * 2)
    with pytest.raises(DataError, match="spatial have one key twice"):
        import_vectors(tmp_path / "out", str(tmp_path / "b.zv"))


def test_values_that_lie(tmp_path: Path) -> None:
    """Counts in values are compared with their bytes before room is made."""
    path, folder = str(tmp_path / "a.zv"), tmp_path / "out"
    skeletons(path)
    export_vectors(path, folder, format="precomputed")
    good = (folder / "7").read_bytes()
    for bad in (b"", good[:-1], b"\xff" * 8 + good[8:], good[:4] + b"\xff\xff\xff\x7f" + good[8:]):
        (folder / "7").write_bytes(bad)
        with pytest.raises(CorruptionError, match=r"takes \d+ bytes; there are .*7"):
            import_vectors(folder, str(tmp_path / "b.zv"))
    place = 8 + 12 * 100
    (folder / "7").write_bytes(good[:place] + b"\xff\xff\xff\x7f" + good[place + 4 :])
    with pytest.raises(CorruptionError, match="an edge names vertex 2147483647; there are 100"):
        import_vectors(folder, str(tmp_path / "b.zv"))
    (folder / "7").write_bytes(good)
    with config.set({"limits.chunk_bytes": 100}), pytest.raises(ChunkTooLargeError):
        import_vectors(folder, str(tmp_path / "b.zv"), format="precomputed")
    vectors.write_mesh(str(tmp_path / "m.zv"), np.eye(3, dtype="f4"), [[0, 1, 2]], chunk_shape=2)
    mesh = tmp_path / "mesh"
    export_vectors(str(tmp_path / "m.zv"), mesh, format="precomputed")
    for bad, text in ((b"\xff" * 40, "a mesh of 4294967295 vertices"), (bytes(5), "a mesh of 0")):
        (mesh / "0:0:0").write_bytes(bad)
        with pytest.raises(CorruptionError, match=text):
            import_vectors(mesh, str(tmp_path / "b.zv"))
    (mesh / "0:0:0").unlink()
    with pytest.raises(CorruptionError, match="a part of segment 0, is missing"):
        import_vectors(mesh, str(tmp_path / "b.zv"))
    assert not (tmp_path / "b.zv").exists()


def test_what_the_format_does_not_have(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(path, [np.eye(3)], object_ids=[-4], chunk_shape=2)
    with pytest.raises(DataError, match="there is an object -4"):
        export_vectors(path, tmp_path / "out", format="precomputed")
    vectors.write_polylines(path, [np.eye(3)[:, :2]], chunk_shape=2, overwrite=True)
    with pytest.raises(DataError, match="2 axes"):
        export_vectors(path, tmp_path / "out", format="precomputed")
    with pytest.raises(DataError, match="annotations are points, or lines of two"):
        export_vectors(path, tmp_path / "out", format="precomputed", annotation_type="line")
    with pytest.raises(UnsupportedError, match="no format 'xyz'"):
        export_vectors(path, tmp_path / "out", format="xyz")
    assert not (tmp_path / "out").exists()


def test_numbers_of_segments_that_are_beyond_float32(tmp_path: Path) -> None:
    lines = [np.arange(9.0).reshape(3, 3), np.ones((2, 3))]
    values = {"far": [1e300, 2.0], "near": [1.5, 2.5]}
    vectors.write_polylines(tmp_path / "a.zv", lines, chunk_shape=50, object_attributes=values)
    with pytest.warns(ZarrUserWarning, match="'far' cannot be kept: some values are no finite numbers of 32 bits"):
        vectors.export_vectors(tmp_path / "a.zv", tmp_path / "a.precomputed")
    vectors.import_vectors(tmp_path / "a.precomputed", tmp_path / "b.zv", chunk_shape=50)
    found = vectors.read_objects(tmp_path / "b.zv")
    assert {name: each.tolist() for name, each in found.attributes.items()} == {"near": [1.5, 2.5]}
