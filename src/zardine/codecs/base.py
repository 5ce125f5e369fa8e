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
from zardine.errors import Problem
from zardine.json_document import JSON, Problems


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


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """How many bytes decoding may give: exactly ``nbytes`` where ``exact``, else at most ``nbytes``."""

    nbytes: int
    exact: bool

    def check(self, nbytes: int) -> str | None:
        """Why ``nbytes`` decoded bytes cannot be right, or ``None``."""
        if self.exact and nbytes != self.nbytes:
            return f"decoded to {nbytes} bytes, expected {self.nbytes}"
        if nbytes > self.nbytes:
            return f"decoded to {nbytes} bytes, at most {self.nbytes} are possible"
        return None


class Codec(ABC):
    """What all three kinds have in common. Subclasses are frozen dataclasses whose fields are the configuration."""

    name: ClassVar[str]
    """The ``name`` member, as registered."""

    kind: ClassVar[str]
    """What goes in and out, in the words of the specification."""

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


class ArrayArrayCodec(Codec):
    """``array -> array``."""

    kind: ClassVar[str] = "array -> array"

    elementwise: ClassVar[bool] = False
    """Each element is encoded by itself, so that the codec may as well run on each inner chunk of a shard."""

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The encoded representation (``compute_encoded_representation_type``)."""
        return spec

    @abstractmethod
    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """Encode a chunk of ``spec``; the result has ``encoded_spec(spec)``. May return a view."""

    @abstractmethod
    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """Decode to a chunk of ``spec``; ``array`` has ``encoded_spec(spec)``. May return a view."""


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

    @abstractmethod
    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """Decode a chunk of ``spec``. The result may be read-only and may share memory with ``data``."""


class BytesBytesCodec(Codec):
    """``bytes -> bytes``."""

    kind: ClassVar[str] = "bytes -> bytes"

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
