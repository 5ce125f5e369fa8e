"""How arrays are laid out: shards and compression. From arguments to array documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from operator import index as as_index
from typing import Any, TypeAlias

import numpy as np

from zardine.chunk_grids.regular import RegularGrid
from zardine.codecs.base import BytesBytesCodec, Codec
from zardine.codecs.blosc.codec import BloscCodec
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.registry import codec_from
from zardine.codecs.sharding_indexed import ShardingCodec
from zardine.codecs.zstd import ZstdCodec
from zardine.creation.v3 import new_array_metadata
from zardine.errors import DataError, MetadataError
from zardine.frozen import with_fields
from zardine.metadata.attributes import attributes_to_json
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import config
from zardine.vectors.format.cell_documents import NONEMPTY

Shards: TypeAlias = int | Sequence[int] | None
"""Cells of a shard along all axes, or along each."""
CodecsLike: TypeAlias = str | Mapping[str, Any] | Codec | Sequence[str | Mapping[str, Any] | Codec] | None
"""A codec, by name, as a document has it, or made; or a list of them."""

ALWAYS = 8
"""Cells along an axis that a shard may have however small the grid is: stores grow."""
ASKED = "zardine_shard_shape"
"""Attribute of an array of cells: the shape asked for its shards, where the grid was too small for that."""
_SHARDING = "sharding_indexed"
_LARGEST = 2**53
_MOST_CELLS = 2**20
"""Of a shard. Its index has 16 bytes for each, and is read as a whole."""

SHARDED_NOTE = (
    "Arrays with one cell for each chunk of space are sharded (Zarr v3 sharding_indexed): "
    "readers need a Zarr library that knows the sharding codec."
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Of every array with one cell for each chunk."""

    shard_shape: tuple[int, ...] | None = None
    """Cells of a shard along each axis; ``None``: each cell is an object of its own."""
    compressors: tuple[BytesBytesCodec, ...] = ()

    @property
    def has_checksum(self) -> bool:
        """Whether a crc32c ends every cell."""
        return any(isinstance(codec, Crc32cCodec) for codec in self.compressors)

    def with_shards(self, shard_shape: tuple[int, ...] | None) -> Layout:
        """The same with other shards."""
        return replace(self, shard_shape=shard_shape)


def layout_from(shard_shape: Any, compressor: Any, codec_config: Any, checksum: Any, rank: int) -> Layout:
    """The layout that a user asks for.

    ``codec_config`` is a list of codecs, or a mapping with ``codecs`` (and perhaps ``chunk_grid``) as a Zarr array
    document has them; of a ``sharding_indexed`` codec in it the inner codecs count, and its inner chunk is one cell.
    Codecs that turn arrays into bytes are left out: that is always ``vlen-bytes``. A ``crc32c`` ends every cell if
    ``checksum`` says so; if that is ``None``, unless the setting ``array.checksum`` is off, or ``codec_config`` says
    all. Raises :class:`DataError`.
    """
    if checksum is not None and not isinstance(checksum, bool):
        raise DataError(f"checksum is True, False or None, not {checksum!r}")
    compressors = () if compressor is None else _compressors(compressor)
    if codec_config is not None:
        if compressor is not None:
            raise DataError("give either compressor or codec_config, not both")
        grid, codecs = _spec(codec_config, rank)
        compressors = _compressors(codecs)
        if shard_shape is None and grid is not None:
            shard_shape = grid[:rank]
        if shard_shape is None and _is_sharded(codec_config):
            raise DataError(
                "codec_config names the codec sharding_indexed, and nothing says how many cells a shard has: give "
                "shard_shape=8, say; without it the store would not be sharded"
            )
    layout = Layout(shards_from(shard_shape, rank), compressors)
    wanted = (codec_config is None and config["array.checksum"]) if checksum is None else checksum
    return replace(layout, compressors=(*compressors, Crc32cCodec())) if wanted and not layout.has_checksum else layout


def shards_from(shard_shape: Any, rank: int, *, lead: bool = False) -> tuple[int, ...] | None:
    """A user's ``shard_shape=`` in cells; ones, or ``None``, mean no shards. Raises :class:`DataError`.

    ``lead``: the first axis is that of an attribute, and may be left out.
    """
    if shard_shape is None:
        return None
    try:
        given = list(shard_shape) if hasattr(shard_shape, "__iter__") else [shard_shape] * rank
        is_text = isinstance(shard_shape, (str, bytes, bytearray))
        if is_text or any(isinstance(each, (bool, np.bool_)) for each in given):
            raise TypeError
        shape = tuple(as_index(each) for each in given)
    except TypeError:
        raise DataError(f"shard_shape is a number of cells, or one for each axis, not {shard_shape!r}") from None
    if lead and len(shape) == rank - 1:
        shape = (1, *shape)
    if len(shape) != rank or any(each < 1 for each in shape):
        raise DataError(f"shard_shape {shard_shape!r} does not give a number of cells from 1 on for {rank} axes")
    return None if all(each == 1 for each in shape) else shape


def fitting_shards(shard_shape: tuple[int, ...] | None, grid: Sequence[int]) -> tuple[int, ...] | None:
    """``shard_shape``, cut to the grid along each axis, but not below :data:`ALWAYS`.

    Raises :class:`DataError` for shards of more cells than an index is good for.
    """
    if shard_shape is None:
        return None
    shape = tuple(min(asked, max(size, ALWAYS)) for asked, size in zip(shard_shape, grid, strict=True))
    if prod(shape) > _MOST_CELLS:
        raise DataError(
            f"shards of {shape} cells have {prod(shape):,}: with an index of 16 bytes for each, which every reader "
            f"needs whole, {_MOST_CELLS:,} is the most. The grid has {tuple(grid)} cells; a shard_shape of 8 to 32 for "
            "each axis is usual"
        )
    return shape


def asked_shards(
    shards: tuple[int, ...] | None, grid: Sequence[int], attributes: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The shape that was asked for ``shards``; these, where the document does not tell another that fits them."""
    asked = attributes.get(ASKED)
    if shards is None or not isinstance(asked, Sequence) or not len(asked) == len(shards) == len(grid):
        return shards
    wanted = tuple(each for each in asked if type(each) is int)
    with suppress(DataError):
        if len(wanted) == len(asked) and fitting_shards(wanted, grid) == shards:
            return wanted
    return shards


def cells_metadata(shape: Sequence[int], layout: Layout, attributes: Mapping[str, Any]) -> ArrayMetadata:
    """The document of an array with one cell of bytes for each chunk; shards as :func:`fitting_shards` says."""
    shards = fitting_shards(layout.shard_shape, shape)
    if layout.shard_shape is not None and layout.shard_shape != shards:
        attributes = {**attributes, ASKED: [min(each, _LARGEST) for each in layout.shard_shape]}
    about = tuple(shape), shards, layout.compressors
    try:
        plain = _plain_cells(*about)
    except TypeError:  # a codec that cannot be hashed
        plain = _plain_cells.__wrapped__(*about)
    others = {name: value for name, value in attributes.items() if name != NONEMPTY}  # thousands of texts, at times
    return plain.with_attributes({**attributes, **attributes_to_json(others)})


@lru_cache(64)
def _plain_cells(
    shape: tuple[int, ...], shards: tuple[int, ...] | None, compressors: tuple[BytesBytesCodec, ...]
) -> ArrayMetadata:
    return new_array_metadata(
        shape=shape,
        dtype="variable_length_bytes",
        chunks=(1,) * len(shape),
        shards=shards,
        compressors=list(compressors) or None,
        checksum=False,
        fill_value=b"",
        zarr_format=3,
    )


def table_metadata(
    shape: Sequence[int],
    dtype: Any,
    chunks: Sequence[int],
    attributes: Mapping[str, Any],
    fill_value: Any = None,
    *,
    checksum: bool,
    period: int | None = None,
) -> ArrayMetadata:
    """The document of an array with one element, or row, for each object or group.

    ``period``: after how many bytes what is stored is much like before; ``None``: nobody knows.
    """
    about = len(shape), dtype, fill_value, checksum, period
    try:
        plain = _plain_table(*about)
    except TypeError:  # a fill value that cannot be hashed
        plain = _plain_table.__wrapped__(*about)
    grid = RegularGrid(tuple(max(1, each) for each in chunks)).to_extension()
    found = {"shape": tuple(shape), "chunk_grid": grid, "attributes": attributes_to_json(attributes)}
    return with_fields(plain, **found, document=None, first_document=None, form=None)


@lru_cache(64)
def _plain_table(rank: int, dtype: Any, fill_value: Any, checksum: bool, period: int | None) -> ArrayMetadata:
    """The document of a table with one row, to be one of any length."""
    # bytes that are in step are sorted by their places: then a compressor does that takes a quarter of the time of zstd
    in_step = BloscCodec(typesize=period, cname="lz4", clevel=5, shuffle="shuffle")
    return new_array_metadata(
        shape=(1,) * rank,
        dtype=dtype,
        chunks=(1,) * rank,
        compressors=[ZstdCodec(level=0) if period is None else in_step],
        checksum=checksum,
        fill_value=fill_value,
    )


def _spec(given: Any, rank: int) -> tuple[Sequence[int] | None, Any]:
    grid = None
    if isinstance(given, Mapping) and "codecs" in given:
        try:
            grid = list(given["chunk_grid"]["configuration"]["chunk_shape"]) if given.get("chunk_grid") else None
        except (KeyError, TypeError):
            raise DataError(f"codec_config: a chunk_grid has a chunk_shape, not {given['chunk_grid']!r}") from None
        given = given["codecs"]
    if not isinstance(given, (str, Mapping, Codec, Sequence)):
        raise DataError(f"codec_config is a list of codecs, or the document of a Zarr array, not {given!r}")
    codecs = [given] if isinstance(given, (str, Mapping, Codec)) else list(given)
    inner: list[Any] = []
    for each in codecs:
        configuration = _sharding_of(each)
        if configuration is None:
            inner.append(each)
        else:
            _check_index(configuration)
            _check_inner_chunk(configuration, rank)
            inner += configuration.get("codecs", [])
    return grid, inner


def _is_sharded(codec_config: Any) -> bool:
    codecs = codec_config.get("codecs", codec_config) if isinstance(codec_config, Mapping) else codec_config
    listed = [codecs] if isinstance(codecs, (str, Mapping, Codec)) else list(codecs)
    return any(_sharding_of(each) is not None for each in listed)


def _sharding_of(codec: Any) -> Mapping[str, Any] | None:
    """The configuration of a sharding codec, in whatever form it is given; ``None`` for other codecs."""
    if isinstance(codec, ShardingCodec):
        codec = codec.to_json()
    if codec == _SHARDING or (isinstance(codec, Mapping) and codec.get("name") == _SHARDING):
        configuration = codec.get("configuration") if isinstance(codec, Mapping) else None
        return configuration if isinstance(configuration, Mapping) else {}
    return None


def _check_index(configuration: Mapping[str, Any]) -> None:
    """Raise for settings of a shard's index other than those that every array here has."""
    if configuration.get("index_location", "end") != "end":
        raise DataError("codec_config: the index of shards is at their end, index_location cannot be another")
    names = [each.get("name") if isinstance(each, Mapping) else each for each in configuration.get("index_codecs", ())]
    if names and names != ["bytes", "crc32c"]:
        raise DataError(f"codec_config: the index_codecs of shards are bytes and crc32c, not {names}")


def _check_inner_chunk(configuration: Mapping[str, Any], rank: int) -> None:
    """Raise for an inner chunk that is not one cell, as it is in every array here.

    Lengths behind those of the axes of space count bytes of a cell in the pages of Zarr Vectors: they say nothing.
    """
    given = configuration.get("chunk_shape")
    if given is None:
        return
    listed = list(given) if isinstance(given, list | tuple | np.ndarray) else []
    if len(listed) < rank or not all(type(each) is int and each == 1 for each in listed[:rank]):
        raise DataError(
            f"codec_config: the inner chunk_shape of sharding_indexed is one cell along each axis, {[1] * rank}, not "
            f"{given!r}: leave it out; shard_shape= says how many cells a shard has"
        )


def _compressors(value: Any) -> tuple[BytesBytesCodec, ...]:
    if not isinstance(value, (str, Mapping, Codec, Sequence)):
        raise DataError(f"compressor is a codec or a list of codecs, not {value!r}")
    values = [value] if isinstance(value, (str, bytes, Mapping, Codec)) else list(value)
    found = []
    for each in values:
        try:
            codec = codec_from(each)
        except (MetadataError, TypeError) as error:
            raise DataError(f"{each!r} is no compressor: {error}") from None
        if isinstance(codec, BytesBytesCodec):
            found.append(codec)
        elif codec.name not in ("bytes", "vlen-bytes"):
            raise DataError(f"{codec.name!r} turns no bytes into bytes: give a compressor such as 'zstd'")
    return tuple(found)
