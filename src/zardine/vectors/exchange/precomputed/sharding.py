"""Values of uint64 ids packed into shards: ``neuroglancer_uint64_sharded_v1``. Pure: documents and bytes in and out.

A shard begins with its *shard index*: for each of its minishards the range of its *minishard index*. That says of each
value which id it has, where it begins and how long it is. Offsets count from the end of the shard index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.codecs.gzip import GzipCodec
from zardine.errors import DataError, ShardIndexError
from zardine.limits import CHUNK

Ids = npt.NDArray[np.uint64]

TYPE: Final = "neuroglancer_uint64_sharded_v1"
_HASHES: Final = ("identity", "murmurhash3_x86_128")
_ENCODINGS: Final = ("raw", "gzip")
_ENTRY: Final = 16
"""Bytes of an entry of the shard index."""
_MOST_MINISHARD_BITS: Final = 32
"""More would make the shard index alone larger than any file."""
_SHARD: Final = 2**26
"""Bytes of the values of a shard, about."""
_MOST_VALUES: Final = 2**19
_SMALL: Final = 64
"""Bytes of values, on average, that gzip makes none smaller."""
_GZIP: Final = GzipCodec(level=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How ids are spread over shards, and how values and indexes are compressed."""

    preshift_bits: int = 0
    hash: Literal["identity", "murmurhash3_x86_128"] = "murmurhash3_x86_128"
    minishard_bits: int = 0
    shard_bits: int = 0
    minishard_index_encoding: Literal["raw", "gzip"] = "gzip"
    data_encoding: Literal["raw", "gzip"] = "gzip"

    @classmethod
    def parse(cls, document: Any, where: str) -> Sharding | None:
        """Return what a document says; ``None`` for none. Raises :class:`DataError` for what is no such document."""
        if document is None:
            return None
        if not isinstance(document, Mapping) or document.get("@type") != TYPE:
            raise DataError(f"{where} is no table with '@type': {TYPE!r}")
        bits: dict[str, Any] = {name: document.get(name) for name in ("preshift_bits", "minishard_bits", "shard_bits")}
        for name, number in bits.items():
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 64:
                raise DataError(f"{where}: {name} is a whole number from 0 to 64, not {number!r}")
        if bits["minishard_bits"] > _MOST_MINISHARD_BITS or bits["minishard_bits"] + bits["shard_bits"] > 64:
            raise DataError(
                f"{where}: {bits['minishard_bits']} minishard_bits and {bits['shard_bits']} shard_bits: of the first "
                f"there are {_MOST_MINISHARD_BITS} at most, of both 64"
            )
        words: dict[str, Any] = {"hash": document.get("hash")}
        for name in ("minishard_index_encoding", "data_encoding"):
            words[name] = document.get(name, "raw")
        for name, word in words.items():
            known = _HASHES if name == "hash" else _ENCODINGS
            if word not in known:
                raise DataError(f"{where}: {name} is {' or '.join(map(repr, known))}, not {word!r}")
        return cls(**bits, **words)

    def document(self) -> dict[str, Any]:
        """Return the document that says the same."""
        return {
            "@type": TYPE,
            "preshift_bits": self.preshift_bits,
            "hash": self.hash,
            "minishard_bits": self.minishard_bits,
            "shard_bits": self.shard_bits,
            "minishard_index_encoding": self.minishard_index_encoding,
            "data_encoding": self.data_encoding,
        }

    @property
    def index_size(self) -> int:
        """Bytes of the shard index, with which a shard begins."""
        return _ENTRY << self.minishard_bits

    def places(self, ids: npt.ArrayLike) -> tuple[Ids, Ids]:
        """Return the number of the shard of each id, and that of its minishard in it."""
        numbers = np.asarray(ids, np.uint64)
        shifted = numbers >> np.uint64(self.preshift_bits) if self.preshift_bits < 64 else np.zeros_like(numbers)
        hashed = murmurhash3_x86_128(shifted) if self.hash == "murmurhash3_x86_128" else shifted
        minishards = hashed & np.uint64((1 << self.minishard_bits) - 1)
        return (hashed >> np.uint64(self.minishard_bits)) & np.uint64((1 << self.shard_bits) - 1), minishards

    def name(self, shard: int) -> str:
        """Return the name of the file of a shard."""
        digits = -(-self.shard_bits // 4)
        return f"{f'{shard:x}'.zfill(digits)}.shard"

    def entry_range(self, minishard: int) -> tuple[int, int]:
        """Return where the shard index has the entry of a minishard: its first byte, and how many."""
        return minishard * _ENTRY, _ENTRY

    def index_ranges(self, entries: BytesLike, size: int) -> npt.NDArray[np.uint64]:
        """Return ``(M, 2)``: where the minishard indexes of ``entries`` begin in the shard, and their lengths.

        ``size``: bytes of the shard. Raises :class:`ShardIndexError` for ranges that are not in it.
        """
        found = np.frombuffer(entries, "<u8").reshape(-1, 2)
        room = size - self.index_size
        if room < 0:
            raise ShardIndexError(f"the shard has {size} bytes, fewer than its index of {self.index_size}")
        start, end = found[:, 0], found[:, 1]
        wrong = (start > end) | ((end > np.uint64(room)) & (start != end))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ShardIndexError(
                f"a minishard index is said to be at {int(start[row])} to {int(end[row])} behind the shard index; "
                f"the shard has {room} bytes there"
            )
        length = end - start
        return np.stack((np.where(length > 0, start + np.uint64(self.index_size), np.uint64(0)), length), axis=1)

    def minishard(self, index: BytesLike, size: int) -> tuple[Ids, Ids, Ids]:
        """Return the ids of a minishard, where in the shard their values begin, and how long these are.

        ``index`` as it is stored, ``size``: bytes of the shard. Raises :class:`ShardIndexError` for an index that is
        none, or tells of values that are not in the shard.
        """
        if self.minishard_index_encoding == "gzip":
            # an index that can be true has a value of a byte for each of its ids, or values that are empty
            index = _GZIP.decode(index, SizeLimit(0, False, (CHUNK,)).now())
        plain = memoryview(index)
        if len(plain) % 24:
            raise ShardIndexError(f"a minishard index has {len(plain)} bytes, which is no multiple of 24")
        table = np.frombuffer(plain, "<u8").reshape(3, -1)
        lengths = table[2].astype(np.uint64)
        with np.errstate(over="ignore"):
            ids = np.cumsum(table[0], dtype=np.uint64)
            ends_before = np.concatenate((np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)[:-1]))
            starts = np.cumsum(table[1], dtype=np.uint64) + ends_before[: len(ids)] + np.uint64(self.index_size)
        wrong = (lengths > np.uint64(size)) | (starts > np.uint64(size))
        wrong |= starts > np.uint64(size) - np.minimum(lengths, np.uint64(size))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ShardIndexError(
                f"the value of id {int(ids[row])} is said to be {int(lengths[row])} bytes from {int(starts[row])} on, "
                f"where the shard has {size}"
            )
        return ids, starts, lengths

    def value(self, stored: BytesLike) -> BytesLike:
        """Return a value as it was given, of its stored bytes. Raises :class:`CorruptionError`."""
        return _GZIP.decode(stored, SizeLimit(0, False, (CHUNK,)).now()) if self.data_encoding == "gzip" else stored

    def shard(self, values: Iterable[tuple[int, BytesLike]]) -> bytes:
        """Return a shard with these values, all of which are of it, by their ids.

        Raises :class:`DataError` for an id that is there twice.
        """
        given = sorted(values, key=lambda pair: pair[0])
        numbers = np.array([each for each, _ in given], np.uint64)
        if len(np.unique(numbers)) != len(numbers):
            raise DataError("an id can be there once in a shard")
        _, minishards = self.places(numbers)
        order = np.argsort(minishards, kind="stable")
        stored = [bytes(self._encoded(given[row][1])) for row in order.tolist()]
        lengths = np.array([len(each) for each in stored], np.uint64)
        starts = np.concatenate((np.zeros(1, np.uint64), np.cumsum(lengths)))[:-1].astype(np.uint64)
        entries = np.zeros((1 << self.minishard_bits, 2), "<u8")
        end = int(lengths.sum())
        indexes: list[bytes] = []
        there, firsts = np.unique(minishards[order], return_index=True)
        cuts = [*firsts.tolist(), len(order)]
        for minishard, first, last in zip(there.tolist(), cuts[:-1], cuts[1:], strict=True):
            table = np.zeros((3, last - first), "<u8")
            table[0] = np.diff(numbers[order[first:last]], prepend=np.uint64(0))
            table[1, 0] = starts[first]
            table[2] = lengths[first:last]
            index = table.tobytes()
            if self.minishard_index_encoding == "gzip":
                index = bytes(_GZIP.encode(index))
            entries[minishard] = end, end + len(index)
            end += len(index)
            indexes.append(index)
        return b"".join((entries.tobytes(), *stored, *indexes))

    def _encoded(self, value: BytesLike) -> BytesLike:
        return _GZIP.encode(value) if self.data_encoding == "gzip" else value


def sharding_for(count: int, nbytes: int) -> Sharding:
    """Return how ``count`` values of ``nbytes`` bytes in all are spread: shards of 64 MB, minishards of 256, about.

    An index of a minishard of that many takes one small request. A shard has half a million values at most, about.
    Values of 64 bytes and less stay as they are: gzip would make them larger, and takes most of the time.
    """
    shard_bits = max(0, int(np.ceil(np.log2(max(1, nbytes / _SHARD, count / _MOST_VALUES)))))
    minishard_bits = max(0, int(np.ceil(np.log2(max(1, count / 2**8)))) - shard_bits)
    encoding: Literal["raw", "gzip"] = "raw" if nbytes <= _SMALL * count else "gzip"
    return Sharding(shard_bits=shard_bits, minishard_bits=min(minishard_bits, 14), data_encoding=encoding)


def murmurhash3_x86_128(numbers: Ids) -> Ids:
    """Return the low 64 bits of MurmurHash3 (x86, 128 bits, seed 0) of each number as 8 little-endian bytes."""
    word = np.uint32
    with np.errstate(over="ignore"):
        low = (numbers & np.uint64(0xFFFFFFFF)).astype(word)
        high = (numbers >> np.uint64(32)).astype(word)
        first = _rotated(low * word(0x239B961B), 15) * word(0xAB0E9789) ^ word(8)
        second = _rotated(high * word(0xAB0E9789), 16) * word(0x38B34AE5) ^ word(8)
        # of 8 bytes nothing goes into the third and the fourth word but their number
        first = first + second + word(16)
        rest = first + word(8)
        second, third, fourth = second + first, rest.copy(), rest
        first, second, third, fourth = _mixed(first), _mixed(second), _mixed(third), _mixed(fourth)
        first = first + second + third + fourth
        second = second + first
    return first.astype(np.uint64) | (second.astype(np.uint64) << np.uint64(32))


def _rotated(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _mixed(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return words ^ (words >> np.uint32(16))


__all__ = ["TYPE", "Sharding", "murmurhash3_x86_128", "sharding_for"]
