"""Shards that are files of another format with an index behind them ("Binary shard format", "Other formats").

What such a file has besides the chunks was never named by an index, and yet it is not free: to drop it would destroy
the file for the programs that made it.
"""

from __future__ import annotations

from zardine.buffers import BytesLike
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout

HEAD = 8
"""Bytes at the start of a shard that tell."""

_SIGNATURES = (
    b"\x89HDF\r\n\x1a\n",
    *(b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    *(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    b"PK\x03\x04",
)
"""How files of HDF5, netCDF, TIFF and zip begin."""


def is_container(head: BytesLike, index: ShardIndex, layout: ShardLayout) -> bool:
    """Whether a shard that begins with ``head`` is a file of another format: its signature belongs to no chunk."""
    return bytes(head[:HEAD]).startswith(_SIGNATURES) and may_be_container(index, layout)


def may_be_container(index: ShardIndex, layout: ShardLayout) -> bool:
    """Whether the first bytes of a shard are of no chunk, nor of the index."""
    return not (layout.index_at_start or (index.stored() & (index.offsets < HEAD) & (index.lengths > 0)).any())
