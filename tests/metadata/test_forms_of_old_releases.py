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


@pytest.mark.parametrize(
    ("dtype", "fill", "value"),
    [
        ("bfloat16", -1.0, -1),
        ("bfloat16", "NaN", np.nan),
        ("float8_e5m2", 1.5, 1.5),
        ("float4_e2m1fn", "Cg==", -1),
        ("int4", -1, -1),
        ("int2", None, 0),
    ],
)
def test_dtypes_of_tensorstore_are_read_and_kept(tmp_path: Path, dtype: str, fill: Any, value: float) -> None:
    stored = np.array([1, 0, -1, 1]).astype(getattr(pytest.importorskip("ml_dtypes"), dtype))
    folder = store_v2(tmp_path / "a", stored, dtype=dtype, fill_value=fill)
    array = zardine.open_array(folder, mode="r+")
    assert array.dtype == stored.dtype
    assert array[...].tolist() == stored.tolist()
    array.attrs["a"] = 1
    array.resize((5,))
    np.testing.assert_array_equal(np.float64(zardine.open_array(folder)[4]), value)
    document = json.loads((folder / ".zarray").read_text())
    assert (document["dtype"], document["fill_value"]) == (dtype, fill)
    assert not (report := zardine.verify(folder)).faults + report.notes
    assert zardine.convert(folder, tmp_path / "b")[:4].tolist() == stored.tolist()


@pytest.mark.parametrize(
    ("dtype", "text", "value"), [("<i4", "0", 0), (">u2", "7", 7), ("<f4", "-1.5", -1.5), ("|b1", "1", True)]
)
def test_fill_values_of_n5_are_text(tmp_path: Path, dtype: str, text: str, value: float) -> None:
    folder = store_v2(tmp_path / "a", dtype=dtype, fill_value=text, filters=[])
    assert zardine.open_array(folder)[...].tolist() == [value] * 4
    report = zardine.verify(folder)
    assert not report.faults
    assert [note.kind for note in report.notes] == ["nonstandard"]


@pytest.mark.parametrize("text", ["", "x", "0x0", "1e", "nan", " 1", "0.5"])
def test_other_texts_are_no_fill_values_of_integers(tmp_path: Path, text: str) -> None:
    with pytest.raises(MetadataError, match="fill_value"):
        zardine.open_array(store_v2(tmp_path / "a", dtype="<i4", fill_value=text))


def test_documents_of_netcdf_are_no_faults(tmp_path: Path) -> None:
    folder = store_v2(tmp_path / "g" / "a", np.arange(4, dtype="i4"), dtype="<i4", fill_value=0)
    (tmp_path / "g" / ".zgroup").write_text('{"zarr_format": 2}')
    for name in ("g/.nczgroup", "g/.nczattr", "g/a/.nczarray", "g/a/.nczattr"):
        (tmp_path / name).write_text("{}")
    report = zardine.verify(tmp_path / "g")
    assert not report.faults
    assert {note.kind for note in report.notes} == {"nonstandard"}
    (folder / ".other").write_text("{}")
    assert [fault.kind for fault in zardine.verify(tmp_path / "g").faults] == ["stray"]


ZARRS = "https://codec.zarrs.dev"
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


@pytest.mark.parametrize(
    ("data", "codecs", "address"),
    [
        (np.float32([1.5, 2]), {"filters": [{"name": "bitround", "configuration": {"keepbits": 3}}]}, "array_to_array"),
        (
            np.float32([1.5, 2]),
            {"serializer": {"name": "numcodecs.pcodec", "configuration": {"level": 8}}},
            "array_to_bytes",
        ),
        (
            np.int32([1, 2]),
            {"compressors": [{"name": "numcodecs.bz2", "configuration": {"level": 5}}]},
            "bytes_to_bytes",
        ),
        (np.int32([1, 2]), {"compressors": [{"name": "numcodecs.fletcher32"}]}, "bytes_to_bytes"),
        (["a", "bcd"], {"serializer": {"name": "zarrs.vlen_v2"}}, "array_to_bytes"),
        ([b"a", b"bcd"], {"serializer": {"name": "zarrs.vlen_v2"}}, "array_to_bytes"),
        (["a", "bcd"], {"serializer": {"name": "zarrs.vlen"}}, "array_to_bytes"),
    ],
)
def test_codecs_that_zarrs_called_by_addresses(tmp_path: Path, data: Any, codecs: Any, address: str) -> None:
    dtype = {str: "string", bytes: "bytes"}.get(type(data[0]), getattr(data, "dtype", None))
    (given,) = codecs.values()
    name = (given if isinstance(given, dict) else given[0])["name"]
    if name == "zarrs.vlen":
        chain = {"data_codecs": ["bytes"], "index_codecs": [LITTLE], "index_data_type": "uint64"}
        codecs = {"serializer": {"name": name, "configuration": chain}}
    array = zardine.create_array(tmp_path / "a", shape=2, dtype=dtype, **codecs)
    array[...] = data
    path = tmp_path / "a" / "zarr.json"
    text = path.read_text().replace(f'"{name}"', f'"{ZARRS}/{address}/{name.rpartition(".")[2]}"')
    assert ZARRS in text
    path.write_text(text.replace('"data_type": "bytes"', '"data_type": "binary"'))
    found = zardine.open_array(tmp_path / "a", mode="r+")
    assert list(found[...]) == list(data)
    found[0] = data[1]
    found.attrs["a"] = 1
    assert zardine.open_array(tmp_path / "a")[0] == data[1]
    assert ZARRS in path.read_text()
    assert not zardine.verify(tmp_path / "a").faults
