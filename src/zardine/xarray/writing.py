"""``zardine.xarray.to_zarr``: datasets, data arrays and trees into sharded stores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xarray import DataArray, Dataset, DataTree

from zardine.engine.workers import for_each, most_requests
from zardine.errors import ReadOnlyError, ZardineError
from zardine.hierarchy.create import create_node
from zardine.hierarchy.find import describe, load_group
from zardine.hierarchy.place import find_place
from zardine.hierarchy.unfinished import begin_group, marked
from zardine.hierarchy.update import update_node
from zardine.metadata.formats import NodeMetadata, check_format, format_of_new
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes.array import Array
from zardine.nodes.create_array import check_source_stays, store_new_array
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.xarray.aligned_groups import check_aligned
from zardine.xarray.appending import Place, reserve
from zardine.xarray.conventions import added_attributes
from zardine.xarray.datasets import Part, check_lengths, check_nodes, member_names, parts_of
from zardine.xarray.finishing import BY, Ending, begin_computing, end_computing
from zardine.xarray.modes import Region, WriteMode, choose_mode
from zardine.xarray.planning import GroupPlan, Request, plan
from zardine.xarray.transfer import Transfer, delayed_store, write_now, write_values

if TYPE_CHECKING:
    from dask.delayed import Delayed


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
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function of two numbers, the pieces done and all, not {progress!r}")
    chosen = choose_mode(mode, append_dim, region)
    check_format(zarr_format)
    found, root = find_place(store, mode=None, storage_options=storage_options, zarr_format=zarr_format)
    if found.read_only:
        raise ReadOnlyError(f"cannot write to {describe(found, root)}: it is read-only")
    if isinstance(data, DataTree) and (group is not None or append_dim is not None):
        what = "group" if group is not None else "append_dim"
        raise NotImplementedError(f"{what} is not for trees: write its datasets one by one (node.to_dataset())")
    request = Request(
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
    parts = parts_of(data, encoding, inherited=write_inherited_coords)
    check_lengths(parts, chunks=chunks, shards=shards)
    there = request.find()
    version = format_of_new(zarr_format) if there is None else there.zarr_format
    check_nodes(parts, version)
    plans = plan(request, there, parts)
    if isinstance(data, DataTree) and there is not None and any(each.new or each.old for each in plans):
        check_aligned(Group(found, request.path, there), {each.path: each.dataset for each in parts})
    if chosen == "w":
        for part in parts:
            for each in part.dataset.variables.values():
                check_source_stays(each._data, found, request.path)
    writing = _Writing(request, parts, plans)
    ending = Ending(
        found,
        root,
        request.path,
        version,
        consolidated,
        tuple(each.array.path for each in writing.transfers),
        writing.identity,
        writing.below,
        documents=chosen != "r+",
    )
    if not compute:
        later: Delayed = _delayed(writing.transfers, ending, verify)
        return later
    try:
        write_values(writing.transfers, progress, dict(chunkmanager_store_kwargs or {}))
        if verify:
            ending.verify()
    except BaseException as error:
        if writing.place is not None:
            error.add_note(_given_back(writing.place, append_dim))
        raise
    ending.finish()
    return Group(found, request.path, load_group(found, request.path))


class _Writing:
    """Groups and arrays are made, or made longer; then this says what goes where."""

    def __init__(self, request: Request, parts: Iterable[Part], plans: Iterable[GroupPlan]) -> None:
        self.request = request
        self.transfers: list[Transfer] = []
        self.identity: str | None = None
        """Of the mark of a new group."""
        self.below: dict[str, NodeMetadata] = {}
        """Nodes that are marked with it, by path."""
        self.place: Place | None = None
        """What was appended to, in the first group."""
        for part, each in zip(parts, plans, strict=True):
            self._group(each, member_names(parts, part.path))
            made = self._arrays(each)
            if request.append_dim is not None:
                self.place = _reserved(each, request.append_dim)
            self._transfers(each, made)

    def _group(self, planned: GroupPlan, kept: set[str]) -> None:
        store, mode = self.request.store, self.request.mode
        if not planned.is_new:
            if mode != "r+":
                update_node(
                    store,
                    planned.path,
                    planned.metadata,
                    lambda before: before.with_attributes(added_attributes(before.attributes, planned.attributes)),
                )
        elif planned.path == self.request.path:
            self.identity = begin_group(store, planned.path, planned.metadata, by=BY, overwrite=mode == "w", kept=kept)
        elif self.identity is None:
            create_node(store, planned.path, planned.metadata, overwrite=False)
        else:
            begin_group(
                store, planned.path, planned.metadata, by=BY, overwrite=mode == "w", kept=kept, identity=self.identity
            )
            self.below[planned.path] = planned.metadata

    def _arrays(self, planned: GroupPlan) -> dict[str, Array]:
        """Make the new arrays, several at a time where each takes requests."""
        store = self.request.store
        made: dict[str, Array] = {}

        def make(name: str) -> None:
            metadata, path = new[name].metadata, join_path(planned.path, name)
            if self.identity is not None:
                metadata = self.below[path] = marked(metadata, BY, self.identity)
            made[name] = store_new_array(store, path, metadata, new[name].config, overwrite=self.request.mode == "w")

        new = {each.name: each for each in planned.new}
        for_each(make, new, len(new), most_requests(store, 1))
        return made

    def _transfers(self, planned: GroupPlan, made: Mapping[str, Array]) -> None:
        for new in planned.new:
            self._transfer(new.variable, made[new.name], planned.region)
        for array, variable in planned.old.values():
            if self.request.write_empty_chunks is not None:
                array = array.with_config({"write_empty_chunks": self.request.write_empty_chunks})
            place = {} if self.place is None else {str(self.request.append_dim): self.place.part}
            self._transfer(variable, array, {**planned.region, **place})

    def _transfer(self, variable: Any, array: Array, parts: Mapping[str, slice]) -> None:
        index = tuple(parts.get(str(dim), slice(None)) for dim in variable.dims)
        self.transfers.append(Transfer(variable.data, array, index))


def _reserved(planned: GroupPlan, append_dim: Hashable) -> Place | None:
    longer = {
        name: (array, each.dims.index(append_dim), each.sizes[append_dim])
        for name, (array, each) in planned.old.items()
        if append_dim in each.dims
    }
    return reserve(longer, append_dim) if longer else None


def _given_back(place: Place, append_dim: Hashable | None) -> str:
    """Undo an append that failed, and say what is there now."""
    where = f"{place.start}:{place.stop} of {append_dim!r}"
    with suppress(ZardineError, OSError):
        if place.give_back():
            return f"what was appended, {where}, is taken back: the variables are as long as they were"
    return (
        f"the place that was appended, {where}, could not be taken back, as when another writer has appended behind "
        f"it: it holds fill values, and what was written before the error; region={{{append_dim!r}: "
        f"slice({place.start}, {place.stop})}} writes there again"
    )


def _delayed(transfers: list[Transfer], ending: Ending, verify: bool) -> Any:
    """Write what is in memory; return a ``Delayed`` that writes the rest, with the group marked meanwhile."""
    from dask.delayed import delayed
    from dask.graph_manipulation import bind

    lazy = [each for each in transfers if each.is_lazy]
    for each in transfers:
        if not each.is_lazy:
            write_now(each)
    ending.finish()
    if not lazy:
        if verify:
            ending.verify()
        return delayed(end_computing)(None, None, verify)
    paths = {each.array.path for each in lazy}
    below = {path: node for path, node in ending.below.items() if path in paths}
    later = replace(ending, below=below, documents=False)
    if ending.identity is not None:
        begun = delayed(begin_computing)(later)
        bound = bind([each.values for each in lazy], begun)
        lazy = [replace(each, values=values) for each, values in zip(lazy, bound, strict=True)]
    return delayed(end_computing)(delayed_store(lazy), later, verify)
