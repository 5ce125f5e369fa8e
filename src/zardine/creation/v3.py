"""The metadata of a new array, from what its creator asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import index as as_index
from typing import Any, Final

import numpy as np

from zardine.chunk_keys import (
    ChunkKeyEncoding,
    DefaultChunkKeyEncoding,
    V2ChunkKeyEncoding,
    parse_chunk_key_encoding,
)
from zardine.codecs import (
    BytesCodec,
    Crc32cCodec,
    ShardingCodec,
    VLenBytesCodec,
    VLenUTF8Codec,
    ZstdCodec,
)
from zardine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zardine.codecs.chain import build_chain
from zardine.codecs.registry import codec_from, parse_codec
from zardine.codecs.sharding_indexed import in_current_form
from zardine.creation.attribute_conventions import warn_of_missing_value
from zardine.creation.chunk_shapes import choose_grid, shards_shape
from zardine.creation.options import is_word
from zardine.data_types import DataType, data_type_for
from zardine.errors import MetadataError
from zardine.json_document import Extension, Problems, parse_extension
from zardine.metadata.attributes import attributes_to_json
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import format_of_new
from zardine.settings import config


class _Default:
    """Stands for an argument that was not given, where ``None`` means something."""

    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Final = _Default()

DEFAULT_COMPRESSOR: Final = ZstdCodec()
"""What chunks of new arrays of v3 are compressed with. Before it are the default serializer of the data type and no
filters, behind it a crc32c (the setting ``array.checksum``)."""


def new_array_metadata(
    *,
    shape: Any,
    dtype: Any,
    chunks: Any = "auto",
    shards: Any = None,
    filters: Any = "auto",
    compressors: Any = "auto",
    serializer: Any = "auto",
    codecs: Iterable[Any] | None = None,
    fill_value: Any = DEFAULT,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: Any = None,
    dimension_names: Iterable[str | None] | None = None,
    checksum: bool | None = None,
    order: str | None = None,
    zarr_format: int | None = None,
) -> ArrayMetadata:
    """Work out and check the metadata of a new array.

    ``order`` counts for Zarr v2 and v1 only, where it is the order of elements in chunks.

    ``codecs`` is the whole chain and excludes ``shards``, ``filters``, ``serializer`` and ``compressors``.
    Raises ``ValueError`` or ``TypeError`` for arguments that do not fit together.
    """
    version = format_of_new(zarr_format)
    lengths = parse_shape(shape)
    if version != 3:
        wrong = {"shards": shards, "codecs": codecs, "serializer": serializer, "dimension_names": dimension_names}
        for name, value in wrong.items():
            if value is not None and not is_word(value, "auto"):
                raise ValueError(f"{name} needs zarr_format=3; Zarr v{version} has none")
        if checksum:
            raise ValueError(f"checksum needs zarr_format=3; filters=[numcodecs.CRC32C()] does that in Zarr v{version}")
        from zardine.creation.v2 import new_older_metadata

        return new_older_metadata(
            shape=lengths,
            dtype=dtype,
            chunks=chunks,
            filters=filters,
            compressors=compressors,
            fill_value=fill_value,
            fill_is_given=fill_value is not DEFAULT,
            attributes=attributes,
            chunk_keys=None if chunk_key_encoding is None else parse_key_encoding(chunk_key_encoding),
            order=order,
            zarr_format=version,
        )
    data_type = data_type_for(dtype)
    fill = data_type.default_fill() if fill_value is DEFAULT or fill_value is None else data_type.cast_fill(fill_value)
    item_size = data_type.item_size or 16
    shard_shape, index_location = shards_shape(shards)
    grid, inner = choose_grid(lengths, item_size, chunks, shard_shape)
    if codecs is not None:
        parts = {"shards": shards, "filters": filters, "serializer": serializer, "compressors": compressors}
        for name, part in parts.items():
            if part is not None and not is_word(part, "auto"):
                raise ValueError(f"give either codecs, which is the whole chain, or {name}, not both")
        if isinstance(codecs, (str, Mapping, Codec)):
            raise TypeError(f"codecs is a list of codecs, not {codecs!r}")
        chain = [_codec(codec, "codecs") for codec in codecs]
    else:
        chain = _chain(data_type, filters, serializer, compressors, checksum)
        if inner is not None:
            chain = [ShardingCodec(chunk_shape=inner, codecs=tuple(chain), index_location=index_location)]
    first = tuple(axis.runs[0][0] if axis.runs else 1 for axis in grid.axes(lengths))
    chain = list(map(in_current_form, chain))
    problems = Problems(with_notes=True)
    prepared = build_chain(chain, ChunkSpec(first, data_type, fill), "codecs", problems)
    keys = parse_key_encoding(chunk_key_encoding)
    parse_chunk_key_encoding(keys, problems)
    problems.found += problems.notes  # what is read of others is not made anew
    problems.raise_if_any("such an array cannot be made")
    assert prepared is not None
    user_attributes = attributes_to_json(attributes or {})
    warn_of_missing_value(user_attributes, data_type.dtype, stacklevel=4)
    return ArrayMetadata(
        shape=lengths,
        data_type=data_type,
        fill=fill,
        chunk_grid=grid.to_extension(),
        chunk_key_encoding=keys,
        codecs=tuple(Extension(codec.name, codec.configuration()) for codec in prepared.codecs),
        attributes=user_attributes,
        axis_names=parse_dimension_names(dimension_names, len(lengths)),
    )


def as_written(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return ``metadata`` for a new array: without codecs in the dialect of the sharding draft, which is only read."""
    codecs = [parse_codec(each.to_json(), "codecs", Problems()) for each in metadata.codecs]
    known = [codec for codec in codecs if codec is not None]
    written = list(map(in_current_form, known))
    if len(known) < len(codecs) or written == known:
        return metadata
    return replace(metadata, codecs=tuple(Extension(codec.name, codec.configuration()) for codec in written))


def parse_shape(shape: Any) -> tuple[int, ...]:
    """Return a user's ``shape=``: one length or several."""
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        shape = (shape,)
    if isinstance(shape, np.ndarray) and (shape.ndim != 1 or shape.dtype.kind not in "iu"):
        raise TypeError(
            f"shape is an array of shape {shape.shape} and dtype {shape.dtype}, not lengths: give it as data="
        )
    try:
        if isinstance(shape, (str, bytes, Mapping)):
            raise TypeError
        lengths = tuple(as_index(length) for length in shape)
    except TypeError:
        raise TypeError(f"a shape is an integer or a sequence of integers, not {shape!r}") from None
    if any(not 0 <= length < 2**63 for length in lengths):
        raise ValueError(f"the shape {lengths} has a length outside 0 to 2^63 - 1")
    return lengths


def parse_key_encoding(value: Any) -> Extension:
    """Return a user's ``chunk_key_encoding=``: an encoding, its JSON, a pair of name and separator, or ``None``."""
    if value is None:
        return DefaultChunkKeyEncoding().to_extension()
    if isinstance(value, ChunkKeyEncoding):
        return value.to_extension()
    if isinstance(value, tuple) and len(value) == 2:
        value = {"name": value[0], "separator": value[1]}
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, Mapping) and "separator" in value:
        kinds = {"default": DefaultChunkKeyEncoding, "v2": V2ChunkKeyEncoding}
        if value.get("name") not in kinds:
            raise ValueError(f"chunk_key_encoding: the name is 'default' or 'v2', not {value.get('name')!r}")
        return kinds[value["name"]](value["separator"]).to_extension()
    problems = Problems()
    extension = parse_extension(value, "chunk_key_encoding", problems, ignorable=False)
    problems.raise_if_any("such an array cannot be made")
    assert extension is not None
    return extension


def parse_dimension_names(names: Iterable[str | None] | None, ndim: int) -> tuple[str | None, ...] | None:
    """Return a user's ``dimension_names=``."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"dimension_names is a sequence of names, not {names!r}")
    result = tuple(names)
    if len(result) != ndim:
        raise ValueError(f"dimension_names {result} has {len(result)} names, the array has {ndim} dimensions")
    if any(name is not None and not isinstance(name, str) for name in result):
        raise TypeError(f"dimension_names {result}: each is a string or None")
    return None if all(name is None for name in result) else result


def _chain(data_type: DataType, filters: Any, serializer: Any, compressors: Any, checksum: bool | None) -> list[Codec]:
    chain = _codec_list(filters, [], ArrayArrayCodec, "filters")
    if is_word(serializer, "auto"):
        chain.append(_default_serializer(data_type, bool(chain)))
    else:
        chain.append(_of_kind(_codec(serializer, "serializer"), ArrayBytesCodec, "serializer"))
    given = _codec_list(compressors, [DEFAULT_COMPRESSOR], BytesBytesCodec, "compressors")
    if isinstance(chain[-1], ShardingCodec) and is_word(compressors, "auto"):
        return chain  # the inner chunks have their own
    wanted = config["array.checksum"] if checksum is None else checksum
    if wanted and not isinstance(chain[-1], ShardingCodec) and not any(c.name == "crc32c" for c in given):
        given.append(Crc32cCodec())
    return [*chain, *given]


def _default_serializer(data_type: DataType, filtered: bool) -> Codec:
    if data_type.item_size is None:
        return VLenUTF8Codec() if data_type.dtype.kind == "T" else VLenBytesCodec()
    return BytesCodec(endian="little" if data_type.needs_endian or filtered else None)


def _codec_list(value: Any, default: list[Codec], kind: Any, what: str) -> list[Codec]:
    if is_word(value, "auto"):
        return list(default)
    if value is None:
        return []
    if isinstance(value, (Codec, str, Mapping)) or not isinstance(value, Iterable):
        value = [value]
    return [_of_kind(_codec(each, what), kind, what) for each in value]


def _codec(value: Any, what: str) -> Codec:
    """Return the codec that a user gave as, or in, the argument ``what``."""
    try:
        return codec_from(value)
    except MetadataError as error:
        raise type(error)(f"{what}: {value!r} is not a codec", error.problems) from None
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


def _of_kind(codec: Codec, kind: Any, what: str) -> Codec:
    fits = isinstance(codec, kind)
    if not fits:
        belongs = next(
            name
            for name, each in (
                ("filters", ArrayArrayCodec),
                ("serializer", ArrayBytesCodec),
                ("compressors", BytesBytesCodec),
            )
            if isinstance(codec, each)
        )
        raise TypeError(f"{what} takes {kind.kind} codecs, not {codec.name}, which belongs in {belongs}")
    return codec
