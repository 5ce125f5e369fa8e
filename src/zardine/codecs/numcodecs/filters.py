"""``array -> array`` codecs of numcodecs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.bitround import BitRoundCodec
from zardine.codecs.configured import Check, integer
from zardine.codecs.numcodecs.adapter import NumcodecsCodec
from zardine.data_types import data_type_for
from zardine.data_types.base64_text import MAX_ITEM_SIZE
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.json_document import JSON, Problems
from zardine.public_names import public


class NumcodecsArray(NumcodecsCodec, ArrayArrayCodec):
    """A codec of numcodecs from arrays to arrays, element by element in C order.

    ``DECODED`` and ``ENCODED`` are the options that hold the NumPy types of the array and of what is stored.
    """

    DECODED: ClassVar[str] = "dtype"
    ENCODED: ClassVar[str] = "astype"

    def resolve(self, spec: ChunkSpec) -> Self:
        """Record the data type of the array where that was left out."""
        if self.options.get(self.DECODED) is not None:
            return self
        return self.with_options(**{self.DECODED: spec.dtype.str})

    def is_complete(self) -> bool:
        """Whether the data type of the array is known."""
        return self.options.get(self.DECODED) is not None

    def check(self, spec: ChunkSpec) -> str | None:
        """The recorded data type has to be that of the array, and numcodecs has to take the fill value."""
        if spec.dtype.kind not in "biufcmM":
            return f'"{self.name}" cannot store data type {spec.data_type.name}'
        if self.is_complete() and np.dtype(self.options[self.DECODED]).newbyteorder("=") != spec.dtype:
            return f'"{self.name}" is made for {self.options[self.DECODED]}, the array has {spec.data_type.name}'
        try:
            for option in (self.DECODED, self.ENCODED):
                if np.dtype(self.options.get(option)).itemsize > MAX_ITEM_SIZE:
                    return f'"{self.name}" has elements of more than {MAX_ITEM_SIZE} bytes'
            self.encoded_spec(spec)
        except (EncodeError, TypeError, ValueError, SyntaxError) as error:
            return f'"{self.name}" cannot store data type {spec.data_type.name}: {error}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The same shape with the stored type; the fill value is encoded like a chunk of one element."""
        stored = self.options.get(self.ENCODED)
        data_type = spec.data_type if stored is None else data_type_for(np.dtype(stored))
        encoded = replace(spec, data_type=data_type, shape=())
        return replace(encoded, shape=spec.shape, fill=self._encode(spec.fill, encoded))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """What numcodecs makes of ``array``."""
        return self._encode(np.asarray(array, spec.dtype), self.encoded_spec(spec))

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """What numcodecs restores."""
        source = np.dtype(self.options.get(self.ENCODED) or array.dtype)
        flat = np.ascontiguousarray(array).reshape(-1).astype(source, copy=False)
        if not flat.size:
            return np.empty(spec.shape, spec.dtype)
        try:
            with np.errstate(all="ignore"):
                decoded = np.asarray(self.codec.decode(flat))
                return decoded.astype(spec.dtype, copy=False).reshape(spec.shape)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ChunkDecodeError(f"numcodecs failed: {error}", codec=self.name) from None

    def _encode(self, array: npt.NDArray[Any], encoded: ChunkSpec) -> npt.NDArray[Any]:
        if not array.size:
            return np.empty(encoded.shape, encoded.dtype)
        source = np.dtype(self.options.get(self.DECODED) or array.dtype)
        flat = np.ascontiguousarray(array).reshape(-1).astype(source, copy=False)
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(self.codec.encode(flat))
        except (TypeError, ValueError, RuntimeError) as error:
            raise EncodeError(f"numcodecs failed: {error}", codec=self.name) from None
        return result.astype(encoded.dtype, copy=False).reshape(encoded.shape)


@public("zardine.codecs")
class Delta(NumcodecsArray):
    """Differences of neighbours in C order. Options: ``dtype``, ``astype``."""

    name: ClassVar[str] = "numcodecs.delta"


@public("zardine.codecs")
class FixedScaleOffset(NumcodecsArray):
    """``(value - offset) * scale``, rounded. Options: ``offset``, ``scale``, ``dtype``, ``astype``."""

    name: ClassVar[str] = "numcodecs.fixedscaleoffset"
    elementwise: ClassVar[bool] = True


@public("zardine.codecs")
class Quantize(NumcodecsArray):
    """Floats rounded to ``digits`` decimal digits. Options: ``digits``, ``dtype``, ``astype``."""

    name: ClassVar[str] = "numcodecs.quantize"
    elementwise: ClassVar[bool] = True


@public("zardine.codecs")
class AsType(NumcodecsArray):
    """The values in another NumPy type. Options: ``encode_dtype``, ``decode_dtype``."""

    name: ClassVar[str] = "numcodecs.astype"
    elementwise: ClassVar[bool] = True
    DECODED = "decode_dtype"
    ENCODED = "encode_dtype"


@public("zardine.codecs")
class PackBits(NumcodecsArray):
    """Booleans as bits, the first in the highest bit, after a byte with the number of bits that fill up the last."""

    name: ClassVar[str] = "numcodecs.packbits"

    def resolve(self, spec: ChunkSpec) -> Self:
        """Nothing to record."""
        return self

    def is_complete(self) -> bool:
        """Always."""
        return True

    def check(self, spec: ChunkSpec) -> str | None:
        """Only booleans can be packed."""
        return None if spec.data_type.name == "bool" else f'"{self.name}" stores bool, not {spec.data_type.name}'

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """A vector of bytes."""
        fill = np.zeros((), np.uint8)
        return ChunkSpec((1 + -(-spec.size // 8),), data_type_for(fill.dtype), fill)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """The bits; the first byte has to tell the right number of them."""
        flat = np.ascontiguousarray(array).reshape(-1)
        padding = -spec.size % 8
        if flat[0] != padding:
            raise ChunkDecodeError(f"{flat[0]} padding bits are stored, expected {padding}", codec=self.name)
        return np.unpackbits(flat[1:], count=spec.size).view(bool).reshape(spec.shape)

    def _encode(self, array: npt.NDArray[Any], encoded: ChunkSpec) -> npt.NDArray[Any]:
        head = np.array([-array.size % 8], np.uint8)
        return np.concatenate((head, np.packbits(array.reshape(-1))))


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class BitRound(BitRoundCodec):
    """The old name of ``bitround``, which may also keep no bit of the mantissa."""

    name: ClassVar[str] = "numcodecs.bitround"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"keepbits": integer(0, 64)}

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """Ignore ``id``, which numcodecs up to 0.15.0 wrote into the configuration."""
        options = {name: value for name, value in (configuration or {}).items() if name != "id"}
        return super(BitRound, cls).from_json(options, place, problems)
