"""What users may ask of a new array, as types: the arguments of :func:`zardine.create_array`, said once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.chunk_keys import ChunkKeyEncoding
from zardine.codecs.base import Codec
from zardine.data_types import DataType

ShapeLike: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
"""One length, or one for each axis."""

DTypeLike: TypeAlias = npt.DTypeLike | DataType | Mapping[str, Any]
"""What NumPy takes for a dtype, a data type of zardine, or its name or JSON object."""

_Lengths: TypeAlias = SupportsIndex | npt.NDArray[np.integer] | Sequence[SupportsIndex | Sequence[SupportsIndex] | None]

ChunksLike: TypeAlias = Literal["auto", "keep"] | _Lengths | None
"""A length for all axes, one for each (``-1``: the whole axis), lists of lengths, ``False`` for one chunk, or a word.

``"auto"`` chooses, ``"keep"`` (where there is something to keep) leaves them as they are.
"""

ShardsLike: TypeAlias = ChunksLike | Mapping[str, Any]
"""As :data:`ChunksLike`, ``None`` for no shards, or a mapping ``{"shape": ..., "index_location": "start"}``."""


class NumcodecsLike(Protocol):
    """A codec object of the package numcodecs."""

    @property
    def codec_id(self) -> str | None:
        """Its name."""

    def get_config(self) -> Mapping[str, Any]:
        """Return its configuration, with the name as ``id``."""


class WithDictionary(Protocol):
    """A codec object of zarr-python."""

    def to_dict(self) -> Any:
        """Return the JSON object of the codec."""


CodecLike: TypeAlias = Codec | str | Mapping[str, Any] | NumcodecsLike | WithDictionary
"""A codec, its name or JSON object, a codec of numcodecs or its configuration, or one of zarr-python."""

CodecsLike: TypeAlias = CodecLike | Iterable[CodecLike] | None
"""Codecs: none, one, several, or a word: ``"auto"`` chooses, ``"keep"`` leaves them as they are."""

KeyEncodingLike: TypeAlias = ChunkKeyEncoding | Mapping[str, Any] | str | tuple[str, str] | None
"""A chunk key encoding, its name or JSON object, or a pair of name and separator."""


def is_word(value: object, *words: str) -> bool:
    """Return whether an option is one of these words, such as ``"auto"``; other values may not compare at all."""
    return isinstance(value, str) and value in words
