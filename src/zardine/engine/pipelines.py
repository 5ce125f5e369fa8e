"""Codec chains that the native kernel can run, told in its terms."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from zardine.codecs.base import BytesBytesCodec
from zardine.codecs.blosc.codec import BloscCodec
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.gzip import GzipCodec
from zardine.codecs.transpose import TransposeCodec
from zardine.codecs.zstd import ZstdCodec
from zardine.data_types.base import DataType
from zardine.data_types.booleans import Bool
from zardine.kernel import KERNEL

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def make_pipeline(chain: CodecChain) -> Any:
    """A kernel pipeline for ``chain``, or ``None`` where the kernel is absent or lacks one of the codecs.

    It takes chunks of any shape that the chain's codecs take.
    """
    data_type = chain.spec.data_type
    codec = chain.serializer
    if KERNEL is None or not chain.spec.shape or type(codec) is not BytesCodec or not data_type.words:
        return None
    is_bool = isinstance(data_type, Bool)
    if not is_bool and not _every_bit_counts(data_type):
        return None
    swap = data_type.needs_endian and codec.endian not in (None, sys.byteorder)
    if swap and len(data_type.words) != 1:
        return None
    order = tuple(range(len(chain.spec.shape)))
    for each, _ in chain.filters:
        if type(each) is not TransposeCodec:
            return None
        order = tuple(order[axis] for axis in each.dimensions)
    steps = [_step(each) for each in chain.compressors]
    if None in steps or sum(step[0] != "crc32c" for step in steps if step is not None) > 1:
        return None
    return KERNEL.Pipeline(
        item_size=chain.spec.dtype.itemsize,
        word_size=data_type.words[0][0],
        swap=swap,
        is_bool=is_bool,
        order=order,
        steps=steps,
        fill=chain.spec.fill.tobytes(),
    )


def _every_bit_counts(data_type: DataType) -> bool:
    """Whether stored bytes of this type never need repair; an element of ones alone would show it."""
    ones = np.frombuffer(b"\xff" * data_type.dtype.itemsize, data_type.dtype)
    return data_type.repair_bits(ones) is ones


def _step(codec: BytesBytesCodec) -> tuple[object, ...] | None:
    kind = type(codec)
    if kind is Crc32cCodec:
        return ("crc32c",)
    if isinstance(codec, GzipCodec) and kind is GzipCodec:
        return ("gzip", codec.level)
    if isinstance(codec, ZstdCodec) and kind is ZstdCodec:
        return ("zstd", codec.level, codec.checksum)
    if isinstance(codec, BloscCodec) and kind is BloscCodec:
        shuffle = _SHUFFLES.index(codec.shuffle or "noshuffle")
        return ("blosc", codec.cname, codec.clevel, shuffle, codec.typesize or 1, codec.blocksize)
    return None
