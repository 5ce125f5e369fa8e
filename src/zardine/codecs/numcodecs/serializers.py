"""``array -> bytes`` codecs of numcodecs, which need further packages (``pcodec``, ``zfpy``)."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.numcodecs.adapter import NumcodecsCodec
from zardine.data_types.complex_numbers import Complex
from zardine.errors import ChunkDecodeError, DataError, EncodeError
from zardine.public_names import public


class NumcodecsSerializer(NumcodecsCodec, ArrayBytesCodec):
    """A codec of numcodecs from arrays to bytes. Its decoder allocates what the data claim; see ``decode``."""

    KINDS: ClassVar[str]
    """Kinds of NumPy types that it stores."""

    def stored_dtype(self, spec: ChunkSpec) -> np.dtype[Any]:
        """What the library is given for each number of an element."""
        return spec.dtype

    def check(self, spec: ChunkSpec) -> str | None:
        """Only some number types can be stored."""
        stored = self.stored_dtype(spec)
        if stored.kind not in self.KINDS or stored.itemsize < 2:
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
            numbers = np.ascontiguousarray(array, dtype=spec.dtype).reshape(spec.shape or 1)
            encoded = self.codec.encode(numbers.view(self.stored_dtype(spec)))
        except (TypeError, ValueError, RuntimeError) as error:
            raise EncodeError(f"numcodecs failed: {error}", codec=self.name) from None
        return bytes(encoded)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """The array, if what numcodecs restores has its type and its number of elements."""
        try:
            decoded = np.asarray(self._decoded(bytes(data), spec))
        except DataError:
            raise
        except Exception as error:  # the libraries behind raise types of their own
            raise ChunkDecodeError(f"numcodecs failed: {error}", codec=self.name) from None
        stored, size = self.stored_dtype(spec), spec.size * spec.data_type.components
        if decoded.dtype != stored or decoded.size != size:
            found = f"{decoded.size} numbers of {decoded.dtype}"
            raise ChunkDecodeError(f"{found}, expected {size} of {stored}", codec=self.name)
        return np.ascontiguousarray(decoded).reshape(-1).view(spec.dtype).reshape(spec.shape)

    def _decoded(self, data: bytes, spec: ChunkSpec) -> Any:
        """What numcodecs restores, as far as there is room for it in a chunk of ``spec``."""
        raise NotImplementedError


@public("zardine.codecs")
class PCodec(NumcodecsSerializer):
    """Pcodec, for numbers of 16 to 64 bits; complex numbers as their two parts in turn, times as their counts."""

    name: ClassVar[str] = "numcodecs.pcodec"
    KINDS = "iuf"

    def stored_dtype(self, spec: ChunkSpec) -> np.dtype[Any]:
        """One part of complex numbers, the count of times."""
        if isinstance(spec.data_type, Complex):
            return spec.data_type.component.dtype
        return np.dtype(np.int64) if spec.dtype.kind in "mM" else spec.dtype

    def _decoded(self, data: bytes, spec: ChunkSpec) -> Any:
        size = spec.size * spec.data_type.components
        array = np.empty(size, self.stored_dtype(spec))
        count, finished = decompress_pcodec(data, array)
        if count != size or not finished:
            reason = f"{'more' if count == size else 'fewer'} numbers than {size}"
            raise ChunkDecodeError(reason, codec=self.name)
        return array


def decompress_pcodec(data: BytesLike, out: npt.NDArray[Any]) -> tuple[int, bool]:
    """Fill ``out`` with the numbers that ``data`` hold, as far as there is room: how many, and whether these are all.

    Its other entry allocates what the data claim, and ends the process where that fails.
    """
    from pcodec import standalone  # type: ignore[import-untyped]

    progress = standalone.simple_decompress_into(bytes(data), out)
    return int(progress.n_processed), bool(progress.finished)


def zfp_size(data: BytesLike) -> int:
    """How many elements the header says, for which the decoder of zfp allocates memory."""
    import zfpy  # type: ignore[import-not-found]

    about = zfpy.header(bytes(data))
    return prod(max(1, int(about[each])) for each in ("nx", "ny", "nz", "nw"))


@public("zardine.codecs")
class ZFPY(NumcodecsSerializer):
    """zfp, for floats and integers of 4 or 8 bytes."""

    name: ClassVar[str] = "numcodecs.zfpy"
    KINDS = "if"

    def _decoded(self, data: bytes, spec: ChunkSpec) -> Any:
        size = zfp_size(data)
        if size != spec.size:
            raise ChunkDecodeError(f"{size} elements, expected {spec.size}", codec=self.name)
        return self.codec.decode(data)
