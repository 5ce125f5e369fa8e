"""``array -> bytes`` codecs of numcodecs, which need further packages (``pcodec``, ``zfpy``)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.numcodecs.adapter import NumcodecsCodec
from zardine.errors import ChunkDecodeError, EncodeError


class NumcodecsSerializer(NumcodecsCodec, ArrayBytesCodec):
    """A codec of numcodecs from arrays to bytes. Its decoder allocates what the data claim; see ``decode``."""

    KINDS: ClassVar[str]
    """Kinds of NumPy types that it stores."""

    def check(self, spec: ChunkSpec) -> str | None:
        """Only some number types can be stored."""
        if spec.dtype.kind not in self.KINDS or spec.dtype.itemsize < 2:
            return f'"{self.name}" cannot store data type {spec.data_type.name}'
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, spec: ChunkSpec) -> int | None:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        return None if spec.nbytes is None else compressed_limit(spec.nbytes)

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """What numcodecs makes of ``array``."""
        try:
            encoded = self.codec.encode(np.ascontiguousarray(array, dtype=spec.dtype))
        except (TypeError, ValueError, RuntimeError) as error:
            raise EncodeError(f"numcodecs failed: {error}", codec=self.name) from None
        return bytes(encoded)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """The array, if what numcodecs restores has its type and its number of elements."""
        try:
            decoded = np.asarray(self.codec.decode(bytes(data)))
        except Exception as error:  # the libraries behind raise types of their own
            raise ChunkDecodeError(f"numcodecs failed: {error}", codec=self.name) from None
        if decoded.dtype != spec.dtype or decoded.size != spec.size:
            found = f"{decoded.size} elements of {decoded.dtype}"
            raise ChunkDecodeError(f"{found}, expected {spec.size} of {spec.dtype}", codec=self.name)
        return decoded.reshape(spec.shape)


class PCodec(NumcodecsSerializer):
    """Pcodec, for numbers."""

    name: ClassVar[str] = "numcodecs.pcodec"
    KINDS = "iuf"


class ZFPY(NumcodecsSerializer):
    """zfp, for floats and integers of 4 or 8 bytes."""

    name: ClassVar[str] = "numcodecs.zfpy"
    KINDS = "if"
