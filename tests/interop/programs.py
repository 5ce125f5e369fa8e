"""zardine, zarr-python and tensorstore behind one face, and sample values that exercise every bit."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore
import zarr

import zardine

ZARR_PYTHON = tuple(int(part) for part in zarr.__version__.split(".")[:2])
"""The version; what newer ones have learnt is asserted of them, and that older ones have not."""

if ZARR_PYTHON >= (3, 2):
    zarr.config.set({"array.rectilinear_chunks": True})

Region = Any
Values = np.ndarray[Any, Any]


class Zardine:
    name = "zardine"

    @staticmethod
    def write(path: Path, region: Region, values: Values) -> None:
        zardine.open_array(path, mode="r+")[region] = values

    @staticmethod
    def read(path: Path) -> Values:
        return zardine.open_array(path, mode="r")[...]


class ZarrPython:
    name = "zarr-python"

    @staticmethod
    def write(path: Path, region: Region, values: Values) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.open_array(path, mode="r+")[region] = values

    @staticmethod
    def read(path: Path) -> Values:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = zarr.open_array(path, mode="r")
            return np.asarray(array[...] if array.ndim else array[()])


class TensorStore:
    name = "tensorstore"

    @staticmethod
    def _open(path: Path) -> Any:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        return tensorstore.open(spec, open=True).result()

    @classmethod
    def write(cls, path: Path, region: Region, values: Values) -> None:
        cls._open(path)[region].write(values).result()

    @classmethod
    def read(cls, path: Path) -> Values:
        return np.asarray(cls._open(path).read().result())


PEERS = {peer.name: peer for peer in (ZarrPython, TensorStore)}


def create(path: Path, document: dict[str, Any]) -> Path:
    """Store the document alone; programs then open it."""
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps(document))
    return path


def same(found: Values, expected: Values) -> bool:
    """Equal in every bit; elements of varying length equal in value."""
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OT":
        return [plain(each) for each in found.reshape(-1)] == [plain(each) for each in expected.reshape(-1)]
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytes, np.bytes_)) else str(value)


def sample(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> Values:
    """Values of random bits (NaN of every payload among them), and the extremes."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype in ("string", "bytes"):
        words = ["", "a", "Zürich", "日本語", "tin 🐟", "tab\tand\nline", "x" * 300]
        chosen = [words[i] for i in rng.integers(0, len(words), size)]
        if dtype == "string":
            return np.array(chosen, dtype=np.dtypes.StringDType()).reshape(shape)
        result = np.empty(size, object)
        result[:] = [word.encode() + b"\0\xff" for word in chosen]
        return result.reshape(shape)
    kind = np.dtype(dtype)
    if kind.names is not None:
        flat = np.zeros(size, kind)
        for name in kind.names:
            flat[name] = sample(kind[name], (size,), seed)
    elif kind.kind == "b":
        flat = rng.integers(0, 2, size).astype(bool)
    elif kind.kind == "U":
        flat = np.array([["", "é", "日本", "🐟x", "abcd"][i % 5] for i in rng.integers(0, 5, size)], kind)
    elif kind.kind == "S":
        flat = np.array([[b"", b"a\xff", b"\0b", b"abc"][i % 4] for i in rng.integers(0, 4, size)], kind)
    elif kind.name in ("int2", "int4", "uint2", "uint4", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"):
        bits = next(bits for bits in (2, 4, 6) if str(bits) in kind.name.split("_")[0])
        flat = rng.integers(0, 1 << bits, size).astype(np.uint8).view(kind)
    else:
        flat = np.frombuffer(rng.bytes(size * kind.itemsize), kind).copy()
    return flat.reshape(shape)


def array_document(
    shape: tuple[int, ...],
    data_type: Any,
    codecs: list[Any],
    chunk: tuple[int, ...] | None = None,
    fill: Any = 0,
    **more: Any,
) -> dict[str, Any]:
    """A ``zarr.json`` of an array; the chunk is the whole array unless given."""
    chunk = tuple(max(length, 1) for length in shape) if chunk is None else chunk
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    } | more


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
BYTES = {"name": "bytes"}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
ZSTD_SUM = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}


def transpose(*order: int) -> dict[str, Any]:
    return {"name": "transpose", "configuration": {"order": list(order)}}


def blosc(cname: str, shuffle: str, typesize: int = 4, clevel: int = 5, blocksize: int = 0) -> dict[str, Any]:
    return {
        "name": "blosc",
        "configuration": {
            "cname": cname,
            "clevel": clevel,
            "shuffle": shuffle,
            "typesize": typesize,
            "blocksize": blocksize,
        },
    }


def sharding(
    chunk: tuple[int, ...], codecs: list[Any], location: str = "end", index: list[Any] | None = None
) -> dict[str, Any]:
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(chunk),
            "codecs": codecs,
            "index_codecs": [LITTLE, CRC] if index is None else index,
            "index_location": location,
        },
    }
