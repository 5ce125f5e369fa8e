"""Filters and compressors of Zarr v2 that no v3 codec stands for: whatever numcodecs has, used as zarr-python 2 did.

These decoders are those of numcodecs (and of packages that add to it): other than zardine's own, they may allocate what
the stored bytes claim.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, BytesBytesCodec, ChunkSpec, SizeLimit
from zardine.codecs.bounds import compressed_limit
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.json_document import JSON, Problems
from zardine.metadata.v2_codecs import COMPRESSOR, FILTERS
from zardine.metadata.v2_dtypes import dtype_to_json, parse_dtype
from zardine.settings import config

_PICKLE = "pickle"
_MAY_UNPICKLE = "array.allow_unsafe_pickle_decode"


@dataclass(frozen=True, slots=True, eq=False)
class V2Filters(ArrayBytesCodec):
    """Elements of any stored dtype, in C or F order, through ``filters``, the configurations of numcodecs codecs."""

    dtype: np.dtype[Any]
    order: str
    filters: tuple[Mapping[str, JSON], ...]
    _ready: tuple[Any, ...] = field(repr=False, default=())

    name: ClassVar[str] = FILTERS

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec of a translated v2 document."""
        options = configuration or {}
        dtype = parse_dtype(options.get("dtype"), "dtype", problems)
        ready = [find_codec(each, f"filters[{i}]", problems) for i, each in enumerate(options.get("filters", ()))]
        if dtype is None or None in ready:
            return None
        return cls(dtype, str(options["order"]), tuple(options["filters"]), tuple(ready))

    def configuration(self) -> dict[str, JSON]:
        """All of it."""
        filters = [dict(each) for each in self.filters]
        return {"dtype": dtype_to_json(self.dtype), "order": self.order, "filters": filters}

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """The size of the elements without filters, else varies."""
        return spec.nbytes if not self.filters else None

    def encoded_limit(self, spec: ChunkSpec) -> int | None:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        if not self.filters:
            return spec.nbytes
        return None if spec.nbytes is None else compressed_limit(spec.nbytes)

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """What the filters make of the elements."""
        order: Any = self.order
        value: Any = np.array(array, self.dtype, order=order)  # a copy: some filters want to be able to write
        for codec in self._ready:
            try:
                value = codec.encode(value)
            except Exception as error:  # code of other packages
                raise EncodeError(f"filter {codec.codec_id}: {error}", codec=self.name) from None
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                raise EncodeError("the filters leave objects, which are no bytes", codec=self.name)
            return value.reshape(-1, order="A").tobytes()
        return bytes(value)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """What the filters restore; raises :class:`ChunkDecodeError` unless it is a chunk of ``spec``."""
        if any(each["id"] == _PICKLE for each in self.filters) and not config[_MAY_UNPICKLE]:
            raise ChunkDecodeError(
                "the chunk is a pickle, and reading one can run any program hidden in it; if you trust the data: "
                f"zardine.config.set({{{_MAY_UNPICKLE!r}: True}})",
                codec=_PICKLE,
            )
        value: Any = bytes(data)
        for codec in reversed(self._ready):
            try:
                value = pickle.loads(value) if codec.codec_id == _PICKLE else codec.decode(value)
            except Exception as error:  # code of other packages
                raise ChunkDecodeError(f"filter {codec.codec_id}: {error}", codec=codec.codec_id) from None
        elements = self._elements(value, spec)
        if elements.size != spec.size:
            raise ChunkDecodeError(f"{elements.size} elements, expected {spec.size}", codec=self.name)
        order: Any = self.order
        shaped = (
            elements
            if elements.shape == spec.shape
            else elements.reshape(-1, order="A").reshape(spec.shape, order=order)
        )
        if spec.dtype.kind == "T":
            return _as_text(shaped, spec.dtype)
        return spec.data_type.repair_bits(shaped.astype(spec.dtype, copy=False))

    def _elements(self, value: Any, spec: ChunkSpec) -> npt.NDArray[Any]:
        if self.dtype.kind == "O":
            array = np.asarray(value) if isinstance(value, np.ndarray) else None
            if array is None or array.dtype.kind not in "OUS":
                raise ChunkDecodeError("the filters give no objects", codec=self.name)
            return array.astype(object, copy=False)
        raw = value.reshape(-1, order="A").tobytes() if isinstance(value, np.ndarray) else bytes(value)
        if len(raw) != spec.size * self.dtype.itemsize:
            reason = f"{len(raw)} bytes, expected {spec.size * self.dtype.itemsize}"
            raise ChunkDecodeError(reason, codec=self.name)
        return np.frombuffer(raw, self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class V2Compressor(BytesBytesCodec):
    """Any codec of numcodecs from bytes to bytes."""

    options: Mapping[str, JSON]
    _ready: Any = field(repr=False, default=None)

    name: ClassVar[str] = COMPRESSOR

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec of a translated v2 document."""
        options = configuration or {}
        ready = find_codec(options, "compressor", problems)
        return None if ready is None else cls(options, ready)

    def configuration(self) -> dict[str, JSON]:
        """That of numcodecs, ``id`` included."""
        return dict(self.options)

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        return compressed_limit(nbytes)

    def encode(self, data: BytesLike) -> BytesLike:
        """What numcodecs makes of ``data``."""
        try:
            return _as_bytes(self._ready.encode(data))
        except Exception as error:  # code of other packages
            raise EncodeError(f"numcodecs failed: {error}", codec=str(self.options["id"])) from None

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """What numcodecs restores, if it may be so long."""
        try:
            decoded = _as_bytes(self._ready.decode(bytes(data)))
        except Exception as error:  # code of other packages
            raise ChunkDecodeError(f"numcodecs failed: {error}", codec=str(self.options["id"])) from None
        if reason := limit.check(len(decoded)):
            raise ChunkDecodeError(reason, codec=str(self.options["id"]))
        return decoded


def find_codec(configuration: Mapping[str, JSON], place: str, problems: Problems) -> Any:
    """The codec object of numcodecs; notes a problem and gives ``None`` where there is none, or it refuses."""
    import numcodecs
    from numcodecs.errors import UnknownCodecError

    try:
        return numcodecs.get_codec(dict(configuration))
    except (UnknownCodecError, ImportError):
        problems.unknown(f"{place}.id", f"the installed numcodecs has no codec {configuration.get('id')!r}")
    except Exception as error:  # code of other packages
        problems.add(place, f"numcodecs refuses it: {error}")
    return None


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return value.reshape(-1, order="A").tobytes()
    return value if isinstance(value, bytes) else bytes(value)


def _as_text(objects: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    values: Sequence[Any] = objects.reshape(-1).tolist()
    text = ["" if value is None else str(value) for value in values]
    return np.array(text, dtype=dtype).reshape(objects.shape)


__all__ = ["V2Compressor", "V2Filters", "find_codec"]
