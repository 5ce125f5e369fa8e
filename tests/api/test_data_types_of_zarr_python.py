"""Data types as programs for zarr-python use them: made of NumPy's and of JSON, and turned into both."""

from __future__ import annotations

import numpy as np
import pytest

import zardine as zarr
from zardine import dtype
from zardine.errors import DataTypeValidationError

KINDS = [
    (dtype.Bool, "?", "|b1", True),
    (dtype.Int8, "i1", "|i1", -7),
    (dtype.UInt16, "u2", "<u2", 7),
    (dtype.Float32, "f4", "<f4", 1.5),
    (dtype.Complex128, "c16", "<c16", 1 + 2j),
    (dtype.FixedLengthUTF32, "U3", "<U3", "abc"),
    (dtype.NullTerminatedBytes, "S4", "|S4", b"ab"),
    (dtype.RawBytes, "V3", "|V3", b"abc"),
    (dtype.DateTime64, "M8[10s]", "<M8[10s]", np.datetime64("2020-01-01T00:00:10")),
    (dtype.TimeDelta64, "m8[ms]", "<m8[ms]", np.timedelta64(5, "ms")),
    (dtype.Struct, [("x", "i4"), ("y", [("z", "f8")])], [["x", "<i4"], ["y", [["z", "<f8"]]]], (1, (2.5,))),
]


@pytest.mark.parametrize(("kind", "native", "name", "scalar"), KINDS, ids=lambda value: getattr(value, "__name__", ""))
def test_there_and_back(kind, native, name, scalar):
    found = kind.from_native_dtype(np.dtype(native))
    assert isinstance(found, kind)
    assert found.to_native_dtype() == np.dtype(native)
    assert found.to_json(zarr_format=2) == {"name": name, "object_codec_id": None}
    for zarr_format in (2, 3):
        document = found.to_json(zarr_format=zarr_format)
        assert kind.from_json(document, zarr_format=zarr_format) == found
        assert dtype.parse_dtype(document, zarr_format=zarr_format) == found
        fill = found.to_json_scalar(scalar, zarr_format=zarr_format)
        again = found.from_json_scalar(fill, zarr_format=zarr_format)
        assert again == found.cast_scalar(scalar)
        assert isinstance(again, found.to_native_dtype().type)


@pytest.mark.parametrize(
    ("kind", "codec", "name"),
    [(dtype.VariableLengthUTF8, "vlen-utf8", "string"), (dtype.VariableLengthBytes, "vlen-bytes", "bytes")],
)
def test_of_any_length(kind, codec, name):
    found = kind()
    assert found.to_json(zarr_format=3) == found.to_json() == name
    assert found.to_json(zarr_format=2) == {"name": "|O", "object_codec_id": codec}
    assert kind.from_json({"name": "|O", "object_codec_id": codec}, zarr_format=2) == found
    scalar = "a" if name == "string" else b"a"
    assert found.from_json_scalar(found.to_json_scalar(scalar, zarr_format=2), zarr_format=2) == scalar


def test_names_of_v2_are_those_in_documents():
    for _, native, name, _ in KINDS:
        array = zarr.create_array({}, shape=1, dtype=np.dtype(native), zarr_format=2)
        assert array.metadata.to_dict()["dtype"] == name


def test_refusals():
    with pytest.raises(DataTypeValidationError, match=r"is no Int8\n.*it is int16"):
        dtype.Int8.from_native_dtype(np.dtype("i2"))
    with pytest.raises(DataTypeValidationError, match="is no Float32"):
        dtype.Float32.from_json("int8", zarr_format=3)
    with pytest.raises(DataTypeValidationError, match="object_codec_id"):
        dtype.parse_dtype({"name": "|O", "object_codec_id": None}, zarr_format=2)
    with pytest.raises(DataTypeValidationError, match="not a data type of Zarr v2"):
        dtype.parse_dtype({"name": "<q9", "object_codec_id": None}, zarr_format=2)
    with pytest.raises(ValueError, match="must be 2 or 3"):
        dtype.Int8().to_json(zarr_format=1)
    with pytest.raises(DataTypeValidationError, match="no fill value of int8"):
        dtype.Int8().from_json_scalar(1000, zarr_format=3)
    pytest.importorskip("ml_dtypes")
    narrow = dtype.parse_dtype("bfloat16")
    with pytest.raises(TypeError, match="Zarr v2 has no data type bfloat16"):
        narrow.to_json(zarr_format=2)
    record = dtype.Struct(fields=[("a", "bfloat16")])
    with pytest.raises(TypeError, match="Zarr v2 has no data type"):
        record.to_json_scalar((0,), zarr_format=2)


def test_what_is_no_data_type_of_a_version_is_refused() -> None:
    for data in (5, None, ["i4"], {"name": "|i1", "object_codec_id": "vlen-utf8"}):
        with pytest.raises(DataTypeValidationError):
            dtype.Int8.from_json(data, zarr_format=2)
    with pytest.raises(ValueError, match="zarr_format must be 2 or 3"):
        dtype.Int8.from_json("int8", zarr_format=7)
    with pytest.raises(TypeError, match="Zarr v2 has no data type complex_float16"):
        dtype.parse_dtype("complex_float16").to_json(zarr_format=2)
    assert dtype.parse_dtype("complex64").to_json(zarr_format=2)["name"] == "<c8"
