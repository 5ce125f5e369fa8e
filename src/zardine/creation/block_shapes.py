"""Choosing shards for a new array that is written block by block, such as the chunks of a Dask array."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import Any

from zardine.creation.chunk_shapes import chunk_lengths, has_lists, side_by_side
from zardine.creation.options import is_word

_MOST_BYTES = 2**28
"""A block of more bytes than this becomes several shards, if it can be halved."""


def shapes_for_blocks(
    blocks: Sequence[Sequence[int]], item_size: int, chunks: Any, shards: Any, *, sharded: bool = True
) -> tuple[Any, Any]:
    """Return the ``chunks`` and ``shards`` of a new array of which each axis is written in ``blocks`` of these lengths.

    What the user says stays. Where it says ``"auto"``, a shard is one block, or as many of them side by side as about
    64 MiB hold, so that one task writes it; a block of more than 256 MiB is several shards, if its lengths are even.
    Inner chunks divide it evenly. Without shards a chunk is one block, if it is not given: with ``None``, where the
    format has none (not ``sharded``), and with ``chunks`` of differing lengths.
    """
    block = [max([1, *axis]) for axis in blocks]
    shape = tuple(sum(axis) for axis in blocks)
    if not is_word(shards, "auto") or not sharded:
        shards = None if is_word(shards, "auto") else shards
        return (tuple(block) if shards is None and is_word(chunks, "auto") else chunks), shards
    if has_lists(chunks):
        return chunks, None
    given = chunk_lengths(chunks, shape)
    inner = (1,) * len(block) if given is None else given
    common = [lcm(size, small) for size, small in zip(block, inner, strict=True)]
    if prod(common) * item_size > max(_MOST_BYTES, prod(block) * item_size):
        return chunks, shards  # they fit each other nowhere near
    block = common
    while prod(block) * item_size > _MOST_BYTES:
        even = [(size, -i) for i, size in enumerate(block) if size % (2 * inner[i]) == 0]
        if not even:
            break
        block[-max(even)[1]] //= 2
    return chunks, side_by_side(shape, block, item_size)
