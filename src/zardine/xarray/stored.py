"""Variables that are in a store already: what they are, and values as they have them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from xarray import Variable, conventions

from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.xarray.data_store import GroupDataStore
from zardine.xarray.encoding import encode_for
from zardine.xarray.round_trip import DECODED, is_of_times


def decoded_variables(
    group: Group, arrays: Mapping[Hashable, Array], spans: Collection[Hashable] = ()
) -> dict[Hashable, Variable]:
    """Return some arrays of a group as variables of xarray with their values and encoding.

    ``spans`` are those that durations are written to: units of time say there that the numbers are durations, also
    without the attribute that xarray adds.
    """
    store = GroupDataStore(group)
    found = {name: store.variable(each) for name, each in arrays.items()}
    by_units: Any = {name: name in spans or None for name in found}
    decoded, _, _ = conventions.decode_cf_variables(found, {}, decode_timedelta=by_units)
    return {name: decoded[name] for name in arrays}


def as_stored(name: Hashable, new: Variable, old: Variable, array: Array, zarr_format: int) -> Variable:
    """Return ``new`` values, encoded as those that are stored are.

    Raises ``ValueError`` for values that would come back as others; for Dask arrays these are found when they are
    written.
    """
    decoding = {each: old.encoding[each] for each in DECODED if each in old.encoding and each != "dtype"}
    found = new.copy(deep=False)
    if _is_encoded(name, new, decoding):
        decoding, found.encoding = {}, {}
    else:
        found.encoding = dict(old.encoding)
        if is_of_times(new) != is_of_times(old):
            raise ValueError(
                f"variable {name!r} is stored as {_kind(old, array)}, and the dataset has {_kind(new)}: convert "
                "it first"
            )
    if array.dtype.kind in "biufcmM":
        found.encoding["dtype"] = array.dtype
    elif array.dtype.kind in "TO":
        found.encoding.pop("dtype", None)  # xarray knows missing text only where none is named
    if array.dtype.kind not in "biufcmM" and new.dtype.kind not in "USTO" and new.dtype != array.dtype:
        raise ValueError(
            f"Mismatched dtypes for variable {name!r}: the store has {array.dtype}, the dataset {new.dtype}"
        )
    return encode_for(found, name, zarr_format, decoding, array.dtype)


def _is_encoded(name: Hashable, new: Variable, decoding: Mapping[str, Any]) -> bool:
    """Return whether values were never decoded: attributes that say how, which must be those of what is stored."""
    if is_of_times(new):
        return False
    said = {each: new.attrs[each] for each in DECODED if each in new.attrs and each != "dtype"}
    if "since" not in str(said.get("units")):
        said.pop("units", None)
    if not said:
        return False
    wrong = [each for each in {**said, **decoding} if not _same(said.get(each), decoding.get(each))]
    if wrong:
        raise ValueError(
            f"variable {name!r} is not decoded, and its attribute {wrong[0]} is {said.get(wrong[0])!r}, while the "
            f"store has {decoding.get(wrong[0])!r}: decode it first (xr.decode_cf)"
        )
    return True


def _same(one: Any, other: Any) -> bool:
    return one is other or bool(np.all((np.asarray(one) == other) | (pd.isnull(one) & pd.isnull(other))))


def _kind(variable: Variable, array: Array | None = None) -> str:
    if not is_of_times(variable):
        return f"numbers without a unit of time ({variable.dtype})" if variable.dtype.kind in "biufc" else "no times"
    units = variable.encoding.get("units")
    return f"times ({variable.dtype if units is None or array is None else f'{array.dtype}, {units}'})"


def check_fits(
    name: Hashable, new: Variable, old: Variable, region: Mapping[str, slice], append_dim: Hashable | None
) -> Variable:
    """Return ``new`` in the order of dimensions of ``old``. Raises ``ValueError`` where it does not fit."""
    if new.dims != old.dims:
        if {*new.dims} != {*old.dims}:
            raise ValueError(
                f"variable {name!r} already exists with different dimension names: {old.dims}, not {new.dims}"
            )
        new = new.transpose(*old.dims)
    there = {
        dim: len(range(*region[str(dim)].indices(size))) if dim in region else size
        for dim, size in old.sizes.items()
        if dim != append_dim
    }
    given = {dim: size for dim, size in new.sizes.items() if dim != append_dim}
    if there != given and any(dim in region for dim in old.dims):
        raise ValueError(
            f"variable {name!r} already exists with different dimension sizes: {dict(old.sizes)}, of which the region "
            f"{_named(region, old.sizes)} has {there}, and the dataset {given}"
        )
    if there != given:
        raise ValueError(
            f"variable {name!r} already exists with different dimension sizes: {there}, not {given}; append_dim makes "
            "it longer, region writes a part of it, mode='w' replaces the group"
        )
    return new


def _named(region: Mapping[str, slice], sizes: Mapping[Any, int]) -> str:
    starts = {dim: part.indices(sizes[dim])[0] for dim, part in region.items() if dim in sizes}
    return "{" + ", ".join(f"{dim!r}: {starts[dim]}:{region[dim].stop}" for dim in starts) + "}"
