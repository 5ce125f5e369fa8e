"""Names of dimensions, as NetCDF 4 keeps them in HDF5: by dimension scales, and by numbers where those do not tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zardine.sources.hdf5.attributes import NO_VARIABLE, attribute
from zardine.sources.hdf5.library import FAILURES, h5py
from zardine.sources.hdf5.tree import Member

_NO_COORDINATE = "_nc4_non_coord_"
"""How the name of a variable begins that has the name of a dimension which is not its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """A name for an axis; two of one name, in two groups, are two."""

    name: str
    length: int
    unlimited: bool


class Dimensions:
    """The dimensions of all data sets of a file."""

    def __init__(self, datasets: Iterable[Member]) -> None:
        self._scales: dict[int, Dimension] = {}
        self._numbers: dict[int, Dimension] = {}
        self._told_ones: set[Dimension] = set()
        """Those that the file has names for."""
        self._by_group: dict[str, list[Dimension]] = {}
        self._bare: set[int] = set()
        """Addresses of scales that are no variables."""
        members = [each for each in datasets if each.found.shape is not None]
        for each in members:
            if attribute(each.found, "CLASS") == b"DIMENSION_SCALE":
                self._note_scale(each)
        self._next = max([len(self._scales), *(number + 1 for number in self._numbers)], default=0)
        own: dict[str, list[Dimension | None]] = {}
        for each in members:
            own[each.path] = self._told(each)
        depth = {each.path: each.path.count("/") for each in members}
        for each in sorted(members, key=lambda member: -depth[member.path]):  # NetCDF names those of groups first
            if each.address not in self._bare:
                self._name_others(each, own[each.path])
        self._found = own
        self._lengths: dict[Dimension, int] = {}
        for each in members:
            for dimension, length in zip(own[each.path], each.found.shape, strict=True):
                if dimension is not None:
                    self._lengths[dimension] = max(length, self._lengths.get(dimension, 0))

    def is_variable(self, member: Member) -> bool:
        """Whether a data set holds values: a dimension of NetCDF without any is one, too."""
        return member.address not in self._bare

    def names_of(self, member: Member) -> list[str | None]:
        """Return the names of the axes."""
        return [None if each is None else each.name for each in self._found[member.path]]

    def shape_of(self, member: Member) -> tuple[int, ...]:
        """Return the lengths of the axes: a variable of NetCDF is as long as its unlimited dimensions, written or not.

        They are as long as the longest variable that has them.
        """
        pairs = zip(self._found[member.path], member.found.shape, strict=True)
        return tuple(
            self._lengths[each] if each is not None and each.unlimited and each in self._told_ones else length
            for each, length in pairs
        )

    def unlimited(self, member: Member) -> list[str]:
        """Return the names of those that may grow."""
        return [each.name for each in self._found[member.path] if each is not None and each.unlimited]

    def _note_scale(self, member: Member) -> None:
        found = member.found
        length, most = (found.shape[0], found.maxshape[0]) if found.shape else (1, 1)
        dimension = Dimension(variable_name(member.name), length, most is None)
        self._scales[member.address] = dimension
        self._told_ones.add(dimension)
        self._by_group.setdefault(member.parent, []).append(dimension)
        number = attribute(found, "_Netcdf4Dimid")
        if number is not None and np.size(number) == 1:
            self._numbers[int(np.ravel(number)[0])] = dimension
        name = attribute(found, "NAME")
        if isinstance(name, bytes) and name.startswith(NO_VARIABLE):
            self._bare.add(member.address)

    def _told(self, member: Member) -> list[Dimension | None]:
        """Return what the file says of the axes of a data set."""
        found, ndim = member.found, len(member.found.shape)
        result: list[Dimension | None] = [None] * ndim
        numbers = attribute(found, "_Netcdf4Coordinates")
        if numbers is not None and np.size(numbers) == ndim:
            result = [self._numbers.get(int(number)) for number in np.ravel(numbers)]
        elif member.address in self._scales and ndim == 1:
            result = [self._scales[member.address]]
        listed = self._list(found)
        if len(listed) == ndim:
            result = [old if new is None else new for old, new in zip(result, listed, strict=True)]
        names = [each.name for each in result if each is not None]
        return result if len(set(names)) == len(names) or ndim == len(names) else [None] * ndim

    def _list(self, found: Any) -> list[Dimension | None]:
        library = h5py()
        listed = attribute(found, "DIMENSION_LIST")
        result: list[Dimension | None] = []
        if not isinstance(listed, np.ndarray):
            return result
        for references in listed:
            dimension = None
            for each in np.ravel(references):
                try:
                    target = library.h5r.dereference(each, found.id)
                    dimension = self._scales.get(int(library.h5o.get_info(target).addr))
                except FAILURES:  # it leads nowhere
                    continue
                if dimension is not None:
                    break
            result.append(dimension)
        return result

    def _name_others(self, member: Member, own: list[Dimension | None]) -> None:
        """Name axes that have no name as the NetCDF library does: by their length."""
        found = member.found
        group = self._by_group.setdefault(member.parent, [])
        for axis, (length, most) in enumerate(zip(found.shape, found.maxshape, strict=True)):
            if own[axis] is not None:
                continue
            taken = [each for each in own if each is not None]
            same = (each for each in group if (each.length, each.unlimited) == (length, most is None))
            dimension = next((each for each in same if each not in taken), None)
            if dimension is None:
                dimension = Dimension(f"phony_dim_{self._next}", length, most is None)
                self._next += 1
                group.append(dimension)
            own[axis] = dimension


def variable_name(name: str) -> str:
    """Return the name of a variable of NetCDF from that of its data set."""
    return name.removeprefix(_NO_COORDINATE)


__all__ = ["Dimensions", "variable_name"]
