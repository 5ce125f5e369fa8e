"""zardine, as it is; all its cores, shard index cache as by default."""

from __future__ import annotations

from contextlib import contextmanager

import zardine
from implementations.protocol import Implementation


class Zardine(Implementation):
    packages = ("zardine", "numpy")
    imports = "import zardine"

    def __init__(self, threads, strategy=None, buffered=False):
        super().__init__(threads)
        self.buffered = buffered
        zardine.config.set({"threads": threads, **({"array.write_strategy": strategy} if strategy else {})})

    def open(self, path, *, write=False):
        return zardine.open_array(path, mode="r+" if write else "r")

    def read(self, array, box):
        return array[box]

    def write(self, array, box, values):
        array[box] = values

    def append(self, array, values):
        array.append(values)
        return array

    def read_points(self, array, points):
        return array.vindex[points]

    def list_group(self, path):
        return [array.shape for _, array in zardine.open_group(path, mode="r").arrays()]

    @contextmanager
    def collected(self, array):
        if self.buffered:
            with array.buffered():
                yield array
        else:
            yield array


IMPLEMENTATION = Zardine
