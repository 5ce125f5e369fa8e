"""From the grid coordinates of a chunk to its key (core 3.1, "Chunk key encodings")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from zardine.json_document import JSON, Extension, Problems, check_members, parse_choice
from zardine.registry_table import ExtensionTable


class ChunkKeyEncoding(ABC):
    """Names chunks. A frozen value."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The encoding that a ``configuration`` object describes; notes every problem."""

    @abstractmethod
    def configuration(self) -> dict[str, JSON]:
        """The ``configuration`` member to write."""

    @abstractmethod
    def encode(self, chunk: Sequence[int]) -> str:
        """The key of the chunk at these grid coordinates, relative to the array."""

    @abstractmethod
    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """The grid coordinates that ``key`` stands for; ``None`` where it is not the key of any chunk."""

    def form(self, ndim: int) -> str | None:
        """What ``encode`` gives as a form for ``%``, to be filled with the coordinates; ``None`` if it is none."""
        return None

    def to_extension(self) -> Extension:
        """The ``chunk_key_encoding`` member."""
        return Extension(self.name, self.configuration())

    def to_dict(self) -> dict[str, JSON]:
        """Return the ``chunk_key_encoding`` member as JSON, by zarr-python's name."""
        return {"name": self.name, "configuration": self.configuration()}


@dataclass(frozen=True)
class _Separated(ChunkKeyEncoding):
    separator: str

    default_separator: ClassVar[str]

    def __post_init__(self) -> None:
        if self.separator not in ("/", "."):
            raise ValueError(f"the separator of chunk keys is '/' or '.', not {self.separator!r}")

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        members = check_members(configuration, ("separator",), place, problems)
        value = members.get("separator", cls.default_separator)
        separator = parse_choice(value, ("/", "."), f"{place}.separator", problems)
        return None if separator is None else cls(separator)

    def configuration(self) -> dict[str, JSON]:
        return {"separator": self.separator}


@dataclass(frozen=True)
class DefaultChunkKeyEncoding(_Separated):
    """``c/1/23/45`` or ``c.1.23.45``; the one chunk of an array without dimensions is ``c``."""

    separator: str = "/"
    name: ClassVar[str] = "default"
    default_separator: ClassVar[str] = "/"

    def encode(self, chunk: Sequence[int]) -> str:
        return self.separator.join(("c", *map(str, chunk)))

    def form(self, ndim: int) -> str:
        return self.separator.join(("c", *("%d",) * ndim))

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        first, *rest = key.split(self.separator)
        return _numbers(rest, ndim) if first == "c" else None


@dataclass(frozen=True)
class V2ChunkKeyEncoding(_Separated):
    """``1.23.45`` or ``1/23/45``, as Zarr v2 names chunks; the one chunk of an array without dimensions is ``0``."""

    separator: str = "."
    name: ClassVar[str] = "v2"
    default_separator: ClassVar[str] = "."

    def encode(self, chunk: Sequence[int]) -> str:
        return self.separator.join(map(str, chunk)) if len(chunk) else "0"

    def form(self, ndim: int) -> str:
        return self.separator.join(("%d",) * ndim) if ndim else "0"

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        if ndim == 0:
            return () if key == "0" else None
        return _numbers(key.split(self.separator), ndim)


def _numbers(parts: list[str], ndim: int) -> tuple[int, ...] | None:
    good = len(parts) == ndim and all(part.isascii() and part.isdigit() for part in parts)
    numbers = tuple(map(int, parts)) if good else None
    return numbers if numbers is not None and [str(n) for n in numbers] == parts else None


CHUNK_KEY_ENCODINGS: ExtensionTable[type[ChunkKeyEncoding]] = ExtensionTable(
    "chunk key encoding", "zardine.chunk_key_encodings"
)
CHUNK_KEY_ENCODINGS.register("default", DefaultChunkKeyEncoding)
CHUNK_KEY_ENCODINGS.register("v2", V2ChunkKeyEncoding)


def parse_chunk_key_encoding(extension: Extension, problems: Problems) -> ChunkKeyEncoding | None:
    """The encoding that the ``chunk_key_encoding`` member describes."""
    kind = CHUNK_KEY_ENCODINGS.get(extension.name)
    if kind is None:
        problems.unknown("chunk_key_encoding.name", CHUNK_KEY_ENCODINGS.explain_unknown(extension.name))
        return None
    return kind.from_json(extension.configuration, "chunk_key_encoding.configuration", problems)


def register_chunk_key_encoding(name: str, kind: type[ChunkKeyEncoding]) -> None:
    """Use ``kind`` for chunk key encodings called ``name``."""
    CHUNK_KEY_ENCODINGS.register(name, kind)
