"""Cells that go into their shards in local folders: behind what is there, many shards by one call of the kernel.

The kernel does the usual case only: shards that are there and whole, that nobody has locked, cells with checksums and
no compression. All else is left to the arrays of :mod:`zardine.nodes.array`, which also say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.engine.handle import ArrayHandle
from zardine.engine.kernel_writes import note_changed
from zardine.engine.read_elements import element_chain, sums_of
from zardine.kernel import KERNEL
from zardine.nodes.array import Array
from zardine.sharding.layout import ShardLayout
from zardine.stores.file_seam import replace_files
from zardine.vectors.storing.cell_bytes import by_shard

_MOST_INDEX: Final = 4 * 2**20
"""Bytes of an index that the kernel reads, of which it makes a few copies: a document may say anything."""

_FOLDERS: Final = 64
_FILES: Final = 256
"""Shards that are extended together, and folders that these are in, beside those above them: the files of those that
are made anew are open until that is noted."""

Change = tuple[Array, Ints, Sequence[bytes]]
"""An array, cells ``(C, K)`` of it, and what each is to hold."""
ShardForm = tuple[int, int, int, float]
"""What shards have in common that one call extends: checksums, rows of an index, longest chunk, share left unused."""


@dataclass(frozen=True, slots=True)
class _Extension:
    """What goes into the shards of an array."""

    number: int
    """Of the change."""
    handle: ArrayHandle
    order: Ints
    """Of the cells, by their shards."""
    bounds: Ints
    """Where the cells of each shard start in that, and in all."""
    rows: Ints
    """Of each cell, in this order, in the index of its shard."""
    keys: list[str]
    values: list[bytes]


def extend_shards(changes: Sequence[Change]) -> list[Ints]:
    """Put cells into the shards of arrays of one store, empty ones out of them; those of one form by one call.

    Gives of each change the numbers of the cells that are still to do. For who looks after the documents of the arrays,
    and writes into shards of which all that is there stays.
    """
    left = [np.arange(len(values)) for _, _, values in changes]
    forms: dict[ShardForm, list[_Extension]] = {}
    last: tuple[ShardLayout, Ints, _Order] | None = None
    for number, (array, cells, values) in enumerate(changes):
        form, shard = form_of(array), array._handle.layout.uniform_shard
        if form is None or shard is None or not len(values):
            continue
        same = last is not None and (last[0].grid, last[0].strides) == (shard.grid, shard.strides)
        if last is None or not same or not np.array_equal(last[1], cells):
            last = shard, cells, by_shard(cells, shard)  # arrays of vertices change in the same cells
        shards, order, bounds, rows = last[2]
        keys = array._handle.keys(map(tuple, shards.tolist()))
        some = [values[cell] for cell in order.tolist()]
        forms.setdefault(form, []).append(_Extension(number, array._handle, order, bounds, rows, keys, some))
    for form, extensions in forms.items():
        for each, undone in zip(extensions, _extend(form, extensions), strict=True):
            bounds = each.bounds
            left[each.number] = np.sort(
                np.concatenate([each.order[:0], *(each.order[bounds[which] : bounds[which + 1]] for which in undone)])
            )
    return left


_Order = tuple[Ints, Ints, Ints, Ints]
"""What :func:`~zardine.vectors.storing.cell_bytes.by_shard` gives."""


def form_of(array: Array) -> ShardForm | None:
    """The form of the shards of an array; ``None`` for those that are not extended here."""
    handle = array._handle
    layout, config = handle.layout, handle.config
    chain, shard = element_chain(layout), layout.uniform_shard
    sums = None if chain is None else sums_of(chain)
    if KERNEL is None or chain is None or sums is None or shard is None:
        return None
    if not shard.has_words or not shard.has_checksum or shard.index_at_start or handle.write_empty_chunks:
        return None
    if shard.index_memory > _MOST_INDEX or handle.is_shared or config.write_strategy != "append":
        return None
    most = chain.most_for_kernel()
    return None if most < 0 else (sums, shard.count, most, config.most_unused)


def _extend(form: ShardForm, extensions: Sequence[_Extension]) -> list[list[int]]:
    """Extend shards of one form; gives of each array the numbers of those that are still to do."""
    assert KERNEL is not None
    sums, count, most, unused = form
    store = extensions[0].handle.store
    keys = [key for each in extensions for key in each.keys]
    values = [value for each in extensions for value in each.values]
    before = accumulate([0, *(len(each.values) for each in extensions)])
    starts = [each.bounds[:-1] + number for each, number in zip(extensions, before, strict=False)]
    bounds, rows = np.concatenate([*starts, [len(values)]]), np.concatenate([each.rows for each in extensions])
    owners = ((each, which) for each in extensions for which in range(len(each.keys)))
    undone: dict[int, list[int]] = {each.number: [] for each in extensions}
    for some in _portions(keys):
        edges = bounds[some.start : some.stop + 1]
        first, last = int(edges[0]), int(edges[-1])
        table = edges - first, rows[first:last], count, False, True
        with replace_files(store, keys[some.start : some.stop], changing=True) as files:
            if files is None:
                done: Sequence[Any] = [None] * len(some)
            else:
                done = KERNEL.extend_shards(values[first:last], sums, table, files, most, unused)
        for told, (each, which) in zip(done, islice(owners, len(some)), strict=True):
            if not note_changed(each.handle, each.keys[which], told):
                undone[each.number].append(which)
    return list(undone.values())


def _portions(keys: Sequence[str]) -> Iterator[range]:
    """Yield runs of shards that are extended together: so many folders of them, and files, may be open at a time."""
    start, folders = 0, set[str]()
    for number, key in enumerate(keys):
        folder = key.rpartition("/")[0]
        if number - start == _FILES or (len(folders) == _FOLDERS and folder not in folders):
            yield range(start, number)
            start, folders = number, set()
        folders.add(folder)
    yield range(start, len(keys))


__all__ = ["ShardForm", "extend_shards", "form_of"]
