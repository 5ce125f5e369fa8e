"""What zarr-python writes for every type it knows is read here, and comes out as it was written."""

import json
import warnings

import numpy as np
import pytest

from zardine.data_types import data_type_for, parse_data_type
from zardine.json_document import Problems

zarr = pytest.importorskip("zarr")

GIVEN = [
    *((name, None) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    *((name, None) for name in ("float16", "float32", "float64", "complex64", "complex128", "S5", "U5", "V7")),
    *((name, None) for name in ("string", "variable_length_bytes", "M8[ns]", "m8[10s]", "M8")),
    ("int64", -(2**63)),
    ("uint64", 2**64 - 1),
    ("float32", 0.1),
    ("float64", float("nan")),
    ("float16", float("-inf")),
    ("complex64", complex(np.nan, -np.inf)),
    ("S5", b"ab"),
    ("U5", "hé"),
    ("V7", b"abcdefg"),
    ("string", "hé"),
    ("variable_length_bytes", b"abc"),
    ("M8[ns]", 5),
    ([("a", "i4"), ("b", "f8")], (1, 2.5)),
    ([("a", "i4"), ("n", [("x", "u1"), ("y", "S3")])], None),
]


def written(dtype, fill):
    store: dict = {}
    fill_value = {} if fill is None else {"fill_value": fill}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(
            zarr.storage.MemoryStore(store), shape=(2,), chunks=(2,), dtype=dtype, compressors=None, **fill_value
        )
    return json.loads(store["zarr.json"].to_bytes()), array


@pytest.mark.parametrize(("dtype", "fill"), GIVEN)
def test_reads_what_zarr_python_writes(dtype, fill):
    document, array = written(dtype, fill)
    problems = Problems()
    data_type = parse_data_type(document["data_type"], "data_type", problems)
    value = data_type.parse_fill(document["fill_value"], "fill_value", problems)
    assert not problems.found
    assert data_type.to_json() == document["data_type"]
    form = data_type.fill_to_json(value)
    if form == "NaT":
        form = -(2**63)
    assert json.dumps(form) == json.dumps(document["fill_value"])
    if data_type.dtype.kind not in "OT":
        assert data_type.dtype == array.dtype
        # zarr-python 3.1 takes the text "0" for the default of a bytes field
        assert value.tobytes() == np.asarray(array.fill_value, array.dtype).tobytes() or data_type.name == "structured"


@pytest.mark.parametrize("dtype", [name for name, fill in GIVEN if fill is None and isinstance(name, str)])
def test_chooses_the_same_name(dtype):
    document, _ = written(dtype, None)
    data_type = data_type_for(dtype)
    assert data_type.to_json() == document["data_type"]
    default = data_type.fill_to_json(data_type.default_fill())
    assert (-(2**63) if default == "NaT" else default) == document["fill_value"]
