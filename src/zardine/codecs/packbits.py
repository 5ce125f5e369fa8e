"""``packbits``: only the bits that carry information, one element right after the other.

Specification: zarr-extensions "codecs/packbits". Bits count from the least significant one, in elements and in bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured, choice, integer, nullable
from zardine.errors import ChunkDecodeError
from zardine.json_document import JSON, Problems
from zardine.public_names import public

_STEP = 8 * 4096  # elements unpacked to one byte per bit at a time; a multiple of 8, so that steps end on whole bytes


_UNLISTED = ("float16", "complex_float16", "float8_", "complex_float8_", "numpy.")


class PaddingEncoding(StrEnum):
    """Where the number of padding bits is stored."""

    none = "none"
    first_byte = "first_byte"
    last_byte = "last_byte"


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class PackBitsCodec(Configured, ArrayBytesCodec):
    """Bits ``first_bit`` to ``last_bit`` (inclusive; ``None``: to the end) of each number.

    ``padding_encoding`` says whether a byte before or after the data holds how many zero bits fill the last byte.
    """

    padding_encoding: str = "none"
    first_bit: int | None = None
    last_bit: int | None = None

    name: ClassVar[str] = "packbits"
    MEMBERS: ClassVar[Mapping[str, Check]] = {
        "padding_encoding": choice(PaddingEncoding),
        "first_bit": nullable(integer(0, 127)),
        "last_bit": nullable(integer(0, 127)),
    }

    @classmethod
    def check_together(cls, values: Mapping[str, Any], prefix: str, problems: Problems) -> None:
        """The last bit may not come before the first."""
        first, last = values.get("first_bit"), values.get("last_bit")
        if last is not None and last < (first or 0):
            problems.add(f"{prefix}last_bit", f"{last} is less than first_bit {first or 0}")

    def configuration(self) -> dict[str, JSON] | None:
        """``padding_encoding``, and the bits where they are limited."""
        limits = {"first_bit": self.first_bit, "last_bit": self.last_bit}
        return {
            "padding_encoding": self.padding_encoding,
            **{name: bit for name, bit in limits.items() if bit is not None},
        }

    def check(self, spec: ChunkSpec) -> str | None:
        """Only numbers can be stored, that have as many bits as are asked for."""
        bits = spec.data_type.bits
        if bits is None:
            return f'"packbits" cannot store data type {spec.data_type.name}'
        first, last = self._bits(spec)
        if not first <= last < bits:
            return f'"packbits" cannot take bits {first} to {last} of {spec.data_type.name}, which has {bits}'
        return None

    def remark(self, spec: ChunkSpec) -> str | None:
        """The registry leaves out some types."""
        name = spec.data_type.name
        if name.startswith(_UNLISTED):
            return f'the specification of "packbits" does not name data type {name}'
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """All bits, filled up to bytes, and the byte for the padding."""
        return -(-self._all_bits(spec) // 8) + (self.padding_encoding != "none")

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """The chosen bits of all elements in C order."""
        array = np.ascontiguousarray(array, dtype=spec.dtype)
        first, last = self._bits(spec)
        numbers = _numbers(array.reshape(-1), spec)
        if spec.data_type.name == "bool":
            packed = np.packbits(numbers != 0, bitorder="little")
        else:
            steps = [
                np.packbits(np.unpackbits(part, axis=1, bitorder="little")[:, first : last + 1], bitorder="little")
                for part in (numbers[at : at + _STEP] for at in range(0, len(numbers), _STEP))
            ]
            packed = np.concatenate(steps) if steps else np.empty(0, np.uint8)
        padding = bytes([-self._all_bits(spec) % 8])
        if self.padding_encoding == "first_byte":
            return padding + packed.tobytes()
        if self.padding_encoding == "last_byte":
            return packed.tobytes() + padding
        return packed.data

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """The elements; bits that were left out are copies of the sign for signed integers, else zero."""
        size, padding = self.encoded_size(spec), -self._all_bits(spec) % 8
        if len(data) != size:
            raise ChunkDecodeError(f"{len(data)} bytes, expected {size}", codec=self.name)
        packed = np.frombuffer(data, np.uint8) if size else np.empty(0, np.uint8)
        if self.padding_encoding != "none":
            at = 0 if self.padding_encoding == "first_byte" else -1
            if packed[at] != padding:
                raise ChunkDecodeError(f"{packed[at]} padding bits are stored, expected {padding}", codec=self.name)
            packed = packed[1:] if at == 0 else packed[:-1]
        if padding and packed[-1] >> (8 - padding):
            raise ChunkDecodeError("the padding bits are not zero", codec=self.name)
        first, last = self._bits(spec)
        width = last - first + 1
        array = np.zeros(spec.shape, spec.dtype)
        numbers = _numbers(array.reshape(-1), spec)
        if first == 0 and width == spec.data_type.bits and width in (1, 2, 4):
            shifts = np.arange(0, 8, width, dtype=np.uint8)
            spread = (packed[:, np.newaxis] >> shifts) & np.uint8((1 << width) - 1)
            numbers[:, 0] = spread.reshape(-1)[: len(numbers)]
            return spec.data_type.repair_bits(array)
        signed = spec.data_type.name.startswith("int") or spec.dtype.kind in "mM"
        for at in range(0, len(numbers), _STEP):
            part = numbers[at : at + _STEP]
            start = at * width // 8
            stored = np.unpackbits(packed[start : start + -(-len(part) * width // 8)], bitorder="little")
            bits = np.zeros((len(part), 8 * part.shape[1]), np.uint8)
            bits[:, first : last + 1] = stored[: len(part) * width].reshape(-1, width)
            if signed:
                bits[:, last + 1 :] = bits[:, last : last + 1]
            part[:] = np.packbits(bits, axis=1, bitorder="little")
        if sys.byteorder == "big":
            numbers[:] = numbers[:, ::-1]
        return spec.data_type.repair_bits(array)

    def _bits(self, spec: ChunkSpec) -> tuple[int, int]:
        last = (spec.data_type.bits or 1) - 1 if self.last_bit is None else self.last_bit
        return self.first_bit or 0, last

    def _all_bits(self, spec: ChunkSpec) -> int:
        first, last = self._bits(spec)
        return spec.size * spec.data_type.components * (last - first + 1)


def _numbers(flat: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[np.uint8]:
    """One row of bytes per component of the contiguous array ``flat``, for encoding with the lowest byte first."""
    size = (spec.data_type.item_size or 1) // spec.data_type.components
    rows = flat.view(np.uint8).reshape(-1, size)
    return rows if sys.byteorder == "little" else rows[:, ::-1]
