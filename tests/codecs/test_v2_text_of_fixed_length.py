"""Zarr v2 arrays of dtype U or S behind vlen-utf8 or vlen-bytes, as zarr-python 3.0.0 to 3.0.10 wrote them."""

import json

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.errors import CorruptionError

CASES = {
    "U": ("<U3", numcodecs.VLenUTF8(), np.array([["ab", "cde"], ["", "ä"]])),
    "S": ("|S3", numcodecs.VLenBytes(), np.array([[b"ab", b"cde"], [b"", b"x"]])),
    "big-endian": (">U3", numcodecs.VLenUTF8(), np.array([["ab", "cde"], ["", "ä"]])),
    "scalar": ("<U5", numcodecs.VLenUTF8(), np.array("hello")),
}


def store_as_zarr_python_3_0(folder, dtype, codec, values, order="C", compressor=True):
    document = {
        "zarr_format": 2,
        "shape": values.shape,
        "chunks": values.shape,
        "dtype": dtype,
        "fill_value": None,
        "order": order,
        "filters": [codec.get_config()],
        "compressor": {"id": "zstd", "level": 0} if compressor else None,
        "dimension_separator": ".",
    }
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(document))
    encoded = codec.encode(np.array(values.astype(object), order=order).reshape(-1, order="A"))
    name = ".".join("0" * values.ndim) or "0"
    (folder / name).write_bytes(numcodecs.Zstd(0).encode(encoded) if compressor else encoded)
    return folder / name


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", CASES)
def test_it_is_read_verified_and_changed(tmp_path, name, order):
    dtype, codec, values = CASES[name]
    store_as_zarr_python_3_0(tmp_path / "a", dtype, codec, values, order)
    array = zardine.open_array(tmp_path / "a", mode="r+")
    assert array.dtype == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(array[...], values)
    assert not zardine.verify(tmp_path / "a").faults
    changed = values.copy()
    changed.reshape(-1)[0] = "xyz"
    array[...] = changed
    if values.ndim:
        array[1, 1] = changed[1, 1] = "zz"
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], changed)
    assert not zardine.verify(tmp_path / "a").faults


@pytest.mark.parametrize("wrong", ["abcd", 1, None])
def test_what_the_dtype_does_not_hold_is_damage(tmp_path, wrong):
    codec = numcodecs.JSON()
    values = np.array([wrong], dtype=object)
    chunk = store_as_zarr_python_3_0(tmp_path / "a", "<U3", codec, values, compressor=False)
    with pytest.raises(CorruptionError, match="is not a value of dtype <U3"):
        zardine.open_array(tmp_path / "a")[...]
    assert zardine.verify(tmp_path / "a").faults
    chunk.write_bytes(codec.encode(np.array(["abc"], dtype=object)))
    assert zardine.open_array(tmp_path / "a")[...].tolist() == ["abc"]
