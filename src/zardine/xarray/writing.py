"""``zardine.xarray.to_zarr``: datasets, data arrays and trees into sharded stores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from xarray import DataArray, Dataset, DataTree, Variable, conventions

from zardine.api.consolidate import consolidate_metadata
from zardine.errors import CorruptionError, ReadOnlyError
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.find import describe, find_node, implied_group, load_group, refuse_unfinished, taken
from zardine.hierarchy.place import find_place
from zardine.hierarchy.unfinished import begin_group, finish_group, mark_group
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import check_format, format_of_new
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes.array import Array
from zardine.nodes.create_array import create_array
from zardine.nodes.group import Group
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.tools.verify import verify as verify_stored
from zardine.xarray.appending import reserve
from zardine.xarray.conventions import dimensions_of
from zardine.xarray.modes import Region, WriteMode, choose_mode, find_region
from zardine.xarray.new_variables import array_arguments, encoded, encoded_attributes
from zardine.xarray.shard_shapes import is_by_name
from zardine.xarray.stored import as_stored, check_fits, check_units, decoded_variables
from zardine.xarray.transfer import Transfer, delayed_store, write_now, write_values

if TYPE_CHECKING:
    from dask.delayed import Delayed

BY: Final = "zardine.xarray.to_zarr"
_NAME: Final = "__xarray_dataarray_name__"
_VARIABLE: Final = "__xarray_dataarray_variable__"
"""Where xarray keeps a data array without a name, or with that of a coordinate."""


def to_zarr(
    data: Dataset | DataArray | DataTree,
    store: StoreLike = None,
    *,
    group: str | None = None,
    mode: WriteMode | None = None,
    append_dim: Hashable | None = None,
    region: Region | None = None,
    encoding: Mapping[str, Any] | None = None,
    chunks: Any = "auto",
    shards: Any = "auto",
    consolidated: bool | None = None,
    compute: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    verify: bool = False,
    zarr_format: int | None = None,
    progress: Progress | None = None,
    write_empty_chunks: bool | None = None,
    write_inherited_coords: bool = False,
    safe_chunks: bool = True,
    align_chunks: bool = False,
    chunkmanager_store_kwargs: Mapping[str, Any] | None = None,
) -> Group | Delayed:
    """Write a dataset, data array or tree of xarray into a group, sharded; gives the group.

    It does what the method ``to_zarr`` does, and takes what that takes:

    - ``mode``: ``"w-"`` makes a new group (the default), ``"w"`` replaces what is there, ``"a"`` adds variables and
      overwrites those that are there, ``"a-"`` overwrites only those that have ``append_dim``, ``"r+"`` writes into
      variables that are there.
    - ``append_dim``: the dimension that becomes longer. Any number of processes may append at the same time: each gets
      a place of its own, the same in all variables.
    - ``region``: where to write, slices by dimension or ``"auto"``. Regions of several processes may lie in one shard.
    - ``encoding``: by variable ``chunks``, ``shards``, ``compressors``, ``filters``, ``serializer``, ``fill_value``,
      ``chunk_key_encoding`` and ``write_empty_chunks``; for a tree by the paths of its groups first. What a variable
      was read with is used where nothing else is said.
    - ``chunks``, ``shards``: for new variables without such an encoding: lengths by the names of dimensions (those not
      named are whole), or one for all; ``shards=None`` stores chunks one by one. ``"auto"`` makes shards of whole Dask
      chunks where these are regular, and inner chunks of at most about a MiB.
    - ``consolidated``: whether all documents are written into that of the store's root, too (default: yes).
    - ``compute=False`` writes documents and what is in memory, and gives a ``Delayed`` that writes what Dask has.
    - ``verify`` reads back all chunks of the variables that were written, and raises
      :class:`~zardine.errors.CorruptionError` for damage.
    - ``progress`` is called with the number of pieces done, and of all: Dask chunks, and variables in memory.
    - ``safe_chunks`` and ``align_chunks`` have no effect: Dask chunks may lie across chunks and shards.
    - ``write_inherited_coords``: of a tree, coordinates are written into the groups that inherit them, too.

    A group that is made or replaced is marked as unfinished first, and the mark is removed last: meanwhile opening it
    raises :class:`~zardine.errors.UnfinishedError`, as it does after a writer that was killed. What was there before is
    not kept. With ``compute=False`` the group can be opened between this call and the computing.

    Raises :class:`~zardine.errors.NodeExistsError` for a place that is taken, ``ValueError`` or ``TypeError`` for what
    does not fit together or cannot be stored.
    """
    if not isinstance(data, (Dataset, DataArray, DataTree)):
        raise TypeError(f"to_zarr takes a Dataset, DataArray or DataTree of xarray, not a {type(data).__name__}")
    chosen = choose_mode(mode, append_dim, region)
    check_format(zarr_format)
    found, root = find_place(store, mode=None, storage_options=storage_options, zarr_format=zarr_format)
    if found.read_only:
        raise ReadOnlyError(f"cannot write to {describe(found, root)}: it is read-only")
    if isinstance(data, DataTree) and (group is not None or append_dim is not None):
        what = "group" if group is not None else "append_dim"
        raise NotImplementedError(f"{what} is not for trees: write its datasets one by one (node.to_dataset())")
    request = _Request(
        found,
        join_path(root, normalize_path(group)),
        chosen,
        append_dim=append_dim,
        region=region,
        chunks=chunks,
        shards=shards,
        zarr_format=zarr_format,
        write_empty_chunks=write_empty_chunks,
    )
    nodes = list(_nodes(data, encoding, write_inherited_coords))
    for _, dataset, _ in nodes:
        _check_names(dataset)
    _check_lengths(nodes, chunks=chunks, shards=shards)
    identity = request.begin([path for path, _, _ in nodes], [dataset for _, dataset, _ in nodes])
    for path, dataset, each in nodes:
        request.plan(path, dataset, each)
    options = dict(chunkmanager_store_kwargs or {})
    finish = _Finish(
        found, root, request.path, request.version, consolidated, tuple(request.touched()), identity, verify, chosen
    )
    if not compute:
        later: Delayed = _delayed(request.transfers, finish)
        return later
    write_values(request.transfers, progress, options)
    finish()
    return Group(found, request.path, load_group(found, request.path))


@dataclass
class _Request:
    """What is written where, worked out node by node; arrays are created, or made longer, on the way."""

    store: Store
    path: str
    mode: WriteMode
    append_dim: Hashable | None
    region: Region | None
    chunks: Any
    shards: Any
    zarr_format: int | None
    write_empty_chunks: bool | None
    transfers: list[Transfer] = field(default_factory=list)
    version: int = 3
    new: set[str] = field(default_factory=set)
    """Paths of groups that were made by this call."""

    def begin(self, paths: list[str], datasets: list[Dataset]) -> str | None:
        """Make or replace the group, and mark it, if that is what the mode says; gives the id of the mark."""
        node = None if self.mode == "w" else find_node(self.store, self.path, self.zarr_format)
        if self.mode != "w" and node is None:
            node = implied_group(self.store, self.path, self.zarr_format)
        if node is not None:
            if self.mode == "w-" or isinstance(node, ArrayMetadata):
                raise taken(self.store, self.path, node)
            refuse_unfinished(node, self.store, self.path)
            self.version = node.zarr_format
            return None
        if self.mode == "r+":
            load_group(self.store, self.path, self.zarr_format)  # raises
        self.version = format_of_new(self.zarr_format)
        below = {path.partition("/")[0] for path in paths if path}
        kept = {str(name) for name in datasets[0].variables} | below
        metadata = GroupMetadata(attributes=encoded_attributes(_encoded(datasets[0])[1]), zarr_format=self.version)
        self.new.add("")
        return begin_group(self.store, self.path, metadata, by=BY, overwrite=self.mode == "w", kept=kept)

    def plan(self, relative: str, dataset: Dataset, encoding: Mapping[Hashable, Any]) -> None:
        """Create the arrays of one group, or find them; note what is to be written."""
        path = join_path(self.path, relative)
        group = self._group(relative, dataset)
        arrays: dict[Hashable, Array] = {} if relative in self.new else dict(group.arrays())
        region: dict[str, slice] = {}
        if self.region is not None:
            region = find_region(
                dataset,
                self.region,
                mode=self.mode,
                append_dim=self.append_dim,
                stored=lambda name: decoded_variables(group, {name: arrays[name]})[name],
            )
            dataset = dataset.drop_vars(list(dataset.indexes))
        for name in encoding:
            if name in arrays and self.mode != "w":
                raise ValueError(f"variable {name!r} already exists, but encoding was provided")
        variables, attributes = _encoded(dataset)
        for name, each in encoding.items():
            if name not in variables:
                raise KeyError(f"encoding was provided for {name!r}, which is no variable of the dataset")
            variables[name].encoding = each
        old = {name: arrays[_stored_name(name)] for name in variables if _stored_name(name) in arrays}
        self._check_existing(path, arrays, old, variables)
        ready = {name: encoded(each, name, self.version) for name, each in variables.items() if name not in old}
        if old:
            known = decoded_variables(group, old)
            for name in old:
                fitting = encoded(as_stored(name, variables[name], known[name]), name, self.version)
                check_units(name, fitting, known[name])
                ready[name] = check_fits(name, fitting, known[name], region, self.append_dim)
        arguments = {
            name: array_arguments(
                str(name),
                each,
                zarr_format=self.version,
                chunks=self.chunks,
                shards=self.shards,
                is_explicit=name in encoding,
                write_empty_chunks=self.write_empty_chunks,
            )
            for name, each in ready.items()
            if name not in old
        }
        if self.mode != "r+" and relative not in self.new:
            stored = encoded_attributes(attributes)
            update_node(self.store, path, group._metadata, lambda before: before.with_attributes(stored))
        place = self._reserve({str(name): (old[name], ready[name]) for name in old})
        for name, each in ready.items():
            if self.mode == "a-" and self.append_dim is not None and name in old and self.append_dim not in each.dims:
                continue
            parts = {**region, **({} if place is None or name not in old else {str(self.append_dim): place})}
            array = old.get(name)
            if array is None:
                array = create_array(
                    StorePath(self.store, path),
                    name=_stored_name(name),
                    zarr_format=self.version,
                    overwrite=self.mode == "w",
                    **arguments[name],
                )
            elif self.write_empty_chunks is not None:
                array = array.with_config({"write_empty_chunks": self.write_empty_chunks})
            index = tuple(parts.get(str(dim), slice(None)) for dim in each.dims)
            self.transfers.append(Transfer(each.data, array, index))

    def touched(self) -> Iterable[str]:
        """Yield the paths of the arrays that are written."""
        return (each.array.path for each in self.transfers)

    def _group(self, relative: str, dataset: Dataset) -> Group:
        path = join_path(self.path, relative)
        if relative and ("" in self.new or self.mode != "r+"):
            node = None if "" in self.new else find_node(self.store, path, self.version)
            if node is None:
                metadata = GroupMetadata(attributes=encoded_attributes(_encoded(dataset)[1]), zarr_format=self.version)
                kept = {str(name) for name in dataset.variables}
                identity = begin_group(self.store, path, metadata, by=BY, kept=kept)
                finish_group(self.store, path, identity, self.version)  # the one above is marked, or was there
                self.new.add(relative)
        metadata = load_group(self.store, path, self.version, unfinished=True)
        return Group(self.store, path, metadata if self.mode == "r+" else metadata.with_consolidated(None))

    def _check_existing(
        self,
        path: str,
        arrays: Mapping[Hashable, Array],
        old: Mapping[Hashable, Array],
        variables: Mapping[Hashable, Variable],
    ) -> None:
        new = [name for name in variables if name not in old]
        given = {*map(_stored_name, variables)}
        short = [
            name
            for name, each in arrays.items()
            if self.append_dim is not None and name not in given and self.append_dim in dimensions_of(each)
        ]
        if short:
            raise ValueError(
                f"the dataset to append has no {short!r}, which {describe(self.store, path)} has along "
                f"{self.append_dim!r}: they would be shorter than what is appended, and nothing could open the store"
            )
        if self.mode == "r+" and new:
            raise ValueError(
                f"dataset contains non-pre-existing variables {new!r}, which mode='r+' does not make: mode='a' does"
            )
        if self.append_dim is not None and self.append_dim not in arrays:
            sizes = {dim: n for each in arrays.values() for dim, n in zip(dimensions_of(each), each.shape, strict=True)}
            if self.append_dim not in sizes:
                raise ValueError(
                    f"append_dim={self.append_dim!r} does not match any existing dataset dimensions {sizes} of "
                    f"{describe(self.store, path)}"
                )

    def _reserve(self, old: Mapping[str, tuple[Array, Variable]]) -> slice | None:
        if self.append_dim is None:
            return None
        longer = {
            name: (array, each.dims.index(self.append_dim), each.sizes[self.append_dim])
            for name, (array, each) in old.items()
            if self.append_dim in each.dims
        }
        return reserve(longer, self.append_dim) if longer else None


@dataclass(frozen=True)
class _Finish:
    """What comes after the values: verification, the mark, consolidated metadata. Can be sent to another process."""

    store: Store
    root: str
    path: str
    version: int
    consolidated: bool | None
    written: tuple[str, ...]
    identity: str | None
    verify: bool
    mode: str

    def __call__(self) -> None:
        if self.verify:
            self.check()
        self.consolidate()
        if self.identity is not None:
            finish_group(self.store, self.path, self.identity, self.version)

    def check(self) -> None:
        """Read back what was written. Raises :class:`~zardine.errors.CorruptionError` for damage."""
        for path in self.written:
            report = verify_stored(self.store, path=path)
            if not report:
                faults = "; ".join(map(str, report.faults[:3]))
                raise CorruptionError(f"{len(report.faults)} faults in what was just written: {faults}", array=path)

    def consolidate(self) -> None:
        """Write documents into that of the root, or what has changed, if they are there already."""
        if self.mode == "r+":
            return
        root = find_node(self.store, self.root)
        if not isinstance(root, GroupMetadata):
            return
        if root.consolidated_metadata is not None and self.identity is None:
            start = len(self.root) + 1 if self.root else 0
            changed = [path[start:] for path in dict.fromkeys((self.path, *self.written)) if path != self.root]
            nodes = Consolidated(self.store, self.root, root.zarr_format, root.consolidated_metadata)
            nodes.keep_true(changed)
        elif self.consolidated is not False:
            consolidate_metadata(self.store, self.root, root.zarr_format)


def _delayed(transfers: list[Transfer], finish: _Finish) -> Any:
    """Write what is in memory; return a ``Delayed`` that writes the rest, with the group marked meanwhile."""
    from dask.delayed import delayed
    from dask.graph_manipulation import bind

    lazy = [each for each in transfers if each.is_lazy]
    for each in transfers:
        if not each.is_lazy:
            write_now(each)
    finish.consolidate()
    if finish.identity is not None:
        finish_group(finish.store, finish.path, finish.identity, finish.version)
    if not lazy:
        if finish.verify:
            finish.check()
        return delayed(_ended)(None, None)
    if finish.identity is not None:
        begun = delayed(mark_group)(finish.store, finish.path, finish.identity, finish.version, by=BY)
        bound = bind([each.values for each in lazy], begun)
        lazy = [replace(each, values=values) for each, values in zip(lazy, bound, strict=True)]
    values = delayed_store(lazy)
    return delayed(_ended)(values, finish)


def _ended(values: None, finish: _Finish | None) -> None:
    """Do what comes last, after the values are written."""
    if finish is None:
        return
    if finish.verify:
        finish.check()
    if finish.identity is not None:
        finish_group(finish.store, finish.path, finish.identity, finish.version)


def _nodes(
    data: Dataset | DataArray | DataTree, encoding: Mapping[str, Any] | None, inherited: bool
) -> Iterable[tuple[str, Dataset, Mapping[Hashable, Any]]]:
    """Yield the path of each group, its dataset and the encoding of its variables; parents first."""
    given: dict[Any, Any] = dict(encoding or {})
    if not isinstance(data, DataTree):
        yield "", _as_dataset(data), given
        return
    unknown = {*given} - {*data.groups}
    if unknown:
        raise ValueError(f"unexpected encoding group name(s) provided: {sorted(unknown)}; known are {[*data.groups]}")
    for path, node in data.subtree_with_keys:
        dataset = node.to_dataset(inherit=inherited or node is data)
        yield ("" if path == "." else path), dataset, given.get(node.path, {})


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


def _check_lengths(nodes: Iterable[tuple[str, Dataset, Any]], **given: Any) -> None:
    """Raise ``ValueError`` for lengths by names of dimensions, of which no variable has one."""
    known = {dim for _, dataset, _ in nodes for dim in dataset.dims}
    for word, lengths in given.items():
        wrong = [name for name in lengths if name not in known] if is_by_name(lengths) else []
        if wrong:
            close = get_close_matches(str(wrong[0]), map(str, known), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"{word} has {wrong[0]!r}, which is no dimension of {sorted(map(str, known))}{hint}")


def _encoded(dataset: Dataset) -> tuple[dict[Hashable, Variable], dict[Any, Any]]:
    """Return variables, and attributes of the group, with coordinates told of as CF does."""
    variables, attributes = conventions.encode_dataset_coordinates(dataset)
    return dict(variables), dict(attributes)


def _stored_name(name: Hashable) -> str:
    return "__values__" if name is None else str(name)
