"""One filter or compressor of a Zarr v2 document at a time: numcodecs does the work, within bounds that are ours.

Decoders of numcodecs allocate what the stored bytes claim. Here the claim is looked at first, or the bytes are decoded
by a decoder that is bounded. Codecs that other packages add to numcodecs are used as they are: nothing is known of what
they make of their input, which is bounded, and their output is compared with what is possible when it is there.
"""

from __future__ import annotations

import codecs as text_encodings
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, ChunkSpec, SizeLimit
from zardine.codecs.numcodecs.serializers import decompress_pcodec, zfp_size
from zardine.codecs.registry import codec_class
from zardine.errors import ChunkDecodeError, DataError, EncodeError, PickleCodecDisabledError
from zardine.json_document import JSON, Problems
from zardine.limits import CHUNK, TEXT, UNUSED, check_size
from zardine.metadata.numcodecs_objects import MAY_UNPICKLE, UnsafeCodecError, build_codec, check_safe, may_be_kept
from zardine.settings import is_on

_PICKLE: Final = "pickle"
OBJECT_CODECS: Final = ("json2", "msgpack2", "vlen-array", "vlen-bytes", "vlen-utf8", _PICKLE)
"""Codecs between objects and bytes."""
_COUNTED: Final = ("vlen-array", "vlen-bytes", "vlen-utf8")
_STORED_TYPE: Final = {
    "astype": ("encode_dtype", "decode_dtype"),
    "categorize": ("astype", "dtype"),
    "delta": ("astype", "dtype"),
    "fixedscaleoffset": ("astype", "dtype"),
    "quantize": ("astype", "dtype"),
}
"""Filters of arrays, with the options that hold the stored type and the type in memory."""
_BYTES: Final = (
    *("adler32", "blosc", "bz2", "crc32", "crc32c", "fletcher32", "gzip"),
    *("jenkins_lookup3", "lz4", "lzma", "shuffle", "zlib", "zstd"),
)
"""Codecs of bytes that have a bounded decoder."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A codec of numcodecs, by its ``configuration``; ``codec`` is its object, or ``None`` where that is not made."""

    configuration: Mapping[str, JSON]
    codec: Any
    bounded: BytesBytesCodec | None

    @property
    def identifier(self) -> str:
        """The member ``id``."""
        return str(self.configuration["id"])

    def encode(self, value: Any) -> Any:
        """What numcodecs makes of a value; raises :class:`EncodeError`."""
        try:
            if self.identifier == _PICKLE:
                return pickle.dumps(value, protocol=self.configuration.get("protocol", pickle.HIGHEST_PROTOCOL))
            return self._ready().encode(value)
        except DataError:
            raise
        except Exception as error:  # code of other packages
            raise EncodeError(f"numcodecs failed: {error}", codec=self.identifier) from None

    def decode(self, value: Any, limit: SizeLimit, spec: ChunkSpec | None) -> Any:
        """What :meth:`encode` was given, of at most ``limit`` bytes where it is bytes; raises :class:`DataError`.

        ``spec``: the chunk, if it is elements of the array that are expected.
        """
        identifier = self.identifier
        if identifier == _PICKLE:
            if not is_on(MAY_UNPICKLE):
                raise PickleCodecDisabledError(
                    "the chunk is a pickle, and reading one can run any program hidden in it; if you trust the data: "
                    f"zardine.config.set({{{MAY_UNPICKLE!r}: True}})",
                    codec=_PICKLE,
                )
        elif self.bounded is not None:
            return self.bounded.decode(as_bytes(value), limit)
        try:
            if identifier == _PICKLE:
                return pickle.loads(value)
            if identifier in ("json2", "msgpack2"):
                return _objects(self._items(value), spec, limit)
            if identifier in _COUNTED:
                _check_count(value, spec)
            if identifier in _STORED_TYPE:
                self._check_types(value, limit)
            if identifier == "pcodec":
                return _numbers(as_bytes(value), limit)
            if identifier == "zfpy" and (size := 4 * zfp_size(as_bytes(value))) > limit.nbytes:
                limit.enforce(size, identifier)
            decoded = self._ready().decode(value)
            if isinstance(decoded, np.ndarray):
                nbytes = 0 if decoded.dtype.kind == "O" else decoded.nbytes
            else:
                nbytes = len(memoryview(decoded).cast("B"))
        except DataError:
            raise
        except MemoryError:
            raise
        except Exception as error:  # code of other packages
            raise ChunkDecodeError(f"numcodecs failed: {error}", codec=identifier) from None
        if nbytes > limit.nbytes:
            limit.enforce(nbytes, identifier)
        return decoded

    def encoded(self, limit: SizeLimit, count: int) -> SizeLimit:
        """How many bytes there may be after this step, of ``count`` elements of ``limit`` bytes before it."""
        identifier = self.identifier
        if identifier in OBJECT_CODECS:
            return SizeLimit(4096 + 64 * count, False, (TEXT, UNUSED))
        if self.bounded is not None:
            exact = self.bounded.encoded_size(limit.nbytes) if limit.exact else None
            if exact is not None:
                return SizeLimit(exact, True)
            return SizeLimit(self.bounded.encoded_limit(limit.nbytes), False, _joined(limit.settings, (UNUSED,)))
        if identifier == "packbits":
            return SizeLimit(limit.nbytes + 9, False, limit.settings)
        if identifier in _STORED_TYPE:
            stored, memory = self._types()
            size = count * stored if limit.nbytes == 0 else -(-limit.nbytes // max(1, memory)) * stored
            return SizeLimit(max(size, limit.nbytes), False, limit.settings)
        if identifier == "base64":
            return SizeLimit(4 * (limit.nbytes // 3 + 1), False, limit.settings)
        return SizeLimit(2 * limit.nbytes + 4096, False, _joined(limit.settings, (TEXT, UNUSED)))

    def _ready(self) -> Any:
        """The object; of a codec that can run programs, made if that is allowed now."""
        if self.codec is not None:
            return self.codec
        try:
            return build_codec(self.configuration)
        except UnsafeCodecError as error:
            raise ChunkDecodeError(str(error), codec=self.identifier) from None

    def _items(self, value: Any) -> Any:
        """The list that ``json2`` or ``msgpack2`` data hold."""
        if self.identifier == "json2":
            encoding = str(self.configuration.get("encoding", "utf-8"))
            if not getattr(text_encodings.lookup(encoding), "_is_text_encoding", False):
                raise ChunkDecodeError(f"{encoding!r} is no encoding of text", codec=self.identifier)
            text = bytes(value).decode(encoding)
            check_size("what the chunk says", 80 * sum(map(text.count, ",[{")))
            return json.loads(text, strict=bool(self.configuration.get("strict", True)))
        check_size("what the chunk says", 64 * len(value))
        import msgpack  # type: ignore[import-untyped]

        return msgpack.unpackb(bytes(value), raw=bool(self.configuration.get("raw", False)), strict_map_key=True)

    def _types(self) -> tuple[int, int]:
        """Bytes of an element as it is stored, and in memory."""
        sizes = []
        for option in _STORED_TYPE[self.identifier]:
            given = self.configuration.get(option, getattr(self.codec, option, None))
            sizes.append(1 if given is None else np.dtype(given).itemsize)
        return sizes[0], sizes[1]

    def _check_types(self, value: Any, limit: SizeLimit) -> None:
        stored, memory = self._types()
        count = len(as_bytes(value)) // max(1, stored)
        if limit.nbytes and count * memory > limit.nbytes:
            limit.enforce(count * memory, self.identifier)
        check_size("what a filter makes of the chunk", count * memory, CHUNK)


def find_step(configuration: Mapping[str, JSON], place: str, problems: Problems) -> Step | None:
    """The step for a configuration; notes a problem and gives ``None`` where there is no such codec, or it refuses.

    Of a codec that can run programs, and is not allowed to, no object is made: using it is an error.
    """
    from numcodecs.errors import UnknownCodecError

    identifier = str(configuration.get("id"))
    if identifier == _PICKLE:
        protocol = configuration.get("protocol", pickle.HIGHEST_PROTOCOL)
        if isinstance(protocol, bool) or not isinstance(protocol, int):
            problems.expected(f"{place}.protocol", "an integer", protocol)
            return None
        return Step(configuration, None, None)
    try:
        check_safe(configuration)
        codec = build_codec(configuration)
    except UnsafeCodecError:
        return Step(configuration, None, None)
    except (UnknownCodecError, ImportError):
        problems.unknown(f"{place}.id", f"the installed numcodecs has no codec {configuration.get('id')!r}")
        return None
    except Exception as error:  # code of other packages
        problems.add(place, f"numcodecs refuses it: {error}")
        return None
    if not may_be_kept(codec, configuration):
        return Step(configuration, None, None)
    bounded = _bounded(configuration, codec) if identifier in _BYTES else None
    return Step(configuration, codec, bounded)


def _bounded(configuration: Mapping[str, JSON], codec: Any) -> BytesBytesCodec | None:
    options = {name: value for name, value in configuration.items() if name != "id"}
    if configuration["id"] == "shuffle":
        options["elementsize"] = codec.elementsize
    kind: Callable[..., Any] | None = codec_class(f"numcodecs.{configuration['id']}")
    return None if kind is None else kind(**options)


def _numbers(data: BytesLike, limit: SizeLimit) -> npt.NDArray[Any]:
    """What pcodec data hold, whose type nothing else tells."""
    reason = ""
    for kind in ("u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"):
        out = np.empty(limit.nbytes // int(kind[1]), kind)
        try:
            count, finished = decompress_pcodec(data, out)
        except Exception as error:  # its own type; of another type of numbers, perhaps
            reason = str(error)
            continue
        if not finished:
            limit.enforce(limit.nbytes + 1, "pcodec", at_least=True)
        return out[:count]
    raise ChunkDecodeError(f"numcodecs failed: {reason}", codec="pcodec")


def _joined(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return (*some, *(each for each in more if each not in some))


def _check_count(value: Any, spec: ChunkSpec | None) -> None:
    """The number of elements in front has to be that of the chunk, and each has its length in four bytes."""
    data = as_bytes(value)
    found = int.from_bytes(data[:4], "little")
    if len(data) < 4 or (spec is not None and found != spec.size):
        raise ChunkDecodeError(f"{found} elements in {len(data)} bytes, expected {'' if spec is None else spec.size}")
    if len(data) < 4 * (1 + found):
        raise ChunkDecodeError(f"{len(data)} bytes are too few for {found} elements")


def _objects(items: Any, spec: ChunkSpec | None, limit: SizeLimit) -> npt.NDArray[Any]:
    """The array of a list of values, then their NumPy type and their shape."""
    if not isinstance(items, list) or len(items) < 2:
        raise ChunkDecodeError("no list of values, type and shape")
    *values, dtype, shape = items
    dtype = dtype.decode() if isinstance(dtype, bytes) else dtype
    if not isinstance(dtype, str):
        raise ChunkDecodeError(f"{str(dtype)[:80]} is no type")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ChunkDecodeError(f"{str(shape)[:80]} is no shape")
    if spec is not None and prod(shape) != spec.size:
        raise ChunkDecodeError(f"{prod(shape)} elements, expected {spec.size}")
    kind = np.dtype(dtype)
    nbytes = prod(shape) * kind.itemsize
    if nbytes > limit.nbytes and (spec is None or kind.kind != "O"):
        check_size("the decoded chunk", nbytes, TEXT)
    check_size("the decoded chunk", nbytes, CHUNK)
    array = np.empty(shape, kind)
    if not shape:
        array[...] = values[0] if values else None
    else:
        array[:] = values
    return array


def as_bytes(value: Any) -> BytesLike:
    """The bytes of what a step gives. Raises :class:`ChunkDecodeError` for objects, which have none."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ChunkDecodeError("objects, where bytes are expected")
        return value.reshape(-1, order="A").tobytes()
    if isinstance(value, bytes):
        return value
    try:
        return memoryview(value).cast("B")
    except (TypeError, ValueError):
        raise ChunkDecodeError(f"a {type(value).__name__}, where bytes are expected") from None


def sizes_of(steps: Sequence[Step], first: SizeLimit, count: int) -> list[SizeLimit]:
    """How many bytes there may be before each of ``steps``, and after the last."""
    sizes = [first]
    for step in steps:
        sizes.append(step.encoded(sizes[-1], count))
    return sizes


__all__ = ["OBJECT_CODECS", "Step", "as_bytes", "find_step", "sizes_of"]
