"""What is added can be part of groups, old and new, named as writing names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import Killed, MortalStore, copy_of
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton

LINES = [np.arange(12.0).reshape(4, 3), np.ones((2, 3)), np.zeros((3, 3))]
KINDS = sorted(set(WRITERS) - {"points"})


def more(kind: str, ids: tuple[int, int], *, whole: bool = False) -> Any:
    """Two objects; ``whole``: text is missing then, for which the codes have no room, and the level is stored anew."""
    positions, owner = np.arange(18.0).reshape(6, 3), np.repeat(ids, 3)
    columns: dict[str, Any] = {} if whole else {"kind": np.full(6, "k1")}
    values: dict[str, Any] = {
        "points_of_objects": Points(positions, columns, owner),
        "polylines": Polylines(positions, np.array([0, 3, 6]), np.array(ids), columns),
        "graph": Graph(positions, np.array([[0, 1]]), columns, {"t": np.full(1, "t0")}, owner),
        "skeleton": Skeleton(positions, np.array([-1, 0, 1, -1, 3, 4]), columns, owner),
        "mesh": Mesh(positions, np.array([[0, 1, 2]]), columns, {}, owner),
    }
    return values[kind]


def members(v: vectors.Vectors) -> list[list[int]]:
    return [v.groups.members(number).tolist() for number in v.groups]


@pytest.mark.parametrize("kind", KINDS)
def test_groups_gain_what_is_added(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v = vectors.open(store_of(kind), mode="r+")
    assert members(v) == [[10, 12], [11]]
    with monkeypatch.context() as patched:
        patched.setattr("zardine.vectors.changing.appending.load_whole", None)  # only cells are touched
        v.append(more(kind, (20, 21)), groups={"x": [21], "new": [20, 21]})
    assert members(v) == [[10, 12, 21], [11], [20, 21]]
    assert v.groups.names == ["x", "y", "new"]
    assert len(v.groups["new"].positions) == 6
    v.append(more(kind, (30, 31), whole=True), groups={1: [30, 30]})
    assert members(v) == [[10, 12, 21], [11, 30], [20, 21]]
    v.append(more(kind, (40, 41)), groups=[[40], [], [41], [40]])
    assert members(v) == [[10, 12, 21, 40], [11, 30], [20, 21, 41], [40]]
    assert [each.kind for each in v.validate().findings if each.kind != "values-absent"] == []
    v.delete(object_ids=[40])
    assert members(v) == [[10, 12, 21], [11, 30], [20, 21, 41], []]
    for wrong, told in (
        ({"x": [10]}, "group 'x': nothing that is added has the id 10"),
        ({9: [50]}, "there is no group 9: there are 4"),
        ({0.5: [50]}, "a group has a number or a name"),
        (7, "groups are lists of object ids"),
        ({"x": "a"}, "group 'x'"),
    ):
        before = members(v), len(v)
        with pytest.raises(DataError, match=told):
            v.append(more(kind, (50, 51)), groups=wrong)
        assert (members(v), len(v)) == before


def test_numbers_stand_for_lines_whose_ids_nobody_chose() -> None:
    v = vectors.create(MemoryStore(), "polylines", bounds=(0, 0, 0, 50, 50, 50), layout=Layout(chunk_shape=10))
    v.append(Polylines.from_lines(LINES), groups={"left": [0, 2], "right": [1]})
    v.append(LINES, groups={"left": [1]})
    v.append(Polylines.from_lines(LINES, object_ids=[90, 91, 92]), groups={"right": [90]})
    assert v.groups.names == ["left", "right"]
    assert members(v) == [[0, 2, 4], [1, 90]]
    assert v.validate().ok
    with pytest.raises(DataError, match="number 3; there are 3, from 0"):
        v.append(LINES, groups={"left": [3]})
    plain = vectors.open(store_of("points"), mode="r+")
    with pytest.raises(DataError, match="has no objects: leave groups out"):
        plain.append([[0, 0, 0]], groups={"a": [0]})


def test_groups_without_names_have_numbers_only() -> None:
    store = MemoryStore()
    vectors.write_polylines(store, LINES, groups=[[0], [1]], group_attributes={"weight": [5, 6]})
    v = vectors.open(store, mode="r+")
    with pytest.raises(DataError, match="groups have no names here"):
        v.append(LINES, groups={"a": [0]})
    v.append(LINES, groups={2: [0], 0: [1, 2]})
    assert members(v) == [[0, 4, 5], [1], [3]]
    assert v.groups.attributes["weight"][:2].tolist() == [5, 6]
    v.set_attribute("name", ["a", "a", "b"], kind="group")
    with pytest.raises(DataError, match="2 groups have the name 'a'"):
        v.append(LINES, groups={"a": [0]})


def test_killed_anywhere_groups_are_old_or_new() -> None:
    whole = store_of("polylines")
    seen = set()
    for changes in range(0, 60, 1 if SOAK else 5):
        store = copy_of(whole)
        try:
            vectors.open(MortalStore(store, changes), mode="r+").append(more("polylines", (20, 21)), groups={"x": [21]})
            done = True
        except Killed:
            done = False
        v = vectors.open(store)
        state = (len(v.objects), members(v)[0])
        assert state in ((4, [10, 12]), (6, [10, 12, 21]))
        seen.add(state[0])
        assert not done or state[0] == 6
        if done:
            break
    assert done
    assert seen == {4, 6}
