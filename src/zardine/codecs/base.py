"""What a codec is: a JSON description that also encodes and decodes one chunk, without any I/O.

Specification: core 3.1, "Codecs". Three kinds, by what goes in and out: ``array -> array``, ``array -> bytes``,
``bytes -> bytes``. Codecs are frozen values; one instance serves many chunks from many threads at once.

Decoders meet hostile bytes: they raise :class:`~zardine.errors.CorruptionError` (or a child) with a reason, never
anything else, and never allocate more than the :class:`ChunkSpec` or the :class:`SizeLimit` allows.
Encoders raise :class:`~zardine.errors.EncodeError` for values they cannot store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.data_types.base import DataType
from zardine.errors import ChunkDecodeError, Problem
from zardine.json_document import JSON, Problems, parse_extension, show
from zardine.limits import CHUNK, check_size, limit_of, too_large
from zardine.public_names import public

LOOK = 2**24
"""Bytes that are looked at of what cannot be held as a whole: they may tell that it is damaged."""

_OBJECT = 64
"""Bytes that an object takes at least, with its place in the array."""


@public("zardine.abc.codec")
@dataclass(frozen=True, slots=True, eq=False)
class ChunkSpec:
    """The decoded representation of a chunk at one step of the chain: shape, data type, fill value (0-dimensional)."""

    shape: tuple[int, ...]
    data_type: DataType
    fill: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int | None:
        """Bytes under the ``bytes`` codec; ``None`` where elements vary in length."""
        item = self.data_type.item_size
        return None if item is None else item * self.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements in memory."""
        return self.data_type.dtype

    def check_memory(self) -> None:
        """Raise :class:`~zardine.errors.ChunkTooLargeError` where the elements take more memory than settings allow."""
        check_size(f"a chunk of shape {self.shape}", self.memory)

    @property
    def memory(self) -> int:
        """Bytes that the elements take in memory, without what those of varying length have beside the array."""
        dtype = self.data_type.dtype
        return self.size * (_OBJECT if dtype.kind == "O" else dtype.itemsize)


@public("zardine.abc.codec")
@dataclass(frozen=True, slots=True)
class SizeLimit:
    """How many bytes there may be at one step of a chain: exactly ``nbytes`` where ``exact``, else at most ``nbytes``.

    Where what is stored may hold text, or bytes that mean nothing, ``settings`` name what else there may be: see
    :meth:`now`.
    """

    nbytes: int
    exact: bool
    settings: tuple[str, ...] = ()
    """Settings whose bytes come on top of ``nbytes``; in what :meth:`now` gives, the one that can be raised."""
    claimed: int | None = None
    """In what :meth:`now` gives: how many bytes the document says, where that is more than the settings allow."""

    def now(self) -> SizeLimit:
        """The limit as a decoder takes it, with what the settings allow at this moment in ``nbytes``."""
        largest = limit_of(CHUNK)
        if self.exact:
            return self if self.nbytes <= largest else SizeLimit(min(largest, LOOK), False, (CHUNK,), self.nbytes)
        most, setting = self.nbytes + sum(map(limit_of, self.settings)), self.settings[:1]
        return SizeLimit(most, False, setting) if most <= largest else SizeLimit(largest, False, (CHUNK,))

    def check(self, nbytes: int) -> str | None:
        """Why ``nbytes`` bytes cannot be right, or ``None``."""
        if self.exact and nbytes != self.nbytes:
            return f"decoded to {nbytes} bytes, expected {self.nbytes}"
        if nbytes > self.nbytes:
            return f"decoded to {nbytes} bytes, at most {self.nbytes} are possible"
        return None

    def enforce(self, nbytes: int, codec: str, *, at_least: bool = False) -> None:
        """Raise the error for ``nbytes`` decoded bytes (``at_least`` so many), unless they can be right.

        That is :class:`~zardine.errors.ChunkDecodeError`, or, where a setting allows no more,
        :class:`~zardine.errors.ChunkTooLargeError`.
        """
        reason = self.check(nbytes)
        if reason is None:
            return
        if at_least:
            reason = f"more than {self.nbytes} bytes when decompressed"
        if self.settings and nbytes > self.nbytes:
            more = at_least and self.claimed is None
            found = self.claimed or nbytes
            raise too_large("the decompressed content", found, self.settings[0], at_least=more).at(codec=codec)
        raise ChunkDecodeError(reason, codec=codec)


@public("zardine.abc.codec")
class Codec(ABC):
    """What all three kinds have in common. Subclasses are frozen dataclasses whose fields are the configuration."""

    name: ClassVar[str]
    """The ``name`` member, as registered."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that documents may have for this codec."""

    kind: ClassVar[str]
    """What goes in and out, in the words of the specification."""

    pads: ClassVar[bool] = False
    """Whether the encoded form may hold any number of bytes that mean nothing, which are legal all the same.

    There may be as many of them as the setting ``limits.unused_bytes`` allows, beyond ``encoded_limit``.
    """

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec that a ``configuration`` object describes (``None``: the member is absent).

        ``place`` is the place of the configuration in the document (``codecs[1].configuration``). Unknown members and
        wrong values are noted in ``problems``, all of them; then ``None`` is returned.
        """

    def configuration(self) -> dict[str, JSON] | None:
        """The ``configuration`` member to write, or ``None``.

        Every value is spelled out, except what the codec's own text says to omit.
        """
        return None

    def to_json(self) -> dict[str, JSON]:
        """The codec object of a metadata document."""
        configuration = self.configuration()
        return {"name": self.name} if configuration is None else {"name": self.name, "configuration": configuration}

    def to_dict(self) -> dict[str, JSON]:
        """Return the codec object of a metadata document, as :meth:`to_json` does; the name that zarr-python has."""
        return self.to_json()

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Return the codec that the object of a metadata document describes; the inverse of :meth:`to_dict`.

        Raises :class:`~zardine.errors.MetadataError` for faults, and where ``data`` names another codec.
        """
        problems = Problems()
        extension = parse_extension(data, "", problems)
        codec = None
        if extension is not None:
            codec = cls.from_json(extension.configuration, "configuration", problems)
            if codec is not None and extension.name != codec.name and extension.name not in cls.aliases:
                problems.add("name", f"expected {show(codec.name)}, found {show(extension.name)}")
        problems.raise_if_any(f"not a codec of {cls.__name__}")
        assert codec is not None
        return codec

    def resolve(self, spec: ChunkSpec) -> Self:
        """This codec with automatic parameters (a blosc ``typesize``) chosen for ``spec`` and so recorded.

        ``spec`` is the decoded representation; for ``bytes -> bytes`` codecs, that of the ``array -> bytes`` codec.
        """
        return self

    def check(self, spec: ChunkSpec) -> str | None:
        """Why chunks of ``spec`` cannot be encoded by this codec, or ``None``. Called once, when an array is opened."""
        return None

    def remark(self, spec: ChunkSpec) -> str | None:
        """Why other programs may refuse chunks of ``spec`` with this codec, which are read all the same, or ``None``.

        ``verify`` says so in a note, and no new array is made like that.
        """
        return None

    def remarks(self, spec: ChunkSpec) -> Sequence[Problem]:
        """:meth:`remark` with its place, which starts at the codec; for codecs that hold others, theirs."""
        remark = self.remark(spec)
        return [] if remark is None else [Problem("", f"{self.name}: {remark}")]


@public("zardine.abc.codec")
class ArrayArrayCodec(Codec):
    """``array -> array``."""

    kind: ClassVar[str] = "array -> array"

    elementwise: ClassVar[bool] = False
    """Each element is encoded by itself, so that the codec may as well run on each inner chunk of a shard."""
    moves_only: ClassVar[bool] = False
    """The encoded chunk has the same elements in other places, so that elementwise codecs may as well run after it."""

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The encoded representation (``compute_encoded_representation_type``)."""
        return spec

    @abstractmethod
    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """Encode a chunk of ``spec``; the result has ``encoded_spec(spec)``. May return a view."""

    @abstractmethod
    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """Decode to a chunk of ``spec``; ``array`` has ``encoded_spec(spec)``. May return a view."""


@public("zardine.abc.codec")
class ArrayBytesCodec(Codec):
    """``array -> bytes``."""

    kind: ClassVar[str] = "array -> bytes"

    @abstractmethod
    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Encoded bytes of every chunk of ``spec`` (``compute_encoded_size``), or ``None`` if that varies."""

    def encoded_limit(self, spec: ChunkSpec) -> int | None:
        """The most bytes that a chunk of ``spec`` can encode to; ``None``: unknown (variable-length elements)."""
        return self.encoded_size(spec)

    @abstractmethod
    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """Encode a chunk of ``spec``."""

    def encode_all(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """As :meth:`encode`; where that leaves out parts that equal the fill value, these are stored all the same."""
        return self.encode(array, spec)

    counts_first: ClassVar[bool] = False
    """Whether :meth:`decode` calls :meth:`ChunkSpec.check_memory` itself, once it knows that no data are missing."""

    @abstractmethod
    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """Decode a chunk of ``spec``. The result may be read-only and may share memory with ``data``."""

    def decode_box(self, data: BytesLike, spec: ChunkSpec, box: tuple[tuple[int, int], ...]) -> npt.NDArray[Any]:
        """As :meth:`decode`, where only the elements in ``box`` are needed: the others may be anything.

        ``box``: the first element along each axis, and the one after the last.
        """
        return self.decode(data, spec)

    def with_filters(self, filters: Sequence[ArrayArrayCodec]) -> ArrayBytesCodec | None:
        """Return the codec that runs elementwise ``filters`` on each part before it decides whether that is empty.

        ``None`` if this codec stores a chunk as a whole.
        """
        return None

    def replaced(self, data: BytesLike, spec: ChunkSpec, start: int, array: npt.NDArray[Any]) -> BytesLike | None:
        """Return what ``data`` hold, with the elements of ``array`` in C order from number ``start`` on, encoded.

        ``None`` where that is not to be had without decoding all, or ``data`` are damaged, which :meth:`decode` tells.
        """
        return None


@public("zardine.abc.codec")
class BytesBytesCodec(Codec):
    """``bytes -> bytes``."""

    kind: ClassVar[str] = "bytes -> bytes"

    pads: ClassVar[bool] = True

    @abstractmethod
    def encoded_size(self, nbytes: int) -> int | None:
        """Encoded bytes of every input of ``nbytes`` bytes, or ``None`` if that varies."""

    @abstractmethod
    def encoded_limit(self, nbytes: int) -> int:
        """The most bytes that any writer's encoding of ``nbytes`` bytes may take, generously."""

    @abstractmethod
    def encode(self, data: BytesLike) -> BytesLike:
        """Encode."""

    @abstractmethod
    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """Decode, giving no more bytes than ``limit`` allows."""
