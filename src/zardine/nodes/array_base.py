"""What an array can tell about itself: its type and shape, how it is stored, and where; and what is stored of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any

import numpy as np

from zardine.codecs.base import ArrayBytesCodec, Codec
from zardine.codecs.chain import ChainParts, split_chain
from zardine.creation.options import ShapeLike
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.stored import count_stored_chunks, sizes_of, stored_keys
from zardine.hierarchy.find import names_of
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.stores.path import StorePath


class ArrayFacts:
    """The describing half of arrays and their awaitable faces; it changes nothing and looks at no store."""

    _handle: ArrayHandle

    # what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.metadata.shape

    @property
    def metadata(self) -> ArrayMetadata:
        """The metadata document."""
        return self._handle.layout.metadata

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements."""
        return self.metadata.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def fill_value(self) -> Any:
        """What elements read as that were never written; ``None`` where Zarr v2 or v1 leaves that undefined (``null``).

        Here they read then as the default of the data type: zero, false, empty, ``NaT``.
        """
        return self.metadata.fill_value

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes, where they have any."""
        return self.metadata.axis_names

    # how it is stored

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of the unit that is encoded: the inner chunk of a sharded array, the chunk of another one.

        Raises ``NotImplementedError`` for rectilinear grids without shards: see :attr:`read_chunk_sizes`.
        """
        sharding = self._handle.layout.sharding
        return self._grid_shape("chunks") if sharding is None else sharding.chunk_shape

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Shape of a shard (one stored object), or ``None`` for an array without shards."""
        return None if self._handle.layout.sharding is None else self._grid_shape("shards")

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each axis, the lengths of the chunks that are decoded, cut at the end of the array."""
        return tuple(axis.lengths() for axis in self._handle.layout.grids.chunks)

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each axis, the lengths of the stored objects (shards, or chunks), cut at the end of the array."""
        return tuple(axis.lengths() for axis in self._handle.layout.grids.storage)

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """Shape of the grid of chunks (inner chunks of a sharded array)."""
        return tuple(axis.count for axis in self._handle.layout.grids.chunks)

    @property
    def nchunks(self) -> int:
        """Number of chunks (inner chunks of a sharded array), stored or not."""
        return prod(self.cdata_shape)

    @property
    def nshards(self) -> int:
        """Number of stored objects that a full array has."""
        return prod(axis.count for axis in self._handle.layout.grids.storage)

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """The codec chain of stored objects, outermost."""
        return self._handle.layout.codecs

    @property
    def filters(self) -> tuple[Any, ...]:
        """The ``array -> array`` codecs of the inner chunks (or of the chunks, without shards).

        For Zarr v2 (and v1) those of the document, objects of numcodecs.
        """
        if self.metadata.older is not None:
            return self.metadata.filters or ()
        return self._inner_chain().filters

    @property
    def serializer(self) -> ArrayBytesCodec | None:
        """The ``array -> bytes`` codec of the inner chunks (or of the chunks); ``None`` for Zarr v2 and v1."""
        return None if self.metadata.older is not None else self._inner_chain().serializer

    @property
    def compressors(self) -> tuple[Any, ...]:
        """The ``bytes -> bytes`` codecs of the inner chunks (or of the chunks, without shards), checksums included.

        For Zarr v2 (and v1) the compressor of the document, an object of numcodecs, if it has one.
        """
        if self.metadata.older is not None:
            return () if self.compressor is None else (self.compressor,)
        return self._inner_chain().compressors

    @property
    def compressor(self) -> Any:
        """The compressor of a Zarr v2 (or v1) array, an object of numcodecs, or ``None``.

        Raises ``TypeError`` for arrays of v3, which have :attr:`compressors`.
        """
        if self.metadata.older is None:
            raise TypeError("compressor is a property of Zarr v2 arrays; this one has compressors")
        return self.metadata.compressor

    @property
    def order(self) -> str:
        """Memory layout of what reading returns; for Zarr v2 (and v1) arrays, that of the elements in chunks."""
        return self._handle.order

    @property
    def config(self) -> ArrayConfig:
        """How this process reads and writes the array."""
        return self._handle.config

    # where it is

    @property
    def store(self) -> Store:
        """The store."""
        return self._handle.store

    @property
    def path(self) -> str:
        """Path in the store, without slashes at its ends."""
        return self._handle.path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return f"/{self.path}"

    @property
    def basename(self) -> str:
        """Last part of the path; empty for an array at the root."""
        return self.path.rpartition("/")[2]

    @property
    def store_path(self) -> StorePath:
        """Store and path together."""
        return StorePath(self.store, self.path)

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self.store.read_only or self.is_draft

    @property
    def is_draft(self) -> bool:
        """Whether shards are stored in the dialect of the draft of March 2023, which is only read."""
        return self._handle.layout.is_draft

    def _inner_codecs(self) -> tuple[Codec, ...]:
        return self._handle.layout.chunk_codecs

    def _inner_chain(self) -> ChainParts:
        """Return the codecs of the inner chunks (or of the chunks) in the words of v3, whichever version it is."""
        return split_chain(self._inner_codecs())

    def _grid_shape(self, what: str) -> tuple[int, ...]:
        shape = self._handle.layout.object_shape
        if shape is None:
            raise NotImplementedError(
                f"{what} differ in shape: see read_chunk_sizes and write_chunk_sizes for those of each axis"
            )
        return shape


class StoredFacts(ArrayFacts, ABC):
    """What needs a look at the stored objects, and the shape that can be set."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis; setting it is :meth:`resize`."""
        return self.metadata.shape

    @shape.setter
    def shape(self, value: ShapeLike) -> None:
        self.resize(value)

    @abstractmethod
    def resize(self, new_shape: ShapeLike, *, erase: bool = True) -> None:
        """Change the shape."""

    @property
    def nchunks_initialized(self) -> int:
        """How many chunks (inner chunks of a sharded array) are stored. Reads the index of every shard."""
        return count_stored_chunks(self._handle)

    @property
    def nshards_initialized(self) -> int:
        """How many objects are stored."""
        return len(stored_keys(self._handle))

    def nbytes_stored(self) -> int:
        """Return bytes of all stored objects of this array, its metadata document included."""
        store = self.store
        documents = [join_path(self.path, name) for name in names_of(self.metadata)]
        return sizes_of(store, [*documents, *stored_keys(self._handle)])
