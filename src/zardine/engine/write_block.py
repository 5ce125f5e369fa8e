"""Writing a small block into few local files: what loops and appends do most, without a plan.

The counterpart of :mod:`zardine.engine.read_block`. The kernel reads, changes and replaces the files in one call
(``rust/src/new_file.rs``). Whatever is unusual or wrong is left to :mod:`zardine.engine.write`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import numpy.typing as npt

from zardine.engine.changed_files import is_usual, note_changed
from zardine.engine.freshness import Writing
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import Blocks
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import Block
from zardine.settings import thread_count
from zardine.stores.base import Condition, Store, Version
from zardine.stores.late_closing import close_late
from zardine.stores.open_files import version_from

_MOST_FILES: Final = 32
"""Files that are changed in one call."""

_MOST_BYTES: Final = 2**20
"""Bytes of the elements of all chunks that a block touches, at most."""

_WORTH_THREADS: Final = 2**18
"""The same where one thread is enough."""


class Document(NamedTuple):
    """What a document is to hold once a block is stored."""

    key: str
    content: bytes
    version: Version
    """Of what it holds so far."""


Keep = Callable[[Version], None]
"""Is told of the version of the document that was stored, while it is still locked."""


def write_block(handle: ArrayHandle, block: Block, values: npt.NDArray[Any]) -> bool:
    """Store ``values``, of the block's counts, if that is the usual case; ``False``: it is not, or not all were stored.

    Then :func:`~zardine.engine.write.write_plan` stores them, or says what is wrong. Raises as
    :class:`~zardine.engine.freshness.Writing`.
    """
    return _write(handle, block, values)


def append_block(
    handle: ArrayHandle, block: Block, values: npt.NDArray[Any], document: Document, keep: Keep, locked: Store | None
) -> bool:
    """As :func:`write_block`, where the document of the array says nothing of the block yet: it is stored last.

    This thread has the document ``locked`` in that store; else the kernel does so meanwhile. Others who have it locked,
    who wait for those that write, or have changed it, are not the usual case.
    """
    return _write(handle, block, values, document, keep, locked)


def _write(
    handle: ArrayHandle,
    block: Block,
    values: npt.NDArray[Any],
    document: Document | None = None,
    keep: Keep | None = None,
    locked: Store | None = None,
) -> bool:
    layout, store = handle.layout, handle.store
    chunks = layout.blocks
    if chunks is None or not store.gives_files or not is_usual(handle, chunks):
        return False
    place = chunks.locate(block)
    nbytes = chunks.nbytes if place is not None else chunks.nbytes * chunks.count(block)
    if nbytes > _MOST_BYTES or nbytes > window_bytes() // 4:
        return False
    if document is None and _ends_in_chunk(chunks, block, layout.metadata.shape):
        return False  # what lies beyond the array may have to give way
    objects = [place[0]] if place is not None else chunks.objects(block, _MOST_FILES)
    shard = layout.uniform_shard
    if objects is None or (shard is not None and _holds_object(chunks, block)):
        return False
    keys = handle.keys(objects)
    names, conditions = keys, []
    if document is not None:
        names, conditions = [document.key, *keys], [Condition(document.version), *[None] * len(keys)]
    writing = nullcontext() if document is not None else Writing(handle, beside=True)
    with writing, store.new_files(names, conditions=conditions, changing=True) as files:
        if files is None:
            return False
        changed, replaced = layout.pipeline.change_box(
            values.view(chunks.opaque),
            (chunks.shape, chunks.per_object, chunks.strides),
            block.starts,
            write_empty=handle.write_empty_chunks,
            threads=thread_count() if nbytes > _WORTH_THREADS else 1,
            files=files,
            most=chunks.chain.most_for_kernel(),
            shard=None if shard is None else (shard.count, shard.index_at_start, shard.has_checksum),
            document=None if document is None else (document.content, thread_count()),
            lock=None if document is None or locked is None else locked._held_lock(document.key),
        )
        if replaced is not None and keep is not None:
            keep(version_from(*replaced[1]))
    if replaced is not None and replaced[0] is not None:
        close_late(replaced[0])
    done = [note_changed(handle, key, each) for key, each in zip(keys, changed, strict=True)]
    return replaced is not None if document is not None else all(done)


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


__all__ = ["Document", "append_block", "write_block"]
