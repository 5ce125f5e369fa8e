"""The names and types of options that functions hand on: each takes ``**kwargs: Unpack[...]`` of one of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import numpy.typing as npt

from zardine.creation.options import (
    ChunksLike,
    CodecLike,
    CodecsLike,
    DTypeLike,
    KeyEncodingLike,
    ShapeLike,
    ShardsLike,
)
from zardine.engine.array_config import ArrayConfigLike
from zardine.stores.resolve import Mode, StoreLike


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


class BlockwiseOptions(TypedDict, total=False):
    """How a new array is stored that is written block by block, but for its chunks, shards and place."""

    filters: CodecsLike
    compressors: CodecsLike
    serializer: CodecLike
    fill_value: object
    order: str | None
    zarr_format: int | None
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: KeyEncodingLike
    dimension_names: Iterable[str | None] | None
    config: ArrayConfigLike
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
    """What ``zeros``, ``ones``, ``empty`` and ``full`` of groups pass to ``create_array``, and the separator of v2."""

    storage_options: Mapping[str, Any] | None
    dtype: DTypeLike | None
    compressor: CodecsLike
    dimension_separator: str | None
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
