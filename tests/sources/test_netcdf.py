"""Files of NetCDF: xarray makes the same of them and of what they are converted to."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import iris_sample_data
import netCDF4
import numpy as np
import pytest
import xarray

import zardine
import zardine.sources
from effort import some
from sources.same_elements import equal
from sources.sample_files import COMPRESSIONS, write_netcdf, write_records
from zardine.jobs.plan import Plan
from zardine.sources.arrays import ORIGIN

FORMATS = ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
IRIS = sorted(Path(iris_sample_data.path).rglob("*.nc"))
KEEP: dict[str, Any] = {"filters": "keep", "compressors": "keep", "serializer": "keep"}


def converted(source: Path, target: Path, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zardine.errors.ZarrUserWarning)
        zardine.convert(source, target, verify=True, **options)


def check_with_netcdf4(source: Path, group: zardine.Group) -> None:
    """Compare every variable of every group: elements, names of dimensions, attributes."""
    with netCDF4.Dataset(source) as file:
        file.set_auto_mask(False)
        file.set_auto_scale(False)
        file.set_auto_chartostring(False)
        waiting: list[tuple[str, Any]] = [("", file)]
        while waiting:
            path, each = waiting.pop()
            found = group[path] if path else group
            assert isinstance(found, zardine.Group)
            assert set(found.array_keys()) == set(each.variables)
            assert set(found.attrs) == set(each.ncattrs())
            for name, variable in each.variables.items():
                array = found[name]
                assert isinstance(array, zardine.Array)
                assert equal(array[...], variable[...]), (path, name)
                assert (array.dimension_names or ()) == variable.dimensions
                marks = {"missing_value", "_FillValue"} if name in TOLD else {"missing_value"}
                assert set(array.attrs) | marks == set(variable.ncattrs()) | marks
                for key in sorted(set(variable.ncattrs()) - {"_FillValue", "missing_value"}):
                    if key != "valid_range" or name != "odd_attributes":
                        assert np.array_equal(array.attrs[key], variable.getncattr(key)), (name, key)
                unlimited = [one for one in variable.get_dims() if one.isunlimited()]
                kept = array.metadata.unknown.get(ORIGIN, {}).get("unlimited_dimensions", [])
                assert kept == [one.name for one in unlimited]
            waiting += [(f"{path}/{name}".strip("/"), inner) for name, inner in each.groups.items()]


TOLD: dict[str, set[str]] = {
    "marked_letters": {"_FillValue", "dtype"},
    "marked_text": {"_FillValue", "missing_value"},
    "scaled_by_singles": {"values", "dtype"},
    "odd_attributes": {"missing_value", "valid_range"},
}
"""What xarray reads otherwise in Zarr, of which a warning tells before anything is written."""


def check_with_xarray(source: Path, target: Path, group: str | None = None) -> None:
    """Compare what xarray reads: dimensions, elements, data types, attributes, and of which type those are."""
    engine: Any = {"group": group}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # that there is no consolidated metadata
        for decoded in (True, False):
            with (
                xarray.open_dataset(source, decode_cf=decoded, engine="netcdf4", **engine) as before,
                xarray.open_zarr(target, decode_cf=decoded, chunks=None, **engine) as after,
            ):
                assert before.sizes == after.sizes
                names = [name for name in before.variables if name not in TOLD]
                xarray.testing.assert_identical(before[names], after[names])
                assert set(before.variables) == set(after.variables)
                for name in before.variables:
                    check_variable(before[name].variable, after[name].variable, TOLD.get(str(name), set()), str(name))


def check_variable(before: xarray.Variable, after: xarray.Variable, told: set[str], name: str) -> None:
    assert before.dims == after.dims
    if "values" not in told:
        assert before.equals(after), name
    if (before.dtype.kind not in "OU" or after.dtype.kind not in "OT") and "dtype" not in told:
        assert before.dtype.newbyteorder("=") == after.dtype, name
    assert set(before.attrs) - told == set(after.attrs) - told, name
    for key in set(before.attrs) - told:
        one, other = np.asarray(before.attrs[key]), np.asarray(after.attrs[key])
        kinds = "iu" if one.dtype.kind in "iu" else one.dtype.kind
        assert one.shape == other.shape, (name, key)
        assert other.dtype.kind in kinds, (name, key)
        np.testing.assert_array_equal(one, other)


def told(source: Path, target: Path) -> str:
    """Return the warning of a conversion."""
    with pytest.warns(zardine.errors.ZarrUserWarning) as caught:
        zardine.convert(source, target, verify=True)
    return "\n".join(str(each.message) for each in caught)


def test_all_are_here() -> None:
    assert len(IRIS) == 15


@pytest.fixture(scope="module", params=[*IRIS, *FORMATS], ids=lambda each: getattr(each, "stem", each))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of iris, or one of ours in each format."""
    if isinstance(request.param, Path):
        return request.param
    return write_netcdf(tmp_path_factory.mktemp("netcdf") / "a.nc", request.param)


def test_as_it_lies(source: Path) -> None:
    opened = zardine.sources.open(source)
    assert isinstance(opened, zardine.Group)
    check_with_netcdf4(source, opened)


@pytest.mark.parametrize(
    ("source", "codecs"),
    list(some(product([*IRIS, *FORMATS], ["packed", "kept"]), 5)),
    indirect=["source"],
    ids=lambda each: getattr(each, "stem", each),
)
def test_converted(source: Path, tmp_path: Path, codecs: str) -> None:
    converted(source, tmp_path / "made", **(KEEP if codecs == "kept" else {}))
    check_with_netcdf4(source, zardine.open_group(tmp_path / "made", mode="r"))
    with netCDF4.Dataset(source) as file:
        groups: list[str | None] = [None]
        groups += [f"{outer}/{inner}" for outer, each in file.groups.items() for inner in each.groups]
    for group in groups:
        check_with_xarray(source, tmp_path / "made", group)
    assert not zardine.verify(tmp_path / "made").faults


def test_compressors_that_stay(tmp_path: Path) -> None:
    source = write_netcdf(tmp_path / "a.nc")
    converted(source, tmp_path / "kept", **KEEP)
    names = {
        name: [codec.name for codec in zardine.open_array(tmp_path / "kept" / name).compressors]
        for name in COMPRESSIONS
    }
    assert names["zlib"] == ["numcodecs.shuffle", "numcodecs.zlib", "crc32c"]
    assert names["zstd"] == ["zstd", "crc32c"]
    assert names["bzip2"] == ["numcodecs.bz2", "crc32c"]
    assert names["szip"] == ["zstd", "crc32c"]
    assert all(names[name] == ["blosc", "crc32c"] for name in COMPRESSIONS if name.startswith("blosc"))
    assert zardine.open_array(tmp_path / "kept" / "colour").metadata.unknown[ORIGIN]["enumeration"] == {
        "red": 0,
        "blue": 4,
    }


def test_what_xarray_reads_otherwise_is_told(tmp_path: Path) -> None:
    text = told(write_netcdf(tmp_path / "a.nc"), tmp_path / "made")
    for part in (
        "/marked_letters: attribute _FillValue: xarray reads none of bytes in Zarr v3: it is left out",
        "/marked_text: attribute _FillValue: xarray reads none of text in Zarr v3: 'zz' became a missing_value",
        "/scaled_by_singles: attributes scale_factor: they are of float32",
        "/scaled_by_integers: attributes scale_factor, add_offset: they are of int16",
        "/odd_attributes: attribute missing_value: NaN has no form in JSON",
        '/odd_attributes: attributes.valid_range[0]: -Infinity is no JSON, and became the text "-Infinity"',
    ):
        assert part in text
    for name, mark in (("marked_letters", "z"), ("marked_text", "zz")):
        assert zardine.open_array(tmp_path / "made" / name).metadata.unknown[ORIGIN]["_FillValue"] == mark


def test_records_are_told_and_spoil_no_other_group(tmp_path: Path) -> None:
    """Those of Zarr v3 only new releases of zarr-python read; those of v2 all."""
    source = write_records(tmp_path / "a.nc")
    assert "/records/record: its records are of the data type 'struct'" in told(source, tmp_path / "new")
    converted(source, tmp_path / "old", zarr_format=2)
    with (
        xarray.open_dataset(source, group="others") as before,
        xarray.open_zarr(tmp_path / "new", group="others", consolidated=False, chunks=None) as after,
    ):
        xarray.testing.assert_identical(before, after)
    with (
        xarray.open_dataset(source, group="records") as before,
        xarray.open_zarr(tmp_path / "old", group="records", chunks=None) as after,
    ):
        xarray.testing.assert_identical(before, after)  # those of the file have gaps, which nobody sees
    check_with_netcdf4(source, zardine.open_group(tmp_path / "new", mode="r"))
    for path, wanted in (("", False), ("records", False), ("others", True)):
        group = zardine.open_group(tmp_path / "new", path=path, mode="r")
        assert (group.metadata.consolidated_metadata is not None) == wanted


def test_the_result_opens_by_one_document(tmp_path: Path) -> None:
    source = write_netcdf(tmp_path / "a.nc")
    converted(source, tmp_path / "made")
    made = zardine.open_consolidated(tmp_path / "made")
    assert {path for path, _ in made.members(max_depth=None)} == {
        path
        for path, _ in zardine.sources.open(source).members(max_depth=None)  # type: ignore[union-attr]
    }
    for path in ("model", "model/run"):
        assert zardine.open_group(tmp_path / "made", path=path).metadata.consolidated_metadata is not None
    plan = zardine.plan_convert(source, tmp_path / "planned")
    plan.save(tmp_path / "plan.json")
    Plan.load(tmp_path / "plan.json").run()
    assert (tmp_path / "planned/zarr.json").read_bytes() == (tmp_path / "made/zarr.json").read_bytes()


def test_a_scale_of_single_precision_is_told(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 3)
        variable = file.createVariable("a", "i2", ("x",))
        variable.scale_factor = np.float32(0.1)
    with pytest.warns(zardine.errors.ZarrUserWarning, match="scale_factor: they are of float32"):
        zardine.convert(tmp_path / "a.nc", tmp_path / "made")


def test_records_that_lie_far_apart(tmp_path: Path) -> None:
    """A small variable beside a large one in each record: what lies between is not read where it is much."""
    rng = np.random.default_rng(0)
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 50_000)
        file.createVariable("small", "f8", ("time",))[:] = np.arange(30.0)
        file.createVariable("large", "f4", ("time", "x"))[:] = rng.normal(size=(30, 50_000))
    opened = zardine.sources.open(tmp_path / "a.nc")
    assert isinstance(opened, zardine.Group)
    check_with_netcdf4(tmp_path / "a.nc", opened)
