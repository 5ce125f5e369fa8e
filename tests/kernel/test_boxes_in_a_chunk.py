"""``Pipeline.decode_box`` of boxes in one chunk, against ``decode`` and NumPy."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cases import COMPRESSORS, CRC, Format, any_format, any_output, array_base, decode_chunk, opaque, smooth

KERNEL = pytest.importorskip("zardine._kernel")

U2 = Format("<u2", (0,), fill=7)
"""Little-endian elements that nothing compresses."""


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    """An open file of eight bytes."""
    (tmp_path / "file").write_bytes(bytes(range(8)))
    number = os.open(tmp_path / "file", os.O_RDWR)
    yield number
    os.close(number)


def decode_block(fmt: Format, source: Any, place: tuple[int, int], shape: Any, first: Any, out: np.ndarray) -> Any:
    return decode_chunk(fmt.pipeline(), source, *place, shape, first, opaque(out))


def block_axis(extent: int, first: int, count: int) -> tuple[Any, ...]:
    """The same along one axis, as ``decode`` takes it."""
    return ("s", *(np.array([each], np.int64) for each in (extent, first, count, 0)), 1)


def any_block(rng: np.random.Generator, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shape of a chunk, first element and shape of a block."""
    shape = tuple(int(n) for n in rng.choice([1, 2, 5, 8, 16], ndim))
    if rng.random() < 0.3:
        return shape, (0,) * ndim, shape
    first = tuple(int(rng.integers(n)) for n in shape)
    counts = tuple(int(rng.integers(1, n - start + 1)) for n, start in zip(shape, first, strict=True))
    return shape, first, counts


@pytest.mark.parametrize("seed", range(200))
def test_like_decode_and_numpy(seed: int, fd: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(0, 6))
    fmt = any_format(rng, ndim, seed)
    shape, first, counts = any_block(rng, ndim)
    chunk = smooth(rng, shape, fmt.dtype)
    encoded = fmt.encode(chunk)
    offset = int(rng.integers(0, 50))
    os.pwrite(fd, rng.bytes(offset) + encoded + b"more", 0)
    expected = chunk[tuple(slice(start, start + count) for start, count in zip(first, counts, strict=True))]

    out = any_output(rng, counts, fmt.dtype)
    memory = array_base(out)
    memory[...] = 0xAB
    assert decode_block(fmt, fd, (offset, len(encoded)), shape, first, out) is None
    assert out.tobytes() == expected.tobytes()
    opaque(out)[...] = np.void(b"\xab" * fmt.dtype.itemsize)
    assert (memory == 0xAB).all()  # nothing else was written

    stored = os.pread(fd, 10**7, 0)
    for source in stored, bytearray(stored), memoryview(stored), np.frombuffer(stored, np.uint8):
        assert decode_block(fmt, source, (offset, len(encoded)), shape, first, out) is None
        assert out.tobytes() == expected.tobytes()

    axes = [block_axis(*each) for each in zip(shape, first, counts, strict=True)]
    jobs = np.array([[0, offset, len(encoded), *[0] * ndim]], np.int64)
    assert fmt.pipeline().decode([fd], jobs, axes, opaque(out), 1) == []
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_fails_as_decode_does(seed: int, fd: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(0, 4))
    fmt = any_format(rng, ndim, seed)
    shape = tuple(int(n) for n in rng.integers(1, 9, ndim))
    encoded = bytearray(fmt.encode(smooth(rng, shape, fmt.dtype)))
    encoded[int(rng.integers(len(encoded)))] ^= 1 << int(rng.integers(8))
    os.pwrite(fd, encoded, 0)
    length = len(encoded) - int(rng.integers(2))
    out, again = np.zeros(shape, fmt.dtype), np.zeros(shape, fmt.dtype)
    reason = decode_block(fmt, fd, (0, length), shape, (0,) * ndim, out)
    axes = [block_axis(n, 0, n) for n in shape]
    jobs = np.array([[0, 0, length, *[0] * ndim]], np.int64)
    failures = fmt.pipeline().decode([fd], jobs, axes, opaque(again), 1)
    assert failures == ([] if reason is None else [(0, reason)])
    assert reason is not None or out.tobytes() == again.tobytes()


@pytest.mark.parametrize("steps", [[], [CRC], [CRC, CRC], [COMPRESSORS[1], CRC]], ids=str)
@pytest.mark.parametrize("swap", [False, True])
def test_large_chunks(steps: list[Any], swap: bool, fd: int) -> None:
    """Those that nothing compresses are read right into the output where they are wanted whole."""
    fmt = Format("<u2", (0, 1), steps, swap)
    chunk = np.random.default_rng(4).integers(0, 2**16, (50, 1000), dtype="<u2")
    encoded = fmt.encode(chunk)
    os.pwrite(fd, b"0123456" + encoded, 0)
    for block in np.s_[:, :], np.s_[10:20, :], np.s_[:, 3:4], np.s_[7:9, 20:900]:
        shape = chunk[block].shape
        for out in np.zeros(shape, "<u2"), np.zeros(shape[::-1], "<u2").T:
            first = tuple(each.start or 0 for each in block)
            assert decode_block(fmt, fd, (7, len(encoded)), chunk.shape, first, out) is None
            assert (out == chunk[block]).all()
            assert decode_block(fmt, fd, (7, len(encoded) - 1), chunk.shape, first, out) is not None
            assert decode_block(fmt, fd, (8, len(encoded)), chunk.shape, first, out) is not None
    if steps:
        os.pwrite(fd, b"\xff\xff", 50_000)
        assert decode_block(fmt, fd, (7, len(encoded)), chunk.shape, (0, 0), np.zeros_like(chunk)) is not None


def test_a_length_of_minus_one_stands_for_the_fill_value(fd: int) -> None:
    out = np.zeros(3, "<u2")
    for any_fd, offset in [(fd, 0), (fd, -5), (fd, 2**62), (-1, 0)]:  # neither is looked at
        out[...] = 0
        assert decode_block(U2, any_fd, (offset, -1), (2**40,), (5,), out) is None
        assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    "place", [(0, 9), (1, 8), (8, 1), (0, 2**63 - 1), (2**63 - 1, 8), (-1, 8), (-(2**63), 8), (0, -2), (0, -(2**63))]
)
def test_places_outside_of_the_file(place: tuple[int, int], fd: int) -> None:
    assert isinstance(decode_block(U2, fd, place, (4,), (0,), np.zeros(4, "<u2")), str)


def test_files_that_cannot_be_read(fd: int, tmp_path: Path) -> None:
    def reason(number: int) -> str:
        found = decode_block(U2, number, (0, 8), (4,), (0,), np.zeros(4, "<u2"))
        assert isinstance(found, str)
        return found

    read, write = os.pipe()
    folder = os.open(tmp_path, os.O_RDONLY)
    blind = os.open(tmp_path / "file", os.O_WRONLY)
    closed = os.dup(fd)
    os.close(closed)
    try:
        for number in (-1, closed, 10**6, read, write, folder):
            assert reason(number) == f"file descriptor {number} is no regular file"
        assert "reading failed" in reason(blind)
    finally:
        for number in (read, write, folder, blind):
            os.close(number)
    os.ftruncate(fd, 7)
    assert "beyond the end" in reason(fd)


def test_bytes_that_are_not_there_and_bytes_that_lie_in_the_output() -> None:
    stored = bytes(range(8))
    for source in stored, bytearray(stored):
        for place in (0, 9), (1, 8), (8, 1), (2**63 - 1, 8), (-1, 8), (0, -2):
            assert isinstance(decode_block(U2, source, place, (4,), (0,), np.zeros(4, "<u2")), str)
    out = np.zeros(4, "<u2")
    with pytest.raises(ValueError, match="overlaps"):
        decode_block(U2, out.view("u1"), (0, 8), (4,), (0,), out)
    with pytest.raises(ValueError, match="contiguous"):
        decode_block(U2, np.zeros(16, "u1")[::2], (0, 8), (4,), (0,), out)


def test_misuse_is_a_value_error(fd: int) -> None:
    out = np.zeros(4, "V2")
    pipeline = U2.pipeline()
    assert decode_chunk(pipeline, fd, 0, 8, (4,), (0,), out) is None
    read_only = out.copy()
    read_only.flags.writeable = False
    for shape, first, into in [
        ((), (0,), out),
        ((4,), (), out),
        ((4, 1), (0, 0), out.reshape(4, 1)),  # the pipeline has one axis
        ((4, 1), (0,), out),
        ((4,), (0, 0), out),
        ((4,), (0,), out.reshape(2, 2)),
        ((4,), (0,), np.zeros((), "V2")),
        ((4,), (0,), out.view("V1")),
        ((4,), (0,), out.view("V4")),
        ((4,), (-1,), out),
        ((4,), (1,), out),  # leaves the chunk
        ((4,), (5,), out[:0]),
        ((3,), (0,), out),
        ((0,), (0,), out),
        ((-4,), (0,), out),
        ((4,), (2**63 - 1,), out),
        ((4,), (-(2**63),), out),
        ((-(2**63),), (0,), out),
        ((4,), (0,), read_only),
    ]:
        with pytest.raises((ValueError, BufferError, OverflowError)):
            decode_chunk(pipeline, fd, 0, 8, shape, first, into)
    for arguments in [
        ("0", 0, 8, (4,), (0,), out),
        (fd, 0, 8, (4,), (0.0,), out),
        (fd, 0, 8, (4,), (0,), "text"),
    ]:
        with pytest.raises(TypeError):
            decode_chunk(pipeline, *arguments)
    with pytest.raises(ValueError, match="descriptor"):
        decode_chunk(pipeline, 2**31, 0, 8, (4,), (0,), out)
    for arguments in [(fd, 2**63, 8, (4,), (0,), out), (fd, 0, 8, (2**63,), (0,), out)]:
        with pytest.raises(OverflowError):
            decode_chunk(pipeline, *arguments)


def test_huge_claims_take_no_memory(fd: int) -> None:
    """Chunks as large as an address space, of which eight bytes are stored."""
    for steps in ([], [CRC], *([each] for each in COMPRESSORS)):
        pipeline = Format("u1", (0, 1), steps).pipeline()
        for extent in (2**30, 2**31, 2**62, 2**63 - 1):
            first = (extent - 1, extent - 1)
            assert decode_chunk(pipeline, fd, 0, 8, (extent, extent), first, np.zeros((1, 1), "V1")) is not None


def known(path: Path, fd: int | None = None) -> Any:
    status = os.stat(path)
    identity = status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return KERNEL.KnownFile(os.fsencode(path), identity, fd)


def test_a_known_file_has_to_be_what_it_was(fd: int, tmp_path: Path) -> None:
    """Its path means it still, nobody has edited it nor does so now, and the same of the document."""
    path, other = tmp_path / "file", tmp_path / "document"
    other.write_text("{}")
    pipeline, out = U2.pipeline(), np.zeros(4, "V2")

    def reasons(source: Any, **asked: Any) -> set[bool]:
        """Whether reading fails."""
        return {decode_chunk(pipeline, source, 0, 8, (4,), (0,), out, **asked) is not None}

    file, document = known(path, fd), known(other)
    assert reasons(file, document=document, is_checked=False) == {False}
    assert KERNEL.are_current([file, document])
    other.write_text("[]")
    assert reasons(file, document=document) == {True} == reasons(file, document=document, is_checked=False)
    assert reasons(file) == {False}
    assert not KERNEL.are_current([file, document])
    with open(path, "r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert reasons(file, is_checked=False) == {True}  # somebody is at it
        assert reasons(file) == {False}
        os.utime(writer.fileno(), ns=(5, 5))
    assert reasons(file) == {True} == reasons(file, is_checked=False)
    file = known(path, fd)
    assert reasons(file, is_checked=False) == {False}
    path.rename(tmp_path / "gone")
    assert reasons(file) == {True}
    path.write_bytes(bytes(8))
    assert reasons(file) == {True} == reasons(file, document=document)
    with pytest.raises(ValueError, match="closed"):
        reasons(known(path))
    with pytest.raises(ValueError, match="nobody looks at it"):  # what does not look takes none
        pipeline.decode([file], np.array([[0, 0, 8, 0]]), [block_axis(4, 0, 4)], out, 1)
    with pytest.raises(ValueError, match="NUL"):
        KERNEL.KnownFile(b"a\0b", (1, 2, 3, 4, 5))
