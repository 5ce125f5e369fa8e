"""What an append leaves that was cut off before the array had grown: ``verify`` tells, ``repair`` removes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from tools.kill_points import every_point
from tools.test_repair import read_by_others

VALUES = np.arange(1, 11, dtype="i4").reshape(5, 2)


def make(store: Any, shards: Any = (4, 2), **more: Any) -> zardine.Array:
    settings = {"chunks": (2, 2), "shards": shards, "fill_value": -1, **more}
    array = zardine.create_array(store, shape=(5, 2), dtype="i4", **settings)
    array[...] = VALUES
    return array


def grown(path: Path, name: str = "zarr.json") -> np.ndarray[Any, Any]:
    """What the array shows if its document is changed to say that it is larger."""
    document = json.loads((path / name).read_text())
    document["shape"][0] = 12
    (path / name).write_text(json.dumps(document))
    return zardine.open_array(path, mode="r")[...]


@pytest.mark.parametrize("shards", [(4, 2), None])
def test_an_append_that_was_killed(tmp_path: Path, shards: Any) -> None:
    start = tmp_path / "start.zarr"
    make(start, shards)
    path = tmp_path / "a.zarr"
    # durable: else all is one call of the kernel, within which no call of Python is
    call = "zardine.open_array(zardine.storage.LocalStore(path, durable=True)).append([[70, 71]] * 5)"
    seen = {"outside": 0, "beyond": 0, "done": 0}

    def look(at: int) -> None:
        done = zardine.open_array(path, mode="r").shape == (10, 2)
        seen["done"] += done
        expected = np.concatenate([VALUES, [[70, 71]] * 5]) if done else VALUES
        report = zardine.verify(path)
        for each in (*report.faults, *report.notes):
            if each.kind in seen:
                seen[each.kind] += 1
        planned = zardine.repair(path, older_than=0, dry_run=True)
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        repaired = zardine.repair(path, older_than=0)
        assert repaired
        assert repaired.actions == planned.actions
        assert {action.kind for action in repaired.actions} <= {"kept", "removed", "cleared", "leftover"}
        report = zardine.verify(path)
        assert report.faults == ()
        assert {note.kind for note in report.notes} <= {"kept"}
        assert zardine.repair(path, older_than=0).actions == ()
        for found in (zardine.open_array(path, mode="r")[...], *(read_by_others(path) if at % 4 == 0 else ())):
            np.testing.assert_array_equal(found, expected)
        assert (grown(path)[len(expected) :] == -1).all()

    assert every_point(tmp_path, start, call, look) > 2
    assert min(seen.values()) > 0


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_outside_is_listed_and_kept(tmp_path: Path, keep: bool) -> None:
    path = tmp_path / "a.zarr"
    array = make(path)
    array.resize((2, 2), erase=False)
    report = zardine.verify(path)
    assert [(fault.key, fault.kind) for fault in report.faults] == [("c/1/0", "outside")]
    assert "zardine.repair removes it" in report.faults[0].message
    assert [note.kind for note in report.notes] == ["beyond"]
    outside = (path / "c/1/0").read_bytes()
    done = zardine.repair(path, keep_damaged=keep)
    kinds = [(action.key, action.kind) for action in done.actions]
    both = [("c/0/0", "kept")] * keep + [("c/0/0", "cleared")] + [("c/1/0", "kept")] * keep + [("c/1/0", "removed")]
    assert kinds == both
    assert not (path / "c/1/0").exists()
    if keep:
        assert (path / "__zardine/damaged/c/1/0").read_bytes() == outside
    assert (grown(path)[2:] == -1).all()


def test_an_append_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    """Its objects lie outside of the array until its document says otherwise."""
    import threading

    path = tmp_path / "a.zarr"
    array = make(path)
    here, go = threading.Event(), threading.Event()

    class Slow(zardine.storage.LocalStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "zarr.json":
                here.set()
                assert go.wait(20)
            return super().set(key, value, condition=condition)

    slow = zardine.open_array(Slow(path))
    appending = threading.Thread(target=lambda: slow.append([[70, 71]] * 5))
    appending.start()
    assert here.wait(20)
    done: list[Any] = []
    repairing = threading.Thread(target=lambda: done.append(zardine.repair(path)))
    repairing.start()
    repairing.join(0.5)
    assert repairing.is_alive()
    go.set()
    appending.join(20)
    repairing.join(20)
    assert done[0].actions == ()
    assert array.refresh().shape == (10, 2)
    np.testing.assert_array_equal(array[5:], [[70, 71]] * 5)


def test_other_arrays_are_left_alone(tmp_path: Path) -> None:
    """In a group, one array of Zarr v2 among them; and where the fill value is not defined, anything may be there."""
    root = tmp_path / "g"
    zardine.create_group(root)
    make(root / "a").resize((2, 2), erase=False)
    make(root / "b")
    old = zardine.create_array(root / "c", shape=(5, 2), chunks=(2, 2), dtype="i4", zarr_format=2, fill_value=9)
    old[...] = VALUES
    old.resize((3, 2), erase=False)
    undefined = zardine.create_array(root / "d", shape=5, chunks=4, dtype="i4", zarr_format=2, fill_value=None)
    undefined[...] = 1
    undefined.resize(3, erase=False)
    done = zardine.repair(root, keep_damaged=False)
    places = {(action.place, action.key, action.kind) for action in done.actions}
    assert places == {
        ("/a", "a/c/0/0", "cleared"),
        ("/a", "a/c/1/0", "removed"),
        ("/c", "c/1.0", "cleared"),
        ("/c", "c/2.0", "removed"),
        ("/d", "d/1", "removed"),
    }
    assert zardine.verify(root).faults == ()
    assert zardine.verify(root).notes == ()
    np.testing.assert_array_equal(zardine.open_array(root / "b")[...], VALUES)
    shown = grown(root / "c", ".zarray")
    np.testing.assert_array_equal(shown[:3], VALUES[:3])
    assert (shown[3:] == 9).all()


@pytest.mark.parametrize("shape", [(3, 3, 3), (4, 4, 4), (1, 4, 3)])
def test_every_corner_is_cleared(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "a"
    array = zardine.create_array(path, shape=(4, 4, 4), chunks=(2, 2, 2), shards=(4, 4, 4), dtype="i4", fill_value=-1)
    array[...] = values = np.arange(64).reshape(4, 4, 4)
    array.resize(shape, erase=False)
    zardine.repair(path)
    array.resize((4, 4, 4))
    expected = np.full((4, 4, 4), -1)
    inside = tuple(slice(n) for n in shape)
    expected[inside] = values[inside]
    np.testing.assert_array_equal(array[...], expected)
