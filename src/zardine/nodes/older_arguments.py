"""Arguments that zarr-python has and zardine takes, though they have no effect or a newer name.

Warnings of them begin with the words of zarr-python, so that filters of warnings find them.
"""

from __future__ import annotations

from typing import Any

from zardine.creation.options import CodecsLike, KeyEncodingLike, is_word
from zardine.errors import UnsupportedError, ZarrRuntimeWarning
from zardine.user_warnings import warn_user


def compressors_of(compressor: CodecsLike, compressors: CodecsLike) -> CodecsLike:
    """Return ``compressors``, of which ``compressor`` is another name."""
    if is_word(compressor, "auto"):
        return compressors
    if not is_word(compressors, "auto"):
        raise ValueError("give either compressor or compressors, not both")
    return compressor


def key_encoding_of(separator: str | None, encoding: KeyEncodingLike, zarr_format: int) -> KeyEncodingLike:
    """Return the ``encoding`` of chunk keys, which arrays of Zarr v2 and v1 may have named by its ``separator``."""
    if separator is None:
        return encoding
    if zarr_format == 3:
        raise ValueError("dimension_separator belongs to Zarr v2: use chunk_key_encoding, or zarr_format=2")
    if encoding is not None:
        raise ValueError("give either dimension_separator or chunk_key_encoding, not both")
    return ("v2", separator)


def refuse_chunk_store(chunk_store: object) -> None:
    """Raise :class:`~zardine.errors.UnsupportedError` where a store for chunks alone was given."""
    if chunk_store is not None:
        raise UnsupportedError("chunk_store is not supported: documents and chunks are in one store; use store")


def warn_of_ignored(**arguments: Any) -> None:
    """Say which of the ``arguments`` were given, that is, are not ``None``: they have no effect."""
    for name, value in arguments.items():
        if value is not None:
            _warn(f"{name} is not yet implemented: it is taken so that older code runs, and has no effect")


def warn_of_order() -> None:
    """Say that ``order`` was given for an array of Zarr v3."""
    _warn(
        "The `order` keyword argument has no effect for Zarr format 3 arrays: config={'order': 'F'} chooses the memory "
        "layout of what is read, filters=[TransposeCodec(...)] that of chunks"
    )


def warn_of_write_empty_chunks() -> None:
    """Say where ``write_empty_chunks`` is given in newer code."""
    _warn("The `write_empty_chunks` keyword argument is an older name: give config={'write_empty_chunks': ...}")


def _warn(text: str) -> None:
    warn_user(text, ZarrRuntimeWarning)
