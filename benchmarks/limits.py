"""The limit: the time the codec library alone needs for the same bytes on the same cores, plus one pass over memory.

``python limits.py FOLDER LAYOUT read|write THREADS`` prints it like a worker. The encoded chunks lie in memory; threads
share them out; each decodes into a buffer of its own and copies the chunk into a fresh output, or the other way round.
No file is touched. The libraries: c-blosc (numcodecs), libzstd (zstandard), libdeflate (deflate). For chunks below
64 KB Python's own cost per call would count too much, so these have no limit.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Barrier, Thread

import deflate
import layouts
import numpy as np
import zstandard
from numcodecs import blosc
from worker import FEWEST, keep_to

MISSING = 2**64 - 1
BUDGET = 1.0


def encoded_chunks(folder: Path, layout: layouts.Layout) -> list[bytes]:
    """The encoded chunks of a stored array, in any order."""
    found = []
    for path in sorted((folder / layout.name / "c").rglob("*")):
        if path.is_file():
            blob = path.read_bytes()
            if layout.shard is None:
                found.append(blob)
                continue
            count = int(np.prod(np.array(layout.shard) // layout.chunk))
            index = np.frombuffer(blob[-16 * count - 4 : -4], "<u8").reshape(count, 2)
            found += [blob[start : start + size] for start, size in index.tolist() if start != MISSING]
    return found


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


def main() -> int:
    folder, layout = Path(sys.argv[1]), layouts.named(sys.argv[2])
    write, threads = sys.argv[3] == "write", int(sys.argv[4])
    keep_to(threads)
    blosc.use_threads = False
    chunks = encoded_chunks(folder, layout)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < FEWEST + 1 or time.perf_counter() - begin < BUDGET:
        gc.collect()
        times.append(once(chunks, layout, threads, write=write))
    print(json.dumps({"seconds": median(times[1:]), "least": min(times), "count": len(times) - 1}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
