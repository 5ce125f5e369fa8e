"""What users may ask of a new array, as types: the arguments of :func:`zardine.create_array`, said once.

Functions that hand arguments on take them as ``**kwargs: Unpack[...]`` of one of the dictionaries here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from zardine.chunk_keys import ChunkKeyEncoding
from zardine.codecs.base import Codec
from zardine.data_types import DataType
from zardine.engine.array_config import ArrayConfigLike
from zardine.stores.resolve import Mode, StoreLike

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


class StoringOptions(TypedDict, total=False):
    """How a new array is stored."""

    chunks: ChunksLike
    shards: ShardsLike
    filters: CodecsLike
    compressors: CodecsLike
    serializer: CodecLike
    order: str | None
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: KeyEncodingLike
    dimension_names: Iterable[str | None] | None
    overwrite: bool
    checksum: bool | None


class ArrayOptions(StoringOptions, total=False):
    """All that :func:`zardine.create_array` takes but the place."""

    storage_options: Mapping[str, Any] | None
    shape: ShapeLike | None
    dtype: DTypeLike | None
    data: npt.ArrayLike | None
    fill_value: object
    config: ArrayConfigLike
    write_data: bool
    zarr_format: int | None


class GroupArrayOptions(ArrayOptions, total=False):
    """What ``create_array`` of groups takes but the name."""

    compressor: CodecsLike


class RequiredOptions(StoringOptions, total=False):
    """What ``require_array`` passes to ``create_array``."""

    storage_options: Mapping[str, Any] | None
    data: npt.ArrayLike | None
    fill_value: object
    write_data: bool
    zarr_format: int | None


class RequireArrayOptions(RequiredOptions, total=False):
    """What ``require_array`` of groups takes but the name and the shape."""

    dtype: DTypeLike | None
    exact: bool
    config: ArrayConfigLike


class FilledOptions(StoringOptions, total=False):
    """What ``zeros``, ``ones``, ``empty`` and ``full`` of groups pass to ``create_array``."""

    storage_options: Mapping[str, Any] | None
    dtype: DTypeLike | None
    compressor: CodecsLike
    config: ArrayConfigLike
    zarr_format: int | None


class LikeOptions(StoringOptions, total=False):
    """What may be other in a new array than in the one that it is like."""

    storage_options: Mapping[str, Any] | None
    shape: ShapeLike
    dtype: DTypeLike
    fill_value: object
    config: ArrayConfigLike


class LikeInGroupOptions(LikeOptions, total=False):
    """What the ``*_like`` methods of groups take."""

    zarr_format: int | None


class LikeAnywhereOptions(LikeOptions, total=False):
    """What the ``*_like`` functions take."""

    store: StoreLike
    path: str | None


class OpenLikeOptions(LikeOptions, total=False):
    """What :func:`zardine.open_like` takes."""

    store: StoreLike
    mode: Mode | None


class CopyOptions(StoringOptions, total=False):
    """What copies of arrays may have other than the arrays."""

    storage_options: Mapping[str, Any] | None
    fill_value: object
    config: ArrayConfigLike
    zarr_format: int | None


class SaveOptions(StoringOptions, total=False):
    """What :func:`zardine.save_array` takes; its ``path`` and the like are parameters of its own."""

    fill_value: object
    config: ArrayConfigLike
    mode: Mode | None


class CreateOptions(TypedDict, total=False):
    """What :func:`zardine.create` takes but ``shape``, ``fill_value`` and what says where; some of it for Zarr v2."""

    chunks: ChunksLike
    dtype: DTypeLike | None
    compressor: CodecsLike
    order: str | None
    overwrite: bool
    filters: CodecsLike
    read_only: bool | None
    object_codec: CodecLike | None
    dimension_separator: str | None
    write_empty_chunks: bool | None
    attributes: Mapping[str, Any] | None
    chunk_shape: ChunksLike
    chunk_key_encoding: KeyEncodingLike
    codecs: Iterable[CodecLike] | None
    dimension_names: Iterable[str | None] | None
    shards: ShardsLike
    compressors: CodecsLike
    serializer: CodecLike
    checksum: bool | None


class CreateAnywhereOptions(CreateOptions, total=False):
    """What ``empty``, ``zeros``, ``ones`` and ``full`` pass to :func:`zardine.create`."""

    store: StoreLike
    path: str | None
    zarr_format: int | None
    storage_options: Mapping[str, Any] | None
    config: ArrayConfigLike
    mode: Mode | None


class ArrayOfDataOptions(CreateAnywhereOptions, total=False):
    """What :func:`zardine.array` passes to :func:`zardine.create`."""

    shape: ShapeLike
    fill_value: object


class OpenArrayOptions(CreateOptions, total=False):
    """What :func:`zardine.open_array` passes to :func:`zardine.create`, where it makes an array."""

    shape: ShapeLike
    data: npt.ArrayLike | None
    fill_value: object


class OpenOptions(OpenArrayOptions, total=False):
    """What :func:`zardine.open` passes on: what is for new arrays, and for groups."""

    use_consolidated: bool | None


class GroupOptions(TypedDict, total=False):
    """What :func:`zardine.create_group` takes but the place."""

    zarr_format: int | None
    overwrite: bool
    attributes: Mapping[str, Any] | None
    storage_options: Mapping[str, Any] | None


class OpenedArrayOptions(TypedDict, total=False):
    """What ``Array.open`` takes but the place."""

    zarr_format: int | None
    config: ArrayConfigLike


class OpenedGroupOptions(TypedDict, total=False):
    """What ``Group.open`` takes but the place and the version."""

    storage_options: Mapping[str, Any] | None


class OpenGroupOptions(TypedDict, total=False):
    """What :func:`zardine.open_consolidated` passes to :func:`zardine.open_group`."""

    path: str | None
    storage_options: Mapping[str, Any] | None
    zarr_format: int | None
