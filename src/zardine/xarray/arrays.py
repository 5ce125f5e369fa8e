"""The lazy array that stands in a variable of xarray for one in a store: what is selected is read, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from zardine.nodes.array import Array
from zardine.nodes.asynchronous import AsyncArray


class StoredArray(BackendArray):
    """An array in a store, indexed in the three ways that xarray has. It pickles, and threads may share it."""

    __slots__ = ("dtype", "shape", "source")

    def __init__(self, array: Array) -> None:
        self.source = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read the elements at ``key``. What is damaged or cannot be read raises the error that says where."""
        return self._as_array(_indexed(self.source, key)[key.tuple])

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read the elements at ``key`` in a thread, while the event loop goes on."""
        return self._as_array(await _indexed(AsyncArray(self.source), key).getitem(key.tuple))

    def __repr__(self) -> str:
        return repr(self.source)

    def _as_array(self, value: Any) -> Any:
        return np.asarray(value, self.dtype) if isinstance(value, str) and self.dtype.kind == "T" else value


def _indexed(array: Array | AsyncArray, key: indexing.ExplicitIndexer) -> Any:
    """Return what is asked for a ``key`` of its kind."""
    if isinstance(key, indexing.VectorizedIndexer):
        return array.vindex
    return array.oindex if isinstance(key, indexing.OuterIndexer) else array
