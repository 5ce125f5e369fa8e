"""Reading a block that lies in one chunk of a local file: what interactive programs do most, without making a plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import known_index
from zardine.errors import DataError
from zardine.indexing.block import Block
from zardine.sharding.index import MISSING


def read_block(handle: ArrayHandle, block: Block) -> Any:
    """Return the elements of ``block`` as an array of its shape, or the element, if they are in one stored chunk.

    ``None``: they are not, or something is wrong with what is stored. Then :func:`~zardine.engine.read.read_plan` reads
    them, or says what is wrong.
    """
    layout, store = handle.layout, handle.store
    chunks, pipeline = layout.blocks, layout.pipeline
    if chunks is None or pipeline is None or handle.chunk_cache is not None or not store.gives_files:
        return None
    plan = chunks.plan(block, layout.metadata.shape)
    if plan is None:
        return None
    key = handle.key(plan.object)
    file = store.open_file(key)
    if file is None:
        return None
    try:
        check_fresh(handle)
        offset, length = 0, file.size
        if layout.uniform_shard is not None:
            known = known_index(handle, layout.uniform_shard, key, file, unlocked=False)
            offset, length = int(known.index.offsets[plan.row]), int(known.index.lengths[plan.row])
        if length == MISSING or length > chunks.chain.most_for_kernel():
            return None
        out = np.empty(block.counts, chunks.dtype, order=handle.order)
        raw = out.view(f"V{out.dtype.itemsize}")
        failure = pipeline.decode_block(file.fd, offset, length, chunks.shape, plan.first, raw)
        if failure is not None or not (layout.is_checked or file.is_unedited()):
            return None
    except DataError:
        return None
    finally:
        file.close()
    return out if block.dropped is None else out[block.dropped]
