"""Vertices in the order of their cells, by the kernel: as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zardine.kernel import KERNEL
from zardine.vectors.format import cell_documents, grids, manifests, ragged
from zardine.vectors.format.pieces import Pieces

pytest.importorskip("zardine._kernel")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_cells_are_those_without_the_kernel(rank: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(rank)
    shape = [0.1, 3.0, 7.7, 100.0][:rank]
    low = np.array([-0.7, -20, 50, -900])[:rank]
    positions = low + random.uniform(0, 1, (40_000, rank)) * 8 * np.array(shape)
    positions[:2000] = np.round(positions[:2000] / shape) * shape  # on faces, as near as may be
    for values in (positions.astype(dtype), positions.astype(dtype)[::-1], positions.astype(dtype)[:5000]):
        found = grids.distinct_chunks_of(values, shape)
        with monkeypatch.context() as patch:
            patch.setattr(grids, "KERNEL", None)
            wanted = grids.distinct_chunks_of(values, shape)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_positions_outside_of_a_grid_are_refused() -> None:
    assert KERNEL is not None
    positions = np.array([[0.5, 1.5], [2.5, -0.5]], "f4")
    grid: Any = [1.0, 1.0], [0.0, -1.0], [3, 3]
    numbers, found, counts = (np.frombuffer(each, "i8") for each in KERNEL.number_cells(positions, False, grid, 2))
    assert (numbers.tolist(), found.tolist(), counts.tolist()) == ([0, 1], [2, 6], [1, 1])
    for wrong in (
        ([1.0, 1.0], [0.0, 0.0], [3, 3]),
        ([1.0, 1.0], [0.0, -1.0], [2, 3]),
        ([1.0, 1.0], [0.0, -1.0], [3]),
        ([1.0], [0.0, -1.0], [3, 3]),
        ([1.0] * 5, [0.0] * 5, [3] * 5),
        ([1.0, 1.0], [0.0, -1.0], [3000, 3000]),
        ([1.0, 1.0], [0.0, -1.0], [2**62, 8]),
        ([np.nan, 1.0], [0.0, -1.0], [3, 3]),
        ([1.0, 1.0], [-0.5, -1.5], [3, 3]),
    ):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.number_cells(positions, False, wrong, 2)
    with pytest.raises(ValueError, match=r".+"):
        KERNEL.number_cells(positions.reshape(-1)[:3], False, grid, 2)
    with pytest.raises(OverflowError):
        KERNEL.number_cells(positions, False, ([1.0, 1.0], [0.0, -1.0], [-3, 3]), 2)


@pytest.mark.parametrize("form", ["u1", "<f4", ">f4", "f8", "3f4", "3f8", "5u2", "4f8", "7u1", "0f4"])
def test_rows_are_those_that_numpy_takes(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    dtype = np.dtype(form)
    shape = (30_000, *dtype.shape)
    values = random.integers(0, 200, shape).astype(dtype.base)
    for rows in (random.permutation(30_000), random.integers(0, 30_000, 140_000), np.zeros(0, np.int64)):
        found = ragged.rows_at(values, rows)
        np.testing.assert_array_equal(found, values.take(rows, axis=0))
        assert (found.dtype, found.shape) == (values.dtype, (len(rows), *shape[1:]))
        found.flags.writeable = True
    np.testing.assert_array_equal(
        ragged.rows_at(values[::2], rows := np.arange(15_000)), values[::2].take(rows, axis=0)
    )


def test_rows_that_are_not_there_are_refused() -> None:
    assert KERNEL is not None
    values = np.zeros((10, 3), "f4")
    for size, rows in [(12, [0, 10]), (12, [-1]), (0, [0]), (7, [17])]:
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.take_rows(values, size, np.array(rows), 2)
    with pytest.raises(MemoryError):
        KERNEL.take_rows(values, 2**62, np.array([0]), 2)
    assert KERNEL.take_rows(values, 2**62, np.zeros(0, np.int64), 2) == b""
    with pytest.raises(ValueError, match="int64"):
        KERNEL.take_rows(values, 12, np.array([0.0]), 2)


@pytest.mark.parametrize("form", ["u1", "<f4", ">f4", "f8", "3f4", "5u2", "7u1", "0f4"])
def test_runs_are_those_that_numpy_takes(form: str) -> None:
    random = np.random.default_rng(0)
    dtype = np.dtype(form)
    values = random.integers(0, 200, (200_000, *dtype.shape)).astype(dtype.base)
    lengths = random.integers(0, 50, 9000)
    first = random.integers(0, 200_000 - 50, 9000)
    for some in (slice(None), slice(0, 0), slice(0, 1)):
        found = ragged.runs_at(values, first[some], lengths[some])
        np.testing.assert_array_equal(found, values.take(ragged.ranges(first[some], lengths[some]), axis=0))
        assert found.dtype == values.dtype
    np.testing.assert_array_equal(
        ragged.runs_at(values[::2], first // 2, lengths // 2),
        values[::2].take(ragged.ranges(first // 2, lengths // 2), axis=0),
    )


def test_runs_end_where_numbers_change_and_at_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for numbers, edges in [
        (np.repeat(random.integers(0, 5, 900), random.integers(0, 9, 900)), np.array([0, 1, 700, 701, 1500])),
        (random.integers(0, 2, 5000), np.zeros(0, np.int64)),
        (np.zeros(5000, np.int64), np.array([4999])),
        (np.arange(7), np.array([3])),
        (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    ]:
        found = ragged.find_runs(numbers, edges)
        with monkeypatch.context() as patch:
            patch.setattr(ragged, "KERNEL", None)
            wanted = ragged.find_runs(numbers, edges)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype == np.int64


def test_runs_that_are_not_there_are_refused() -> None:
    assert KERNEL is not None
    values, numbers = np.zeros((10, 3), "f4"), np.zeros(10, np.int64)
    for first, lengths in [([0, 9], [1, 2]), ([-1], [1]), ([0], [-1]), ([2**62], [1]), ([0, 1], [1])]:
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.take_runs(values, 12, np.array(first), np.array(lengths), 2)
    for edges in ([10], [3, 2], [3, 3], [-1]):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.find_runs(numbers, np.array(edges))


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_manifests_are_those_without_the_kernel(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(rank)
    starts = ragged.starts_of(random.integers(0, 9, 500))
    chunks = random.integers(-(2**60), 2**60, (int(starts[-1]), rank))
    fragments = random.integers(0, 2**40, int(starts[-1]))
    found = manifests.encode_manifests(starts, chunks, fragments)
    with monkeypatch.context() as patch:
        patch.setattr(manifests, "KERNEL", None)
        assert found == manifests.encode_manifests(starts, chunks, fragments)
    assert KERNEL is not None
    for wrong in (
        (starts[1:], chunks, fragments, rank),
        (starts[:-1], chunks, fragments, rank),
        (starts[::-1].copy(), chunks, fragments, rank),
        (starts, chunks[1:], fragments, rank),
        (starts, chunks, fragments, 0),
        (starts, chunks, fragments, 2**40),
    ):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.encode_manifests(*wrong)


def test_pieces_are_joined_behind_their_lengths() -> None:
    assert KERNEL is not None
    texts = [b"", b"a", bytes(70_000), b"", b"bcd"]
    pieces = Pieces.of(texts)
    assert KERNEL.join_pieces((pieces.data, pieces.starts, pieces.lengths)) == KERNEL.join_elements(texts)
    some = pieces.take(np.array([4, 1, 1]))
    assert KERNEL.join_pieces((some.data, some.starts, some.lengths)) == KERNEL.join_elements([b"bcd", b"a", b"a"])
    assert KERNEL.join_pieces((b"", np.zeros(0, np.int64), np.zeros(0, np.int64))) == b""
    with pytest.raises(ValueError, match="beyond"):
        KERNEL.join_pieces((b"abc", np.array([2]), np.array([2])))


def test_extents_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KERNEL is not None
    random = np.random.default_rng(7)
    for dtype in ("f4", "f8"):
        for rank in (1, 2, 3, 4):
            rows = random.normal(0, 1e5, (70_001, rank)).astype(dtype)
            found = ragged.extent_of(rows)
            assert found is not None
            with monkeypatch.context() as patch:
                patch.setattr(ragged, "KERNEL", None)
                wanted = ragged.bounds_of(rows)
            for one, other in zip(found, wanted, strict=True):
                assert one.dtype == other.dtype
                assert one.tolist() == other.tolist()
            for wrong in (np.nan, np.inf, -np.inf):
                rows[rank, rank - 1] = wrong
                assert ragged.extent_of(rows) is None
    assert ragged.extent_of(np.zeros((70_000, 3), "i4")) is None
    assert ragged.extent_of(np.zeros((70_000, 6), "f4")[:, ::2]) is None
    assert KERNEL.find_extent(np.zeros(40, "u1"), False, 5, 1) is None
    assert KERNEL.find_extent(np.zeros(41, "u1"), False, 1, 1) is None


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_texts_of_cells_are_those_of_python(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(rank).integers(-30, 300, (2000, rank))
    cells[0] = -(2**63)
    found = cell_documents._texts(cells.tobytes(), rank)
    with monkeypatch.context() as patch:
        patch.setattr(cell_documents, "KERNEL", None)
        assert found == cell_documents._texts(cells.tobytes(), rank)
    assert KERNEL is not None
    assert KERNEL.cell_texts(cells[:0].reshape(-1), rank) == []
    with pytest.raises(ValueError, match="no rows"):
        KERNEL.cell_texts(np.zeros(2 * rank + 1, np.int64), rank + 1)
