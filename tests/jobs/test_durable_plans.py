"""A plan with durable stores stays durable in its file: what its jobs store has been synced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.storage import LocalStore
from zardine.vectors.exchange.formats import export_vectors


def some_points(box: vectors.CellBox) -> vectors.Points:
    """Return one point in the middle of a box."""
    return vectors.Points(np.mean(box, axis=0, keepdims=True))


def is_durable(place: Place) -> bool:
    """Return whether what is stored at a place is on the disk when a write returns."""
    return isinstance(place.store, LocalStore) and place.store.durable


def _array(folder: Path, *, durable: bool = False) -> LocalStore:
    store = LocalStore(folder / "a.zarr", durable=durable)
    zardine.create_array(store, data=np.arange(4096, dtype="f4").reshape(64, 64), chunks=(8, 8), shards=(16, 16))
    return store


def _import(folder: Path) -> Plan:
    vectors.write_points(str(folder / "points.zv"), np.arange(600.0).reshape(200, 3), chunk_shape=100)
    export_vectors(str(folder / "points.zv"), str(folder / "points.las"))
    return vectors.plan_import(str(folder / "points.las"), _target(folder), chunk_shape=100)


def _target(folder: Path) -> LocalStore:
    return LocalStore(folder / "b.zarr", durable=True)


PLANS: dict[str, tuple[str, Callable[[Path], Plan]]] = {
    "convert": ("b.zarr", lambda folder: zardine.plan_convert(_array(folder), _target(folder), chunks=(7, 7))),
    "reshard": ("a.zarr", lambda folder: zardine.plan_reshard(_array(folder, durable=True), shards=(32, 32))),
    "rechunk": (
        "b.zarr",
        lambda folder: zardine.plan_rechunk(
            _array(folder), _target(folder), chunks=(64, 1), shards=None, max_memory="1 MiB"
        ),
    ),
    "verify": ("b.zarr", lambda folder: zardine.plan_verify(_array(folder), records=_target(folder))),
    "cells": (
        "b.zarr",
        lambda folder: vectors.plan_write_cells(
            _target(folder), some_points, kind="points", bounds=((0, 0), (9, 9)), layout=vectors.Layout(chunk_shape=5)
        ),
    ),
    "import": ("b.zarr", _import),
}


@pytest.mark.parametrize("kind", PLANS)
def test_all_that_a_saved_plan_stores_is_synced(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, make = PLANS[kind]
    planned = make(tmp_path)
    planned.save(tmp_path / "plan.json")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / name).rglob("*")}
    plan = Plan.load(tmp_path / "plan.json", functions=[f"{__name__}:some_points"])
    assert list(map(is_durable, plan.work.places())) == list(map(is_durable, planned.work.places()))
    assert any(map(is_durable, plan.work.places()))
    synced = set()
    fsync = os.fsync

    def note(file: int) -> None:
        status = os.fstat(file)
        synced.add(status.st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", note)
    plan.run()
    new = [path for path in (tmp_path / name).rglob("*") if before.get(path) != path.stat().st_mtime_ns]
    assert new or kind == "verify"
    assert [path for path in new if path.stat().st_ino not in synced] == []
