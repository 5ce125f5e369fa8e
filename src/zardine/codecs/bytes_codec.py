"""``bytes``: fixed-size elements one after the other, in C order, in a given byte order.

Specification: "Bytes codec", version 1.0. The older name ``endian`` is read as well.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured, choice
from zardine.codecs.options import Endian
from zardine.data_types.base import DataType
from zardine.errors import ChunkDecodeError
from zardine.json_document import JSON, Problems
from zardine.public_names import public


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class BytesCodec(Configured, ArrayBytesCodec):
    """Elements as their bytes in memory, every word in the byte order ``endian``.

    ``endian=None`` is only right for data types without multi-byte words. ``encode`` returns a view of the array and
    ``decode`` a view of the data wherever the stored form is that of the memory.
    """

    endian: str | None = "little"

    name: ClassVar[str] = "bytes"
    aliases: ClassVar[tuple[str, ...]] = ("endian",)
    MEMBERS: ClassVar[Mapping[str, Check]] = {"endian": choice(Endian)}
    AUTOMATIC = ("endian",)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec of a document: without an ``endian`` member there is no byte order."""
        codec = super(BytesCodec, cls).from_json(configuration, place, problems)
        return codec if codec is None or "endian" in (configuration or {}) else replace(codec, endian=None)

    def configuration(self) -> dict[str, JSON] | None:
        """``endian``, or nothing where no byte order applies."""
        return None if self.endian is None else {"endian": self.endian}

    def resolve(self, spec: ChunkSpec) -> Self:
        """Little endian, with a warning, where the legacy type ``structured`` comes without ``endian``."""
        if self.endian is None and spec.data_type.needs_endian and spec.data_type.name == "structured":
            warnings.warn(
                'the "bytes" codec has no "endian" for data type "structured": little endian is assumed',
                UserWarning,
                stacklevel=2,
            )
            return replace(self, endian="little")
        return self

    def check(self, spec: ChunkSpec) -> str | None:
        """Variable-length elements, or multi-byte words without a byte order, cannot be stored."""
        if spec.data_type.item_size is None:
            return f'the "bytes" codec cannot store elements of varying length ({spec.data_type.name})'
        if self.endian is None and spec.data_type.needs_endian:
            return f'the "bytes" codec needs "endian" ("little" or "big") for data type {spec.data_type.name}'
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """The size of an element times their number."""
        return spec.nbytes

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """The bytes of the elements in C order; a view of ``array`` where that is what memory holds."""
        raw = _raw(np.ascontiguousarray(array, dtype=spec.dtype))
        return (_swap(raw, spec.data_type) if self._swaps(spec.data_type) else raw).data

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """The array that the bytes hold; raises :class:`ChunkDecodeError` unless there are exactly enough of them."""
        if len(data) != spec.nbytes:
            raise ChunkDecodeError(f"{len(data)} bytes, expected {spec.nbytes}", codec=self.name)
        source: Any = data
        if self._swaps(spec.data_type):
            source = _swap(np.frombuffer(data, np.uint8), spec.data_type) if spec.nbytes else b""
        array: npt.NDArray[Any] = np.ndarray(spec.shape, spec.dtype, buffer=source)
        return spec.data_type.repair_bits(array)

    def _swaps(self, data_type: DataType) -> bool:
        return self.endian is not None and self.endian != sys.byteorder and data_type.needs_endian


def _raw(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The memory of a contiguous array, as bytes."""
    if array.nbytes == 0:
        return np.empty(0, np.uint8)
    return array.reshape(-1).view(np.uint8)


def _swap(raw: npt.NDArray[np.uint8], data_type: DataType) -> npt.NDArray[np.uint8]:
    """A copy of ``raw`` with the bytes of every word reversed."""
    words = [(size, count) for size, count in data_type.words if size * count]
    sizes = {size for size, _ in words}
    if len(sizes) == 1 and (size := sizes.pop()) in (2, 4, 8):
        return raw.view(f"u{size}").byteswap().view(np.uint8)
    swapped = np.empty_like(raw)
    elements = raw.reshape(-1, data_type.item_size or 1)
    target = swapped.reshape(elements.shape)
    start = 0
    for size, count in words:
        stop = start + size * count
        run = elements[:, start:stop].reshape(-1, count, size)
        target[:, start:stop] = run[:, :, ::-1].reshape(-1, size * count)
        start = stop
    return swapped
