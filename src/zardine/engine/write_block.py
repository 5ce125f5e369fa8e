"""Writing a small block into few local files: what loops and appends do most, without a plan.

The counterpart of :mod:`zardine.engine.read_block`. The kernel reads, changes and replaces the files in one call
(``rust/src/new_file.rs``). Whatever is unusual or wrong is left to :mod:`zardine.engine.write`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

import numpy.typing as npt

from zardine.engine.changed_files import is_usual, note_changed
from zardine.engine.freshness import Writing
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import Blocks
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import Block
from zardine.settings import thread_count
from zardine.stores.base import Version
from zardine.stores.open_files import version_from

_MOST_FILES: Final = 32
"""Files that are changed in one call."""

_MOST_BYTES: Final = 2**20
"""Bytes of the elements of all chunks that a block touches, at most."""

_WORTH_THREADS: Final = 2**18
"""The same where one thread is enough."""


Document = tuple[str, bytes, Version]
"""What a document is to hold once a block is stored: its key, that, and its version so far."""


def write_block(handle: ArrayHandle, block: Block, values: npt.NDArray[Any]) -> bool:
    """Store ``values``, of the block's counts, if that is the usual case; ``False``: it is not, or not all were stored.

    Then :func:`~zardine.engine.write.write_plan` stores them, or says what is wrong. Raises as
    :class:`~zardine.engine.freshness.Writing`.
    """
    return _write(handle, block, values, None, growing=False)[0]


def append_block(
    handle: ArrayHandle, block: Block, values: npt.NDArray[Any], document: Document | None
) -> tuple[bool, Version | None]:
    """As :func:`write_block`, for who holds the lock of the array's document, which says nothing of the block yet.

    Once all values are stored, ``document`` is, if it is still of its version; gives its new one then.
    """
    return _write(handle, block, values, document, growing=True)


def _write(
    handle: ArrayHandle, block: Block, values: npt.NDArray[Any], document: Document | None, *, growing: bool
) -> tuple[bool, Version | None]:
    layout, store = handle.layout, handle.store
    chunks = layout.blocks
    if chunks is None or not store.gives_files or not is_usual(handle, chunks):
        return False, None
    place = chunks.locate(block)
    nbytes = chunks.nbytes if place is not None else chunks.nbytes * chunks.count(block)
    if nbytes > _MOST_BYTES or nbytes > window_bytes() // 4:
        return False, None
    if not growing and _ends_in_chunk(chunks, block, layout.metadata.shape):
        return False, None  # what lies beyond the array may have to give way
    objects = [place[0]] if place is not None else chunks.objects(block, _MOST_FILES)
    shard = layout.uniform_shard
    if objects is None or (shard is not None and _holds_object(chunks, block)):
        return False, None
    keys = handle.keys(objects)
    first = [] if document is None else [document[0]]
    writing = nullcontext() if growing else Writing(handle, beside=True)
    with writing, store.new_files(first + keys, changing=True) as files:
        if files is None:
            return False, None
        changed, status = layout.pipeline.change_box(
            values.view(chunks.opaque),
            (chunks.shape, chunks.per_object, chunks.strides),
            block.starts,
            write_empty=handle.write_empty_chunks,
            threads=thread_count() if nbytes > _WORTH_THREADS else 1,
            files=files,
            most=chunks.chain.most_for_kernel(),
            shard=None if shard is None else (shard.count, shard.index_at_start, shard.has_checksum),
            document=None if document is None else (*document[1:], store._held_lock(document[0])),
        )
    done = [note_changed(handle, key, each) for key, each in zip(keys, changed, strict=True)]
    return all(done), None if status is None else version_from(*status)


def _holds_object(chunks: Blocks, block: Block) -> bool:
    """Whether an object lies in a block with all of its elements: of such one nothing is to be read."""
    for start, count, size, ratio in zip(block.starts, block.counts, chunks.shape, chunks.per_object, strict=True):
        span = size * ratio
        if -(-start // span) >= (start + count) // span:
            return False
    return True


def _ends_in_chunk(chunks: Blocks, block: Block, shape: tuple[int, ...]) -> bool:
    """Whether a block ends with the array, within a chunk that reaches beyond it."""
    for start, count, size, length in zip(block.starts, block.counts, chunks.shape, shape, strict=True):
        if length % size and start + count == length:
            return True
    return False


__all__ = ["append_block", "write_block"]
