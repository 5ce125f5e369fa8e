"""``array.oindex``, ``array.vindex`` and ``array.blocks``: other meanings for the square brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zardine.indexing.parse import is_plain
from zardine.indexing.selection import SelectionLike

if TYPE_CHECKING:
    from zardine.nodes.array import Array


@dataclass(frozen=True, slots=True)
class OIndex:
    """Orthogonal selections: a list or mask for each axis, all combinations."""

    array: Array

    def __getitem__(self, selection: SelectionLike) -> Any:
        fields, selection = split_fields(selection)
        return self.array.get_orthogonal_selection(selection, fields=fields)

    def __setitem__(self, selection: SelectionLike, value: object) -> None:
        fields, selection = split_fields(selection)
        self.array.set_orthogonal_selection(selection, value, fields=fields)


@dataclass(frozen=True, slots=True)
class VIndex:
    """Points: one coordinate list for each axis, or a mask of the array's shape."""

    array: Array

    def __getitem__(self, selection: SelectionLike) -> Any:
        fields, selection = split_fields(selection)
        return self.array.get_point_selection(selection, fields=fields)

    def __setitem__(self, selection: SelectionLike, value: object) -> None:
        fields, selection = split_fields(selection)
        self.array.set_point_selection(selection, value, fields=fields)


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """Whole chunks by their grid coordinates: integers and slices of step 1."""

    array: Array

    def __getitem__(self, selection: SelectionLike) -> Any:
        fields, selection = split_fields(selection)
        return self.array.get_block_selection(selection, fields=fields)

    def __setitem__(self, selection: SelectionLike, value: object) -> None:
        fields, selection = split_fields(selection)
        self.array.set_block_selection(selection, value, fields=fields)


def split_fields(selection: Any) -> tuple[str | list[str] | None, Any]:
    """Return the field names in a selection (``a["x"]``, ``a["x", 2:5]``, ``a[["x", "y"]]``), and its other parts."""
    if is_plain(selection):
        return None, selection
    if isinstance(selection, str):
        return selection, ...
    if _is_names(selection):
        return list(selection), ...
    if isinstance(selection, tuple):
        names = [item for item in selection if isinstance(item, str)]
        lists = [item for item in selection if _is_names(item)]
        rest = tuple(item for item in selection if not isinstance(item, str) and not _is_names(item))
        if lists:
            return [*names, *(name for each in lists for name in each)], rest or ...
        if names:
            return names[0] if len(names) == 1 else names, rest or ...
    return None, selection


def _is_names(item: object) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(each, str) for each in item)
