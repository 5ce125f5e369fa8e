"""Where chunks are that HDF5 lists at wrong coordinates: those of "extensible arrays".

That is the index of a data set of which one axis has no end, in files of version 1.10 and later. HDF5 numbers its
chunks with that axis first, and lists them (``H5Dchunk_iter``, up to version 2.0 at least) as if it were where it is:
axes before it are 0, and the rest is counted along it. Which index a data set has it does not tell; that of older
files, with one axis without end as well, is listed right. So it is asked for a chunk, which it finds in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from zardine.errors import CorruptionError
from zardine.sources.foreign_store import Coordinates
from zardine.sources.hdf5.library import FAILURES
from zardine.sources.stored_file import ReadFailedError


def in_grid(
    dataset: Any, blocks: Coordinates, listed: Sequence[Coordinates], stored_as: Callable[[int, bytes], bool]
) -> Sequence[Coordinates]:
    """Return the grid coordinates of chunks of a ``h5py.Dataset``, as HDF5 lists them, put right where they are wrong.

    ``stored_as`` says whether certain bytes are where one of them is in the file. Raises what h5py raises.
    """
    endless = [axis for axis, length in enumerate(dataset.maxshape) if length is None]
    if len(endless) != 1 or endless[0] == 0 or not listed:
        return listed
    axis = endless[0]
    most = [1 if each is None else -(-each // size) for each, size in zip(dataset.maxshape, blocks, strict=True)]
    before = prod(most[:axis])
    if before == 1 or any(any(each[:axis]) for each in listed):
        return listed
    last = max(range(len(listed)), key=lambda number: listed[number][axis])
    if listed[last][axis] == 0 or _stored(dataset, blocks, listed[last]) is not None:  # else it would be listed behind
        return listed
    found = [_in_order(each, axis, most, before) for each in listed]
    content = _stored(dataset, blocks, found[last])
    if content is not None and stored_as(last, content):
        return found
    if all(i * n < length for i, n, length in zip(listed[last], blocks, dataset.shape, strict=True)):
        raise CorruptionError(f"chunk {listed[last]} of dataset {dataset.name!r} is listed, but HDF5 finds none there")
    return listed


def _in_order(listed: Coordinates, axis: int, most: Sequence[int], before: int) -> Coordinates:
    along, rest = divmod(listed[axis], before)
    first = []
    for count in reversed(most[:axis]):
        rest, i = divmod(rest, count)
        first.append(i)
    return (*reversed(first), along, *listed[axis + 1 :])


def _stored(dataset: Any, blocks: Coordinates, coordinates: Coordinates) -> bytes | None:
    try:
        return bytes(dataset.id.read_direct_chunk(tuple(i * n for i, n in zip(coordinates, blocks, strict=True)))[1])
    except ReadFailedError:
        raise
    except FAILURES:
        return None


__all__ = ["in_grid"]
