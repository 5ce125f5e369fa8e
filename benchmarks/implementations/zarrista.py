"""zarrista: the Rust crate zarrs by its own Python interface; as many rayon threads as there are cores.

It has no selections with steps and none of points. Shown beside: ``index_cache`` reads single inner chunks by their
place in the grid, with the cache of shard indexes that the caller has to make and must not use after a write;
``partial`` turns on the experimental partial encoding.
"""

from __future__ import annotations

import os

import numpy as np

from implementations.protocol import Implementation


class Zarrista(Implementation):
    packages = ("zarrista",)
    imports = "import numpy, zarrista"
    """Its results become arrays by NumPy, which it imports with the first one."""

    def __init__(self, threads, partial=False, index_cache=False):
        super().__init__(threads)
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        import zarrista

        self.module = zarrista
        self.index_cache = index_cache
        self.options = {"experimental_partial_encoding": True} if partial else {}

    def open(self, path, *, write=False):
        return self.module.Array.open(self.module.store.FilesystemStore(path))

    def read(self, array, box):
        return array.retrieve_array_subset(box).to_numpy()

    def chunk_reader(self, array):
        if not self.index_cache:
            return super().chunk_reader(array)
        cache = array.shard_cache()
        return lambda box, place: array.retrieve_subchunk(place, shard_cache=cache).to_numpy()

    def write(self, array, box, values):
        values = np.ascontiguousarray(values)
        if values.dtype.kind == "c":  # its DLPack reader knows no complex numbers
            values = memoryview(values.view(np.uint8)).cast("B")
        array.store_array_subset(box, values, **self.options)

    def append(self, array, values):
        rows, *others = array.shape
        array = array.with_shape([rows + len(values), *others])
        array.store_metadata()
        box = (slice(rows, rows + len(values)), *(slice(0, extent) for extent in others))
        self.write(array, box, values)
        return array

    def list_group(self, path):
        group = self.module.Group.open(self.module.store.FilesystemStore(path))
        return [tuple(array.shape) for array in group.child_arrays()]


IMPLEMENTATION = Zarrista
