"""What functions that make arrays of ``data`` take from an ``xarray.DataArray``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zardine

xr = pytest.importorskip("xarray")


@pytest.mark.parametrize(
    "make",
    [
        lambda place, **how: zardine.create_array(place, **how),
        lambda place, **how: zardine.from_array(place, **how),
        lambda place, **how: zardine.array(store=place, **how),
        lambda place, **how: zardine.create_group(place).create_array("x", **how),
    ],
)
def test_names_of_dimensions(make: Callable[..., zardine.Array], tmp_path: Path) -> None:
    data = xr.DataArray(np.ones((2, 3)), dims=("lat", "lon"), attrs={"units": "K"})
    for number, each in enumerate((data, data.variable)):
        made = make(tmp_path / str(number), data=each)
        assert made.metadata.dimension_names == ("lat", "lon")
        assert dict(made.attrs) == {}
    assert make(tmp_path / "own", data=data, dimension_names=("y", None)).metadata.dimension_names == ("y", None)
    assert make(tmp_path / "odd", data=data.rename(lat=5)).metadata.dimension_names is None
    assert make(tmp_path / "plain", data=data.values).metadata.dimension_names is None
    assert np.array_equal(made[...], data.values)


def test_v2_has_no_names(tmp_path: Path) -> None:
    data = xr.DataArray(np.ones((2, 3)), dims=("lat", "lon"))
    assert zardine.create_array(tmp_path / "a", data=data, zarr_format=2)[...].shape == (2, 3)
