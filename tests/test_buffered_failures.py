"""``Array.buffered`` where what waits cannot be stored: full disks, damaged chunks, and going on after that."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import CorruptionError, StoreError
from zardine.storage import MemoryStore

NOISE = np.random.default_rng(1).integers(0, 2**31, (256, 256), "i4")
"""Does not compress: 256 KiB, as four shards or chunks of 64 KiB."""


class Disk:
    """A place that can be full."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def full(self) -> Iterator[None]:
        """With no room for files of any size."""
        filler = self.path.parent / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (4096, 512, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass
        yield
        filler.unlink()


class LimitedDisk(Disk):
    @contextmanager
    def full(self) -> Iterator[None]:
        """With no room for files of more than 30 kB."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        sys.dont_write_bytecode = True  # Python would keep the half of a compiled module that fits
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture(params=["tmpfs", "RLIMIT_FSIZE"])
def disk(request: Any, tmp_path: Path) -> Iterator[Disk]:
    if request.param != "tmpfs":
        yield LimitedDisk(tmp_path / "a.zarr")
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(tmp_path)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount")
    try:
        yield Disk(tmp_path / "a.zarr")
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)  # files that were replaced are closed late


@pytest.fixture(params=[True, False], ids=["shards", "chunks"])
def array(request: Any, disk: Disk) -> zardine.Array:
    how = {"chunks": (32, 32), "shards": (128, 128)} if request.param else {"chunks": (128, 128)}
    return zardine.create_array(disk.path, shape=(256, 256), dtype="i4", **how)


def stored(array: zardine.Array) -> Any:
    return zardine.open_array(array.store, mode="r")[...]


def fill(array: zardine.Array) -> None:
    """A block whose end fails."""
    with pytest.raises(StoreError), array.buffered():
        array[...] = NOISE


def test_what_could_not_be_stored_waits_and_comes_before_what_is_written_later(disk: Disk, array: Any) -> None:
    with disk.full():
        fill(array)
        assert (array[...] == NOISE).all()
        assert not stored(array).any()
        for late in (1, 2):
            with pytest.raises(StoreError):
                array[0, 0] = late  # neither stored nor collected
        assert (array[...] == NOISE).all()
    array[0, 0] = 3
    array[5, 5] = 4
    expected = NOISE.copy()
    expected[0, 0], expected[5, 5] = 3, 4
    assert (stored(array) == expected).all()
    assert (array[...] == expected).all()


def test_flush_after_the_block_tries_again(disk: Disk, array: Any) -> None:
    with disk.full():
        fill(array)
        with pytest.raises(StoreError):
            array.flush()
    array.flush()
    assert (stored(array) == NOISE).all()
    os.remove(next(path for path in disk.path.rglob("c/**/*") if path.is_file()))
    array.flush()  # nothing waits any more
    assert (stored(array) == 0).sum() >= 128 * 128


def test_what_waits_is_stored_before_anything_else_is_done(disk: Disk, array: Any) -> None:
    with disk.full():
        fill(array)
        with pytest.raises(StoreError), array.buffered():
            pytest.fail("a block begins although older values wait")
        for change in (lambda: array.append(NOISE[:1]), lambda: array.resize((5, 5))):
            with pytest.raises(StoreError):
                change()
        assert zardine.open_array(disk.path).shape == array.shape == (256, 256)
    with array.buffered():
        assert (stored(array) == NOISE).all()
        array[0] = 1
        assert (stored(array) == NOISE).all()
    assert (stored(array)[0] == 1).all()
    array.append(NOISE[:1])
    assert (stored(array)[1:] == np.concatenate([NOISE[1:], NOISE[:1]])).all()


def test_going_on_within_the_block(disk: Disk, array: Any) -> None:
    with array.buffered() as waiting:
        array[...] = NOISE
        with disk.full():
            with pytest.raises(StoreError):
                waiting.flush()
            array[7] = 5
            assert waiting.nbytes >= NOISE.nbytes // 4
        assert (array[7] == 5).all()
    expected = NOISE.copy()
    expected[7] = 5
    assert (stored(array) == expected).all()


def test_reaching_the_limit_on_a_full_disk(disk: Disk, array: Any) -> None:
    limit = 100_000
    with array.buffered(limit=limit) as waiting:
        array[:128, :128] = NOISE[:128, :128]
        with disk.full():
            with pytest.raises(StoreError):  # it waits all the same
                array[128:, 128:] = NOISE[128:, 128:]
            before = waiting.nbytes
            for row in range(100):
                with pytest.raises(StoreError):
                    array[row, 128:] = 1
            assert waiting.nbytes == before
        array[128:, :128] = NOISE[128:, :128]
    expected = NOISE.copy()
    expected[:128, 128:] = 0
    assert (stored(array) == expected).all()


def test_what_could_not_be_stored_can_be_given_up(disk: Disk, array: Any) -> None:
    with disk.full(), pytest.raises(StoreError), array.buffered() as waiting:
        array[...] = NOISE
    before = stored(array)
    assert waiting.nbytes > 0
    waiting.discard()
    assert waiting.nbytes == 0
    array.flush()
    assert (stored(array) == before).all()
    array[0, 0] = 1
    assert stored(array)[0, 0] == 1
    with array.buffered():
        array[0, 0] = 2
        waiting.discard()  # it is over
    assert stored(array)[0, 0] == 2


def test_an_exception_on_a_full_disk_says_both(disk: Disk, array: Any) -> None:
    def fail() -> None:
        with array.buffered():
            array[...] = NOISE
            raise ZeroDivisionError

    with disk.full():
        with pytest.raises(StoreError) as error:
            fail()
        assert isinstance(error.value.__context__, ZeroDivisionError)
    array.flush()
    assert (stored(array) == NOISE).all()


@pytest.mark.parametrize("sharded", [True, False])
def test_a_damaged_chunk_keeps_no_other_from_the_store(sharded: bool) -> None:
    array = zardine.create_array(
        MemoryStore(), shape=(16,), dtype="i4", chunks=(2,), shards=(4,) if sharded else None, compressors=None
    )
    array[...] = 1
    key = "c/0"
    value = bytearray(array.store.get(key))
    value[0] ^= 1
    array.store.set(key, bytes(value))
    with array.buffered() as waiting:
        array[::2] = 2
        with pytest.raises(CorruptionError) as error:
            array.flush()
        assert error.value.chunk == (0,)
        assert zardine.open_array(array.store)[4:].tolist() == [2, 1] * 6
        array[:2] = 3
    assert waiting.nbytes == 0
    assert zardine.open_array(array.store)[...].tolist() == [3, 3] + [2, 1] * 7


def test_a_damaged_chunk_at_the_edge_can_be_replaced() -> None:
    for shards in (None, (4,)):
        array = zardine.create_array(MemoryStore(), shape=(5,), dtype="i4", chunks=(2,), shards=shards)
        array[...] = 1
        key = "c/2" if shards is None else "c/1"
        value = bytearray(array.store.get(key))
        value[1] ^= 255
        array.store.set(key, bytes(value))
        with pytest.raises(CorruptionError):
            array[4]
        with array.buffered():
            array[4] = 2
            assert array[4] == 2
        assert zardine.open_array(array.store)[...].tolist() == [1, 1, 1, 1, 2]
