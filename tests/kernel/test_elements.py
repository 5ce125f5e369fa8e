"""Chunks that hold one byte string each, read together by the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.codecs.crc32c import crc32c
from zardine.kernel import KERNEL

pytest.importorskip("zardine._kernel")


def chunk(text: bytes, sums: int = 1) -> bytes:
    whole = np.array([1, len(text)], "<u4").tobytes() + text
    for _ in range(sums):
        whole += crc32c(whole).to_bytes(4, "little")
    return whole


def read(sources: list[Any], jobs: Any, sums: int = 1) -> Any:
    assert KERNEL is not None
    table = np.array(jobs, np.int64).reshape(-1, 3)
    found = KERNEL.read_elements(sources, table, [len(table)], sums, 2)
    apart = KERNEL.read_elements(sources, table, [0, len(table) // 2, len(table) // 2, len(table)], sums, 2)
    assert (found is None) == (apart is None)
    if found is None or apart is None:
        return None
    assert (len(apart), b"".join(apart)) == (4, bytes(found[0]))
    return found[0]


@pytest.mark.parametrize("sums", [0, 1, 2])
def test_they_come_out_of_files_and_memory(tmp_path: Path, sums: int) -> None:
    texts = [os.urandom(size) for size in (0, 1, 70_000, 5, 300_000, 9)]
    chunks = [chunk(text, sums) for text in texts]
    whole = b"".join(chunks)
    ends = np.cumsum([len(each) for each in chunks])
    places = [(int(end) - len(each), len(each)) for end, each in zip(ends, chunks, strict=True)]
    (tmp_path / "file").write_bytes(whole)
    file = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        for order in (range(6), (5, 0, 0, 3, 2), ()):
            for sources in ([whole, file], [bytearray(whole), file], [file, whole]):
                jobs = [(number % 2, *places[number]) for number in order]
                assert read(sources, jobs, sums) == b"".join(texts[number] for number in order)
                jobs = [(0, *places[number]) for number in order] + [(7, -1, -1)]
                assert read(sources, jobs, sums) == b"".join(texts[number] for number in order)
    finally:
        os.close(file)


def test_what_is_wrong_or_unusual_gives_nothing(tmp_path: Path) -> None:
    good = chunk(b"some text")
    size = len(good)
    assert read([good], [(0, 0, size)]) == b"some text"
    for at in range(size):
        bad = bytearray(good)
        bad[at] ^= 4
        assert read([bytes(bad)], [(0, 0, size)]) is None
    for job in [
        (0, 0, size - 1),
        (0, 0, size + 1),
        (0, 1, size),
        (0, 2**62, size),
        (0, -1, size),
        (0, 0, -2),
        (0, 0, 5),
    ]:
        assert read([good], [(0, 0, size), job]) is None
    (tmp_path / "file").write_bytes(good[:-2])
    file, folder = os.open(tmp_path / "file", os.O_RDONLY), os.open(tmp_path, os.O_RDONLY)
    try:
        for source in (file, folder, -1, 2**31 - 1):
            assert read([source], [(0, 0, size)]) is None
    finally:
        os.close(file)
        os.close(folder)


def test_arguments_that_do_not_fit_are_refused() -> None:
    assert KERNEL is not None
    good = chunk(b"text")
    for jobs in (np.zeros((1, 4), np.int64), np.zeros(3, np.int64), np.zeros((1, 3)), np.array([[1, 0, 16]])):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.read_elements([good], jobs, [1], 1, 1)
    for ends in ([], [0], [2], [1, 0, 1], [-1, 1]):
        with pytest.raises((ValueError, OverflowError)):
            KERNEL.read_elements([good], np.array([[0, 0, 16]]), ends, 1, 1)
    with pytest.raises((ValueError, OverflowError)):
        read([good], [(0, 0, 16)], sums=2**63)
    with pytest.raises(TypeError):
        read([None], [(0, 0, 16)])


def parts(sources: list[Any], jobs: Any, sizes: list[int], spans: Any, sums: int = 1) -> Any:
    assert KERNEL is not None
    tables = [np.array(each, np.int64).reshape(-1, 3) for each in (jobs, spans)]
    found, again = (KERNEL.read_element_parts(sources, tables[0], sizes, tables[1], sums, n) for n in (1, 3))
    assert found == again
    return found


@pytest.mark.parametrize("sums", [0, 1, 2])
def test_rows_leave_their_chunks_in_any_order(tmp_path: Path, sums: int) -> None:
    random = np.random.default_rng(sums)
    counts = random.integers(0, 3000, 60)
    sizes = [12, 4]
    texts = [[random.bytes(int(count) * size) for count in counts] for size in sizes]
    chunks = [chunk(text, sums) for some in texts for text in some]
    ends = np.cumsum([len(each) for each in chunks])
    jobs = [(n % 2, int(end) - len(each), len(each)) for n, (end, each) in enumerate(zip(ends, chunks, strict=True))]
    cells = random.integers(0, 60, 400)
    first = random.integers(0, counts[cells] + 1)
    spans = np.stack([cells, first, random.integers(0, counts[cells] - first + 1)], axis=1)
    wanted = [
        b"".join(some[cell][a * size : (a + n) * size] for cell, a, n in spans.tolist())
        for some, size in zip(texts, sizes, strict=True)
    ]
    (tmp_path / "file").write_bytes(b"".join(chunks))
    file = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert parts([file, b"".join(chunks)], jobs, sizes, spans, sums) == wanted
        assert parts([file, file], jobs, sizes, [], sums) == [b"", b""]
    finally:
        os.close(file)


def test_rows_that_are_not_there_give_nothing() -> None:
    assert KERNEL is not None
    good = chunk(b"some text")
    size = len(good)
    job = (0, 0, size)
    assert parts([good], [job], [3], [(0, 1, 2), (0, 0, 1)]) == [b"e textsom"]
    assert parts([good], [(0, -1, -1)], [3], [(0, 0, 0)]) == [b""]
    for span in [(0, 2, 2), (0, 4, 0), (1, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 0, -1), (0, 2**62, 1), (0, 1, 2**62)]:
        assert parts([good], [job], [3], [span]) is None
    assert parts([good], [(0, -1, -1)], [3], [(0, 0, 1)]) is None
    for sizes in ([], [0], [3, 3]):
        assert parts([good], [job], sizes, []) is None
    for at in range(size):  # verified although no row of it is wanted
        bad = bytearray(good)
        bad[at] ^= 4
        assert parts([bytes(bad)], [job], [3], []) is None
    for spans in (np.zeros(2, np.int64), np.zeros((1, 2), np.int64)):
        assert KERNEL.read_element_parts([good], np.array([job]), [3], spans, 1, 1) is None
    for wrong in (np.zeros((1, 4), np.int64), np.zeros((1, 3)), np.array([[1, 0, 16]])):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.read_element_parts([good], wrong, [3], np.zeros((0, 3), np.int64), 1, 1)
    with pytest.raises(ValueError, match=r".+"):
        KERNEL.read_element_parts([good], np.array([job]), [3], np.zeros((1, 3)), 1, 1)


TOO_MUCH = """
import os, sys
import numpy as np
from zardine.kernel import KERNEL
from kernel.memory_room import MemoryRoom

file, size = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
room = MemoryRoom(256)
print(KERNEL.read_element_parts([file], np.array([[0, 0, size]]), [1], np.array([[0, 5, 3]]), 1, 1))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory that a process has")
def test_where_there_is_no_memory_for_a_chunk_the_caller_is_left_to_read_it(tmp_path: Path) -> None:
    size = 2**30
    with open(tmp_path / "file", "wb") as file:
        file.write(np.array([1, size], "<u4").tobytes())
        file.truncate(8 + size + 4)
    run = subprocess.run(
        [sys.executable, "-c", TOO_MUCH, str(tmp_path / "file"), str(8 + size + 4)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "None\n", "")


def test_byte_strings_behind_their_lengths() -> None:
    assert KERNEL is not None
    texts = [b"", b"a", b"", bytes(70_000), b"bcd", b""]
    joined = KERNEL.join_elements(texts)
    assert joined == b"".join(len(each).to_bytes(4, "little") + each for each in texts)
    assert KERNEL.split_elements(joined, 0, 6) == (texts, len(joined))
    assert KERNEL.split_elements(joined + b"more", 4, 3) == (texts[1:4], len(joined) - 11)
    assert KERNEL.split_elements(b"", 0, 0) == KERNEL.split_elements(b"", 0, 0) == ([], 0)
    for data, start, count in [(joined, 0, 7), (joined, 1, 6), (joined[:-1], 0, 6), (joined, len(joined) + 1, 0)]:
        assert KERNEL.split_elements(data, start, count) is None
    for count in (2**40, 2**63):
        assert KERNEL.split_elements(joined, 0, count) is None
    assert KERNEL.join_elements([]) == b""
    assert KERNEL.join_elements([b"a", bytearray(b"b")]) is None
    assert KERNEL.join_elements([b"a", None]) is None  # type: ignore[list-item]
    with pytest.raises(OverflowError):
        KERNEL.split_elements(joined, -1, 1)


def test_some_of_them_are_replaced() -> None:
    assert KERNEL is not None
    texts = [b"", b"a", b"", bytes(70_000), b"bcd", b""]
    joined = KERNEL.join_elements(texts)
    assert joined is not None
    for first, new in [(0, [b"x"]), (5, [b"yy"]), (2, [b"", b"z", b"q" * 300]), (0, texts[::-1])]:
        wanted = [*texts[:first], *new, *texts[first + len(new) :]]
        found = KERNEL.replace_elements(b"head" + joined, 4, 6, first, new)
        assert found is not None
        assert (found[:4], KERNEL.split_elements(found, 4, 6)) == (b"head", (wanted, len(found)))
    for data, start, count, first in [
        (joined, 0, 7, 0),
        (joined, 0, 5, 0),
        (joined, 1, 6, 0),
        (joined[:-1], 0, 6, 0),
        (joined + b"x", 0, 6, 0),
        (joined, len(joined) + 1, 6, 0),
        (joined, 2**63, 6, 0),
        (joined, 0, 2**40, 0),
        (joined, 0, 6, 6),
        (joined, 0, 6, 2**63),
    ]:
        assert KERNEL.replace_elements(data, start, count, first, [b"x"]) is None
    assert KERNEL.replace_elements(joined, 0, 6, 0, []) is None
    assert KERNEL.replace_elements(joined, 0, 6, 0, [None]) is None  # type: ignore[list-item]


def strings(texts: list[bytes]) -> tuple[bytes, Any, Any]:
    """Byte strings of one buffer, not in its order."""
    ends = np.cumsum([len(each) for each in texts[::-1]])[::-1]
    lengths = np.array([len(each) for each in texts])
    return b"".join(texts[::-1]), ends - lengths, lengths


@pytest.mark.parametrize("at_start", [False, True])
def test_shards_are_made_whose_chunks_are_read_again(at_start: bool) -> None:
    assert KERNEL is not None
    texts = [os.urandom(size) for size in (3, 0, 70_000, 11, 5)]
    bounds, rows = np.array([0, 2, 2, 5]), np.array([1, 0, 3, 2, 0])
    data, sizes = KERNEL.pack_elements(strings(texts), 1, (bounds, rows, 4, at_start, True), 2)
    assert len(data) == sum(sizes)
    begin = 0
    for shard, size in enumerate(sizes):
        whole, begin = bytes(data[begin : begin + size]), begin + size
        index = np.frombuffer(whole[:64] if at_start else whole[-68:-4], "<i8").reshape(4, 2)
        for job in range(*bounds[shard : shard + 2].tolist()):
            assert read([whole], [(0, *index[rows[job]].tolist())]) == texts[job]
        assert (index != -1).all(axis=1).sum() == bounds[shard + 1] - bounds[shard]
    for shards in (
        (bounds, rows, 3, at_start, True),
        (bounds[1:], rows, 4, at_start, True),
        (bounds, rows[1:], 4, at_start, True),
    ):
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.pack_elements(strings(texts), 1, shards, 2)
    assert KERNEL.pack_elements(strings(texts), 1, None, 2) == (
        b"".join(map(chunk, texts)),
        [len(chunk(t)) for t in texts],
    )
    data, starts, lengths = strings(texts)
    for wrong in [(data, starts, lengths[1:]), (data, starts + 1, lengths), (data, -starts, lengths), (data, starts)]:
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.pack_elements(wrong, 1, None, 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_files_are_made_of_what_is_packed(tmp_path: Path, threads: int) -> None:
    assert KERNEL is not None
    texts = [os.urandom(size) for size in (3, 0, 700_000, 11, 400_000, 5)]
    bounds, cells = np.array([0, 2, 5, 6]), np.array([1, 0, 7, 6, 4, 9])
    order = np.argsort(cells)
    base = os.open(tmp_path, os.O_RDONLY)

    def make(form: str, cells: Any, shards: Any) -> Any:
        assert KERNEL is not None
        arrays = [(form.encode(), cells, strings(texts), 1, shards)]
        return KERNEL.make_cell_files(base, arrays, (b".own-", b".own-edit-", b".tmp"), 0, threads)

    try:
        for at_start in (False, True):
            table = bounds, cells[order] % 4, 4, at_start, True
            data, _ = KERNEL.pack_elements(strings([texts[cell] for cell in order]), 1, table, 2)
            shards = [4], [1], 4, at_start, True
            assert make(f"{at_start}/c/%d", cells[:, None], shards) == []
            keys = [f"{at_start}/c/{number}" for number in range(3)]
            assert b"".join((tmp_path / key).read_bytes() for key in keys) == data
            (tmp_path / keys[1]).unlink()
            failed = [(key.encode(), 17) for key in (keys[0], keys[2])]  # those that are there stay
            assert make(f"{at_start}/c/%d", cells[:, None], shards) == failed
            assert b"".join((tmp_path / key).read_bytes() for key in keys) == data
        places = np.stack([np.arange(6) % 2, np.arange(6)], axis=1)
        assert make("flat/%d/%d", places, None) == []
        found = [(tmp_path / f"flat/{number % 2}/{number}").read_bytes() for number in range(6)]
        assert found == list(map(chunk, texts))
        assert KERNEL.make_cell_files(base, [], (b".own-", b".own-edit-", b".tmp"), 0, threads) == []
    finally:
        os.close(base)


def test_shards_are_extended_in_their_files(tmp_path: Path) -> None:
    assert KERNEL is not None
    texts, none = [b"one", b"", b"three"], np.zeros(0, np.int64)
    data, _ = KERNEL.pack_elements(strings(texts), 1, (np.array([0, 3]), np.arange(3), 4, False, True), 1)
    (tmp_path / "shard").write_bytes(data)
    base = os.open(tmp_path, os.O_RDONLY)
    files = KERNEL.open_new_files(base, ["shard", "none"], [], (b".own-", b".own-edit-", b".end"), 0)
    assert files is not None
    try:
        form = np.array([0, 2, 3]), np.array([3, 1, 0]), 4, False, True
        done, missing = KERNEL.extend_shards([b"four", b"two", b"x"], 1, form, files, 100, 0.9)
        assert missing is None
        assert done is not None
        old, status, offsets, lengths = done
        whole = (tmp_path / "shard").read_bytes()
        assert (old, status[0], status[1]) == (None, (tmp_path / "shard").stat().st_ino, len(whole))
        jobs = zip(np.frombuffer(offsets, np.int64).tolist(), np.frombuffer(lengths, np.int64).tolist(), strict=True)
        found = [bytes(read([whole], [(0, *job)])) for job in jobs]
        assert found == [b"one", b"two", b"three", b"four"]
        assert sorted(os.listdir(tmp_path)) == ["shard"]
        for most, unused in [(11, 0.9), (100, -1.0), (100, float("nan"))]:
            KERNEL.extend_shards([b"x", b"y", b"z"], 1, form, files, most, unused)
        for wrong in (
            (form[0], form[1], 4, True, True),
            (form[0], form[1], 4, False, False),
            (form[0], form[1], 3, False, True),
            (form[0][1:], form[1], 4, False, True),
            (np.array([0, 3]), form[1], 4, False, True),
            (none, none, 4, False, True),
        ):
            with pytest.raises(ValueError, match=r".+"):
                KERNEL.extend_shards([b"x", b"y", b"z"], 1, wrong, files, 100, 0.9)
        with pytest.raises(ValueError, match="bytes"):
            KERNEL.extend_shards([b"x", b"y", None], 1, form, files, 100, 0.9)  # type: ignore[list-item]
        with pytest.raises(ValueError, match=r".+"):
            KERNEL.extend_shards([b"x", b"y", b"z"], 2**63, form, files, 100, 0.9)
    finally:
        files.close()
        os.close(base)
    with pytest.raises(ValueError, match="closed"):
        KERNEL.extend_shards([b"x", b"y", b"z"], 1, form, files, 100, 0.9)
