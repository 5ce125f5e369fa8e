"""``Pipeline.change_box``, the entry for a box of elements that goes into several files, against NumPy."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
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
        changed, document = fmt.pipeline().change_box(
            opaque(values), grid, first, write_empty=True, threads=2, files=files, most=10**6, shard=shard
        )
    assert document is None
    return _closed(changed)


def _closed(changed: list[Any]) -> list[Any]:
    for each in changed:
        if each is not None and each[0] is not None:
            os.close(each[0].detach())
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


@pytest.mark.parametrize("threads", [1, 2])
def test_a_document_follows_what_is_changed(tmp_path: Path, threads: int) -> None:
    fmt = Format("u2", (0,))
    values, grid = np.arange(8, dtype="u2"), ((4,), (1,), (0,))
    document = tmp_path / "document"

    def change(
        names: list[str], version: str, look: Callable[[], None] = lambda: None, lock: Any = None
    ) -> tuple[list[Any], Any]:
        conditions = [version, *[None] * (len(names) - 1)][: len(names)]
        with opened(tmp_path, *names, conditions=conditions) as files:
            changed, replaced = fmt.pipeline().change_box(
                opaque(values),
                grid,
                (0,),
                write_empty=True,
                threads=1,
                files=files,
                most=10**6,
                document=(b"after", threads),
                lock=lock,
            )
            look()
        if replaced is None:
            return _closed(changed), None
        if lock is None:
            old = replaced[0].detach()
            assert os.pread(old, 10, 0) == b"before"
            os.close(old)
        return _closed(changed), replaced[1]

    def is_locked(path: Path, how: int = fcntl.LOCK_EX) -> bool:
        file = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(file)

    document.write_bytes(b"before")
    version = version_of(document.stat())
    nothing = ([None, None], None)
    assert change(["document", "0", "1"], "0-0-0-0") == nothing  # of another version
    for busy in (document, tmp_path):
        file = os.open(busy, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert change(["document", "0", "1"], version) == nothing
        os.close(file)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["document"]
    (tmp_path / "1").touch()
    with open(tmp_path / "1", "rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        changed, status = change(["document", "0", "1"], version)
    assert (changed[1], status, document.read_bytes()) == (None, None, b"before")
    assert not is_locked(document)
    assert not is_locked(tmp_path)
    seen = []
    changed, status = change(
        ["document", "0", "1"], version, lambda: seen.extend([is_locked(document), is_locked(tmp_path)])
    )
    assert None not in changed
    assert seen == [True, True]
    assert not is_locked(document)
    assert not is_locked(tmp_path)
    assert document.read_bytes() == b"after"
    assert version_from(*status) == version_of(document.stat())
    document.write_bytes(b"before")
    version, held = version_of(document.stat()), os.open(document, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    lock: Any = ({}, {}, 5)
    assert change(["document", "0", "1"], version) == nothing
    assert change(["document", "0", "1"], "0-0-0-0", lock=lock) == nothing
    assert lock == ({}, {}, 5)
    changed, status = change(["document", "0", "1"], version, lock=lock)
    assert None not in changed
    assert version_from(*status) == version_of(document.stat())
    ((file, name),) = lock[0].items()
    assert name == (document.stat().st_dev, document.stat().st_ino)
    assert lock[1] == {name: 5}
    assert is_locked(document)
    assert not is_locked(tmp_path)
    os.close(file)
    assert not is_locked(document)
    os.close(held)
    for names in ([], ["document"], ["document", "0"], ["0", "1", "2", "3"]):
        with pytest.raises(ValueError, match=r"objects|files"):
            change(names, version)
    os.link(document, tmp_path / "another name")
    assert change(["document", "0", "1"], version_of(document.stat())) == nothing
    document.unlink()
    assert change(["document", "0", "1"], version) == nothing
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0", "1", "another name"]
