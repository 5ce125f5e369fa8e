"""From what a user writes between the brackets to a normalized selection.

Out-of-range indices raise :class:`~zardine.errors.BoundsCheckError` in NumPy's words; anything else that makes no sense
raises :class:`~zardine.errors.SelectionError`. Both are ``IndexError``.
"""

from __future__ import annotations

from operator import index as as_index
from typing import Any, TypeGuard

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.errors import BoundsCheckError, SelectionError, VindexInvalidSelectionError, ZeroStepError
from zardine.indexing.block import Block
from zardine.indexing.selection import AxisList, AxisSelection, AxisSlice, GridSelection, PointSelection
from zardine.kernel import KERNEL

_PLAIN = frozenset((slice, int))


def is_plain(selection: object) -> TypeGuard[tuple[slice | int, ...]]:
    """Whether ``selection`` is a tuple of nothing but slices and Python integers."""
    return type(selection) is tuple and _PLAIN.issuperset(map(type, selection))


def is_integer(item: object) -> bool:
    """Whether ``item`` is one integer: a Python or NumPy integer or a 0-dimensional integer array, not a boolean."""
    if isinstance(item, (bool, np.bool_)):
        return False
    if isinstance(item, (int, np.integer)):
        return True
    return isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu"


def is_list(item: object) -> bool:
    """Whether ``item`` selects by a list: a sequence, or an array with dimensions."""
    return isinstance(item, (list, tuple, range)) or (isinstance(item, np.ndarray) and item.ndim > 0)


def expand_ellipsis(selection: object, ndim: int) -> tuple[Any, ...]:
    """``selection`` as a tuple of exactly ``ndim`` items, an ellipsis and missing axes filled with full slices."""
    items = selection if isinstance(selection, tuple) else (selection,)
    if any(item is None for item in items):
        raise SelectionError("np.newaxis (None) does not select anything stored; index the result with it instead")
    at = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        raise SelectionError("an index can only have a single ellipsis ('...')")
    given = len(items) - len(at)
    if given > ndim:
        raise SelectionError(f"too many indices for array: array is {ndim}-dimensional, but {given} were indexed")
    where = at[0] if at else len(items)
    filling = (slice(None),) * (ndim - given)
    return items[:where] + filling + items[where + len(at) :]


def in_memory(selection: Any) -> Any:
    """``selection`` with arrays of NumPy in place of what gives one: arrays of zardine, pandas, xarray, Dask."""
    if isinstance(selection, tuple):
        return tuple(map(in_memory, selection)) if any(map(_is_array_like, selection)) else selection
    return np.asarray(selection) if _is_array_like(selection) else selection


def _is_array_like(item: object) -> bool:
    return not isinstance(item, (slice, int, list, np.ndarray, np.generic)) and hasattr(type(item), "__array__")


def parse_basic(selection: object, shape: tuple[int, ...]) -> GridSelection:
    """Integers, slices (any step but 0) and an ellipsis."""
    selection = in_memory(selection)
    items = expand_ellipsis(selection, len(shape))
    for item in items:
        if not isinstance(item, slice) and not is_integer(item):
            raise SelectionError(
                f"a basic selection takes integers, slices and '...', not {_describe(item)}; "
                "use .oindex for lists along axes and .vindex for points"
            )
    return _grid(items, shape)


def parse_orthogonal(selection: object, shape: tuple[int, ...]) -> GridSelection:
    """Integers, slices, integer lists and boolean masks, each for its own axis."""
    selection = in_memory(selection)
    if _is_full_mask(selection, shape) and len(shape) != 1:
        raise SelectionError("an orthogonal selection takes a mask for each axis; use .vindex for a mask of the array")
    return _grid(expand_ellipsis(selection, len(shape)), shape)


def parse_block(selection: object, blocks: tuple[Axis, ...]) -> GridSelection:
    """Integers and slices of step 1 that count the chunks of ``blocks``; no axis is dropped."""
    items = expand_ellipsis(in_memory(selection), len(blocks))
    slices = []
    for axis, (item, grid) in enumerate(zip(items, blocks, strict=True)):
        count = grid.count
        if is_integer(item):
            first = _wrap(as_index(item), axis, count)
            last = first + 1
        elif isinstance(item, slice):
            first, last, step = _ends(item, count)
            if step != 1:
                raise SelectionError("a block selection takes slices of step 1 only")
            if item.start is not None and as_index(item.start) >= max(1, count):
                raise _out_of_bounds(as_index(item.start), axis, count)
            last = max(first, last)
        else:
            raise SelectionError(f"a block selection takes integers and slices, not {_describe(item)}")
        begin = grid.start(first) if first < count else grid.length
        end = grid.start(last) if last < count else grid.length
        slices.append(slice(begin, end))
    return _grid(tuple(slices), tuple(grid.length for grid in blocks))


def parse_coordinates(selection: object, shape: tuple[int, ...]) -> PointSelection:
    """One integer or integer array for each dimension, broadcast against each other."""
    selection = in_memory(selection)
    items = selection if isinstance(selection, tuple) else (selection,)
    if len(items) != len(shape) or any(isinstance(item, slice) or item is Ellipsis or item is None for item in items):
        raise VindexInvalidSelectionError(
            f"a coordinate selection takes {len(shape)} integers or integer arrays, one for each dimension "
            f"(or a mask of the array's shape), not {_describe(selection)}"
        )
    arrays = [np.asarray(item) for item in items]
    for axis, array in enumerate(arrays):
        if array.dtype.kind not in "iu" and array.size > 0:
            raise VindexInvalidSelectionError(
                f"coordinates must be integers, and those of axis {axis} are {array.dtype}"
            )
    try:
        arrays = list(np.broadcast_arrays(*arrays)) if arrays else []
    except ValueError:
        shapes = " ".join(str(array.shape) for array in arrays)
        raise SelectionError(
            f"shape mismatch: coordinate arrays could not be broadcast together with shapes {shapes}"
        ) from None
    result = arrays[0].shape if arrays else ()
    points = tuple(_check_indices(array.reshape(-1), axis, shape[axis]) for axis, array in enumerate(arrays))
    return PointSelection(points, result)


def parse_mask(mask: object, shape: tuple[int, ...]) -> PointSelection:
    """A boolean array of the shape of the array; the result is one-dimensional."""
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != shape:
        raise SelectionError(
            f"a mask selection takes a boolean array of shape {shape}, not {_describe(in_memory(mask))}"
        )
    points = tuple(axis.astype(np.int64, copy=False) for axis in np.nonzero(array)) if shape else ()
    count = len(points[0]) if points else int(array.sum())
    return PointSelection(points, (count,))


def parse_vindex(selection: object, shape: tuple[int, ...]) -> PointSelection:
    """What ``vindex`` takes: coordinates or one mask."""
    selection = in_memory(selection)
    if isinstance(selection, tuple) and len(selection) == 1 and _is_mask(selection[0]):
        selection = selection[0]
    is_mask = _is_mask(selection) or _is_full_mask(selection, shape)
    return parse_mask(selection, shape) if is_mask else parse_coordinates(selection, shape)


def parse_block_of_elements(selection: object, shape: tuple[int, ...]) -> Block | None:
    """Return the block that Python integers and slices of step 1 mean, with an ellipsis or without.

    ``None`` for all else, also for what is empty or out of bounds: :func:`parse_any` takes that, or says what is wrong.
    """
    if KERNEL is not None:
        found = KERNEL.block_of_elements(selection, shape)
        return None if found is None else tuple.__new__(Block, found)
    items = selection if type(selection) is tuple else (selection,)
    ellipses = [at for at, item in enumerate(items) if item is ...]
    named = len(items) - len(ellipses)
    if len(ellipses) > 1 or named > len(shape) or (shape and not items) or (ellipses and not shape):
        return None
    at = ellipses[0] if ellipses else named  # all is meant of the axes of an ellipsis, or the last ones
    items = (*items[:at], *(slice(None),) * (len(shape) - named), *items[at + 1 :])
    starts: list[int] = []
    counts: list[int] = []
    dropped: list[slice | int] | None = None if shape else []
    for axis, (item, length) in enumerate(zip(items, shape, strict=True)):
        if type(item) is slice:
            try:
                start, stop, step = item.indices(length)
            except (TypeError, ValueError):
                return None
            if step != 1:
                return None
            count = stop - start
        elif type(item) is int:
            start, count = item + length if item < 0 else item, 1
            dropped = dropped or [slice(None)] * len(shape)
            dropped[axis] = 0
        else:
            return None
        if count <= 0 or not 0 <= start < length:
            return None
        starts.append(start)
        counts.append(count)
    if ellipses and dropped is not None and all(each == 0 for each in dropped):
        return None  # an array without dimensions, where integers alone mean an element
    return Block(tuple(starts), tuple(counts), None if dropped is None else tuple(dropped))


def parse_any(selection: object, shape: tuple[int, ...]) -> GridSelection | PointSelection:
    """What ``array[...]`` takes: basic selections, a mask, points, or one list among slices and integers."""
    if is_plain(selection) and len(selection) == len(shape):
        return _grid(selection, shape)  # the usual case, told at once
    selection = in_memory(selection)
    if _is_full_mask(selection, shape):
        return parse_mask(selection[0] if isinstance(selection, tuple) else selection, shape)
    items = selection if isinstance(selection, tuple) else (selection,)
    lists = sum(map(is_list, items))
    if lists == 0:
        return parse_basic(selection, shape)
    if len(items) == len(shape) and lists + sum(map(is_integer, items)) == len(items) and not any(map(_is_mask, items)):
        return parse_coordinates(tuple(items), shape)
    if lists == 1:
        return parse_orthogonal(selection, shape)
    raise SelectionError(
        "several lists mixed with slices are ambiguous; use .oindex to combine them axis by axis, .vindex for points"
    )


def _grid(items: tuple[Any, ...], shape: tuple[int, ...]) -> GridSelection:
    axes: list[AxisSelection] = []
    drop, flip = [], []
    for axis, (item, length) in enumerate(zip(items, shape, strict=True)):
        integer = backwards = False
        if isinstance(item, slice):
            taken, backwards = _slice(item, length)
            axes.append(taken)
        elif is_integer(item):
            integer = True
            axes.append(AxisSlice(_wrap(as_index(item), axis, length), 1, 1))
        else:
            axes.append(AxisList(_list(item, axis, length)))
        drop.append(integer)
        flip.append(backwards)
    return GridSelection(tuple(axes), tuple(drop), tuple(flip))


def _slice(item: slice, length: int) -> tuple[AxisSlice, bool]:
    start, stop, step = _ends(item, length)
    count = len(range(start, stop, step))
    if count < 2:
        step = 1 if step > 0 else -1  # it may be larger than any index, and means nothing
    if step > 0:
        return AxisSlice(start, step, count), False
    return AxisSlice(start + (count - 1) * step if count else 0, -step, count), True


def _ends(item: slice, length: int) -> tuple[int, int, int]:
    """Return the ends and the step of a slice of ``length`` things, as ``slice.indices`` does."""
    try:
        return item.indices(length)
    except ValueError:
        raise ZeroStepError("slice step cannot be zero") from None
    except TypeError:
        raise SelectionError(f"slice indices must be integers or None, not {item}") from None


def _list(item: object, axis: int, length: int) -> Ints:
    array = np.asarray(item)
    if array.dtype == np.bool_:
        if array.shape != (length,):
            found = f"{array.shape[0]}" if array.ndim == 1 else f"shape {array.shape}"
            raise SelectionError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {length} "
                f"but size of corresponding boolean axis is {found}"
            )
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.ndim != 1:
        raise SelectionError(f"axis {axis}: expected a one-dimensional list of indices, not {_describe(item)}")
    if array.size and array.dtype.kind not in "iu":
        raise SelectionError(f"axis {axis}: indices must be integers or booleans, not {array.dtype}")
    return _check_indices(array, axis, length)


def _check_indices(array: np.ndarray[Any, Any], axis: int, length: int) -> Ints:
    if array.dtype.kind == "u" and array.size and int(array.max()) >= length:
        raise _out_of_bounds(int(array.max()), axis, length)
    indices: Ints = array.astype(np.int64)
    if len(indices):
        low, high = int(indices.min()), int(indices.max())
        if high >= length:
            raise _out_of_bounds(high, axis, length)
        if low < -length:
            raise _out_of_bounds(low, axis, length)
        if low < 0:
            indices[indices < 0] += length
    return indices


def _wrap(number: int, axis: int, length: int) -> int:
    if not -length <= number < length:
        raise _out_of_bounds(number, axis, length)
    return number + length if number < 0 else number


def _out_of_bounds(number: int, axis: int, length: int) -> BoundsCheckError:
    return BoundsCheckError(f"index {number} is out of bounds for axis {axis} with size {length}")


def _is_mask(item: object) -> bool:
    if isinstance(item, np.ndarray):
        return item.dtype == np.bool_ and item.ndim > 0
    return isinstance(item, list) and bool(item) and np.asarray(item).dtype == np.bool_


def _is_full_mask(selection: object, shape: tuple[int, ...]) -> bool:
    if isinstance(selection, tuple) and len(selection) == 1:
        selection = selection[0]
    return isinstance(selection, np.ndarray) and selection.dtype == np.bool_ and selection.shape == shape


def _describe(item: object) -> str:
    if isinstance(item, np.ndarray):
        return f"an array of dtype {item.dtype} and shape {item.shape}"
    text = repr(item)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(item).__name__})"
