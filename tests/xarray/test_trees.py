"""A write into a stored tree after which xarray could not open it is refused, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from zardine.xarray import to_zarr

Groups = dict[str, xr.Dataset]
DAYS = np.array(["2000-01-01", "2000-01-02", "2000-01-03"], "M8[s]")


def named(name: str, values: Any, x: Any = None) -> xr.Dataset:
    return xr.Dataset({name: ("x", values)}, coords=None if x is None else {"x": x})


STORED: Groups = {"/": xr.Dataset(coords={"x": [1, 2, 3]}), "/a": named("v", [1, 2, 3])}
BELOW: Groups = {"/a": named("v", [1, 2, 3], [1, 2, 3])}
BESIDE: Groups = {"/": named("v", [1, 2, 3]), "/a": named("v", [1, 2, 3], [4, 5, 6])}


@pytest.mark.parametrize(
    ("stored", "added", "reason"),
    [
        (STORED, {"/b": named("w", [1, 2, 3, 4])}, r"/b would have length 4 along 'x' .*\.zarr above it 3"),
        (STORED, {"/b": named("w", [1, 2, 3], [4, 5, 6])}, r"/b would have other values of the index 'x'"),
        (STORED, {"/a/b": named("w", [1, 2, 3], [4, 5, 6])}, r"/a/b would have other values of the index 'x'"),
        (BELOW, {"/": named("w", [1, 2, 3, 4])}, r"/a would have length 3 along 'x' .*\.zarr above it 4"),
        (BELOW, {"/": named("w", [1, 2, 3], [1, 2, 4])}, r"/a would have other values of the index 'x'"),
        (BESIDE, {"/": xr.Dataset(coords={"x": [7, 8, 9]})}, r"/a would have other values of the index 'x'"),
    ],
)
def test_groups_that_do_not_go_together_are_refused(tmp_path: Path, stored: Groups, added: Groups, reason: str) -> None:
    place = tmp_path / "a.zarr"
    to_zarr(xr.DataTree.from_dict(stored), place)
    with pytest.raises(ValueError, match=reason):
        to_zarr(xr.DataTree.from_dict(added), place, mode="a")
    with xr.open_datatree(place, engine="zardine") as tree:
        assert tree.identical(xr.DataTree.from_dict(stored))


@pytest.mark.parametrize(
    ("stored", "added"),
    [
        (STORED, {"/b": named("w", [1, 2, 3])}),
        (STORED, {"/b": named("w", [1, 2, 3], [1, 2, 3])}),
        (STORED, {"/": xr.Dataset(coords={"x": [7, 8, 9]})}),
        (STORED, {"/b": xr.Dataset({"w": ("y", [1, 2, 3, 4])})}),
        ({"/a": named("v", [1, 2, 3], DAYS)}, {"/": named("w", [1, 2, 3], DAYS.astype("M8[ns]"))}),
    ],
)
def test_groups_that_go_together_are_added(tmp_path: Path, stored: Groups, added: Groups) -> None:
    place = tmp_path / "a.zarr"
    to_zarr(xr.DataTree.from_dict(stored), place)
    to_zarr(xr.DataTree.from_dict(added), place, mode="a")
    with xr.open_datatree(place, engine="zardine") as tree:
        for path, dataset in added.items():
            for name, each in dataset.variables.items():
                assert (tree[path][name].values == each.values).all()
