"""A write that would leave a dataset with two lengths of one dimension is refused before anything is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from xarray.testing import assert_identical

from zardine.xarray import to_zarr


def stored() -> xr.Dataset:
    return xr.Dataset({"a": (("x", "y"), np.ones((3, 2))), "s": ("y", [1.0, 2.0])}, {"x": np.arange(3)})


def longer(count: int) -> xr.Dataset:
    return xr.Dataset({"a": (("x", "y"), np.zeros((count, 2)))}, {"x": 3 + np.arange(count)})


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize(
    ("data", "way", "dim", "given", "length"),
    [
        (longer(1).assign(b=("x", [9.0])), {"append_dim": "x"}, "x", 1, 4),
        (longer(3).assign(b=("x", [9.0] * 3)), {"append_dim": "x"}, "x", 3, 6),
        (longer(1).assign(b=("x", [9.0])), {"append_dim": "x", "mode": "a-"}, "x", 1, 4),
        (longer(1).assign_coords(c=("x", [9.0])), {"append_dim": "x"}, "x", 1, 4),
        (xr.Dataset({"b": ("x", [9.0])}), {"mode": "a", "region": {"x": slice(2, 3)}}, "x", 1, 3),
        (xr.Dataset({"b": ("x", np.arange(5.0))}), {"mode": "a"}, "x", 5, 3),
        (xr.Dataset({"y": ("y", np.arange(3))}), {"mode": "a"}, "y", 3, 2),
        (xr.Dataset({"b": (("z", "y"), np.ones((4, 1)))}), {"mode": "a"}, "y", 1, 2),
    ],
)
def test_a_new_variable_of_another_length_is_refused(
    tmp_path: Path,
    data: xr.Dataset,
    way: dict[str, Any],
    dim: str,
    given: int,
    length: int,
    lazy: bool,
    compute: bool,
    zarr_format: int,
) -> None:
    to_zarr(stored(), tmp_path / "a.zarr", zarr_format=zarr_format)
    with pytest.raises(ValueError, match=rf"length {given} along '{dim}'.* has {length}:"):
        to_zarr(data.chunk() if lazy else data, tmp_path / "a.zarr", compute=compute, **way)
    assert_identical(xr.open_dataset(tmp_path / "a.zarr", engine="zardine").load(), stored())


def test_a_new_variable_in_a_group_of_a_tree_is_refused(tmp_path: Path) -> None:
    to_zarr(xr.DataTree.from_dict({"/": stored(), "/below": xr.Dataset({"q": ("t", [1, 2])})}), tmp_path / "a.zarr")
    tree = xr.DataTree.from_dict({"/": xr.Dataset(), "/below": xr.Dataset({"r": ("t", [1, 2, 3])})})
    with pytest.raises(ValueError, match=r"'r' has length 3 along 't'.* has 2:"):
        to_zarr(tree, tmp_path / "a.zarr", mode="a")
    assert set(
        xr.open_datatree(tmp_path / "a.zarr", engine="zardine")["below"].to_dataset(inherit=False).variables
    ) == {"q"}


def test_a_new_variable_of_the_length_after_the_write_is_stored(tmp_path: Path) -> None:
    to_zarr(stored(), tmp_path / "a.zarr")
    whole = longer(1).assign(b=("w", [9.0]), c=("y", [1.0, 2.0]))
    to_zarr(whole, tmp_path / "a.zarr", append_dim="x")
    assert dict(xr.open_dataset(tmp_path / "a.zarr", engine="zardine").sizes) == {"x": 4, "y": 2, "w": 1}
