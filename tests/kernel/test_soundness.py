"""No call harms memory: arguments that alias are refused, or harmless; bytes that nobody wrote are never seen."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from .cases import CRC, Format, Step, decode_chunk, encode_bytes, whole_axis

pytest.importorskip("zardine._kernel")

ZSTD: Step = ("zstd", 1, False)
LZ4: Step = ("blosc", "lz4", 5, 1, 2, 0)


def pipeline_of(item: int, ndim: int = 1, steps: list[Step] | None = None) -> Any:
    """Elements of ``item`` bytes in C order."""
    return Format(f"V{item}", tuple(range(ndim)), steps or [], fill=bytes(item)).pipeline()


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def strided(rows: list[tuple[int, int, int, int]]) -> tuple[Any, ...]:
    """An axis of rows (extent, first, count, place)."""
    return ("s", *(np.array(column, np.int64) for column in zip(*rows, strict=True)), 1)


def jobs_of(*rows: tuple[int, ...], nbytes: int = 8) -> np.ndarray:
    """Jobs that all read the first bytes of source 0."""
    return np.array([[0, 0, nbytes, *row] for row in rows], np.int64)


OVERLAPS: dict[str, tuple[list[Any], list[tuple[int, ...]]]] = {
    "one job twice": ([whole_axis(4, 2), whole_axis(4, 2)], [(0, 0), (1, 1), (0, 0)]),
    "rows that overlap": ([strided([(4, 0, 4, 0), (4, 0, 4, 3)]), whole_axis(4, 2)], [(0, 0), (1, 0)]),
    "rows in another order": ([strided([(4, 0, 4, 4), (4, 0, 4, 1)]), whole_axis(4, 2)], [(0, 0), (1, 0)]),
    "a row inside of another": ([strided([(8, 0, 8, 0), (4, 0, 2, 5)]), whole_axis(4, 2)], [(0, 0), (1, 0)]),
    "listed places twice": (
        [("l", ints(4, 4), ints(0, 2, 4), ints(0, 2, 0, 3), ints(0, 1, 1, 5)), whole_axis(4, 2)],
        [(0, 0), (1, 0)],
    ),
    "evenly listed places twice": (
        [("l", ints(4, 4), ints(0, 2, 4), ints(0, 1, 0, 1), ints(0, 1, 1, 2)), whole_axis(4, 2)],
        [(0, 0), (1, 0)],
    ),
    "far apart": (
        [strided([(4, 0, 1, 7)] + [(4, 0, 0, 0)] * 4000 + [(4, 0, 1, 7)]), whole_axis(4, 2)],
        [(0, 0), (4001, 0)],
    ),
}


@pytest.mark.parametrize("case", OVERLAPS)
@pytest.mark.parametrize("steps", [[], [CRC]])
def test_jobs_that_share_places_are_refused(case: str, steps: list[Step]) -> None:
    axes, rows = OVERLAPS[case]
    pipeline = pipeline_of(1, 2, steps)
    out = np.zeros((8, 8), "V1")
    for length in (16, -1):
        with pytest.raises(ValueError, match="share places"):
            pipeline.decode([bytes(99)], jobs_of(*rows, nbytes=length), axes, out, 2)


def test_chunks_of_a_scalar_are_one() -> None:
    pipeline = pipeline_of(2, 0)
    assert pipeline.decode([b"ab"], jobs_of((), nbytes=2), [], np.zeros((), "V2"), 2) == []
    with pytest.raises(ValueError, match="share places"):
        pipeline.decode([b"ab"], jobs_of((), (), nbytes=2), [], np.zeros((), "V2"), 2)


def test_jobs_in_any_order_are_taken() -> None:
    rng = np.random.default_rng(0)
    pipeline = Format("u2", (0, 1)).pipeline()
    grid = np.argwhere(np.ones((9, 7), bool))
    for count in (1, 2, 30, 63):
        rows = rng.permutation(grid)[:count]
        out = np.zeros((36, 28), np.uint16)
        stored = rng.integers(1, 99, (count, 4, 4)).astype("u2")
        jobs = np.column_stack((np.zeros(count), np.arange(count) * 32, np.full(count, 32), rows)).astype(np.int64)
        axes = [whole_axis(4, 9), whole_axis(4, 7)]
        assert pipeline.decode([stored.tobytes()], jobs, axes, out.view("V2"), 2) == []
        for (i, j), chunk in zip(rows, stored, strict=True):
            assert (out[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] == chunk).all()


@pytest.mark.parametrize("strides", [(0, 0), (0, 2), (8, 0), (2, 2), (6, 2), (8, 1)])
def test_outputs_whose_elements_share_memory_are_refused(strides: tuple[int, int], tmp_path: Path) -> None:
    pipeline = pipeline_of(2, 2)
    memory = np.zeros(64, np.uint8)
    out = np.ndarray((4, 4), "V2", memory, strides=strides)
    with pytest.raises(ValueError, match="share memory"):
        pipeline.decode([bytes(range(1, 33))], jobs_of((0, 0), nbytes=32), [whole_axis(4)] * 2, out, 2)
    (tmp_path / "chunk").write_bytes(bytes(range(1, 33)))
    fd = os.open(tmp_path / "chunk", os.O_RDONLY)
    try:
        with pytest.raises(ValueError, match="share memory"):
            decode_chunk(pipeline, fd, 0, 32, (4, 4), (0, 0), out)
    finally:
        os.close(fd)
    assert not memory.any()
    if strides[1] != 2:
        points = pipeline_of(2)
        flat = np.ndarray((4,), "V2", memory, strides=strides[1:])
        arguments = ([ints(4)], ints(0, 4), [ints(0, 1, 2, 3)], ints(0, 1, 2, 3))
        with pytest.raises(ValueError, match="share memory"):
            points.decode_points([bytes(8)], jobs_of((0,)), *arguments, flat, 2)


@pytest.mark.parametrize("shape", [(4, 4), (1, 4), (4, 1), (0, 4)])
def test_strides_that_do_not_matter_are_taken(shape: tuple[int, int]) -> None:
    pipeline = pipeline_of(2, 2)
    out = as_strided(np.zeros(64, "V2"), shape, tuple(0 if n < 2 else s for n, s in zip(shape, (8, 2), strict=True)))
    axes = [strided([(4, 0, n, 0)]) for n in shape]
    assert pipeline.decode([bytes(range(32))], jobs_of((0, 0), nbytes=32), axes, out, 1) == []


def test_read_only_outputs_are_refused() -> None:
    pipeline = pipeline_of(2)
    out = np.frombuffer(bytes(8), "V2")
    with pytest.raises(ValueError, match="buffer"):
        pipeline.decode([bytes(8)], jobs_of((0,)), [whole_axis(4)], out, 1)


@pytest.mark.parametrize("view", [bytes, memoryview, bytearray, np.array])
def test_sources_in_the_output_are_refused(view: Any) -> None:
    memory = np.zeros(32, np.uint8)
    pipeline = pipeline_of(2)
    for start, refused in ((0, True), (7, True), (8, False), (15, False)):
        for source in (memory[start : start + 9], memoryview(memory)[start : start + 9].toreadonly()):
            call = (pipeline.decode, [source], jobs_of((0,)), [whole_axis(4)], memory[:8].view("V2"), 1)
            if refused:
                with pytest.raises(ValueError, match="overlaps"):
                    call[0](*call[1:])
            else:
                assert call[0](*call[1:]) == []
    # where it is only equal, nothing is wrong
    assert pipeline.decode([view(bytes(8))], jobs_of((0,)), [whole_axis(4)], memory[:8].view("V2"), 1) == []


@pytest.mark.parametrize("item", [1, 2, 4, 8, 16, 24, 3, 7])
def test_places_that_points_share_get_one_of_them(item: int) -> None:
    """Many threads write them at the same time: an element is made of the words of those that were written there."""
    rng = np.random.default_rng(item)
    count, chunks = 40_000, 64
    values = np.repeat(np.arange(1, chunks + 1, dtype=np.uint8), item * 4096).reshape(chunks, 4096, item)
    pipeline = pipeline_of(item)
    owner = np.sort(rng.integers(0, chunks, count))
    bounds = np.searchsorted(owner, np.arange(chunks + 1))
    jobs = np.array([[0, i * 4096 * item, 4096 * item, i] for i in range(chunks)], np.int64)
    for offset in (0, 1):
        memory = np.zeros(10 * item + 8, np.uint8)
        out = memory[offset : offset + 10 * item].view(f"V{item}")
        places, points = rng.integers(0, 10, count), rng.integers(0, 4096, count)
        failed = pipeline.decode_points(
            [values.tobytes()], jobs, [np.full(chunks, 4096)], bounds, [points], places, out, 4
        )
        assert failed == []
        assert (out.view(np.uint8) > 0).all()
        assert (out.view(np.uint8) <= chunks).all()
        assert not memory[:offset].any()
        assert not memory[offset + 10 * item :].any()


def test_points_that_are_their_own_output() -> None:
    """Places change under way: what was checked before does not hold, and is checked again."""
    pipeline = pipeline_of(8)
    memory = np.zeros(3000, np.int64)
    places = memory[1000:2000]
    places[:] = np.arange(1000)
    stored = np.random.default_rng(0).integers(-(2**62), 2**62, 1000).tobytes()
    out = memory.view("V8")[1000:2000]
    arguments = ([ints(1000)], ints(0, 1000), [np.arange(1000)], places)
    pipeline.decode_points([stored], jobs_of((0,), nbytes=8000), *arguments, out, 2)
    assert not memory[:1000].any()
    assert not memory[2000:].any()


@pytest.mark.parametrize("steps", [[CRC], [ZSTD, CRC]])
@pytest.mark.parametrize("write_empty", [False, True])
def test_chunks_that_cannot_be_encoded_leave_zeros(steps: list[Step], write_empty: bool) -> None:
    """A damaged chunk that is changed in part fails, raw ones when their place in the result is given already."""
    pipeline = pipeline_of(1, 1, steps)
    size, count = 70_000, 8
    good = encode_bytes(steps, b"x" * size)
    bad = good[:-1] + bytes([good[-1] ^ 1])
    sources = [bad if number % 2 else good for number in range(count)]
    jobs = np.array([[n, 0, len(good), n] for n in range(count)], np.int64)
    axis = strided([(size, 5, 10, 10 * n) for n in range(count)])
    values = np.full(10 * count, b"y", "V1")
    for _ in range(5):
        dirt = [bytearray(b"\xab" * (size * n + 100)) for n in range(1, 12)]
        del dirt
        data, offsets, lengths, failed = pipeline.encode(
            values, jobs, [axis], write_empty=write_empty, head=64, tail=64, threads=2, sources=sources
        )
        assert [job for job, _ in failed] == [1, 3, 5, 7]
        offsets, lengths = np.frombuffer(offsets, np.uint64), np.frombuffer(lengths, np.uint64)
        assert (offsets[1::2] == 2**64 - 1).all()
        named = np.zeros(len(data), bool)
        for start, length in zip(offsets[::2].tolist(), lengths[::2].tolist(), strict=True):
            named[start : start + length] = True
        assert not np.frombuffer(data, np.uint8)[~named].any()


@pytest.mark.parametrize("steps", [[], [CRC], [ZSTD], [LZ4], [("gzip", 1)], [("blosc", "zstd", 3, 1, 2, 0), CRC]])
def test_sources_and_values_may_change_under_way(steps: list[Step]) -> None:
    """Content is anything then, or a failure; nothing else suffers."""
    rng = np.random.default_rng(0)
    pipeline = pipeline_of(2, 1, steps)
    chunks, size = 64, 4096
    values = (np.arange(chunks * size) // 7).astype("u2")
    axis, rows = whole_axis(size, chunks), np.arange(chunks)[:, None].copy()
    options: dict[str, Any] = {"write_empty": False, "head": 0, "tail": 0, "threads": 2}
    data, offsets, lengths, _ = pipeline.encode(values.view("V2"), rows, [axis], **options)
    places = [np.frombuffer(each, np.int64) for each in (offsets, lengths)]
    jobs = np.column_stack((np.zeros(chunks, np.int64), *places, rows))
    original, guarded = bytes(data), np.full(chunks * size + 2048, 0xABCD, "u2")
    out = guarded[1024:-1024]
    stop = threading.Event()

    def disturb() -> None:
        view, random = np.frombuffer(data, np.uint8), rng.integers(0, len(data), 500)
        while not stop.is_set():
            view[random] ^= 0x55
            values[random % len(values)] += 1

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            pipeline.decode([data], jobs, [axis], out.view("V2"), 2)
            pipeline.encode(values.view("V2"), rows, [axis], **options)
    finally:
        stop.set()
        thread.join()
    assert (guarded[:1024] == 0xABCD).all()
    assert (guarded[-1024:] == 0xABCD).all()
    assert pipeline.decode([original], jobs, [axis], out.view("V2"), 2) == []


def test_buffers_are_held_while_they_are_in_use() -> None:
    pipeline = pipeline_of(2, 1, [ZSTD])
    size = 1 << 22
    encoded, *_ = pipeline.encode(
        np.zeros(size, "V2"), ints([0]), [whole_axis(size)], write_empty=True, head=0, tail=0, threads=1
    )
    source, results = bytearray(encoded), []
    jobs, out = jobs_of((0,), nbytes=len(source)), bytearray(2 * size)

    def decode() -> None:
        view = np.frombuffer(out, "V2")
        results.append(pipeline.decode([source], jobs, [whole_axis(size)], view, 1))

    thread = threading.Thread(target=decode)
    thread.start()
    refused = 0
    while thread.is_alive():
        try:
            source += b"more"
        except BufferError:
            refused += 1
    thread.join()
    assert len(results) == 1
    assert refused > 0 or results == [[]]
    source.clear()  # nobody holds it any more


@pytest.mark.parametrize(
    "wrong",
    [
        {"item_size": 0, "fill": b""},
        {"item_size": 3},
        {"item_size": 2**62},
        {"word_size": 3, "swap": True},
        {"word_size": 16, "swap": True},
        {"word_size": 0, "swap": True},
        {"is_bool": True},
        {"order": (0, 0)},
        {"order": (1, 2)},
        {"order": (0, 2**63)},
        {"steps": [("blosc", "lz4", 5, 1, 2**31, 0)]},
        {"steps": [("blosc", "lz4", 5, 3, 1, 0)]},
        {"steps": [("blosc", "lz4\0", 5, 1, 1, 0)]},
        {"steps": [("blosc", "lz4", 5, 1, 0, 0)]},
        {"steps": [("zstd", 23, False)]},
        {"steps": [ZSTD, LZ4]},
        {"steps": [("zstd",)]},
    ],
)
def test_pipelines_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    from zardine._kernel import Pipeline

    right = {
        "item_size": 8,
        "word_size": 8,
        "swap": False,
        "is_bool": False,
        "order": (0, 1),
        "steps": [],
        "fill": b"x" * 8,
    }
    Pipeline(**right)
    with pytest.raises((ValueError, OverflowError)):
        Pipeline(**{**right, **wrong})
