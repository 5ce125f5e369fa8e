"""What the modes and regions of ``to_zarr`` mean: those of xarray, with its defaults and its refusals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from xarray import Dataset, Variable

WriteMode: TypeAlias = Literal["w", "w-", "a", "a-", "r+"]
Region: TypeAlias = Mapping[str, slice | Literal["auto"]] | Literal["auto"]

MODES: Final = ("w", "w-", "a", "a-", "r+")
"""``"w"`` replaces the group, ``"w-"`` makes a new one, ``"a"`` adds to it and overwrites variables, ``"a-"`` leaves
variables without the dimension that is appended to as they are, ``"r+"`` writes into variables that are there."""


def choose_mode(mode: str | None, append_dim: Hashable | None, region: Region | None) -> WriteMode:
    """Return the mode, where it is left out that which ``append_dim`` or ``region`` need.

    Raises ``ValueError`` for one that there is not, or that does not go with them.
    """
    if mode is None:
        mode = "a" if append_dim is not None else "r+" if region is not None else "w-"
    if mode not in MODES:
        raise ValueError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if append_dim is not None and mode not in ("a", "a-"):
        raise ValueError(f"cannot set append_dim unless mode='a', mode='a-' or mode=None: it is {mode!r}")
    if region is not None and mode not in ("a", "a-", "r+"):
        raise ValueError(f"cannot set region unless mode='a', mode='a-', mode='r+' or mode=None: it is {mode!r}")
    return mode  # type: ignore[return-value]


def find_region(
    dataset: Dataset,
    region: Region,
    *,
    mode: WriteMode,
    append_dim: Hashable | None,
    stored: Callable[[str], Variable],
) -> dict[str, slice]:
    """Return the region that is written: slices of step 1 by dimension, where ``"auto"`` finds them.

    It finds where the values of a dimension's coordinate are in what is stored, of which ``stored`` gives a decoded
    variable by its name. Raises ``ValueError`` or ``TypeError`` for a region that the dataset does not fit,
    ``KeyError`` for values that are not stored.
    """
    if isinstance(region, str) and region == "auto":
        region = dict.fromkeys(map(str, dataset.dims), "auto")
    if not isinstance(region, Mapping):
        raise TypeError(f"``region`` must be a dict of slices by dimension, or 'auto', not {type(region).__name__}")
    if "auto" in [each for each in region.values() if isinstance(each, str)] and mode not in ("r+", "a"):
        raise ValueError(f"region='auto' needs mode='r+' or mode='a', not {mode!r}")
    found: dict[str, slice] = {}
    for dim, part in region.items():
        if dim not in dataset.dims:
            raise ValueError(
                f"all keys in ``region`` are not in Dataset dimensions: {dim!r} is none of {list(dataset.dims)}"
            )
        if isinstance(part, str) and part == "auto":
            part = _where(dataset, dim, stored)
        if not isinstance(part, slice):
            raise TypeError(f"the values of ``region`` must be slice objects, or 'auto', not {part!r} for {dim!r}")
        if part.step not in (1, None):
            raise ValueError(f"the step on all slices of ``region`` is 1, not {part.step!r} as for {dim!r}")
        found[dim] = part
    apart = [name for name, each in dataset.variables.items() if not set(found) & set(each.dims)]
    if found and apart:
        raise ValueError(
            f"all variables in the dataset to write must have at least one dimension in common with the region, which "
            f"is of {list(found)}; leave the others out: .drop_vars({apart!r})"
        )
    if append_dim is not None and append_dim in found:
        raise ValueError(f"cannot list the same dimension in both append_dim and region: {append_dim!r}")
    return found


def _where(dataset: Dataset, dim: str, stored: Callable[[str], Variable]) -> slice:
    """Return the slice of what is stored that has the values of the dataset's coordinate ``dim``."""
    if dim not in dataset.variables:
        return slice(0, dataset.sizes[dim])
    positions = pd.Index(stored(dim).values).get_indexer(pd.Index(dataset[dim].values))
    if (positions == -1).any():
        missing = dataset[dim].values[positions == -1][:3].tolist()
        raise KeyError(
            f"not all values of the coordinate {dim!r} are in the store, for example {missing}: a region is written "
            "where its coordinates are; append_dim adds new ones"
        )
    if (np.diff(positions) != 1).any():
        raise ValueError(
            f"the values of the coordinate {dim!r} are in the store, but not one after the other, as a region needs: "
            "write its parts one by one"
        )
    return slice(int(positions[0]), int(positions[-1]) + 1) if len(positions) else slice(0, 0)
