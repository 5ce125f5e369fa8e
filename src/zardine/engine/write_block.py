"""Writing a small block into few local files: what loops and appends do most, without a plan.

The counterpart of :mod:`zardine.engine.read_block`. The kernel reads, changes and replaces the files in one call
(``rust/src/files/new_file.rs``). Whatever is unusual or wrong is left to :mod:`zardine.engine.write`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy.typing as npt

from zardine.engine.changed_files import is_usual, note_changed
from zardine.engine.freshness import Writing, known_document
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import Blocks
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import Block
from zardine.settings import thread_count
from zardine.stores.base import Condition, Store, Version
from zardine.stores.file_seam import StoreFiles
from zardine.stores.late_closing import close_late
from zardine.stores.open_files import version_from

if TYPE_CHECKING:
    from zardine._kernel import NewFiles

_MOST_FILES: Final = 32
"""Files that are changed in one call."""

_MOST_BYTES: Final = 2**20
"""Bytes of the elements of all chunks that a block touches, at most."""

_MOST_COPIED: Final = 2**26
"""The same of chunks that nothing compresses."""

_WORTH_THREADS: Final = 2**18
"""The same where one thread is enough."""


class Growth(NamedTuple):
    """What is to be done with the document of an array that a block makes larger."""

    key: str
    content: bytes
    """What it is to hold once the block is stored."""
    version: Version
    """Of what it holds so far."""
    keep: Callable[[Version], None]
    """Is told of the version that was stored, while the document is still locked."""
    undo: Callable[[], None]
    """Is called where only some of the block could be stored, while whoever waits for those who write still waits."""
    locked: Store | None
    """The store in which this thread has the document locked; ``None``: the kernel does so meanwhile, and undoes."""


def write_block(handle: ArrayHandle, block: Block, values: npt.NDArray[Any]) -> bool:
    """Store ``values``, of the block's counts, if that is the usual case; ``False``: it is not, or not all were stored.

    Then :func:`~zardine.engine.write.write_plan` stores them, or says what is wrong. Raises as
    :class:`~zardine.engine.freshness.Writing`.
    """
    chunks = handle.layout.blocks
    if chunks is None or _ends_in_chunk(chunks, block, handle.layout.metadata.shape):
        return False  # what lies beyond the array may have to give way
    of_store = handle.store.files
    found = None if of_store is None else _objects(handle, of_store, chunks, block)
    if of_store is None or found is None:
        return False
    objects, is_much = found
    keys, document = handle.keys(objects), known_document(handle)
    if document is None:
        with Writing(handle, beside=True), of_store.replace(keys, changing=True) as files:
            changed = None if files is None else _change(handle, chunks, block, values, files, is_much=is_much)[0]
    else:  # that is looked at, and the store told of this thread, by one call
        with of_store.replace(keys, changing=True, document=document) as files:
            changed = None if files is None else _change(handle, chunks, block, values, files, is_much=is_much)[0]
    return changed is not None and _note(handle, keys, changed)


def append_block(handle: ArrayHandle, block: Block, values: npt.NDArray[Any], growth: Growth) -> bool:
    """As :func:`write_block`, where the document of the array says nothing of the block yet: it is stored last.

    Others who have it locked, who wait for those that write, or have changed it, are not the usual case.
    """
    chunks = handle.layout.blocks
    of_store = handle.store.files
    if chunks is None or of_store is None:
        return False
    found = _objects(handle, of_store, chunks, block)
    if found is None:
        return False
    objects, is_much = found
    keys = handle.keys(objects)
    conditions = [Condition(growth.version), *[None] * len(keys)]
    with of_store.replace([growth.key, *keys], conditions=conditions, changing=True) as files:
        if files is None:
            return False
        changed, replaced = _change(handle, chunks, block, values, files, growth, is_much=is_much)
        if replaced is not None:
            growth.keep(version_from(*replaced[1]))
        elif growth.locked is None and any(changed):
            _note(handle, keys, changed)
            growth.undo()
            return False
    if replaced is not None and replaced[0] is not None:
        close_late(replaced[0].detach())
    _note(handle, keys, changed)
    return replaced is not None


def _objects(
    handle: ArrayHandle, of_store: StoreFiles, chunks: Blocks, block: Block
) -> tuple[list[tuple[int, ...]], bool] | None:
    """Return the objects that a block touches, where they can be files that are changed in one call.

    And whether that is so much to do that it is worth threads.
    """
    if not of_store.can_read or not is_usual(handle, chunks):
        return None
    place = chunks.locate(block)
    nbytes = chunks.nbytes if place is not None else chunks.nbytes * chunks.count(block)
    if nbytes > (_MOST_BYTES if chunks.is_compressed else _MOST_COPIED) or nbytes > window_bytes() // 4:
        return None
    if handle.layout.uniform_shard is not None and _holds_object(chunks, block):
        return None
    objects = [place[0]] if place is not None else chunks.objects(block, _MOST_FILES)
    return None if objects is None else (objects, nbytes > _WORTH_THREADS)


def _change(
    handle: ArrayHandle,
    chunks: Blocks,
    block: Block,
    values: npt.NDArray[Any],
    files: NewFiles,
    growth: Growth | None = None,
    *,
    is_much: bool,
) -> Any:
    """Have the kernel change files; gives what became of each, and of the document."""
    layout = handle.layout
    shard = layout.uniform_shard
    document = lock = None
    if growth is not None:
        document = growth.content, thread_count() if chunks.is_compressed else 1  # a copy is made in less time
        locked = None if growth.locked is None else growth.locked.files
        lock = None if locked is None else locked.held_lock(growth.key)
    return layout.pipeline.change_box(
        values.view(chunks.opaque),
        (chunks.shape, chunks.per_object, chunks.strides),
        block.starts,
        write_empty=handle.write_empty_chunks,
        threads=thread_count() if is_much else 1,
        files=files,
        most=chunks.chain.most_for_kernel(),
        shard=None if shard is None else (shard.count, shard.index_at_start, shard.has_checksum),
        document=document,
        lock=lock,
    )


def _note(handle: ArrayHandle, keys: Sequence[str], changed: Sequence[Any]) -> bool:
    """Note what the kernel says of files; whether it has changed all."""
    done = True
    for key, each in zip(keys, changed, strict=True):
        done = note_changed(handle, key, each) and done
    return done


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


__all__ = ["Growth", "append_block", "write_block"]
