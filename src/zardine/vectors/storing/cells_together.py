"""Many cells at a time, one after the other in one piece of memory: out of shards in local folders by few calls.

The kernel does the usual case only: shards that are there, cells with checksums and no compression. All else is left to
the arrays of :mod:`zardine.nodes.array`, which also say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.engine.file_index import known_index
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES
from zardine.engine.read_elements import element_chain, element_lengths, join_elements, read_element_parts, sums_of
from zardine.errors import DataError
from zardine.frozen import with_fields
from zardine.nodes.array import Array
from zardine.sharding.index import MISSING
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import OpenFile, Store
from zardine.stores.file_seam import files_to_read, local_folder
from zardine.stores.wrappers.wrapper import WrapperStore
from zardine.vectors.format.ragged import starts_of, unique_numbers

T = TypeVar("T")

_MOST_SHARDS = 32
"""Files that are read in one call: half of those that are kept open."""
_MOST_NUMBERS = 2**62
"""Shards of a grid that have numbers."""
_OF_AN_ARRAY = 512
"""Bytes that are counted for what is known of an array."""
_spaces: Cache[tuple[str, str], tuple[ShardLayout, int]] = Cache(2**20)
"""Under which name indexes of shards are remembered, by folder and path of an array, and how its shards are made."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The bytes of some cells; cell ``c`` has ``lengths[c]`` of them, none where it is not stored."""

    data: bytearray
    lengths: Ints

    @classmethod
    def of(cls, cells: Sequence[bytes]) -> Cells:
        """Return the same cells one after the other."""
        return cls(bytearray().join(cells), np.fromiter(map(len, cells), np.int64, len(cells)))

    def apart(self) -> list[bytes]:
        """Return a byte string for each cell."""
        data, edges = memoryview(self.data), starts_of(self.lengths).tolist()
        return [bytes(data[a:b]) for a, b in pairwise(edges)]

    def take(self, some: npt.NDArray[np.bool_]) -> Cells:
        """Return those of ``some``, a truth value for each."""
        data, edges = memoryview(self.data), starts_of(self.lengths)
        parts = [data[a:b] for a, b in zip(edges[:-1][some].tolist(), edges[1:][some].tolist(), strict=True)]
        return Cells(bytearray().join(parts), self.lengths[some])

    def filled(self) -> Cells:
        """Return those that are stored."""
        return Cells(self.data, self.lengths[self.lengths > 0])


def share_indexes(array: Array) -> None:
    """Let an array in a local folder, just opened, use the indexes of shards that earlier openings of it have read.

    An index counts as long as its file is the same, in the same version.
    """
    handle = array._handle
    shard, store, path = handle.layout.uniform_shard, handle.store, handle.path
    while isinstance(store, WrapperStore):
        path = store._key(path)
        store = store.store
    folder = local_folder(store)
    if shard is None or folder is None:
        return
    place = folder, path
    known = _spaces.get(place)
    if known is not None and known[0] is shard:
        array._handle = with_fields(handle, cache_space=known[1])
    else:
        _spaces.put(place, (shard, handle.cache_space), _OF_AN_ARRAY)


def read_cells_together(array: Array, cells: Ints) -> Cells | None:
    """Cells ``(C, K)`` out of a few shards of a local folder; ``None`` where that is to be done in another way.

    Raises as :func:`~zardine.engine.freshness.check_fresh`.
    """
    found = find_cells_together([array], cells)
    read = None if found is None else found.read(0)
    return None if read is None else read[0]


@dataclass(frozen=True, slots=True, eq=False)
class FoundCells:
    """Where the cells of some arrays of one store are: in shards that are open, by indexes that were checked."""

    arrays: Sequence[Array]
    files: Sequence[OpenFile]
    keys: Sequence[Sequence[str]]
    """Of each array those of its shards."""
    places: Sequence[Ints]
    """Of each array what :func:`~zardine.engine.read_elements.join_elements` takes, one row for each cell."""
    sums: int

    def lengths(self, which: int) -> Ints:
        """How many bytes each cell of an array has, none where it is not stored."""
        return element_lengths(self.places[which], self.sums)

    def read(self, *which: int) -> list[Cells] | None:
        """Read the cells of some arrays; ``None`` where anything is unusual or wrong."""
        some = [self.places[each] for each in which]
        ends = [len(some[0]) * (number + 1) for number in range(len(some))]

        def read() -> list[Cells] | None:
            found = join_elements(self._fds(), np.concatenate(some), self.sums, ends)
            return None if found is None else [Cells(*each) for each in found]

        return self._whole(read)

    def read_parts(self, which: Sequence[int], sizes: Sequence[int], spans: Ints) -> list[bytearray] | None:
        """Read rows of the cells of some arrays, whose rows have ``sizes`` bytes; ``None`` as for :meth:`read`.

        ``spans`` ``(S, 3)``: the number of a cell, its first row that is wanted, and how many are.
        """
        some = [self.places[each] for each in which]
        return self._whole(lambda: read_element_parts(self._fds(), np.concatenate(some), sizes, spans, self.sums))

    def _fds(self) -> list[int]:
        return [file.fd for file in self.files]

    def _whole(self, read: Callable[[], T | None]) -> T | None:
        """What ``read`` gives, if nobody may have changed the files meanwhile; else their indexes are forgotten."""
        try:
            found = read()
            checked = all(each._handle.layout.is_checked for each in self.arrays)
            if found is not None and not (checked or all(file.is_unedited() for file in self.files)):
                return None
        except (DataError, MemoryError):
            found = None
        if found is None:
            _forget(self.arrays, self.keys)
        return found


def find_cells_together(arrays: Sequence[Array], cells: Ints) -> FoundCells | None:
    """Look where cells ``(C, K)`` of some arrays of one store are, all in shards of one form.

    ``None`` and errors as for :func:`read_cells_together`.
    """
    array, handle = arrays[0], arrays[0]._handle
    form = _form_of(array)
    if form is None or any(_form_of(each) != form for each in arrays[1:]):
        return None
    shape, sums = form[1], form[-1]
    shard = handle.layout.uniform_shard
    assert shard is not None
    in_shards = cells // np.asarray(shape)
    rows = (cells - in_shards * np.asarray(shape)) @ np.asarray(shard.strides)
    grid = [-(-length // size) for length, size in zip(array.shape, shape, strict=True)]
    if prod(grid) > _MOST_NUMBERS:
        return None
    shards, number = unique_numbers(np.ravel_multi_index(tuple(in_shards.T), grid), prod(grid))
    if len(shards) * len(arrays) > _MOST_SHARDS:
        return None
    where = list(zip(*(axis.tolist() for axis in np.unravel_index(shards, grid)), strict=True))
    keys = [each._handle.keys(where) for each in arrays]
    order = np.argsort(number, kind="stable")
    parts = np.split(rows[order], np.searchsorted(number[order], np.arange(1, len(shards))))
    places = []
    try:
        of_store = files_to_read(handle.store)
        files = None if of_store is None else of_store.keep_open(list(chain.from_iterable(keys)))
        if files is None:
            return None
        for which, each in enumerate(arrays):
            own = files[which * len(shards) : (which + 1) * len(shards)]
            table = _places_in(each._handle, keys[which], own, parts, order, number + which * len(shards))
            if table is None:
                return None
            places.append(table)
    except (DataError, MemoryError):
        _forget(arrays, keys)
        return None
    return FoundCells(arrays, files, keys, places, sums)


def _forget(arrays: Sequence[Array], keys: Sequence[Sequence[str]]) -> None:
    """Forget what was read of indexes of shards: it is not what is there, or was damaged."""
    for each, own_keys in zip(arrays, keys, strict=True):
        for key in own_keys:
            INDEXES.drop(each._handle.cache_space, key)


def is_read_together(array: Array) -> bool:
    """Whether cells of an array can be read so: they are in shards that are files, and not compressed."""
    return _form_of(array) is not None


def _form_of(array: Array) -> tuple[Store, tuple[int, ...], tuple[int, ...], bool, int] | None:
    """What arrays have in common whose cells are read together; ``None`` for those of which none are."""
    handle, shape = array._handle, array.shards
    encoded = element_chain(handle.layout)
    sums = None if encoded is None else sums_of(encoded)
    if shape is None or sums is None or handle.layout.uniform_shard is None:
        return None
    if handle.chunk_cache is not None or files_to_read(handle.store) is None:
        return None
    return handle.store, shape, array.shape, handle.config.read_missing_chunks, sums


def _places_in(
    handle: ArrayHandle, keys: Sequence[str], files: Sequence[OpenFile], rows: Sequence[Ints], order: Ints, number: Ints
) -> Ints | None:
    """Of each cell the number of its file, and offset and length there: ``(C, 3)``; ``None`` where they are unusual.

    ``rows``: those in the index of each shard, of the cells in this ``order``.
    """
    shard, encoded = handle.layout.uniform_shard, element_chain(handle.layout)
    assert shard is not None
    assert encoded is not None
    named = zip(keys, files, strict=True)
    indexes = [known_index(handle, shard, key, file, unlocked=False).index for key, file in named]
    check_fresh(handle)
    places = np.empty((len(order), 3), np.int64)
    places[:, 0] = number
    parts = list(zip(indexes, rows, strict=True))
    places[order, 1] = np.concatenate([index.offsets[some] for index, some in parts])
    places[order, 2] = np.concatenate([index.lengths[some] for index, some in parts])
    lengths = places[:, 2]
    if lengths.sum() > sum(file.size for file in files):
        return None  # cells that share bytes
    if not handle.config.read_missing_chunks and (lengths == MISSING).any():
        return None
    return None if lengths.max(initial=0) > encoded.most_stored() else places
