"""From what a user assigns to an array of the right dtype and shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.missing import as_array, element_at, is_missing, with_missing_as


def cast_values(value: object, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``value`` as an array of ``dtype``, converted as NumPy converts on assignment.

    Python integers out of range raise ``OverflowError``. Variable-length types take strings (or bytes) only:
    ``TypeError`` for anything else. A missing element (``None``, NaN, NaT, ``pandas.NA``, masked) that ``dtype`` cannot
    hold raises ``ValueError`` with its index, as does text (or bytes) that is longer than ``dtype``, where NumPy would
    store its beginning. Times, infinities and other floats beyond the range of ``dtype`` raise ``OverflowError``; dates
    for durations, or durations for dates, raise ``TypeError``: NumPy would store other times and numbers.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype and not isinstance(value, np.ma.MaskedArray):
        return _cast_bytes(value) if dtype.kind == "O" else value
    if dtype.kind == "T":
        return _cast_strings(value, dtype)
    if dtype.kind == "O":
        return _cast_bytes(value)
    if dtype.names is not None:
        return _cast_records(value, dtype)
    given = as_array(value)
    array = with_missing_as(given, dtype)
    if array.dtype == dtype:
        return array
    if _has_width(dtype):
        array = _of_width(array, dtype)
    elif array.dtype.kind in "mM":
        return _cast_times(array, dtype)
    else:
        _check_range(array, dtype)
    if array.dtype == np.object_ or not isinstance(value, (np.generic, np.ndarray)):
        # NumPy checks the range of Python integers, but not of an array that it has made of them
        return np.asarray(value if array is given else array, dtype=dtype)
    return array.astype(dtype)


def broadcast_values(values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return ``values`` as a read-only view of ``shape``; leading axes of length 1 may be too many, as in NumPy."""
    if values.shape == shape:  # the usual case, and a tenth of the time
        view = values.view(np.ndarray)
        view.flags.writeable = False
        return view
    extra = values.ndim - len(shape)
    if extra > 0 and values.shape[:extra] == (1,) * extra:
        values = values.view(np.ndarray).reshape(values.shape[extra:])  # of a matrix, which would stay one
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"could not broadcast input array from shape {values.shape} into shape {shape}") from None


def _cast_strings(value: object, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # not by way of NumPy's fixed-length text, which drops NULs at the end
    array = np.asarray(value, dtype=object) if isinstance(value, (str, list, tuple)) else np.asanyarray(value)
    if array.dtype.kind == "O":
        _check_elements(np.asarray(array), str, "strings")
    array = with_missing_as(array, dtype)
    if array.dtype.kind in "TUO" or array.size == 0:
        return array.astype(dtype)
    raise TypeError(f"this array holds strings, not values of dtype {array.dtype}")


def _cast_bytes(value: object) -> npt.NDArray[Any]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        scalar = np.empty((), object)
        scalar[()] = bytes(value)
        return scalar
    if isinstance(value, np.ma.MaskedArray):
        value = with_missing_as(value, np.dtype(object))
    array = np.asarray(value, dtype=object)
    if set(map(type, array.reshape(-1).tolist())) <= {bytes}:
        return array.copy()
    _check_elements(array, (bytes, bytearray, memoryview, np.bytes_), "byte strings")
    cast = np.empty(array.shape, object)
    for at, item in np.ndenumerate(array):
        cast[at] = bytes(item)
    return cast


def _check_elements(array: npt.NDArray[Any], kinds: type | tuple[type, ...], name: str) -> None:
    """Raise ``TypeError`` with the index of the first element that is not of these ``kinds``."""
    for at, item in np.ndenumerate(array):
        if not isinstance(item, kinds):
            missing = " missing:" if is_missing(item) else ""
            raise TypeError(
                f"this array holds {name}, and {element_at(at)} is{missing} {item!r} ({type(item).__name__})"
            )


def _has_width(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` holds text or bytes of at most some length."""
    return dtype.kind in "US" or (dtype.type is np.void and dtype.names is None)


def _of_width(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``values`` as text or bytes, none of which is longer than those of ``dtype``."""
    if dtype.kind == "V" and values.dtype.kind not in "VSTO":
        raise TypeError(f"this array holds raw bytes ({dtype}), not values of dtype {values.dtype}")
    if values.dtype.kind not in "USTOV":
        values = values.astype(np.str_)
    most = dtype.itemsize // (dtype.alignment if dtype.kind == "U" else 1)
    for at, length in _longer(values, most):
        value = values[at].item() if values.dtype.kind in "USV" else values[at]
        raise ValueError(
            f"{element_at(at)}, {value!r}, is {length} long, and dtype {dtype} holds {most}: cut it with "
            f".astype({dtype.str!r}), or create the array with a wider dtype"
        )
    return values


def _longer(values: npt.NDArray[Any], most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the places and lengths of the elements that are longer than ``most``; NULs at their ends do not count."""
    kind, width = values.dtype.kind, values.dtype.itemsize
    if kind in "US" and width // (values.dtype.alignment if kind == "U" else 1) <= most:
        return
    if kind in "UST":
        lengths = np.strings.str_len(values)
    elif kind == "V":
        lengths = np.full(values.shape, width)
    else:
        lengths = np.fromiter(map(_length, values.flat), np.intp, values.size).reshape(values.shape)
    for at in np.argwhere(lengths > most):
        yield tuple(map(int, at)), int(lengths[tuple(at)])


def _length(item: object) -> int:
    if isinstance(item, (bytes, bytearray)):
        return len(item.rstrip(b"\0"))
    return len(str(item).rstrip("\0"))


def _check_range(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Raise ``OverflowError`` for the first float that ``dtype``, of integers, cannot hold once its fraction is cut."""
    if values.dtype.kind != "f" or dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    whole = np.trunc(values, dtype=np.result_type(values, np.float32))
    beyond = ~((whole >= float(limits.min)) & (whole < float(limits.max + 1)))  # powers of two, so exact
    if beyond.any():
        at = tuple(map(int, np.argwhere(beyond)[0])) if beyond.ndim else ()
        raise OverflowError(
            f"{element_at(at)}, {values[at].item()!r}, is beyond the range of {dtype}: {limits.min} to {limits.max}"
        )


def _cast_times(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``values``, dates or durations, as ``dtype``: a coarser unit is rounded down, as NumPy does."""
    source, target = values.dtype.kind, dtype.kind
    if target in "mM" and target != source and not np.isnat(values).all():
        names = {"M": "dates", "m": "durations"}
        raise TypeError(f"this array holds {names[target]} ({dtype}), not {names[source]} ({values.dtype})")
    cast = values.astype(dtype)
    if target in "iu" or np.can_cast(values.dtype, dtype, "safe"):  # a finer unit, or a number, has less room
        same = (cast.astype(values.dtype) == values) | (np.isnat(values) if target in "mM" else False)
        if not same.all():
            at = tuple(map(int, np.argwhere(~same)[0]))
            raise OverflowError(f"{element_at(at)}, {values[at]!r}, is beyond the range of dtype {dtype}")
    return cast


def _cast_records(value: object, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if not isinstance(value, (list, tuple)):  # a tuple is one record
        array = with_missing_as(np.asanyarray(value), dtype)
        _check_fields(array, dtype)
        return array.astype(dtype)
    objects = np.array(value, dtype=_objects_like(dtype))
    with_missing_as(objects, dtype)
    _check_fields(objects, dtype)
    return np.array(value, dtype=dtype)


def _check_fields(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Raise an error for text or bytes in fields of ``values`` that are too long for the same field of ``dtype``.

    The same for floats beyond the range of integers.
    """
    for source, target in zip(values.dtype.names or (), dtype.names or (), strict=False):
        field = dtype[target].base
        try:
            if field.names is not None:
                _check_fields(values[source], field)
            elif _has_width(field):
                _of_width(values[source], field)
            else:
                _check_range(values[source], field)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"field {target!r}: {error}") from None


def _objects_like(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype with the same fields, which hold Python objects."""
    if dtype.names is not None:
        return np.dtype([(name, _objects_like(dtype[name])) for name in dtype.names])
    return np.dtype((object, dtype.shape))


def check_output(out: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``out`` is an array of ``shape`` that can be filled.

    Elements must not share memory: threads fill them at the same time, and each has a value of its own. Strides show
    that, where each axis, from the shortest stride to the longest, steps over all that the axes before reach. (So it is
    with slices and transpositions of arrays in one piece.)
    """
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a NumPy array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the selection has shape {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only; give an array that can be written to, or a copy of it")
    if out.size < 2 or out.flags.forc:
        return
    reach = out.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, shape, strict=True)):
        if length > 1:
            if stride < reach:
                raise ValueError(
                    f"elements of out share memory (strides {out.strides} for elements of {out.itemsize} bytes), "
                    "as those of a broadcast array do; give an array with memory of its own for each"
                )
            reach += (length - 1) * stride
