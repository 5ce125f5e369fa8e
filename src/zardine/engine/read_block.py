"""Reading a block that lies in one chunk, or in few local files: what interactive programs do most, without a plan.

Out of files that the store keeps open, if it has files; what lies in one chunk also out of decoded chunks that are
kept, or of what one request gives. Whatever is unusual or wrong is left to :mod:`zardine.engine.read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zardine.engine.chunk_cache import ChunkCache
from zardine.engine.fetching import fetch_each
from zardine.engine.file_index import known_index
from zardine.engine.freshness import check_fresh, document_to_look_at, known_document
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import Blocks, one_chunk
from zardine.engine.locate import FoundChunks, find_chunks
from zardine.engine.read_ahead import read_together
from zardine.errors import DataError
from zardine.indexing.block import Block, BlockPlan
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.stores.file_seam import StoreFiles

if TYPE_CHECKING:
    from zardine._kernel import UniformGrid


def read_block(handle: ArrayHandle, block: Block) -> Any:
    """Return the elements of ``block`` as an array of its shape, or the element, if they are easily found.

    ``None``: they are not, or something is wrong with what is stored. Then :func:`~zardine.engine.read.read_plan` reads
    them, or says what is wrong.
    """
    layout, store = handle.layout, handle.store
    chunks, pipeline = layout.blocks, layout.pipeline
    if chunks is None or chunks.grid is None or pipeline is None:
        return None
    most = chunks.chain.most_for_kernel()
    if most < 0:
        return None
    try:
        files = store.files
        if files is not None and files.can_read and handle.chunk_cache is None:
            read = _read_named if layout.sharding is None else _read_kept
            return read(handle, files, chunks, chunks.grid, block, most)
        place = chunks.locate(block)
        if place is None:
            return None
        objects, row, first = place
        key = handle.key(objects)
        out = _new_result(handle, chunks, block)
        if handle.chunk_cache is not None:
            inner = tuple([slice(start, start + count) for start, count in zip(first, block.counts, strict=True)])
            done = _copy_kept(handle.chunk_cache, handle, key, row, out, inner or ...)
        else:
            plan = chunks.plan(block, layout.metadata.shape, place)
            done = plan is not None and _decode_stored(handle, chunks, key, plan, out, most)
    except (DataError, MemoryError):
        return None
    if not done:
        return None
    return out if block.dropped is None else out[block.dropped]


def _new_result(handle: ArrayHandle, chunks: Blocks, block: Block) -> npt.NDArray[Any]:
    try:
        return np.empty(block.counts, chunks.dtype, order=handle.order)
    except ValueError:  # what NumPy says of more than 2^63 bytes
        raise MemoryError from None


_MOST_FILES = 32
"""Files that are read in one call: half of those that are kept open."""

_MOST_INDEX = 2**16
"""Bytes of the index of a shard that is read whenever the shard is."""

_MOST_BYTES = 2**26
"""Bytes of the elements of all chunks that are read in one call out of shards that are not kept open."""

_ALONE = 2**16
"""Bytes that one thread copies by itself."""


def _read_named(
    handle: ArrayHandle, files: StoreFiles, chunks: Blocks, grid: UniformGrid, block: Block, most: int
) -> Any:
    """Return the elements of a block that lies in files which the kernel opens and closes: chunks, or shards."""
    layout = handle.layout
    shard = layout.uniform_shard
    if layout.sharding is not None:
        if shard is None or not shard.has_words or shard.is_chunk is not None or shard.index_size > _MOST_INDEX:
            return None
        if chunks.nbytes * chunks.count(block) > _MOST_BYTES:
            return None
    form = None if handle.key_form is None else files.path_form(handle.key_form)
    if form is None:
        return None
    out = _new_result(handle, chunks, block)
    document = known_document(handle)
    assert KERNEL is not None
    of_shards = None if shard is None else (shard.count, shard.index_at_start, shard.has_checksum)
    failure = layout.pipeline.decode_box(
        KERNEL.ObjectFiles(form.below, form.path, of_shards),
        grid,
        block.starts,
        out.view(chunks.opaque),
        most=most,
        missing=handle.config.read_missing_chunks,
        threads=thread_count() if chunks.is_compressed or out.nbytes > _ALONE else 1,
        document=document,
        is_checked=layout.is_checked,
    )
    if document is None or failure is not None:
        check_fresh(handle)  # after all of them were opened: they belong to the document that is there now
    if failure is not None:
        return None
    return out if block.dropped is None else out[block.dropped]


def _read_kept(
    handle: ArrayHandle, of_store: StoreFiles, chunks: Blocks, grid: UniformGrid, block: Block, most: int
) -> Any:
    """Return the elements of a block that lies in few shards, each a file that is kept open.

    When all is read, the kernel looks whether files and document are still what they were when they became known; if
    not, they are looked up.
    """
    layout = handle.layout
    shard = layout.uniform_shard
    place = chunks.locate(block)
    objects = chunks.objects(block, _MOST_FILES) if place is None else [place[0]]
    if shard is None:
        return None
    if objects is None:
        return _read_named(handle, of_store, chunks, grid, block, most)
    keys = handle.keys(objects)
    out = _new_result(handle, chunks, block)
    for look in (False, True):
        files = of_store.keep_open(keys, sparing=True, look=look)
        if files is None:
            return _read_named(handle, of_store, chunks, grid, block, most)
        document = document_to_look_at(handle, look=look)
        try:
            found = []
            for key, file in zip(keys, files, strict=True):
                index = known_index(handle, shard, key, file, unlocked=False).index
                found.append((file.known, index.offsets, index.lengths))
        except DataError:
            if look:
                raise
            continue  # perhaps of a file that was edited since it was opened
        failure = layout.pipeline.decode_box(
            found,
            grid,
            block.starts,
            out.view(chunks.opaque),
            most=most,
            missing=handle.config.read_missing_chunks,
            threads=thread_count() if place is None else 1,
            document=document,
            is_checked=layout.is_checked,
        )
        if failure is None:
            return out if block.dropped is None else out[block.dropped]
    return None


def _copy_kept(cache: ChunkCache, handle: ArrayHandle, key: str, row: int, out: npt.NDArray[Any], inner: Any) -> bool:
    kept = cache.get(key, row)
    if kept is None:
        return False
    if not handle.store.is_unchanged(key, kept.version):
        cache.drop(key, row)  # so that this is not asked again, which is a request far away
        return False
    check_fresh(handle)
    out[...] = kept.chunk[inner]
    return True


def _decode_stored(
    handle: ArrayHandle, chunks: Blocks, key: str, plan: BlockPlan, out: npt.NDArray[Any], most: int
) -> bool:
    fetched: list[FoundChunks] = []
    among = read_together(1)

    def fetch(_: int) -> None:
        fetched.append(find_chunks(handle, plan, key, files=False, whole=False, together=among))

    fetch_each(handle, (plan,), (key,), fetch, 1)
    (found,) = fetched
    if handle.store.has_cheap_looks or not found.unchanged:
        check_fresh(handle)
    source = found.buffers[int(found.within[0])] if found.buffers else b""
    grid = one_chunk(chunks.shape)
    if grid is None:
        return False
    failure = handle.layout.pipeline.decode_box(
        [(source, found.offsets, found.lengths)],
        grid,
        plan.first,
        out.view(chunks.opaque),
        most=most,
        missing=handle.config.read_missing_chunks,
        threads=1,
    )
    return failure is None


__all__ = ["read_block"]
