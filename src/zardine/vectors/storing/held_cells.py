"""Cells in shards of local folders that a change holds: locked from before they are read until they are changed.

The kernel does the usual case only, as in :mod:`.extended_shards`. It then carries out the whole change by one call,
step by step as :mod:`.transactions` says; what it leaves is done there, from the step on that it came to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np

from zardine.buffers import Ints
from zardine.contexts import SureExit
from zardine.hierarchy.find import document_key
from zardine.kernel import KERNEL
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.v3 import serialize
from zardine.nodes.array import Array
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Version
from zardine.stores.late_closing import close_late, is_in_memory
from zardine.stores.local.store import LocalStore
from zardine.stores.open_files import version_from
from zardine.vectors.format.change_log import ChangeLog, encode_log
from zardine.vectors.storing.applying import to_change
from zardine.vectors.storing.cell_bytes import by_shard
from zardine.vectors.storing.extended_shards import ShardForm, form_of
from zardine.vectors.storing.logs import log_key

if TYPE_CHECKING:
    from zardine._kernel import HeldCells, NewFiles


@dataclass(frozen=True, slots=True, eq=False)
class AlikeShards:
    """Arrays of one level in a local folder, whose shards are of one form and have the same cells."""

    store: LocalStore
    path: str
    """Of the level."""
    arrays: Sequence[Array]
    shard: ShardLayout
    form: ShardForm
    closes: bool
    """Whether files are closed at once that have no names any more: no disk is to be waited for."""

    @classmethod
    def of(cls, path: str, arrays: Sequence[Array]) -> AlikeShards | None:
        """See whether arrays of the level at ``path`` are such."""
        store = arrays[0]._handle.store
        arrays = [to_change(array, store) for array in arrays]
        forms = [form_of(array) for array in arrays]
        shards = [array._handle.layout.uniform_shard for array in arrays]
        form, shard = forms[0], shards[0]
        if type(store) is not LocalStore or form is None or shard is None or any(each != form for each in forms[1:]):
            return None
        if any(each is None or (each.grid, each.strides) != (shard.grid, shard.strides) for each in shards[1:]):
            return None
        try:
            closes = is_in_memory(os.stat(f"{store.root}/{path}").st_dev)
        except OSError:
            return None
        return cls(store, path, arrays, shard, form, closes)

    def hold(self, cells: Ints) -> HeldChange | None:
        """Lock the shards of cells ``(C, K)`` and read them; ``None`` where anything is unusual, or wrong."""
        order, bounds, rows, objects = self.in_shards(cells)
        keys = self.keys(objects)
        number, repeats = len(cells), len(self.arrays)
        starts = [start + number * which for which in range(repeats) for start in bounds[:-1]]
        table = np.array([*starts, number * repeats]), np.array(rows * repeats), self.form[1], False, True
        held = HeldChange(self, number, order)
        try:
            if held._begin(keys, table):
                return held
        except BaseException:
            with held:
                raise
        with held:
            return None

    def keys(self, shards: Sequence[tuple[int, ...]]) -> list[str]:
        """The keys of the level's document, of the log of a change, and of shards: of one array after the other."""
        keys = [document_key(self.path), log_key(self.path)]
        for array in self.arrays:
            keys += array._handle.keys(shards)
        return keys

    def in_shards(self, cells: Ints) -> tuple[Ints | None, list[int], list[int], list[tuple[int, ...]]]:
        """The order of cells by their shards, if it is another one; bounds and rows of these; and the shards."""
        grid, strides = self.shard.grid, self.shard.strides
        if len(cells) == 1:
            place = list(zip(cells[0].tolist(), grid, strides, strict=True))
            row = sum(number % size * stride for number, size, stride in place)
            one = tuple(number // size for number, size, _ in place)
            return None, [0, 1], [row], [one]
        shards, order, bounds, rows = by_shard(cells, self.shard)
        return order, bounds.tolist(), rows.tolist(), list(map(tuple, shards.tolist()))


class HeldChange(SureExit):
    """Cells that were read, and are locked until they are changed, or let go. A context manager."""

    __slots__ = ("_cells", "_count", "_files", "_held", "_of", "_order")

    def __init__(self, of: AlikeShards, count: int, order: Ints | None) -> None:
        self._of = of
        self._files: NewFiles | None = None
        self._held: HeldCells | None = None
        self._cells: list[bytes] = []
        self._count = count
        self._order = order

    def _begin(self, keys: Sequence[str], table: tuple[Ints, Ints, int, bool, bool]) -> bool:
        """Lock the shards and read the cells of ``table``; whether all is usual."""
        assert KERNEL is not None
        of = self._of
        self._files = of.store.files.replace(keys, changing=True).__enter__()
        if self._files is None:
            return False
        found = KERNEL.hold_cells(self._files, table, self._count * len(of.arrays), of.form[0], of.form[2])
        if found is None:
            return False
        self._held, self._cells = found
        return True

    def cells(self, which: int) -> list[bytes]:
        """The cells of an array, in the order in which they were asked for; ``b""``: not stored."""
        some = self._cells[which * self._count : (which + 1) * self._count]
        if self._order is None:
            return some
        found = [b""] * self._count
        for place, cell in zip(self._order.tolist(), some, strict=True):
            found[place] = cell
        return found

    def change(
        self, log: ChangeLog, agreed: GroupMetadata, settled: GroupMetadata, version: Version
    ) -> tuple[bool, Version] | None:
        """Let the cells be what ``log`` says of the arrays, in their order, for who has locked the level's document.

        That is of this ``version``, becomes ``agreed`` and then ``settled``. Gives whether that is so, and the version
        that the document has then; ``None`` where nothing was agreed on. Nothing is held any more.
        """
        of, held = self._of, self._held
        assert held is not None
        values = list(chain.from_iterable(self._in_order(each.values) for each in log.cells.values()))
        try:
            contents = encode_log(log), serialize(agreed), serialize(settled)
            lock = of.store.files.held_lock(document_key(of.path))
            document, is_settled, closed = held.change(values, contents, version, lock, of.form[3], of.closes)
            for file in closed:
                close_late(file.detach())
            return None if document is None else (is_settled, version_from(*document))
        finally:
            self._exit(None)

    def _in_order(self, values: Sequence[bytes]) -> Sequence[bytes]:
        return values if self._order is None else [values[cell] for cell in self._order.tolist()]

    def __enter__(self) -> Self:
        return self

    def _exit(self, error: BaseException | None) -> None:
        if self._held is not None:
            self._held.__exit__()
        if self._files is not None:
            self._files.close()


__all__ = ["AlikeShards", "HeldChange"]
