"""Where the wanted elements are in a chunk that is stored as its elements lie in memory: by byte ranges of it."""

from __future__ import annotations

from math import prod
from typing import Any

from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.chain import CodecChain, box_around
from zardine.codecs.transpose import TransposeCodec


def has_raw_ranges(chain: CodecChain, gap: int) -> bool:
    """Tell whether a part of an encoded chunk, of more than ``gap`` bytes, can be had without the rest."""
    if chain.compressors or type(chain.serializer) is not BytesCodec:
        return False
    if any(type(codec) is not TransposeCodec for codec, _ in chain.filters):
        return False
    return chain.encoded.exact and chain.encoded.nbytes > gap


def raw_ranges(chain: CodecChain, wanted: tuple[Any, ...], gap: int) -> tuple[tuple[int, int], ...] | None:
    """Return the ranges of an encoded chunk that hold what the index ``wanted`` takes of it, ascending.

    Ranges at most ``gap`` bytes apart are one. ``None``: the whole is needed, since it is compressed or has a checksum,
    or what is not needed is no more than ``gap`` bytes.
    """
    if not has_raw_ranges(chain, gap):
        return None
    box = box_around(wanted, chain.spec.shape)
    for codec, _ in chain.filters:
        assert isinstance(codec, TransposeCodec)
        box = tuple(box[axis] for axis in codec.dimensions)
    shape = chain.serializer_spec.shape
    stride = span = chain.encoded.nbytes // prod(shape)
    starts = [0]
    for (low, high), length in zip(reversed(box), reversed(shape), strict=True):
        if stride - span <= gap:
            starts = [start + low * stride for start in starts]
            span += (high - low - 1) * stride
        else:
            starts = [start + i * stride for i in range(low, high) for start in starts]
        stride *= length
    if chain.encoded.nbytes - len(starts) * span <= gap:
        return None
    return tuple((start, span) for start in starts)


__all__ = ["has_raw_ranges", "raw_ranges"]
