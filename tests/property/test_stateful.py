"""An array through its life (written, resized, appended to, reopened) beside a NumPy model, compared at each step."""

from __future__ import annotations

import shutil
import tempfile
from itertools import product
from math import prod
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from strategies import same_bits, slices

import zardine
from zardine.storage import LocalStore, MemoryStore, Store

LONGEST = 12
NAN = np.array(0x7FC00123, np.uint32).view(np.float32)[()]


class ArrayLife(RuleBasedStateMachine):
    """The rules are what users do; the invariants are what has to hold after each of them."""

    def open_store(self) -> Store:
        return MemoryStore()

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        self.store = self.open_store()
        ndim = data.draw(st.integers(1, 3))
        shape = tuple(data.draw(st.lists(st.integers(0, 8), min_size=ndim, max_size=ndim)))
        inner = tuple(data.draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)))
        times = tuple(data.draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)))
        outer = tuple(size * n for size, n in zip(inner, times, strict=True))
        kind = data.draw(st.sampled_from(["chunks", "shards", "shards", "start", "opaque", "rectilinear", "both"]))
        dtype, self.fill = data.draw(
            st.sampled_from([("int16", 0), ("int16", -3), ("float32", NAN), ("float32", -0.0)])
        )
        arguments: dict[str, Any] = {"chunks": inner, "shards": outer}
        if kind == "chunks":
            arguments = {"chunks": inner}
        elif kind == "start":
            arguments["shards"] = {"shape": outer, "index_location": "start"}
        elif kind == "opaque":
            sharding = {"chunk_shape": inner, "codecs": ["bytes"], "index_codecs": ["bytes"], "index_location": "end"}
            codecs = [{"name": "sharding_indexed", "configuration": sharding}, {"name": "crc32c"}]
            arguments = {"chunks": outer, "codecs": codecs}
        elif kind in ("rectilinear", "both"):
            sizes = outer if kind == "both" else inner
            lengths = [[size] * -(-max(n, 1) // size) for size, n in zip(sizes, shape, strict=True)]
            for axis, each in enumerate(lengths):
                each.append(2 * sizes[axis])
            arguments = {"chunks": inner, "shards": lengths} if kind == "both" else {"chunks": lengths}
        keys = data.draw(st.sampled_from([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]))
        self.empty = data.draw(st.booleans())
        self.array = zardine.create(
            shape,
            store=self.store,
            path="group/array",
            dtype=dtype,
            fill_value=self.fill,
            chunk_key_encoding=keys,
            write_empty_chunks=self.empty,
            **arguments,
        )
        self.model = np.full(shape, self.fill, dtype)
        self.attributes: dict[str, Any] = {}
        self.version = 0

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        index = tuple(data.draw(slices(n)) for n in self.model.shape)
        values = self.fresh(self.model[index].shape)
        self.array[index] = values
        self.model[index] = values

    @rule(data=st.data())
    def write_points(self, data: st.DataObject) -> None:
        if self.model.size:
            points = tuple(np.array([data.draw(st.integers(0, n - 1)) for _ in range(2)]) for n in self.model.shape)
            value = self.fresh((2,))
            self.array.vindex[points] = value
            for i in range(2):
                self.model[tuple(each[i] for each in points)] = value[i]

    @rule(data=st.data())
    def erase_region(self, data: st.DataObject) -> None:
        index = tuple(data.draw(slices(n)) for n in self.model.shape)
        self.array[index] = self.fill
        self.model[index] = self.fill

    @rule()
    def erase_all(self) -> None:
        self.array[...] = self.fill
        self.model[...] = self.fill

    @rule(data=st.data())
    def resize(self, data: st.DataObject) -> None:
        lengths = st.one_of(st.integers(0, LONGEST), st.just(0), st.just(LONGEST))
        shape = tuple(data.draw(st.one_of(st.just(n), lengths)) for n in self.model.shape)
        self.array.resize(shape)
        self.reshape_model(shape)

    @rule(data=st.data())
    def shrink_and_grow(self, data: st.DataObject) -> None:
        before = self.model.shape
        if data.draw(st.booleans()):  # full of data, so that whatever comes back shows
            self.model = self.fresh(before)
            self.array[...] = self.model
        shape = tuple(max(0, n - data.draw(st.integers(0, 3))) for n in before)
        self.array.resize(shape)
        self.reshape_model(shape)
        self.array.resize(before)
        self.reshape_model(before)

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        axis = data.draw(st.integers(0, self.model.ndim - 1))
        if self.model.shape[axis] < LONGEST:
            shape = tuple(data.draw(st.integers(0, 4)) if i == axis else n for i, n in enumerate(self.model.shape))
            values = self.fresh(shape)
            assert self.array.append(values, axis=axis) == self.array.shape
            self.model = np.concatenate([self.model, values], axis=axis)

    @rule(name=st.sampled_from("abc"), value=st.one_of(st.integers(), st.text(max_size=3), st.just([1, {"x": None}])))
    def set_attribute(self, name: str, value: Any) -> None:
        self.array.attrs[name] = value
        self.attributes[name] = value

    @rule()
    def delete_attribute(self) -> None:
        if self.attributes:
            name = sorted(self.attributes)[0]
            del self.array.attrs[name]
            del self.attributes[name]

    @rule()
    def reopen(self) -> None:
        self.array = zardine.open_array(self.store, path="group/array", config={"write_empty_chunks": self.empty})

    @invariant()
    def values_agree(self) -> None:
        if hasattr(self, "array"):
            assert self.array.shape == self.model.shape
            same_bits(self.array[...], self.model)
            again = zardine.open_array(self.store, path="group/array")
            same_bits(again[...], self.model)
            assert again.attrs.asdict() == self.attributes == self.array.attrs.asdict()
            assert again.metadata == self.array.metadata

    @invariant()
    def stored_is_what_has_to_be(self) -> None:
        if not hasattr(self, "array"):
            return
        array = self.array
        chunks = self.chunks_with_data(array.read_chunk_sizes)
        objects = self.chunks_with_data(array.write_chunk_sizes)
        assert len(chunks) <= array.nchunks_initialized <= array.nchunks
        assert array.nchunks == prod(map(len, array.read_chunk_sizes))
        assert len(objects) <= array.nshards_initialized <= array.nshards
        if not self.empty:
            assert array.nchunks_initialized == len(chunks)
            assert array.nshards_initialized == len(objects)
        keys = [key for key in self.store.list_prefix("group/array/") if key != "group/array/zarr.json"]
        assert len(keys) == array.nshards_initialized  # nothing is left outside of the grid

    def chunks_with_data(self, sizes: tuple[tuple[int, ...], ...]) -> list[tuple[slice, ...]]:
        """The regions that hold anything but the fill value."""
        axes = [
            [slice(stop - size, stop) for size, stop in zip(each, np.cumsum(each).tolist(), strict=True)]
            for each in sizes
        ]
        empty = np.array(self.fill, self.model.dtype).tobytes()
        return [region for region in product(*axes) if self.model[region].tobytes() != empty * self.model[region].size]

    def fresh(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values that have not been there before, so that any return of old data shows."""
        first = self.version
        self.version += prod(shape)
        return (1 + (np.arange(first, self.version) % 30_000)).astype(self.model.dtype).reshape(shape)

    def reshape_model(self, shape: tuple[int, ...]) -> None:
        old = self.model
        self.model = np.full(shape, self.fill, old.dtype)
        kept = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape, strict=True))
        self.model[kept] = old[kept]


class ArrayLifeOnDisk(ArrayLife):
    """The same in a directory."""

    def open_store(self) -> Store:
        self.folder = tempfile.mkdtemp()
        return LocalStore(self.folder)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


TestInMemory = ArrayLife.TestCase
TestInMemory.settings = settings(stateful_step_count=20)
TestOnDisk = ArrayLifeOnDisk.TestCase
TestOnDisk.settings = settings(stateful_step_count=12, max_examples=settings.default.max_examples // 3)
