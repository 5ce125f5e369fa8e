"""Check that the groups of a tree go together: xarray opens none in which a group contradicts one above it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from xarray import Dataset, Variable

from zardine.errors import DimensionNamesError
from zardine.hierarchy.find import describe
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.xarray.conventions import dimensions_of
from zardine.xarray.stored import decoded_variables


def check_aligned(group: Group, written: Mapping[str, Dataset]) -> None:
    """Raise ``ValueError`` if, after datasets are ``written`` below ``group``, its groups do not go together.

    ``written`` are by the path of their groups below ``group``. As xarray has it, a group has the lengths of dimensions
    and the values of indexes that the groups above it have. Reads documents, and indexes that are compared.
    """
    arrays: dict[str, dict[str, Array]] = {path: {} for path in written}
    for path, node in group.members(max_depth=None):
        above, _, name = path.rpartition("/")
        if isinstance(node, Array):
            arrays.setdefault(above, {})[name] = node
    sizes = {path: {**_stored_sizes(each), **_sizes_of(written.get(path))} for path, each in arrays.items()}

    @cache
    def index_of(path: str, name: str) -> Variable | None:
        return _index(group, path, name, arrays[path], written)

    for path in sorted(arrays):
        for above in _groups_above(path):
            for dim in sizes[path].keys() & sizes.get(above, {}).keys():
                if sizes[path][dim] != sizes[above][dim]:
                    raise ValueError(
                        f"{_place(group, path)} would have length {sizes[path][dim]} along {dim!r} after this write, "
                        f"and {_place(group, above)} above it {sizes[above][dim]}: the tree could not be opened"
                    )
                if path not in written and above not in written:
                    continue
                index, other = index_of(path, dim), index_of(above, dim)
                if index is not None and other is not None and not index.equals(other):  # type: ignore[no-untyped-call]
                    raise ValueError(
                        f"{_place(group, path)} would have other values of the index {dim!r} after this write than "
                        f"{_place(group, above)} above it: the tree could not be opened"
                    )


def _groups_above(path: str) -> Sequence[str]:
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts))]


def _stored_sizes(arrays: Mapping[str, Array]) -> dict[str, int]:
    found: dict[str, int] = {}
    for array in arrays.values():
        try:
            found.update(zip(dimensions_of(array), array.shape, strict=True))
        except DimensionNamesError:
            continue  # xarray opens such a group only without this array
    return found


def _sizes_of(dataset: Dataset | None) -> dict[str, int]:
    return {} if dataset is None else {str(dim): size for dim, size in dataset.sizes.items()}


def _index(
    group: Group, path: str, name: str, arrays: Mapping[str, Array], written: Mapping[str, Dataset]
) -> Variable | None:
    """Return the index of a dimension that a group will have; ``None`` where it has none."""
    names: dict[Hashable, Any] = dict(written[path].variables) if path in written else {}
    if name in names:
        found: Variable = names[name].to_base_variable()
        return found if found.dims == (name,) else None
    array = arrays.get(name)
    if array is None or array.ndim != 1:
        return None
    return decoded_variables(Group(group.store, join_path(group.path, path), group.metadata), {name: array})[name]


def _place(group: Group, path: str) -> str:
    return describe(group.store, join_path(group.path, path))


__all__ = ["check_aligned"]
