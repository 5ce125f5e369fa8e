"""``zardine.compact``: shards without unused space, their inner chunks in a wanted order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.freshness import Writing
from zardine.engine.read_ahead import window_bytes
from zardine.engine.read_index import read_index
from zardine.engine.update_shard import condition_of
from zardine.engine.whole_shard import read_whole_shard
from zardine.engine.workers import for_each
from zardine.errors import ConditionFailedError, CorruptionError, DataError, NodeNotFoundError, StoreError
from zardine.hierarchy.find import describe
from zardine.limits import no_memory
from zardine.settings import thread_count
from zardine.sharding.containers import HEAD, is_container
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.attempts import attempts
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.checking.chunk import flaw_of
from zardine.tools.checking.scan import scan_existing
from zardine.tools.checking.stored_object import StoredObject
from zardine.tools.progress import Progress, Steps
from zardine.tools.report import Fault, Outcome, sort_faults

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


_ORDERS = ("c", "f", "morton")
_UNKNOWN = ("document", "unknown", "store")
"""Kinds of faults of documents: what shards there are below them is not known."""


@dataclass(frozen=True, slots=True)
class Compaction(Outcome):
    """What :func:`zardine.compact` did. True where no shard was left out for being damaged."""

    shards: int
    """Shards looked at."""
    rewritten: int
    bytes_before: int
    """Of all shards looked at."""
    bytes_after: int
    faults: tuple[Fault, ...]
    """Shards that were left as they are (see :func:`zardine.repair`), and documents that cannot be read."""

    @property
    def bytes_won(self) -> int:
        """How much smaller the shards are."""
        return self.bytes_before - self.bytes_after

    @property
    def ok(self) -> bool:
        """Whether no shard was left out for being damaged."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**Outcome.to_dict(self), "bytes_won": self.bytes_won}


def compact(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    order: str | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Compaction:
    """Drop unused space in the shards at and below a node, without decoding anything.

    ``order`` (``"c"``, ``"f"`` or ``"morton"``) puts the inner chunks of each shard into that order; without, they stay
    in the order they have. Shards that are so already are not written. Each is locked while it is replaced, in one
    step and only if nobody has written it since. A shard that is a file of another format (HDF5, netCDF, TIFF, zip)
    with an index behind it is left as it is. A few shards at a time are in memory. Damaged ones are left as they are
    and listed; shards within inner chunks are not looked into. Raises
    :class:`~zardine.errors.NodeNotFoundError` where no node is stored.
    """
    if order not in (None, *_ORDERS):
        raise ValueError(f"order is 'c', 'f', 'morton' or None, not {order!r}")
    found, inner = place_of(store, path, writing=True, storage_options=storage_options)
    scanned = scan_existing(found, inner)
    faults = [each for each in scanned.faults if each.kind in _UNKNOWN]
    if not scanned.nodes and not faults:
        raise NodeNotFoundError(f"no array or group is stored at {describe(found, inner)}")
    objects = [each for each in scanned.objects if each.handle.layout.sharding is not None]
    sizes = np.zeros((len(objects), 2), np.int64)
    written = 0
    guard = Lock()
    advance = Steps(progress, len(objects))

    def work(number: int) -> None:
        nonlocal written
        fault = None
        before = after = 0
        try:
            before, after, is_new = _compact(objects[number], order)
        except (DataError, StoreError, MemoryError) as error:
            if isinstance(error, MemoryError) and not isinstance(error, DataError):
                error = no_memory("the shard", objects[number].handle.layout.object_nbytes)
            is_new = False
            reason = flaw_of(error) if isinstance(error, DataError) else None
            message = f"{error if reason is None else reason.message}: left as it is"
            is_damaged = isinstance(error, CorruptionError)
            message += "; zardine.repair saves what can be read of it" if is_damaged else ""
            stored = objects[number]
            kind = "index" if is_damaged else "memory" if reason else "store"
            fault = Fault(f"/{stored.handle.path}", stored.key, kind=kind, message=message)
        with guard:
            sizes[number] = before, after
            written += is_new
            if fault is not None:
                faults.append(fault)
        advance()

    largest = max((each.handle.layout.object_nbytes for each in objects), default=1)
    at_once = max(1, min(thread_count(), window_bytes() // (2 * max(1, largest))))
    for_each(work, range(len(objects)), len(objects), at_once)
    return Compaction(len(objects), written, int(sizes[:, 0].sum()), int(sizes[:, 1].sum()), sort_faults(faults))


def _compact(stored: StoredObject, order: str | None) -> tuple[int, int, bool]:
    """Return bytes of the shard before and after, and whether it was written."""
    store, key = stored.handle.store, stored.key
    layout = stored.handle.layout.shard(stored.coordinates)
    assert layout is not None
    for last in attempts():
        try:
            with Writing(stored.handle), store.lock(key):
                found = read_index(store, key, layout)
                if found is None:
                    return 0, 0, False
                index, size = found.index, found.size
                if stored.handle.layout.is_draft or _is_packed(index, layout, size, order):
                    return size, size, False
                whole = read_whole_shard(store, key, layout, stored.handle.layout.chain_of(stored.coordinates))
                if whole is None or whole.version != found.version:
                    raise ConditionFailedError(f"key {key!r} of {store} changed while it was read")
                head = whole.data if len(whole.data) == size else _read(stored, (0, HEAD))
                if is_container(head, index, layout):
                    return size, size, False
                shard = _pack(whole.data, whole.index, layout, order)
                store.set(key, shard, condition=condition_of(store, key, whole, keeps_others=True))
                return size, len(shard), True
        except ConditionFailedError:
            if last:
                raise
    raise AssertionError("unreachable")


def _read(stored: StoredObject, part_range: tuple[int, int]) -> BytesLike:
    part = stored.handle.store.read(stored.key, (part_range,))
    return b"" if part is None else part.parts[0]


def _is_packed(index: ShardIndex, layout: ShardLayout, size: int, order: str | None) -> bool:
    after, _, packed_size = _packed_index(index, layout, _row_order(index, layout, order))
    if size != packed_size:
        return size < packed_size  # ranges that overlap in part would have to be written twice
    return bool((after.offsets == index.offsets).all())


def _row_order(index: ShardIndex, layout: ShardLayout, order: str | None) -> Ints:
    """Return rows of the stored inner chunks in ``order``, or (``None``) in that of their bytes."""
    rows = np.flatnonzero(index.stored())
    if order is None:
        return rows[np.lexsort((rows, index.offsets[rows]))]
    return rows[np.argsort(chunk_ranks(layout.grid, layout.strides, order)[rows])]


def _packed_index(index: ShardIndex, layout: ShardLayout, rows: Ints) -> tuple[ShardIndex, list[int], int]:
    """Return the index of a shard that holds its inner chunks one after the other in the order of ``rows``.

    Ranges that several inner chunks share stay shared. Gives the rows whose bytes are written, too, and the size of
    the whole shard.
    """
    after = empty_index(layout.count)
    written = []
    places: dict[tuple[int, int], int] = {}
    position = layout.index_size if layout.index_at_start else 0
    for row in rows.tolist():
        old = int(index.offsets[row]), int(index.lengths[row])
        if old not in places:
            places[old] = position
            position += old[1]
            written.append(row)
        after.offsets[row], after.lengths[row] = places[old], old[1]
    return after, written, position + (0 if layout.index_at_start else layout.index_size)


def _pack(shard: BytesLike, index: ShardIndex, layout: ShardLayout, order: str | None = None) -> bytes:
    """Return the same inner chunks, undecoded, in ``order``, without unused space."""
    after, written, _ = _packed_index(index, layout, _row_order(index, layout, order))
    view = memoryview(shard)
    encoded = layout.encode_index(after)
    chunks = [view[int(index.offsets[row]) : int(index.offsets[row]) + int(index.lengths[row])] for row in written]
    return b"".join((encoded, *chunks) if layout.index_at_start else (*chunks, encoded))


__all__ = ["Compaction", "compact"]
