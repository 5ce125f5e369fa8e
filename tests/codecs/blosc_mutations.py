"""Decode many damaged blosc buffers in this process, which must survive. Arguments: how many, the seed of the first."""

import sys

import numpy as np

from zardine.codecs import BloscCodec
from zardine.codecs.base import SizeLimit
from zardine.errors import CorruptionError

_CNAMES = ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def damage(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a few bytes, most of them near the start; sometimes cut the data, with the header adjusted to that."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        near = rng.random() < 0.6
        at = int(rng.integers(0, min(len(changed), 64) if near else len(changed)))
        changed[at] = int(rng.choice([0, 1, 127, 128, 255, rng.integers(256), changed[at] ^ (1 << rng.integers(8))]))
    if rng.random() < 0.2:
        del changed[int(rng.integers(16, len(changed) + 1)) :]
    if rng.random() < 0.7:
        changed[0] = 2
        changed[12:16] = len(changed).to_bytes(4, "little")
    return bytes(changed)


def main(count: int, seed: int) -> None:
    """Print how many were refused, and how many gave data."""
    rng = np.random.default_rng(seed)
    samples = []
    for cname in _CNAMES:
        for shuffle in _SHUFFLES:
            for typesize, length, blocksize in ((1, 100, 0), (4, 5000, 0), (8, 70000, 4096), (3, 999, 256)):
                values = (np.arange(length) // 7 % 251 + rng.integers(0, 3, length)).astype(np.uint8).tobytes()
                codec = BloscCodec(cname=cname, shuffle=shuffle, typesize=typesize, clevel=5, blocksize=blocksize)
                samples.append((codec, bytes(codec.encode(values)), length))
    refused = 0
    for number in range(count):
        codec, data, length = samples[number % len(samples)]
        exact = bool(rng.random() < 0.5)
        try:
            decoded = codec.decode(damage(rng, data), SizeLimit(length if exact else 4 * length, exact))
        except CorruptionError:
            refused += 1
        else:
            assert len(decoded) == length if exact else len(decoded) <= 4 * length
    print(refused, count - refused)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
