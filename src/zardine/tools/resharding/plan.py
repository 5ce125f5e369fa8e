"""What an array is to become when it is resharded: its new metadata. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from zardine.chunk_grids import ChunkGrid
from zardine.chunk_keys import ChunkKeyEncoding, DefaultChunkKeyEncoding, V2ChunkKeyEncoding
from zardine.codecs import Crc32cCodec, ShardingCodec
from zardine.codecs.base import BytesBytesCodec, ChunkSpec, Codec
from zardine.codecs.chain import build_chain
from zardine.codecs.registry import codec_from
from zardine.codecs.sharding_indexed import in_current_form
from zardine.creation.chunk_shapes import choose_grid, has_lists, shards_shape
from zardine.engine.layout import ArrayLayout
from zardine.errors import UnsupportedError
from zardine.json_document import Extension, Problems
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import config
from zardine.tools.copying.move import inner_chunks

_MOST_CHUNKS: Final = 2**26
"""Inner chunks of a shard: an index of a gigabyte."""


KNOWN_ENCODINGS: Final[tuple[ChunkKeyEncoding, ...]] = (
    DefaultChunkKeyEncoding("/"),
    DefaultChunkKeyEncoding("."),
    V2ChunkKeyEncoding("/"),
    V2ChunkKeyEncoding("."),
)
"""Those of the specification: keys of an array that was resharded are, or were, of one of them."""


class _Same:
    """Stands for an argument that was not given: it stays as it is."""

    def __repr__(self) -> str:
        return "<as it is>"


SAME: Any = _Same()


def new_metadata(
    layout: ArrayLayout,
    *,
    shards: Any,
    chunks: Any = None,
    codecs: Any = None,
    compressors: Any = SAME,
    has_grown: bool = False,
) -> ArrayMetadata:
    """Return the metadata with other shards (``None``: none), and other chunks and codecs where they are given.

    With ``has_grown``, lists of lengths may be of the array as it was before: the last one of each goes on.
    The chunk key encoding stays: see :func:`other_keys`. Raises ``ValueError`` or ``TypeError`` for arguments that
    do not fit together.
    """
    metadata = layout.metadata
    if metadata.zarr_format != 3:
        raise UnsupportedError(f"Zarr v{metadata.zarr_format} has no shards: zardine.convert makes the array one of v3")
    old = inner_chunks(layout)
    if chunks is None:
        chunks = old
    if chunks is None:
        raise ValueError("the chunks differ in shape, which they cannot inside of shards: give chunks")
    outer, location = shards_shape(shards)
    if location == "end" and layout.sharding is not None and not isinstance(shards, dict):
        location = layout.sharding.codec.index_location
    shape = _before(metadata.shape, outer if has_lists(outer) else chunks) if has_grown else metadata.shape
    grid, inner = choose_grid(shape, metadata.data_type.item_size or 16, chunks, outer)
    grid = grid.resized(metadata.shape) if has_grown else grid
    if inner is not None:
        _check_index(grid, metadata.shape, inner)
    chain: list[Codec] = list(map(in_current_form, _inner_codecs(layout, codecs, compressors)))
    if inner is not None:
        sharding = ShardingCodec(chunk_shape=inner, codecs=tuple(chain), index_location=location)
        if layout.sharding is not None and not layout.sharding.codec.draft:
            sharding = replace(sharding, index_codecs=layout.sharding.codec.index_codecs)
        chain = [sharding]
    first = tuple(axis.runs[0][0] if axis.runs else 1 for axis in grid.axes(metadata.shape))
    problems = Problems()
    prepared = build_chain(chain, ChunkSpec(first, metadata.data_type, metadata.fill), "codecs", problems)
    if prepared is None or problems.found:
        lines = "".join(f"\n  - {problem}" for problem in problems.found)
        raise ValueError(f"the array cannot be stored so{lines}")
    written = tuple(Extension(codec.name, codec.configuration()) for codec in prepared.codecs)
    return replace(metadata, chunk_grid=grid.to_extension(), codecs=written)


def _before(shape: tuple[int, ...], lengths: Any) -> tuple[int, ...]:
    """Return the shape of an array as far as lists of lengths reach, which are as a user has given them."""
    if not has_lists(lengths) or len(lengths) != len(shape):
        return shape
    pairs = zip(shape, lengths, strict=True)
    return tuple(
        length if each is None or isinstance(each, (int, np.integer)) else min(length, sum(map(int, each)))
        for length, each in pairs
    )


def _check_index(grid: ChunkGrid, shape: tuple[int, ...], inner: tuple[int, ...]) -> None:
    """Refuse shards of more inner chunks than an index in memory can list."""
    shard = tuple(max((size for size, _ in axis.runs), default=1) for axis in grid.axes(shape))
    number = prod(-(-size // part) for size, part in zip(shard, inner, strict=True))
    if number > _MOST_CHUNKS:
        raise ValueError(f"a shard of shape {shard} would have {number:,} inner chunks, more than {_MOST_CHUNKS:,}")


def is_same(old: ArrayMetadata, new: ArrayMetadata) -> bool:
    """Whether chunks lie in the same objects, encoded in the same way."""
    return old.chunk_grid == new.chunk_grid and old.codecs == new.codecs


def other_keys(keys: ChunkKeyEncoding) -> ChunkKeyEncoding:
    """Return an encoding of the specification none of whose keys is one of ``keys``."""
    if isinstance(keys, DefaultChunkKeyEncoding) and keys.separator == "/":
        return V2ChunkKeyEncoding("/")
    return DefaultChunkKeyEncoding("/")


def _inner_codecs(layout: ArrayLayout, codecs: Any, compressors: Any) -> list[Codec]:
    old = list(layout.codecs if layout.sharding is None else layout.sharding.inner_codecs)
    if codecs is not None:
        if compressors is not SAME:
            raise ValueError("give either codecs, which is the whole chain of a chunk, or compressors, not both")
        if isinstance(codecs, (str, dict, Codec)) or not isinstance(codecs, Iterable):
            raise TypeError(f"codecs is a list of codecs, not {codecs!r}")
        return [codec_from(each) for each in codecs]
    if compressors is SAME:
        return old
    given = [] if compressors is None else compressors
    if isinstance(given, (str, dict, Codec)) or not isinstance(given, Iterable):
        given = [given]
    chain = [each for each in old if not isinstance(each, BytesBytesCodec)] + [codec_from(each) for each in given]
    if config["array.checksum"] and not any(isinstance(each, Crc32cCodec) for each in chain):
        chain.append(Crc32cCodec())
    return chain
