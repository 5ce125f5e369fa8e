"""Changing how a store is sharded, in place: ``shard_store``, ``unshard_store``, ``reshard``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from zardine.buffers import Ints
from zardine.engine.side_by_side import each_begun
from zardine.errors import DataError
from zardine.hierarchy.find import load_group
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.vectors.changing.one_writer import alone_with_claim
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.format.layouts import ASKED, SHARDED_NOTE, Shards, cells_metadata, fitting_shards, shards_from
from zardine.vectors.reading.levels_together import tell_of_levels
from zardine.vectors.reading.looking_below import looked_below
from zardine.vectors.reading.presence import check_whole
from zardine.vectors.storing.cell_bytes import stored_sizes
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.conversion import convert_cells
from zardine.vectors.storing.level_nodes import NO_CELLS, cell_arrays
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.transactions import finish, settle

_OF_SHARDS = "sharding"
"""The key of the note in notes that are a table."""


def shard_store(
    path: StoreLike,
    shard_shape: Shards = 8,
    *,
    arrays: Collection[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Pack the cells of a store into shards of ``shard_shape`` cells (a number, or one for each axis).

    Every array with one cell for each chunk, on every level; with ``arrays``, those at these paths below their level.
    Along an axis a shard has no more cells than the grid, or 8 where the grid has fewer, so that stores can grow; an
    append that makes the grid larger uses as much of ``shard_shape`` as fits then. What is stored so already stays
    untouched; ``(1, 1, 1)`` is the same as :func:`unshard_store`. Compression and everything
    else of the documents stay as they are. Gives ``arrays_sharded``, ``chunks_packed`` and ``shard_shape``.

    Whoever is killed in the middle leaves a store that reads complete; the next call goes on. Others who write wait.
    ``progress`` is called with the number of arrays done, and of all. Raises
    :class:`~zardine.errors.DataError` for a shape that is none, or of more than 2^20 cells, and for ``arrays`` that
    are not there, and :class:`~zardine.errors.CorruptionError` for a cell that is listed and not stored, or off the
    grid, before anything is changed.
    """
    counts = convert_store(path, shard_shape, arrays, progress)
    return {"arrays_sharded": counts[0], "chunks_packed": counts[1], "shard_shape": shard_shape}


def unshard_store(
    path: StoreLike, *, arrays: Collection[str] | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Store each cell as an object of its own; gives ``arrays_unsharded`` and ``chunks_extracted``.

    Everything else as in :func:`shard_store`.
    """
    counts = convert_store(path, None, arrays, progress)
    return {"arrays_unsharded": counts[0], "chunks_extracted": counts[1]}


def reshard(
    path: StoreLike, shard_shape: Shards, *, arrays: Collection[str] | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """:func:`shard_store`, or for ``None`` :func:`unshard_store`."""
    if shard_shape is None:
        return unshard_store(path, arrays=arrays, progress=progress)
    return shard_store(path, shard_shape, arrays=arrays, progress=progress)


def is_sharded(path: StoreLike) -> bool:
    """Tell whether any array of the store is sharded."""
    return any(info["shard_shape"] is not None for info in get_shard_info(path).values())


def get_shard_info(path: StoreLike, *, sizes: bool = False) -> dict[str, dict[str, Any]]:
    """Tell of each array of cells, by its path: ``shard_shape``, ``grid_shape``, ``chunks`` and ``compressors``.

    With ``sizes`` also ``objects`` and ``nbytes``: how many objects (shards, or single cells) are stored, and how many
    bytes they have together. That lists all of them; without, documents alone are read. Where levels are made or
    removed meanwhile it is told again, as by :func:`zardine.vectors.describe_store`.
    """

    def tell(owner: VectorStore, levels: Sequence[Level], _: object) -> dict[str, dict[str, Any]]:
        each = each_begun(owner.store, partial(_shard_info, sizes), levels)
        return {name: facts for _, told in each for name, facts in told().items()}

    return tell_of_levels(path, tell)


def _shard_info(sizes: bool, level: Level) -> dict[str, dict[str, Any]]:
    """What :func:`get_shard_info` tells of a level."""

    def told(each: tuple[str, CellArray]) -> dict[str, Any]:
        array = each[1]
        facts = {
            "shard_shape": array.array.shards,
            "grid_shape": array.array.shape,
            "chunks": array.count(),
            "compressors": [codec.name for codec in array.array.compressors],
        }
        return {**facts, **dict(zip(("objects", "nbytes"), stored_sizes(array.array), strict=True))} if sizes else facts

    number, store = level.document.level, level.owner.store
    arrays = cell_arrays(looked_below(level, left_out=NO_CELLS))
    return {f"{number}/{name}": facts() for (name, _), facts in each_begun(store, told, arrays)}


@alone_with_claim
def convert_store(
    path: StoreLike,
    shard_shape: Shards,
    arrays: Collection[str] | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Give the arrays of a store other shards, or none (``None``); gives how many were converted, and their cells."""
    owner = VectorStore.open(path, writable=True)
    levels = owner.levels(owner.level_numbers())
    wanted = [shards_from(shard_shape, each.rank, lead=each.rank > owner.root.ndim) for each in levels]
    for level in levels:
        finish(level)
    there = [
        (name, array, shape)
        for level, shape in zip(owner.levels(owner.level_numbers()), wanted, strict=True)
        for name, array in cell_arrays(level)
    ]
    names = _names(arrays)
    unknown = sorted((names or set()) - {name for name, *_ in there}, key=str)
    if unknown:
        known = ", ".join(sorted({name for name, *_ in there}))
        raise DataError(f"{owner.name} has no array {unknown[0]!r} to shard; there are {known}")
    work = [each for each in there if names is None or each[0] in names]

    def whole(each: tuple[str, CellArray, Any]) -> Ints | None:
        _, array, shape = each
        return None if array.array.shards == fitting_shards(shape, array.array.shape) else check_whole(array)

    stored = [chunks() for _, chunks in each_begun(owner.store, whole, work)]
    if shard_shape is not None and any(wanted):
        _set_note(owner, sharded=True)
    changed = cells = 0
    for done, ((_, array, shape), chunks) in enumerate(zip(work, stored, strict=True)):
        convert_array(array, shape, chunks)
        changed, cells = changed + (chunks is not None), cells + (0 if chunks is None else len(chunks))
        if progress is not None:
            progress(done + 1, len(work))
    if arrays is None and not any(wanted):
        _set_note(owner, sharded=False)
    return changed, cells


def _names(arrays: Any) -> set[Any] | None:
    try:
        return None if arrays is None else {arrays} if isinstance(arrays, str) else set(arrays)
    except TypeError:
        raise DataError(f"arrays are names of arrays, not {arrays!r}") from None


def convert_array(array: CellArray, shard_shape: tuple[int, ...] | None, chunks: Ints | None) -> None:
    """Store an array, whose cells are those of ``chunks``, with shards of ``shard_shape`` as they fit.

    ``chunks`` is ``None`` if it is stored so: then its document says what was asked for at most.
    """
    store, path = array.array.store, array.array.path
    metadata = array.array.metadata
    fresh = cells_metadata(array.array.shape, array.layout.with_shards(shard_shape), {})
    if chunks is None:
        settle(store, path, metadata)
        if metadata.attributes.get(ASKED) != fresh.attributes.get(ASKED):
            update_node(store, path, metadata, lambda old: _asking(old, fresh))
        return
    like = _asking(replace(metadata, chunk_grid=fresh.chunk_grid, codecs=fresh.codecs), fresh)
    names = key_texts(chunks)
    if metadata.attributes.get(NONEMPTY) != names:
        like = like.with_attributes({**like.attributes, NONEMPTY: names})
    convert_cells(array, like, chunks)


def _asking(metadata: ArrayMetadata, fresh: ArrayMetadata) -> ArrayMetadata:
    """A document that says as ``fresh`` does which shards were asked for."""
    others = {name: value for name, value in metadata.attributes.items() if name != ASKED}
    return metadata.with_attributes({**others, **fresh.attributes})


def _set_note(owner: VectorStore, *, sharded: bool) -> None:
    """Say in the root's ``notes`` that the store is sharded, or no longer; what else they say stays."""
    group = load_group(owner.store, owner.path, 3)
    present = group.attributes.get("notes")
    wanted = _note_with(present) if sharded else _note_without(present)
    if wanted == present:
        return

    def change(old: GroupMetadata) -> GroupMetadata:
        others = {name: value for name, value in old.attributes.items() if name != "notes"}
        return old.with_attributes(others if wanted is None else {**others, "notes": wanted})

    update_node(owner.store, owner.path, group, change)


def _note_with(notes: Any) -> Any:
    """Return notes (a text, a list, a table; ``None``: there are none) that say that the store is sharded."""
    if notes is None:
        return SHARDED_NOTE
    if isinstance(notes, str):
        return notes if SHARDED_NOTE in notes else f"{notes}\n\n{SHARDED_NOTE}"
    if isinstance(notes, Mapping):
        return {**notes, _OF_SHARDS: SHARDED_NOTE}
    listed = list(notes) if isinstance(notes, list | tuple) else [notes]
    return listed if SHARDED_NOTE in listed else [*listed, SHARDED_NOTE]


def _note_without(notes: Any) -> Any:
    """Return notes without what :func:`_note_with` has added."""
    if isinstance(notes, str):
        return notes.removesuffix(SHARDED_NOTE).removesuffix("\n\n") or None
    if isinstance(notes, Mapping):
        return {name: each for name, each in notes.items() if (name, each) != (_OF_SHARDS, SHARDED_NOTE)}
    return [each for each in notes if each != SHARDED_NOTE] if isinstance(notes, list | tuple) else notes


__all__ = ["get_shard_info", "is_sharded", "reshard", "shard_store", "unshard_store"]
