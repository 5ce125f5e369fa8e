"""The kernel against NumPy and the Python codecs."""

from __future__ import annotations

import os
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from .cases import (
    CRC,
    STEPS,
    AxisCase,
    Format,
    any_format,
    any_output,
    decode_bytes,
    encode_bytes,
    gzip_member,
    listed_axis,
    opaque,
    smooth,
    strided_axis,
    whole_axis,
)

kernel = pytest.importorskip("zardine._kernel")

EMPTY = 2**64 - 1


def _axes(rng: np.random.Generator, ndim: int, unique: bool = True) -> list[AxisCase]:
    axes = []
    for _ in range(ndim):
        count = int(rng.integers(1, 4))
        if rng.random() < 0.7:
            extents = [int(rng.choice([1, 2, 5, 8, 16]))] * count
        else:
            extents = [int(each) for each in rng.integers(1, 12, count)]
        if rng.random() < 0.65:
            axes.append(strided_axis(rng, extents))
        else:
            axes.append(listed_axis(rng, extents, unique))
    return axes


@pytest.mark.parametrize("seed", range(150))
def test_decode_like_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(0, 5))
    fmt = any_format(rng, ndim, seed)
    axes = _axes(rng, ndim)
    out = any_output(rng, tuple(axis.length for axis in axes), fmt.dtype)
    expected = np.array(out)
    stored, jobs, blob = [], [], b"head"
    for rows in product(*(range(len(axis.chunks)) for axis in axes)):
        shape = tuple(axis.chunk_extent(row) for axis, row in zip(axes, rows, strict=True))
        outer = np.ix_(*(axis.outer[row] for axis, row in zip(axes, rows, strict=True)))
        inner = np.ix_(*(axis.inner[row] for axis, row in zip(axes, rows, strict=True)))
        if rng.random() < 0.2:
            expected[outer] = fmt.fill_array
            jobs.append((0, -1, -1, *rows))
            continue
        chunk = smooth(rng, shape, fmt.dtype)
        expected[outer] = chunk[inner]
        encoded = fmt.encode(chunk)
        if rng.random() < 0.5:
            jobs.append((1, len(blob), len(encoded), *rows))
            blob += encoded + b"gap"[: int(rng.integers(4))]
        else:
            stored.append(encoded)
            jobs.append((len(stored) + 1, 0, len(encoded), *rows))
    with tempfile.TemporaryFile() as file:
        file.write(blob)
        file.flush()
        shuffled = np.array(jobs, np.int64).reshape(-1, 3 + ndim)[rng.permutation(len(jobs))]
        for source in (file.fileno(), blob):
            out[...] = np.zeros((), fmt.dtype)
            failures = fmt.pipeline().decode(
                [b"", source, *stored],
                np.ascontiguousarray(shuffled),
                [axis.argument for axis in axes],
                opaque(out),
                int(rng.integers(1, 4)),
            )
            assert failures == []
            assert np.array_equal(np.array(out), expected)


@pytest.mark.parametrize("seed", range(150))
def test_encode_like_numpy(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(0, 5))
    fmt = any_format(rng, ndim, seed)
    axes = _axes(rng, ndim, unique=False)
    shape = tuple(axis.length for axis in axes)
    if rng.random() < 0.3:
        values = np.broadcast_to(smooth(rng, shape[1:], fmt.dtype), shape)
    else:
        values = any_output(rng, shape, fmt.dtype)
        values[...] = smooth(rng, shape, fmt.dtype)
        values[tuple(slice(0, n // 2) for n in shape)] = fmt.fill_array
    write_empty = bool(rng.random() < 0.3)
    jobs = list(product(*(range(len(axis.chunks)) for axis in axes)))
    shapes = [tuple(axis.chunk_extent(row) for axis, row in zip(axes, rows, strict=True)) for rows in jobs]
    old = [smooth(rng, shape, fmt.dtype) if rng.random() < 0.7 else None for shape in shapes]
    changes = rng.random() < 0.6
    rows_of_jobs = np.array(jobs, np.int64).reshape(len(jobs), ndim)
    sources: Any = None
    if changes:
        stored = [b"" if chunk is None else fmt.encode(chunk) for chunk in old]
        ends = np.cumsum([len(each) for each in stored])
        sources = [b"", b"".join(stored)]
        if rng.random() < 0.5:
            path = tmp_path / "stored"
            path.write_bytes(sources[1])
            sources = [b"", os.open(path, os.O_RDONLY)]
        where = [(1, end - len(s), -1 if c is None else len(s)) for s, c, end in zip(stored, old, ends, strict=True)]
        rows_of_jobs = np.concatenate((np.array(where, np.int64).reshape(-1, 3), rows_of_jobs), axis=1)
    head, tail = int(rng.integers(0, 20)), int(rng.integers(0, 20))
    data, offsets, lengths, failures = fmt.pipeline().encode(
        opaque(values),
        rows_of_jobs,
        [axis.argument for axis in axes],
        write_empty=write_empty,
        head=head,
        tail=tail,
        threads=int(rng.integers(1, 4)),
        sources=sources,
    )
    assert failures == []
    assert isinstance(data, bytearray)
    end = head
    places = zip(np.frombuffer(offsets, np.uint64).tolist(), np.frombuffer(lengths, np.uint64).tolist(), strict=True)
    for rows, shape, before, (offset, length) in zip(jobs, shapes, old, places, strict=True):
        chunk = np.zeros(shape, fmt.dtype)
        chunk[...] = before if changes and before is not None else fmt.fill_array
        chunk[np.ix_(*(axis.inner[row] for axis, row in zip(axes, rows, strict=True)))] = values[
            np.ix_(*(axis.outer[row] for axis, row in zip(axes, rows, strict=True)))
        ]
        if not write_empty and chunk.tobytes() == fmt.fill_array.tobytes() * chunk.size:
            assert offset == length == EMPTY
            continue
        assert offset == end
        end += length
        assert np.array_equal(fmt.decode(bytes(data[offset:end]), chunk.shape), chunk)
    assert len(data) == end + tail
    assert data[:head] == bytes(head)
    assert data[end:] == bytes(tail)


@pytest.mark.parametrize("seed", range(60))
def test_points_like_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(0, 4))
    fmt = any_format(rng, ndim, seed)
    rows = int(rng.integers(1, 6))
    shapes = rng.integers(1, 9, (rows, ndim))
    counts = rng.integers(0, 20, rows)
    bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    total = int(bounds[-1])
    places = rng.permutation(total).astype(np.int64)
    points = [np.zeros(total, np.int64) for _ in range(ndim)]
    out = np.zeros(total, fmt.dtype)[:: int(rng.choice([1, -1]))]
    expected = out.copy()
    sources, jobs = [], []
    for row in range(rows):
        span = slice(bounds[row], bounds[row + 1])
        for axis in range(ndim):
            points[axis][span] = rng.integers(0, shapes[row, axis], counts[row])
        if rng.random() < 0.2:
            expected[places[span]] = fmt.fill_array
            jobs.append((0, 5, -1, row))
            continue
        chunk = smooth(rng, tuple(int(n) for n in shapes[row]), fmt.dtype)
        expected[places[span]] = chunk[tuple(axis[span] for axis in points)]
        jobs.append((len(sources), 0, len(encoded := fmt.encode(chunk)), row))
        sources.append(encoded)
    failures = fmt.pipeline().decode_points(
        sources,
        np.array(jobs, np.int64),
        [np.ascontiguousarray(shapes[:, axis]) for axis in range(ndim)],
        bounds,
        points,
        places,
        opaque(out),
        2,
    )
    assert failures == []
    assert np.array_equal(out, expected)


def _decode_one(fmt: Format, data: Any, extent: int, length: int | None = None) -> tuple[list[Any], np.ndarray]:
    out = np.zeros(extent, fmt.dtype)
    jobs = np.array([[0, 0, len(data) if length is None else length, 0]], np.int64)
    return fmt.pipeline().decode([data], jobs, [whole_axis(extent)], opaque(out), 1), out


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_every_codec_reads_the_other_and_refuses_truncation(steps: list[Any]) -> None:
    fmt = Format("<u2", (0,), steps)
    rng = np.random.default_rng(1)
    for extent in (1, 7, 100, 5000, 70001):
        chunk = smooth(rng, (extent,), "<u2")
        encoded = fmt.encode(chunk)
        failures, out = _decode_one(fmt, encoded, extent)
        assert failures == []
        assert np.array_equal(out, chunk)
        assert len(_decode_one(fmt, encoded[:-1], extent)[0]) == 1
        assert len(_decode_one(fmt, encoded + b"\0", extent)[0]) == 1
        assert len(_decode_one(fmt, b"", extent)[0]) == 1
        assert len(_decode_one(fmt, encoded, extent + 1)[0]) == 1
        data, _, _, failures = fmt.pipeline().encode(
            opaque(chunk), np.zeros((1, 1), np.int64), [whole_axis(extent)], write_empty=True, head=0, tail=0, threads=1
        )
        assert failures == []
        assert decode_bytes(steps, bytes(data), chunk.nbytes) == chunk.tobytes()


def test_snappy_round_trip() -> None:
    fmt = Format("<u2", (0,), [("blosc", "snappy", 5, 1, 2, 0)])
    chunk = np.arange(700_001, dtype="<u2") // 500
    data, _, _, failures = fmt.pipeline().encode(
        opaque(chunk), np.zeros((1, 1), np.int64), [whole_axis(700_001)], write_empty=True, head=0, tail=0, threads=1
    )
    assert failures == []
    assert len(data) < chunk.nbytes / 2
    failures, out = _decode_one(fmt, data, 700_001)
    assert failures == []
    assert np.array_equal(out, chunk)


def test_several_members_and_frames() -> None:
    content = smooth(np.random.default_rng(2), (1000,), "u1").tobytes()
    halves = content[:300], b"", content[300:]
    zstd = [encode_bytes([("zstd", 3, True)], half) for half in halves]
    unsized = zstandard.ZstdCompressor(write_content_size=False)
    for steps, data in [
        ([("gzip", 1)], b"".join(map(gzip_member, halves))),
        ([("zstd", 1, False)], b"\x50\x2a\x4d\x18\x01\0\0\0x".join(zstd)),
        ([("zstd", 1, False)], b"".join(map(unsized.compress, halves))),
    ]:
        failures, out = _decode_one(Format("u1", (0,), steps), data, 1000)
        assert failures == []
        assert out.tobytes() == content


def test_failures_name_their_jobs_and_others_are_done() -> None:
    fmt = Format("<i4", (0,), [("zstd", 1, False), CRC], fill=-1)
    chunks = [np.arange(100, dtype="<i4") + i for i in range(8)]
    encoded = [fmt.encode(chunk) for chunk in chunks]
    encoded[2] = encoded[2][:-1] + bytes([encoded[2][-1] ^ 1])
    encoded[5] = b"xyz"
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in encoded])))
    jobs = np.array([(0, offsets[i], len(encoded[i]), i) for i in range(8)], np.int64)
    jobs[6, 1] = 10**9  # beyond the end
    jobs[7, 1:3] = -5, 7
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(encoded))
        file.flush()
        for source in (b"".join(encoded), file.fileno()):
            out = np.zeros(800, "<i4")
            failures = fmt.pipeline().decode([source], jobs, [whole_axis(100, 8)], opaque(out), 2)
            assert [job for job, _ in failures] == [2, 5, 6, 7]
            assert "checksum" in failures[0][1]
            for good in (0, 1, 3, 4):
                assert np.array_equal(out[100 * good : 100 * good + 100], chunks[good])


@pytest.mark.parametrize("steps", [[], [CRC], [CRC, CRC]], ids=str)
def test_large_raw_chunks_from_a_file(steps: list[Any]) -> None:
    """They are read right into the output where it is in one piece."""
    rng = np.random.default_rng(3)
    chunks = [rng.integers(0, 2**16, (50, 1000), dtype="<u2") for _ in range(4)]
    for swap in (False, True):
        fmt = Format("<u2", (0, 1), steps, swap)
        encoded = [fmt.encode(chunk) for chunk in chunks]
        length = len(encoded[0])
        with tempfile.TemporaryFile() as file:
            file.write(b"".join(encoded))
            file.flush()
            jobs = np.array([(0, i * length, length, i, 0) for i in range(4)], np.int64)
            for columns in (1000, 1001):
                out = np.zeros((200, columns), "<u2")
                axes = [whole_axis(50, 4), whole_axis(1000)]
                assert fmt.pipeline().decode([file.fileno()], jobs, axes, opaque(out), 2) == []
                assert np.array_equal(out[:, :1000], np.concatenate(chunks))
            if steps:
                os.pwrite(file.fileno(), b"\xff\xff", length + 70_000)
                failures = fmt.pipeline().decode([file.fileno()], jobs, axes, opaque(out), 2)
                assert [job for job, _ in failures] == [1]
            os.ftruncate(file.fileno(), 4 * length - 1)
            failures = fmt.pipeline().decode([file.fileno()], jobs[2:], axes, opaque(out), 2)
            assert [job for job, _ in failures] == [1]


def test_any_byte_of_a_boolean_counts() -> None:
    data = bytes([0, 1, 2, 128, 255])
    failures, out = _decode_one(Format("bool", (0,)), data, 5)
    assert failures == []
    assert out.view("u1").tolist() == [0, 1, 1, 1, 1]


def test_fill_is_compared_bit_by_bit() -> None:
    for fill, other in [(0.0, -0.0), (np.nan, -np.nan)]:
        for steps in ([], [("zstd", 1, False)]):
            fmt = Format("<f8", (0,), steps, fill=fill)
            values = np.full(40, fill, "<f8")
            values[35] = other
            jobs = np.arange(4, dtype=np.int64).reshape(4, 1)
            _, offsets, _, _ = fmt.pipeline().encode(
                opaque(values), jobs, [whole_axis(10, 4)], write_empty=False, head=0, tail=0, threads=1
            )
            assert [offset == EMPTY for offset in np.frombuffer(offsets, np.uint64)] == [True, True, True, False]


def test_misuse_is_a_value_error() -> None:
    def make(**changes: Any) -> Any:
        usual: dict[str, Any] = {"item_size": 2, "word_size": 2, "swap": False, "is_bool": False}
        return kernel.Pipeline(**usual | {"order": (0,), "steps": [], "fill": b"\0\0"} | changes)

    for wrong in (
        {"item_size": 0, "fill": b""},
        {"fill": b"\0"},
        {"word_size": 3, "swap": True},
        {"order": (1,)},
        {"order": (0, 0)},
        {"is_bool": True},
        {"steps": [("lzma",)]},
        {"steps": [("gzip", 1), ("zstd", 1, False)]},
        {"steps": [("gzip", 10)]},
        {"steps": [("zstd", 23, False)]},
        {"steps": [("blosc", "lz5", 5, 1, 2, 0)]},
        {"steps": [("blosc", "lz4", 5, 3, 2, 0)]},
        {"steps": [("crc32c", 1)]},
        {"steps": ["crc32c"]},
    ):
        with pytest.raises(ValueError, match=r"."):
            make(**wrong)

    pipeline = make()
    out = np.zeros(4, "V2")
    job = np.array([[0, 0, 8, 0]], np.int64)
    axis = whole_axis(4)
    assert pipeline.decode([b"12345678"], job, [axis], out, 1) == []

    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    for arguments in (
        ([b"12345678"], np.array([[1, 0, 8, 0]], np.int64), [axis], out),  # no such source
        ([b"12345678"], np.array([[0, 0, 8, 1]], np.int64), [axis], out),  # no such row
        ([b"12345678"], np.array([[0, 0, 8, -1]], np.int64), [axis], out),
        ([b"12345678"], job[:, :3], [axis], out),
        ([b"12345678"], job.astype(np.int32), [axis], out),
        ([b"12345678"], job.astype(np.float64), [axis], out),
        ([b"12345678"], job.astype(">i8"), [axis], out),
        ([b"12345678"], job, [], out),
        ([b"12345678"], job, [("x", *axis[1:])], out),
        ([b"12345678"], job, [axis[:4]], out),
        ([b"12345678"], job, [axis], out[:3]),  # leaves the output
        ([b"12345678"], job, [axis], out.view("V1")),
        ([b"12345678"], job, [axis], out.reshape(2, 2)),
        ([b"12345678"], job, [("s", ints(4), ints(1), ints(4), ints(0), 1)], out),  # leaves the chunk
        ([b"12345678"], job, [("s", ints(4), ints(-1), ints(4), ints(0), 1)], out),
        ([b"12345678"], job, [("s", ints(4), ints(0), ints(4), ints(-1), 1)], out),
        ([b"12345678"], job, [("s", ints(4), ints(0), ints(3), ints(0), 2)], out),
        ([b"12345678"], job, [("s", ints(4), ints(0), ints(4), ints(2**63 - 2), 1)], out),
        ([b"12345678"], job, [("l", ints(4), ints(0, 2), ints(0, 4), None)], out),
        ([b"12345678"], job, [("l", ints(4), ints(0, 3), ints(0, 1), None)], out),
        ([b"12345678"], job, [("l", ints(4), ints(0, 2), ints(0, 1), ints(0, 4))], out),
        ([b"12345678"], job, [("l", ints(4), ints(1), ints(0, 1), None)], out),
        ([np.zeros((4, 4), "u1")[:, 0]], job, [axis], out),
        ([out], job, [axis], out),  # would read what it writes
    ):
        with pytest.raises(ValueError, match=r"."):
            pipeline.decode(*arguments, 1)
    with pytest.raises((ValueError, BufferError)):
        pipeline.decode([b"12345678"], job, [axis], b"12345678", 1)
    with pytest.raises(TypeError):
        pipeline.decode(["text"], job, [axis], out, 1)


def test_huge_claims_take_no_memory() -> None:
    """Chunks as large as an address space, of which next to nothing is stored."""
    for steps in STEPS:
        pipeline = Format("u1", (0, 1), steps).pipeline()
        extent = np.array([2**30], np.int64)
        axes = [("s", extent, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64), 1)] * 2
        data = encode_bytes(steps, b"\0" * 1000)
        jobs = np.array([[0, 0, len(data), 0, 0]], np.int64)
        assert len(pipeline.decode([data], jobs, axes, np.zeros((1, 1), "V1"), 1)) == 1
    extent = np.array([2**62], np.int64)
    axes = [("s", extent, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64), 1)] * 2
    failures = pipeline.decode([b""], np.zeros((1, 5), np.int64), axes, np.zeros((1, 1), "V1"), 1)
    assert failures == [(0, "the chunk is too large")]


def test_bad_file_descriptors() -> None:
    fmt = Format("u1", (0,))
    jobs = np.array([[0, 0, 4, 0]], np.int64)
    read, write = os.pipe()
    try:
        for source in (-1, 10**6, read):
            failures = fmt.pipeline().decode([source], jobs, [whole_axis(4)], np.zeros(4, "V1"), 1)
            assert [job for job, _ in failures] == [0]
    finally:
        os.close(read)
        os.close(write)


def test_crc32c() -> None:
    assert kernel.crc32c(b"123456789") == 0xE3069283
    assert kernel.crc32c(b"56789", kernel.crc32c(b"1234")) == 0xE3069283
    assert kernel.crc32c(b"") == 0
    data = np.random.default_rng(5).integers(0, 256, 100_000, dtype="u1")
    import google_crc32c

    for start, stop in [(0, 100_000), (1, 99_998), (3, 800), (5, 8200), (7, 8)]:
        assert kernel.crc32c(data[start:stop]) == google_crc32c.value(data[start:stop].tobytes())
    with pytest.raises(ValueError, match="contiguous"):
        kernel.crc32c(data[::2])


def test_threads_of_python_share_a_pipeline_and_forks_work() -> None:
    from concurrent.futures import ThreadPoolExecutor

    fmt = Format("<u2", (0, 1), [("blosc", "zstd", 1, 1, 2, 0), CRC])
    rng = np.random.default_rng(8)
    values = smooth(rng, (512, 2048), "<u2")
    pipeline = fmt.pipeline()
    axes = [whole_axis(64, 8), whole_axis(64, 32)]
    rows = np.array(list(product(range(8), range(32))), np.int64)

    def round_trip(_: int) -> bool:
        data, offsets, lengths, failures = pipeline.encode(
            opaque(values), rows, axes, write_empty=True, head=0, tail=0, threads=4
        )
        jobs = np.column_stack(
            (np.zeros(256, np.int64), np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64), rows)
        )
        out = np.zeros_like(values)
        failures += pipeline.decode([data], np.ascontiguousarray(jobs), axes, opaque(out), 4)
        return failures == [] and bool(np.array_equal(out, values))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(round_trip, range(8)))
    child = os.fork()
    if child == 0:
        os._exit(0 if round_trip(0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
