"""New cells in local folders, which the kernel makes files of: those of many arrays by one call.

Cells that no document names cannot be read by anybody, and what a killed writer leaves of them is erased before the next
one begins: so files are made in place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.layout import ArrayLayout
from zardine.engine.read_elements import element_chain, sums_of
from zardine.engine.workers import in_background
from zardine.errors import StoreError
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Store
from zardine.stores.local.base_directory import BaseDirectory
from zardine.stores.local.many_files import make_cell_files
from zardine.stores.local.store import LocalStore
from zardine.vectors.format.pieces import Pieces

_Shards: TypeAlias = tuple[Sequence[int], Sequence[int], int, bool, bool]
NewCells: TypeAlias = tuple[bytes, Ints, tuple[BytesLike, Ints, Ints], int | None, _Shards | None]
"""The new cells of an array, as ``make_cell_files`` of the kernel takes them."""

_AT_ONCE = 2**20
"""Bytes of cells that are worth a call while more is planned."""

_UNDER_WAY = 2
"""Calls, while more is planned."""

_DOCUMENTS_AT_ONCE = 32
"""Whose directories are open together."""


def form_of_cells(layout: ArrayLayout) -> tuple[int, ShardLayout | None] | None:
    """Return how many checksums cells have that the kernel makes objects of, and their shards, if there are such.

    ``None`` for an array whose objects it does not make.
    """
    chain = element_chain(layout)
    sums = None if chain is None else sums_of(chain)
    if KERNEL is None or sums is None:
        return None
    if layout.sharding is None:
        return sums, None
    shard = layout.uniform_shard
    return None if shard is None or not shard.has_words else (sums, shard)


def new_cells(path: str, layout: ArrayLayout, cells: Ints, values: Pieces) -> NewCells | None:
    """Return the cells ``(C, K)`` of an array at ``path`` for the kernel; ``None`` where it does not make their objects."""
    form = form_of_cells(layout)
    if form is None or layout.key_form is None:
        return None
    sums, shard = form
    shards = None
    if shard is not None:
        shards = shard.grid, shard.strides, shard.count, shard.index_at_start, shard.has_checksum
    return _named(path, layout.key_form), np.ascontiguousarray(cells, np.int64), values.parts, sums, shards


def new_objects(path: str, form: str, coordinates: Ints, values: Pieces) -> NewCells:
    """Return objects of an array whose keys have this ``form``, as they are to be stored, for the kernel."""
    return _named(path, form), np.ascontiguousarray(coordinates, np.int64), values.parts, None, None


def _named(path: str, form: str) -> bytes:
    return os.fsencode(f"{path.replace('%', '%%')}/{form}" if path else form)


def make_cells(store: Store, path: str, arrays: Sequence[NewCells]) -> None:
    """Make the files of new cells below ``path`` of a local store. Raises :class:`~zardine.errors.StoreError`."""
    assert isinstance(store, LocalStore)
    try:
        for key, code in make_cell_files(BaseDirectory(str(store.root)), path, arrays, thread_count()):
            raise OSError(code, os.strerror(code), key)
    except OSError as error:
        raise StoreError(f"cannot write to {store}: {error}") from error


class CellFiles:
    """Makes the files of new cells below ``path`` of a local store, in another thread while the caller plans more.

    To be entered; when it is left no file is being made any more. Methods raise :class:`~zardine.errors.StoreError`.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._waiting: list[NewCells] = []
        self._size = 0
        self._under_way: deque[Callable[[], None]] = deque()
        self._is_over = False

    def add(self, cells: NewCells) -> None:
        """Have more files made; what they hold stays as it is until all are."""
        self._waiting.append(cells)
        self._size += int(cells[2][2].sum())
        if self._size >= _AT_ONCE:
            self.start()

    def start(self) -> None:
        """Have those made now that wait for more."""
        some, self._waiting, self._size = self._waiting, [], 0
        if not some:
            return
        if thread_count() == 1:
            self._make(some)
            return
        while len(self._under_way) >= _UNDER_WAY:
            self._under_way.popleft()()
        self._under_way.append(in_background(self._make, some))

    def finish(self) -> None:
        """Return when all files are made."""
        self.start()
        while self._under_way:
            self._under_way.popleft()()

    def _make(self, some: Sequence[NewCells]) -> None:
        if not self._is_over:
            make_cells(self._store, self._path, some)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        while self._under_way:
            with suppress(Exception):
                self._under_way.popleft()()


def put_documents(store: Store, documents: Sequence[tuple[str, bytes]]) -> None:
    """Store documents under these keys, one after the other, each in the place of what is there."""
    assert KERNEL is not None
    for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
        some = documents[start : start + _DOCUMENTS_AT_ONCE]
        with store.new_files([key for key, _ in some]) as files:
            left = range(len(some)) if files is None else KERNEL.put_files(files, [document for _, document in some])
        for number in left:
            store.set(*some[number])


__all__ = ["CellFiles", "NewCells", "form_of_cells", "make_cells", "new_cells", "new_objects", "put_documents"]
