"""What a user gives to be stored, as one dataset for each group; what cannot be stored is refused here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from xarray import DataArray, Dataset, DataTree, Variable, conventions

from zardine.metadata.node_names import explain_bad_name, join_path
from zardine.xarray.shard_shapes import is_by_name

_NAME: Final = "__xarray_dataarray_name__"
_VARIABLE: Final = "__xarray_dataarray_variable__"
"""Where xarray keeps a data array without a name, or with that of a coordinate."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one group gets."""

    path: str
    """Below the group that is written."""
    dataset: Dataset
    encoding: Mapping[Hashable, Mapping[str, Any]]
    """Given by the user for this call, by variable."""

    def encoded(self, dataset: Dataset) -> tuple[dict[Hashable, Variable], dict[Any, Any]]:
        """Return variables with their encoding, and attributes of the group, with coordinates told of as CF does."""
        for name, variable in dataset.variables.items():
            told = variable.encoding.get("coordinates", variable.attrs.get("coordinates"))
            if told is not None and not isinstance(told, str):
                raise TypeError(
                    f"the attribute or encoding `coordinates` of variable {name!r} is text with names separated by "
                    f"blanks, not {told!r}"
                )
        variables, attributes = conventions.encode_dataset_coordinates(dataset)
        for name, each in self.encoding.items():
            if name not in variables:
                hint = _meant(name, variables)
                raise KeyError(f"encoding was provided for {name!r}, which is no variable of the dataset{hint}")
            if not isinstance(each, Mapping):
                raise ValueError(
                    f"the encoding of variable {name!r} must be castable to dict, as {{'chunks': ..., 'dtype': ...}}: "
                    f"it is {each!r}"
                )
            variables[name].encoding = dict(each)
        return {name: _without_pandas_text(each) for name, each in variables.items()}, dict(attributes)


def _without_pandas_text(variable: Variable) -> Variable:
    """Return a variable with text of pandas as objects."""
    if not isinstance(variable.dtype, pd.StringDtype):
        return variable
    return variable.copy(deep=False, data=np.asarray(variable.data, dtype=object))


def parts_of(
    data: Dataset | DataArray | DataTree, encoding: Mapping[Any, Any] | None, *, inherited: bool
) -> tuple[Part, ...]:
    """Return what each group gets, parents first. ``inherited``: also coordinates that a group has of one above it.

    Raises ``TypeError`` or ``ValueError`` for names and an encoding that cannot be.
    """
    if encoding is not None and not isinstance(encoding, Mapping):
        raise TypeError(
            f"encoding is a mapping by the names of variables, as {{'a': {{'chunks': ...}}}}, not {encoding!r}"
        )
    given: dict[Any, Any] = dict(encoding or {})
    if not isinstance(data, DataTree):
        parts: tuple[Part, ...] = (Part("", _as_dataset(data), given),)
    else:
        unknown = {*given} - {*data.groups}
        if unknown:
            known = [*data.groups]
            raise ValueError(f"unexpected encoding group name(s) provided: {sorted(unknown)}; known are {known}")
        parts = tuple(
            Part(
                "" if path == "." else path,
                node.to_dataset(inherit=inherited or node is data),
                given.get(node.path, {}),
            )
            for path, node in data.subtree_with_keys
        )
    for each in parts:
        _check_names(each.dataset)
    return parts


def stored_name(name: Hashable) -> str:
    """Return what the array of a variable is called."""
    return "__values__" if name is None else str(name)


def member_names(parts: Iterable[Part], path: str = "") -> set[str]:
    """Return the names of all that is written directly below the group at ``path`` of the parts."""
    names = {stored_name(name) for each in parts if each.path == path for name in each.dataset.variables}
    start = f"{path}/" if path else ""
    inside = (each.path[len(start) :] for each in parts if each.path != path and each.path.startswith(start))
    return names | {each.partition("/")[0] for each in inside}


def check_lengths(parts: Iterable[Part], **given: Any) -> None:
    """Raise ``ValueError`` for lengths by names of dimensions, of which no variable has one."""
    known = {dim for each in parts for dim in each.dataset.dims}
    for word, lengths in given.items():
        wrong = [name for name in lengths if name not in known] if is_by_name(lengths) else []
        if wrong:
            raise ValueError(
                f"{word} has {wrong[0]!r}, which is no dimension of {sorted(map(str, known))}{_meant(wrong[0], known)}"
            )


def _meant(name: object, known: Iterable[object]) -> str:
    close = get_close_matches(str(name), map(str, known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _as_dataset(data: Dataset | DataArray) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if data.name is not None and data.name not in data.coords and data.name not in data.dims:
        return data.to_dataset()
    dataset = data.to_dataset(name=_VARIABLE)
    if data.name is not None:
        dataset.attrs[_NAME] = data.name
    return dataset


def _check_names(dataset: Dataset) -> None:
    for name in dataset.variables:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a variable must be a string or None to be stored, not {name!r}")
        if name == "":
            raise ValueError("a variable is called '', and to be stored the string must be length 1 or more: rename it")
        if isinstance(name, str) and "/" in name:
            raise ValueError(
                f"a variable is called {name!r}, and would be stored in a group of its own, where opening the dataset "
                "does not find it: rename it, or write a DataTree"
            )


def check_nodes(parts: Iterable[Part], zarr_format: int) -> None:
    """Raise ``ValueError`` for names that no node of that version of Zarr may have."""
    for each in parts:
        for name in each.dataset.variables:
            reason = explain_bad_name(stored_name(name), zarr_format)
            if reason is not None:
                place = join_path("", each.path)
                raise ValueError(
                    f"variable {name!r} of {place or 'the dataset'!r} cannot be stored: {reason}; rename it"
                )
