"""New variables: from what xarray has to the metadata of their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from xarray import Variable
from xarray.coding.strings import check_vlen_dtype

from zardine.creation.options import is_word
from zardine.creation.v3 import new_array_metadata
from zardine.data_types import DataType, data_type_for
from zardine.engine.array_config import ArrayConfig, parse_array_config
from zardine.metadata.attributes import attributes_to_json
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.argument_hints import meant_argument
from zardine.nodes.create_array import in_order_of, order_of_chunks
from zardine.xarray.conventions import stored_form
from zardine.xarray.shard_shapes import Variable as Facts
from zardine.xarray.shard_shapes import choose_shapes, lengths_of_axes

_ARGUMENTS: Final = ("filters", "serializer", "compressors", "chunk_key_encoding")
_KNOWN: Final = {*_ARGUMENTS, "chunks", "shards", "cache_metadata", "write_empty_chunks", "fill_value", "order"}


def encoded_attributes(attributes: Mapping[Any, Any], name: str | None = None) -> dict[str, Any]:
    """Return attributes of a variable, or of the dataset, as values of JSON.

    Raises ``TypeError`` for what has no such form.
    """
    try:
        return dict(attributes_to_json(attributes))
    except (TypeError, ValueError) as error:
        of = "" if name is None else f"variable {name!r}: "
        raise TypeError(f"Invalid attribute in Dataset.attrs. {of}{error}") from error


@dataclass(frozen=True, slots=True)
class NewArray:
    """An array that is to be made, and what is written to it."""

    name: str
    metadata: ArrayMetadata
    config: ArrayConfig
    variable: Variable


def new_array(
    name: str,
    variable: Variable,
    *,
    zarr_format: int,
    chunks: Any,
    shards: Any,
    is_explicit: bool,
    is_read: bool,
    write_empty_chunks: bool | None,
) -> NewArray:
    """Return the array for a variable that is encoded already. Raises as :func:`zardine.create_array`.

    ``is_explicit``: the user gave its encoding for this call, so that a member that is unknown is a ``ValueError``, and
    ``shards=None`` means none. ``is_read``: a reader made its encoding, so that codecs of the other version of Zarr, or
    for another kind of values, are left out.
    """
    encoding = dict(variable.encoding)
    if encoding.pop("_FillValue", None) is not None:
        raise ValueError(f"variable {name!r}: Zarr does not support _FillValue in encoding, it is an attribute")
    if is_explicit:
        _refuse_unknown(name, encoding, zarr_format)
    if zarr_format == 2 and shards and not is_word(shards, "auto"):
        raise ValueError(f"shards={shards!r}: shards need zarr_format=3; Zarr v2 has none: give shards=None")
    form = stored_form(
        variable.dims,
        variable.attrs,
        variable.dtype,
        zarr_format=zarr_format,
        fill_value=encoding.get("fill_value"),
    )
    is_text = check_vlen_dtype(variable.dtype) is str  # type: ignore[no-untyped-call]
    dtype: Any = str if is_text else variable.dtype
    found: dict[str, Any] = {
        "dtype": dtype,
        "shape": variable.shape,
        "attributes": encoded_attributes(form.attributes, name),
        "dimension_names": form.dimension_names,
    }
    if form.fill_value is not None or zarr_format == 2:
        found["fill_value"] = form.fill_value
    facts = Facts(name, variable.dims, variable.shape, data_type_for(dtype).item_size or 16, variable.chunks)
    wanted_chunks, wanted_shards = _wanted(facts, encoding, chunks, shards, is_explicit=is_explicit, is_read=is_read)
    sharded = zarr_format == 3
    found["chunks"], found["shards"] = choose_shapes(facts, wanted_chunks, wanted_shards, sharded=sharded)
    for each in _ARGUMENTS:
        value = encoding.get(each)
        if value is None and not (is_explicit and each in encoding):
            continue
        if each == "serializer" and zarr_format != 3:
            continue
        if not is_read or each == "chunk_key_encoding" or _fits(value, each, zarr_format, data_type_for(dtype)):
            found[each] = None if isinstance(value, (tuple, list)) and not value else value
    empty = encoding.get("write_empty_chunks")
    if None not in (empty, write_empty_chunks) and empty != write_empty_chunks:
        raise ValueError(
            f"variable {name!r}: the encoding says write_empty_chunks={empty}, the argument {write_empty_chunks}"
        )
    empty = write_empty_chunks if empty is None else empty
    config = None if empty is None else {"write_empty_chunks": bool(empty)}
    order = encoding.get("order") if zarr_format == 2 else None
    settings = in_order_of(found.get("serializer"), parse_array_config(config))
    metadata = new_array_metadata(**found, order=order_of_chunks(order, settings, zarr_format), zarr_format=zarr_format)
    return NewArray(name, metadata, settings, variable)


def _wanted(
    facts: Facts, encoding: Mapping[str, Any], chunks: Any, shards: Any, *, is_explicit: bool, is_read: bool
) -> tuple[Any, Any]:
    """Return the chunks and shards that are asked for: by the encoding of this call, its arguments, what was read."""
    stored = encoding.get("chunks")
    inner = stored if stored is not None and (is_explicit or is_word(chunks, "auto") or chunks is None) else chunks
    outer = encoding.get("shards")
    if not (is_explicit and "shards" in encoding) and (outer is None or not is_word(shards, "auto")):
        return inner, shards
    if is_read and inner is not stored and isinstance(outer, (tuple, list)):
        small, large = lengths_of_axes(facts, inner, "chunks"), lengths_of_axes(facts, outer, "shards")
        if small and large and any(more % less for more, less in zip(large, small, strict=True)):
            return inner, "auto"  # the caller asks for other chunks than were read
    return inner, outer


def _refuse_unknown(name: str, encoding: Mapping[str, Any], zarr_format: int) -> None:
    known = _KNOWN - ({"fill_value"} if zarr_format == 2 else {"order"})
    unknown = [each for each in encoding if each not in known]
    if unknown:
        hint = "; use `_FillValue` for the fill value of an array of Zarr v2" if "fill_value" in unknown else ""
        meant = meant_argument(str(unknown[0]), known)
        hint = hint if hint or meant is None else f"; did you mean {meant!r}?"
        raise ValueError(
            f"unexpected encoding parameters for variable {name!r}: {unknown!r}, known are {sorted(known)}, and those "
            f"of CF (dtype, scale_factor, add_offset, _FillValue, units, calendar){hint}"
        )
    if zarr_format == 2 and encoding.get("shards") is not None:
        raise ValueError(
            f"variable {name!r}: its encoding has shards={encoding['shards']!r}; shards need zarr_format=3, "
            "Zarr v2 has none: give shards=None"
        )


def _fits(value: Any, what: str, zarr_format: int, data_type: DataType) -> bool:
    """Return whether codecs that were read with a variable may be in an array of this type and version of Zarr.

    Codecs for text of any length do not go with text of one length, which a variable may have become, or the reverse.
    """
    codecs = [each for each in (value if isinstance(value, (tuple, list)) else [value]) if each is not None]
    is_vlen = data_type.item_size is None
    return all(
        _is_of_v2(each) == (zarr_format == 2)
        and (_is_for_vlen(each) == is_vlen or (not _is_for_vlen(each) and what != "serializer"))
        for each in codecs
    )


def _is_for_vlen(codec: Any) -> bool:
    """Return whether a codec, or its JSON object, encodes elements of any length."""
    if not isinstance(codec, Mapping):  # of zarr-python, or of numcodecs
        codec = codec.to_dict() if hasattr(codec, "to_dict") else {"id": getattr(codec, "codec_id", "")}
    return str(codec.get("id") or codec.get("name")).startswith("vlen-")


def _is_of_v2(codec: Any) -> bool:
    """Return whether a codec, or its JSON object, is one of numcodecs."""
    return "id" in codec if isinstance(codec, Mapping) else hasattr(codec, "codec_id")
