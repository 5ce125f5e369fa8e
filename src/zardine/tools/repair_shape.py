"""Removing what lies beyond the shape of an array, as an append leaves it that was cut off before the array had grown.

The document is locked meanwhile, and read anew: an append that is under way is waited for, and none can begin.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace

from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.errors import CorruptionError
from zardine.hierarchy.find import document_key, load_array
from zardine.indexing.boxes import cut_box
from zardine.limits import CHUNK, limit_of, too_large
from zardine.nodes.resizing import put_fill
from zardine.stores.base import Store
from zardine.tools.checking.beyond_shape import NOTE, beyond, reaches_beyond
from zardine.tools.checking.scan import scan
from zardine.tools.checking.stored_object import StoredObject, check_object
from zardine.tools.hidden_keys import Keeper
from zardine.tools.report import Fault, Flaw

_MOST_BYTES = 2**26
"""Bytes of a shard that are looked at together."""


def remove_outside(store: Store, path: str, keeper: Keeper, actions: list[Fault]) -> None:
    """Erase stored objects outside of the grid of the array at ``path``, and those that no document names.

    Adds to ``actions`` what was done.
    """
    metadata = load_array(store, path)
    with nullcontext() if keeper.dry_run else store.lock(document_key(path, metadata)):
        scanned = scan(store, path)
        for fault in scanned.faults:
            if fault.kind not in ("outside", "unnamed") or fault.place != f"/{path}" or fault.key is None:
                continue
            old = store.read_up_to(fault.key, limit_of(CHUNK))
            if old is None:
                continue
            if not old.parts and keeper.keeps:
                raise too_large("the object, which is to be kept,", old.size, CHUNK).at(array=path, key=fault.key)
            if old.parts:
                actions += keeper.keep(store, path, fault.key, old)
            if not keeper.dry_run:
                store.erase_version(fault.key, old.version)
            why = "it was outside of the array" if fault.kind == "outside" else "no document named it"
            actions.append(replace(fault, kind="removed", message=why, severity="action"))


def clear_beyond(stored: StoredObject, keeper: Keeper) -> list[Fault]:
    """Put the fill value where an object has other values beyond the shape; gives what was done."""
    handle, key = stored.handle, stored.key
    store, path, metadata = handle.store, handle.path, handle.layout.metadata
    if not reaches_beyond(handle, stored.coordinates):
        return []
    with nullcontext() if keeper.dry_run else store.lock(document_key(path, metadata)):
        layout = prepare_layout(load_array(store, path, metadata.zarr_format))
        fresh = StoredObject(replace(handle, layout=layout), key, stored.coordinates)
        old = store.read_up_to(key, limit_of(CHUNK))
        noted = check_object(fresh, deep=True, most_bytes=_MOST_BYTES, threads=1).notes
        if old is None or not old.parts or not any(note.kind == NOTE.kind for note in noted):
            return []
        actions = keeper.keep(store, path, key, old)
        if not keeper.dry_run:
            _fill(fresh)
    message = "values beyond the shape of the array gave way to the fill value"
    return [
        *actions,
        fresh.fault(Flaw("cleared", message, severity="action")),
    ]


def _fill(stored: StoredObject) -> None:
    handle = stored.handle
    check_fresh(handle, writing=True, surely=True)
    layout = handle.layout
    axes = zip(layout.grids.storage, stored.coordinates, strict=True)
    whole = tuple(max(axis.length, axis.start(i) + axis.extent(i)) for axis, i in axes)
    uncut = layout.with_shape(replace(layout.metadata, shape=whole))
    target = ArrayHandle(handle.store, handle.path, uncut, ArrayConfig())
    for box in beyond(layout.grids.storage, stored.coordinates):
        try:
            put_fill(target, box)
        except CorruptionError:  # in one of the chunks: it stays as it is
            for part in cut_box(box, uncut.grids.chunks):
                with suppress(CorruptionError):
                    put_fill(target, part)
