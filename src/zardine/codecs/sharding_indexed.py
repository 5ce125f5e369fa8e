"""``sharding_indexed``: many inner chunks in one object (sharding codec 1.0).

Here is the codec as the specification defines it, a pure function between a whole shard and its bytes. The engine does
better where it can: it takes the :class:`PreparedSharding` and touches only the inner chunks that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.chain import CodecChain, build_chain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.options import SubchunkWriteOrder
from zardine.codecs.registry import codec_from, parse_codec
from zardine.data_types import data_type_for
from zardine.errors import DataError, MetadataError, Problem
from zardine.json_document import JSON, MOST_DIMENSIONS, Problems, check_members, parse_choice, parse_integers
from zardine.public_names import public
from zardine.sharding.layout import IsChunk, Read, ShardLayout, c_strides

MAX_INNER_CHUNKS = 2**58
"""So that every offset in a shard's index fits 63 bits."""


CHUNK_ORDERS = {"morton": "morton", "unordered": "as_written", "lexicographic": "c", "colexicographic": "f"}
"""``subchunk_write_order`` of zarr-python, and what ``chunk_order`` that is."""


@public("zardine.codecs")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingCodec(ArrayBytesCodec):
    """Cuts a chunk (the shard) into inner chunks of ``chunk_shape``, encodes each with ``codecs``, and adds an index.

    ``chunk_shape`` divides the shard's shape on every axis. ``codecs`` and ``index_codecs`` may be given as codec
    objects, names, or JSON objects. ``index_location`` is ``"end"`` or ``"start"``.

    ``draft`` marks the dialect of the draft of March 2023, which is read and never written: the document has no
    ``index_codecs``, and the index at the end no checksum.

    ``subchunk_write_order`` chooses the setting ``chunk_order`` of an array that is made with this codec; documents do
    not record it.
    """

    chunk_shape: tuple[int, ...]
    codecs: tuple[Codec, ...] = (BytesCodec(),)
    index_codecs: tuple[Codec, ...] = (BytesCodec(), Crc32cCodec())
    index_location: str = "end"
    draft: bool = False
    subchunk_write_order: SubchunkWriteOrder | None = field(default=None, compare=False)
    name: ClassVar[str] = "sharding_indexed"
    pads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shape = self.chunk_shape if isinstance(self.chunk_shape, Iterable) else (self.chunk_shape,)
        problems = Problems()
        chunk_shape = parse_integers(_plain_lengths(shape), "chunk_shape", problems, low=1)
        location = getattr(self.index_location, "value", self.index_location)
        parse_choice(location, ("start", "end"), "index_location", problems)
        if self.subchunk_write_order is not None:
            parse_choice(self.subchunk_write_order, CHUNK_ORDERS, "subchunk_write_order", problems)
        problems.raise_if_any("ShardingCodec")
        object.__setattr__(self, "chunk_shape", chunk_shape)
        object.__setattr__(self, "index_location", location)
        for member in ("codecs", "index_codecs"):
            object.__setattr__(self, member, tuple(codec_from(codec) for codec in getattr(self, member)))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec that a ``configuration`` object describes; notes every problem."""
        before = len(problems.found)
        allowed = ("chunk_shape", "codecs", "index_codecs", "index_location")
        members = check_members(configuration, allowed, place, problems)
        draft = "index_codecs" not in members and "index_location" not in members
        for required in ("chunk_shape",) if draft else ("chunk_shape", "codecs", "index_codecs"):
            if required not in members:
                problems.add(f"{place}.{required}", "the member is missing; it is required")
        chunk_shape = location = None
        if "chunk_shape" in members:
            chunk_shape = parse_integers(members["chunk_shape"], f"{place}.chunk_shape", problems, low=1)
        if draft:
            message = "the member is missing, so that this is read as the draft of March 2023"
            problems.note(f"{place}.index_codecs", message)
        codecs = _parse_list(members.get("codecs", []), f"{place}.codecs", problems)
        _check_one_form(codecs or (), draft, place, problems)
        index_codecs = _parse_list(members.get("index_codecs", []), f"{place}.index_codecs", problems)
        location = parse_choice(
            members.get("index_location", "end"), ("start", "end"), f"{place}.index_location", problems
        )
        if chunk_shape is None or codecs is None or index_codecs is None or location is None:
            return None
        if len(problems.found) > before:
            return None
        if draft:
            index_codecs = (BytesCodec(endian="little"),)
            return cls(chunk_shape=chunk_shape, codecs=_with_bytes(codecs), index_codecs=index_codecs, draft=True)
        return cls(chunk_shape=chunk_shape, codecs=codecs, index_codecs=index_codecs, index_location=location)

    def configuration(self) -> dict[str, JSON]:
        """The ``configuration`` member."""
        if self.draft:
            return {"chunk_shape": list(self.chunk_shape), "codecs": [codec.to_json() for codec in self.codecs]}
        return {
            "chunk_shape": list(self.chunk_shape),
            "codecs": [codec.to_json() for codec in self.codecs],
            "index_codecs": [codec.to_json() for codec in self.index_codecs],
            "index_location": self.index_location,
        }

    def resolve(self, spec: ChunkSpec) -> Self:
        """This codec with the automatic parameters of its inner codecs chosen.

        Raises :class:`~zardine.errors.MetadataError` with every reason why shards of ``spec`` cannot be made so.
        """
        prepared = prepared_sharding(self, spec)
        resolved = type(self)(
            chunk_shape=self.chunk_shape,
            codecs=prepared.chain.codecs,
            index_codecs=prepared.layout.index_chain.codecs,
            index_location=self.index_location,
            draft=self.draft,
            subchunk_write_order=self.subchunk_write_order,
        )
        return self if resolved == self else resolved  # what is prepared for it is found again

    def remarks(self, spec: ChunkSpec) -> Sequence[Problem]:
        """Those of the inner codecs."""
        problems = Problems(with_notes=True)
        prepare_sharding(self, spec, problems)
        return problems.notes

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """``None``: empty inner chunks take no bytes."""
        return None

    def encoded_limit(self, spec: ChunkSpec) -> int | None:
        """Room for every inner chunk at its largest and the index, twice; unused space comes on top."""
        prepared = prepared_sharding(self, spec)
        inner = prepared.chain.encoded_limit
        return None if inner is None else 2 * (inner * prepared.layout.count + prepared.layout.index_size) + 2**20

    def with_filters(self, filters: Sequence[ArrayArrayCodec]) -> ShardingCodec:
        """Return the codec whose inner chunks go through ``filters`` first."""
        return replace(self, codecs=(*filters, *self.codecs))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """A whole shard. Inner chunks that are all fill value are left out."""
        return self._encode(array, spec, write_empty=False)

    def encode_all(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """A whole shard, with all of its inner chunks."""
        return self._encode(array, spec, write_empty=True)

    def _encode(self, array: npt.NDArray[Any], spec: ChunkSpec, *, write_empty: bool) -> BytesLike:
        prepared = prepared_sharding(self, spec)
        chain = prepared.chain
        chunks: list[BytesLike | None] = []
        for row in range(prepared.layout.count):
            inner = array[prepared.region(row)]
            is_empty = not write_empty and chain.is_fill(inner)
            chunks.append(None if is_empty else chain.encode(inner, write_empty=write_empty))
        return prepared.layout.assemble(chunks)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """A whole shard."""
        return self.decode_box(data, spec, tuple((0, length) for length in spec.shape))

    def decode_box(self, data: BytesLike, spec: ChunkSpec, box: tuple[tuple[int, int], ...]) -> npt.NDArray[Any]:
        """The inner chunks of a shard that ``box`` touches; no others are looked at."""
        prepared = prepared_sharding(self, spec)
        prepared.layout.check_too_short(len(data))
        prepared.layout.check_memory()
        index = prepared.layout.checked_index_of(data)
        rows = prepared.rows_of(box)
        array = np.empty(spec.shape, spec.dtype)
        if len(rows) < len(index):
            array[tuple(slice(low, high) for low, high in box)] = spec.fill
        else:
            array[...] = spec.fill
        view = memoryview(data)
        for row in rows[index.stored()[rows]].tolist():
            offset = int(index.offsets[row])
            try:
                array[prepared.region(row)] = prepared.chain.decode(view[offset : offset + int(index.lengths[row])])
            except DataError as error:
                raise type(error)(f"inner chunk {row}: {error.reason}", codec=error.codec) from None
        return array


def in_current_form(codec: Codec) -> Codec:
    """The codec as it is written: shards in the dialect of the draft, at any depth, become those of codec 1.0."""
    if not isinstance(codec, ShardingCodec):
        return codec
    codecs = tuple(map(in_current_form, codec.codecs))
    if codec.draft:
        return replace(codec, codecs=codecs, index_codecs=(BytesCodec(), Crc32cCodec()), draft=False)
    return codec if codecs == codec.codecs else replace(codec, codecs=codecs)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSharding:
    """The sharding codec ready for shards of one shape."""

    layout: ShardLayout
    chain: CodecChain
    """Encodes one inner chunk."""

    def region(self, row: int) -> tuple[Any, ...]:
        """The place in the shard of the inner chunk in a row of the index."""
        places = zip(self.layout.position_of(row), self.chain.spec.shape, strict=True)
        return tuple(slice(i * n, (i + 1) * n) for i, n in places) or (...,)  # an empty tuple would index a scalar

    def rows_of(self, box: tuple[tuple[int, int], ...]) -> npt.NDArray[np.int64]:
        """The rows of the index, in order, of the inner chunks that a box of elements of the shard touches."""
        rows = np.zeros(1, np.int64)
        for (low, high), length, stride in zip(box, self.chain.spec.shape, self.layout.strides, strict=True):
            rows = np.add.outer(rows, np.arange(low // length, -(-high // length)) * stride).reshape(-1)
        return rows


def prepare_sharding(codec: ShardingCodec, spec: ChunkSpec, problems: Problems) -> PreparedSharding | None:
    """Check ``codec`` against shards of ``spec`` and prepare it; places in ``problems`` start at ``.configuration``."""
    before = len(problems.found)
    if len(codec.chunk_shape) != len(spec.shape):
        problems.add(
            ".configuration.chunk_shape",
            f"expected {len(spec.shape)} elements, one for each dimension, found {len(codec.chunk_shape)}",
        )
        return None
    for axis, (inner, outer) in enumerate(zip(codec.chunk_shape, spec.shape, strict=True)):
        if outer % inner:
            problems.add(
                f".configuration.chunk_shape[{axis}]",
                f"inner chunks of length {inner} do not evenly divide a shard of length {outer}",
            )
    if len(problems.found) > before:
        return None
    grid = tuple(outer // inner for outer, inner in zip(spec.shape, codec.chunk_shape, strict=True))
    if prod(grid) > MAX_INNER_CHUNKS:
        problems.add(
            ".configuration.chunk_shape",
            f"a shard would have {prod(grid)} inner chunks, and an index of more than 2^63 bytes",
        )
        return None
    if len(grid) >= MOST_DIMENSIONS:
        problems.add(
            ".configuration.chunk_shape",
            f"the index of shards of {len(grid)} dimensions has one more, and NumPy can hold {MOST_DIMENSIONS}",
        )
        return None
    inner_spec = ChunkSpec(codec.chunk_shape, spec.data_type, spec.fill)
    chain = build_chain(codec.codecs, inner_spec, ".configuration.codecs", problems)
    index_chain = build_index_chain(codec.index_codecs, grid, ".configuration.index_codecs", problems)
    if chain is None or index_chain is None:
        return None
    assert index_chain.encoded_size is not None
    is_chunk = _tell_chunks(chain, index_chain.encoded_size)
    at_start = codec.index_location == "start"
    layout = ShardLayout(grid, c_strides(grid), index_chain, at_start, codec.draft, is_chunk)
    return PreparedSharding(layout, chain)


def _tell_chunks(chain: CodecChain, index_size: int) -> IsChunk | None:
    """:attr:`ShardLayout.is_chunk` of shards with chunks of ``chain``, where an index takes ``index_size`` bytes."""
    if chain.encoded_size == index_size:
        return lambda read, offset, length: length == index_size
    if not _has_index_of(chain, index_size):
        return None
    assert isinstance(chain.serializer, ShardingCodec)
    nested = prepared_sharding(chain.serializer, chain.serializer_spec).layout

    def is_shard(read: Read, offset: int, length: int) -> bool:
        if length < nested.index_size:
            return False
        first, size = nested.index_bytes(length)
        try:
            nested.check_memory()
            index = nested.decode_index(read((offset + first, size)))
            nested.check(index, length, lambda part: read((offset + part[0], part[1])))
        except DataError:
            return False
        return True

    def is_sound(read: Read, offset: int, length: int) -> bool:
        try:
            chain.check_stored(length)
            chain.decode(read((offset, length)))
        except DataError:
            return False
        return True

    return is_sound if chain.compressors else is_shard


def _has_index_of(chain: CodecChain, size: int) -> bool:
    """Whether a chunk may be a shard, or have shards in it, with an index of ``size`` bytes."""
    if not isinstance(chain.serializer, ShardingCodec):
        return False
    prepared = prepared_sharding(chain.serializer, chain.serializer_spec)
    return prepared.layout.index_size == size or _has_index_of(prepared.chain, size)


def build_index_chain(
    codecs: Sequence[Codec], grid: tuple[int, ...], place: str, problems: Problems
) -> CodecChain | None:
    """The codecs of a shard index of ``grid`` inner chunks; refuses codecs whose output varies in size."""
    data_type = data_type_for("uint64")
    chain = build_chain(codecs, ChunkSpec((*grid, 2), data_type, data_type.default_fill()), place, problems)
    if chain is not None and chain.encoded_size is None:
        names = [c.name for c in chain.codecs if isinstance(c, BytesBytesCodec) and c.encoded_size(64) is None]
        names = names or [chain.serializer.name]
        problems.add(place, f"the size of the index must be fixed, that of {', '.join(names)} varies")
        return None
    return chain


def _plain_lengths(shape: Any) -> list[Any]:
    """Integers of NumPy as those of Python; all else as it is, to be refused by name."""
    return [int(length) if isinstance(length, np.integer) else length for length in shape]


def _check_one_form(codecs: Sequence[Codec], draft: bool, place: str, problems: Problems) -> None:
    """Refuse a shard in a shard of which one has ``index_codecs`` and the other has not: no text knows of that."""
    for i, codec in enumerate(codecs):
        if isinstance(codec, ShardingCodec) and codec.draft != draft:
            here, there = (place, "inside of it") if draft else (f"{place}.codecs[{i}].configuration", "around it")
            message = f"the member is missing; it is required, since the codec {there} has it"
            problems.add(f"{here}.index_codecs", message)


def _parse_list(value: JSON, place: str, problems: Problems) -> tuple[Codec, ...] | None:
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array of codecs", value)
        return None
    found = [parse_codec(item, f"{place}[{i}]", problems, within=True) for i, item in enumerate(value)]
    return tuple(codec for codec in found if codec is not None)


def _with_bytes(codecs: tuple[Codec, ...]) -> tuple[Codec, ...]:
    """In the draft, elements were little-endian bytes in C order where no codec said otherwise."""
    if any(isinstance(codec, ArrayBytesCodec) for codec in codecs):
        return codecs
    filters = tuple(codec for codec in codecs if isinstance(codec, ArrayArrayCodec))
    return (*filters, BytesCodec(endian="little"), *codecs[len(filters) :])


@lru_cache(maxsize=512)
def prepared_sharding(codec: ShardingCodec, spec: ChunkSpec) -> PreparedSharding:
    """The sharding codec ready for shards of ``spec``; :class:`~zardine.errors.MetadataError` with every reason if not.

    Shards in shards ask for what is inside of them at every depth, and find here what was prepared.
    """
    problems = Problems()
    prepared = prepare_sharding(codec, spec, problems)
    if prepared is None:
        raise MetadataError(codec.name, problems.found)
    return prepared
