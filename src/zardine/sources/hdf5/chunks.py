"""The chunks of an HDF5 data set: where they are in the file, and making those that are stored in another way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.errors import ChunkDecodeError, CorruptionError
from zardine.limits import check_size
from zardine.sources.foreign_store import Coordinates, Span
from zardine.sources.hdf5.elements import Elements, as_elements
from zardine.sources.hdf5.extensible import in_grid
from zardine.sources.hdf5.filters import Filter, encoded_length
from zardine.sources.hdf5.library import reading
from zardine.sources.stored_file import StoredFile


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set, and what its chunks are to be."""

    place: str
    """File and path, for error texts."""
    found: Any
    """``h5py.Dataset``."""
    elements: Elements
    shape: Coordinates
    blocks: Coordinates
    """The shape of chunks."""
    fill: npt.NDArray[Any]
    chain: CodecChain

    def make(self, coordinates: Coordinates) -> BytesLike:
        """Return a chunk as the codecs of the array leave it, of elements that h5py reads."""
        check_size(f"{self.place}: a chunk", prod(self.blocks) * self.chain.spec.data_type.dtype.itemsize)
        region = tuple(
            slice(i * size, max(i * size, min((i + 1) * size, length)))
            for i, size, length in zip(coordinates, self.blocks, self.found.shape, strict=True)
        )
        with reading(f"{self.place}: HDF5 cannot read it", ChunkDecodeError):
            values = self.found[region] if region else self.found[()]
        whole = np.empty(self.blocks, self.elements.data_type.dtype)
        whole[...] = self.fill
        whole[tuple(slice(0, each.stop - each.start) for each in region)] = as_elements(
            values, self.elements, self.place
        )
        return self.chain.encode(whole, write_empty=True)


class StoredChunks:
    """Chunks by the list that HDF5 keeps of them, which is read when the first one is asked for.

    ``direct``: chunks are what the codecs of the array leave, but for those where HDF5 left out a filter.
    """

    def __init__(
        self, dataset: Dataset, file: StoredFile, base: int, filters: Sequence[Filter], *, direct: bool
    ) -> None:
        self._dataset, self._file, self._base, self._direct = dataset, file, base, direct
        self._filters = filters
        self._guard = Lock()
        self._table: npt.NDArray[np.int64] | None = None
        counts = [-(-length // size) for length, size in zip(dataset.shape, dataset.blocks, strict=True)]
        self._counts = tuple(counts)

    def stored(self) -> Iterator[Coordinates]:
        """Yield grid coordinates of the chunks that are there."""
        for number in self._look()[:, 0]:
            yield self._coordinates(int(number))

    def find(self, coordinates: Coordinates) -> Span | BytesLike | None:
        """Return the range of a chunk in the file, or the chunk; ``None`` if it is not stored."""
        number = 0
        for i, count in zip(coordinates, self._counts, strict=True):
            if i >= count:
                return None
            number = number * count + i
        table = self._look()
        row = int(np.searchsorted(table[:, 0], number))
        if row == len(table) or table[row, 0] != number:
            return None
        _, offset, length, mask = table[row].tolist()
        if self._direct and mask == 0 and not self._may_be_bare(coordinates, length):
            return Span(offset, length)
        self._check_length(coordinates, length, mask)
        return self._dataset.make(coordinates)

    def _check_length(self, coordinates: Coordinates, length: int, mask: int) -> None:
        """Raise where a chunk has too few bytes: HDF5 gives what is in memory behind them."""
        if self._dataset.elements.text:  # elsewhere in the file
            return
        kept = [each for number, each in enumerate(self._filters) if not mask >> number & 1]
        wanted = encoded_length(kept, prod(self._dataset.blocks) * self._dataset.found.id.get_type().get_size())
        if wanted is not None and length != wanted and not self._may_be_bare(coordinates, length):
            raise CorruptionError(
                f"{self._dataset.place}: the chunk at {coordinates} of the grid has {length} bytes in the file, which "
                f"should be {wanted}"
            )

    def _may_be_bare(self, coordinates: Coordinates, length: int) -> bool:
        """Whether a chunk at the end of the array may be stored without filters, as HDF5 allows, and does not mark."""
        dataset = self._dataset
        ends = zip(coordinates, dataset.blocks, dataset.shape, strict=True)
        if not dataset.chain.compressors or all((i + 1) * size <= most for i, size, most in ends):
            return False
        return length == prod(dataset.blocks) * dataset.elements.data_type.dtype.itemsize

    def _coordinates(self, number: int) -> Coordinates:
        found = []
        for count in reversed(self._counts):
            number, i = divmod(number, count)
            found.append(i)
        return tuple(reversed(found))

    def _look(self) -> npt.NDArray[np.int64]:
        with self._guard:
            if self._table is None:
                self._table = self._read()
            return self._table

    def _read(self) -> npt.NDArray[np.int64]:
        blocks, listed = self._dataset.blocks, list[tuple[Coordinates, int, int, int]]()

        def note(info: Any) -> None:
            if any(start % size for start, size in zip(info.chunk_offset, blocks, strict=True)):
                raise CorruptionError(f"{self._dataset.place}: HDF5 lists a chunk at {info.chunk_offset}")
            if info.byte_offset is not None:
                coordinates = tuple(start // size for start, size in zip(info.chunk_offset, blocks, strict=True))
                offset = min(info.byte_offset, self._file.size)  # past the end: reading it will say so
                listed.append((coordinates, offset, info.size, info.filter_mask))

        with reading(f"{self._dataset.place}: HDF5 cannot list its chunks"):
            self._dataset.found.id.chunk_iter(note)
            told = in_grid(
                self._dataset.found,
                blocks,
                [coordinates for coordinates, *_ in listed],
                lambda number, content: any(self._holds(listed[number][1] + more, content) for more in (0, self._base)),
            )
        rows = []
        for coordinates, (_, *where) in zip(told, listed, strict=True):
            number = 0
            for i, count in zip(coordinates, self._counts, strict=True):
                if i >= count:
                    break  # of an array that was larger once
                number = number * count + i
            else:
                rows.append((number, *where))
        table = np.array(sorted(rows), np.int64).reshape(len(rows), 4)
        if (np.diff(table[:, 0]) == 0).any():
            raise CorruptionError(f"{self._dataset.place}: HDF5 lists a chunk twice")
        if len(table) and self._base and self._direct:
            table[:, 1] += self._shift(table[0])
        return table

    def _shift(self, row: npt.NDArray[np.int64]) -> int:
        """Return what to add to the offsets that the library tells: some releases count from the header of HDF5 on."""
        start = tuple(i * size for i, size in zip(self._coordinates(int(row[0])), self._dataset.blocks, strict=True))
        with reading(f"{self._dataset.place}: HDF5 cannot read its first chunk"):
            wanted = self._dataset.found.id.read_direct_chunk(start)[1]
        return 0 if self._holds(int(row[1]), bytes(wanted)) else self._base

    def _holds(self, offset: int, content: bytes) -> bool:
        """Whether certain bytes are at a place of the file."""
        length = len(content)
        return offset + length <= self._file.size and bytes(self._file.read([(offset, length)])[0]) == content


__all__ = ["Dataset", "StoredChunks"]
