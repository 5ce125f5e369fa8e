"""Whether a chunk is nothing but the fill value: told by bits, so that writing it back loses none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs.chain import equals_fill
from zardine.storage import MemoryStore

NAN = np.array([0x7FF8000000000001], "u8").view("f8")[0]
STRUCT = np.dtype([("x", "f4"), ("y", "i2")])

DIFFERING: list[tuple[Any, Any, str]] = [
    *((-0.0, 0.0, dtype) for dtype in ("f2", "f4", "f8")),
    *((0.0, -0.0, dtype) for dtype in ("f2", "f4", "f8")),
    (complex(0.0, -0.0), 0j, "c8"),
    (complex(-0.0, 0.0), 0j, "c16"),
    (NAN, np.nan, "f8"),
    ((-0.0, 1), (0.0, 1), "struct"),
    (b"ab", b"a", "S2"),
    (b"a", b"ab", "S2"),
    (b"a", b"", "S4"),
    (b"\0b", b"", "S2"),
    (b"abcdefgh", b"abcdefg", "S8"),
    (b"abc", b"ab", "S3"),
    ("ab", "a", "U2"),
]


def dtype_of(name: str) -> np.dtype[Any]:
    return STRUCT if name == "struct" else np.dtype(name)


@pytest.mark.parametrize(("value", "fill", "name"), DIFFERING)
def test_bits_count(value: Any, fill: Any, name: str) -> None:
    dtype = dtype_of(name)
    wanted = np.array(fill, dtype)
    for shape in ((), (4,), (2, 3)):
        array = np.full(shape, wanted, dtype)
        assert equals_fill(array, wanted)
        assert not equals_fill(np.full(shape, np.array(value, dtype)), wanted)
        if shape:
            array[-1] = np.array(value, dtype)
            assert not equals_fill(array, wanted)
    assert equals_fill(np.empty((0,), dtype), wanted)


@pytest.mark.parametrize(("value", "fill", "name"), DIFFERING)
@pytest.mark.parametrize(("zarr_format", "shards"), [(3, None), (3, (4,)), (2, None)])
@pytest.mark.parametrize("kernel", [True, False])
def test_what_differs_in_its_bits_is_stored(
    value: Any, fill: Any, name: str, shards: Any, zarr_format: int, kernel: bool
) -> None:
    """Also by chains that the kernel does not run."""
    dtype = dtype_of(name)
    own: dict[str, Any] = {} if kernel else {"compressors": "numcodecs.lzma" if zarr_format == 3 else {"id": "lzma"}}
    store = MemoryStore()
    array = zardine.create_array(
        store, shape=(4,), chunks=(2,), shards=shards, dtype=dtype, fill_value=fill, zarr_format=zarr_format, **own
    )
    wanted = np.full(4, np.array(fill, dtype))
    wanted[2:] = np.array(value, dtype)
    array[...] = wanted
    assert array.nchunks_initialized == 1
    again = zardine.open_array(store)
    assert again[...].tobytes() == wanted.tobytes()
    assert again.metadata.fill.tobytes() == np.array(fill, dtype).tobytes()
    again[2:] = np.array(fill, dtype)
    assert again.nchunks_initialized == 0
    assert zardine.open_array(store)[...].tobytes() == np.full(4, np.array(fill, dtype)).tobytes()
