"""Opening what is stored, or creating it, by one call: the modes of the field.

``"r"`` read only, must exist; ``"r+"`` read and write, must exist; ``"a"`` read and write, created if it is missing;
``"w"`` created anew, what is there is erased; ``"w-"`` created, an error if something is there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Unpack

import numpy.typing as npt

from zardine.api.create import create
from zardine.engine.array_config import ArrayConfigLike, parse_array_config
from zardine.engine.freshness import moment, note_opened
from zardine.errors import ArrayNotFoundError, GroupNotFoundError, MetadataError, NodeNotFoundError, ZarrUserWarning
from zardine.hierarchy.ancestors import Above, look_for_new_group
from zardine.hierarchy.find import (
    UNFINISHED,
    Seen,
    as_array,
    as_group,
    describe,
    find_node,
    implied_group,
    older_document,
    refuse_unfinished,
    taken,
)
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, check_format, format_of_new
from zardine.nodes.argument_hints import unknown_argument, with_hints
from zardine.nodes.array import Array
from zardine.nodes.create_array import create_like
from zardine.nodes.group import Group, create_group, new_group
from zardine.nodes.older_arguments import refuse_chunk_store, warn_of_ignored
from zardine.nodes.options import OpenArrayOptions, OpenGroupOptions, OpenLikeOptions, OpenOptions
from zardine.shown_text import shown
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_read, local_folder
from zardine.stores.local.alike import name_meant
from zardine.stores.resolve import Mode, StoreLike


@with_hints
def open(
    store: StoreLike = None,
    *,
    mode: Mode | None = None,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfigLike = None,
    **kwargs: Unpack[OpenOptions],
) -> Array | Group:
    """Open the array or group at ``store`` (and ``path`` in it).

    Without ``mode`` what is there is opened for reading and writing, and :class:`~zardine.errors.NodeNotFoundError` is
    raised where nothing is. Only a ``mode`` of ``"a"``, ``"w"`` or ``"w-"`` creates something, or an argument for what
    is new: ``attributes`` a group, ``shape`` or ``data`` an array (see :func:`open_array`). A store in memory that
    begins with this call (``None``) gets a group.
    """
    check_format(zarr_format)
    found, inner = find_place(store, path, mode=mode, storage_options=storage_options, zarr_format=zarr_format)
    options: dict[str, Any] = dict(kwargs)
    if "shape" in options or options.get("data") is not None:
        return open_array(found, path=inner, mode=mode, config=config, zarr_format=zarr_format, **options)
    when, seen = moment(), Seen()
    above = look_for_new_group(found, inner, seen, zarr_format) if mode == "a" and not found.read_only else None
    wanted = options.get("use_consolidated") is not False
    node = None if mode in ("w", "w-") else find_node(found, inner, zarr_format, seen=seen, consolidated=wanted)
    if isinstance(node, ArrayMetadata):
        _check_arguments(options, open_array)
        refuse_unfinished(node, found, inner)
        _warn_of_two(found, inner, node, zarr_format, seen)
        return _opened(Array(found, inner, node, parse_array_config(config)), seen, when)
    if config is not None:
        raise TypeError(f"config says how an array is read and written, and {describe(found, inner)} is a group")
    try:
        if mode in ("w", "w-"):
            return open_group(found, path=inner, mode=mode, zarr_format=zarr_format, **options)
        _check_arguments(options, open_group)
        how: dict[str, Any] = {name: options.get(name) for name in ("attributes", "use_consolidated")}
        creating = store is None or how["attributes"] is not None
        return _open_found_group(
            found, inner, node, mode or ("a" if creating else "r+"), zarr_format, seen, above, **how
        )
    except GroupNotFoundError as error:
        text = str(error).replace("no group", "no array or group")
        if mode is None and not found.read_only and UNFINISHED not in text:
            text += "; mode='a' creates a group, shape and dtype an array"
        raise NodeNotFoundError(text) from None


@with_hints
def open_array(
    store: StoreLike = None,
    *,
    zarr_format: int | None = None,
    path: str | None = "",
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfigLike = None,
    mode: Mode | None = None,
    **kwargs: Unpack[OpenArrayOptions],
) -> Array:
    """Open an array; with ``mode`` ``"a"`` (the default), ``"w"`` or ``"w-"`` and a ``shape``, create it.

    ``kwargs`` are those of :func:`create`. Raises :class:`~zardine.errors.ArrayNotFoundError` where nothing is stored
    and no ``shape`` is given.
    """
    check_format(zarr_format)
    found, inner = find_place(store, path, mode=mode, storage_options=storage_options, zarr_format=zarr_format)
    settings = parse_array_config(config)
    _check_arguments(kwargs, open_array)
    creating = "shape" in kwargs or kwargs.get("data") is not None
    if mode in ("w", "w-"):
        if not creating:
            raise TypeError(f"mode {mode!r} creates an array: give its shape and dtype, or data")
        kwargs["overwrite"] = mode == "w"
        return create(store=found, path=inner, config=settings, zarr_format=zarr_format, **kwargs)
    when, seen = moment(), Seen()
    node = find_node(found, inner, zarr_format, expected="array", seen=seen)
    if isinstance(node, ArrayMetadata) and not kwargs.get("overwrite"):
        refuse_unfinished(node, found, inner)
        _warn_of_two(found, inner, node, zarr_format, seen)
        return _opened(Array(found, inner, node, settings), seen, when)
    if mode in (None, "a") and creating:
        return create(store=found, path=inner, config=settings, zarr_format=zarr_format, **kwargs)
    try:
        metadata = as_array(node, found, inner, zarr_format, seen=seen)
        return _opened(Array(found, inner, metadata, settings), seen, when)
    except ArrayNotFoundError as error:
        if mode in (None, "a") and not found.read_only:
            raise ArrayNotFoundError(f"{error}{_alike(found, inner)}; give shape and dtype to create one") from None
        raise ArrayNotFoundError(f"{error}{_alike(found, inner)}") from None


@with_hints
def open_group(
    store: StoreLike = None,
    *,
    mode: Mode | None = "a",
    cache_attrs: bool | None = None,
    synchronizer: object = None,
    path: str | None = None,
    chunk_store: StoreLike = None,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, Any] | None = None,
    use_consolidated: bool | None = None,
) -> Group:
    """Open a group, or create it (``mode`` ``"a"``, ``"w"``, ``"w-"``).

    ``use_consolidated``: ``True`` wants consolidated metadata and raises ``ValueError`` without; ``False`` passes over
    it and looks at each node; ``None`` uses it where it is.
    """
    check_format(zarr_format)
    warn_of_ignored(cache_attrs=cache_attrs, synchronizer=synchronizer, meta_array=meta_array)
    refuse_chunk_store(chunk_store)
    found, inner = find_place(store, path, mode=mode, storage_options=storage_options, zarr_format=zarr_format)
    if mode == "w":
        return create_group(found, path=inner, overwrite=True, attributes=attributes, zarr_format=zarr_format)
    seen, above = Seen(), None
    if mode in (None, "a") and not found.read_only:
        above = look_for_new_group(found, inner, seen, zarr_format)
    node = find_node(
        found,
        inner,
        None if mode == "w-" else zarr_format,
        expected="group",
        seen=seen,
        consolidated=use_consolidated is not False,
        is_new=mode == "w-",
    )
    if mode == "w-":
        node = implied_group(found, inner, seen=seen) if node is None else node
        if node is not None:
            raise taken(found, inner, node)
        return create_group(found, path=inner, attributes=attributes, zarr_format=zarr_format)
    return _open_found_group(
        found, inner, node, mode, zarr_format, seen, above, attributes=attributes, use_consolidated=use_consolidated
    )


def _open_found_group(
    found: Store,
    inner: str,
    node: NodeMetadata | None,
    mode: Mode | None,
    zarr_format: int | None,
    seen: Seen,
    above: Above | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    use_consolidated: bool | None = None,
) -> Group:
    try:
        metadata = as_group(node, found, inner, zarr_format, seen=seen)
    except GroupNotFoundError as error:
        if mode not in (None, "a") or found.read_only:
            raise GroupNotFoundError(f"{error}{_alike(found, inner)}") from None
        return new_group(
            found, inner, zarr_format=zarr_format, attributes=attributes, is_free=seen.is_free, above=above
        )
    _warn_of_two(found, inner, metadata, zarr_format, seen)
    if use_consolidated and metadata.consolidated_faults:
        raise MetadataError(
            f"the consolidated metadata of {describe(found, inner)} are broken: zardine.consolidate_metadata makes "
            "them anew, and use_consolidated=None reads the documents of the nodes",
            metadata.consolidated_faults,
        )
    if use_consolidated and metadata.consolidated_metadata is None:
        raise ValueError(
            f"the metadata of {describe(found, inner)} is not consolidated: see consolidate_metadata, or open it with "
            "use_consolidated=None"
        )
    if use_consolidated is False:
        metadata = metadata.with_consolidated(None)
    return Group(found, inner, metadata)


def _alike(store: Store, path: str) -> str:
    """Return which name may be meant where nothing is; empty if none is like it."""
    folder = local_folder(store)
    if folder is None:
        return ""
    place = os.path.join(folder, path)
    meant = None if os.path.exists(place) else name_meant(place)
    return f"; did you mean {meant!r}?" if meant else ""


def open_consolidated(
    store: StoreLike, *, use_consolidated: bool = True, mode: Mode = "r+", **kwargs: Unpack[OpenGroupOptions]
) -> Group:
    """Open a group whose metadata is consolidated. Raises ``ValueError`` where it is not."""
    if use_consolidated is not True:
        raise TypeError("open_consolidated is for use_consolidated=True; use open_group for anything else")
    return open_group(store, mode=mode, use_consolidated=True, **kwargs)


def open_like(
    a: npt.ArrayLike, path: str, *, zarr_format: int | None = None, **kwargs: Unpack[OpenLikeOptions]
) -> Array:
    """Open the array at ``path``, or create it there like ``a``.

    ``path`` is a path in ``store`` if that is given, else a store itself. ``mode`` is that of :func:`open_array`, by
    default ``"a"``; the other ``kwargs`` are those of :func:`create_array`. ``zarr_format`` is that of what is opened
    or created: if it is left out, any is opened, and the default one (see ``default_zarr_format``) created.
    """
    options: dict[str, Any] = dict(kwargs)
    mode = options.pop("mode", None)
    store, inner = options.pop("store", None), path
    if store is None:
        store, inner = path, ""
    if mode not in ("w", "w-"):
        try:
            return open_array(store, path=inner, mode=mode, zarr_format=zarr_format)
        except ArrayNotFoundError:
            if mode in ("r", "r+"):
                raise
    if mode in ("w", "w-"):
        options["overwrite"] = mode == "w"
    return create_like(store, a, name=inner, zarr_format=format_of_new(zarr_format), **options)


def group(
    store: StoreLike = None,
    *,
    overwrite: bool = False,
    chunk_store: StoreLike = None,
    cache_attrs: bool | None = None,
    synchronizer: object = None,
    path: str | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Open the group at ``store``, or create it there; with ``overwrite`` what is there is erased.

    ``cache_attrs``, ``synchronizer`` and ``meta_array`` have no effect, and a warning says so.
    """
    warn_of_ignored(cache_attrs=cache_attrs, synchronizer=synchronizer, meta_array=meta_array)
    return open_group(
        store,
        mode="w" if overwrite else "a",
        path=path,
        chunk_store=chunk_store,
        zarr_format=zarr_format,
        attributes=attributes,
        storage_options=storage_options,
    )


def _warn_of_two(store: Store, path: str, node: NodeMetadata, zarr_format: int | None, seen: Seen) -> None:
    """Say so where a node is stored in Zarr v3 and in v2 and nobody said which is wanted, if to look costs nothing."""
    if seen.is_alone:
        return
    if zarr_format is None and node.zarr_format == 3 and files_to_read(store) and older_document(store, path):
        warnings.warn(
            f"{shown(describe(store, path))} is stored in Zarr v3 and in Zarr v2: v3 is opened; zarr_format=2 opens "
            "the other",
            ZarrUserWarning,
            stacklevel=3,
        )


def _opened(array: Array, seen: Seen, when: tuple[float, int]) -> Array:
    """Return ``array``, whose documents were asked for at that moment, with what was ``seen`` of the first."""
    note_opened(array._handle, seen.version, array.metadata, when)
    return array


def _check_arguments(kwargs: Mapping[str, Any], called: Callable[..., Any]) -> None:
    """Refuse arguments that ``called`` (or :func:`create`, for arrays) does not have, also where it is not called."""
    if not kwargs:
        return
    known = {*(called.__kwdefaults__ or ())}
    if called is open_array:
        known |= signature(create).parameters.keys()
    for name in kwargs:
        if name not in known:
            raise unknown_argument(called.__name__, name, known)


__all__ = ["group", "open", "open_array", "open_consolidated", "open_group", "open_like"]
