"""Use zardine from Dask: ``from_zarr``, ``to_zarr`` and ``store``.

Reading takes one task for each shard, writing one task for each shard that is made of whole Dask chunks; Dask chunks
that share shards are written correctly all the same. Raises ``ImportError`` where Dask is not installed.
"""

try:
    import dask.array as _dask_array  # noqa: F401
except ImportError as _error:
    raise ImportError(f"zardine.dask needs Dask ({_error}): pip install 'zardine[dask]'") from _error

from zardine.dask.reading import from_zarr
from zardine.dask.writing import store, to_zarr

__all__ = ["from_zarr", "store", "to_zarr"]
