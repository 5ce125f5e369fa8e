"""How fast the kernel is: ``python tests/kernel/bench_kernel.py [NAME ...]`` prints a table. No test.

Decodes 108 MB of uint16 (384 cubed, noisy microscopy-like images) out of files of 192 cubed in the page cache, and
encodes them; beside it, in processor time, a run in one thread and what the codec library alone needs.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from typing import Any

import numpy as np

import zardine._kernel as kernel

SIDE, SHARD = 384, 192
CODECS: dict[str, list[tuple[Any, ...]]] = {
    "lz4": [("blosc", "lz4", 5, 1, 2, 0)],
    "lz4+crc": [("blosc", "lz4", 5, 1, 2, 0), ("crc32c",)],
    "lz4-bit": [("blosc", "lz4", 5, 2, 2, 0)],
    "blosc-zstd": [("blosc", "zstd", 3, 1, 2, 0)],
    "zstd": [("zstd", 3, False)],
    "gzip": [("gzip", 5)],
    "raw": [],
    "raw+crc": [("crc32c",)],
}


def image() -> np.ndarray:
    """Blurred blobs on a background, with shot noise."""
    rng = np.random.default_rng(0)
    axis = np.linspace(0, 12, SIDE, dtype=np.float32)
    waves = np.sin(axis)[:, None, None] + np.sin(1.7 * axis)[:, None] + np.sin(2.3 * axis)
    signal = 200 + 150 * np.clip(waves, 0, None) ** 2
    return (signal + rng.normal(0, 1, signal.shape).astype(np.float32) * np.sqrt(signal) / 4).astype(np.uint16)


def best(work: Callable[[], Any], rounds: int = 9, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several times, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = clock()
        work()
        times.append(clock() - start)
    return 1000 * min(times)


def library(steps: list[tuple[Any, ...]]) -> Callable[[Any, Any], Any] | None:
    """The decompressor of the library alone."""
    compressors = [step for step in steps if step[0] != "crc32c"]
    if not compressors:
        return None
    if compressors[0][0] == "blosc":
        from numcodecs import blosc

        blosc.use_threads = False
        return lambda data, out: blosc.decompress(data, out)
    if compressors[0][0] == "zstd":
        from numcodecs import zstd

        return lambda data, out: zstd.decompress(data, out)
    return lambda data, out: zlib.decompress(data, 31)


def measure(name: str, chunk: int, values: np.ndarray) -> str:
    """A line of the table."""
    steps = CODECS[name]
    out = np.empty_like(values)
    pipeline = kernel.Pipeline(
        item_size=2, word_size=2, swap=False, is_bool=False, order=(0, 1, 2), steps=steps, fill=b"\0\0"
    )
    per_shard, count = SHARD // chunk, SIDE // chunk
    starts = np.arange(count) * chunk
    axes = [("s", np.full(count, chunk), np.zeros(count, np.int64), np.full(count, chunk), starts, 1)] * 3
    jobs, stored, every = [], [], []
    with ExitStack() as files:
        sources = []
        for number, shard in enumerate(product(range(SIDE // SHARD), repeat=3)):
            rows = np.array(list(product(*(range(s * per_shard, (s + 1) * per_shard) for s in shard))), np.int64)
            data, *places, failures = pipeline.encode(
                values.view("V2"), rows, axes, write_empty=True, head=0, tail=0, threads=2
            )
            assert not failures
            offsets, lengths = (np.frombuffer(each, np.int64) for each in places)
            jobs.append(np.column_stack((np.full(len(rows), number), offsets, lengths, rows)))
            sums = 4 * (steps[-1:] == [("crc32c",)])
            stored += [bytes(data[start : start + n - sums]) for start, n in zip(offsets, lengths, strict=True)]
            every.append(rows)
            file = files.enter_context(tempfile.TemporaryFile())
            file.write(data)
            file.flush()
            sources.append(file.fileno())
        table, rows = np.concatenate(jobs), np.concatenate(every)

        def decode(threads: int) -> None:
            assert pipeline.decode(sources, table, axes, out.view("V2"), threads) == []

        one, two = best(lambda: decode(1)), best(lambda: decode(2))
        processor = best(lambda: decode(1), 5, time.process_time)
        assert np.array_equal(out, values)
    alone = 0.0
    if (decompress := library(steps)) is not None:
        space = np.empty(2 * chunk**3, np.uint8)
        alone = best(lambda: [decompress(each, space) for each in stored], 3, time.process_time)

    def encode() -> None:
        pipeline.encode(values.view("V2"), rows, axes, write_empty=False, head=0, tail=0, threads=2)

    write, write_processor = best(encode, 3), best(encode, 3, time.process_time)
    return (
        f"{name:11}{2 * chunk**3 // 1024:5} KB  x{values.nbytes / sum(map(len, stored)):4.2f}"
        f"  decode {one:6.1f} {two:6.1f} ms, processor {processor:6.1f}, library {alone:6.1f}"
        f"  encode {write:6.1f} ms, processor {write_processor:6.1f}"
    )


def main(names: list[str]) -> None:
    """Print the table."""
    values = image()
    for name, chunk in product(names or list(CODECS), (16, 32, 64, 96)):
        print(measure(name, chunk, values), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
