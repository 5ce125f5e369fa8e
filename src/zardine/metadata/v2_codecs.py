"""``order``, ``filters`` and ``compressor`` of Zarr v2 documents as the codecs of the normal form, and back.

Almost all mean the same as some chain of v3 codecs: ``transpose`` for order F, an ``array -> array`` codec for each
filter of numbers, ``bytes`` with the byte order of the type, then filters of bytes and the compressor. Only chains that
v3 has no form for become the codec :data:`FILTERS`, which does what zarr-python 2 did.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zardine.data_types import DataType, data_type_for
from zardine.data_types.numpy_types import AnyObject
from zardine.data_types.v2_names import dtype_to_json
from zardine.json_document import JSON, Extension, Problems, is_integer, parse_integer
from zardine.metadata.v2_dtypes import byte_orders, data_type_of, with_byte_order

FILTERS = "zardine.v2_filters"
"""An ``array -> bytes`` codec that no v3 document may name: any filters of numcodecs on elements of any NumPy type."""

COMPRESSOR = "zardine.v2_compressor"
"""A ``bytes -> bytes`` codec that no v3 document may name: any codec of numcodecs."""

_TEXT = {"vlen-utf8": "string", "vlen-bytes": "bytes"}
_OF_NUMBERS = {
    "delta": "astype",
    "fixedscaleoffset": "astype",
    "quantize": "astype",
    "astype": "encode_dtype",
    "bitround": None,
    "packbits": None,
}
"""Filters from numbers to numbers, with the option that holds the stored type."""
_OF_BYTES = (
    *("adler32", "bz2", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "lz4", "lzma", "shuffle", "zlib"),
    *("blosc", "gzip", "zstd"),
)
_LZMA_DELTA, _LZMA2 = 3, 33
"""Filters of liblzma."""
_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_ZLIB_DEFAULT = 6
"""The level that zlib takes for -1."""
_DEFAULT_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


@dataclass(frozen=True, slots=True)
class Storage:
    """How chunks of a Zarr v2 array are encoded, in the words of its document."""

    dtype: np.dtype[Any]
    order: str
    filters: tuple[Mapping[str, JSON], ...]
    compressor: Mapping[str, JSON] | None


def to_codecs(storage: Storage) -> tuple[DataType, tuple[Extension, ...]]:
    """Return the data type in memory, and the codecs that mean the same.

    Raises ``TypeError`` for types without a length.
    """
    if storage.dtype.kind == "O":
        return _of_objects(storage)
    data_type = data_type_of(storage.dtype)
    chain = _plain_chain(storage)
    if chain is None:
        chain = [_generic(storage), *_compressor(storage.compressor, 1)]
    return data_type, tuple(chain)


def object_codec(storage: Storage) -> str | None:
    """Return the id of the codec that turns objects into bytes, if there can be one."""
    identifier = storage.filters[0].get("id") if storage.filters else None
    return None if identifier is None or identifier in (*_OF_NUMBERS, *_OF_BYTES) else str(identifier)


def codec_places(storage: Storage, codecs: Sequence[Extension], zarr_format: int) -> list[str]:
    """Return which member of the document each of the codecs in ``codecs`` stands for."""
    compressor = "compression_opts" if zarr_format == 1 else "compressor"
    places: list[str] = []
    filters = 0
    for number, codec in enumerate(codecs):
        if codec.name == "transpose":
            places.append("order")
        elif codec.name == "bytes":
            places.append("dtype")
        elif number == len(codecs) - 1 and storage.compressor is not None:
            places.append(compressor)
        elif codec.name == FILTERS:
            places.append("filters")
            filters = len(storage.filters)
        else:
            places.append(f"filters[{filters}]")
            filters += 1
    return places


def check_options(codec: Mapping[str, JSON], place: str, problems: Problems) -> None:
    """Note options of well-known codecs that numcodecs would take, and then fail with or pass over."""
    for name, (low, high) in _RANGES.get(str(codec["id"]), {}).items():
        if codec.get(name) is not None:
            parse_integer(codec[name], f"{place}.{name}", problems, low=low, high=high)


_RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "blosc": {"clevel": (0, 9), "shuffle": (-1, 2), "blocksize": (0, 2**31 - 1)},
    "bz2": {"level": (1, 9)},
    "gzip": {"level": (-1, 9)},
    "lz4": {"acceleration": (-(2**31), 2**31 - 1)},
    "lzma": {"format": (0, 3), "check": (-1, 15), "preset": (0, 9 | 2**31)},
    "zlib": {"level": (-1, 9)},
    "zstd": {"level": (-131072, 22)},
}


def _of_objects(storage: Storage) -> tuple[DataType, tuple[Extension, ...]]:
    identifier = object_codec(storage)
    rest = storage.filters[1:]
    if identifier in _TEXT and all(each.get("id") in _OF_BYTES for each in rest):
        chain = [*_transpose(storage.order), Extension(str(identifier))]
        chain += [extension for each in rest for extension in _compressor(each, 1)]
        return data_type_for(_TEXT[str(identifier)]), (*chain, *_compressor(storage.compressor, 1))
    data_type = data_type_for(_TEXT[identifier]) if identifier in _TEXT else AnyObject()
    if identifier == "categorize":
        data_type = data_type_for("string")
    return data_type, (_generic(storage), *_compressor(storage.compressor, 1))


def _plain_chain(storage: Storage) -> list[Extension] | None:
    chain = _transpose(storage.order)
    current = storage.dtype
    position = 0
    for each in storage.filters:
        identifier = each.get("id")
        if identifier not in _OF_NUMBERS:
            break
        if current.kind not in "biufcmM":
            return None
        chain.append(_named(each))
        option = _OF_NUMBERS[str(identifier)]
        try:
            if identifier == "packbits":
                current = np.dtype("u1")
            elif option is not None and each.get(option) is not None:
                current = np.dtype(each[option])
        except (TypeError, ValueError, SyntaxError):
            return None
        position += 1
    orders = byte_orders(current)
    if len(orders) > 1:
        return None
    endian = next(iter(orders), None)
    chain.append(Extension("bytes", None if endian is None else {"endian": endian}))
    size = current.itemsize
    for each in storage.filters[position:]:
        if each.get("id") not in _OF_BYTES:
            return None
        chain += _compressor(each, size)
        size = 1
    return [*chain, *_compressor(storage.compressor, size)]


def _transpose(order: str) -> list[Extension]:
    return [Extension("transpose", {"order": "F"})] if order == "F" else []


def _generic(storage: Storage) -> Extension:
    filters = [dict(each) for each in storage.filters]
    return Extension(FILTERS, {"dtype": dtype_to_json(storage.dtype), "order": storage.order, "filters": filters})


def _compressor(configuration: Mapping[str, JSON] | None, size: int) -> list[Extension]:
    """Return a compressor, or filter of bytes, of elements of ``size`` bytes."""
    if configuration is None:
        return []
    identifier = configuration.get("id")
    options = {name: value for name, value in configuration.items() if name != "id"}
    if identifier == "blosc" and set(options) <= {*_DEFAULT_BLOSC, "typesize"}:
        options = {**_DEFAULT_BLOSC, **options}
        shuffle = options["shuffle"]
        if shuffle == -1:
            shuffle = 2 if size == 1 else 1
        if shuffle in _SHUFFLES:
            typesize = options.get("typesize") or (size if 1 <= size <= 255 else 1)
            return [Extension("blosc", {**options, "shuffle": _SHUFFLES[shuffle], "typesize": typesize})]
    if identifier == "gzip" and set(options) <= {"level"}:
        level = options.get("level", 1)
        return [Extension("gzip", {"level": _ZLIB_DEFAULT if level == -1 else level})]
    if identifier == "zstd" and set(options) <= {"level", "checksum"}:
        return [Extension("zstd", {"level": options.get("level", 1), "checksum": options.get("checksum", False)})]
    delta = options.get("delta")
    if identifier == "lzma" and set(options) <= {"preset", "delta"} and _is_delta(delta):
        preset = options.get("preset", 6)
        filters: JSON = [{"id": _LZMA_DELTA, "dist": delta}, {"id": _LZMA2, "preset": preset}]
        return [Extension("numcodecs.lzma", {"format": 1, "filters": filters})]  # options of GDAL
    if identifier in _OF_BYTES:
        return [_named(configuration)]
    return [Extension(COMPRESSOR, dict(configuration))]


def _is_delta(value: JSON) -> bool:
    return is_integer(value) and value in range(1, 257)


def _named(configuration: Mapping[str, JSON]) -> Extension:
    options = {name: value for name, value in configuration.items() if name != "id"}
    return Extension(f"numcodecs.{configuration['id']}", options)


def from_codecs(
    codecs: Sequence[Mapping[str, JSON]], data_type: DataType, ndim: int
) -> tuple[Storage | None, list[str]]:
    """Return what a Zarr v2 document has to say for these codecs (as JSON).

    Else ``None`` and every reason why it cannot.
    """
    reasons: list[str] = []
    filters: list[Mapping[str, JSON]] = []
    after: list[Mapping[str, JSON]] = []
    dtype = np.dtype(object) if data_type.item_size is None else data_type.dtype
    order = "C"
    for codec in codecs:
        name, options = str(codec["name"]), dict(codec.get("configuration") or {})
        if name == "transpose":
            wanted = list(range(ndim))
            if list(options["order"]) in (["C"], wanted):
                continue
            if list(options["order"]) not in (["F"], wanted[::-1]) or filters or order == "F":
                reasons.append(f"codec transpose with order {options['order']}: v2 has the orders C and F only")
            order = "F"
        elif name in ("bytes", "endian"):
            swapped = options.get("endian") not in (None, sys.byteorder)
            if swapped and filters:
                reasons.append(f"codec {name} with endian {options['endian']} after a filter")
            dtype = with_byte_order(dtype, options.get("endian"))
        elif name in _TEXT:
            filters.append({"id": name})
        elif name == FILTERS:
            filters += options["filters"]
            dtype, order = np.dtype(data_type.dtype) if dtype.kind != "O" else dtype, options["order"]
        elif name == COMPRESSOR:
            after.append(options)
        elif name == "blosc":
            shuffle = {text: number for number, text in _SHUFFLES.items()}.get(options["shuffle"], -1)
            options.pop("typesize", None)
            after.append({"id": "blosc", **options, "shuffle": shuffle})
        elif name in ("gzip", "zstd"):
            if not options.get("checksum", True):
                del options["checksum"]
            after.append({"id": name, **options})
        elif name == "crc32c":
            after.append({"id": "crc32c", "location": "end"})
        elif name.startswith("numcodecs."):
            identifier = name.removeprefix("numcodecs.")
            (filters if identifier in _OF_NUMBERS else after).append({"id": identifier, **options})
        else:
            reasons.append(f"codec {name}")
    if reasons:
        return None, reasons
    compressor = after[-1] if after else None
    return Storage(dtype, order, (*filters, *after[:-1]), compressor), []
