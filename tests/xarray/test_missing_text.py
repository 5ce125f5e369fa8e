"""Missing text stays missing through ``to_zarr``, or is refused with the variable and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from zardine.xarray import to_zarr

MISSING: list[Any] = [None, np.nan, pd.NA]


def objects(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=object)


def dataset(values: Any) -> xr.Dataset:
    return xr.Dataset({"name": ("x", values)})


def found(path: Path, engine: str = "zardine") -> list[Any]:
    with xr.open_dataset(path, engine=engine) as data:  # type: ignore[arg-type]
        return [None if pd.isnull(each) else each for each in data.name.values]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "values",
    [
        *(objects("a", each, "b") for each in MISSING),
        da.from_array(objects("a", None, "b"), chunks=1),
        np.array(["a", None, "b"], np.dtypes.StringDType(na_object=None)),
        pd.array(["a", None, "b"], dtype="string"),
        pd.array(["a", None, "b"], dtype="string[pyarrow]"),
    ],
    ids=["None", "nan", "NA", "dask", "StringDType", "pandas", "pyarrow"],
)
@pytest.mark.filterwarnings("ignore:variable 'name' is a dask array")
def test_it_is_read_back_as_missing(tmp_path: Path, values: Any, zarr_format: Any) -> None:
    place = tmp_path / "a.zarr"
    to_zarr(dataset(values), place, zarr_format=zarr_format)
    assert found(place) == found(place, "zarr") == ["a", None, "b"]
    to_zarr(dataset(values), place, append_dim="x")
    assert found(place) == ["a", None, "b"] * 2
    with xr.open_dataset(place, engine="zardine") as again:
        to_zarr(again, tmp_path / "b.zarr")
    assert found(tmp_path / "b.zarr") == ["a", None, "b"] * 2


def test_missing_bytes_are_read_back_as_missing(tmp_path: Path) -> None:
    to_zarr(dataset(objects(b"a", None, b"b")), tmp_path / "a.zarr")
    assert found(tmp_path / "a.zarr") == [b"a", None, b"b"]


@pytest.mark.parametrize("mark", ["missing_value", "_FillValue"])
@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.filterwarnings("ignore:variable 'name' is a dask array")
def test_the_caller_chooses_what_stands_for_it(tmp_path: Path, mark: str, is_lazy: bool) -> None:
    values: Any = objects("a", None, "")
    data = dataset(da.from_array(values, chunks=1) if is_lazy else values)
    to_zarr(data, tmp_path / "a.zarr", encoding={"name": {mark: "NA"}})
    assert found(tmp_path / "a.zarr") == ["a", None, ""]


def test_beside_empty_text_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"variable 'name'.* as ''.*encoding=\{'name': \{'missing_value': 'NA'\}\}"):
        to_zarr(dataset(objects("a", None, "")), tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("how", [{"append_dim": "x"}, {"region": {"x": slice(0, 2)}}, {"mode": "a"}])
def test_what_the_store_cannot_say_is_refused(tmp_path: Path, how: Any) -> None:
    """Missing text where nothing stands for it, and text that stands for missing text."""
    plain, marked = tmp_path / "plain.zarr", tmp_path / "marked.zarr"
    to_zarr(dataset(objects("a", "b")), plain)
    with pytest.raises(ValueError, match=r"variable 'name'.*would come back as ''"):
        to_zarr(dataset(objects("c", None)), plain, **how)
    to_zarr(dataset(objects("a", None)), marked)
    for values in (objects("c", ""), np.array(["c", ""])):
        with pytest.raises(ValueError, match=r"variable 'name'.*'' would come back as a missing value"):
            to_zarr(dataset(values), marked, **how)
    assert (found(plain), found(marked)) == (["a", "b"], ["a", None])


def test_text_without_missing_values_says_nothing(tmp_path: Path) -> None:
    to_zarr(dataset(objects("a", "")), tmp_path / "a.zarr")
    assert found(tmp_path / "a.zarr") == ["a", ""]
    with xr.open_dataset(tmp_path / "a.zarr", engine="zardine") as data:
        assert "missing_value" not in data.name.encoding
