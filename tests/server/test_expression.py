"""The expression to copy: what it gives when it is run is what the page shows, whatever the coordinates are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import iris_sample_data
import numpy as np
import pytest
import xarray as xr

import zardine
from server.test_viewer import Asker

TIMES = {
    "days": (np.arange(60), "days since 2000-02-01", "standard"),
    "hours": (np.arange(60) * 6, "hours since 1999-12-30 06:00:00", "proleptic_gregorian"),
    "third parts": (np.arange(60) / 3, "days since 2000-01-01", "standard"),
    "odd parts": (np.arange(60) / 7 + 12345, "days since 1970-01-01", "standard"),
    "quarters": (np.arange(60) / 4, "days since 2000-01-01", "standard"),
    "seconds": (np.arange(60) / 2, "seconds since 2000-01-01", "standard"),
    "360_day": (np.arange(60), "days since 2001-01-01", "360_day"),
    "noleap": (np.arange(60) * 12, "hours since 2000-02-20", "noleap"),
    "julian": (np.arange(60), "days since 1500-01-01", "julian"),
    "backwards": (np.arange(60)[::-1].copy(), "days since 2001-01-01", "360_day"),
    "long ago": (np.arange(60), "days since 1000-01-01", "standard"),
    "zone": (np.arange(60), "days since 2000-01-01 00:00 +2:00", "standard"),
    "months": (np.arange(60), "months since 2000-01-01", "standard"),
    "repeated": (np.arange(60) // 2, "days since 2000-02-01", "standard"),
    "unknown": (np.arange(60), "days since 2000-02-01", "martian"),
}
OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": (None, {}),
    "float32": (np.arange(7, dtype="f4") * np.float32(0.1), {}),
    "falling": (np.linspace(90, -90, 7), {}),
    "unsorted": (np.array([3, 1, 2, 9, 7, 8, 5]), {}),
    "repeated": (np.array([1, 1, 2, 3, 4, 5, 6]), {}),
    "nan": (np.array([1, np.nan, 2, 3, 4, 5, 6]), {}),
    "packed": (np.arange(7), {"scale_factor": 0.5, "add_offset": 3.0}),
    "missing": (np.arange(7), {"_FillValue": 4}),
    "large": (np.arange(7) + 2**60, {}),
    "text": (np.array(list("abcdefg")), {}),
    "quotes": (np.array([f'"{i}\\' for i in range(7)]), {}),
    "lengths": (np.arange(7), {"units": "hours"}),
    "bool": (np.array([True] * 6 + [False]), {}),
}


def run(text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"xr": xr, "zardine": zardine})


def ask(place: Any, path: str, **query: Any) -> str:
    with zardine.view({"data": place}) as shown:
        return str(Asker(shown.server).json("expression", path, **query)["expression"])


def write(place: Any, time: Any, other: Any, zarr_format: Any = 3, name: str = "lat") -> np.ndarray[Any, Any]:
    root = zardine.open_group(place, mode="w", zarr_format=zarr_format)
    values = np.random.default_rng(1).normal(size=(60, 7)).astype("f4")
    names: dict[str, Any] = {"dimension_names": ("time", name)}
    if zarr_format == 2:
        names = {"attributes": {"_ARRAY_DIMENSIONS": ["time", name]}, "fill_value": np.nan}
    root.create_array("run/v", data=values, **names)
    numbers, units, calendar = time
    coordinates = [("time", numbers, {"units": units, "calendar": calendar}), (name, *other)]
    for each, data, attributes in coordinates:
        if data is not None:
            names = {"dimension_names": (each,)} if zarr_format == 3 else {"fill_value": None}
            more = {} if zarr_format == 3 else {"_ARRAY_DIMENSIONS": [each]}
            root.create_array(f"run/{each}", data=data, attributes={**attributes, **more}, **names)
    return values


@pytest.mark.parametrize("time", TIMES)
def test_running_the_expression_gives_the_values_at_times(tmp_path: Path, time: str) -> None:
    values = write(tmp_path / "a.zarr", TIMES[time], OTHERS["falling"])
    for query, index in [
        ({"axes": "1", "at": "29,0"}, np.s_[29]),
        ({"axes": "0,1", "at": "0,0", "box": "7,28,2,5"}, np.s_[7:28, 2:5]),
    ]:
        text = ask(tmp_path / "a.zarr", "run/v", **query)
        np.testing.assert_array_equal(np.asarray(run(text)), values[index], err_msg=text)
        is_opened = time not in ("months", "unknown", "zone")
        assert text.startswith("xr.open_dataset" if is_opened else "zardine.open_array")
        by_index = time in ("odd parts", "seconds", "long ago", "repeated", "backwards")
        assert ("sel(time=" in text.replace("isel", "")) == (is_opened and not by_index)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_running_the_expression_gives_the_values_at_coordinates(tmp_path: Path, other: str, zarr_format: int) -> None:
    values = write(
        tmp_path / "a.zarr", TIMES["days"], OTHERS[other], zarr_format, "two words" if other == "falling" else "method"
    )
    for query, index in [
        ({"axes": "0", "at": "0,6"}, np.s_[:, 6]),
        ({"axes": "0,1", "at": "0,0", "box": "0,60,1,4"}, np.s_[:, 1:4]),
    ]:
        text = ask(tmp_path / "a.zarr", "run/v", **query)
        np.testing.assert_array_equal(np.asarray(run(text)), values[index], err_msg=text)
        by_label = other in ("float32", "falling") or ("box" not in query and other in ("unsorted", "text", "quotes"))
        assert ("isel" not in text) == by_label, text


def test_the_expression_reads_as_one_would_write_it(tmp_path: Path) -> None:
    write(tmp_path / "a.zarr", TIMES["days"], OTHERS["falling"])
    text = ask(tmp_path / "a.zarr", "run/v", axes="1", at="29,0", box="1,3")
    where = f'xr.open_dataset("file://{tmp_path}/a.zarr", engine="zardine", group="run")'
    assert text == f'{where}["v"].sel(time="2000-03-01", lat=slice(60.0, 30.0))'
    write(tmp_path / "a.zarr", TIMES["360_day"], OTHERS["none"])
    text = ask(tmp_path / "a.zarr", "run/v", axes="1", at="29,0", box="1,3")
    assert text == f'{where}["v"].sel(time="2001-01-30").squeeze("time").isel(lat=slice(1, 3))'


def test_what_xarray_changes_is_taken_by_index(tmp_path: Path) -> None:
    """Packed values, dates, arrays beside one of another length, of no group, and fields of structs."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    pixels = np.arange(12, dtype="i2").reshape(3, 4)
    root.create_array("image/0", data=pixels, dimension_names=("y", "x"))
    root.create_array("image/1", data=pixels[:2, :2], dimension_names=("y", "x"))
    root.create_array("packed/v", data=pixels, dimension_names=("y", "x"), attributes={"scale_factor": 0.5})
    root.create_array("times/t", data=pixels, dimension_names=("y", "x"), attributes={"units": "days since 2000-01-01"})
    root.create_array("plain/v", data=pixels)
    root.create_array("struct/v", data=np.zeros((3, 4), [("a", "i2"), ("b", "f4")]), dimension_names=("y", "x"))
    for path in ("image/0", "packed/v", "times/t", "plain/v"):
        text = ask(tmp_path / "a.zarr", path, axes="0,1", at="0,0", box="0,3,1,3")
        assert text.startswith("zardine.open_array")
        np.testing.assert_array_equal(run(text), pixels[:, 1:3])
    text = ask(tmp_path / "a.zarr", "struct/v", axes="0,1", at="0,0", field="b")
    assert run(text).dtype == "f4"
    array = zardine.create_array(tmp_path / "b.zarr", data=np.array(5.5))
    assert run(ask(array, "", axes="", at="")) == 5.5


@pytest.mark.parametrize("name", ["E1_north_america", "SOI_Darwin", "ostia_monthly", "rotated_pole", "hybrid_height"])
def test_expressions_of_files_of_iris(tmp_path: Path, name: str) -> None:
    found = list(Path(iris_sample_data.path).rglob(f"{name}*.nc"))
    if not found:
        pytest.skip("this version of iris-sample-data has no such file")
    zardine.convert(found[0], tmp_path / "a.zarr")
    root = zardine.open_group(tmp_path / "a.zarr", mode="r")
    for path, array in root.arrays():
        if array.ndim < 2 or array.dtype.kind not in "iuf":
            continue
        axes = [array.ndim - 2, array.ndim - 1]
        box = [
            end for axis in axes for end in (array.shape[axis] // 4, min(array.shape[axis] // 4 + 3, array.shape[axis]))
        ]
        at = [length // 2 for length in array.shape]
        index = tuple(
            slice(box[2 * axes.index(i)], box[2 * axes.index(i) + 1]) if i in axes else at[i] for i in range(array.ndim)
        )
        text = ask(
            tmp_path / "a.zarr",
            path,
            axes=",".join(map(str, axes)),
            at=",".join(map(str, at)),
            box=",".join(map(str, box)),
        )
        np.testing.assert_array_equal(np.asarray(run(text)), array[index], err_msg=text)
