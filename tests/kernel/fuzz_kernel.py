"""Hostile bytes for every entry that decodes: ``python tests/kernel/fuzz_kernel.py [--seconds S | --inputs N]``.

Chunks are damaged in many ways and laid one after the other, in memory or in a file; the table that says where they lie
is at times hostile as well. The kernel may refuse any of them, but what it accepts the Python codecs have to accept as
well and to give the same bytes. (Two exceptions are known and counted: ``Fuzz.lenient`` and ``Fuzz.parts``.) The Python
codecs are given everything, too, and may only raise errors of their tree. Shard indexes are damaged, and judged
likewise.

No job may end in a panic, or for lack of memory, of which there is little more than the chunks need. A crash ends the
process; the batch under way can be read from the file that ``--trace`` names. ``--seed`` and ``--batch`` repeat it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import zstandard
from cases import COMPRESSORS, CRC, Format, Step, decode_bytes, decode_chunk, encode_bytes, opaque, smooth, whole_axis
from hostile import damage, places, seal
from hostile_indexes import HostileIndex
from memory_room import MemoryRoom

from zardine.errors import CorruptionError

BATCH = 128
FILL = 0x1234
MOST_POINTS = 300
ROOM = 512
"""MiB of addresses that the process may take beside what it has at the start. Chunks have 80 KB at most, all of a batch
10 MB; the allocators of threads reserve 64 MiB at a time."""
CHECKED = "libasan" in os.environ.get("LD_PRELOAD", "")
"""Whether AddressSanitizer watches, which keeps what was freed for a while, and notes beside what is in use."""
MOST_USED = 288 if CHECKED else 96
"""MiB of memory that it may really use beside that."""
SNAPPY: list[Step] = [("blosc", "snappy", 5, shuffle, 2, 0) for shuffle in (0, 1, 2)]
CHAINS: list[list[Step]] = [
    [],
    [CRC],
    *([each] for each in COMPRESSORS),
    *([each] for each in SNAPPY),
    *([each, CRC] for each in COMPRESSORS[:5]),
    *([CRC, each] for each in COMPRESSORS[:5]),
    [CRC, COMPRESSORS[3], CRC],
]
KERNEL_ENTRIES = (
    *("decode, bytes", "decode, file", "decode_points, bytes", "decode_points, file"),
    *("decode_box, bytes", "decode_box, file"),
    *("encode, bytes", "encode, file"),
)
ENTRIES = (*KERNEL_ENTRIES, "Python codecs", "shard index")

Decoded: TypeAlias = tuple[np.ndarray, np.ndarray, dict[int, str]]
"""Which elements of each chunk, one row of them for each job, and the reasons of the jobs that failed."""


@dataclass
class Batch:
    """Chunks of ``extent`` elements, encoded by ``steps``, damaged; each at one of ``places`` (offset, length)."""

    steps: list[Step]
    extent: int
    originals: tuple[np.ndarray, np.ndarray]
    blob: bytes
    places: list[tuple[int, int]]

    def given(self, i: int) -> bytes | None:
        """What is stored for job ``i``; ``None`` where its place cannot be."""
        offset, length = self.places[i]
        inside = offset >= 0 and length >= 0 and offset + length <= len(self.blob)
        return self.blob[offset : offset + length] if inside else None

    def expected(self, i: int) -> np.ndarray | None:
        """The chunk as the Python codecs decode it; ``None`` where they refuse it."""
        if self.places[i][1] == -1:
            return np.full(self.extent, FILL, "<u2")
        data = self.given(i)
        if data is None:
            return None
        try:
            return np.frombuffer(decode_bytes(self.steps, data, 2 * self.extent), "<u2")
        except CorruptionError:
            return None


class Fuzz:
    """One run; ``counts`` says how many inputs each entry was given, ``accepted`` how many of them it took."""

    def __init__(self, seed: int, file: IO[bytes]) -> None:
        self.seed = seed
        self.file = file
        self.rng = np.random.default_rng(seed)
        self.counts: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.lenient = 0
        """Deflate streams with reserved symbols that only the kernel accepts, with the content that was encoded."""
        self.parts = 0
        """Chunks without a right checksum of which a part was asked for, which only the kernel gave."""
        self.left = 0
        """What the kernel leaves to the Python codecs, which accept it."""

    def batch(self, number: int) -> None:
        """Hand :data:`BATCH` inputs to one entry of the kernel, or to the shard index."""
        self.rng = np.random.default_rng((self.seed, number))
        entry = (*KERNEL_ENTRIES, "shard index")[number % (len(KERNEL_ENTRIES) + 1)]
        self.counts[entry] += BATCH
        if entry == "shard index":
            hostile = HostileIndex(self.rng)
            self.accepted[entry] += sum(hostile.is_accepted(hostile.shard()) for _ in range(BATCH))
            return
        batch = self.make([steps for steps in CHAINS if steps not in SNAPPY] if entry.startswith("encode") else CHAINS)
        source: Any = batch.blob
        if not entry.endswith(", bytes"):
            self.file.seek(0)
            self.file.truncate()
            self.file.write(batch.blob)
            self.file.flush()
            source = self.file.fileno()
        call = getattr(self, entry.split(",")[0])
        self.judge(entry, batch, call(batch, source))

    def make(self, chains: list[list[Step]]) -> Batch:
        """A damaged batch."""
        rng = self.rng
        steps = chains[int(rng.integers(len(chains)))]
        extent = int(rng.choice([1, 3, 8, 64, 129, 500, 2048, 5000, 40_000], p=[*[0.05] * 3, *[0.15] * 5, 0.1]))
        content = smooth(rng, (extent,), "<u2")
        if rng.random() < 0.3:
            content = rng.integers(0, 2 ** int(rng.integers(1, 16)), extent).astype("<u2")
        outer = 0
        while outer < len(steps) and steps[len(steps) - 1 - outer] == CRC:
            outer += 1
        inside = steps[: len(steps) - outer]
        originals = content, content[::-1]
        body, other = (encode_bytes(inside, each.tobytes()) for each in originals)
        if inside == [COMPRESSORS[1]] and rng.random() < 0.4:  # frames that do not say their size
            body = zstandard.ZstdCompressor(3, write_content_size=False).compress(content.tobytes())
        inputs = [seal(rng, damage(rng, steps, body, other), outer) for _ in range(BATCH)]
        return Batch(steps, extent, originals, b"".join(inputs), places(rng, [len(each) for each in inputs]))

    def pipeline(self, batch: Batch) -> Any:
        """The kernel's."""
        return Format("<u2", (0, 1), batch.steps, fill=FILL).pipeline()

    def decode(self, batch: Batch, source: Any) -> Decoded:
        """All chunks at once; at times with gaps between them."""
        count = batch.extent
        out = np.zeros((BATCH, count + 1), "<u2")[:, : count + int(self.rng.integers(2))]
        axes = [whole_axis(1, BATCH), whole_axis(count)]
        jobs = np.array([(0, *place, i, 0) for i, place in enumerate(batch.places)], np.int64)
        failures = self.pipeline(batch).decode([source], jobs, axes, opaque(out), 2)
        return np.arange(count), out[:, :count], dict(failures)

    def decode_points(self, batch: Batch, source: Any) -> Decoded:
        """The same elements of all chunks, as points."""
        count = min(batch.extent, MOST_POINTS)
        chosen = self.rng.integers(0, batch.extent, count)
        points = np.tile(chosen, BATCH)
        out = np.zeros(BATCH * count, "<u2")
        failures = self.pipeline(batch).decode_points(
            [source],
            np.array([(0, *place, i) for i, place in enumerate(batch.places)], np.int64),
            [np.ones(BATCH, np.int64), np.full(BATCH, batch.extent)],
            np.arange(BATCH + 1) * count,
            [np.zeros_like(points), points],
            np.arange(BATCH * count),
            opaque(out),
            2,
        )
        return chosen, out.reshape(BATCH, count), dict(failures)

    def decode_box(self, batch: Batch, source: Any) -> Decoded:
        """The same box of each chunk, often all of it."""
        first, count = 0, batch.extent
        if self.rng.random() < 0.6:
            first = int(self.rng.integers(batch.extent))
            count = int(self.rng.integers(1, batch.extent - first + 1))
        pipeline = self.pipeline(batch)
        out = np.zeros((BATCH, count), "<u2")
        reasons = {}
        for i, (offset, length) in enumerate(batch.places):
            block = (1, batch.extent), (0, first), opaque(out[i : i + 1])
            reason = decode_chunk(pipeline, source, offset, length, *block)
            if reason is not None:
                reasons[i] = reason
        return np.arange(first, first + count), out, reasons

    def encode(self, batch: Batch, source: Any) -> Decoded:
        """The rest of each chunk after one of its elements, if it has more than one, was changed."""
        at, count = int(self.rng.integers(batch.extent)), min(1, batch.extent - 1)
        row = [np.array([n]) for n in (batch.extent, at, count, 0)]
        jobs = np.array([(0, *place, i, 0) for i, place in enumerate(batch.places)], np.int64)
        data, offsets, lengths, failures = self.pipeline(batch).encode(
            opaque(np.full((BATCH, 1), 77, "<u2")),
            jobs,
            [whole_axis(1, BATCH), ("s", *row, 1)],
            write_empty=True,
            head=0,
            tail=0,
            threads=2,
            sources=[source],
        )
        out, reasons = np.zeros((BATCH, batch.extent), "<u2"), dict(failures)
        places = zip(
            np.frombuffer(offsets, np.uint64).tolist(), np.frombuffer(lengths, np.uint64).tolist(), strict=True
        )
        for i, (offset, length) in enumerate(places):
            if i not in reasons:
                chunk = decode_bytes(batch.steps, bytes(data[offset : offset + length]), 2 * batch.extent)
                out[i] = np.frombuffer(chunk, "<u2")
                assert not count or out[i, at] == 77
        others = np.delete(np.arange(batch.extent), slice(at, at + count))
        return others, out[:, others], reasons

    def judge(self, entry: str, batch: Batch, decoded: Decoded) -> None:
        """Compare what the kernel gives with what the Python codecs give."""
        chosen, found, reasons = decoded
        about = f"{entry} {batch.steps} {batch.extent}"
        for i in range(BATCH):
            expected = batch.expected(i)
            self.counts["Python codecs"] += 1
            self.accepted["Python codecs"] += expected is not None
            if (reason := reasons.get(i)) is not None:
                if "panic" in reason or "memory" in reason:
                    raise AssertionError(f"{about}: {reason}")
                self.left += expected is not None
                continue
            self.accepted[entry] += 1
            if expected is not None:
                if not np.array_equal(expected[chosen], found[i]):
                    raise AssertionError(f"{about}: the kernel gives other bytes for job {i}, {batch.places[i]}")
                continue
            if len(np.unique(chosen)) < batch.extent and batch.steps[:1] != [CRC]:
                self.parts += 1  # what is damaged was not decoded, or what is left of it
                continue
            # the fixed codes of deflate have reserved symbols, 286 and 287 (lengths), 30 and 31 (distances): zlib
            # refuses them, libdeflate takes some for their neighbour, but the checksum has to fit the content
            deflates = any(step[0] == "gzip" or step[:2] == ("blosc", "zlib") for step in batch.steps)
            if not deflates or not any(np.array_equal(each[chosen], found[i]) for each in batch.originals):
                raise AssertionError(f"{about}: only the kernel accepts job {i}, {batch.places[i]}")
            self.lenient += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--inputs", type=int, default=None, help="stop after so many, instead of by time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None, help="repeat this batch alone")
    parser.add_argument("--trace", type=Path, default=None, help="write the number of each batch to this file first")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    with tempfile.TemporaryFile() as file:
        if options.batch is not None:
            Fuzz(seed, file).batch(options.batch)
            return 0
        for number in range(4 * len(ENTRIES)):  # what is loaded and kept for good does not count
            Fuzz(0, file).batch(number)
        return run(Fuzz(seed, file), MemoryRoom(ROOM), options)


def run(fuzz: Fuzz, room: MemoryRoom, options: argparse.Namespace) -> int:
    """Fuzz for as long as the options say, and print what came of it."""
    start = shown = time.monotonic()
    number = 0
    print(f"fuzz: seed {fuzz.seed}", flush=True)
    while fuzz.counts.total() < options.inputs if options.inputs else time.monotonic() - start < options.seconds:
        repeat = f"--seed {fuzz.seed} --batch {number}"
        if options.trace is not None:
            options.trace.write_text(f"{repeat}\n")
        try:
            fuzz.batch(number)
        except Exception:
            print(f"fuzz: failed; to repeat: {repeat}", flush=True)
            raise
        number += 1
        if time.monotonic() - shown > 60:
            shown = time.monotonic()
            print(f"fuzz: {fuzz.counts.total():,} inputs", flush=True)
    for entry in ENTRIES:
        print(f"  {fuzz.counts[entry]:12,} {entry:22} {fuzz.accepted[entry]:12,} accepted")
    print(f"  {fuzz.left:12,} left by the kernel to the Python codecs, {fuzz.lenient} with reserved symbols of deflate")
    addresses, used = room.grown()
    print(f"fuzz: {fuzz.counts.total():,} inputs; memory grew by {used} MiB, addresses by {addresses} MiB")
    return int(used > MOST_USED)


if __name__ == "__main__":
    sys.exit(main())
