"""Inner chunks that were never written read as the fill value, bit by bit, behind codecs that lose bits."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import MemoryStore

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}


def named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


LOSSY: dict[str, tuple[str, Any, list[Any]]] = {
    "bitround": ("float32", 9.3, [named("bitround", keepbits=3)]),
    "bitround of float64": ("float64", -9.3, [named("bitround", keepbits=3)]),
    "bitround of integers": ("int32", 1001, [named("bitround", keepbits=3)]),
    "numcodecs.bitround": ("float32", 9.3, [named("numcodecs.bitround", keepbits=3)]),
    "fixedscaleoffset": (
        "float64",
        9.37,
        [named("numcodecs.fixedscaleoffset", offset=0, scale=10, dtype="<f8", astype="<i2")],
    ),
    "quantize": ("float64", 9.37, [named("numcodecs.quantize", digits=1, dtype="<f8", astype="<f4")]),
    "astype": ("float64", 9.3, [named("numcodecs.astype", encode_dtype="<f4", decode_dtype="<f8")]),
    "scale_offset": ("float32", 9.3, [named("scale_offset", offset=100, scale=0.3)]),
    "cast_value": ("float64", 9.5, [named("cast_value", data_type="float32")]),
    "cast_value to integers": ("float64", 9.0, [named("cast_value", data_type="int16")]),
    "two of them": ("float64", 9.5, [named("cast_value", data_type="float32"), named("bitround", keepbits=2)]),
}


def sharded(*codecs: Any, shape: tuple[int, ...] = (2, 2)) -> dict[str, Any]:
    return named("sharding_indexed", chunk_shape=list(shape), codecs=list(codecs), index_codecs=[BYTES, CRC])


def around(place: str, lossy: list[Any]) -> list[Any]:
    """A codec chain with lossy codecs somewhere before a shard."""
    return {
        "before": [*lossy, sharded(BYTES, CRC)],
        "compressed": [*lossy, sharded(BYTES), GZIP],
        "before a transpose": [*lossy, TURN, sharded(BYTES)],
        "behind a transpose": [TURN, *lossy, sharded(BYTES, CRC)],
        "before a reshape": [*lossy, named("reshape", shape=[64]), sharded(BYTES, shape=(4,))],
        "nested": [sharded(*lossy, sharded(BYTES), shape=(4, 4)), CRC],
        "nested and reachable": [sharded(*lossy, sharded(BYTES), shape=(4, 4))],
        "before nested ones": [*lossy, sharded(sharded(BYTES), GZIP, shape=(4, 4))],
    }[place]


PLACES = list(
    {"before", "compressed", "before a transpose", "behind a transpose", "before a reshape"}
    | {"nested", "nested and reachable", "before nested ones"}
)
PLACES.sort()


def made(codecs: list[Any], kind: str) -> zardine.Array:
    dtype, fill, _ = LOSSY[kind]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8, 16],
        "data_type": dtype,
        "chunk_grid": named("regular", chunk_shape=[8, 8]),
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": codecs,
    }
    store = MemoryStore()
    store.set("zarr.json", json.dumps(document).encode())
    return zardine.open_array(store)


def check(place: str, kind: str) -> None:
    _, value, lossy = LOSSY[kind]
    array = made(around(place, lossy), kind)
    fill = np.array(value, array.dtype)
    assert (array[...] == fill).all()
    array[:4, :4] = 4
    untouched = np.ones(array.shape, bool)
    untouched[:4, : 8 if place == "before a reshape" else 4] = False
    for opened in (array, zardine.open_array(array.store)):
        assert (opened[...][untouched] == fill).all()
        assert (opened[4:, 4:] == fill).all()
        assert opened[7, 7] == fill
        assert (opened[7, ::3] == fill).all()
        assert (opened.oindex[[5, 7], [4, 15]] == fill).all()
        assert (opened.vindex[[5, 7], [4, 15]] == fill).all()
    assert zardine.verify(array.store, deep=True).ok
    # values that round to the same as the fill value are no fill values
    plain = made([*lossy, BYTES], kind)
    near = np.full((8, 8), fill)
    near[:, ::2] += np.array(1 if array.dtype.kind == "i" else 0.001, array.dtype)
    for each in (array, plain):
        each[:, 8:] = near
    np.testing.assert_array_equal(array[:, 8:], plain[:, 8:])
    array[:, 8:] = fill
    np.testing.assert_array_equal(array[:, 8:], np.full((8, 8), fill))


@pytest.mark.parametrize("kind", LOSSY)
@pytest.mark.parametrize("place", PLACES)
def test_inner_chunks_that_were_never_written_read_as_the_fill_value(place: str, kind: str) -> None:
    check(place, kind)


def test_they_do_without_the_kernel() -> None:
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    code += f"from {Path(__file__).stem} import *\n"
    code += (
        "assert zardine.kernel.KERNEL is None\nfor place in PLACES:\n    for kind in LOSSY:\n        check(place, kind)"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "ZARDINE_KERNEL": "0"}, check=True)


@pytest.mark.parametrize("kind", LOSSY)
def test_copies_have_the_fill_value(kind: str) -> None:
    """Arrays in other shards and other chunks, and through xarray, have the same elements."""
    _, value, lossy = LOSSY[kind]
    array = made([*lossy, sharded(BYTES, CRC)], kind)
    array[:2, :2] = 4
    want = array[...]
    assert (want[2:, 2:] == np.array(value, array.dtype)).all()
    resharded, rechunked = MemoryStore(), MemoryStore()
    zardine.reshard(array.store, shards=(8, 16), target=resharded)
    zardine.rechunk(array.store, rechunked, chunks=(1, 2), shards=(4, 8))
    for store in (resharded, rechunked, zardine.from_array(None, data=array).store):
        np.testing.assert_array_equal(zardine.open_array(store)[...], want)
    zardine.reshard(array.store, shards=(8, 16))
    np.testing.assert_array_equal(zardine.open_array(array.store)[...], want)


def test_xarray_reads_them_as_missing(tmp_path: Path) -> None:
    import xarray
    from xarray.backends.zarr import FillValueCoder

    group = zardine.create_group(tmp_path)
    array = group.create_array(
        "x",
        shape=(8, 16),
        dtype="f4",
        chunks=(2, 2),
        shards=(8, 8),
        fill_value=9.3,
        filters=[],
        dimension_names=["a", "b"],
    )
    document = json.loads((tmp_path / "x" / "zarr.json").read_text())
    document["codecs"].insert(0, named("numcodecs.bitround", keepbits=3))
    document["attributes"]["_FillValue"] = FillValueCoder.encode(np.float32(9.3), np.dtype("f4"))
    (tmp_path / "x" / "zarr.json").write_text(json.dumps(document))
    array = zardine.open_array(tmp_path, path="x")
    array[:2, :2] = 4
    with xarray.open_dataset(tmp_path, engine="zardine") as found:
        assert np.isnan(found.x.values).sum() == 8 * 16 - 4
