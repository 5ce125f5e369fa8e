"""What jobs of tests write: functions at the top of a module, which other processes import."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from zardine.vectors import Points, Polylines

LOW, HIGH = (-30, -30), (70, 50)
BOUNDS = (*LOW, *HIGH)
_RNG = np.random.default_rng(5)
P = _RNG.uniform(LOW, HIGH, (600, 2)).astype("f4")
P[:2] = LOW, HIGH  # on the bounds
COLUMNS = {
    "n": np.arange(len(P), dtype="i8"),
    "rgb": np.arange(3 * len(P)).astype("u1").reshape(-1, 3),
    "kind": np.where(P[:, 0] > 10, "tree", "house"),
}
TYPES: dict[str, Any] = {"n": "int64", "rgb": ("uint8", 3), "kind": ["tree", "house"]}
IDS = np.array([3, 2**40, -7])[np.arange(len(P)) % 3]


def inside(box: Any) -> Any:
    """Tell which points are in the closed box."""
    low, high = np.asarray(box)
    return ((low <= P) & (high >= P)).all(axis=1)


def points(box: Any) -> Points:
    """Points with attributes."""
    chosen = inside(box)
    return Points(P[chosen], {name: values[chosen] for name, values in COLUMNS.items()})


def nearby(box: Any, margin: float) -> Points:
    """Points of the box, and others around."""
    low, high = np.asarray(box)
    chosen = ((low - margin <= P) & (high + margin >= P)).all(axis=1)
    return Points(P[chosen], {"n": COLUMNS["n"][chosen]})


def owned(box: Any) -> Points:
    """Points that are part of objects, which are in many boxes."""
    chosen = inside(box)
    return Points(P[chosen], {"n": COLUMNS["n"][chosen]}, IDS[chosen])


def few(box: Any) -> Points | None:
    """Nothing in most boxes, and nothing but an empty value in others."""
    low, _ = np.asarray(box)
    if low[0] > 0:
        return None
    return points(box) if low[0] <= LOW[0] else Points(P[:0], {})


def lines(box: Any, numbered: bool = False) -> Polylines:
    """Three lines in each box, one of them across its cells."""
    low, high = np.asarray(box)
    rng = np.random.default_rng([1000 + int(each) for each in low])
    made = [rng.uniform(low, high - 0.01, (count, 2)).astype("f4") for count in (1, 9, 2)]
    ids = None if numbered else 3 * int(100 * (100 + low[0]) + 100 + low[1]) + np.arange(3)
    texts = ["a", "", str(low.tolist())]
    about: dict[str, Any] = {"length": np.array([1, 9, 2], "i4"), "text": texts}
    return Polylines.from_lines(made, object_ids=ids, attributes={"w": np.arange(12.0)}, object_attributes=about)


def crossing(box: Any) -> Polylines:
    """Give a line that leaves the box."""
    low, high = np.asarray(box)
    return Polylines.from_lines([np.array([low, high + 1], "f4")])


def dying(box: Any, marks: str) -> Points:
    """Kill the process, once for each of three boxes."""
    low, _ = np.asarray(box)
    mark = Path(marks) / f"{low.tolist()}"
    if low[0] == low[1] and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return points(box)


def changing(box: Any, marks: str) -> Points:
    """Give less where there is a file that says so."""
    found = points(box)
    return Points(found.positions[:0], {}) if (Path(marks) / "less").exists() else found


def wrong(box: Any, what: str) -> Any:
    """Give what cannot be written."""
    low, high = np.asarray(box)
    middle = ((low + high) / 2)[None]
    return {
        "array": middle,
        "outside": Points(np.full((1, 2), 999.0)),
        "axes": Points(np.zeros((1, 3))),
        "name": Points(middle, {"other": [1]}),
        "text": Points(middle, {"kind": ["bush"]}),
        "rounded": Points(middle, {"n": [0.5]}),
        "ids": Points(middle, {}, np.array([1])),
        "many": Points(np.repeat(middle, 101, axis=0)),
    }[what]


def many(box: Any, count: int) -> Points:
    """So many points anywhere in the box."""
    low, high = np.asarray(box, float)
    return Points(np.random.default_rng(1).uniform(low, high - 0.01, (count, len(low))).astype("f4"))


def many_owned(box: Any, count: int) -> Points:
    """The same as parts of objects."""
    return Points(many(box, count).positions, {}, np.arange(count) % (count // 100))


def many_lines(box: Any, count: int) -> Polylines:
    """The same as lines, nearly each vertex of which is in another chunk than the one before."""
    return Polylines(many(box, count).positions, np.arange(0, count + 1, 50), np.arange(count // 50))
