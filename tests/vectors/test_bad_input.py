"""What cannot be stored is refused before anything is written; what is damaged is named."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import values
from zardine import vectors
from zardine.errors import (
    ChunkDecodeError,
    CorruptionError,
    DataError,
    MetadataError,
    NodeNotFoundError,
    SelectionError,
    ZardineError,
)
from zardine.storage import MemoryStore
from zardine.vectors.format.fragment_index import decode_index, encode_indexes
from zardine.vectors.format.links import decode_links
from zardine.vectors.format.manifests import decode_manifests, encode_manifests
from zardine.vectors.format.ragged import starts_of

P = np.arange(12.0).reshape(4, 3)

POINTS: list[tuple[dict[str, Any], str]] = [
    ({"positions": np.array([[np.nan, 0, 0]])}, "finite"),
    ({"positions": np.array([[0, np.inf, 0]])}, "finite"),
    ({"positions": np.zeros((0, 3))}, "bounds"),
    ({"positions": np.zeros(3)}, "shape"),
    ({"positions": np.zeros((3, 5))}, "D from 1 to 4"),
    ({"positions": [["a", "b"]]}, "shape"),
    ({"positions": np.array([[1e300, 0, 0]]), "dtype": "float32"}, "too large"),
    ({"positions": P, "dtype": "int32"}, "float32 or float64"),
    ({"positions": P, "chunk_shape": 0}, "chunk_shape"),
    ({"positions": P, "chunk_shape": (1, 2)}, "chunk_shape"),
    ({"positions": P, "chunk_shape": np.nan}, "chunk_shape"),
    ({"positions": P, "chunk_shape": 10, "bin_shape": 3}, "evenly"),
    ({"positions": P, "chunk_shape": 10, "bin_shape": 3.5}, "evenly"),
    ({"positions": P, "chunk_shape": 10, "bin_shape": 20}, "evenly"),
    ({"positions": P, "chunk_shape": 1e-300}, "chunks"),
    ({"positions": P, "shard_shape": 0}, "shard_shape"),
    ({"positions": P, "shard_shape": (2, 2)}, "shard_shape"),
    ({"positions": P, "bounds": ([0, 0, 0], [1, 1, 1])}, "outside"),
    ({"positions": P, "bounds": ([5, 5, 5], [1, 1, 1])}, "bounds"),
    ({"positions": P, "vertex_attributes": {"a": [1, 2]}}, "one row for each"),
    ({"positions": P, "vertex_attributes": {"a/b": [1, 2, 3, 4]}}, "no name"),
    ({"positions": P, "vertex_attributes": {"a": [1, "x", 3, object()]}}, "text"),
    ({"positions": P, "object_ids": [1, 2]}, "object_ids"),
    ({"positions": P, "object_ids": [1.5, 2, 3, 4]}, "object_ids"),
    ({"positions": P, "object_ids": [1, 1, 2, 2], "object_attributes": {"a": [1]}}, "one row for each"),
    ({"positions": P, "object_ids": [1, 1, 2, 2], "groups": [[3]]}, "does not exist"),
    ({"positions": P, "compressor": "nonsense"}, "compressor"),
    ({"positions": P, "compressor": "zstd", "codec_config": ["zstd"]}, "either"),
    ({"positions": P, "axes": ("x", "x", "y")}, "axes"),
    ({"positions": P, "out_of_bounds": "maybe"}, "out_of_bounds"),
]


@pytest.mark.parametrize(("arguments", "text"), POINTS)
def test_points_that_cannot_be_written(arguments: dict[str, Any], text: str) -> None:
    store = MemoryStore()
    with pytest.raises(DataError, match=text):
        vectors.write_points(store, **arguments)
    assert values(store) == {}


def test_links_that_cannot_be_written() -> None:
    store = MemoryStore()
    for edges in ([[0, 4]], [[-1, 0]], [[0, 1, 2]], [[0.5, 1]], [0, 1]):
        with pytest.raises(DataError):
            vectors.write_graph(store, P, edges, chunk_shape=5)
    for faces in ([[0, 1, 4]], [[0, 1]]):
        with pytest.raises(DataError):
            vectors.write_mesh(store, P, faces, chunk_shape=5)
    for parents in ([0, 0, 0, 0], [1, 0, -1, -1], [-1, 9, 0, 0], [-1, -2, 0, 0], [-1, 0]):
        with pytest.raises(DataError):
            vectors.write_skeleton(store, P, parents, chunk_shape=5)
    for lines in ([[1, 2, 3]], [P, P[:, :2]], [np.full((2, 3), np.nan)], []):
        with pytest.raises(DataError):
            vectors.write_polylines(store, lines, chunk_shape=5)
    with pytest.raises(DataError, match="once"):
        vectors.write_polylines(store, [P, P], object_ids=[1, 1], chunk_shape=5)
    with pytest.raises(TypeError, match="chunk_shapes"):
        vectors.write_polylines(store, [P], chunk_shapes=5)
    assert values(store) == {}


OTHERS: tuple[Any, ...] = (0, 1.5, True, object(), len, slice(0, 1), np.array(3))
WRONG_OPTIONS: dict[str, tuple[Any, ...]] = {
    "chunk_shape": ("x", "8", True, [], [1, 2], -1, np.inf, [np.nan] * 3, {}),
    "shard_shape": ("x", [], [1, 2], -1, 1.5, True, [0] * 3, {}),
    "compressor": (*OTHERS, "x", 3, b"zstd", {"name": "x"}, ["zstd", 3]),
    "checksum": (0, 1.5, "x", object(), np.array(3)),
    "codec_config": ("x", 3, {"name": "x"}, {"codecs": 3}),
    "bounds": (*OTHERS, "x", [0, [1]], ([0] * 2, [1] * 2), ([0] * 3, [np.nan] * 3), ([9] * 3, [0] * 3)),
    "vertex_attributes": (*OTHERS, "x", [1], {1: [0] * 4}, {"c": [0] * 4}, {"a": [0] * 5}, {"a": [1j] * 4}),
    "object_attributes": (*OTHERS, "x", [1], {"a": [0] * 9}, np.zeros(4)),
    "group_attributes": (*OTHERS, "x", [1], {"a": [0] * 9}, np.zeros(4)),
    "object_ids": (*OTHERS, "x", [0, [1]], [0] * 9, [1.5] * 4, [2**63] * 4, [None] * 4),
    "groups": (*OTHERS, [0], [[0.5]], [["a"]], [None], [[99]], {1: [0]}, {"a": [99]}, {"a": [0], 0: [0]}),
    "dtype": (0, "x", "f2", "i4", np.int32, object(), [[]], len),
    "axes": (
        *OTHERS,
        "x",
        ["x"] * 3,
        [1, 2, 3],
        ["x", "y"],
        [None] * 3,
        [{"name": []}] * 3,
        ["x", "y", {"name": "z", "a": len}],
    ),
    "crs": (*OTHERS, "EPSG:4326", [1], {"a": object()}, {"a": np.nan}, {1: 2}),
    "bin_shape": ("x", 3, 1e-5, 1e-320, [1, 2], 0, np.nan),
    "out_of_bounds": (*OTHERS, "x", None, ["raise"]),
}


@pytest.mark.parametrize("name", ["points", "polylines", "lines", "graph", "mesh", "skeleton"])
def test_wrong_options_of_writers(name: str) -> None:
    ways: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "points": (vectors.write_points, (P,)),
        "polylines": (vectors.write_polylines, ([P[:1], P[1:]],)),
        "lines": (vectors.write_lines, (P.reshape(2, 2, 3),)),
        "graph": (vectors.write_graph, (P, [[0, 1]])),
        "mesh": (vectors.write_mesh, (P, [[0, 1, 2]])),
        "skeleton": (vectors.write_skeleton, (P, [-1, 0, 1, 2])),
    }
    write, given = ways[name]
    store = MemoryStore()
    for option, wrong in WRONG_OPTIONS.items():
        for value in wrong:
            with pytest.raises(DataError):
                write(store, *given, **{"chunk_shape": 20, option: value})
    for place in range(len(given)):
        for value in (*OTHERS, "x", [0, [1]], None, np.zeros((2, 3), complex), [["a"] * 3]):
            with pytest.raises(DataError):
                write(store, *given[:place], value, *given[place + 1 :], chunk_shape=20)
    assert values(store) == {}


def test_empty_stores_are_possible() -> None:
    for write in (
        lambda store: vectors.write_points(store, np.zeros((0, 3)), bounds=([0] * 3, [9] * 3), chunk_shape=3),
        lambda store: vectors.write_polylines(store, [], bounds=([0] * 3, [9] * 3), chunk_shape=3),
        lambda store: vectors.write_graph(store, np.zeros((0, 3)), [], bounds=([0] * 3, [9] * 3), chunk_shape=3),
    ):
        store = MemoryStore()
        write(store)
        assert len(vectors.read_points(store)) == 0
        assert vectors.validate(store).findings == ()


def test_questions_that_make_no_sense() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=5)
    questions: list[dict[str, Any]] = [
        {"bbox": ([0], [1])},
        {"bbox": ([np.nan] * 3, [1] * 3)},
        {"bbox": 3},
        {"level": 1},
        {"level": -1},
        {"object_ids": [1]},
        {"group_ids": [0]},
        {"chunks": [(0, 0)]},
        {"where": {"a": 1}},
        {"attributes": ["a"]},
    ]
    for question in questions:
        with pytest.raises(SelectionError):
            vectors.read_points(store, **question)
    vectors.write_points(store, P, chunk_shape=5, object_ids=[1, 2, 3, 4], overwrite=True)
    with pytest.raises(SelectionError, match="no object with the id 9"):
        vectors.read_points(store, object_ids=[9])


def test_damaged_fragment_indexes_and_manifests_are_refused() -> None:
    good = encode_indexes(np.array([0, 3]), np.array([2, 2, 0]), np.array([0, 1, 3, 1]))[0]
    assert decode_index(good, 4).rows.tolist() == [0, 1, 3, 1]
    rng = np.random.default_rng(0)
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            bad[rng.integers(0, len(bad))] = rng.integers(0, 256)
        del bad[len(bad) - int(rng.integers(0, 3)) :]
        try:
            found = decode_index(bytes(bad), 4)
        except ChunkDecodeError:
            continue
        assert len(found.rows) == 0 or (found.rows.min() >= 0 and found.rows.max() < 4)
    blob = encode_manifests(np.array([0, 2]), np.array([[0, -1, 2], [1, 0, 0]]), np.array([5, 3]))
    assert decode_manifests(blob, 3)[1].tolist() == [[0, -1, 2], [1, 0, 0]]
    for cut in range(1, len(blob[0])):
        with pytest.raises(ChunkDecodeError):
            decode_manifests([blob[0][:cut]], 3)
    for data in (b"abc", (2).to_bytes(8, "little") + bytes(15), (1).to_bytes(8, "little") + (9).to_bytes(8, "little")):
        with pytest.raises(ChunkDecodeError):
            decode_links(data, np.dtype("<i8"), 2, grouped=True)
    assert starts_of([]).tolist() == [0]


def test_manifests_of_all_modes() -> None:
    blob = bytes.fromhex("03000000")
    for chunk, rest in (
        ((0, -1, 2), b"\0" + (5).to_bytes(8, "little")),
        ((1, 0, 0), b"\1" + (3).to_bytes(8, "little") + (4).to_bytes(8, "little")),
        ((2, 0, 0), b"\2" + (3).to_bytes(4, "little") + np.array([7, 2, 9], "<i8").tobytes()),
    ):
        blob += np.array(chunk, "<i8").tobytes() + rest
    starts, chunks, fragments = decode_manifests([blob, b"", bytes(4)], 3)
    assert starts.tolist() == [0, 8, 8, 8]
    assert fragments.tolist() == [5, 3, 4, 5, 6, 7, 2, 9]
    assert chunks[0].tolist() == [0, -1, 2]


def test_every_flipped_byte_of_a_store_is_an_error_or_changes_values_only(copy_of: Callable[[str], str]) -> None:
    from pathlib import Path

    path = copy_of("g")
    rng = np.random.default_rng(2)
    files = sorted(each for each in Path(path).rglob("*") if each.is_file())
    for _ in range(120):
        file = files[rng.integers(0, len(files))]
        before = file.read_bytes()
        after = bytearray(before)
        after[rng.integers(0, len(after))] ^= 1 << int(rng.integers(0, 8))
        file.write_bytes(after)
        try:
            graph = vectors.read_graph(path)
            assert len(graph.edges) == 0 or graph.edges.max() < len(graph)
        except ZardineError:
            pass
        vectors_report(path)
        file.write_bytes(before)


def vectors_report(path: str) -> None:
    with suppress(ZardineError):
        vectors.validate(path)


def test_a_directory_that_is_no_store(tmp_path: Any) -> None:
    with pytest.raises(ZardineError):
        vectors.read_points(str(tmp_path / "nothing"))
    with pytest.raises(NodeNotFoundError):
        vectors.validate(str(tmp_path / "nothing"))
    import zardine

    zardine.create_group(str(tmp_path / "plain.zarr"))
    with pytest.raises(MetadataError, match="no Zarr Vectors store"):
        vectors.read_points(str(tmp_path / "plain.zarr"))
    with pytest.raises(ZardineError):
        vectors.write_points(str(tmp_path / "plain.zarr"), P)


def test_conditions_on_values() -> None:
    store = MemoryStore()
    text, number = ["a", None, "b", "c"], np.array([1, 2, 3, 4])
    vectors.write_points(store, P, chunk_shape=5, vertex_attributes={"t": text, "n": number})
    for where, wanted in (
        ({"t": slice("a", "b")}, [1, 3]),
        ({"t": slice(None, None)}, [1, 3, 4]),
        ({"t": None}, [2]),
        ({"n": range(2, 9, 2)}, [2, 4]),
        ({"n": range(9, 1, -3)}, [3]),
        ({"n": range(0)}, []),
        ({"t": [None, "a", 5]}, [1, 2]),
    ):
        assert vectors.read_points(store, level=np.int64(0), where=where).attributes["n"].tolist() == wanted, where
    with pytest.raises(SelectionError, match="where"):
        vectors.read_points(store, where={"n": slice(1, 9, 2)})
    for text_asked in ("1", ["1", "2"], slice("a", "b"), np.str_("1"), b"1"):
        with pytest.raises(SelectionError, match=r"where\['n'\] asks for .*, and the attribute holds int64: give num"):
            vectors.read_points(store, where={"n": text_asked})
    for asked in (1, [1.5, 2], slice(1, 2), slice(None, 2), range(3), np.float32(1), True, b"a", [np.bytes_(b"a")]):
        with pytest.raises(SelectionError, match=r"where\['t'\] asks for .*, and the attribute holds text: give text"):
            vectors.read_points(store, where={"t": asked})
    for chunks in ([(0, 0)], 3, [[[0, 0, 0]]], ["a"], [(0, 0), (1, 2, 3)]):
        with pytest.raises(SelectionError, match="chunks"):
            vectors.read_points(store, chunks=chunks)  # type: ignore[arg-type]


HUGE = 10**400
WRONG_CALLS: dict[str, Callable[[MemoryStore], object]] = {
    "factors": lambda s: vectors.build_pyramid(s, factors=[2]),  # type: ignore[list-item]
    "one factor": lambda s: vectors.build_pyramid(s, factors=[(2,)]),  # type: ignore[list-item]
    "text": lambda s: vectors.build_pyramid(s, factors=[("a", 1)]),  # type: ignore[list-item]
    "large": lambda s: vectors.build_pyramid(s, factors=[(1e200, 1)]),
    "huge": lambda s: vectors.build_pyramid(s, factors=[(HUGE, 1)]),
    "scale": lambda s: vectors.build_pyramid(s, chunk_scale_factors=2),  # type: ignore[arg-type]
    "seed": lambda s: vectors.build_pyramid(s, sparsity_seed=-1),
    "seed of text": lambda s: vectors.build_pyramid(s, sparsity_seed="x"),  # type: ignore[arg-type]
    "bounds": lambda s: vectors.write_points(s, P, bounds=([0] * 3, [HUGE] * 3), overwrite=True),
    "where": lambda s: vectors.delete(s, where=np.zeros((2, 3))),  # type: ignore[arg-type]
    "arrays": lambda s: vectors.reshard(s, 4, arrays=3),  # type: ignore[arg-type]
    "list of arrays": lambda s: vectors.reshard(s, 4, arrays=[[1]]),  # type: ignore[list-item]
    "lines": lambda s: vectors.write_lines(s, P.reshape(2, 2, 3), vertex_attributes={"a": [[1, 2], [3]]}),
    "line of 4": lambda s: vectors.write_polylines(s, [P], geometry_type="line"),
    "parents": lambda s: vectors.write_skeleton(s, P, np.array([2**64 - 1, 0, 1, 2], "u8")),
    "chunks": lambda s: vectors.read_points(s, chunks=np.array([(2**64 - 1, 0, 0)], "u8")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_wrong_calls_change_nothing(call: str) -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=5)
    vectors.build_pyramid(store)
    before = values(store)
    with pytest.raises((DataError, SelectionError)):
        WRONG_CALLS[call](store)
    assert values(store) == before


def test_links_of_trees_have_no_attributes() -> None:
    store = MemoryStore()
    vectors.write_skeleton(store, P, [-1, 0, 1, 1], chunk_shape=5)
    with pytest.raises(DataError, match="nothing of the kind 'link'"):
        vectors.set_attribute(store, "w", [1, 2, 3], kind="link")


def test_groups_may_be_empty() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, object_ids=[1, 2, 3, 4], groups=[[], []])
    assert [len(each) for each in vectors.read_groups(store).members] == [0, 0]
    assert vectors.validate(store).findings == ()
    for key in [key for key in store.list() if key.startswith("0/groups/c/")]:
        store.erase(key)
    with pytest.raises(CorruptionError, match="lost"):
        vectors.read_groups(store)
