"""Documents and chunks as releases of zarr-python 3.0 and numcodecs 0.15 wrote them.

The documents are those that these releases wrote for the same arguments, cut to what matters.
"""

from __future__ import annotations

import json
import lzma
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.errors import MetadataError


def store_v2(folder: Path, data: np.ndarray[Any, Any] | None = None, **members: Any) -> Path:
    """Store an array of four elements in one chunk without a compressor."""
    document = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "order": "C",
        "filters": None,
        "compressor": None,
        "dimension_separator": ".",
        **members,
    }
    folder.mkdir(parents=True)
    (folder / ".zarray").write_text(json.dumps(document))
    if data is not None:
        (folder / "0").write_bytes(data.tobytes())
    return folder


TIMES = {
    ("<M8[ns]", "1970-01-01T00:00:00.000000000"): 0,
    (">M8[ns]", "1970-01-01T00:00:00.000000000"): 0,
    ("<M8[s]", "1970-01-01T00:00:05"): 5,
    ("<M8[25s]", "1970-01-01T00:00:50"): 2,
    ("<M8[D]", "1970-01-02"): 1,
    ("<M8[h]", "2001-02-01T03"): 272499,
    ("<M8[M]", "1969-12"): -1,
    ("<M8[Y]", "2001"): 31,
    ("<M8[ps]", "1970-01-01T00:00:00.000000000005"): 5,
}


@pytest.mark.parametrize(("dtype", "text"), TIMES)
def test_a_time_as_fill_value_is_read(tmp_path: Path, dtype: str, text: str) -> None:
    count = TIMES[dtype, text]
    folder = store_v2(tmp_path / "a", dtype=dtype, fill_value=text)
    array = zardine.open_array(folder, mode="r+")
    assert array[...].view(np.int64).tolist() == [count] * 4
    assert not zardine.verify(folder).faults
    array.attrs["a"] = 1
    array.resize((5,))
    assert zardine.open_array(folder)[4].view(np.int64) == count


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("<M8[D]", "1970-01-02T03"),
        ("<M8[ns]", "200000-01-01"),
        ("<M8[s]", "now"),
        ("<M8[s]", "1970-13-01"),
        ("<M8[s]", "1970-01-01T00:00:00+01:00"),
        ("<M8", "1970-01-01"),
        ("<m8[s]", "1970-01-01"),
    ],
)
def test_a_time_that_the_dtype_does_not_hold_is_refused(tmp_path: Path, dtype: str, text: str) -> None:
    store_v2(tmp_path / "a", dtype=dtype, fill_value=text)
    with pytest.raises(MetadataError, match="fill_value: expected"):
        zardine.open_array(tmp_path / "a")


def test_bytes_of_a_fixed_length_behind_vlen_bytes_are_read(tmp_path: Path) -> None:
    values = np.array([b"abcd", b"\0\0\0\1", b"ef\0\0", b"\0\0\0\0"], "V4")
    folder = store_v2(tmp_path / "a", dtype="|V4", fill_value=None, filters=[{"id": "vlen-bytes"}])
    (folder / "0").write_bytes(numcodecs.VLenBytes().encode(values.astype(object)))
    array = zardine.open_array(folder, mode="r+")
    assert array[...].tobytes() == values.tobytes()
    assert not zardine.verify(folder).faults
    array[1] = np.void(b"wxyz")
    values[1] = b"wxyz"
    assert zardine.open_array(folder)[...].tobytes() == values.tobytes()


@pytest.mark.filterwarnings("ignore")
def test_the_id_in_a_configuration_of_numcodecs_is_ignored(tmp_path: Path) -> None:
    values = np.array([1.5, 2.5, -3.0, 0.1], "<f4")
    array = zardine.create_array(
        tmp_path / "a",
        shape=(4,),
        dtype="f4",
        filters=[{"name": "numcodecs.bitround", "configuration": {"keepbits": 20}}],
    )
    array[...] = values
    expected = array[...]
    place = tmp_path / "a" / "zarr.json"
    document = json.loads(place.read_text())
    document["codecs"][0]["configuration"]["id"] = "bitround"
    place.write_text(json.dumps(document))
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], expected)
    assert not zardine.verify(tmp_path / "a").faults
    document["codecs"][0]["configuration"]["other"] = 1
    place.write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="other: unknown member"):
        zardine.open_array(tmp_path / "a")


@pytest.mark.parametrize("delta", [1, 2])
def test_lzma_with_the_option_delta_of_gdal_is_read(tmp_path: Path, delta: int) -> None:
    values = np.array([1, 2, -3, 4], "<i2")
    filters = [{"id": lzma.FILTER_DELTA, "dist": delta}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
    folder = store_v2(tmp_path / "a", dtype="<i2", fill_value=0, compressor={"id": "lzma", "preset": 6, "delta": delta})
    (folder / "0").write_bytes(lzma.compress(values.tobytes(), format=lzma.FORMAT_XZ, filters=filters))
    array = zardine.open_array(folder, mode="r+")
    assert array[...].tolist() == values.tolist()
    assert not zardine.verify(folder).faults
    array[1] = values[1] = 7
    assert lzma.decompress((folder / "0").read_bytes()) == values.tobytes()
    assert zardine.open_array(folder)[...].tolist() == values.tolist()


@pytest.mark.parametrize("delta", [0, 257, "1", True, None])
def test_lzma_with_another_delta_is_refused(tmp_path: Path, delta: object) -> None:
    store_v2(tmp_path / "a", dtype="<i2", fill_value=0, compressor={"id": "lzma", "preset": 6, "delta": delta})
    with pytest.raises(MetadataError, match="delta"):
        zardine.open_array(tmp_path / "a")


@pytest.mark.parametrize(
    ("changes", "is_alike"),
    [
        ({"compressor": {"id": "zstd", "level": 0}}, True),
        ({"fill_value": "NaN"}, True),
        ({"filters": []}, True),
        ({"compressor": {"id": "zstd", "level": 1, "checksum": False}}, False),
        ({"fill_value": 0.0}, False),
        ({"fill_value": None}, False),
        ({"dtype": "<f8"}, False),
    ],
)
def test_consolidated_metadata_may_spell_the_same_otherwise(
    tmp_path: Path, changes: dict[str, Any], is_alike: bool
) -> None:
    members = {"dtype": "<f4", "fill_value": float("nan"), "compressor": {"id": "zstd", "level": 0, "checksum": False}}
    store_v2(tmp_path / "a", **members)
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    stored = json.loads((tmp_path / "a" / ".zarray").read_text())
    metadata = {".zgroup": {"zarr_format": 2}, "a/.zarray": {**stored, **changes}}
    (tmp_path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (not zardine.verify(tmp_path).faults) == is_alike
