"""The lazy array that stands in a variable of xarray for one in a store: what is selected is read, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from zardine.nodes.array import Array
from zardine.nodes.asynchronous import in_thread


class StoredArray(BackendArray):
    """An array in a store, indexed in the three ways that xarray has. It pickles, and threads may share it."""

    __slots__ = ("_array", "dtype", "shape")

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read the elements at ``key``. What is damaged or cannot be read raises the error that says where."""
        support = indexing.IndexingSupport.VECTORIZED
        value = indexing.explicit_indexing_adapter(key, self.shape, support, self._method(key))
        return np.asarray(value, self.dtype) if isinstance(value, str) and self.dtype.kind == "T" else value

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read the elements at ``key`` in a thread, while the event loop goes on."""
        return await in_thread(self.__getitem__, key)

    def __repr__(self) -> str:
        return repr(self._array)

    def _method(self, key: indexing.ExplicitIndexer) -> Callable[[Any], Any]:
        if isinstance(key, indexing.VectorizedIndexer):
            return self._array.get_coordinate_selection
        if isinstance(key, indexing.OuterIndexer):
            return self._array.get_orthogonal_selection
        return self._array.__getitem__
