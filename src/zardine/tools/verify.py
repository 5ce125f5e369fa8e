"""``zardine.verify``: every fault of what is stored, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.checking.consolidated import check_consolidated
from zardine.tools.checking.outside import drop_passing
from zardine.tools.checking.scan import scan_existing
from zardine.tools.checking.stored_object import check_objects
from zardine.tools.progress import Progress
from zardine.tools.report import Fault, Report, note, sort_faults

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


@dataclass(frozen=True, slots=True)
class Verification(Report):
    """What :func:`zardine.verify` found, and what it looked at. True where there are no faults."""

    deep: bool = True
    """Whether every chunk was decoded."""
    nodes: int = 0
    objects: int = 0
    """Stored chunks and shards looked at."""
    chunks: int = 0
    """Stored chunks, inner chunks of shards among them, looked at."""
    nbytes: int = 0
    """Bytes read of them."""


def verify(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    deep: bool = True,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Verification:
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
    return Verification(
        faults=sort_faults(scanned.faults + [fault for each in checked for fault in each.faults]),
        notes=sort_faults(scanned.notes + [note for each in checked for note in each.notes] + _leftovers(found)),
        deep=deep,
        nodes=len(scanned.nodes),
        objects=len(scanned.objects),
        chunks=sum(each.chunks for each in checked),
        nbytes=sum(each.nbytes for each in checked),
    )


def _store_faults(store: Store) -> list[Fault]:
    """Return what is wrong with the store as a whole, where it can tell."""
    return [Fault("/", kind="torn", message=each) for each in store.faults()]


def _leftovers(store: Store) -> list[Fault]:
    """Return what writers that died have left behind, where the store can tell."""
    message = "left behind by a writer that died: zardine.repair removes it"
    return [note("/", each, kind="leftover", message=message) for each in store.leftovers()]


__all__ = ["Verification", "verify"]
