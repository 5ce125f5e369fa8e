"""Small blocks that are written to files by the kernel: as if Python wrote them."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from python_writes import write_by_python
from zardine.errors import ArrayChangedError, CorruptionError
from zardine.kernel import KERNEL
from zardine.stores.local import beside

pytestmark = pytest.mark.skipif(KERNEL is None, reason="compares the kernel with Python")

SHAPE = (40, 52)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"chunks": (10, 13)},
    "raw": {"chunks": (10, 13), "compressors": None},
    "big endian": {"chunks": (10, 13), "compressors": None, "dtype": ">i4"},
    "v2": {"chunks": (10, 13), "zarr_format": 2},
    "v2, Fortran order": {"chunks": (10, 13), "zarr_format": 2, "order": "F"},
    "shards": {"chunks": (5, 13), "shards": (20, 26)},
    "raw shards": {"chunks": (5, 13), "shards": (20, 26), "compressors": None},
    "index in front": {"chunks": (5, 13), "shards": {"shape": (20, 26), "index_location": "start"}},
    "transposed": {
        "chunks": (5, 13),
        "shards": (20, 26),
        "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}],
    },
    "all chunks stored": {"chunks": (5, 13), "shards": (20, 26), "config": {"write_empty_chunks": True}},
}


def create(path: Path, **options: Any) -> zardine.Array:
    return zardine.create_array(path, **{"shape": SHAPE, "dtype": "i4", "fill_value": 0, **options})


def files(path: Path) -> dict[str, bytes]:
    """The bytes of all files below ``path``, documents and what is left behind included."""
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def any_block(rng: np.random.Generator) -> tuple[Any, ...]:
    """Slices and integers."""
    found: list[Any] = []
    for length in SHAPE:
        start = int(rng.integers(length))
        stop = int(rng.integers(start, min(length, start + 20))) + 1
        found.append(start if rng.random() < 0.2 else slice(start, stop))
    return tuple(found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_have_the_bytes_that_python_gives_them(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(layout))
    here, there = (create(tmp_path / name, **LAYOUTS[layout]) for name in "ab")
    expected = np.zeros(SHAPE, here.dtype)
    for number in range(40):
        block = any_block(rng)
        values = np.asarray(rng.integers(0, 2 + number % 5, expected[block].shape), here.dtype)
        if values.ndim:
            values = np.asfortranarray(values) if number % 3 else values[..., ::-1]
        here[block] = values
        with monkeypatch.context() as patched:
            write_by_python(patched.setattr)
            there[block] = values
        expected[block] = values
        assert files(tmp_path / "a") == files(tmp_path / "b")
        np.testing.assert_array_equal(here[...], expected)
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], expected)


def test_what_lies_beyond_the_array_gives_way(tmp_path: Path) -> None:
    array = create(tmp_path / "a", shape=(12, 13), chunks=(10, 13), compressors=None)
    array[...] = 7
    array.resize((25, 13), erase=False)
    array[...] = 9
    array.resize((12, 13), erase=False)
    array[10:12, 0:13] = 5
    array.resize((25, 13), erase=False)
    assert (array[12:20] == 0).all()
    array[10:20, :] = 6  # ends where the chunk does
    array[19:20, 3] = 8
    assert array[19].tolist() == [6, 6, 6, 8, *[6] * 9]


@pytest.mark.parametrize("endian", ["little", "big"])
def test_parts_of_large_raw_chunks(endian: str, tmp_path: Path) -> None:
    size, count = 300_000, 4
    array = zardine.create_array(
        tmp_path / "a",
        shape=(count * size,),
        dtype="f8",
        chunks=(size,),
        serializer={"name": "bytes", "configuration": {"endian": endian}},
        compressors=None,
        checksum=False,
        fill_value=0,
    )
    expected = np.arange(count * size, dtype="f8")
    array[...] = expected
    path = tmp_path / "a" / "c" / "1"
    for start, stop, step in [
        (size, 2 * size, 1),
        (size, size + 5000, 1),
        (2 * size - 5000, 2 * size, 1),
        (size + 7, size + 9, 1),
        (size + 7, 2 * size - 9, 1),
        (size - 9, 3 * size + 9, 1),
        (size + 1, 2 * size, -1),
    ]:
        values = np.random.default_rng(stop).normal(size=stop - start)[::step]
        array[start:stop] = values
        expected[start:stop] = values
        np.testing.assert_array_equal(array[...], expected)
        assert path.read_bytes() == expected[size : 2 * size].astype("<f8" if endian == "little" else ">f8").tobytes()
    array[size : 2 * size] = 0
    assert not path.exists()
    array[size + 3] = 1
    array[size : size + 100_000] = 0
    assert not path.exists()


@pytest.mark.parametrize("cut", [-8, 8])
def test_raw_chunks_of_another_size_are_damaged(cut: int, tmp_path: Path) -> None:
    array = create(tmp_path / "a", chunks=(40, 52), compressors=None, checksum=False)
    array[...] = 7
    path = tmp_path / "a" / "c" / "0" / "0"
    data = path.read_bytes()
    damaged = data[:cut] if cut < 0 else data + bytes(cut)
    path.write_bytes(damaged)
    with pytest.raises(CorruptionError, match="c/0/0"):
        array[3:6, 1:4] = 1
    assert path.read_bytes() == damaged
    array[...] = 8
    assert (array[...] == 8).all()


@pytest.mark.parametrize("layout", ["zstd", "shards"])
def test_nothing_is_put_into_what_is_damaged(layout: str, tmp_path: Path) -> None:
    array = create(tmp_path / "a", **LAYOUTS[layout])
    array[...] = np.arange(40 * 52).reshape(SHAPE)
    path = tmp_path / "a" / "c" / "0" / "0"
    data = bytearray(path.read_bytes())
    data[10] ^= 255
    data[-10] ^= 255
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match="c/0/0"):
        array[3:6, 1:4] = 1
    assert path.read_bytes() == data


def test_unfinished_files_of_forked_processes_have_other_names() -> None:
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, next(beside._numbers).to_bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    number = int.from_bytes(os.read(mine, 16))
    ours = [next(beside._numbers) for _ in range(3)]
    assert all(abs(number - each) >= beside._KEYS for each in ours)
    assert all(b - a == beside._KEYS for a, b in pairwise(ours))
    os.close(mine)
    os.close(theirs)


def test_a_handle_that_is_stale_writes_nothing(tmp_path: Path) -> None:
    array = create(tmp_path / "a", chunks=(10, 13))
    array[...] = 3
    zardine.reshard(tmp_path / "a", shards=(20, 26))
    before = files(tmp_path / "a")
    with pytest.raises(ArrayChangedError, match="open it again"):
        array[0:5, 0:5] = 1
    assert files(tmp_path / "a") == before
