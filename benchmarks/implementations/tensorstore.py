"""tensorstore: driver zarr3 on driver file, as many threads for copying (its codecs run there) as there are cores.

The cache is off, as by default: with it, reading again would not read. (For single chunks, each read once, a cache that
keeps shard indexes made no difference.) ``transaction`` collects small writes and is shown beside.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import tensorstore

from implementations.protocol import Implementation


class Tensorstore(Implementation):
    packages = ("tensorstore",)
    imports = "import tensorstore"

    def __init__(self, threads, transaction=False):
        super().__init__(threads)
        self.transaction = transaction
        self.context = tensorstore.Context(
            {
                "data_copy_concurrency": {"limit": threads},
                "file_io_concurrency": {"limit": max(threads, 4)},
                "cache_pool": {"total_bytes_limit": 0},
            }
        )

    def open(self, path, *, write=False):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        spec["recheck_cached_metadata"] = "open"
        return tensorstore.open(spec, context=self.context, open=True, read=True, write=write).result()

    def read(self, array, box):
        return array[box].read().result()

    def read_all(self, array, shape):
        return array.read().result()

    def write(self, array, box, values):
        array[box].write(values).result()

    def append(self, array, values):
        rows = array.shape[0]
        array = array.resize(exclusive_max=[rows + len(values), *array.shape[1:]], expand_only=True).result()
        array[rows:].write(values).result()
        return array

    def read_points(self, array, points):
        return array.vindex[tuple(np.asarray(axis) for axis in points)].read().result()

    @contextmanager
    def collected(self, array):
        if not self.transaction:
            yield array
            return
        with tensorstore.Transaction() as transaction:
            yield array.with_transaction(transaction)


IMPLEMENTATION = Tensorstore
