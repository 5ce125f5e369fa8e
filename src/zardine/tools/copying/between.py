"""Arrays between: where elements wait that go from one grid to another by way of blocks that fit into memory.

They are raw, with a crc32c behind each piece; their documents are never stored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from zardine.chunk_grids.axis import Axis
from zardine.creation.v3 import new_array_metadata
from zardine.engine.handle import ArrayHandle
from zardine.errors import MetadataError
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.places import Place
from zardine.jobs.stages import BlockGrid
from zardine.jobs.work import Forecast
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.stores.zip.store import ZipStore
from zardine.tools.copying.blocks import Between
from zardine.tools.copying.counted_blocks import pieces_along, pieces_of


def pieces_read(first: BlockGrid, second: BlockGrid) -> int:
    """Return how many pieces of the blocks of a grid those of the following one read."""
    return prod(map(pieces_along, first.axes, second.axes))


def passage(array: ArrayHandle, first: BlockGrid, second: BlockGrid, nbytes: int) -> Forecast:
    """Return what it takes to write an array between in the blocks of a grid, and to read and erase it.

    It has ``nbytes`` bytes. What is stored of it are shards, whose indexes are read once, else the pieces.
    """
    pieces, shards = pieces_read(first, second), array.layout.sharding is not None
    objects = len(first) if shards else pieces
    requests = objects + len(first) * shards + -(-objects // array.store.erased_together) + pieces
    return Forecast(objects, requests, nbytes, nbytes)


def between_of(old: ArrayMetadata, between: Between, grids: Sequence[BlockGrid], *, encoded: bool) -> ArrayMetadata:
    """Return the metadata of an array between, which the blocks of the first of two grids write, and the others read.

    Its elements are those of ``old``, or ``encoded`` chunks.
    """
    first, second = grids
    shape = tuple(axis.length for axis in first.axes)
    chunks: Any = between.inner
    if not between.inner and shape:
        chunks = [_lengths(pieces_of(*axes)) for axes in zip(first.axes, second.axes, strict=True)]
    made = new_array_metadata(
        shape=shape,
        dtype="variable_length_bytes" if encoded else old.data_type,
        chunks=chunks,
        shards=between.block if between.inner else None,
        filters=None,
        compressors=None,
        checksum=True,
    )
    return made if encoded else replace(made, fill=old.fill)


def _lengths(axis: Axis) -> int | list[int]:
    return axis.runs[0][0] if axis.is_regular else list(axis.lengths())


def default_between(target: Place) -> Place:
    """Return where arrays between are, if the user says nothing else."""
    return Place(target.store, join_path(target.path, f"{HIDDEN}/between"), target.url)


def folder_between(store: Store, path: str) -> tuple[Store, str]:
    """Return where the arrays between are of what is made at a path: hidden there; beside a zip archive."""
    if isinstance(store, ZipStore):  # which does not give back room
        folder, name = os.path.split(store.path)
        return LocalStore(folder), join_path(f"{name}.between", path)
    return store, join_path(path, f"{HIDDEN}/between")


def can_be_between(target: ArrayMetadata) -> bool:
    """Whether the elements of an array can lie in one between: Python objects cannot."""
    ones = (1,) * target.ndim
    cut = BlockGrid.regular(target.shape, ones)
    try:
        between_of(target, Between(ones, ones), (cut, cut), encoded=False)
    except MetadataError:
        return False
    return True


__all__ = ["between_of", "can_be_between", "default_between", "folder_between", "passage", "pieces_read"]
