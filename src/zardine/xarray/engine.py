"""The engine ``"zardine"`` of xarray: ``xr.open_dataset(path, engine="zardine")``, and data trees."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypedDict, Unpack

import xarray as xr
from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint, list_engines

from zardine.api.open import open_group
from zardine.errors import GroupNotFoundError, UnsupportedError
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import find_place
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes.argument_hints import unknown_argument
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.shown_text import one_line, printable
from zardine.sources.foreign_store import ForeignStore
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.user_warnings import warn_user
from zardine.xarray.conventions import ChunkBy
from zardine.xarray.data_store import GroupDataStore
from zardine.zarr_python.fallback import UnknownToZardineError
from zardine.zarr_python.stores import store_of


class Decoding(TypedDict, total=False):
    """What xarray decodes, and how: arguments of :func:`xarray.open_dataset` that are handed on to it as they are."""

    mask_and_scale: bool
    decode_times: Any
    concat_characters: bool
    decode_coords: Any
    use_cftime: bool | None
    decode_timedelta: Any


class Opening(TypedDict, total=False):
    """Which group is opened, and how it is seen.

    - ``group``: the path of the group in the store.
    - ``consolidated``: ``True`` wants consolidated metadata and raises ``ValueError`` without; ``False`` looks at each
      node; ``None``, the default, uses it where it is.
    - ``storage_options``: for stores behind URLs, as :func:`zardine.open` takes them.
    - ``zarr_format``: 1, 2 or 3; by default whichever is there.
    - ``use_zarr_fill_value_as_mask``: whether the fill values of arrays stand for missing values; by default in Zarr
      v2 and v1, while v3 has an attribute for that.
    - ``chunk_by``: whether ``chunks={}`` makes a task of each shard (``"shards"``) or of each inner chunk
      (``"chunks"``).
    - ``mode``: ``"r"``, for calls written for the engine ``"zarr"``; this one never writes.
    """

    group: str | None
    consolidated: bool | None
    storage_options: Mapping[str, Any] | None
    zarr_format: int | None
    use_zarr_fill_value_as_mask: bool | None
    chunk_by: ChunkBy
    mode: str


class Options(Decoding, Opening, total=False):
    """All arguments of the engine's functions, but for ``drop_variables``."""


_DECODING = frozenset(Decoding.__annotations__)
_OPENING = frozenset(Opening.__annotations__)


class ZardineBackendEntrypoint(BackendEntrypoint):
    """Open what zardine opens: Zarr v1, v2 and v3; directories, ZIP archives, object stores, HTTP, fsspec."""

    description = "Open Zarr stores of every version, sharded ones fast and safely, using zardine"
    open_dataset_parameters: ClassVar[tuple[str, ...]] = ("drop_variables", *sorted(_DECODING | _OPENING))
    supports_groups: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether xarray takes this engine where the user names none.

        It does for groups and stores of zardine, and for ``*.zarr.zip``; for ``*.zarr`` only where the engine
        ``"zarr"`` is not installed, so that nothing changes for those who have it.
        """
        if isinstance(filename_or_obj, (Group, Store, StorePath)):
            return True
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fspath(filename_or_obj)
        if not isinstance(name, str):
            return False
        name = name.rstrip("/\\").lower()
        return name.endswith(".zarr.zip") or (name.endswith(".zarr") and "zarr" not in list_engines())

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: StoreLike | Group,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Unpack[Options],
    ) -> xr.Dataset:
        """Open one group: the arrays directly below it are the variables. See :class:`Opening` for what can be said.

        Nothing is read but documents of metadata. Raises :class:`~zardine.errors.GroupNotFoundError`,
        :class:`~zardine.errors.DimensionNamesError`, and what :func:`zardine.open_group` raises.
        """
        decoding, opening = _parted("open_dataset", options)
        group, mine = _open_group(filename_or_obj, opening)
        return _dataset(group, None, mine, drop_variables, decoding, opening)

    def open_datatree(  # type: ignore[override]
        self,
        filename_or_obj: StoreLike | Group,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Unpack[Options],
    ) -> xr.DataTree:
        """Open a group with all groups below it as one tree; else as :meth:`open_dataset`."""
        datasets = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        try:
            tree = xr.DataTree.from_dict(datasets)
        except BaseException:
            for dataset in datasets.values():
                dataset.close()
            raise
        for path, dataset in datasets.items():
            tree[path].set_close(dataset._close)
        return tree

    def open_groups_as_dict(  # type: ignore[override]
        self,
        filename_or_obj: StoreLike | Group,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Unpack[Options],
    ) -> dict[str, xr.Dataset]:
        """Open a group and all groups below it, each as a data set of its own, by path.

        Paths begin with ``/``; with ``group`` they are relative to that group, which is ``"."``.
        """
        decoding, opening = _parted("open_datatree", options)
        root, mine = _open_group(filename_or_obj, opening)
        relative = bool(normalize_path(opening.get("group") or ""))
        return {
            path or "." if relative else f"/{path}": _dataset(group, arrays, mine, drop_variables, decoding, opening)
            for path, group, arrays in _groups(root)
        }


def _parted(function: str, options: Mapping[str, Any]) -> tuple[Decoding, Opening]:
    """Return the options for xarray and those for us. Raises ``TypeError`` and ``ValueError`` for what is neither."""
    for name in options:
        if name not in _DECODING and name not in _OPENING:
            raise unknown_argument(function, name, _DECODING | _OPENING)
    if options.get("mode", "r") != "r":
        raise ValueError(f"the engine 'zardine' opens to read: mode is 'r', not {options['mode']!r}")
    if options.get("chunk_by", "shards") not in ("shards", "chunks"):
        raise ValueError(f"chunk_by is 'shards' or 'chunks', not {options['chunk_by']!r}")
    decoding = {name: value for name, value in options.items() if name in _DECODING}
    opening = {name: value for name, value in options.items() if name in _OPENING}
    return Decoding(**decoding), Opening(**opening)  # type: ignore[typeddict-item]


def _open_group(place: StoreLike | Group, opening: Opening) -> tuple[Group, bool]:
    """Return the group that the user means, and whether its store was opened for that.

    Consolidated metadata is looked for at the root first, which says what is below in one request.
    """
    inner = normalize_path(opening.get("group") or "")
    consolidated, zarr_format = opening.get("consolidated"), opening.get("zarr_format")
    if isinstance(place, Group):
        if opening.get("storage_options"):
            raise TypeError("storage_options are for paths and URLs, and a group is open already")
        if consolidated is None:
            return place.get_group(inner) if inner else place, False
        store, root = place.store, place.path
    else:
        if isinstance(place, (str, os.PathLike)):
            place = os.path.expanduser(place)
        elif _is_of_zarr_python(place):
            place = _in_our_place(place)
        store, root = find_place(
            place, mode="r", storage_options=opening.get("storage_options"), zarr_format=zarr_format
        )
    mine = isinstance(place, (str, os.PathLike))
    if inner and consolidated is not False:
        try:
            above = open_group(StorePath(store, root), mode="r", zarr_format=zarr_format)
        except GroupNotFoundError:
            above = None
        if above is not None and above.metadata.consolidated_metadata is not None:
            return above.get_group(inner), mine
    path = StorePath(store, join_path(root, inner))
    try:
        group = open_group(path, mode="r", zarr_format=zarr_format, use_consolidated=consolidated)
    except GroupNotFoundError as error:
        if isinstance(place, (str, os.PathLike)) and "://" not in str(place) and not os.path.exists(place):
            raise GroupNotFoundError(f"{printable(os.fspath(place))} does not exist: {error}") from None
        raise
    if consolidated is None and group.metadata.consolidated_metadata is None and not isinstance(store, ForeignStore):
        _warn_of_many_documents(group)
    return group, mine


def _warn_of_many_documents(group: Group) -> None:
    """Say that opening takes a request for each variable, as xarray's own engine does."""
    warn_user(
        "Failed to open Zarr store with consolidated metadata: the documents of all variables of "
        f"{describe(group.store, group.path)} are read one by one. zardine.consolidate_metadata(store) writes them "
        "into one, consolidated=False says that this is wanted, consolidated=True makes it an error",
        RuntimeWarning,
        through=("zardine", "xarray"),
    )


def _is_of_zarr_python(place: object) -> bool:
    module = sys.modules.get("zarr.abc.store")  # whoever has such a store has imported it
    return module is not None and isinstance(place, module.Store)


def _in_our_place(store: Any) -> Store:
    """Return zardine's store for the same place as a store of zarr-python."""
    try:
        return store_of(store)
    except UnknownToZardineError as error:
        raise UnsupportedError(f"{one_line(store)} cannot be opened here: {error}; give its path or URL") from None


def _groups(root: Group) -> Iterator[tuple[str, Group, dict[str, Array]]]:
    """Yield relative path, group and the arrays directly below it, for ``root`` and all groups below.

    Each document is asked for once.
    """
    waiting = [("", root)]
    while waiting:
        path, group = waiting.pop(0)
        members = dict(group.items())
        yield path, group, {name: node for name, node in members.items() if isinstance(node, Array)}
        below = [(join_path(path, name), node) for name, node in members.items() if isinstance(node, Group)]
        waiting = [*below, *waiting]


def _dataset(
    group: Group,
    arrays: Mapping[str, Array] | None,
    mine: bool,
    drop_variables: str | Iterable[str] | None,
    decoding: Decoding,
    opening: Opening,
) -> xr.Dataset:
    dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
    store = GroupDataStore(
        group,
        arrays,
        dropped=dropped,
        chunk_by=opening.get("chunk_by", "shards"),
        fill_is_mask=opening.get("use_zarr_fill_value_as_mask"),
        closes=mine,
    )
    try:
        return StoreBackendEntrypoint().open_dataset(store, drop_variables=dropped, **decoding)
    except BaseException:
        store.close()
        raise
