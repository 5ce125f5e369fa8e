"""What plans list of a store is gathered in memory that has a bound, and what they make does not depend on that."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from zardine.jobs.ranges import Ranges
from zardine.tools import listing
from zardine.tools.listing import GatheredCells


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 300), max_size=20)), max_size=12))
def test_few_ranges_hold_all_cells(parts: list[tuple[int, set[int]]]) -> None:
    first = (1, {7, 9})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_RANGES", 12)
        patch.setattr(listing, "_LEAST", 3)
        found = GatheredCells()
        for name, numbers in (first, *parts):
            if name == 1:
                found.forget(1)
            found.add(name, Ranges.of(numbers))
        last = {name: numbers for name, numbers in parts if name == 1}
        wanted = {name: Ranges.of({each for key, some in parts if key == name for each in some}) for name in (0, 2)}
        wanted |= {1: Ranges.of(last.get(*first))}
        cells = {name: found.cells(name) for name in range(3)}
    for name, exact in wanted.items():
        assert not exact - cells[name]
        assert cells[name].pieces <= max(12, exact.pieces)
        if exact:
            assert (min(cells[name]), max(cells[name])) == (min(exact), max(exact))
    assert sum(each.pieces for each in cells.values()) <= 12
    if sum(len(some) for _, some in (first, *parts)) <= 12:
        assert cells == wanted


@settings(max_examples=examples(60), deadline=None)
@given(st.sets(st.integers(0, 200), max_size=40), st.integers(1, 9))
def test_the_smallest_gaps_are_filled(numbers: set[int], most: int) -> None:
    exact = Ranges.of(numbers)
    coarse = Ranges.union([exact], most=most)
    assert not exact - coarse
    assert coarse.pieces == min(most, exact.pieces)
    gaps = sorted(start - stop for (_, stop), (start, _) in zip(exact.pairs(), list(exact.pairs())[1:], strict=False))
    assert (coarse - exact).count == sum(gaps[: max(0, exact.pieces - most)])


@pytest.mark.parametrize("separator", ["/", "."])
@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_cells_between_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str, shards: tuple[int, ...] | None
) -> None:
    values = np.zeros((40, 40), np.int16)
    values[::6, ::10] = np.arange(28).reshape(7, 4) + 1
    source = zardine.create_array(
        tmp_path / "source.zarr",
        shape=values.shape,
        chunks=(2, 2),
        dtype=values.dtype,
        chunk_key_encoding={"name": "default", "separator": separator},
    )
    source[:] = values

    def all_done(name: str) -> tuple[set[str], zardine.Verification]:
        zardine.convert(tmp_path / "source.zarr", tmp_path / name, shards=shards)
        assert (zardine.open_array(tmp_path / name)[:] == values).all()
        report = zardine.verify(tmp_path / name)
        assert report
        plan = zardine.plan_verify(tmp_path / "source.zarr", records=tmp_path / f"{name}-records")
        plan.run()
        assert plan.result() == zardine.verify(tmp_path / "source.zarr")
        return {str(each.relative_to(tmp_path / name)) for each in (tmp_path / name).rglob("*")}, report

    exact = all_done("exact.zarr")
    monkeypatch.setattr(listing, "_RANGES", 2)
    monkeypatch.setattr(listing, "_LEAST", 1)
    assert all_done("coarse.zarr") == exact


@pytest.mark.parametrize(("work", "separator"), [("convert", "/"), ("verify", ".")])
def test_the_job_that_lists_keeps_to_the_memory_of_its_plan(tmp_path: Path, work: str, separator: str) -> None:
    """Tens of thousands of objects, none beside another."""
    path = tmp_path / "many.zarr"
    zardine.create_array(
        path,
        shape=(100, 400),
        chunks=(1, 1),
        dtype="u1",
        compressors=None,
        checksum=False,
        chunk_key_encoding={"name": "default", "separator": separator},
    )
    for i in range(100):
        if separator == "/":
            (path / "c" / str(i)).mkdir(parents=True)
        for j in range(0, 400, 2):
            (path / separator.join(("c", str(i), str(j)))).write_bytes(b"x")
    if work == "convert":
        plan = zardine.plan_convert(path, tmp_path / "out.zarr", chunks=(1, 1))
    else:
        plan = zardine.plan_verify(path, records=tmp_path / "records")
    fixed = 16 * 2**20
    first = plan.work.stages[0]
    assert fixed < first.memory <= plan.memory
    plan.begin()
    tracemalloc.start()
    try:
        plan.job(0)()
        _, peak = tracemalloc.get_traced_memory()
        done = plan._look(details=True)
        assert done is not None
        plan.work.idle(1, done.found)
        _, both = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    beside = 2**22  # of batches, modules that are imported, and so on
    assert peak < first.memory - fixed + beside
    assert both < first.memory - fixed + beside
