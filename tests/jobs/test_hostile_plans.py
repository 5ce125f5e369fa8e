"""Files of plans that anybody may have written: they load, or say what is wrong with them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import PlanError, ZardineError
from zardine.jobs.plan import Plan
from zardine.vectors.exchange.formats import export_vectors

WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    10**30,
    "x",
    "",
    [],
    {},
    [1],
    [[0]],
    {"a": 1},
    [10**12] * 3,
    [-1] * 3,
)


def nothing(box: vectors.CellBox) -> None:
    """Give no points for any box."""


def _array(folder: Path) -> str:
    path = str(folder / "a.zarr")
    zardine.create_array(path, data=np.zeros((64, 64), "f4"), chunks=(8, 8), shards=(16, 16))
    return path


def _import(folder: Path) -> Plan:
    store, scan = str(folder / "points.zv"), str(folder / "points.las")
    vectors.write_points(store, np.arange(600.0).reshape(200, 3), chunk_shape=100)
    export_vectors(store, scan)
    return vectors.plan_import(scan, str(folder / "imported.zv"), chunk_shape=100)


PLANS: dict[str, Callable[[Path], Plan]] = {
    "convert": lambda folder: zardine.plan_convert(_array(folder), str(folder / "b.zarr"), chunks=(7, 7)),
    "reshard": lambda folder: zardine.plan_reshard(_array(folder), shards=(32, 32)),
    "rechunk": lambda folder: zardine.plan_rechunk(
        _array(folder), str(folder / "b.zarr"), chunks=(64, 1), shards=None, max_memory="1 MiB"
    ),
    "verify": lambda folder: zardine.plan_verify(_array(folder), records=str(folder / "records")),
    "cells": lambda folder: vectors.plan_write_cells(
        str(folder / "c.zv"), nothing, kind="points", bounds=((0, 0), (9, 9)), layout=vectors.Layout(chunk_shape=1)
    ),
    "import": _import,
}


def _places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the place of everything in a JSON document."""
    if above:
        yield above
    items: dict[Any, Any] = {}
    if isinstance(document, dict | list):
        items = document if isinstance(document, dict) else dict(enumerate(document))
    for name, each in items.items():
        yield from _places(each, (*above, name))


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_with_something_else_in_any_place(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    PLANS[kind](tmp_path).save(path)
    document = json.loads(path.read_text())
    monkeypatch.setattr(Plan, "id", document["id"])  # who changes a plan can give it the id that it has then
    chance, loaded, refused = random.Random(1), 0, 0
    for place in _places(document):
        for wrong in ("gone", *chance.sample(WRONG, 4)):
            changed = copy.deepcopy(document)
            *above, last = place
            inner = changed
            for name in above:
                inner = inner[name]
            if wrong == "gone":
                del inner[last]
            else:
                inner[last] = wrong
            path.write_text(json.dumps(changed))
            try:
                plan = Plan.load(path)
                assert str(plan)
                assert repr(plan)
                assert plan.memory >= 0
                loaded += 1
            except ZardineError:
                refused += 1
    assert loaded
    assert refused


def test_a_plan_that_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLANS["convert"](tmp_path).save(path)
    path.write_text(path.read_text().replace("b.zarr", "c.zarr"))
    with pytest.raises(PlanError, match="was changed since it was written"):
        Plan.load(path)


def test_a_plan_of_another_kind_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLANS["convert"](tmp_path).save(path)
    path.write_text(path.read_text().replace('"kind": "convert"', '"kind": "verify"'))
    with pytest.raises(PlanError, match="says that it is a plan of the kind 'verify', and has no member 'records'"):
        Plan.load(path)


def test_an_array_of_more_blocks_than_can_be_numbered(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zarr")
    zardine.create_array(path, shape=(2**60,) * 3, chunks=(1, 1, 1), dtype="u1")
    with pytest.raises(PlanError, match="are more than"):
        zardine.reshard(path, shards=(4, 4, 4))
    with pytest.raises(PlanError, match="are more than"):
        str(zardine.plan_rechunk(path, str(tmp_path / "c.zarr"), chunks=(2, 1, 1), shards=None))
