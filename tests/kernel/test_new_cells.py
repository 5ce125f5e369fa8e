"""Files of new cells, documents, links and indexes that the kernel makes: what they are, and what it refuses."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.kernel import KERNEL
from zardine.stores.local.beside import NAMES
from zardine.vectors.content import link_placement
from zardine.vectors.content.link_placement import PlacedLinks, place_in_cells
from zardine.vectors.format import fragment_index, grids
from zardine.vectors.format.ragged import starts_of

kernel = pytest.importorskip("zardine._kernel")

RANDOM = np.random.default_rng(5)


def new_cells(
    form: bytes, cells: list[list[int]], texts: list[bytes], sums: int = 0, shards: Any = None
) -> tuple[Any, ...]:
    lengths = np.array([len(text) for text in texts])
    return form, np.array(cells), (b"".join(texts), starts_of(lengths)[:-1], lengths), sums, shards


def made(folder: Path, *arrays: tuple[Any, ...]) -> list[tuple[bytes, int]]:
    base = os.open(folder, os.O_RDONLY)
    try:
        return list(kernel.make_cell_files(base, arrays, NAMES, 7, 2))
    finally:
        os.close(base)


def test_cells_of_several_arrays_become_files(tmp_path: Path) -> None:
    shards = ([2], [1], 2, False, False)
    one = new_cells(b"a/c/%d", [[3], [0], [1]], [b"three", b"zero", b""], 0, shards)
    other = new_cells(b"b%%/%d.%d", [[0, 1], [12, 0]], [b"x", b""])
    assert made(tmp_path, one, other) == []
    head = (1).to_bytes(4, "little")
    assert (tmp_path / "b%" / "0.1").read_bytes() == head + b"\1\0\0\0x"
    assert (tmp_path / "b%" / "12.0").read_bytes() == head + bytes(4)
    zero, nothing = head + b"\4\0\0\0zero", head + bytes(4)
    index = np.array([0, len(zero), len(zero), len(nothing)], "<u8").tobytes()
    assert (tmp_path / "a" / "c" / "0").read_bytes() == zero + nothing + index
    three = head + b"\5\0\0\0three"
    missing = b"\xff" * 16
    assert (tmp_path / "a" / "c" / "1").read_bytes() == three + missing + np.array([0, len(three)], "<u8").tobytes()
    assert made(tmp_path, new_cells(b"b%%/%d.%d", [[5, 5], [0, 1]], [b"", b""])) == [(b"b%/0.1", errno.EEXIST)]


def test_cells_go_nowhere_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert made(tmp_path, new_cells(b"link/%d", [[1]], [b"x"])) == [(b"link/1", errno.ELOOP)]
    assert list((tmp_path / "real").iterdir()) == []


def test_the_one_that_has_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(".")
    arrays = {name: new_cells(f"{name}/%d".encode(), [[1], [2]], [b"x", b"y"]) for name in ("a", "file", "link", "z")}
    assert made(tmp_path, arrays["a"], arrays["file"], arrays["z"]) == [(b"file/1", errno.ELOOP)]
    assert made(tmp_path, arrays["a"], arrays["z"], arrays["link"]) == [(b"link/1", errno.ELOOP)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.parametrize(
    "wrong",
    [
        new_cells(b"%d", [[-1]], [b"x"]),
        new_cells(b"%d", [[1, 2]], [b"x"]),
        new_cells(b"%d", [[1], [2]], [b"x"]),
        new_cells(b"%s", [[1]], [b"x"]),
        new_cells(b"%d", [[1]], [b"x"], 1, ([0], [1], 1, False, True)),
        new_cells(b"%d", [[1]], [b"x"], 1, ([2], [1], 1, False, True)),
        new_cells(b"%d", [[1]], [b"x"], 1, ([2], [2**62], 2, False, True)),
        (b"%d", np.array([1]), (b"x", np.array([0]), np.array([1])), 0, None),
        (b"%d", np.array([[1]]), (b"x", np.array([0]), np.array([2])), 0, None),
    ],
)
def test_cells_that_make_no_sense_are_refused(wrong: tuple[Any, ...], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        made(tmp_path, wrong)
    assert list(tmp_path.iterdir()) == []


def test_documents_are_put_each_at_one_moment(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    base = os.open(tmp_path, os.O_RDONLY)
    try:
        with closing(kernel.open_new_files(base, ["old", "folder", "new/er"], [], NAMES, 9)) as files:
            assert kernel.put_files(files, [b"1", b"2", b"3"], 2) == [1]
            with pytest.raises(ValueError, match="contents"):
                kernel.put_files(files, [b"1"], 1)
    finally:
        os.close(base)
    assert (tmp_path / "old").read_bytes() == b"1"
    assert (tmp_path / "new" / "er").read_bytes() == b"3"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "new", "old"]


def parts_of(placed: PlacedLinks) -> tuple[Any, ...]:
    numbers = (placed.cells, placed.chunks, placed.starts, placed.given, placed.rows)
    return placed.offsets, placed.has_order, [each.tolist() for each in numbers], list(placed.stored)


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize("side", [2, 2**40])
def test_links_are_placed_as_without_the_kernel(
    width: int, canonical: bool, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = np.unique(RANDOM.integers(-side, side, (40, 3)), axis=0)
    cells = RANDOM.integers(0, len(keys), (300, width))
    cells[::3] = cells[::3, :1]
    rows = RANDOM.integers(0, 9, (300, width))
    found = [parts_of(each) for each in place_in_cells(keys, cells, rows, canonical=canonical)]
    with monkeypatch.context() as patch:
        patch.setattr(link_placement, "KERNEL", None)
        wanted = [parts_of(each) for each in place_in_cells(keys, cells, rows, canonical=canonical)]
    assert found == wanted
    assert sum(len(each[2][3]) for each in found) == 300


def test_links_of_cells_that_are_not_there_are_left() -> None:
    keys, rows = np.zeros((2, 3), np.int64), np.zeros((1, 2), np.int64)
    for cells in ([[0, 2]], [[-1, 0]]):
        assert kernel.place_links(keys, np.array(cells), rows, True) is None
    with pytest.raises(ValueError, match="rows of integers"):
        kernel.place_links(keys, np.zeros(2, np.int64), rows, True)


def test_rows_are_found_in_their_cells() -> None:
    starts = starts_of(RANDOM.integers(0, 50, 1000))
    rows = RANDOM.integers(0, starts[-1], 5000)
    cells, local = (np.frombuffer(each, np.int64) for each in kernel.find_cells(starts, rows))
    wanted = np.searchsorted(starts, rows, side="right") - 1
    assert (cells == wanted).all()
    assert (local == rows - starts[wanted]).all()
    for wrong in (-1, int(starts[-1])):
        with pytest.raises(ValueError, match="no cell"):
            kernel.find_cells(starts, np.array([wrong]))


def test_indexes_of_tiles_are_those_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    before = starts_of(RANDOM.choice([0, 1, 63, 64, 65, 200], 50))
    counts = RANDOM.integers(0, 5, before[-1])
    found = list(fragment_index.encode_tiles(before, counts))
    monkeypatch.setattr(fragment_index, "KERNEL", None)
    assert found == list(fragment_index.encode_tiles(before, counts))
    for numbers, rows in (([0, 2], [1]), ([0, 1], [1, 1]), ([1, 0], [1]), ([0, 1], [-1])):
        with pytest.raises(ValueError, match=r"."):
            kernel.encode_tiles(np.array(numbers), np.array(rows))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("corners", [None, ((-300.0,) * 3, (300.0,) * 3), ((-1e6,) * 3, (1e6,) * 3)])
def test_runs_of_chunks_are_those_without_the_kernel(dtype: str, corners: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = np.clip(np.cumsum(RANDOM.normal(0, 3, (40_000, 3)), axis=0), -299, 299).astype(dtype)
    edges = np.unique(RANDOM.integers(0, len(walk), 500))
    found = grids.chunk_runs(walk, (50.0, 60.0, 70.0), edges, corners)
    assert KERNEL is not None
    with monkeypatch.context() as patch:
        patch.setattr(grids, "KERNEL", None)
        wanted = grids.chunk_runs(walk, (50.0, 60.0, 70.0), edges, None)
    for one, other in zip(found, wanted, strict=True):
        assert (one == other).all()
    numbered = grids.distinct_chunks_of(walk, (50.0, 60.0, 70.0))
    assert (found[2] == numbered[0]).all()
    assert (found[3] == np.bincount(numbered[1])).all()
    with pytest.raises(ValueError, match="edges"):
        kernel.find_cell_runs(
            walk.reshape(-1).view("u1"), dtype == "f8", ([700.0] * 3, [-1.0] * 3, [2] * 3), edges[::-1].copy(), 1
        )


def test_cells_may_be_of_several_runs(tmp_path: Path) -> None:
    runs = b"0123456789", np.array([8, 0, 3, 9]), np.array([2, 1, 0, 1]), np.array([0, 0, 3, 4])
    assert made(tmp_path, (b"%d", np.array([[5], [6], [7]]), runs, 0, None)) == []
    head = (1).to_bytes(4, "little")
    for name, text in (("5", b""), ("6", b"890"), ("7", b"9")):
        assert (tmp_path / name).read_bytes() == head + len(text).to_bytes(4, "little") + text
    for bounds in ([0, 0, 3], [0, 0, 3, 5], [1, 1, 3, 4], [0, 3, 2, 4], [0, -1, 3, 4]):
        with pytest.raises(ValueError, match="bounds"):
            made(tmp_path, (b"a%d", np.array([[5], [6], [7]]), (*runs[:3], np.array(bounds)), 0, None))
    for wrong in (runs[:2], (*runs, runs[3])):
        with pytest.raises(ValueError, match="elements are"):
            made(tmp_path, (b"a%d", np.array([[5], [6], [7]]), wrong, 0, None))
