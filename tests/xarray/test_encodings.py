"""What comes back of encoded values is what was given, to the promised precision; all else is refused."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import zardine
from cf_encodings import Case, changed, random_case, random_dataset, random_file
from effort import SOAK, new_seed
from zardine.xarray import to_zarr

CASES = 3000 if SOAK else 60


def differences(given: Any, found: Any, step: float) -> Any:
    """Return where values differ by more than half a step."""
    assert given.shape == found.shape
    missing = pd.isnull(given)
    if given.dtype.kind in "MmOUST" or found.dtype.kind in "MmOUST":
        kinds = "Mm" if given.dtype.kind in "Mm" else "OUST"
        same = given == found if found.dtype.kind in kinds else np.zeros(given.shape, bool)
        return ~(same | (missing & pd.isnull(found)))
    close = np.abs(found.astype(float) - given.astype(float)) <= step / 2 + 1e-12 * np.abs(given.astype(float))
    return ~((close & ~missing) | (missing & pd.isnull(found)))


def opened(place: Path, engine: str, like: Any) -> Any:
    unit = np.datetime_data(like.dtype)[0] if like.dtype.kind in "Mm" else "ns"
    times = xr.coders.CFDatetimeCoder(time_unit=unit, use_cftime=True if like.dtype.kind == "O" else None)
    with xr.open_dataset(place, engine=engine, decode_times=times, decode_timedelta=like.dtype.kind == "m") as data:
        return data.v.values


def check(case: Case, place: Path, lazily: bool, told: str) -> None:
    refused = ""
    try:
        to_zarr(case.dataset(lazily), place, encoding={"v": case.encoding})
    except ValueError as error:
        refused = str(error)
    assert bool(refused) is not case.fits, f"{told}: {refused or 'accepted'}"
    if refused:
        assert "variable 'v'" in refused
        return
    for engine in ("zardine", "zarr"):
        found = opened(place, engine, case.values)
        wrong = differences(case.values, found, case.step)
        assert not wrong.any(), f"{engine}: {told}: {case.values[wrong][0]} came back as {found[wrong][0]}"


@pytest.mark.parametrize("lazily", [False, True])
def test_values_come_back_or_are_refused(tmp_path: Path, lazily: bool) -> None:
    rng = random.Random(seed := new_seed(7 + lazily))
    warnings.simplefilter("ignore")
    for number in range(CASES):
        case = random_case(rng)
        told = f"case {number} of seed {seed}: {case.values} as {case.encoding}"
        check(case, tmp_path / f"{number}.zarr", lazily, told)


def test_values_come_back_from_stored_arrays_or_are_refused(tmp_path: Path) -> None:
    """Appending, regions and mode "a" keep the promise with the encoding of what is stored."""
    rng = random.Random(seed := new_seed(11))
    warnings.simplefilter("ignore")
    for number in range(CASES):
        case = random_case(rng)
        if not case.fits:
            continue
        place, told = tmp_path / f"{number}.zarr", f"case {number} of seed {seed}: {case.values} as {case.encoding}"
        to_zarr(case.dataset(False).isel(x=[1, 1, 1]), place, encoding={"v": case.encoding})
        way = rng.choice(({"append_dim": "x"}, {"region": {"x": slice(0, 3)}}, {"mode": "a"}))
        data = case.dataset(bool(number % 2))
        data["v"].attrs.clear()
        to_zarr(data, place, **way)
        found = opened(place, "zardine", case.values)[-3:]
        assert not differences(case.values, found, case.step).any(), f"{way}: {told}: {found}"


def test_what_a_file_holds_is_written_again_as_it_was_read(tmp_path: Path) -> None:
    rng = random.Random(seed := new_seed(13))
    warnings.simplefilter("ignore")
    for number in range(CASES // 4):
        raw = random_file(rng)
        try:
            read = xr.decode_cf(raw).load()
        except (ValueError, OverflowError):
            continue
        place = tmp_path / f"{number}.zarr"
        to_zarr(read, place, zarr_format=2 + number % 2)
        found = xr.open_dataset(place, engine="zardine").load()
        for name, each in read.variables.items():
            told = f"file {number} of seed {seed}, {name}: {raw[name].values} {raw[name].attrs}"
            assert name in found, told
            step = abs(float(each.encoding.get("scale_factor", 0)))
            assert not differences(each.values, found[name].values, step).any(), f"{told}: {found[name].values}"


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("source", "engine"), [("scipy", "scipy"), ("h5netcdf", "h5netcdf"), ("zarr", "zarr"), ("zarr", "zardine")]
)
def test_what_an_engine_has_read_is_written_again(tmp_path: Path, source: str, engine: str, zarr_format: int) -> None:
    """Whatever the encodings say: with them, with them given for the call, after changes of shape, dtype and values."""
    rng = random.Random(seed := new_seed(17 + zarr_format))
    warnings.simplefilter("ignore")
    for number in range(400 if SOAK else 25):
        raw, encoding = random_dataset(rng, source)
        place = tmp_path / f"{number}.{source}"
        if source == "zarr":
            refused = ""
            try:
                to_zarr(raw, place, encoding=encoding, zarr_format=rng.choice((2, 3)))
            except ValueError as error:  # times beyond the range
                refused = str(error)
            if refused:
                assert "no reader could decode" in refused
                continue
        else:
            raw.to_netcdf(place, engine=source, encoding=encoding)  # type: ignore[call-overload]
        try:
            with xr.open_dataset(place, engine=engine) as opened_file:
                read = opened_file.load()
        except (ValueError, OverflowError):
            continue  # times beyond the range
        data, how = changed(rng, read)
        given = {name: dict(data[name].encoding) for name in data.variables} if number % 2 else None
        for name in data.variables:
            told = f"{engine}, dataset {number} of seed {seed}, {how}, {name}: {raw[name].values} {read[name].encoding}"
            target = tmp_path / f"{number}-{name}.zarr"
            told += f" {given and given[name]}"
            refused = ""
            try:
                to_zarr(data[[name]], target, zarr_format=zarr_format, encoding=given and {name: given[name]})
            except (ValueError, TypeError) as error:
                refused = str(error)
            if refused:
                assert how in ("astype", "values"), f"{told}: {refused}"
                assert f"variable {name!r}" in refused, told
                assert "would come back as" in refused or "cannot be encoded" in refused, f"{told}: {refused}"
                continue
            found = xr.open_dataset(target, engine="zardine")[name]
            values = data[name].values
            step = abs(float(read[name].encoding.get("scale_factor", 0)))
            assert not np.any(differences(values, found.values, step)), f"{told}: {values} became {found.values}"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_errors_of_an_encoding_name_its_variable(tmp_path: Path, zarr_format: int) -> None:
    """Also for filters of another dtype, floats that the integers of the source would round, and shards in Zarr v2."""
    source = xr.Dataset({"v": ("x", np.arange(8, dtype="i4"))})
    filters = {"v": {"filters": [numcodecs.Delta("i4")], "chunks": (8,)}}
    to_zarr(source, tmp_path / "a.zarr", zarr_format=2, encoding=filters)
    read = xr.open_dataset(tmp_path / "a.zarr", engine="zardine").load()
    halves = read.assign(v=read.v.copy(data=read.v.values / 2))
    halves.v.encoding = dict(read.v.encoding)
    for encoding in (None, {"v": halves.v.encoding}):
        with pytest.raises(ValueError, match=r"variable 'v' .* 0\.5 would come back as 0"):
            to_zarr(halves, tmp_path / "b.zarr", zarr_format=zarr_format, encoding=encoding)
    to_zarr(halves, tmp_path / "b.zarr", encoding={"v": {"dtype": "i4"}})  # which the caller chose
    for encoding in ({"v": {"shards": (4,), "chunks": (2,)}}, {"v": {"shards": (3,), "chunks": (2,)}}):
        if zarr_format == 2 or encoding["v"]["shards"] == (3,):
            with pytest.raises(ValueError, match="'v'.*shards=None" if zarr_format == 2 else "'v'"):
                to_zarr(source, tmp_path / "c.zarr", zarr_format=zarr_format, encoding=encoding)
    wrong = {"v": {"filters": [numcodecs.Delta("i8")]}}
    with pytest.raises(ValueError, match=r"variable 'v'.*\n.*is made for <i8"):
        to_zarr(source, tmp_path / "c.zarr", zarr_format=2, encoding=wrong)
    assert not (tmp_path / "c.zarr").exists()


@pytest.mark.parametrize("way", [{"append_dim": "x"}, {"region": {"x": slice(0, 2)}}, {"mode": "a"}])
@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ns]", "M8[D]", "m8[s]", "m8[us]"])
def test_arrays_of_times_of_numpy(tmp_path: Path, dtype: str, way: dict[str, Any]) -> None:
    """They get the same times in their own unit, or the write is refused."""
    group = zardine.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("v", data=np.array([1, 2], "i8").astype(dtype), dimension_names=["x"])
    kind = dtype[0]
    good, bad = np.array([3 * 86400, 86400], f"{kind}8[s]"), np.array([3 * 86400, 1], f"{kind}8[ns]")
    for values in (np.array([1, 2]), good.astype("m8[s]" if kind == "M" else "M8[s]"), bad):
        if dtype == "M8[ns]" and values is bad:
            continue
        with pytest.raises(ValueError, match=r"variable 'v'"):
            to_zarr(xr.Dataset({"v": ("x", values)}), tmp_path / "a.zarr", consolidated=False, **way)
        np.testing.assert_array_equal(group["v"][:], np.array([1, 2], "i8").astype(dtype))
    to_zarr(xr.Dataset({"v": ("x", good)}), tmp_path / "a.zarr", consolidated=False, **way)
    np.testing.assert_array_equal(zardine.open(tmp_path / "a.zarr")["v"][-2:], good)


def test_undecoded_numbers_are_written_as_they_are(tmp_path: Path) -> None:
    """But only where their attributes say the same as those that are stored."""
    days = np.array(["2000-01-01", "2000-01-02"], "M8[ns]")
    encoding = {"v": {"units": "days since 1970-01-01", "dtype": "i4"}}
    to_zarr(xr.Dataset({"v": ("x", days)}), tmp_path / "a.zarr", encoding=encoding)
    for attributes, text in (({"units": "hours since 1970-01-01"}, "is not decoded"), ({}, "without a unit of time")):
        with pytest.raises(ValueError, match=text):
            to_zarr(xr.Dataset({"v": ("x", [1, 2], attributes)}), tmp_path / "a.zarr", append_dim="x")
    with xr.open_dataset(tmp_path / "a.zarr", engine="zardine", decode_times=False) as raw:
        to_zarr(raw.load(), tmp_path / "a.zarr", append_dim="x")
    assert xr.open_dataset(tmp_path / "a.zarr", engine="zardine").v.values.tolist() == [*days.tolist(), *days.tolist()]
    to_zarr(xr.Dataset({"n": ("x", [1, 2])}), tmp_path / "b.zarr")
    with pytest.raises(ValueError, match="variable 'n' is stored as numbers without a unit of time"):
        to_zarr(xr.Dataset({"n": ("x", days)}), tmp_path / "b.zarr", append_dim="x")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["U", "S", "O"])
def test_text_is_never_cut(tmp_path: Path, kind: str, zarr_format: int) -> None:
    def scene(*names: str) -> xr.Dataset:
        text = np.array([each.encode() for each in names] if kind == "S" else names).astype(kind)
        return xr.Dataset({"r": ("band", np.ones(len(names))), "label": ("band", text)}, {"band": text})

    for name, data in (("a", scene("red", "nir")), ("b", scene("panchromatic"))):
        to_zarr(data, tmp_path / name, zarr_format=zarr_format)
    first, second = (xr.open_dataset(tmp_path / each, engine="zardine") for each in "ab")
    long = second.label.values[0]
    ways = {
        "concat": xr.concat([first, second], "band"),
        "mfdataset": xr.open_mfdataset(
            [tmp_path / "a", tmp_path / "b"], engine="zardine", combine="nested", concat_dim="band"
        ),
        "reindex": first.reindex(band=[first.band.values[0], long], fill_value={"label": long}),
        "where": first.assign(label=first.label.where(first.label != first.label[0], long)),
        "new values": first.assign(label=first.label.copy(data=np.array([long, long]))),
    }
    for name, data in ways.items():
        to_zarr(data, tmp_path / name, zarr_format=zarr_format)
        found = xr.open_dataset(tmp_path / name, engine="zardine")
        assert found.label.values.tolist() == data.label.values.tolist()
        assert found.band.values.tolist() == data.band.values.tolist()
        assert long in found.label.values


def test_blocks_of_dask_that_are_longer_than_their_dtype_are_refused(tmp_path: Path) -> None:
    data = xr.Dataset({"v": ("x", np.array(["a", "b"]))}).chunk(x=1)
    data["v"] = data.v.copy(data=data.v.data.map_blocks(lambda block: np.array(["longer"]), dtype="<U1"))
    with pytest.raises(ValueError, match=r"element \[0\], 'longer', is 6 long, and dtype <U1 holds 1"):
        to_zarr(data, tmp_path / "a.zarr")


@pytest.mark.parametrize("value", [np.datetime64(1, "ns"), np.timedelta64(5, "ns"), np.array([1], "M8[ns]"), 1j, b"x"])
@pytest.mark.parametrize("of_dataset", [True, False])
def test_attributes_that_json_cannot_hold_are_refused(tmp_path: Path, value: Any, of_dataset: bool) -> None:
    data = xr.Dataset({"v": ("x", [1.0])})
    (data if of_dataset else data.v).attrs["made"] = value
    with pytest.raises(TypeError, match=r"attributes\.made: .* has no JSON form; give"):
        to_zarr(data, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazily", [True, False])
@pytest.mark.parametrize("mark", [np.nan, np.float32(np.nan), np.array([np.nan]), "NaN", "nan"])
@pytest.mark.parametrize("encoded", [True, False])
def test_a_missing_value_of_nan_is_left_out(
    tmp_path: Path, mark: Any, encoded: bool, lazily: bool, zarr_format: int
) -> None:
    values = np.array([1, np.nan, 3], "f4")
    data = xr.Dataset({"v": ("x", values)})
    (data.v.encoding if encoded else data.v.attrs)["missing_value"] = mark
    to_zarr(data.chunk() if lazily else data, tmp_path / "a.zarr", zarr_format=zarr_format)
    assert "missing_value" not in zardine.open(tmp_path / "a.zarr")["v"].attrs
    for engine in ("zardine", "zarr"):
        np.testing.assert_array_equal(xr.open_dataset(tmp_path / "a.zarr", engine=engine).v.values, values)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("engine", ["zardine", "zarr"])
@pytest.mark.parametrize("chunks", [None, 1])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 1)])
def test_bytes_of_length_one_are_no_characters_of_a_text(tmp_path, shape, chunks, engine, zarr_format):
    values = np.array([b"a", b"b", b"", b"d", b"e", b"f"])[: np.prod(shape)].reshape(shape)
    dims = ("y", "x")[-len(shape) :]
    dataset = xr.Dataset({"v": (dims, values, {"long_name": "letters"})})
    zardine.xarray.to_zarr(
        dataset if chunks is None else dataset.chunk(chunks), tmp_path / "a", zarr_format=zarr_format
    )
    found = xr.open_dataset(tmp_path / "a", engine=engine)["v"]
    assert found.attrs == {"long_name": "letters"}
    np.testing.assert_array_equal(found.values, values)
    zardine.xarray.to_zarr(dataset, tmp_path / "a", append_dim=dims[0])
    found = xr.open_dataset(tmp_path / "a", engine=engine)["v"]
    np.testing.assert_array_equal(found.values, np.concatenate([values, values]))


@pytest.mark.parametrize("calendar", [None, "360_day"])
@pytest.mark.parametrize("unit", ["d", "h", "hr", "hrs", "min", "s", "sec", "ms", "msec", "microsec", "months"])
def test_times_in_units_that_xarray_only_decodes_are_written_again(tmp_path, unit, calendar):
    """Files have abbreviations of CF and months of 360 days as units of time."""
    attributes = {"units": f"{unit} since 2000-01-01", **({} if calendar is None else {"calendar": calendar})}
    if unit == "months" and calendar is None:
        pytest.skip("xarray decodes no months of other calendars")
    read = xr.decode_cf(xr.Dataset({"t": ("x", np.array([1, 2], "i4"), attributes)})).load()
    for number, encoding in enumerate((None, {"t": read.t.encoding})):
        place = tmp_path / f"{number}.zarr"
        if unit == "months" and encoding is not None:
            with pytest.raises(
                ValueError, match=r"variable 't' .* cannot be encoded in 'months since .* are days, hours"
            ):
                to_zarr(read, place, encoding=encoding)
            continue
        to_zarr(read.isel(x=[0]), place, encoding=encoding)
        to_zarr(read.isel(x=[1]).drop_encoding(), place, append_dim="x")
        np.testing.assert_array_equal(xr.open_dataset(place, engine="zardine").t.values, read.t.values)


def test_times_are_appended_to_units_that_are_stored_abbreviated(tmp_path):
    group = zardine.open_group(tmp_path / "a.zarr", mode="w")
    attributes = {"units": "h since 2000-01-01"}
    group.create_array("t", data=np.array([1, 2], "i4"), dimension_names=["x"], attributes=attributes)
    later = np.array(["2000-01-02T00:00", "2000-01-02T05:00"], "M8[ns]")
    to_zarr(xr.Dataset({"t": ("x", later)}), tmp_path / "a.zarr", append_dim="x", consolidated=False)
    assert group["t"].refresh()[:].tolist() == [1, 2, 24, 29]
    for values, text in (
        (np.array([1], "m8[h]").astype("m8[ns]"), "`since`"),
        (later[:1] + np.timedelta64(1, "m"), ""),
    ):
        with pytest.raises(ValueError, match=f"variable 't' .*{text}"):
            to_zarr(xr.Dataset({"t": ("x", values)}), tmp_path / "a.zarr", append_dim="x", consolidated=False)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    ("values", "attributes"),
    [
        (np.array([1, 2]), {"units": "days since planting"}),
        (np.array([1, 2]), {"units": "days since 2000-01-01", "calendar": "mine"}),
        (np.array([1, 2]), {"units": "months since 2000-01-01"}),
        (np.array([True, False]), {"units": "days since 2000-01-01"}),
        (np.array(["a", "b"]), {"units": "days since 2000-01-01"}),
        (np.array([1, 2]), {"scale_factor": "2"}),
        (np.array([1, 2]), {"add_offset": [1.0, 2.0]}),
        (np.array([1, 2]), {"_Encoding": "utf-8"}),
        (np.array([b"a", b"bc"]), {"_Encoding": "nonsense"}),
    ],
)
def test_attributes_with_which_nothing_opens_the_dataset_are_refused(tmp_path, values, attributes, lazily):
    data = xr.Dataset({"v": ("x", values, attributes)})
    with pytest.raises(ValueError, match=r"variable 'v' .*(no reader could decode|cannot be)"):
        to_zarr(data.chunk() if lazily else data, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_attributes_of_a_file_that_was_opened_undecoded_are_written(tmp_path):
    raw = xr.Dataset({"v": ("x", np.array([1, 2], "i4"), {"units": "months since 2000-01-01"})})
    raw.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf", decode_times=False) as read:
        to_zarr(read, tmp_path / "a.zarr")
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", decode_times=False)
    assert found.v.attrs == raw.v.attrs
    assert found.v.values.tolist() == [1, 2]


def test_coordinates_in_attributes_are_text(tmp_path):
    data = xr.Dataset({"v": ("x", [1, 2], {"coordinates": ["lat", "lon"]})})
    with pytest.raises(TypeError, match=r"`coordinates` of variable 'v' is text .* not \['lat', 'lon'\]"):
        to_zarr(data, tmp_path / "a.zarr")


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", [">u2", ">i2", "<u2", ">i4", ">u8"])
@pytest.mark.parametrize("unsigned", ["true", "false"])
@pytest.mark.parametrize("fill", [None, 127])
def test_signs_of_integers_of_either_byte_order(tmp_path, fill, unsigned, dtype, zarr_format, lazily):
    values = np.array([1, 255, 32766])
    data = xr.Dataset({"v": ("x", values)})
    encoding = {"dtype": dtype, "_Unsigned": unsigned, **({} if fill is None else {"_FillValue": fill})}
    place = tmp_path / "a.zarr"
    to_zarr(data.chunk(x=1) if lazily else data, place, encoding={"v": encoding}, zarr_format=zarr_format)
    to_zarr(data.chunk(x=1) if lazily else data, place, append_dim="x")
    for engine in ("zardine", "zarr"):
        assert xr.open_dataset(place, engine=engine).v.values.tolist() == [*values.tolist(), *values.tolist()]


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("dtype", ["i2", "i8", "u4"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_in_no_packed_integer(tmp_path, value, dtype, lazily):
    data = xr.Dataset({"v": ("x", np.array([1, value]))})
    for number, more in enumerate(({"_FillValue": 7}, {"scale_factor": 0.5}, {"add_offset": 1, "_FillValue": 7})):
        place = tmp_path / f"{number}.zarr"
        with pytest.raises(ValueError, match=r"variable 'v' .*inf would come back as"):
            to_zarr(data.chunk() if lazily else data, place, encoding={"v": {"dtype": dtype, **more}})


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_sign_is_of_no_meaning_for_floats(tmp_path, dtype):
    values = np.array([0.5, np.inf, -300.25])
    to_zarr(
        xr.Dataset({"v": ("x", values)}), tmp_path / "a.zarr", encoding={"v": {"dtype": dtype, "_Unsigned": "true"}}
    )
    assert xr.open_dataset(tmp_path / "a.zarr", engine="zardine").v.values.tolist() == values.tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("dtype", "attributes", "values"),
    [
        ("u1", {"missing_value": -1}, [1, 2]),
        ("i2", {"_FillValue": np.int16(-1), "missing_value": np.int16(-2)}, [1, np.nan, np.nan]),
        ("f4", {"_FillValue": np.float32(-1), "missing_value": np.float32(-2)}, [1, np.nan, np.nan]),
        ("f4", {"missing_value": np.array([-1, -2], "f4")}, [1, np.nan, np.nan]),
        ("i2", {"scale_factor": 2}, [2, -2, -4]),
        ("i2", {"add_offset": 2}, [3, 1, 0]),
    ],
)
def test_fill_values_and_factors_of_files_are_written_again(tmp_path, dtype, attributes, values, zarr_format):
    stored = np.array([1, 2] if dtype == "u1" else [1, -1, -2], dtype)
    raw = xr.Dataset({"v": ("x", stored, attributes)})
    read = xr.decode_cf(raw).load()
    np.testing.assert_array_equal(read.v.values, values)
    read.v.encoding["original_shape"] = read.v.shape
    for number, encoding in enumerate((None, {"v": read.v.encoding})):
        to_zarr(read, tmp_path / f"{number}.zarr", encoding=encoding, zarr_format=zarr_format)
        found = xr.open_dataset(tmp_path / f"{number}.zarr", engine="zardine").v
        np.testing.assert_array_equal(found.values, values)


@pytest.mark.parametrize("encoding", [{"dtype": "u2", "_FillValue": -1}, {"dtype": "i1", "_FillValue": 9e36}])
def test_fill_values_that_the_dtype_does_not_have_are_refused(tmp_path, encoding):
    with pytest.raises(ValueError, match=r"variable 'v' cannot be encoded"):
        to_zarr(xr.Dataset({"v": ("x", [1])}), tmp_path / "a.zarr", encoding={"v": {"_Unsigned": "true", **encoding}})


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("units", ["hours", "days since 2000-01-01"])
def test_missing_numbers_that_were_opened_without_their_times_are_written_again(tmp_path, units, zarr_format):
    attributes = {"units": units, "_FillValue": np.int32(-1)}
    raw = xr.Dataset({"v": ("x", np.array([1, -1, 5], "i4"), attributes)})
    read = xr.decode_cf(raw, decode_times=False).load()
    to_zarr(read, tmp_path / "a.zarr", zarr_format=zarr_format)
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", decode_times=False).v
    np.testing.assert_array_equal(found.values, [1, np.nan, 5])
    times = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", decode_timedelta=True).v
    assert np.isnat(times.values).tolist() == [False, True, False]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("dates", "units"),
    [
        (["2200-01-01", "1700-01-01"], "days since 1970-01-01"),
        (["2200-01-01T06", "1700-01-01", "NaT"], "hours since 1970-01-01"),
        (["2200-01-01", "1700-01-01T00:00:00.000000001"], "nanoseconds since 1970-01-01"),
    ],
)
def test_dates_further_apart_than_nanoseconds_say(tmp_path, dates, units, zarr_format):
    data = xr.Dataset({"v": ("t", np.array(dates, "M8[ns]"))})
    to_zarr(data, tmp_path / "a.zarr", zarr_format=zarr_format)
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zardine")
    assert found.v.encoding["units"] == units
    assert found.identical(data)


def test_parts_of_a_unit_do_not_join_durations_in_short_floats(tmp_path):
    hours = xr.Dataset({"v": ("t", np.array([3600, 7200], "m8[s]").astype("m8[ns]"))})
    to_zarr(hours, tmp_path / "a.zarr", encoding={"v": {"units": "seconds", "dtype": "f4"}})
    parts = xr.Dataset({"v": ("t", np.array([1, 3], "m8[ns]"))})
    with pytest.raises(ValueError, match=r"'v' is stored as float32 in 'seconds': beside 1 nano.* come back rounded"):
        to_zarr(parts, tmp_path / "a.zarr", append_dim="t")
    to_zarr(hours, tmp_path / "a.zarr", append_dim="t")
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", decode_timedelta=True)
    assert found.v.values.tolist() == [*hours.v.values.tolist()] * 2


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazily", [True, False])
@pytest.mark.parametrize("units", ["days since 2000-01-01 00:00:00 +02:00", "hours since 2000-01-01T00:00 -0530"])
def test_dates_that_count_from_a_local_time_are_written_again(tmp_path, units, lazily, zarr_format):
    stored = xr.Dataset({"v": ("t", np.arange(4, dtype="i2"), {"units": units})})
    to_zarr(stored, tmp_path / "a.zarr", zarr_format=zarr_format)
    options = {"chunks": {"t": 2}} if lazily else {}
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", **options)
    for _ in range(2):
        to_zarr(found, tmp_path / "b.zarr", mode="w", zarr_format=zarr_format)
        again = xr.open_dataset(tmp_path / "b.zarr", engine="zardine")
        assert again.v.values.tolist() == found.v.values.tolist()
        assert again.v.encoding["dtype"] == np.int16
    to_zarr(found, tmp_path / "a.zarr", append_dim="t")
    twice = xr.open_dataset(tmp_path / "a.zarr", engine="zardine")
    assert twice.v.values.tolist() == found.v.values.tolist() * 2
