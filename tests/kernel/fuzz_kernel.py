"""Hostile bytes for the kernel: ``python tests/kernel/fuzz_kernel.py [SECONDS [SEED]]``.

Encoded chunks are damaged in many ways, checksums outside often made to fit again. The kernel may refuse any of them,
but where it accepts one, the Python codecs have to accept it as well and give the same bytes. (One exception is known
and counted: see ``Fuzz.lenient``.) Crashes, hangs and large allocations (the address space is limited) show by
themselves.
"""

from __future__ import annotations

import resource
import struct
import sys
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

if __package__:
    from .cases import COMPRESSORS, CRC, Format, Step, decode_bytes, encode_bytes, opaque, smooth
else:
    sys.path.insert(0, str(Path(__file__).parent))
    from cases import COMPRESSORS, CRC, Format, Step, decode_bytes, encode_bytes, opaque, smooth

BATCH = 128
SPACE = 3 << 30
CHAINS: list[list[Step]] = [
    [],
    [CRC],
    *([each] for each in COMPRESSORS),
    *([each, CRC] for each in COMPRESSORS[:5]),
    *([CRC, each] for each in COMPRESSORS[:5]),
    [CRC, COMPRESSORS[3], CRC],
]
WORDS = (0, 1, 2, 4, 15, 16, 17, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


class Fuzz:
    """One run; ``counts`` says what came of how many inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.counts: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.lenient = 0
        """Deflate streams with reserved symbols that only the kernel accepts, with the content that was encoded."""

    def batch(self) -> None:
        """Damage a chunk in :data:`BATCH` ways."""
        rng = self.rng
        steps = CHAINS[int(rng.integers(len(CHAINS)))]
        extent = int(rng.choice([1, 3, 8, 64, 129, 500, 2048, 5000, 40_000], p=[*[0.05] * 3, *[0.15] * 5, 0.1]))
        content = smooth(rng, (extent,), "<u2")
        if rng.random() < 0.3:
            content = rng.integers(0, 2 ** int(rng.integers(1, 16)), extent).astype("<u2")
        outer = 0
        while outer < len(steps) and steps[len(steps) - 1 - outer] == CRC:
            outer += 1
        body = encode_bytes(steps[: len(steps) - outer], content.tobytes())
        if steps[:1] == [COMPRESSORS[1]] and rng.random() < 0.4:
            # frames that do not say their size
            body = zstandard.ZstdCompressor(3, write_content_size=False).compress(content.tobytes())
        other = encode_bytes(steps[: len(steps) - outer], content[::-1].tobytes())
        inputs = [self.seal(self.damage(steps, body, other), outer) for _ in range(BATCH)]
        self.check(steps, extent, inputs, (content.tobytes(), content[::-1].tobytes()))

    def damage(self, steps: list[Step], body: bytes, other: bytes) -> bytes:
        """``body`` with one to three kinds of damage."""
        rng = self.rng
        data = bytearray(body)
        for _ in range(int(rng.integers(0, 4))):
            kind = int(rng.integers(9))
            # the first bytes hold headers and tables
            reach = len(data) if rng.random() < 0.5 else min(len(data), 48)
            at = int(rng.integers(reach)) if reach else 0
            if kind == 0 and data:
                data[at] ^= 1 << int(rng.integers(8))
            elif kind == 1 and data:
                data[at] = int(rng.integers(256))
            elif kind == 2:
                del data[at:]
            elif kind == 3:
                del data[at : at + int(rng.integers(1, 20))]
            elif kind == 4:
                data[at:at] = rng.bytes(int(rng.integers(1, 20)))
            elif kind == 5:
                data[at : at + 4] = struct.pack("<I", int(rng.choice(WORDS)))
            elif kind == 6:
                data[at:] = other[at:]
            elif kind == 7:
                data += data[at:] if rng.random() < 0.5 else other
            elif kind == 8 and len(data) >= 4:
                place = at // 4 * 4
                (word,) = struct.unpack_from("<I", data.ljust(place + 4, b"\0"), place)
                data[place : place + 4] = struct.pack("<I", (word + int(rng.integers(-3, 4))) % 2**32)
        name = steps[0][0] if steps and steps[0] != CRC else steps[-1][0] if len(steps) == 2 else ""
        if name == "blosc" and len(data) >= 16 and rng.random() < 0.7:
            data[12:16] = struct.pack("<I", len(data))  # the size of the whole, which is checked first
        if name == "gzip" and len(data) > 18 and rng.random() < 0.7:
            data = bytearray(_with_trailer(bytes(data)))
        return bytes(data)

    def seal(self, body: bytes, outer: int) -> bytes:
        """Checksums around ``body``, mostly right."""
        data = encode_bytes([CRC] * outer, body)
        if outer and self.rng.random() < 0.05:
            data = data[:-1] + bytes([data[-1] ^ 1])
        return data

    def check(self, steps: list[Step], extent: int, inputs: list[bytes], contents: tuple[bytes, bytes]) -> None:
        """Hand all to the kernel, and what it accepts to the Python codecs."""
        count = len(inputs)
        out = np.zeros((count, extent + 1), "<u2")[:, : extent + int(self.rng.integers(2))]
        axes = [_rows(1, count), ("s", *(np.array([each]) for each in (extent, 0, extent, 0)), 1)]
        pipeline = Format("<u2", (0, 1), steps).pipeline()
        jobs = np.array([(i, 0, len(each), i, 0) for i, each in enumerate(inputs)], np.int64)
        if self.rng.random() < 0.2:
            points = np.tile(np.arange(extent), count)
            flat = np.zeros(count * extent, "<u2")
            failures = pipeline.decode_points(
                inputs,
                np.ascontiguousarray(jobs[:, :4]),
                [np.ones(count, np.int64), np.full(count, extent)],
                np.arange(count + 1) * extent,
                [np.zeros_like(points), points],
                np.arange(count * extent),
                opaque(flat),
                2,
            )
            out = flat.reshape(count, extent)
        else:
            failures = pipeline.decode(inputs, jobs, axes, opaque(out), 2)
        failed = {job for job, _ in failures}
        name = "+".join(str(step[0] if step[0] != "blosc" else f"blosc-{step[1]}") for step in steps) or "raw"
        self.counts[name] += count
        for i, data in enumerate(inputs):
            if i in failed:
                continue
            self.accepted[name] += 1
            try:
                decoded = decode_bytes(steps, data, 2 * extent)
            except Exception as error:
                # the fixed codes of deflate have reserved symbols, 286 and 287 (lengths), 30 and 31 (distances): zlib
                # refuses them, libdeflate takes some for their neighbour, but the checksum has to fit the content
                deflates = any(step[0] == "gzip" or step[:2] == ("blosc", "zlib") for step in steps)
                if deflates and out[i, :extent].tobytes() in contents:
                    self.lenient += 1
                    continue
                raise AssertionError(f"{steps} {extent}: only the kernel accepts {data.hex()}") from error
            if decoded != out[i, :extent].tobytes():
                raise AssertionError(f"{steps} {extent}: the kernel gives other bytes for {data.hex()}")


def _rows(extent: int, count: int) -> tuple[Any, ...]:
    rows = np.arange(count, dtype=np.int64)
    full = np.full(count, extent, np.int64)
    return ("s", full, np.zeros(count, np.int64), full, rows * extent, 1)


def _with_trailer(data: bytes) -> bytes:
    """A gzip member whose deflate stream, as far as zlib understands it, has the right checksum and size."""
    stream = zlib.decompressobj(-15)
    try:
        content = stream.decompress(data[10:], 1 << 20)
    except zlib.error:
        return data
    if not stream.eof:
        return data
    end = len(data) - len(stream.unused_data)
    return data[:end] + struct.pack("<II", zlib.crc32(content), len(content))


def main(seconds: float, seed: int) -> None:
    """Fuzz for some time."""
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    fuzz = Fuzz(seed)
    end = time.monotonic() + seconds
    shown = time.monotonic()
    while time.monotonic() < end:
        fuzz.batch()
        if time.monotonic() - shown > 60:
            shown = time.monotonic()
            print(sum(fuzz.counts.values()), "inputs", flush=True)
    for name, count in sorted(fuzz.counts.items()):
        print(f"{name:24} {count:9} inputs {fuzz.accepted[name]:9} accepted")
    print(f"{'reserved symbols':24} {fuzz.lenient:9}")
    print(f"{'all':24} {sum(fuzz.counts.values()):9} inputs {sum(fuzz.accepted.values()):9} accepted")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
