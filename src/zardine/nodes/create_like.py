"""Creating arrays like others: ``zeros_like``, ``ones_like``, ``empty_like`` and ``full_like``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from zardine.metadata.v2_dtypes import dtype_in_memory
from zardine.nodes.array import Array
from zardine.nodes.create_array import (
    as_values,
    create_like,
    dtype_of,
)
from zardine.nodes.options import LikeAnywhereOptions


def empty_like(a: npt.ArrayLike, *, zarr_format: int | None = None, **kwargs: Unpack[LikeAnywhereOptions]) -> Array:
    """Create an array of the default fill value like ``a`` in shape, dtype, chunks and shards.

    As all of the ``_like`` functions it makes one of the version of Zarr that ``a`` has, with its codecs, unless
    ``zarr_format`` says another: then codecs are chosen anew, and shards become their inner chunks.
    """
    return _like(a, zarr_format, kwargs)


def zeros_like(a: npt.ArrayLike, *, zarr_format: int | None = None, **kwargs: Unpack[LikeAnywhereOptions]) -> Array:
    """Create an array of fill value 0 (see :func:`zeros`) like ``a`` in shape, dtype, chunks and shards."""
    return _like(a, zarr_format, {**kwargs, "fill_value": like_fill(np.zeros, a, kwargs)})


def ones_like(a: npt.ArrayLike, *, zarr_format: int | None = None, **kwargs: Unpack[LikeAnywhereOptions]) -> Array:
    """Create an array of fill value 1 (see :func:`ones`) like ``a`` in shape, dtype, chunks and shards."""
    return _like(a, zarr_format, {**kwargs, "fill_value": like_fill(np.ones, a, kwargs)})


def full_like(a: npt.ArrayLike, *, zarr_format: int | None = None, **kwargs: Unpack[LikeAnywhereOptions]) -> Array:
    """Create an array of ``fill_value`` like ``a`` in shape, dtype, chunks and shards.

    ``fill_value`` may be left out where ``a`` is an :class:`Array`: the new one has the same.
    """
    if "fill_value" not in kwargs and not isinstance(a, Array):
        raise TypeError("fill_value is missing: only an Array has one that full_like can take")
    return _like(a, zarr_format, kwargs)


def plain_fill(make: Any, dtype: Any) -> Any:
    """Return what ``numpy.zeros`` or ``numpy.ones`` fills an array of a user's ``dtype`` with."""
    wanted = dtype_in_memory("float64" if dtype is None else dtype)
    if wanted.kind == "O":  # bytes of varying length, where NumPy would put numbers
        return b"" if make is np.zeros else b"1"
    return make((), wanted)[()]


def like_fill(make: Any, a: npt.ArrayLike, kwargs: Mapping[str, Any]) -> Any:
    """Return what :func:`plain_fill` does for the dtype among ``kwargs``, or that of ``a``."""
    dtype = kwargs.get("dtype")
    return plain_fill(make, dtype_of(as_values(a)) if dtype is None else dtype)


def _like(a: npt.ArrayLike, zarr_format: int | None, kwargs: Mapping[str, Any]) -> Array:
    arguments = dict(kwargs)
    store, path = arguments.pop("store", None), arguments.pop("path", None)
    return create_like(store, a, name=path, zarr_format=zarr_format, **arguments)
