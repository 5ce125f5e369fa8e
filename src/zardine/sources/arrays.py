"""The metadata of arrays of foreign files: what Zarr says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.chunk_grids.regular import RegularGrid
from zardine.chunk_keys.encodings import DefaultChunkKeyEncoding
from zardine.codecs.base import Codec
from zardine.codecs.registry import codec_from
from zardine.data_types import DataType
from zardine.errors import CorruptionError
from zardine.json_document import JSON, Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import explain_bad_name

ORIGIN: Final = "zardine.origin"
"""The member of a document that holds what files of other formats say, and Zarr has no words for."""

FILTERS: Final = "filters"
"""The part of it with names of filters that no codec stands for: a library undoes them."""


class NotUnicodeError(CorruptionError):
    """Text of a file is not of UTF-8, so that Zarr has no form for it."""


def array_metadata(
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    data_type: DataType,
    fill: npt.NDArray[Any],
    codecs: Sequence[Codec | str | Mapping[str, JSON]],
    attributes: Mapping[str, JSON],
    names: Sequence[str | None],
    origin: Mapping[str, JSON],
) -> ArrayMetadata:
    """Return the metadata of an array of v3; of ``origin`` what is not empty is kept as a member that nobody needs."""
    chain = [codec_from(each) for each in codecs]
    kept = {name: value for name, value in origin.items() if value}
    return ArrayMetadata(
        shape=shape,
        data_type=data_type,
        fill=fill,
        chunk_grid=RegularGrid(chunks).to_extension(),
        chunk_key_encoding=DefaultChunkKeyEncoding().to_extension(),
        codecs=tuple(Extension(each.name, each.configuration()) for each in chain),
        attributes=dict(attributes),
        axis_names=tuple(names) if any(name is not None for name in names) else None,
        unknown={ORIGIN: {"must_understand": False, **kept}} if kept else {},
    )


def undone_filters(metadata: ArrayMetadata) -> list[str]:
    """Return the names of what was done to chunks in a file, and undone where they are read as those of this array."""
    origin = metadata.unknown.get(ORIGIN)
    found = origin.get(FILTERS, []) if isinstance(origin, Mapping) else []
    return [str(each) for each in found] if isinstance(found, list) else []


def element_bytes(fill: npt.NDArray[Any], dtype: np.dtype[Any]) -> bytes:
    """Return the fill value as the bytes of one element of ``dtype``, which may be of another byte order."""
    return fill.astype(dtype).tobytes()


def explain_name(name: str) -> str | None:
    """Return why something of a file cannot be a node by its name; ``None`` if it can."""
    if name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"):
        return f"the name {name!r} is that of documents of Zarr"
    return explain_bad_name(name, 3)


__all__ = ["FILTERS", "ORIGIN", "NotUnicodeError", "array_metadata", "element_bytes", "explain_name", "undone_filters"]
