"""A list of codecs prepared for one kind of chunk: checked once, then run for every chunk.

Specification: core 3.1, "Codecs": zero or more ``array -> array``, exactly one ``array -> bytes``, zero or more
``bytes -> bytes`` codecs; "Determination of encoded representations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import LOOK, ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec, SizeLimit
from zardine.errors import ChunkDecodeError, CorruptionError, DataError, MetadataError, Problem
from zardine.json_document import Problems
from zardine.limits import CHUNK, TEXT, UNUSED, limit_of, too_large
from zardine.settings import config


class ChainParts(NamedTuple):
    """A codec chain by what its codecs take and give."""

    filters: tuple[ArrayArrayCodec, ...]
    serializer: ArrayBytesCodec
    compressors: tuple[BytesBytesCodec, ...]


Filters: TypeAlias = tuple[tuple[ArrayArrayCodec, ChunkSpec], ...]
"""``array -> array`` codecs with their decoded representations."""


def split_chain(codecs: Sequence[Codec]) -> ChainParts:
    """Return the ``array -> array`` codecs, the one ``array -> bytes`` codec, and the ``bytes -> bytes`` codecs."""
    return ChainParts(
        tuple(codec for codec in codecs if isinstance(codec, ArrayArrayCodec)),
        next(codec for codec in codecs if isinstance(codec, ArrayBytesCodec)),
        tuple(codec for codec in codecs if isinstance(codec, BytesBytesCodec)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Allowed:
    """What some settings allow a chain."""

    settings: Mapping[str, Any] | None
    most: int
    """Bytes of an encoded chunk that may be read."""
    limits: tuple[SizeLimit, ...]
    """As those of the chain, with what the settings say in them."""
    fits: bool
    """Whether the elements of a chunk may take the memory that they need."""


@dataclass(frozen=True, slots=True, eq=False)
class CodecChain:
    """Encodes and decodes chunks of ``spec``; has no state, so any number of threads may use it at once."""

    spec: ChunkSpec
    codecs: tuple[Codec, ...]
    """All codecs in the order of encoding, automatic parameters filled in."""
    filters: Filters
    """The ``array -> array`` codecs that do not run inside of ``serializer``, with their decoded representations."""
    serializer: ArrayBytesCodec
    serializer_spec: ChunkSpec
    compressors: tuple[BytesBytesCodec, ...]
    limits: tuple[SizeLimit, ...]
    """For each of ``compressors``, how many bytes it may decode to."""
    encoded: SizeLimit
    """How many bytes an encoded chunk may take."""
    memory: int
    """Bytes of the elements of a chunk in memory, at the step of the chain where they take most."""
    _seen: list[_Allowed] = field(default_factory=lambda: [_Allowed(None, 0, (), fits=True)], repr=False)
    """What the settings allow that were looked at last."""

    @property
    def encoded_size(self) -> int | None:
        """Bytes of every encoded chunk, or ``None`` where that varies."""
        return self.encoded.nbytes if self.encoded.exact else None

    @property
    def encoded_limit(self) -> int | None:
        """Most bytes that an encoded chunk may take, without unused ones; ``None`` where elements vary in length."""
        return None if TEXT in self.encoded.settings else self.encoded.nbytes

    def _allowed(self) -> _Allowed:
        """What the settings allow now."""
        known = self._seen[0]
        if known.settings is not config.snapshot:
            fits, most = self.memory <= limit_of(CHUNK), self.encoded.now().nbytes
            limits = tuple(limit.now() for limit in self.limits)
            known = _Allowed(config.snapshot, most if fits else min(most, LOOK), limits, fits=fits)
            self._seen[0] = known
        return known

    def most_stored(self) -> int:
        """The most bytes of an encoded chunk that may be read."""
        known = self._seen[0]
        return known.most if known.settings is config.snapshot else self._allowed().most

    def most_for_kernel(self) -> int:
        """:meth:`most_stored`, or -1 where a decoded chunk takes more memory than settings allow."""
        known = self._seen[0]
        allowed = known if known.settings is config.snapshot else self._allowed()
        return allowed.most if allowed.fits else -1

    def check_stored(self, nbytes: int) -> None:
        """Raise the error for an encoded chunk of ``nbytes`` bytes that is more than :meth:`most_stored`.

        That is :class:`~zardine.errors.ChunkDecodeError` where no chunk can take so many bytes, and
        :class:`~zardine.errors.ChunkTooLargeError`, which names the setting, where the settings do not allow it.
        """
        if self.encoded.exact and nbytes > self.encoded.nbytes:
            raise ChunkDecodeError(f"{nbytes} bytes, expected {self.encoded.nbytes}", codec=self.codecs[-1].name)
        if nbytes > self.most_stored():
            self.check_memory()
            limit = self.encoded.now()
            if limit.settings:
                raise too_large("the stored chunk", nbytes, limit.settings[0])
            raise ChunkDecodeError(f"{nbytes} bytes, expected at most {limit.nbytes}", codec=self.codecs[-1].name)

    def check_memory(self) -> None:
        """Raise :class:`~zardine.errors.ChunkTooLargeError` where a chunk takes more memory than the settings allow."""
        if not self._allowed().fits:
            raise too_large(f"a chunk of shape {self.spec.shape}", self.memory, CHUNK)

    def encode(self, array: npt.NDArray[Any], *, write_empty: bool = False) -> BytesLike:
        """The stored bytes of a chunk; ``array`` has the shape and dtype of ``spec``.

        With ``write_empty`` inner chunks of shards are stored also where they equal the fill value.
        Raises :class:`~zardine.errors.EncodeError`, and :class:`~zardine.errors.ChunkTooLargeError` for a chunk that
        takes more memory than the settings allow.
        """
        self.check_memory()
        codec: Codec = self.serializer
        try:
            for codec, spec in self.filters:
                array = codec.encode(array, spec)
            codec = self.serializer
            encode = self.serializer.encode_all if write_empty else self.serializer.encode
            data = encode(array, self.serializer_spec)
            for codec in self.compressors:
                data = codec.encode(data)
        except DataError as error:
            raise error.at(codec=codec.name) from None
        return data

    def decode(self, data: BytesLike, part: tuple[Any, ...] | None = None) -> npt.NDArray[Any]:
        """The chunk that ``data`` holds: shape and dtype of ``spec``, perhaps read-only, perhaps a view of ``data``.

        With ``part``, an index of integers, slices and arrays of integers, only what that takes of the chunk is needed:
        of shards in shards, other inner chunks are not decoded.

        Raises :class:`~zardine.errors.CorruptionError` for bytes that no encoder wrote, and
        :class:`~zardine.errors.ChunkTooLargeError` for such as take more memory than the settings allow.
        """
        codec: Codec = self.serializer
        try:
            for codec, limit in zip(reversed(self.compressors), reversed(self._allowed().limits), strict=True):
                data = codec.decode(data, limit)
            codec = self.serializer
            serialized = self.limits[0] if self.limits else self.encoded
            if not codec.counts_first and (not serialized.exact or serialized.nbytes == len(data)):
                self.check_memory()
            if part is None or self.filters:
                array = self.serializer.decode(data, self.serializer_spec)
            else:
                array = self.serializer.decode_box(data, self.serializer_spec, box_around(part, self.spec.shape))
            for codec, spec in reversed(self.filters):
                array = codec.decode(array, spec)
        except DataError as error:
            raise error.at(codec=codec.name) from None
        return array

    def replaced(self, data: BytesLike, start: int, array: npt.NDArray[Any]) -> BytesLike | None:
        """The chunk that ``data`` holds, with the elements of ``array`` from number ``start`` on, as bytes again.

        For elements in C order, of which those that stay are not decoded. ``None`` where that cannot be done, or what
        is stored is damaged: :meth:`decode` says how. Raises as :meth:`encode`.
        """
        if self.filters:
            return None
        self.check_memory()
        try:
            for codec, limit in zip(reversed(self.compressors), reversed(self._allowed().limits), strict=True):
                data = codec.decode(data, limit)
        except CorruptionError:
            return None
        changed = self.serializer.replaced(data, self.serializer_spec, start, array)
        if changed is None:
            return None
        for codec in self.compressors:
            changed = codec.encode(changed)
        return changed

    def is_fill(self, array: npt.NDArray[Any]) -> bool:
        """Whether every element of ``array`` equals the fill value, bit by bit (NaN payloads and -0.0 count)."""
        return equals_fill(array, self.spec.fill)


def box_around(part: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return the smallest box that holds what the index ``part`` takes of an array of ``shape``, or a larger one."""
    box = [(0, length) for length in shape]
    if len(part) == len(shape):
        for axis, (taken, length) in enumerate(zip(part, shape, strict=True)):
            if isinstance(taken, slice):
                numbers = range(*taken.indices(length))
                ends = (numbers[0], numbers[-1]) if numbers else ()
            else:
                found = np.asarray(taken)
                ends = (int(found.min()), int(found.max())) if found.size else ()
            if ends:
                box[axis] = min(ends), max(ends) + 1
    return tuple(box)


def build_chain(codecs: Sequence[Codec], spec: ChunkSpec, place: str, problems: Problems) -> CodecChain | None:
    """Prepare ``codecs`` for chunks of ``spec``; notes every problem, with ``place`` (``codecs``) before the number."""
    kinds = [_kind(codec) for codec in codecs]
    if kinds.count(1) != 1:
        problems.add(place, f"exactly one array -> bytes codec is required, found {kinds.count(1)}")
        return None
    if kinds != sorted(kinds):
        names = ", ".join(codec.name for codec in codecs)
        problems.add(
            place, f"codecs must go array -> array, then array -> bytes, then bytes -> bytes; found the order {names}"
        )
        return None
    before = len(problems.found)
    filters: list[tuple[ArrayArrayCodec, ChunkSpec]] = []
    compressors: list[BytesBytesCodec] = []
    limits: list[SizeLimit] = []
    serializer: ArrayBytesCodec | None = None
    serializer_spec = current = spec
    size = SizeLimit(0, True)
    memory = spec.memory
    for i, each in enumerate(codecs):
        try:
            codec = each.resolve(current)
            reason = codec.check(current)
            if reason is not None:
                problems.add(f"{place}[{i}]", f"{codec.name}: {reason}")
                return None
            if problems.with_notes:
                for remark in codec.remarks(current):
                    problems.note(f"{place}[{i}]{remark.place}", remark.message)
            if isinstance(codec, ArrayArrayCodec):
                filters.append((codec, current))
                current = codec.encoded_spec(current)
                memory = max(memory, current.memory)
            elif isinstance(codec, ArrayBytesCodec):
                serializer, serializer_spec = codec, current
                size = _serialized(codec, current)
            elif isinstance(codec, BytesBytesCodec):
                compressors.append(codec)
                limits.append(size)
                size = _compressed(codec, size)
        except MetadataError as error:
            problems.found.extend(Problem(f"{place}[{i}]{each.place}", each.message) for each in error.problems)
            return None
        except (DataError, ValueError, TypeError, OverflowError) as error:
            problems.add(f"{place}[{i}]", f"{each.name}: {error}")
            return None
    assert serializer is not None
    if len(problems.found) > before:
        return None
    resolved = (*(codec for codec, _ in filters), serializer, *compressors)
    inner, serializer, serializer_spec = _filter_inside(tuple(filters), serializer, serializer_spec)
    return CodecChain(
        spec, resolved, inner, serializer, serializer_spec, tuple(compressors), tuple(limits), size, memory
    )


def _filter_inside(
    filters: Filters, serializer: ArrayBytesCodec, spec: ChunkSpec
) -> tuple[Filters, ArrayBytesCodec, ChunkSpec]:
    """Move elementwise codecs before a shard to its inner chunks; return the other codecs, the shard's codec and spec.

    So an inner chunk is left out if its elements equal the fill value, and not what a lossy codec makes of that; and
    what is left out reads as the fill value, bit by bit.
    """
    first = len(filters)
    while first and (filters[first - 1][0].elementwise or filters[first - 1][0].moves_only):
        first -= 1
    moved = [codec for codec, _ in filters[first:] if codec.elementwise]
    inside = serializer.with_filters(moved) if moved else None
    if inside is None:
        return filters, serializer, spec
    kept, current = list(filters[:first]), filters[first][1]
    for codec, _ in filters[first:]:
        if not codec.elementwise:
            kept.append((codec, current))
            current = codec.encoded_spec(current)
    return tuple(kept), inside, current


def _serialized(codec: ArrayBytesCodec, spec: ChunkSpec) -> SizeLimit:
    exact = codec.encoded_size(spec)
    if exact is not None:
        return SizeLimit(exact, True)
    limit = codec.encoded_limit(spec)
    settings = (TEXT,) if limit is None else ()
    return SizeLimit(limit or 0, False, (*settings, UNUSED) if codec.pads else settings)


def _compressed(codec: BytesBytesCodec, size: SizeLimit) -> SizeLimit:
    exact = codec.encoded_size(size.nbytes) if size.exact else None
    if exact is not None:
        return SizeLimit(exact, True)
    settings = (*size.settings, UNUSED) if codec.pads and UNUSED not in size.settings else size.settings
    return SizeLimit(codec.encoded_limit(size.nbytes), False, settings)


def equals_fill(array: npt.NDArray[Any], fill: npt.NDArray[Any]) -> bool:
    """Whether every element of ``array`` has the bits of ``fill``; for variable-length elements, equals it."""
    if array.size == 0:
        return True
    if array.dtype.kind == "O" and not isinstance(fill.item(), (bytes, str)):
        return False  # objects may compare in any way
    if array.dtype.kind in "OT":
        return bool((array == fill).all())  # as an array: NumPy drops NULs at the end of a scalar
    size = array.dtype.itemsize
    if size in (1, 2, 4, 8) and array.dtype.names is None:
        word = np.dtype(f"u{size}")
        wanted = fill.reshape(1).view(word)[0]
        corner: Any = (*(0,) * array.ndim, ...)  # as an array: NumPy drops NULs at the end of a scalar
        if array[corner].view(word) != wanted:  # the usual case, told at once
            return False
        return bool((array.view(word) == wanted).all())
    wanted_bytes = np.frombuffer(fill.tobytes(), np.uint8)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, size)
    return bool((raw == wanted_bytes).all())


def _kind(codec: Codec) -> int:
    return 0 if isinstance(codec, ArrayArrayCodec) else 1 if isinstance(codec, ArrayBytesCodec) else 2
