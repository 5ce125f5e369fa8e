"""Filters of HDF5 as codecs of Zarr whose encoded bytes are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zardine.json_document import JSON

_DEFLATE, _SHUFFLE, _FLETCHER32, _BZIP2, _BLOSC, _ZSTD = 1, 2, 3, 307, 32001, 32015

_NAMES = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset"}
_NAMES |= {305: "lzo", 307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp"}
_NAMES |= {32015: "zstd", 32017: "sz", 32018: "fcidecomp", 32019: "jpeg", 32022: "granular bitround", 32024: "sz3"}
_NAMES |= {32026: "blosc2"}

_BLOSC_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


@dataclass(frozen=True, slots=True)
class Filter:
    """One step of a data set's filter pipeline."""

    number: int
    values: tuple[int, ...]
    name: str

    def __str__(self) -> str:
        name = _NAMES.get(self.number) or self.name or "without a name"
        return f"{self.number} ({name})"


def filters_of(creation: Any) -> list[Filter]:
    """Return the filter pipeline of a property list, in the order of encoding."""
    found = []
    for i in range(creation.get_nfilters()):
        number, _, values, name = creation.get_filter(i)
        text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        found.append(Filter(number, tuple(int(each) for each in values), text.rstrip("\0")))
    return found


def codecs_for(filters: Sequence[Filter], item_size: int) -> list[JSON] | None:
    """Return the ``bytes -> bytes`` codecs that read what these filters leave; ``None`` if one of them has none.

    Nor has shuffle where it gets a number of bytes that are no whole elements, as behind fletcher32: HDF5 leaves the
    last ones where they are, the codec refuses them.
    """
    codecs: list[JSON] = []
    before: list[Filter] = []
    for each in filters:
        codec = _codec(each, item_size)
        length = encoded_length(before, item_size)
        if codec is None or (codec and each.number == _SHUFFLE and (length is None or length % _size(each, item_size))):
            return None
        if codec:
            codecs.append(codec)
        before.append(each)
    return codecs


def _size(shuffle: Filter, item_size: int) -> int:
    """Return of how many bytes the elements are that are shuffled."""
    return shuffle.values[0] if shuffle.values and shuffle.values[0] else item_size


def encoded_length(filters: Sequence[Filter], length: int) -> int | None:
    """Return how many bytes these filters make of so many; ``None`` where that depends on what they are."""
    if any(each.number not in (_SHUFFLE, _FLETCHER32) for each in filters):
        return None
    return length + 4 * sum(each.number == _FLETCHER32 for each in filters)


def _codec(step: Filter, item_size: int) -> dict[str, JSON] | None:
    values = step.values
    if step.number == _DEFLATE:
        level = values[0] if values and 0 <= values[0] <= 9 else 1
        return _named("numcodecs.zlib", level=level)
    if step.number == _SHUFFLE:
        size = _size(step, item_size)
        return _named("numcodecs.shuffle", elementsize=size) if size > 1 else {}
    if step.number == _FLETCHER32:
        return _named("numcodecs.fletcher32")
    if step.number == _BZIP2:
        return _named("numcodecs.bz2", level=values[0] if values and 1 <= values[0] <= 9 else 9)
    if step.number == _ZSTD:
        level = values[0] if values and values[0] <= 22 else 3
        return _named("zstd", level=level, checksum=False)
    if step.number == _BLOSC:
        return _blosc(values, item_size)
    return None


def _blosc(values: tuple[int, ...], item_size: int) -> dict[str, JSON]:
    known = dict(enumerate(values))
    shuffle, compressor, level = known.get(5, 1), known.get(6, 0), known.get(4, 5)
    return _named(
        "blosc",
        cname=_BLOSC_COMPRESSORS[compressor] if compressor < len(_BLOSC_COMPRESSORS) else "blosclz",
        clevel=level if level <= 9 else 5,
        shuffle=_BLOSC_SHUFFLES[shuffle] if shuffle < len(_BLOSC_SHUFFLES) else "shuffle",
        typesize=known.get(2) or item_size,
        blocksize=0,
    )


def _named(name: str, **configuration: JSON) -> dict[str, JSON]:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


__all__ = ["Filter", "codecs_for", "encoded_length", "filters_of"]
