"""Variables that are in a store already: what they are, and values as they have them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from xarray import Variable, conventions

from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.xarray.data_store import GroupDataStore


def decoded_variables(group: Group, arrays: Mapping[Hashable, Array]) -> dict[Hashable, Variable]:
    """Return some arrays of a group as variables of xarray with their values and encoding."""
    store = GroupDataStore(group)
    decoded, _, _ = conventions.decode_cf_variables({name: store.variable(each) for name, each in arrays.items()}, {})
    return dict(decoded)


def as_stored(name: Hashable, new: Variable, old: Variable) -> Variable:
    """Return ``new`` values with the encoding of what is stored.

    Raises ``ValueError`` for text of another length, and for numbers that the stored integers cannot be; of Dask arrays
    these are found when they are written.
    """
    if not _appends_easily(new, old) and new.dtype != old.dtype:
        raise ValueError(
            f"Mismatched dtypes for variable {name!r}: the store has {old.dtype}, the dataset {new.dtype}, which is cut"
        )
    found = new.copy(deep=False)
    if old.dtype.kind in "iu" and new.dtype.kind in "iufb" and not np.can_cast(new.dtype, old.dtype, "safe"):
        if found.chunks is None:
            found.data = _exact(new.values, old.dtype, name)
        else:
            found.data = found.data.map_blocks(_exact, old.dtype, name, dtype=old.dtype, meta=np.empty(0, old.dtype))
    found.encoding = dict(old.encoding)
    return found


def check_units(name: Hashable, new: Variable, old: Variable) -> None:
    """Raise ``ValueError`` where times were encoded in another unit than that of what is stored.

    xarray takes another where integers of the stored one cannot say the times, but the attribute stays what it is.
    """
    stored = old.encoding.get("units")
    if stored is None or new.attrs.get("units") is None:
        return
    if _unit(stored) != _unit(new.attrs["units"]):
        raise ValueError(
            f"variable {name!r} is stored as {old.encoding.get('dtype')} in {stored!r}, which cannot say its new "
            f"values exactly: they need {new.attrs['units']!r}. Write the store anew with such an encoding "
            f"(encoding={{{name!r}: {{'units': ..., 'dtype': ...}}}}), or round the values"
        )


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


def _appends_easily(new: Variable, old: Variable) -> bool:
    return new.dtype.kind in "biufcmMO" or (new.dtype.kind in "SU" and old.dtype.kind in "OT")


def _exact(values: Any, dtype: np.dtype[Any], name: Hashable) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.asarray(values).astype(dtype)
    wrong = np.asarray(values)[found != values]
    if wrong.size:
        raise ValueError(
            f"variable {name!r} is stored as {dtype}, which cannot be {wrong[0]}: write values that can, or write the "
            "store anew with another dtype"
        )
    return found


def _unit(units: Any) -> str:
    """Return the unit of time, which may be followed by ``since`` and a date, in one spelling."""
    return str(units).partition(" since ")[0].strip().lower().removesuffix("s")


def _named(region: Mapping[str, slice], sizes: Mapping[Any, int]) -> str:
    starts = {dim: part.indices(sizes[dim])[0] for dim, part in region.items() if dim in sizes}
    return "{" + ", ".join(f"{dim!r}: {starts[dim]}:{region[dim].stop}" for dim in starts) + "}"
