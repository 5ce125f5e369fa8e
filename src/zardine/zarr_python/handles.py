"""From what zarr-python knows of an array to the handle that the engine reads and writes by.

zarr-python opens the nodes; a pipeline is given their metadata, and with each batch the keys of chunks. So a handle is
made of these, and compared with the stored document as any handle is (``engine/freshness.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from zardine.buffers import BytesLike
from zardine.engine.array_config import ArrayConfig
from zardine.engine.documents import read_document
from zardine.engine.freshness import is_same_generation, moment, note_opened
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.errors import MetadataError, ZardineError
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import document_names, parse_documents
from zardine.stores.base import Store, flat_bytes
from zardine.stores.extras import need
from zardine.zarr_python.fallback import UnknownToZardineError

_OWN: Final = ("zarr.", "numcodecs.")
"""What the modules of codecs begin with that zardine has as well; others may do anything under the same name."""


def layout_of(metadata: Any) -> ArrayLayout:
    """Return how the chunks of an array with this ``metadata`` of zarr-python lie.

    Raises :class:`UnknownToZardineError`, which says what of it zardine does not know.
    """
    if getattr(metadata, "_stored_document", None) is not None:
        raise UnknownToZardineError("zarr-python reads its stored document otherwise than it is written")
    for codec in _codecs(metadata):
        if getattr(codec, "codec_id", None) == "pickle":
            raise UnknownToZardineError("its codec pickle can run programs, and zarr-python has its own rules for that")
        if not f"{type(codec).__module__}.".startswith(_OWN):
            raise UnknownToZardineError(
                f"its codec {type(codec).__module__}.{type(codec).__qualname__} is none of zarr-python's own"
            )
    name = document_names(metadata.zarr_format, "array")[0]
    try:
        found = parse_documents(name, _documents(metadata, name), "the document is invalid")
        assert isinstance(found, ArrayMetadata)
        layout = prepare_layout(found)
    except MetadataError as error:
        raise UnknownToZardineError("; ".join(map(str, error.problems)) or str(error)) from None
    except (ZardineError, TypeError) as error:  # a TypeError: it is not JSON
        raise UnknownToZardineError(str(error)) from None
    ours, theirs = layout.metadata.dtype, _dtype_of(metadata)
    if not is_same_type(ours, theirs):
        raise UnknownToZardineError(f"its elements are {theirs} for zarr-python and {ours} for zardine")
    if ours.kind in "Mm" and not theirs.isnative and np.datetime_data(theirs)[0] == "generic":
        raise UnknownToZardineError(f"its elements are {theirs}, which NumPy cannot turn into its own order of bytes")
    if layout.is_draft:
        raise UnknownToZardineError("its shards are in the dialect of the draft of 2023")
    return layout


def handle_of(store: Store, path: str, layout: ArrayLayout) -> ArrayHandle:
    """Return the handle of the array at ``path``, of whose document nothing is known but what ``layout`` says."""
    handle = ArrayHandle(store, path, layout, ArrayConfig.from_settings())
    watch = handle.watch
    watch.is_stored, watch.seen = False, -np.inf  # nobody has looked at the store yet
    _check_document(handle)
    return handle


def _check_document(handle: ArrayHandle) -> None:
    """Look at the stored document, so that what is done next need not.

    Raises :class:`UnknownToZardineError` where it is one that zarr-python alone can read.
    """
    when = moment()
    reading = read_document(handle.store, handle.watch.key)
    if reading is None:
        return
    name = handle.watch.key.rpartition("/")[2]
    try:
        found = parse_documents(name, {name: reading.parts[0]}, "the stored document is invalid")
        if not isinstance(found, ArrayMetadata):
            return
        prepare_layout(found)
    except MetadataError as error:
        raise UnknownToZardineError("; ".join(map(str, error.problems)) or str(error)) from None
    if is_same_generation(handle.layout, found):
        note_opened(handle, reading.version, found, when)


def configured(handle: ArrayHandle, config: Any) -> ArrayHandle:
    """Return the handle with the settings of zardine now, and those that zarr-python has for this call."""
    wanted = ArrayConfig.from_settings()
    if wanted.write_empty_chunks != config.write_empty_chunks or not wanted.read_missing_chunks:
        # zarr-python itself tells of missing chunks
        wanted = replace(wanted, write_empty_chunks=config.write_empty_chunks, read_missing_chunks=True)
    return handle if handle.config == wanted else handle.with_config(wanted)


def is_same_type(ours: np.dtype[Any], theirs: np.dtype[Any]) -> bool:
    """Return whether elements of both are the same values, which may differ in the order of their bytes."""
    if ours == theirs:
        return True
    if "T" in (ours.kind, theirs.kind):  # which has no order of bytes to ask for
        return ours.kind == "T" and theirs.kind in "TO"
    return ours.newbyteorder("=") == theirs.newbyteorder("=")


def _codecs(metadata: Any) -> Iterable[Any]:
    if metadata.zarr_format == 2:
        return [each for each in (*(metadata.filters or ()), metadata.compressor) if each is not None]
    return _with_inner(metadata.codecs)


def _with_inner(codecs: Iterable[Any]) -> list[Any]:
    found = list(codecs)
    for codec in tuple(found):
        found += _with_inner((*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ())))
    return found


def _dtype_of(metadata: Any) -> np.dtype[Any]:
    found: np.dtype[Any] = metadata.dtype.to_native_dtype()
    return found


def _documents(metadata: Any, name: str) -> Mapping[str, BytesLike | None]:
    """The documents of an array, without its attributes, which tell nothing of its chunks."""
    if metadata.zarr_format == 3:
        return {name: json.dumps({**metadata.to_dict(), "attributes": {}}).encode()}
    written = metadata.to_buffer_dict(prototype=need("zarr.core.buffer", "a pipeline").default_buffer_prototype())
    documents: dict[str, BytesLike | None] = dict.fromkeys(document_names(metadata.zarr_format, "array"))
    return {**documents, name: flat_bytes(written[name])}


__all__ = ["configured", "handle_of", "is_same_type", "layout_of"]
