"""``zarrs.vlen``: elements of any length, their offsets and their bytes through codec chains of their own.

As the program zarrs writes it (versions 0.0 and 0.1 of its draft). A chunk of ``n`` elements has ``n + 1`` offsets that
never decrease: element ``i`` takes the bytes from offset ``i`` to offset ``i + 1`` (exclusive). Stored are, with the
index at the start: the size of the encoded offsets as 8 bytes, little endian; the encoded offsets; the encoded bytes of
all elements, or nothing where there are none. With the index at the end: bytes, offsets, size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec, Codec
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.chain import CodecChain, build_chain
from zardine.codecs.configured import Check, Configured, choice
from zardine.codecs.registry import parse_codec
from zardine.codecs.vlen.elements import BYTES_TYPES, TEXT_TYPES, elements_from_bytes, elements_to_bytes
from zardine.data_types import data_type_for
from zardine.errors import ChunkDecodeError, DataError, EncodeError
from zardine.json_document import JSON, Problems
from zardine.limits import TEXT, check_size, limit_of

_WORD = 8
"""Bytes of the size of the encoded offsets."""


def _codecs(value: JSON, place: str, problems: Problems) -> tuple[Codec, ...]:
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array of codecs", value)
        return ()
    found = [
        item if isinstance(item, Codec) else parse_codec(item, f"{place}[{i}]", problems, within=True)
        for i, item in enumerate(value)
    ]
    return tuple(codec for codec in found if codec is not None)


@dataclass(frozen=True, slots=True)
class VLenOffsetsCodec(Configured, ArrayBytesCodec):
    """Offsets of ``index_data_type`` through ``index_codecs``, the bytes of all elements through ``data_codecs``."""

    index_codecs: tuple[Codec, ...] = (BytesCodec(endian="little"),)
    data_codecs: tuple[Codec, ...] = (BytesCodec(endian=None),)
    index_data_type: str = "uint64"
    index_location: str = "start"

    name: ClassVar[str] = "zarrs.vlen"
    MEMBERS: ClassVar[Mapping[str, Check]] = {
        "index_codecs": _codecs,
        "data_codecs": _codecs,
        "index_data_type": choice(("uint32", "uint64")),
        "index_location": choice(("start", "end")),
    }
    REQUIRED = ("index_codecs", "data_codecs", "index_data_type")

    def configuration(self) -> dict[str, JSON]:
        """Every member."""
        return {
            "index_codecs": [codec.to_json() for codec in self.index_codecs],
            "data_codecs": [codec.to_json() for codec in self.data_codecs],
            "index_data_type": self.index_data_type,
            "index_location": self.index_location,
        }

    def check(self, spec: ChunkSpec) -> str | None:
        """Only strings and byte strings of any length can be stored, and both chains have to fit."""
        if spec.data_type.name not in (*TEXT_TYPES, *BYTES_TYPES):
            return f'"{self.name}" stores elements of any length, not {spec.data_type.name}'
        for make, count in ((self._index_chain, spec.size + 1), (self._data_chain, 1)):
            problems = Problems()
            if make(count, problems) is None:
                return "; ".join(map(str, problems.found))
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Varies."""
        return None

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """Offsets and bytes of the elements in C order."""
        elements = [each for batch in elements_to_bytes(array, spec, codec=self.name) for each in batch]
        offsets = np.zeros(len(elements) + 1, np.uint64)
        np.cumsum([len(element) for element in elements], out=offsets[1:])
        total = int(offsets[-1])
        if total > np.iinfo(self.index_data_type).max:
            raise EncodeError(f"{total} bytes are too many for offsets of {self.index_data_type}", codec=self.name)
        index = bytes(self._chain(self._index_chain(len(offsets), Problems())).encode(offsets.astype(self._dtype)))
        joined = np.frombuffer(b"".join(elements), np.uint8)
        data = bytes(self._chain(self._data_chain(total, Problems())).encode(joined)) if total else b""
        size = len(index).to_bytes(_WORD, "little")
        return b"".join((size, index, data) if self.index_location == "start" else (data, index, size))

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """An array of ``spec.dtype``: normally ``StringDType``, or objects."""
        view = memoryview(data)
        if len(view) < _WORD:
            raise ChunkDecodeError(f"{len(view)} bytes are too few for the size of the offsets", codec=self.name)
        at_start = self.index_location == "start"
        stored, rest = (view[:_WORD], view[_WORD:]) if at_start else (view[-_WORD:], view[:-_WORD])
        size = int.from_bytes(stored, "little")
        if size > len(rest):
            raise ChunkDecodeError(f"offsets of {size} bytes do not fit in {len(rest)}", codec=self.name)
        cut = size if at_start else len(rest) - size
        index, encoded = (rest[:cut], rest[cut:]) if at_start else (rest[cut:], rest[:cut])
        offsets = self._decode(self._index_chain(spec.size + 1, Problems()), index, "the offsets")
        total = int(offsets[-1])
        if (offsets[1:] < offsets[:-1]).any():
            raise ChunkDecodeError("the offsets decrease", codec=self.name)
        data_chain = self._data_chain(total, Problems())
        if data_chain is not None and data_chain.encoded_size not in (None, len(encoded)) and total > limit_of(TEXT):
            raise ChunkDecodeError(f"elements of {total} bytes, at most {len(encoded)} are there", codec=self.name)
        check_size("the text of a chunk", total, TEXT)
        if total == 0 and len(encoded):
            raise ChunkDecodeError(f"{len(encoded)} bytes are stored for elements without any", codec=self.name)
        whole = self._decode(data_chain, encoded, "the elements").tobytes() if total else b""
        elements = (whole[start:stop] for start, stop in pairwise(offsets.tolist()))
        return elements_from_bytes(elements, spec, codec=self.name)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(self.index_data_type)

    def _index_chain(self, count: int, problems: Problems) -> CodecChain | None:
        return _chain_of(self.index_codecs, self.index_data_type, count, "index_codecs", problems)

    def _data_chain(self, nbytes: int, problems: Problems) -> CodecChain | None:
        return _chain_of(self.data_codecs, "uint8", nbytes, "data_codecs", problems)

    def _chain(self, chain: CodecChain | None) -> CodecChain:
        assert chain is not None  # `check` made one
        return chain

    def _decode(self, chain: CodecChain | None, data: memoryview, what: str) -> npt.NDArray[Any]:
        try:
            return self._chain(chain).decode(data)
        except DataError as error:
            raise type(error)(f"{what}: {error.reason}", codec=error.codec) from None


def _chain_of(codecs: tuple[Codec, ...], name: str, count: int, place: str, problems: Problems) -> CodecChain | None:
    data_type = data_type_for(name)
    return build_chain(codecs, ChunkSpec((count,), data_type, data_type.default_fill()), place, problems)
