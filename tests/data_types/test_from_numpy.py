import numpy as np
import pytest

from zardine.data_types import data_type_for
from zardine.errors import MetadataError, UnknownExtensionError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("uint16", "uint16"),
        ("string", "string"),
        ("bytes", "bytes"),
        ("r24", "r24"),
        (str, "string"),
        ("str", "string"),
        (np.str_, "string"),
        (bytes, "bytes"),
        (np.bytes_, "bytes"),
        (np.dtypes.StringDType(), "string"),
        (np.dtypes.StringDType(coerce=False), "string"),
        (bool, "bool"),
        ("?", "bool"),
        (int, "int64"),
        (float, "float64"),
        ("float", "float64"),
        (complex, "complex128"),
        (np.uint8, "uint8"),
        (">f4", "float32"),
        (">c8", "complex64"),
        (np.dtype("q"), "int64"),
        (np.dtype("l"), "int64"),
        ("f2", "float16"),
        ({"name": "int32"}, "int32"),
        ("U5", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 20}}),
        (">U5", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 20}}),
        ("S5", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}}),
        ("V7", {"name": "raw_bytes", "configuration": {"length_bytes": 7}}),
        (">M8[25us]", {"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 25}}),
        ("m8", {"name": "numpy.timedelta64", "configuration": {"unit": "generic", "scale_factor": 1}}),
    ],
)
def test_given(given, expected):
    data_type = data_type_for(given)
    assert data_type.to_json() == expected
    assert data_type.dtype.isnative
    assert data_type_for(data_type) is data_type
    assert data_type_for(expected) == data_type


def test_structs():
    expected = {
        "name": "struct",
        "configuration": {
            "fields": [
                {"name": "a", "data_type": "uint8"},
                {
                    "name": "n",
                    "data_type": {
                        "name": "struct",
                        "configuration": {"fields": [{"name": "x", "data_type": "float64"}]},
                    },
                },
            ]
        },
    }
    aligned = np.dtype([("a", "u1"), ("n", [("x", ">f8")])], align=True)
    spaced = np.dtype({"names": ["a", "n"], "formats": ["u1", [("x", "f8")]], "offsets": [3, 8], "itemsize": 30})
    for given in (aligned, spaced, [("a", "u1"), ("n", [("x", "f8")])], [["a", "u1"], ["n", [["x", "f8"]]]], expected):
        data_type = data_type_for(given)
        assert data_type.to_json() == expected
        assert data_type.dtype.itemsize == data_type.item_size == 9
    assert data_type_for("i4,f8").item_size == 12


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "None is not a data type"),
        (5, "5 is not a data type"),
        (object, 'use dtype="string" for text or dtype="bytes"'),
        ("O", 'use dtype="string" for text or dtype="bytes"'),
        ("U0", 'use "string" or a length'),
        ("U", 'use "string" or a length'),
        ("S", 'use "bytes" or a length'),
        ("V", "no length"),
        ("longdouble", "no Zarr data type"),
        (np.clongdouble, "no Zarr data type"),
        ([("a", "O")], "field 'a' of"),
        ([("a", np.dtypes.StringDType())], None),
        ([("a", "f4", (2,))], "inner shape"),
        (("f4", (2,)), "inner shape"),
        ([], None),
    ],
)
def test_no_such_type(given, text):
    if np.dtype("longdouble") == np.dtype("float64") and given in ("longdouble", np.clongdouble):
        pytest.skip("longdouble is float64 here")
    with pytest.raises(TypeError, match=text):
        data_type_for(given)


@pytest.mark.parametrize("given", ["flaot32", "i4[", "f4,,", "int 8", "🐟"])
def test_unknown_name(given):
    with pytest.raises(UnknownExtensionError, match="unknown data type"):
        data_type_for(given)


@pytest.mark.parametrize("given", ["r12", "struct", {"name": "raw_bytes"}, {"nam": "int8"}])
def test_wrong_json(given):
    with pytest.raises(MetadataError):
        data_type_for(given)
