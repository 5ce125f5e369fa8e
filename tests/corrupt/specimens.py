"""Small stored arrays to damage, and the rule that reading a damaged one must follow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import zardine
from effort import SOAK
from zardine.errors import CorruptionError

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
ZSTD_SUM = {"name": "zstd", "configuration": {"level": 3, "checksum": True}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}

GRID = (2, 2)
LARGE_GRID = (3, 4)
CHUNK = (2, 4)


def blosc(cname: str, shuffle: str = "shuffle") -> dict[str, Any]:
    configuration = {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 2, "blocksize": 0}
    return {"name": "blosc", "configuration": configuration}


def sharding(
    chunk: tuple[int, ...], codecs: list[Any], location: str = "end", index: list[Any] | None = None
) -> dict[str, Any]:
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(chunk),
            "codecs": codecs,
            "index_codecs": [LITTLE, CRC] if index is None else index,
            "index_location": location,
        },
    }


CHAINS: dict[str, list[Any]] = {
    "raw": [LITTLE, CRC],
    "big": [BIG, CRC],
    "transpose": [TRANSPOSE, LITTLE, CRC],
    "gzip": [LITTLE, GZIP, CRC],
    "zstd": [LITTLE, ZSTD, CRC],
    "zstd-sum": [LITTLE, ZSTD_SUM, CRC],
    "blosc-lz4": [LITTLE, blosc("lz4"), CRC],
    "blosc-zstd": [LITTLE, blosc("zstd", "bitshuffle"), CRC],
    "crc-inside": [LITTLE, CRC, GZIP],
}
"""What a chunk goes through; each with a checksum of the values or of the stored bytes."""


@dataclass(frozen=True)
class Specimen:
    """One stored array of one object at ``key``: its document, its values, the stored bytes."""

    document: dict[str, Any]
    values: np.ndarray[Any, Any]
    key: str
    data: bytes
    regions: tuple[tuple[slice, ...], ...]
    """What one inner chunk holds, for each."""
    earlier: tuple[np.ndarray[Any, Any], ...] = ()
    """The values before each write that changed the object."""

    def store(self, data: bytes | None = None) -> zardine.storage.MemoryStore:
        """A store with the array, the object replaced by ``data``."""
        document = json.dumps(self.document).encode()
        return zardine.storage.MemoryStore(
            {"a/zarr.json": document, f"a/{self.key}": self.data if data is None else data}
        )

    def judge(self, found: np.ndarray[Any, Any], region: Any) -> str:
        """Whether what was read of ``region`` is right, older, another chunk's, or wrong."""
        if np.array_equal(found, self.values[region]):
            return "right"
        if any(np.array_equal(found, values[region]) for values in self.earlier):
            return "older"
        chunks = [self.values[each] for each in self.regions]
        pieces = [found[each] for each in self.regions] if region is ... else [found]
        moved = all(any(np.array_equal(piece, chunk) for chunk in chunks) for piece in pieces)
        return "moved" if moved else "wrong"


def make(codecs: list[Any], *, grid: tuple[int, int] = GRID, chunk: tuple[int, int] = CHUNK) -> Specimen:
    """An array of one shard (or one chunk) of ``grid`` inner chunks; the last but one is empty."""
    shape = tuple(n * size for n, size in zip(grid, chunk, strict=True))
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 7,
        "codecs": codecs,
        "attributes": {},
    }
    values = (np.arange(np.prod(shape), dtype=np.uint16) * 5 // 3 + 256).reshape(shape)
    starts = product(*(range(n) for n in grid))
    regions = tuple(tuple(slice(i * n, (i + 1) * n) for i, n in zip(each, chunk, strict=True)) for each in starts)
    values[regions[-2]] = 7
    store = {"a/zarr.json": json.dumps(document).encode()}
    zardine.open_array(zardine.storage.MemoryStore(store), path="a", mode="r+")[...] = values
    return Specimen(document, values, "c/0/0", bytes(store["a/c/0/0"]), regions)


def edited(specimen: Specimen, strategy: str) -> Specimen:
    """The same shard after six writes to single chunks: one of them twice, one emptied, the empty one filled."""
    values = specimen.values.copy()
    stages = []
    with tempfile.TemporaryDirectory() as folder:
        store = zardine.storage.LocalStore(folder)
        for key, value in (
            ("a/zarr.json", json.dumps(specimen.document).encode()),
            (f"a/{specimen.key}", specimen.data),
        ):
            store.set(key, value)
        config = {"write_strategy": strategy, "most_unused": 1.0}
        array = zardine.open_array(store, path="a", mode="r+", config=config)
        for number, row in enumerate((2, -3, 2, -2, -4, 0)):
            stages.append(values.copy())
            region = specimen.regions[row]
            values[region] = 7 if row == -4 else values[region][::-1] + 3000 + 7 * number
            array[region] = values[region]
        data = store.get(f"a/{specimen.key}")
    assert data is not None
    return replace(specimen, values=values, data=bytes(data), earlier=tuple(stages))


def sharded() -> dict[str, list[Any]]:
    """The codec lists of checksummed shards."""
    chains: dict[str, list[Any]] = {}
    for name, codecs in CHAINS.items():
        for location in ("end", "start") if name in ("raw", "zstd") or SOAK else ("end",):
            chains[f"{name}-{location}"] = [sharding(CHUNK, codecs, location)]
    chains["big-index"] = [sharding(CHUNK, [BIG, CRC], "start", [BIG, CRC])]
    chains["transposed-index"] = [
        sharding(
            CHUNK, [LITTLE, CRC], "end", [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, LITTLE, CRC]
        )
    ]
    chains["transpose-before"] = [TRANSPOSE, sharding(CHUNK[::-1], [LITTLE, CRC])]
    chains["nested"] = [sharding(CHUNK, [sharding((1, 4), [LITTLE, CRC])])]
    chains["nested-start"] = [sharding(CHUNK, [sharding((2, 2), [LITTLE, ZSTD, CRC], "start")], "start")]
    chains["crc-around"] = [sharding(CHUNK, [LITTLE]), CRC]
    return chains


def whole() -> dict[str, list[Any]]:
    """The codec lists of checksummed chunks without shards."""
    return CHAINS


def byte_changes(data: bytes) -> Iterator[bytes]:
    """``data`` with one byte changed: every bit of every byte, and every byte as 0 and 255 (soak: every value)."""
    for at, old in enumerate(data):
        values = range(256) if SOAK else [*(old ^ (1 << bit) for bit in range(8)), 0, 255]
        for new in set(values) - {old}:
            yield data[:at] + bytes([new]) + data[at + 1 :]


def cut_ends(data: bytes) -> Iterator[bytes]:
    """Every shorter beginning of ``data``."""
    return (data[:length] for length in range(len(data)))


def cut_fronts(data: bytes) -> Iterator[bytes]:
    """Every shorter end of ``data``."""
    return (data[start:] for start in range(1, len(data)))


def longer_ends(data: bytes) -> Iterator[bytes]:
    """More bytes after ``data``; the last ones are a second copy, and half of one."""
    more = (
        b"\0",
        b"\xff",
        b"\0" * 4,
        bytes(range(16)),
        b"\0" * 4096,
        data[:20],
        data[-20:],
        data[: len(data) // 2],
        data,
    )
    return (data + each for each in more)


def longer_fronts(data: bytes) -> Iterator[bytes]:
    """More bytes before ``data``."""
    return (each + data for each in (b"\0", b"\xff\xff", b"\0" * 4096, data[:20], data[: len(data) // 2]))


def scrambled(data: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """``data`` with blocks swapped, repeated, left out, zeroed, or replaced by random bytes."""
    for number in range(count):
        cuts = sorted(rng.integers(0, len(data) + 1, 4).tolist())
        a, b, c, d, e = (data[i:j] for i, j in zip([0, *cuts], [*cuts, len(data)], strict=True))
        match number % 7:
            case 0:
                yield a + d + c + b + e
            case 1:
                yield a + b + b + d + e
            case 2:
                yield a + c + e
            case 3:
                yield a + bytes(len(b)) + c + d + e
            case 4:
                yield a + b + rng.bytes(len(c)) + d + e
            case 5:
                yield a + b[::-1] + c + d + e
            case 6:
                yield rng.bytes(len(data) - len(b))


class Outcomes(dict[str, int]):
    """How often reading was right, wrong, or refused with which error."""

    def note(self, outcome: str) -> None:
        self[outcome] = self.get(outcome, 0) + 1


def is_placed(error: CorruptionError, specimen: Specimen) -> bool:
    """Whether an error, and its text, name the array and the key; and the chunk, unless the index is to blame."""
    named = "array 'a'" in str(error) and f"key 'a/{specimen.key}'" in str(error)
    whose = error.chunk is not None or "index" in str(error)
    return named and whose and error.array == "a" and error.key == f"a/{specimen.key}"


def read_damaged(specimen: Specimen, data: bytes, outcomes: Outcomes | None = None) -> Outcomes:
    """Read everything, then each inner chunk alone, and count what comes of it.

    ``"right"`` data; the name of a CorruptionError; ``"moved"``: a chunk holds what was stored for another one,
    checksum and all; ``"wrong"``. Any other exception, and an error that does not say where, goes through.
    """
    outcomes = Outcomes() if outcomes is None else outcomes
    store = specimen.store(data)
    for region in (..., *specimen.regions):
        array = zardine.open_array(store, path="a", mode="r")  # every opening starts with a cold cache
        try:
            found = array[region]
        except CorruptionError as error:
            if not is_placed(error, specimen):
                raise AssertionError(f"no place: {error}") from error
            outcomes.note(type(error).__name__)
        else:
            assert found.shape == specimen.values[region].shape
            outcomes.note(specimen.judge(found, region))
    return outcomes
