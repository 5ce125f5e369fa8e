"""Everything that is worked out once when an array is opened: grids, key names, codec chains, shard layouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from zardine.cache import Cache
from zardine.chunk_grids import Axis, ChunkGrid, RegularGrid, parse_chunk_grid
from zardine.chunk_keys import ChunkKeyEncoding, parse_chunk_key_encoding
from zardine.codecs.base import ChunkSpec, Codec
from zardine.codecs.chain import CodecChain, build_chain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.registry import parse_codec
from zardine.codecs.sharding_indexed import ShardingCodec, prepare_sharding
from zardine.codecs.transpose import TransposeCodec
from zardine.engine.pipelines import make_pipeline
from zardine.errors import Problem
from zardine.frozen import with_fields
from zardine.indexing.block import Block, BlockPlan
from zardine.indexing.plan import TwoGrids
from zardine.json_document import Problems
from zardine.kernel import KERNEL
from zardine.limits import CHUNK, limit_of
from zardine.metadata.documents import ArrayMetadata
from zardine.sharding.layout import ShardLayout

if TYPE_CHECKING:
    from zardine._kernel import UniformGrid


@dataclass(frozen=True, slots=True, eq=False)
class ArrayLayout:
    """How an array lies in its store. A *chunk* is what one codec chain run encodes, an *object* what one key holds."""

    metadata: ArrayMetadata
    grid: ChunkGrid
    keys: ChunkKeyEncoding
    key_form: str | None
    """What the keys of objects are made of below the array's path, by ``%``, where the encoding of keys says that."""
    codecs: tuple[Codec, ...]
    grids: TwoGrids
    sharding: _OpenSharding | None
    """Where the chunks are inner chunks of shards that can be reached one by one."""
    uniform_shard: ShardLayout | None
    """The layout of every shard, where all have the same shape."""
    blocks: Blocks | None
    """The chunks, where all have the same shape, and so have the objects."""
    pipeline: Any
    """The codec chain of a chunk as the native kernel runs it; ``None`` where it cannot."""
    is_draft: bool
    """Whether shards are stored in the dialect of the draft of March 2023, which is only read."""
    is_checked: bool
    """Whether chunks in shards have checksums, so that what is read while a file is edited is noticed.

    Objects that are chunks by themselves are never edited.
    """
    _chains: dict[tuple[int, ...], CodecChain]
    _shards: dict[tuple[int, ...], ShardLayout]

    def chain(self, chunk_shape: tuple[int, ...]) -> CodecChain:
        """The codec chain for chunks of a shape that occurs in the grid."""
        chain = self._chains.get(chunk_shape)
        if chain is None:
            chain = self._chains[chunk_shape] = _chain(self.chunk_codecs, self.metadata, chunk_shape)
        return chain

    def shard(self, coordinates: Sequence[int]) -> ShardLayout | None:
        """The layout of the shard at these grid coordinates; ``None`` where objects are single chunks."""
        if self.sharding is None:
            return None
        if self.uniform_shard is not None:
            return self.uniform_shard
        shape = tuple(axis.extent(i) for axis, i in zip(self.grids.storage, coordinates, strict=True))
        layout = self._shards.get(shape)
        if layout is None:
            layout = self._shards[shape] = self.sharding.layout(shape, self.metadata)
        return layout

    def chain_of(self, coordinates: Sequence[int]) -> CodecChain:
        """The codec chain for the chunks in the object at these grid coordinates."""
        if self.blocks is not None:
            return self.blocks.chain
        if self.sharding is not None:
            return self.chain(self.sharding.chunk_shape)
        return self.chain(tuple(axis.extent(i) for axis, i in zip(self.grids.storage, coordinates, strict=True)))

    @property
    def chunk_codecs(self) -> tuple[Codec, ...]:
        """What a chunk goes through: the inner codecs of shards that can be read chunk by chunk, else all."""
        return self.codecs if self.sharding is None else self.sharding.inner_codecs

    @property
    def object_shape(self) -> tuple[int, ...] | None:
        """Shape of stored objects; ``None`` where they differ (rectilinear grids)."""
        axes = self.grids.storage
        return tuple(axis.runs[0][0] for axis in axes) if all(axis.is_regular for axis in axes) else None

    @property
    def fits_memory(self) -> bool:
        """Whether the settings allow the memory that a decoded chunk takes, be it the largest."""
        if self.blocks is not None:
            return self.blocks.chain.most_for_kernel() >= 0
        return self.chunk_nbytes <= limit_of(CHUNK)

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a decoded chunk; of the largest, where they differ."""
        return prod([axis.longest for axis in self.grids.chunks]) * self.metadata.dtype.itemsize

    @property
    def object_nbytes(self) -> int:
        """Bytes of all elements of a stored object; of the largest, where they differ."""
        return prod([axis.longest for axis in self.grids.storage]) * self.metadata.dtype.itemsize

    def chunks_in_array(self, coordinates: Sequence[int]) -> int:
        """How many chunks of the object at these grid coordinates hold elements of the array."""
        count, grids = 1, self.grids
        if self.blocks is not None:
            sizes = zip(coordinates, self.blocks.shape, self.blocks.per_object, grids.storage, strict=True)
            for coordinate, size, ratio, axis in sizes:
                count *= min(ratio, -(-axis.length // size) - coordinate * ratio)
            return count
        for coordinate, objects, chunks in zip(coordinates, grids.storage, grids.chunks, strict=True):
            start = objects.start(coordinate)
            stop = min(start + objects.extent(coordinate), objects.length)
            size = objects.extent(coordinate) if self.sharding is None else chunks.runs[0][0]
            count *= -(-(stop - start) // size)
        return count

    def with_shape(self, metadata: ArrayMetadata) -> ArrayLayout:
        """The layout of the same array after its ``metadata`` changed in shape, grid or attributes only."""
        resized = self.grid.resized(metadata.shape)
        if self.blocks is None or (resized is not self.grid and resized != self.grid):
            return prepare_layout(metadata, f"metadata of a resized array of shape {metadata.shape}")
        return with_fields(self, metadata=metadata, grids=self.grids.resized(metadata.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Chunks of one shape, in objects of one shape."""

    shape: tuple[int, ...]
    """Elements of a chunk along each axis."""
    per_object: tuple[int, ...]
    """Chunks of an object along each axis."""
    strides: tuple[int, ...]
    """How many rows of the shard index lie between neighbours along each axis; zeros where objects are chunks."""
    chain: CodecChain
    """What each of them is encoded by."""
    dtype: np.dtype[Any]
    """Of their elements."""
    opaque: np.dtype[Any]
    """The same as the kernel takes it: so many bytes."""
    grid: UniformGrid | None
    """The same lengths for the kernel; ``None`` without it, or where one is too large for it."""

    @property
    def nbytes(self) -> int:
        """Bytes of a decoded chunk."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def is_compressed(self) -> bool:
        """Whether encoded chunks are of differing sizes, so that to make one takes longer than to copy it."""
        return not self.chain.encoded.exact

    def locate(self, block: Block) -> tuple[tuple[int, ...], int, tuple[int, ...]] | None:
        """Return where a block is; ``None`` if it does not lie in one chunk.

        That is grid coordinates of the object, row of the chunk in its index, first element of the block in the chunk.
        """
        if self.grid is not None:
            return self.grid.locate(block.starts, block.counts)
        row, objects, first = 0, [], []
        axes = zip(block.starts, block.counts, self.shape, self.per_object, self.strides, strict=True)
        for start, count, size, ratio, stride in axes:
            chunk, begin = divmod(start, size)
            if begin + count > size:
                return None
            number, local = divmod(chunk, ratio)
            objects.append(number)
            first.append(begin)
            row += local * stride
        return tuple(objects), row, tuple(first)

    def count(self, block: Block) -> int:
        """Return how many chunks a block touches."""
        axes = zip(block.starts, block.counts, self.shape, strict=True)
        return prod([(start + count - 1) // size - start // size + 1 for start, count, size in axes])

    def objects(self, block: Block, most: int) -> list[tuple[int, ...]] | None:
        """Return the coordinates of all objects that a block touches, in C order; ``None`` for more than ``most``."""
        ranges, count = [], 1
        axes = zip(block.starts, block.counts, self.shape, self.per_object, strict=True)
        for start, length, size, ratio in axes:
            touched = range(start // (size * ratio), (start + length - 1) // (size * ratio) + 1)
            count *= len(touched)
            if count > most:
                return None
            ranges.append(touched)
        return list(product(*ranges))

    def plan(
        self,
        block: Block,
        shape: tuple[int, ...],
        found: tuple[tuple[int, ...], int, tuple[int, ...]] | None = None,
    ) -> BlockPlan | None:
        """Return the plan of a block in an array of ``shape``; ``None`` if it does not lie in one chunk.

        ``found``: what :meth:`locate` said of it, where that is known.
        """
        found = self.locate(block) if found is None else found
        if found is None:
            return None
        objects, row, first = found
        place, valid = [], []
        for start, size, length in zip(block.starts, self.shape, shape, strict=True):
            chunk = start // size
            place.append(chunk)
            valid.append(min(size, length - chunk * size))
        return BlockPlan(objects, row, tuple(place), self.shape, first, block.counts, tuple(valid))


@dataclass(frozen=True, slots=True, eq=False)
class _OpenSharding:
    """A sharding codec whose inner chunks can be reached one by one from the array.

    Transposes before it are moved into the chain of the inner chunks, whose shape and whose order in the index they
    permute. Elementwise codecs run there already, see :class:`~zardine.codecs.chain.CodecChain`.
    """

    codec: ShardingCodec
    before: tuple[TransposeCodec, ...]
    chunk_shape: tuple[int, ...]
    """Of inner chunks, in the axis order of the array."""

    @property
    def inner_codecs(self) -> tuple[Codec, ...]:
        """What one inner chunk of the array goes through."""
        return (*self.before, *self.codec.codecs)

    def layout(self, shard_shape: tuple[int, ...], metadata: ArrayMetadata) -> ShardLayout:
        """The layout of shards of a shape given in the axis order of the array."""
        orders = [codec.dimensions for codec in self.before]
        problems = Problems()
        spec = ChunkSpec(shard_shape, metadata.data_type, metadata.fill)
        for codec in self.before:
            spec = codec.encoded_spec(spec)
        prepared = prepare_sharding(self.codec, spec, problems)
        problems.raise_if_any(f"shards of shape {shard_shape}")
        assert prepared is not None
        layout = prepared.layout
        grid, strides = layout.grid, layout.strides
        for order in reversed(orders):
            grid, strides = _untranspose(grid, order), _untranspose(strides, order)
        return replace(layout, grid=grid, strides=strides)


def prepare_layout(metadata: ArrayMetadata, subject: str = "the document is invalid") -> ArrayLayout:
    """Check every extension of ``metadata`` in meaning, and work out the layout.

    Raises :class:`~zardine.errors.MetadataError` with every problem; its text starts with ``subject``.
    """
    document = metadata.first_document
    known = None if document is None else _layouts.get(document)
    if known is not None:
        return known if known.metadata is metadata else with_fields(known, metadata=metadata)
    layout = _by_form(metadata)
    if layout is None:
        layout = _work_out(metadata, subject)
        if metadata.form is not None:
            _forms.put(metadata.form, layout, len(metadata.form) + _WORKED_OUT)
    if document is not None:
        _layouts.put(document, layout, len(document) + _WORKED_OUT)
    return layout


def _by_form(metadata: ArrayMetadata) -> ArrayLayout | None:
    """What was worked out for another array of the same form, which may have another shape; ``None`` for nothing."""
    known = None if metadata.form is None else _forms.get(metadata.form)
    if known is None:
        return None
    if known.metadata.shape == metadata.shape:
        return with_fields(known, metadata=metadata)
    grid = known.grid
    if known.blocks is None or type(grid) is not RegularGrid or grid.resized(metadata.shape) is not grid:
        return None  # where lengths matter
    return with_fields(known, metadata=metadata, grids=known.grids.resized(metadata.shape))


def _is_draft(codecs: Iterable[Codec]) -> bool:
    return any(isinstance(codec, ShardingCodec) and (codec.draft or _is_draft(codec.codecs)) for codec in codecs)


def layout_notes(layout: ArrayLayout) -> list[Problem]:
    """Return what is read of the grid and codecs of a v3 array although their specifications have it otherwise."""
    metadata = layout.metadata
    if metadata.zarr_format != 3:
        return []
    problems = Problems(with_notes=True)
    parse_chunk_grid(metadata.chunk_grid, metadata.shape, problems)
    codecs = [parse_codec(each.to_json(), f"codecs[{i}]", problems) for i, each in enumerate(metadata.codecs)]
    spec = ChunkSpec(_first_shape(layout.grids.storage), metadata.data_type, metadata.fill)
    build_chain([codec for codec in codecs if codec is not None], spec, "codecs", problems)
    return problems.notes


def _first_shape(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(axis.runs[0][0] if axis.runs else 1 for axis in axes)


_MOST_KNOWN = 4 * 2**20
"""Bytes of the layouts, and of the encodings, that are remembered, about."""
_WORKED_OUT = 12 * 2**10
"""Bytes that one of them takes, about, beside what it is found by."""
_layouts: Cache[bytes, ArrayLayout] = Cache(_MOST_KNOWN)
"""By document."""
_forms: Cache[bytes, ArrayLayout] = Cache(_MOST_KNOWN)
"""By form, as the first array of that had it."""


def _work_out(metadata: ArrayMetadata, subject: str) -> ArrayLayout:
    problems = Problems()
    grid = parse_chunk_grid(metadata.chunk_grid, metadata.shape, problems)
    keys = parse_chunk_key_encoding(metadata.chunk_key_encoding, problems)
    objects = () if grid is None else grid.axes(metadata.shape)
    first = None if grid is None else _first_shape(objects)
    encoding = _encoding(metadata, first, problems)
    if encoding is not None and encoding.sharding is not None:
        _check_every_shard(encoding, objects, problems)
    if encoding is not None and grid is not None and not isinstance(grid, RegularGrid):
        _check_no_draft(encoding.codecs, problems)
    problems.raise_if_any(subject)
    assert grid is not None
    assert keys is not None
    assert encoding is not None
    assert first is not None
    chunks = _chunk_axes(objects, encoding.sharding)
    is_regular = all(axis.is_regular for axis in objects)
    uniform_shard = encoding.shards.get(first) if is_regular else None
    return ArrayLayout(
        metadata,
        grid,
        keys,
        keys.form(metadata.ndim),
        encoding.codecs,
        TwoGrids(objects, chunks),
        encoding.sharding,
        uniform_shard,
        _blocks(first, encoding, uniform_shard) if is_regular else None,
        encoding.pipeline,
        _is_draft(encoding.codecs),
        encoding.sharding is None or any(isinstance(codec, Crc32cCodec) for codec in encoding.sharding.codec.codecs),
        encoding.chains,
        encoding.shards,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Encoding:
    """What the codecs alone decide. Shared by all arrays whose codecs, data type and fill value are the same."""

    codecs: tuple[Codec, ...]
    sharding: _OpenSharding | None
    pipeline: Any
    chains: dict[tuple[int, ...], CodecChain]
    shards: dict[tuple[int, ...], ShardLayout]


_encodings: Cache[object, _Encoding] = Cache(_MOST_KNOWN)


def _encoding(metadata: ArrayMetadata, first: tuple[int, ...] | None, problems: Problems) -> _Encoding | None:
    """The codecs checked against chunks of shape ``first`` (``None``: the grid is wrong, so that is not known)."""
    documents = [codec.to_json() for codec in metadata.codecs]
    fill = metadata.fill
    bits = fill.tobytes() if metadata.data_type.item_size is not None else repr(fill[()])
    key = (json.dumps(documents), metadata.data_type, bits, first)
    known = _encodings.get(key)
    if known is not None:
        return known
    before = len(problems.found)
    codecs = [parse_codec(document, f"codecs[{i}]", problems) for i, document in enumerate(documents)]
    if first is None or len(problems.found) > before:
        return None
    spec = ChunkSpec(first, metadata.data_type, fill)
    chain = build_chain([codec for codec in codecs if codec is not None], spec, "codecs", problems)
    if chain is None:
        return None
    sharding = _open_sharding(chain)
    if sharding is None:
        encoding = _Encoding(chain.codecs, None, make_pipeline(chain), {first: chain}, {})
    elif sharding.before:
        inner = _chain(sharding.inner_codecs, metadata, sharding.chunk_shape)
        encoding = _Encoding(chain.codecs, sharding, make_pipeline(inner), {sharding.chunk_shape: inner}, {})
    else:
        prepared = prepare_sharding(sharding.codec, chain.serializer_spec, Problems())
        assert prepared is not None  # the same call succeeded when the chain was built
        chains, shards = {sharding.chunk_shape: prepared.chain}, {first: prepared.layout}
        encoding = _Encoding(chain.codecs, sharding, make_pipeline(prepared.chain), chains, shards)
    _encodings.put(key, encoding, len(key[0]) + _WORKED_OUT)
    return encoding


def _chunk_axes(objects: tuple[Axis, ...], sharding: _OpenSharding | None) -> tuple[Axis, ...]:
    if sharding is None:
        return objects
    return tuple(Axis.regular(axis.length, n) for axis, n in zip(objects, sharding.chunk_shape, strict=True))


def _blocks(shape: tuple[int, ...], encoding: _Encoding, shard: ShardLayout | None) -> Blocks | None:
    if encoding.sharding is None:
        return _blocks_of(shape, (1,) * len(shape), (0,) * len(shape), encoding.chains[shape])
    if shard is None:
        return None
    chunk_shape = encoding.sharding.chunk_shape
    return _blocks_of(chunk_shape, shard.grid, shard.strides, encoding.chains[chunk_shape])


def _blocks_of(
    shape: tuple[int, ...], per_object: tuple[int, ...], strides: tuple[int, ...], chain: CodecChain
) -> Blocks:
    dtype = chain.spec.dtype
    grid = _kernel_grid(shape, per_object, strides)
    return Blocks(shape, per_object, strides, chain, dtype, np.dtype(f"V{dtype.itemsize}"), grid)


def _kernel_grid(shape: tuple[int, ...], per_object: tuple[int, ...], strides: tuple[int, ...]) -> UniformGrid | None:
    if KERNEL is None:
        return None
    with suppress(ValueError, OverflowError):
        grid: UniformGrid = KERNEL.UniformGrid(shape, per_object, strides)
        return grid
    return None


@lru_cache(maxsize=64)
def one_chunk(shape: tuple[int, ...]) -> UniformGrid | None:
    """Return the grid of an object that is one chunk, as the kernel takes it; ``None`` as for :class:`Blocks`."""
    return _kernel_grid(shape, (1,) * len(shape), (0,) * len(shape))


def _open_sharding(chain: CodecChain) -> _OpenSharding | None:
    codec = chain.serializer
    before = tuple(each for each, _ in chain.filters if isinstance(each, TransposeCodec))
    if not isinstance(codec, ShardingCodec) or chain.compressors or len(before) < len(chain.filters):
        return None
    chunk_shape = codec.chunk_shape
    for each in reversed(before):
        chunk_shape = _untranspose(chunk_shape, each.dimensions)
    return _OpenSharding(codec, before, chunk_shape)


def _check_every_shard(encoding: _Encoding, objects: tuple[Axis, ...], problems: Problems) -> None:
    assert encoding.sharding is not None
    number = next(i for i, codec in enumerate(encoding.codecs) if isinstance(codec, ShardingCodec))
    place = f"codecs[{number}].configuration.chunk_shape"
    for dimension, (axis, inner) in enumerate(zip(objects, encoding.sharding.chunk_shape, strict=True)):
        for size in [size for size, _ in axis.runs if size % inner][:1]:
            problems.add(
                place,
                f"inner chunks of length {inner} do not evenly divide shards of length {size} on axis {dimension}",
            )


def _check_no_draft(codecs: tuple[Codec, ...], problems: Problems) -> None:
    for i, codec in enumerate(codecs):
        if isinstance(codec, ShardingCodec) and codec.draft:
            problems.add(
                f"codecs[{i}].configuration.index_codecs",
                "the member is missing; the draft of March 2023, which has none, is for regular chunk grids only",
            )


def _chain(codecs: Sequence[Codec], metadata: ArrayMetadata, chunk_shape: tuple[int, ...]) -> CodecChain:
    problems = Problems()
    chain = build_chain(codecs, ChunkSpec(chunk_shape, metadata.data_type, metadata.fill), "codecs", problems)
    problems.raise_if_any(f"chunks of shape {chunk_shape}")
    assert chain is not None
    return chain


def _untranspose(values: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """Values in the axis order after a transpose, in the axis order before it."""
    result = [0] * len(values)
    for encoded, decoded in enumerate(order):
        result[decoded] = values[encoded]
    return tuple(result)
