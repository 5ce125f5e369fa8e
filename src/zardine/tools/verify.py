"""``zardine.verify``: every fault of what is stored, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each
from zardine.hierarchy.place import find_place
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.checking.consolidated import check_consolidated
from zardine.tools.checking.outside import drop_passing
from zardine.tools.checking.scan import scan_existing
from zardine.tools.checking.stored_object import Checked, StoredObject, check_object
from zardine.tools.report import Fault, Report

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

Progress: TypeAlias = Callable[[int, int], object]
"""Called with the number of objects that are done, and of all."""


def verify(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    deep: bool = True,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Look at all that is stored at and below a node, and report every fault with its place.

    Looks at documents of every version of Zarr, consolidated metadata, keys that belong to nothing, the index of each
    shard (size, checksum, bounds, overlaps), and every chunk: with ``deep`` it is decoded, else only sizes and
    checksums that are outermost are checked. Faulty data never raises an error. Nothing is written.

    ``progress`` is called with the number of objects done, and of all. About ``window_bytes`` of memory are used.
    Raises :class:`~zardine.errors.NodeNotFoundError` where nothing at all is stored.
    """
    found, inner = place_of(store, path, storage_options=storage_options)
    scanned = scan_existing(found, inner)
    drop_passing(found, scanned)
    scanned.faults += check_consolidated(scanned.nodes)
    scanned.faults += _store_faults(found)
    checked = check_objects(found, scanned.objects, deep=deep, progress=progress)
    return Report(
        faults=sort_faults(scanned.faults + [fault for each in checked for fault in each.faults]),
        notes=sort_faults(scanned.notes + [note for each in checked for note in each.notes] + _leftovers(found)),
        deep=deep,
        nodes=len(scanned.nodes),
        objects=len(scanned.objects),
        chunks=sum(each.chunks for each in checked),
        nbytes=sum(each.nbytes for each in checked),
    )


def place_of(
    node: StoreLike | Array | Group,
    path: str | None,
    *,
    writing: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """Store and path of what a tool was given: an opened node, or what names one."""
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

    place = node.store_path if isinstance(node, (Array, Group)) else node
    opened = isinstance(node, (Array, Group, Store))
    why = "this changes what is stored" + (": open it with mode='r+', or give its path" if opened else "")
    return find_place(place, path, mode="r+" if writing else None, storage_options=storage_options, why=why)


def check_objects(
    store: Store, objects: list[StoredObject], *, deep: bool, progress: Progress | None = None
) -> list[Checked]:
    """Look at many objects, several at a time."""
    threads = thread_count()
    at_once = max(1, min(len(objects), max(threads, 1 if store.gives_files else store.cost.requests)))
    most_bytes = max(2**20, window_bytes() // (2 * at_once))
    results: list[Checked] = [Checked()] * len(objects)
    done = 0
    guard = Lock()

    def work(number: int) -> None:
        nonlocal done
        results[number] = check_object(
            objects[number], deep=deep, most_bytes=most_bytes, threads=max(1, threads // at_once)
        )
        with guard:
            done += 1
            if progress is not None:
                progress(done, len(objects))

    for_each(work, range(len(objects)), len(objects), at_once)
    return results


def sort_faults(faults: list[Fault]) -> tuple[Fault, ...]:
    """By node, then key, then chunk."""
    return tuple(sorted(faults, key=lambda each: (each.place, each.key or "", each.chunk or ())))


def _store_faults(store: Store) -> list[Fault]:
    """What is wrong with the store as a whole, where it can tell."""
    faults = getattr(store, "faults", None)
    return [] if faults is None else [Fault("/", kind="torn", message=each) for each in faults()]


def _leftovers(store: Store) -> list[Fault]:
    """What writers that died have left behind, where the store can tell."""
    leftovers = getattr(store, "leftovers", None)
    if leftovers is None:
        return []
    message = "left behind by a writer that died: zardine.repair removes it"
    return [Fault("/", each, kind="leftover", message=message) for each in leftovers()]


__all__ = ["verify"]
