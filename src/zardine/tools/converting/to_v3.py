"""An array of any version as a new array of Zarr v3: its metadata, or every reason why there is none. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.chunk_grids.regular import RegularGrid
from zardine.codecs import codec_from
from zardine.creation.attribute_conventions import names_to_member, strict_attributes
from zardine.creation.chunk_shapes import choose_grid
from zardine.creation.options import is_word
from zardine.creation.v3 import new_array_metadata
from zardine.data_types import DataType, data_type_for
from zardine.data_types.numpy_types import AnyObject, NumpyType
from zardine.data_types.structs import Struct
from zardine.errors import MetadataError
from zardine.json_document import Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.array import Array
from zardine.sources.arrays import undone_filters
from zardine.stores.memory import MemoryStore
from zardine.tools.converting.chunks import inner_chunks, shard_shape
from zardine.tools.converting.codecs import can_be_copied, chosen_codecs, has_shards, is_exact, rewritten
from zardine.tools.converting.options import ConvertOptions
from zardine.tools.converting.plan import NodePlan, Planned, other_members, remark_on_fill

_TEXT = "string"


def array_to_v3(path: str, metadata: ArrayMetadata, options: ConvertOptions, *, foreign: bool = False) -> Planned:
    """Return what a re-encoded array is to be; ``foreign``: codecs of the source are those of another format.

    Raises :class:`~zardine.errors.MetadataError` for a wrong source.
    """
    source = Array(MemoryStore(), path, metadata)
    data_type, fill, reasons = _elements(metadata, options.objects)
    try:
        arguments, more = _layout_arguments(source, data_type, options, foreign)
    except (TypeError, ValueError) as error:
        return [*reasons, str(error)]
    reasons += more
    if reasons:
        return reasons
    attributes, remarks = strict_attributes(metadata.attributes)
    remarks += _remark_on_filters(metadata, options) if foreign else []
    names = metadata.axis_names
    if metadata.older is not None:
        attributes, names, more = names_to_member(attributes, metadata)
        remarks += more
    unknown, found = other_members(metadata, 3)
    changes: dict[str, Any] = {
        "data_type": data_type,
        "fill": fill,
        "attributes": attributes,
        "axis_names": names,
        "storage_transformers": metadata.storage_transformers,
        "unknown": unknown,
    }
    try:
        if arguments is None:
            codecs = tuple(Extension(each.name, each.configuration()) for each in map(rewritten, source.codecs))
            target = replace(metadata, codecs=codecs, **changes)
        else:
            target = replace(
                new_array_metadata(shape=metadata.shape, dtype=data_type, zarr_format=3, **arguments), **changes
            )
        made = Array(MemoryStore(), path, target)
    except MetadataError as error:
        return [str(problem) for problem in error.problems] or [str(error)]
    except (TypeError, ValueError) as error:
        return [str(error)]
    remarks += _remark_on_readers(made, options) if foreign else []
    return NodePlan(
        path=path,
        source=metadata,
        target=made.metadata,
        remarks=(*remarks, *found, *remark_on_fill(metadata)),
        exact=is_exact(made.codecs),
        as_text=data_type is not metadata.data_type,
    )


def explain_type(metadata: ArrayMetadata) -> str | None:
    """Return why the data type of an older array has no form in v3; ``None`` if it has one."""
    data_type = metadata.data_type
    if isinstance(data_type, AnyObject):
        return "data type object: v3 has none; objects that are all text can become 'string' (objects=\"string\")"
    if isinstance(data_type, NumpyType):
        why = "fields that are arrays" if data_type.dtype.fields is not None else "numbers of that size"
        return f"data type {data_type.dtype}: v3 has no {why}"
    return None


def _elements(metadata: ArrayMetadata, objects: str | None) -> tuple[DataType, npt.NDArray[Any], list[str]]:
    """Return data type and fill value in v3; an undefined fill value is the default of the data type already."""
    if isinstance(metadata.data_type, AnyObject) and objects is not None:
        text = data_type_for(_TEXT)
        value = metadata.fill[()]
        return text, text.cast_fill(value) if isinstance(value, str) else text.default_fill(), []
    reason = explain_type(metadata)
    return metadata.data_type, metadata.fill, [] if reason is None else [reason]


def _layout_arguments(
    source: Array, data_type: DataType, options: ConvertOptions, foreign: bool
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return chunks, shards and codecs as arguments of ``new_array_metadata``; ``None``: all as in the source."""
    chunks, shards = options.chunks_for(source.ndim), options.shards_for(source.ndim)
    kept = is_word(chunks, "keep")
    within = has_shards(source.codecs) and source._handle.layout.sharding is None
    if kept and (within or _is_rectilinear(source)):
        if is_word(shards, "auto") and not set(options.changed()) - {"chunks", "shards", "objects"}:
            return None, []
        return None, ["its chunks differ in length, or codecs are around its shards: give chunks, too"]
    arguments: dict[str, Any] = {"chunk_key_encoding": _keys(source, options), "checksum": options.checksum}
    if options.codecs is not None:
        chain = [codec_from(each) for each in options.codecs]
        if kept:
            chunks = source.shards if has_shards(chain) and source.shards is not None else source.chunks
        return {**arguments, "codecs": chain, "chunks": chunks}, []
    whole = foreign and can_be_copied(source, options)
    sizes = _sizes(source, data_type.item_size or 16, chunks, shards, whole)
    copied = whole and not is_word(sizes["chunks"], "auto") and np.array_equal(sizes["chunks"], source.chunks)
    codecs = chosen_codecs(source, options, foreign=foreign, copied=copied)
    reasons: list[str] = codecs.pop("reasons")
    if within:
        codecs |= {name: "auto" for name in codecs if is_word(getattr(options, name), "auto", "keep")}
    return {**arguments, **codecs, **sizes}, reasons


def _sizes(source: Array, item_size: int, chunks: Any, shards: Any, whole: bool) -> dict[str, Any]:
    """Return ``chunks`` and ``shards`` of the new array; ``whole``: chunks that are kept are not cut."""
    if source.ndim > 0 and not is_word(chunks, "keep", "auto") and is_word(shards, "auto"):
        grid, _ = choose_grid(source.shape, item_size, chunks, None)
        if isinstance(grid, RegularGrid):
            inner = grid.chunk_shape
            return {"chunks": inner, "shards": shard_shape(source.shape, inner, inner, item_size)}
    if not is_word(chunks, "keep"):
        return {"chunks": chunks, "shards": None if source.ndim == 0 else shards}
    if not is_word(shards, "auto"):
        return {"chunks": source.chunks, "shards": shards}
    if source.ndim == 0:
        return {"chunks": (), "shards": None}
    if source.shards is not None:
        location = source._handle.layout.sharding.codec.index_location  # type: ignore[union-attr]
        return {"chunks": source.chunks, "shards": {"shape": source.shards, "index_location": location}}
    inner = source.chunks if whole else inner_chunks(source.chunks, item_size)
    return {"chunks": inner, "shards": shard_shape(source.shape, source.chunks, inner, item_size)}


def _keys(source: Array, options: ConvertOptions) -> Any:
    if options.chunk_key_encoding is not None:
        return options.chunk_key_encoding
    return None if source.metadata.older is not None else source._handle.layout.keys


def _remark_on_filters(metadata: ArrayMetadata, options: ConvertOptions) -> list[str]:
    """Say which filters of a file cannot stay, where they are asked to."""
    undone = undone_filters(metadata)
    if not undone or not is_word(options.compressors, "keep"):
        return []
    return [
        f"its filters cannot stay, as no codec stands for all of them ({', '.join(undone)}): elements are stored anew"
    ]


def _remark_on_readers(made: Array, options: ConvertOptions) -> list[str]:
    """Say what programs that many have cannot read: a group with such an array xarray may not open at all."""
    remarks = []
    named = [each.name for each in made._inner_chain().compressors if each.name.startswith("numcodecs.")]
    if named and is_word(options.compressors, "auto"):
        remarks.append(
            f"its chunks are copied as they are in the file, with the codecs {', '.join(named)}: zarr-python and zarrs "
            "read these, tensorstore does not; compressors='zstd' stores the elements anew, for all programs"
        )
    if isinstance(made.metadata.data_type, Struct):
        remarks.append(
            "its records are of the data type 'struct', which zarr-python 3.4 reads and 3.1 does not, nor xarray with "
            "it: that opens no group in which there are such, and those above get no consolidated metadata; in Zarr v2 "
            "(zarr_format=2) it does"
        )
    elif made.dtype.kind == "V" and made.shards is not None:
        remarks.append(
            "its elements are bytes in shards, which zarr-python 3.4 reads and 3.1 does not, nor xarray with it; "
            "shards=None stores them without"
        )
    return remarks


def _is_rectilinear(source: Array) -> bool:
    return not all(axis.is_regular for axis in source._handle.layout.grids.storage)
