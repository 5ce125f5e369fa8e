"""Looking into the encoded bytes of one chunk, also where it is a shard itself or has codecs around a shard. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.gzip import GzipCodec
from zardine.codecs.numcodecs.checksums import NumcodecsChecksum
from zardine.codecs.sharding_indexed import PreparedSharding, ShardingCodec, prepared_sharding
from zardine.codecs.zstd import ZstdCodec
from zardine.engine.chunk_stack import sound_chunks
from zardine.engine.pipelines import make_pipeline
from zardine.errors import ChecksumError, ChunkTooLargeError, DataError
from zardine.tools.checking.index import check_entries, usable_rows
from zardine.tools.report import Flaw


def is_checksum(codec: BytesBytesCodec) -> bool:
    """Whether a codec does nothing but add a checksum."""
    return isinstance(codec, (Crc32cCodec, NumcodecsChecksum))


def is_seen(chain: CodecChain, *, deep: bool) -> bool:
    """Whether :func:`check_chunk` looks at the bytes of a chunk, or at their number alone."""
    return deep or any(map(is_checksum, chain.compressors[-1:])) or nested_sharding(chain) is not None


def check_chunk(chain: CodecChain, data: BytesLike, *, deep: bool) -> Iterator[Flaw]:
    """Yield everything that is wrong with the encoded chunk ``data``; nothing is raised, whatever the bytes are.

    ``deep``: decode it. Else only what can be told without decompressing is looked at: sizes, the checksums that
    are outermost, and the indexes of shards in it.
    """
    if chain.encoded_size is not None and len(data) != chain.encoded_size:
        yield Flaw("chunk", f"{len(data)} bytes are stored, every chunk takes {chain.encoded_size}")
        return
    try:
        for codec, limit in zip(reversed(chain.compressors), reversed(chain.limits), strict=True):
            if not deep and not is_checksum(codec):
                return
            data = codec.decode(data, limit.now())
        sharding = nested_sharding(chain, around=True)
        if sharding is not None:
            yield from check_shard(sharding, data, deep=deep)
        elif deep:
            chain.check_memory()
            array = chain.serializer.decode(data, chain.serializer_spec)
            for each, spec in reversed(chain.filters):
                array = each.decode(array, spec)
    except DataError as error:
        yield flaw_of(error)
    except MemoryError:
        yield Flaw("memory", f"there is not enough memory to decode it: its elements take {chain.memory} bytes")
    except Exception as error:  # codecs of others may raise anything
        yield Flaw("chunk", f"a codec failed: {type(error).__name__}: {error}")


def check_shard(sharding: PreparedSharding, shard: BytesLike, *, deep: bool) -> Iterator[Flaw]:
    """Yield everything that is wrong with a whole shard in memory: its index, and each of its inner chunks."""
    layout = sharding.layout
    try:
        index = layout.index_of(shard)
    except DataError as error:
        yield flaw_of(error)
        return
    for found in check_entries(index, layout, len(shard)):
        yield found if found.row is None else _inner(sharding, found.row, found)
    view = memoryview(shard)
    rows = usable_rows(index, layout, len(shard))
    places = np.zeros((len(rows), 3), np.int64)
    places[:, 1], places[:, 2] = index.offsets[rows], index.lengths[rows]
    sound = sound_chunks(_pipeline(sharding), sharding.chain, [shard], places, deep=deep)
    for row in rows[~sound].tolist():
        offset, length = int(index.offsets[row]), int(index.lengths[row])
        for found in check_chunk(sharding.chain, view[offset : offset + length], deep=deep):
            yield _inner(sharding, row, found)


def nested_sharding(chain: CodecChain, *, around: bool = False) -> PreparedSharding | None:
    """Return how the shard lies that the chunks of ``chain`` are; with ``around``, also where codecs are around it."""
    codec = chain.serializer
    if not isinstance(codec, ShardingCodec) or (chain.compressors and not around):
        return None
    return prepared_sharding(codec, chain.serializer_spec)


def is_checked(chain: CodecChain) -> bool:
    """Whether damage of a chunk's bytes is noticed."""
    sharding = nested_sharding(chain)
    own = any(_is_checked(codec) for codec in chain.compressors)
    return own or (sharding is not None and is_checked(sharding.chain))


def _is_checked(codec: BytesBytesCodec) -> bool:
    return is_checksum(codec) or isinstance(codec, GzipCodec) or (isinstance(codec, ZstdCodec) and codec.checksum)


def flaw_of(error: DataError) -> Flaw:
    """Return what an error says, as a flaw."""
    kind = "checksum" if isinstance(error, ChecksumError) else "chunk"
    if isinstance(error, ChunkTooLargeError):
        return Flaw("memory", error.reason, byte_range=error.byte_range)
    kind = "index" if "index" in error.reason else kind
    reason = error.reason if error.codec is None else f"{error.reason} (codec {error.codec})"
    return Flaw(kind, reason, byte_range=error.byte_range)


def _inner(sharding: PreparedSharding, row: int, found: Flaw) -> Flaw:
    layout = sharding.layout
    position = tuple(row // stride % count for stride, count in zip(layout.strides, layout.grid, strict=True))
    return Flaw(found.kind, f"inner chunk {position} of it: {found.message}", severity=found.severity)


@lru_cache(maxsize=64)
def _pipeline(sharding: PreparedSharding) -> Any:
    return make_pipeline(sharding.chain)
