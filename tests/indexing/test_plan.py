"""Chunk plans beside brute force, and what they cost."""

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zardine
from zardine.chunk_grids.axis import Axis
from zardine.indexing.axis_plan import ListedAxis, StridedAxis, plan_axis
from zardine.indexing.boxes import box_of
from zardine.indexing.parse import parse_any, parse_orthogonal
from zardine.indexing.plan import GridPart, ObjectPart, TwoGrids, make_plan, plan_grid
from zardine.indexing.selection import AxisList, AxisSlice, PointSelection


@st.composite
def axes(draw: st.DrawFn) -> tuple[Axis, Axis]:
    """An axis of objects, and one of the chunks in them."""
    inner = draw(st.integers(1, 4))
    length = draw(st.integers(0, 20))
    if draw(st.booleans()):
        outer = Axis.regular(length, inner * draw(st.integers(1, 4)))
    else:
        numbers = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
        runs = [(inner * n, 1) for n in numbers]
        runs.append((inner, max(1, length)))
        outer = Axis(length, tuple(runs))
    chunks = outer if draw(st.booleans()) else Axis.regular(length, inner)
    return outer, chunks


@st.composite
def selections(draw: st.DrawFn, length: int) -> AxisSlice | AxisList:
    if draw(st.booleans()) or not length:
        step = draw(st.sampled_from([1, 1, 2, 3, 5, 50]))
        start = draw(st.integers(0, length))
        return AxisSlice(start, step, draw(st.integers(0, -(-(length - start) // step))))
    return AxisList(np.array(draw(st.lists(st.integers(0, length - 1), max_size=8)), np.int64))


def indices_of(selection: AxisSlice | AxisList) -> list[int]:
    if isinstance(selection, AxisList):
        return selection.indices.tolist()
    return [selection.start + i * selection.step for i in range(selection.count)]


@given(axes(), st.data())
def test_axis_plans_against_brute_force(grids: tuple[Axis, Axis], data: st.DataObject) -> None:
    _, axis = grids
    selection = data.draw(selections(axis.length))
    wanted = indices_of(selection)
    plan = plan_axis(axis, selection)
    chunk_of = axis.locate(np.array(wanted, np.int64))[0].tolist()
    assert plan.chunks.tolist() == sorted(set(chunk_of))
    placed: dict[int, int] = {}
    for i, chunk in enumerate(plan.chunks.tolist()):
        inner = np.arange(axis.extent(chunk))[plan.inner(i)].tolist()
        outer = np.arange(len(wanted))[plan.outer(i)].tolist()
        for position, place in zip(inner, outer, strict=True):
            assert place not in placed
            placed[place] = axis.start(chunk) + position
        valid = min(axis.extent(chunk), axis.length - axis.start(chunk))
        assert bool(plan.covered[i]) == (len(set(inner)) == valid)
        assert int(plan.extents[i]) == axis.extent(chunk)
    assert [placed[i] for i in range(len(wanted))] == wanted


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3), st.data())
def test_rows_and_positions_against_brute_force(sizes: list[tuple[int, int, int]], data: st.DataObject) -> None:
    storage = tuple(Axis.regular(length, chunk * ratio) for length, chunk, ratio in sizes)
    two = TwoGrids(storage, tuple(Axis.regular(length, chunk) for length, chunk, _ in sizes))
    shape = tuple(length for length, _, _ in sizes)
    chosen = tuple(indices_of(data.draw(selections(length))) for length in shape)
    strides = tuple(data.draw(st.integers(0, 50)) for _ in shape)
    for part in make_plan(parse_orthogonal(chosen, shape), two).parts():
        assert isinstance(part, GridPart)
        wanted = list(itertools.product(*(range(low, high) for low, high in zip(part.low, part.high, strict=True))))
        for _ in range(2):  # the second time what was worked out the first time, which nobody has changed
            assert part.rows().tolist() == [list(row) for row in wanted]
        local = [group.local.tolist() for group in part.plan.groups]
        places = part.positions(strides)
        assert places.tolist() == [
            sum(each[k] * stride for each, k, stride in zip(local, row, strides, strict=True)) for row in wanted
        ]
        places += 1  # is of the caller
        assert [group.local.tolist() for group in part.plan.groups] == local


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 3), st.integers(1, 2)), max_size=3))
def test_resized_grids_are_those_of_the_new_shape(sizes: list[tuple[int, int, int, int]]) -> None:
    def grids(shape: list[int], *, sharded: bool) -> TwoGrids:
        storage = tuple(Axis.regular(n, chunk * ratio) for n, (_, _, chunk, ratio) in zip(shape, sizes, strict=True))
        inner = tuple(Axis.regular(n, chunk) for n, (_, _, chunk, _) in zip(shape, sizes, strict=True))
        return TwoGrids(storage, inner if sharded else storage)

    old, new = [size[0] for size in sizes], [size[1] for size in sizes]
    ends = [min(pair) for pair in zip(old, new, strict=True)]
    for sharded in (True, False):
        before, fresh = grids(old, sharded=sharded), grids(new, sharded=sharded)
        boxes = [box_of([(min(start, end), end) for end in ends]) for start in range(max(ends, default=0) + 1)]
        for box in boxes:  # what they cover in the old shape must not be taken for what they cover in the new one
            plan_grid(box, before)
        after = before.resized(tuple(new))
        assert after == fresh
        for box in boxes:
            for ours, right in zip(plan_grid(box, after).axes, plan_grid(box, fresh).axes, strict=True):
                assert ours.chunks.tolist() == right.chunks.tolist()
                assert ours.covered.tolist() == right.covered.tolist()
                assert ours.whole.tolist() == right.whole.tolist()


def elements_of(part: ObjectPart, count: int, strides: tuple[int, ...]) -> list[Any]:
    rows = part.positions(strides).tolist()
    assert len(rows) == part.count == len(part.covered())
    assert len(set(rows)) == len(rows)
    return rows


@given(st.lists(axes(), max_size=3), st.data())
def test_plans_deal_every_element_to_its_object_and_chunk(grids: list[tuple[Axis, Axis]], data: st.DataObject) -> None:
    two = TwoGrids(tuple(outer for outer, _ in grids), tuple(inner for _, inner in grids))
    shape = tuple(axis.length for axis in two.chunks)
    array = np.arange(int(np.prod(shape))).reshape(shape)
    points = data.draw(st.booleans())
    if points and 0 not in shape:
        count = data.draw(st.integers(0, 6)) if shape else 1
        each = [data.draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)) for n in shape]
        coordinates = tuple(np.array(axis, np.int64) for axis in each)
        plan = make_plan(PointSelection(coordinates, (count,) if shape else ()), two)
        want = array[coordinates].reshape(-1)
    else:
        chosen = tuple(indices_of(data.draw(selections(n))) for n in shape)
        plan = make_plan(parse_orthogonal(chosen, shape), two)
        want = array[(*np.ix_(*(np.array(each, np.int64) for each in chosen)), ...)]
    out = np.full(want.shape, -1)
    objects, chunks = [], 0
    for part in plan.parts():
        objects.append(part.object)
        numbers = [
            int(outer.extent(i) // inner.extent(inner.locate(np.array([outer.start(i)]))[0][0]))
            for (outer, inner), i in zip(grids, part.object, strict=True)
        ]
        strides = tuple(int(np.prod(numbers[axis + 1 :])) for axis in range(len(numbers)))
        rows = elements_of(part, part.count, strides)
        for i in range(part.count):
            chunks += 1
            chunk, extent = part.chunk(i), part.chunk_shape(i)
            starts = [axis.start(k) for axis, k in zip(two.chunks, chunk, strict=True)]
            firsts = [outer.start(k) for outer, k in zip(two.storage, part.object, strict=True)]
            local = [(a - b) // size for a, b, size in zip(starts, firsts, extent, strict=True)]
            assert rows[i] == sum(a * b for a, b in zip(local, strides, strict=True))
            whole = np.full(extent, -2)
            region = tuple(slice(a, a + size) for a, size in zip(starts, extent, strict=True))
            valid = array[region]
            whole[tuple(slice(0, n) for n in valid.shape)] = valid
            taken = whole[part.inner(i)]
            out[part.outer(i)] = taken
            if bool(part.covered()[i]):
                assert set(valid.reshape(-1).tolist()) == set(np.asarray(taken).reshape(-1).tolist())
    assert out.tolist() == want.tolist()
    assert len(objects) == len(set(objects)) == plan.object_count
    assert objects == sorted(objects)
    assert chunks == plan.chunk_count


def test_long_strides_over_short_chunks_name_only_chunks_that_are_touched() -> None:
    axis = Axis.regular(2**62, 10)
    plan_axis(axis, AxisSlice(0, 100, 1000))  # imports what NumPy imports late
    tracemalloc.start()
    plan = plan_axis(axis, AxisSlice(3, 2**58, 16))
    assert isinstance(plan, StridedAxis)
    assert plan.chunks.tolist() == [(3 + i * 2**58) // 10 for i in range(16)]
    assert plan.count.tolist() == [1] * 16
    last = plan_axis(axis, AxisSlice(2**62 - 1, 2**61, 1))
    assert last.chunks.tolist() == [(2**62 - 1) // 10]
    listed = plan_axis(axis, AxisList(np.array([2**62 - 1, 0, 2**61], np.int64)))
    assert isinstance(listed, ListedAxis)
    assert listed.chunks.tolist() == [0, 2**61 // 10, (2**62 - 1) // 10]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("arguments", [{"chunks": (3, 2**60)}, {"chunks": (3, 5), "shards": (3 * 2**40, 5)}])
def test_shapes_of_two_to_the_62_cost_no_memory(arguments: Any) -> None:
    array = zardine.create_array(None, shape=(2**62, 2**62), dtype="u1", **arguments)
    array[:: 2**60, 0]  # imports what it needs
    tracemalloc.start()
    assert array[2**61, 2**62 - 1] == 0
    assert array[:: 2**60, -1].tolist() == [0] * 4
    assert array[-1 :: -(2**60), 3].tolist() == [0] * 4
    assert array.vindex[[0, -1], [-1, 5]].tolist() == [0, 0]
    assert array.oindex[[0, -1, 7], 2**40 : 2**40 + 2].shape == (3, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000


def test_a_plan_holds_no_object_for_each_chunk() -> None:
    grids = TwoGrids((Axis.regular(10**6, 1),), (Axis.regular(10**6, 1),))
    tracemalloc.start()
    plan = make_plan(parse_any(slice(None), (10**6,)), grids)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert plan.chunk_count == plan.object_count == 10**6
    assert held < 80 * 10**6
    assert next(iter(plan.parts())).object == (0,)


def test_objects_come_in_c_order() -> None:
    grids = TwoGrids((Axis.regular(4, 2), Axis.regular(4, 2)), (Axis.regular(4, 1), Axis.regular(4, 2)))
    plan = make_plan(parse_any(..., (4, 4)), grids)
    assert [part.object for part in plan.parts()] == list(itertools.product(range(2), range(2)))
    assert [part.shape for part in plan.parts()] == [(2, 1)] * 4  # type: ignore[union-attr]
