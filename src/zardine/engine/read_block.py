"""Reading a block that lies in one chunk of a local file: what interactive programs do most, without making a plan."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from zardine.engine.freshness import check_fresh
from zardine.engine.locate import known_index
from zardine.engine.source import ArraySource
from zardine.errors import DataError
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.sharding.index import MISSING


def read_block(source: ArraySource, selection: GridSelection, out: npt.NDArray[Any]) -> bool:
    """Fill ``out`` (of the selection's full shape), if the selection is a block of one stored chunk.

    ``False``: it is not, or something is wrong with what is stored. Then nothing of ``out`` counts, and
    :func:`~zardine.engine.read.read_plan` reads it, or says what is wrong.
    """
    layout, store = source.layout, source.store
    blocks, pipeline = layout.blocks, layout.pipeline
    if blocks is None or pipeline is None or source.chunk_cache is not None or not store.gives_files:
        return False
    coordinates, first, row = [], [], 0
    for each, size, ratio, stride in zip(selection.axes, blocks.chunk, blocks.per_object, blocks.strides, strict=True):
        if not isinstance(each, AxisSlice) or each.step != 1 or each.count == 0:
            return False
        chunk, begin = divmod(each.start, size)
        if begin + each.count > size:
            return False
        number, local = divmod(chunk, ratio)
        coordinates.append(number)
        first.append(begin)
        row += local * stride
    key = source.key(coordinates)
    file = store.open_file(key)
    if file is None:
        return False
    try:
        check_fresh(source)
        offset, length = 0, file.size
        if layout.uniform_shard is not None:
            known = known_index(source, layout.uniform_shard, key, file, settled=False)
            offset, length = int(known.offsets[row]), int(known.lengths[row])
        if length == MISSING or length > layout.chain(blocks.chunk).most_for_kernel():
            return False
        raw = out.view(f"V{out.dtype.itemsize}")
        failure = pipeline.decode_block(file.fd, offset, length, blocks.chunk, tuple(first), raw)
        return failure is None and (layout.is_checked or file.is_settled())
    except DataError:
        return False
    finally:
        file.close()
