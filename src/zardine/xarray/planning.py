"""What a call of ``to_zarr`` will do to each group, worked out before anything in the store is touched."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xarray import Variable

from zardine.errors import DimensionNamesError, MetadataError
from zardine.hierarchy.find import as_group, describe, find_node, implied_group, load_group, refuse_unfinished, taken
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import format_of_new
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.nodes.create_array import possible_array
from zardine.nodes.group import Group
from zardine.stores.base import Store
from zardine.xarray.conventions import COORDINATES, added_attributes, dimensions_of
from zardine.xarray.datasets import Part, stored_name
from zardine.xarray.encoding import encode_new
from zardine.xarray.modes import Region, WriteMode, find_region
from zardine.xarray.new_variables import NewArray, encoded_attributes, new_array
from zardine.xarray.read_encoding import fit_encoding, was_read
from zardine.xarray.round_trip import check_decodes
from zardine.xarray.stored import as_stored, check_fits, decoded_variables


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for, and where."""

    store: Store
    path: str
    mode: WriteMode
    append_dim: Hashable | None
    region: Region | None
    chunks: Any
    shards: Any
    zarr_format: int | None
    write_empty_chunks: bool | None

    def find(self) -> GroupMetadata | None:
        """Return the group that is there; ``None`` where a new one is made.

        Raises :class:`~zardine.errors.NodeExistsError` or :class:`~zardine.errors.GroupNotFoundError` where the mode
        does not allow what is, or is not, there.
        """
        if self.mode == "w":
            return None
        node = find_node(self.store, self.path, self.zarr_format)
        if node is None:
            node = implied_group(self.store, self.path, self.zarr_format)
        if node is None:
            return load_group(self.store, self.path, self.zarr_format) if self.mode == "r+" else None  # which raises
        if self.mode == "w-" or isinstance(node, ArrayMetadata):
            raise taken(self.store, self.path, node)
        refuse_unfinished(node, self.store, self.path)
        return node


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What happens to one group."""

    path: str
    """In the store."""
    metadata: GroupMetadata
    """Of the group that is made, or that is there."""
    attributes: dict[str, Any]
    is_new: bool
    new: list[NewArray] = field(default_factory=list)
    old: dict[str, tuple[Array, Variable]] = field(default_factory=dict)
    """Arrays that are there, and what is written to them, in the order of their dimensions."""
    region: dict[str, slice] = field(default_factory=dict)


def plan(request: Request, found: GroupMetadata | None, parts: tuple[Part, ...]) -> list[GroupPlan]:
    """Return what will happen to each group. ``found`` is the group of the first of ``parts``, if it is there.

    Reads documents, and coordinates for a region that is to be found. Raises ``ValueError``, ``TypeError``,
    ``KeyError`` and errors of the store for what cannot be done.
    """
    version = format_of_new(request.zarr_format) if found is None else found.zarr_format
    plans = []
    for part in parts:
        group = found
        if part.path and found is not None:
            place = join_path(request.path, part.path)
            node = find_node(request.store, place, version)
            if node is not None or request.mode == "r+":
                group = as_group(node, request.store, place, version)
            else:
                group = None
        plans.append(_plan_group(request, part, group, version))
    return plans


def _plan_group(request: Request, part: Part, found: GroupMetadata | None, version: int) -> GroupPlan:
    path, dataset = join_path(request.path, part.path), part.dataset
    arrays: dict[str, Array] = {}
    if found is not None:
        known = found if request.mode == "r+" else found.with_consolidated(None)
        group = Group(request.store, path, known)
        arrays = dict(group.arrays())
    region: dict[str, slice] = {}
    if request.region is not None:
        region = find_region(
            dataset,
            request.region,
            mode=request.mode,
            append_dim=request.append_dim,
            stored=partial(_stored_variable, request.store, path, found, arrays),
        )
        dataset = dataset.drop_vars(list(dataset.indexes))
    variables, attributes = part.encoded(dataset)
    attributes = added_attributes(attributes, {COORDINATES: " ".join(_coordinates_of_stored(arrays, variables))})
    for name in part.encoding:
        if stored_name(name) in arrays:
            raise ValueError(f"variable {name!r} already exists, but encoding was provided")
    stored = encoded_attributes(attributes)
    if found is None:
        result = GroupPlan(path, GroupMetadata(attributes=stored, zarr_format=version), stored, True, region=region)
    else:
        result = GroupPlan(path, known, stored, False, region=region)
        _check_existing(request, path, arrays, variables)
    old = {name: arrays[stored_name(name)] for name in variables if stored_name(name) in arrays}
    decoded = decoded_variables(group, old, [name for name in old if variables[name].dtype.kind == "m"]) if old else {}
    for name, each in variables.items():
        if name in old:
            before = decoded[name]
            fitting = as_stored(name, each, before, old[name], version)
            fitting = check_fits(name, fitting, before, region, request.append_dim)
            if not (request.mode == "a-" and request.append_dim is not None and request.append_dim not in each.dims):
                result.old[stored_name(name)] = old[name], fitting
            continue
        result.new.append(_new_array(request, path, name, each, part, version))
    _check_sizes(request, result, arrays)
    return result


def _coordinates_of_stored(arrays: Mapping[str, Array], variables: Mapping[Hashable, Variable]) -> list[str]:
    """Return the coordinates of stored variables that these do not name themselves: their attributes stay."""
    found: list[str] = []
    for name, each in variables.items():
        array = arrays.get(stored_name(name))
        if array is not None:
            known = str(array.attrs.get(COORDINATES, "")).split()
            found += [word for word in str(each.attrs.get(COORDINATES, "")).split() if word not in known]
    return found


def _new_array(request: Request, path: str, name: Hashable, variable: Variable, part: Part, version: int) -> NewArray:
    """Return the array for a new variable. Raises errors that name the variable."""
    is_read = name not in part.encoding or was_read(variable.encoding)
    try:
        encoded = encode_new(
            fit_encoding(variable, version) if is_read else variable, name, version, is_chosen=not is_read
        )
        if not was_read(variable.encoding):  # else the caller knows how to open it
            check_decodes(name, encoded)
        made = new_array(
            stored_name(name),
            encoded,
            zarr_format=version,
            chunks=request.chunks,
            shards=request.shards,
            is_explicit=name in part.encoding,
            is_read=is_read,
            write_empty_chunks=request.write_empty_chunks,
        )
        possible_array(request.store, join_path(path, made.name), made.metadata, made.config)
        return made
    except (ValueError, TypeError) as error:
        if repr(name) in str(error):
            raise
        if isinstance(error, MetadataError):
            raise type(error)(f"variable {name!r}: {error.subject}", error.problems) from error
        if type(error) in (ValueError, TypeError):
            raise type(error)(f"variable {name!r} cannot be stored: {error}") from error
        error.add_note(f"while planning the array of variable {name!r}")
        raise


def _check_sizes(request: Request, planned: GroupPlan, arrays: Mapping[str, Array]) -> None:
    """Raise ``ValueError`` if a new variable and a stored one would have different lengths of one dimension."""
    if not planned.new or not arrays:
        return
    lengths: dict[str, tuple[int, str]] = {}
    for name, array in arrays.items():
        try:
            sizes = dict(zip(dimensions_of(array), array.shape, strict=True))
        except DimensionNamesError:
            continue  # xarray opens such a group only without this array
        if name in planned.old and request.append_dim in sizes:
            sizes[str(request.append_dim)] += planned.old[name][1].sizes[request.append_dim]
        lengths.update({dim: (size, name) for dim, size in sizes.items()})
    for new in planned.new:
        for dim, size in new.variable.sizes.items():
            length, other = lengths.get(str(dim), (size, ""))
            if size != length:
                raise ValueError(
                    f"the new variable {new.name!r} has length {size} along {dim!r}, and after this write "
                    f"{other!r} of {describe(request.store, planned.path)} has {length}: the dataset could not be "
                    "opened; write the new variable first, with mode='a' and the whole stored length"
                )


def _stored_variable(
    store: Store, path: str, found: GroupMetadata | None, arrays: Mapping[str, Array], name: str
) -> Variable:
    if found is None or name not in arrays:
        raise KeyError(
            f"region='auto' looks for the values of the coordinate {name!r}, which {describe(store, path)} does not "
            f"have: say where to write, as region={{{name!r}: slice(0, 10)}}"
        )
    return decoded_variables(Group(store, path, found), {name: arrays[name]})[name]


def _check_existing(
    request: Request, path: str, arrays: Mapping[str, Array], variables: Mapping[Hashable, Variable]
) -> None:
    append_dim, place = request.append_dim, describe(request.store, path)
    given = {*map(stored_name, variables)}
    if append_dim is not None:
        short = [name for name, each in arrays.items() if name not in given and append_dim in dimensions_of(each)]
        if short:
            raise ValueError(
                f"the dataset to append has no {short!r}, which {place} has along {append_dim!r}: they would be "
                "shorter than what is appended, and nothing could open the store"
            )
    new = [name for name in variables if stored_name(name) not in arrays]
    if request.mode == "r+" and new:
        raise ValueError(
            f"dataset contains non-pre-existing variables {new!r}, which mode='r+' does not make: mode='a' does"
        )
    if append_dim is not None and append_dim not in arrays:
        sizes = {dim: n for each in arrays.values() for dim, n in zip(dimensions_of(each), each.shape, strict=True)}
        if append_dim not in sizes:
            raise ValueError(
                f"append_dim={append_dim!r} does not match any existing dataset dimensions {sizes} of {place}"
            )


__all__ = ["GroupPlan", "Request", "plan"]
