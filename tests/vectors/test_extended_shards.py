"""Cells that the kernel puts into shards within their files: the same as without it, and whole when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import some
from zardine import vectors
from zardine.codecs.crc32c import Crc32cCodec, crc32c
from zardine.kernel import KERNEL
from zardine.storage import LocalStore
from zardine.stores.local.beside import EditRecord, edit_record_name
from zardine.vectors.storing import extended_shards
from zardine.vectors.storing.cells import CellArray

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel shards are changed one by one")

RNG = np.random.default_rng(3)
P = RNG.uniform(0, 100, (300, 2)).astype("f4")
MORE = RNG.uniform(0, 100, (40, 2)).astype("f4")
FEW = 3
LINES = [RNG.uniform(0, 100, (5, 2)) for _ in range(20)]


def points(path: str, **options: Any) -> None:
    columns = {"n": np.arange(len(P), dtype="u2")}
    vectors.write_points(path, P, chunk_shape=10, shard_shape=4, vertex_attributes=columns, **options)


def lines(path: str) -> None:
    vectors.write_polylines(path, LINES, chunk_shape=10, shard_shape=4)


def of_objects(path: str) -> None:
    points(path, object_ids=np.arange(len(P)) % 3)


def add_points(path: str) -> None:
    vectors.append_points(path, MORE, vertex_attributes={"n": np.arange(len(MORE), dtype="u2")})


def add_lines(path: str) -> None:
    vectors.append_polylines(path, [line + 0.5 for line in LINES[:3]])


CHANGES: dict[str, tuple[Callable[[str], object], Callable[[str], object]]] = {
    "points": (points, add_points),
    "lines": (lines, add_lines),
    "fewer": (points, lambda path: vectors.delete(path, where={"n": list(range(0, 300, 3))})),
    "none of a cell": (points, lambda path: vectors.delete(path, bbox=([10, 10], [30, 40]))),
    "moved": (points, lambda path: vectors.move_vertices(path, [1, 2], P[:2])),
    "values": (of_objects, lambda path: vectors.set_attribute(path, "n", np.zeros(100, "u2"), object_ids=[1])),
}


def files(path: Path) -> dict[str, bytes]:
    shards = [each for each in path.rglob("*") if each.is_file() and each.name != "zarr.json"]
    return {str(each.relative_to(path)): each.read_bytes() for each in shards}


@pytest.mark.parametrize("name", CHANGES)
def test_files_are_those_that_are_made_without_the_kernel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, change = CHANGES[name]
    found = []
    asked: list[int] = []
    real = KERNEL

    class Seen:
        def __getattr__(self, attribute: str) -> Any:
            return getattr(real, attribute)

        def extend_shards(self, *args: Any) -> Any:
            assert real is not None
            done = real.extend_shards(*args)
            asked.append(sum(each is not None for each in done))
            return done

    for kernel in (Seen(), None):
        monkeypatch.setattr(extended_shards, "KERNEL", kernel)
        path = tmp_path / ("with" if kernel else "without")
        write(str(path))
        states = []
        for _ in range(3):  # the later ones make files anew of which too much is unused
            change(str(path))
            states.append(files(path))
            assert vectors.validate(str(path)).ok
            if name not in ("points", "lines"):
                break
        found.append(states)
    assert found[0] == found[1]
    assert sum(asked) > 0


SCRIPT = """
import resource, signal, sys
import numpy as np
from zardine import vectors
from vectors import test_extended_shards as here
path, limit, dies = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "dies"
vectors.read_points(path)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if dies else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
here.add_few(path)
"""


def add_with_limit(path: Path, limit: int, *, dies: bool) -> int:
    """Add points in a process that may make no file longer than ``limit``; which signal ended it, or its exit code."""
    tests = str(Path(__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {tests!r}){SCRIPT}"
    command = [sys.executable, "-c", code, str(path), str(limit), "dies" if dies else "goes on"]
    return subprocess.run(command, capture_output=True, check=False).returncode


def told(path: Path) -> list[list[float]]:
    found = vectors.read_points(str(path))
    return sorted([*place, value] for place, value in zip(found.positions.tolist(), found.attributes["n"], strict=True))


def many(path: Path) -> Path:
    """Write so many points that a shard is longer than all else that a small change writes."""
    dense = np.random.default_rng(0).uniform(0, 40, (3000, 2))
    columns = {"n": np.arange(3000, dtype="u2")}
    vectors.write_points(str(path), dense, chunk_shape=10, shard_shape=4, vertex_attributes=columns, dtype="f8")
    return path / "0/vertices/c/0/0"


def add_few(path: str) -> None:
    vectors.append_points(path, np.full((FEW, 2), 15.0), vertex_attributes={"n": np.zeros(FEW, "u2")})


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may write nothing beyond the limit")
@pytest.mark.filterwarnings("ignore::zardine.errors.TornShardWarning")
@pytest.mark.parametrize("more", list(some([0, 1, 7, 20, 300, 1500, 3000], 3)))
def test_a_writer_that_dies_over_it_leaves_a_record(more: int, tmp_path: Path) -> None:
    shard = many(tmp_path)
    before, size = told(tmp_path), shard.stat().st_size
    assert add_with_limit(tmp_path, size + more, dies=True) == -signal.SIGXFSZ
    record = shard.with_name(edit_record_name(shard.name))
    left = EditRecord.decode(record.read_bytes())
    assert left is not None
    assert (left.before.size, shard.stat().st_size) == (size, size + more)
    if more:
        content = shard.read_bytes()
        assert left.counting(size + more, lambda part: content[part[0] : sum(part)]) is left.before
    after = told(tmp_path)  # out of the log, and out of the shard as it was
    assert len(after) == len(before) + FEW
    add_few(str(tmp_path))
    assert not record.exists()
    assert len(told(tmp_path)) == len(after) + FEW
    assert vectors.validate(str(tmp_path)).ok


def test_a_full_disk_leaves_files_as_they_were(tmp_path: Path) -> None:
    shard = many(tmp_path)
    before, content = told(tmp_path), shard.read_bytes()
    assert add_with_limit(tmp_path, len(content) + 50, dies=False) == 0  # committed: it warns
    assert shard.read_bytes() == content
    assert not list(tmp_path.rglob(edit_record_name("*")))
    assert len(told(tmp_path)) == len(before) + FEW  # it was agreed on, and the log is there
    vectors.repair(str(tmp_path))
    assert len(told(tmp_path)) == len(before) + FEW
    assert vectors.validate(str(tmp_path)).ok


def array_of(path: Path) -> CellArray:
    found = CellArray.open(LocalStore(path), "0/vertices")
    assert found is not None
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the number of open files")
def test_no_more_folders_are_open_than_there_may_be(tmp_path: Path) -> None:
    import resource

    options: Any = {"dtype": "variable_length_bytes", "chunks": (1, 1), "shards": (2, 2), "compressors": Crc32cCodec()}
    array = zardine.create_array(str(tmp_path), shape=(180, 6), **options)
    array[::2] = np.full((90, 6), b"old", object)
    config = replace(array._handle.config, write_strategy="append", write_empty_chunks=False)
    array = array._with_handle(replace(array._handle, config=config, is_shared=False))
    cells = np.stack(np.meshgrid(np.arange(1, 180, 2), [1, 3, 5], indexing="ij"), -1).reshape(-1, 2)
    values = [b"%d %d" % tuple(cell) for cell in cells.tolist()]
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 80, most))
    try:
        left = extended_shards.extend_shards([(array, cells, values)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    assert left[0].tolist() == []
    assert array.vindex[tuple(cells.T)].tolist() == values


def test_what_is_unusual_is_left_to_others(tmp_path: Path) -> None:
    """Shards that are missing, locked, damaged or another program's are not touched."""
    import fcntl

    points(str(tmp_path))
    cells = array_of(tmp_path)
    handle = cells.array._handle
    config = replace(handle.config, write_strategy="append", write_empty_chunks=False)
    array = cells.array._with_handle(replace(handle, config=config, is_shared=False))
    places, values = np.array([[5, 5], [0, 0], [1, 0]]), [b"a" * 8, b"b" * 16, b""]

    def left() -> list[int]:
        return extended_shards.extend_shards([(array, places, values)])[0].tolist()

    first, other = (tmp_path / "0/vertices/c" / name for name in ("0/0", "1/1"))
    content = first.read_bytes()
    with first.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert left() == [1, 2]
    record = first.with_name(edit_record_name(first.name))

    def anew() -> None:
        first.unlink(missing_ok=True)
        first.write_bytes(content)
        record.unlink(missing_ok=True)

    for bad in (content[:-1] + b"x", content[:-10], b""):
        first.write_bytes(bad)
        assert left() == [1, 2]
        assert first.read_bytes() == bad
    anew()
    record.write_bytes(b"")
    assert left() == [1, 2]
    anew()
    for make in (first.hardlink_to, first.symlink_to):
        first.unlink()
        before = other.read_bytes()
        make(other)
        assert 1 in left()
        anew()
        other.write_bytes(before)
    first.unlink()
    assert left() == [1, 2]
    assert not first.exists()
    first.mkdir()
    assert left() == [1, 2]
    first.rmdir()
    first.write_bytes(content)
    assert left() == []
    assert array_of(tmp_path).read(places) == values


def test_no_memory_is_taken_for_an_index_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has no bytes on the disk may be as long as the index that a hostile document asks for."""
    array = zardine.create_array(
        str(tmp_path),
        shape=(2**13, 2**13),
        dtype="variable_length_bytes",
        chunks=(1, 1),
        shards=(2**12, 2**12),
        compressors=Crc32cCodec(),
    )
    shard = tmp_path / array._handle.key((0, 0))
    shard.parent.mkdir(parents=True)
    with shard.open("wb") as file:
        file.truncate(2**24 * 16 + 4)
    handle = array._handle
    config = replace(handle.config, write_strategy="append", write_empty_chunks=False)
    array = array._with_handle(replace(handle, config=config, is_shared=False))

    class NotAsked:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setattr(extended_shards, "KERNEL", NotAsked())
    assert extended_shards.extend_shards([(array, np.array([[0, 0]]), [b"a"])])[0].tolist() == [0]


def test_files_do_not_grow_without_end(tmp_path: Path) -> None:
    points(str(tmp_path))
    shard = tmp_path / "0/vertices/c/0/0"
    grown = 40
    for _ in range(grown):
        vectors.append_points(str(tmp_path), np.full((1, 2), 5.0), vertex_attributes={"n": np.zeros(1, "u2")})
    index = 16 * 16 + 4
    assert shard.stat().st_size < 2.1 * (len(P) * 8 + grown * 8 + index)  # made anew now and then
    assert (vectors.read_points(str(tmp_path)).positions == 5).all(axis=1).sum() == grown


def test_a_file_of_another_format_stays_one(tmp_path: Path) -> None:
    """Of a shard that begins with something else, nothing is dropped."""
    points(str(tmp_path))
    shard = tmp_path / "0/vertices/c/0/0"
    content, more = shard.read_bytes(), 104
    words = np.frombuffer(content[-260:-4], "<i8").copy()
    words[::2] += np.where(words[::2] >= 0, more, 0)
    index = words.tobytes()
    shard.write_bytes(b"II*\0" + bytes(more - 4) + content[:-260] + index + crc32c(index).to_bytes(4, "little"))
    for _ in range(20):
        vectors.append_points(str(tmp_path), np.full((1, 2), 5.0), vertex_attributes={"n": np.zeros(1, "u2")})
    assert shard.read_bytes().startswith(b"II*\0" + bytes(more - 4))
    assert (vectors.read_points(str(tmp_path)).positions == 5).all(axis=1).sum() == 20
