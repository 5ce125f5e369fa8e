"""What a conversion was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from zardine.creation.options import ChunksLike, CodecLike, CodecsLike, KeyEncodingLike, ShardsLike, is_word
from zardine.metadata.formats import check_format


class ConvertKeywords(TypedDict, total=False):
    """The same as :class:`ConvertOptions`, as keywords of a function."""

    zarr_format: int
    chunks: ChunksLike
    shards: ShardsLike
    filters: CodecsLike
    serializer: CodecLike
    compressors: CodecsLike
    codecs: Iterable[CodecLike] | None
    checksum: bool | None
    chunk_key_encoding: KeyEncodingLike
    objects: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvertOptions:
    """How the arrays are to be stored; :func:`zardine.convert` explains each. They are checked when it is made.

    Raises ``ValueError`` for options that no array could have, or that exclude each other.
    """

    zarr_format: int = 3
    chunks: ChunksLike = "keep"
    shards: ShardsLike = "auto"
    filters: CodecsLike = "auto"
    serializer: CodecLike = "auto"
    compressors: CodecsLike = "auto"
    codecs: Iterable[CodecLike] | None = None
    checksum: bool | None = None
    chunk_key_encoding: KeyEncodingLike = None
    objects: str | None = None

    def __post_init__(self) -> None:
        check_format(self.zarr_format)
        if self.objects not in (None, "string"):
            raise ValueError(f"objects is 'string' (or None: arrays of objects are refused), not {self.objects!r}")
        if isinstance(self.chunks, str) and self.chunks not in ("keep", "auto"):
            raise ValueError(f"chunks is 'keep', 'auto' or lengths, not {self.chunks!r}")
        if isinstance(self.shards, str) and self.shards != "auto":
            raise ValueError(f"shards is 'auto', None or lengths, not {self.shards!r}")
        if self.codecs is not None:
            parts = ("filters", "serializer", "compressors", "shards")
            given = [name for name in parts if not is_word(getattr(self, name), "auto")]
            if given:
                raise ValueError(f"give either codecs, which is the whole chain, or {given[0]}, not both")
        if self.zarr_format != 3:
            version = f"zarr_format=3; Zarr v{self.zarr_format} has none"
            if self.codecs is not None or not is_word(self.serializer, "auto", "keep"):
                raise ValueError(f"{'serializer' if self.codecs is None else 'codecs'} needs {version}")
            if self.checksum:
                raise ValueError(f"checksum needs {version}; filters=[numcodecs.CRC32C()] does that there")
            if self.shards is not None and not is_word(self.shards, "auto"):
                raise ValueError(f"shards needs {version}")

    def changed(self) -> list[str]:
        """Return names of the options that are not as they are by default, the version left out."""
        plain = ConvertOptions()
        names = [name for name in self.__slots__ if name != "zarr_format"]
        return [name for name in names if not _same(getattr(self, name), getattr(plain, name))]

    def in_words(self) -> dict[str, str]:
        """Return every option as text, as Python writes it."""
        return {name: _text(getattr(self, name)) for name in self.__slots__}

    def chunks_for(self, ndim: int) -> Any:
        """Return ``chunks`` for an array of so many dimensions: ``"keep"`` where the lengths given are for others."""
        return self.chunks if is_for(self.chunks, ndim) else "keep"

    def shards_for(self, ndim: int) -> Any:
        """Return ``shards`` for an array of so many dimensions: ``"auto"`` where the lengths given are for others."""
        return self.shards if is_for(self.shards, ndim) else "auto"


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"[{', '.join(map(_text, value))}]"
    to_dict = getattr(value, "to_dict", None)
    return repr(to_dict() if callable(to_dict) else value)


def is_for(sizes: Any, ndim: int) -> bool:
    """Whether chunk or shard lengths can be those of an array of so many dimensions; words and integers always."""
    if isinstance(sizes, Mapping):
        sizes = sizes.get("shape")
    return not isinstance(sizes, (Sequence, np.ndarray)) or isinstance(sizes, str) or len(sizes) == ndim


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, str) and bool(a == b))
