"""Making a dataset longer: the same place in all its variables, however many processes do so at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from zardine.nodes.array import Array


def reserve(arrays: Mapping[str, tuple[Array, int, int]], append_dim: Hashable) -> slice:
    """Make arrays longer on an axis; gives the place that is this caller's alone, in all of them.

    ``arrays`` are, by name, those that have the dimension, its axis and how many elements are added. One of them
    decides on the place, by a conditional write: the coordinate of the dimension, or else the first by name. So two
    callers never get parts of one place, nor different places in two variables.

    Raises ``ValueError`` where variables of one call add different numbers.
    """
    counts = {count for _, _, count in arrays.values()}
    if len(counts) != 1:
        raise ValueError(f"the variables to append have different lengths of {append_dim!r}: {sorted(counts)}")
    (count,) = counts
    leader = str(append_dim) if append_dim in arrays else min(arrays)
    array, axis, _ = arrays[leader]
    start, stop = array._grow(axis, lambda length: length + count)
    for name, (other, axis, _) in arrays.items():
        if name != leader:
            other._grow(axis, lambda _: stop)
    return slice(start, stop)
