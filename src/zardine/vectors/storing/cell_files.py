"""New cells in local folders, which the kernel makes files of: those of many arrays by one call.

Cells that no document names cannot be read by anybody, and what a killed writer leaves of them is erased before the
next one begins: so files are made in place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.layout import ArrayLayout
from zardine.engine.read_elements import element_chain, sums_of
from zardine.engine.workers import in_background
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_make, replace_files
from zardine.vectors.format.pieces import Pieces, RunPieces

_Shards: TypeAlias = tuple[Sequence[int], Sequence[int], int, bool, bool]
_Strings: TypeAlias = tuple[BytesLike, Ints, Ints] | tuple[BytesLike, Ints, Ints, Ints]
NewCells: TypeAlias = tuple[bytes, Ints, _Strings, int, _Shards | None]
"""The new cells of an array, as ``make_cell_files`` of the kernel takes them."""

_AT_ONCE = 2**20
"""Bytes of cells that are worth a call while more is planned."""

_UNDER_WAY = 4
"""Calls that wait, while more is planned."""

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


def new_cells(path: str, layout: ArrayLayout, cells: Ints, values: Pieces | RunPieces) -> NewCells | None:
    """Return cells ``(C, K)`` of an array at ``path`` for the kernel; ``None`` where it does not make their objects."""
    form = form_of_cells(layout)
    if form is None or layout.key_form is None:
        return None
    sums, shard = form
    shards = None
    if shard is not None:
        shards = shard.grid, shard.strides, shard.count, shard.index_at_start, shard.has_checksum
    keys = f"{path.replace('%', '%%')}/{layout.key_form}" if path else layout.key_form
    return os.fsencode(keys), np.ascontiguousarray(cells, np.int64), values.parts, sums, shards


def make_cells(store: Store, path: str, arrays: Sequence[NewCells]) -> None:
    """Make the files of new cells below ``path`` of a local store. Raises :class:`~zardine.errors.StoreError`."""
    with CellFiles(store, path) as files:
        files.make(arrays, thread_count())


class CellFiles:
    """Makes the files of new cells below ``path`` of a local store, in other threads while the caller plans more.

    Files are made by the kernel, without Python, and the caller does what else there is while all others are busy: so
    they do not wait for each other.

    To be entered; when it is left, no file is being made any more. Methods raise what went wrong so far, such as
    :class:`~zardine.errors.StoreError`.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._waiting: list[NewCells] = []
        self._size = 0
        self._lock = Lock()
        self._work: deque[Callable[[], None]] = deque()
        self._workers = 0
        self._ends: list[Callable[[], None]] = []
        self._errors: list[BaseException] = []
        assert KERNEL is not None
        self._crew = KERNEL.Crew()

    def make(self, arrays: Sequence[NewCells], threads: int) -> None:
        """Make files now, by so many threads at most. Raises :class:`~zardine.errors.StoreError`."""
        files = files_to_make(self._store)
        assert files is not None
        files.make_cells(self._path, arrays, threads, self._crew)

    def add(self, cells: NewCells) -> None:
        """Have more files made; what they hold stays as it is until all are."""
        self._waiting.append(cells)
        self._size += int(cells[2][2].sum())
        if self._size >= _AT_ONCE:
            self.start()

    def start(self) -> None:
        """Have those made now that wait for more: by all threads but the one that plans."""
        some, self._waiting, self._size = self._waiting, [], 0
        if some:
            self._add(partial(self.make, some, max(1, thread_count() - 1)))

    def call(self, work: Callable[[], None]) -> None:
        """Have something else done meanwhile; here and now, if nobody is free."""
        if self._workers < thread_count() - 1:
            self._add(work)
        else:
            self._raise()
            work()

    def _add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            is_new = self._workers < min(len(self._work), thread_count() - 1)
            self._workers += is_new
        if is_new:
            self._ends.append(in_background(self._run, True))
        if not self._workers or len(self._work) > _UNDER_WAY:
            self._do_one()
        self._raise()

    def finish(self) -> None:
        """Return when all is done."""
        some, self._waiting, self._size = self._waiting, [], 0
        if some:
            self._add(partial(self.make, some, thread_count()))
        while self._do_one():
            pass
        self._crew.help()  # who is still at something
        self._wait()
        self._raise()

    def _run(self, ends: bool) -> None:
        while self._do_one(ends=ends):
            pass
        self._crew.help()

    def _do_one(self, *, ends: bool = False) -> bool:
        """Do what waits longest; whether there was anything, and all went well so far. If not, a worker ``ends``."""
        with self._lock:
            work = self._work.popleft() if self._work and not self._errors else None
            if work is None:
                self._workers -= ends
                return False
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
        return True

    def _wait(self) -> None:
        while self._ends:  # also those that were waited for when Ctrl-C came
            self._ends[-1]()
            self._ends.pop()

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._work.clear()
        self._wait()


def put_documents(store: Store, documents: Sequence[tuple[str, bytes]]) -> None:
    """Store documents under these keys, each in the place of what is there."""
    assert KERNEL is not None
    for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
        some = documents[start : start + _DOCUMENTS_AT_ONCE]
        with replace_files(store, [key for key, _ in some]) as files:
            values = [document for _, document in some]
            left = range(len(some)) if files is None else KERNEL.put_files(files, values, thread_count())
        for number in left:
            store.set(*some[number])


__all__ = ["CellFiles", "NewCells", "form_of_cells", "make_cells", "new_cells", "put_documents"]
