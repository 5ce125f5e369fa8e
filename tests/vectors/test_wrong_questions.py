"""Arguments of the wrong type or out of range are one kind of error, which names the argument; and nothing is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import values
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError, SelectionError, UnsupportedError
from zardine.storage import MemoryStore

READERS: dict[str, Callable[..., Any]] = {
    "points_of_objects": vectors.read_points,
    "polylines": vectors.read_polylines,
    "graph": vectors.read_graph,
    "skeleton": vectors.read_skeleton,
    "mesh": vectors.read_mesh,
}

NOT_A_LIST: tuple[Any, ...] = (0, 1.5, True, np.nan, np.array(3), slice(0, 1), object(), len)
WRONG: dict[str, tuple[Any, ...]] = {
    "level": (None, -1, 1, 1.0, True, "0", [0], 2**70),
    "bbox": (*NOT_A_LIST, "x", [], [0, 1], ([0] * 3, [1] * 2), ([0] * 3, [np.nan] * 3), ([0] * 3, ["a"] * 3)),
    "object_ids": (*NOT_A_LIST, "x", ["a"], [None], [1.5], [True], [[10]], [2**70], [9], [-1]),
    "group_ids": (*NOT_A_LIST, "x", ["a"], [None], [1.5], [True], [[0]], [2**70], [2], [-1]),
    "chunks": (*NOT_A_LIST, "x", ["a"], [0, 0, 0], [(0, 0)], [(0, 0, 0), (1, 2)], [(0.5, 0, 0)], [[[0, 0, 0]]]),
    "where": (
        *NOT_A_LIST,
        *("n", ["n"], {1: 2}, {"nope": 1}, {"n": slice(0, 9, 2)}, {"n": slice("a", "b")}, {"kind": slice(1, 2)}),
        *({"n": lambda values: "x"}, {"n": lambda values: values[:3]}, {"n": lambda values: values[:, None] == 1}),
        {"rgb": 1},
    ),
    "attributes": (*NOT_A_LIST, "nope", ["nope"], [None], ["n", 3], [["n"]]),
    "edge_attributes": (*NOT_A_LIST, "nope", [None]),
    "face_attributes": (*NOT_A_LIST, "nope", [None]),
    "object_attributes": (*NOT_A_LIST, "nope", [None]),
}


@pytest.mark.parametrize("kind", READERS)
def test_wrong_arguments_of_readers(kind: str) -> None:
    store, read = store_of(kind), READERS[kind]
    assert read.__kwdefaults__ is not None
    tried = 0
    for argument, wrong in WRONG.items():
        for value in wrong if argument in read.__kwdefaults__ else ():
            with pytest.raises(SelectionError) as caught:
                read(store, **{argument: value})
            assert len(str(caught.value)) < 400
            tried += 1
    assert tried > 80


@pytest.mark.parametrize(
    ("kind", "argument", "there"),
    [
        ("points_of_objects", "attributes", "vertex attribute 'nope' at level 0; there are kind, n, rgb"),
        ("polylines", "object_attributes", "object attribute 'nope' at level 0; there are name, size"),
        ("graph", "edge_attributes", "link attribute 'nope' at level 0; there are t, w"),
        ("mesh", "face_attributes", "link attribute 'nope' at level 0; there are w"),
    ],
)
def test_attributes_that_are_not_there_are_named_as_they_were_given(kind: str, argument: str, there: str) -> None:
    store = store_of(kind)
    with pytest.raises(SelectionError) as caught:
        READERS[kind](store, **{argument: ["nope"]})
    assert str(caught.value).endswith(f" has no {there}")


def test_where_nothing_is_listed_the_name_alone_is_said() -> None:
    class Unlisted(MemoryStore):
        supports_listing = False  # type: ignore[assignment]

        def list_dir(self, prefix: str = "") -> Any:
            raise UnsupportedError("no listing")

    store = Unlisted()
    vectors.write_points(store, [[1.0, 2.0]], chunk_shape=4, vertex_attributes={"n": [1]})
    assert vectors.read_points(store, attributes=["n"]).attributes["n"].tolist() == [1]
    with pytest.raises(SelectionError, match=r"has no vertex attribute 'nope' at level 0$"):
        vectors.read_points(store, attributes=["nope"])


def test_lists_of_every_type_ask_the_same() -> None:
    """Also those that can be gone through only once."""
    store = store_of("points_of_objects")
    cells = np.floor(vectors.read_points(store).positions[:3] / 20).astype(int)
    for argument, one in (("object_ids", [10, 12]), ("group_ids", [1]), ("chunks", list(map(tuple, cells.tolist())))):
        wanted = vectors.read_points(store, **{argument: one}).attributes["n"].tolist()
        assert wanted
        for other in (iter(one), tuple(one), dict.fromkeys(one), np.array(one), (each for each in one)):
            assert vectors.read_points(store, **{argument: other}).attributes["n"].tolist() == wanted
    assert list(vectors.read_points(store, attributes=iter(["n", "n"])).attributes) == ["n"]  # type: ignore[arg-type]


def test_wrong_arguments_of_other_readers() -> None:
    store = store_of("graph")
    vectors.build_pyramid(store)
    for level in WRONG["level"]:
        for read in (vectors.read_objects, vectors.read_groups, vectors.read_fragments):
            if level != 1 or isinstance(level, bool):
                with pytest.raises(SelectionError):
                    read(store, level=level)
    for level, delta in ((0, 0), (0, -1), (0, 2), (1, 1), (0, True), (0, "1"), (0, None), (5, 1)):
        with pytest.raises(SelectionError):
            vectors.read_cross_level_links(store, level, delta)  # type: ignore[arg-type]
    assert len(vectors.read_cross_level_links(store, np.int64(0), np.int64(1)))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", WRITERS)
def test_wrong_arguments_of_edits_change_nothing(kind: str) -> None:
    store = store_of(kind)
    before = values(store)
    for argument in ("bbox", "object_ids", "group_ids", "where"):
        for value in WRONG[argument]:
            with pytest.raises((SelectionError, DataError)):
                vectors.delete(store, **{argument: value})
    for rows, positions in (([99], [[0] * 3]), ([-1], [[0] * 3]), ([0.5], [[0] * 3]), ([0], [[np.nan] * 3])):
        with pytest.raises((SelectionError, DataError)):
            vectors.move_vertices(store, rows, positions)
    for rows, positions in ((0, [[0] * 3]), ([0, 1], [[0] * 3]), ([0], [[0] * 2]), ([0], [])):
        with pytest.raises((SelectionError, DataError)):
            vectors.move_vertices(store, rows, positions)
    for name, given in (("n", [1]), ("n", 3), ("a/b", [0] * 40), ("n", [object()] * 40), ("n", [1j] * 40)):
        with pytest.raises(DataError):
            vectors.set_attribute(store, name, given)
    with pytest.raises(DataError, match="nothing of the kind"):
        vectors.set_attribute(store, "n", [0] * 40, kind="vertices")
    assert values(store) == before
