"""The limit: the time the codec library alone needs for the same bytes on the same cores, plus one pass over memory.

``python limits.py FOLDER WORKLOAD THREADS`` prints it like a worker. The encoded chunks lie in memory; threads share
out those that the workload touches; each decodes into a buffer of its own and copies the chunk into a fresh output, or
the other way round. No file is touched. Of single chunks, and parts of them, one thread reads one after the other out
of the open file and decodes it; what needs no decoding is read only as far as it is asked for. Whoever decodes a part
of a chunk can be faster than this. The libraries: c-blosc (numcodecs), libzstd (zstandard), libdeflate (deflate). For
chunks below 64 KB Python's own cost per call would count too much, so these have no limit.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Barrier, Thread

import deflate
import layouts
import numpy as np
import zstandard
from implementations.protocol import Implementation
from numcodecs import blosc
from operations import Operation, Read, ReadChunk, ReadPoints, Setting, box_of
from worker import FEWEST, keep_to
from workloads import WORKLOADS, operation

MISSING = 2**64 - 1
BUDGET = 0.5


class Nothing(Implementation):
    """Of an operation the limit needs only what it would touch."""

    def open(self, path, *, write=False):
        return None

    def read(self, array, box):
        raise NotImplementedError

    write = append = read


@dataclass(frozen=True)
class Stored:
    """Where the encoded bytes of a chunk are."""

    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), self.size, self.offset)


def stored_chunks(folder: Path, layout: layouts.Layout) -> dict[tuple[int, ...], Stored]:
    """The encoded chunks of a stored array by their places in the grid of chunks."""
    found = {}
    base = folder / layout.name / "c"
    for path in sorted(base.rglob("*")):
        if not path.is_file():
            continue
        place = tuple(map(int, path.relative_to(base).parts))
        if layout.shard is None:
            found[place] = Stored(path, 0, path.stat().st_size)
            continue
        grid = np.array(layout.shard) // layout.chunk
        table = path.read_bytes()[-16 * int(grid.prod()) - 4 : -4]
        for row, (start, size) in enumerate(np.frombuffer(table, "<u8").reshape(-1, 2).tolist()):
            if start != MISSING:
                within = np.unravel_index(row, grid)
                found[tuple((np.array(place) * grid + within).tolist())] = Stored(path, start, size)
    return found


def touched(places: Iterable[tuple[int, ...]], operation: Operation, layout: layouts.Layout) -> list[tuple[int, ...]]:
    """Those of the chunks that an operation reads, or all that it writes."""
    if isinstance(operation, ReadPoints):
        chunks = [(axis // size).tolist() for axis, size in zip(operation.points, layout.chunk, strict=True)]
        wanted = set(zip(*chunks, strict=True))
        return [place for place in places if place in wanted]
    box = operation.box if isinstance(operation, Read) else None
    if box is None:
        return list(places)
    ranges = [
        range(side.start // size, (side.stop - 1) // size + 1) for side, size in zip(box, layout.chunk, strict=True)
    ]
    return [place for place in places if all(i in each for i, each in zip(place, ranges, strict=True))]


def decoder(codec: str, nbytes: int) -> Callable[[bytes], object]:
    """A function of one thread: from an encoded chunk to its bytes."""
    if codec == "lz4":
        scratch = np.empty(nbytes, np.uint8)
        return lambda chunk: blosc.decompress(chunk, scratch)
    if codec == "zstd":
        context = zstandard.ZstdDecompressor()
        return lambda chunk: context.decompress(chunk, max_output_size=nbytes)
    if codec == "gzip":
        return lambda chunk: deflate.gzip_decompress(chunk, nbytes)
    return lambda chunk: chunk


def encoder(codec: str, itemsize: int) -> Callable[[np.ndarray], object]:
    """A function of one thread: from a chunk to its encoded bytes."""
    if codec == "lz4":
        return lambda chunk: blosc.compress(chunk.view(f"V{itemsize}"), b"lz4", 5, 1, 0, typesize=itemsize)
    if codec == "zstd":
        context = zstandard.ZstdCompressor(level=3, write_checksum=False)
        return lambda chunk: context.compress(chunk)
    if codec == "gzip":
        return lambda chunk: deflate.gzip_compress(chunk, 5)
    return lambda chunk: chunk


def once(chunks: list[bytes], layout: layouts.Layout, threads: int, *, write: bool) -> float:
    """Seconds for all chunks."""
    size = int(np.prod(layout.chunk)) * layout.itemsize
    start = Barrier(threads + 1)
    out = np.empty(len(chunks) * size, np.uint8)

    def work(number: int) -> None:
        decode, encode = decoder(layout.codec, size), encoder(layout.codec, layout.itemsize)
        buffer = np.empty(size, np.uint8)
        start.wait()
        for i in range(number, len(chunks), threads):
            if not write:
                out[i * size : (i + 1) * size] = np.frombuffer(decode(chunks[i]), np.uint8)
            else:
                buffer[:] = plain[i]
                encode(buffer)

    plain = [np.array(np.frombuffer(decoder(layout.codec, size)(chunk), np.uint8)) for chunk in chunks] if write else []
    workers = [Thread(target=work, args=(number,)) for number in range(threads)]
    for each in workers:
        each.start()
    start.wait()
    begin = time.perf_counter()
    for each in workers:
        each.join()
    return time.perf_counter() - begin


def each_chunk(stored: dict[tuple[int, ...], Stored], layout: layouts.Layout, operation: ReadChunk) -> list[float]:
    """Seconds for each chunk, or part of one, that the operation reads."""
    size = int(np.prod(layout.chunk)) * layout.itemsize
    decode = decoder(layout.codec, size)
    with ExitStack() as opened:
        files = {
            path: opened.enter_context(path.open("rb")).fileno() for path in {each.path for each in stored.values()}
        }
        times = []
        for place, box in zip(operation.places, operation.boxes, strict=True):
            at = stored[tuple(place)]
            whole = layout.codec != "raw" or box == box_of(place, layout.chunk)
            # of a raw part the least that one call can read: a row of it
            length = at.size if whole else (box[-1].stop - box[-1].start) * layout.itemsize
            start = time.perf_counter()
            out = np.empty([side.stop - side.start for side in box], f"V{layout.itemsize}")
            chunk = np.frombuffer(decode(os.pread(files[at.path], length, at.offset)), out.dtype)
            if whole:
                firsts = [side.start % extent for side, extent in zip(box, layout.chunk, strict=True)]
                inner = [slice(first, first + count) for first, count in zip(firsts, out.shape, strict=True)]
                out[...] = chunk.reshape(layout.chunk)[tuple(inner)]
            times.append(time.perf_counter() - start)
    return times[operation.warm_up :]


def main() -> int:
    folder, workload, threads = Path(sys.argv[1]), WORKLOADS[sys.argv[2]], int(sys.argv[3])
    layout = layouts.named(workload.layout)
    write = workload.kind.startswith("write")
    keep_to(threads)
    blosc.use_threads = False
    stored = stored_chunks(folder, layout)
    do = None if write else operation(workload.kind, Setting(Nothing(threads), layout, folder, folder, ""))
    if isinstance(do, ReadChunk):
        times = each_chunk(stored, layout, do)
    else:
        chunks = [stored[place].read() for place in (stored if do is None else touched(stored, do, layout))]
        times = []
        begin = time.perf_counter()
        while len(times) < FEWEST + 1 or time.perf_counter() - begin < BUDGET:
            gc.collect()
            times.append(once(chunks, layout, threads, write=write))
        del times[0]
    print(json.dumps({"seconds": median(times), "least": min(times), "count": len(times)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
