"""``Pipeline.change_box``, the entry for a box of elements that goes into several files, against NumPy."""

from __future__ import annotations

import fcntl
import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.stores.open_files import version_from, version_of

from .cases import NUMBERS, Format, any_format, opaque, opened, smooth

pytest.importorskip("zardine._kernel")


def _change(
    fmt: Format,
    values: np.ndarray[Any, Any],
    grid: Any,
    first: tuple[int, ...],
    names: list[str],
    path: Path,
    shard: Any = None,
) -> list[Any]:
    with opened(path, *names) as files:
        changed, held = fmt.pipeline().change_box(
            opaque(values), grid, first, write_empty=True, threads=2, files=files, most=10**6, shard=shard
        )
    assert held is None
    return _closed(changed)


def _closed(changed: list[Any]) -> list[Any]:
    for each in changed:
        if each is not None and each[0] is not None:
            os.close(each[0])
    return changed


@pytest.mark.parametrize("seed", range(30))
def test_like_numpy(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    ndim = seed % 4
    fmt = any_format(rng, ndim, seed)
    chunk = tuple(int(n) for n in rng.integers(1, 7, ndim))
    counts = tuple(int(n) for n in rng.integers(1, 4, ndim))
    shape = tuple(np.multiply(chunk, counts).tolist())
    expected = np.empty(shape, fmt.dtype)
    expected[...] = fmt.fill_array
    for _ in range(6):
        first = tuple(int(rng.integers(n)) for n in shape)
        stops = [int(rng.integers(start, n)) + 1 for start, n in zip(first, shape, strict=True)]
        box = tuple(slice(*each) for each in zip(first, stops, strict=True))
        values = smooth(rng, expected[box].shape, fmt.dtype)
        ranges = [range(low // c, (high - 1) // c + 1) for low, high, c in zip(first, stops, chunk, strict=True)]
        names = [str(at) for at in product(*ranges)]
        grid = (chunk, (1,) * ndim, (0,) * ndim)
        assert None not in _change(fmt, values, grid, first, names, tmp_path)
        expected[box] = values
    for at in product(*map(range, counts)):
        part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk, strict=True))
        path, found = tmp_path / str(at), np.empty(chunk, fmt.dtype)
        found[...] = fmt.fill_array
        if path.exists():
            data = path.read_bytes()
            assert fmt.pipeline().decode_block(data, 0, len(data), chunk, (0,) * ndim, opaque(found)) is None
        assert found.tobytes() == expected[part].tobytes()


def test_any_number(tmp_path: Path) -> None:
    """Whatever the numbers are: an answer, or a ``ValueError``."""
    rng = np.random.default_rng(2)
    fmt = Format("<u2", (0, 1), fill=7)
    done = 0
    for _ in range(2000):
        grid: list[list[int]] = [[4, 4], [2, 1], [1, 0]]
        first, values = [0, 0], np.ones((4, 4), "<u2")
        shard: list[Any] = [2, False, True]
        number = int(rng.choice(NUMBERS))
        case = int(rng.integers(6))
        if case == 0:
            grid[int(rng.integers(3))][int(rng.integers(2))] = number
        elif case == 1:
            first[int(rng.integers(2))] = number
        elif case == 2 and number < 2**40:
            shard[0] = min(number, 2**20)
        elif case == 3:
            values = np.broadcast_to(np.uint16(1), (int(rng.choice([0, 1, 9, 2**40])), int(rng.choice([0, 4, 2**20]))))
        elif case == 4:
            grid[1][0], values = 2**50, np.broadcast_to(np.uint16(1), (2**40, 4))
        names = ["a", "b"][: int(rng.integers(3))]
        try:
            changed = _change(
                fmt,
                values,
                tuple(map(tuple, grid)),
                tuple(first),
                names,
                tmp_path,
                tuple(shard) if case != 5 else None,
            )
            done += None not in changed
        except (ValueError, OverflowError):
            pass
    assert done > 100
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".end")]


def test_a_document_follows_what_is_changed(tmp_path: Path) -> None:
    fmt = Format("u2", (0,))
    values, grid = np.arange(8, dtype="u2"), ((4,), (1,), (0,))
    document = tmp_path / "document"

    def change(names: list[str], version: str | None) -> tuple[list[Any], Any]:
        with opened(tmp_path, *names) as files:
            given = None if version is None else (b"after", version)
            changed, held = fmt.pipeline().change_box(
                opaque(values), grid, (0,), write_empty=True, threads=1, files=files, most=10**6, document=given
            )
        return _closed(changed), held

    document.write_bytes(b"before")
    version = version_of(document.stat())
    assert change(["document", "0", "1"], "0-0-0-0")[1] is None  # of another version
    with open(tmp_path / "1", "rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        changed, held = change(["document", "0", "1"], version)
    assert (changed[1], held, document.read_bytes()) == (None, None, b"before")
    changed, held = change(["document", "0", "1"], version)
    assert None not in changed
    file, status = held
    try:
        assert document.read_bytes() == b"after"
        assert version_from(*status) == version_of(document.stat())
        with open(document, "rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(file)
    for names in ([], ["document"], ["document", "0"], ["0", "1", "2", "3"]):
        with pytest.raises(ValueError, match=r"objects|files"):
            change(names, version)
    os.link(document, tmp_path / "another name")
    assert change(["document", "0", "1"], version_of(document.stat()))[1] is None
    document.unlink()
    assert change(["document", "0", "1"], version)[1] is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0", "1", "another name"]
