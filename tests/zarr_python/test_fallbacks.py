"""What zardine leaves to zarr-python's own pipeline gives the same results there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage
from zarr.core.buffer import BufferPrototype, cpu

import zardine.zarr_python
from zardine.errors import UnsupportedError
from zardine.zarr_python import ZardineFallbackWarning


@pytest.fixture(autouse=True)
def ours() -> Iterator[None]:
    """Zardine's pipeline."""
    with zardine.zarr_python.enable():
        yield


KINDS: dict[str, dict[str, Any]] = {
    "sharded": {"shards": (12,), "chunks": (4,)},
    "chunks": {"chunks": (4,)},
    "v2": {"chunks": (4,), "zarr_format": 2},
}


def plainly(array: zarr.Array) -> zarr.Array:
    """The same array through zarr-python's own pipeline."""
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        return zarr.open_array(array.store_path, mode="r+")


def outcome(call: Callable[[], Any]) -> Any:
    """What comes of it: values, or the class and words of an error."""
    try:
        return np.asarray(call()).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*(endian|specification|does not have|unstable)")
def test_fields_of_structs(kind: str) -> None:
    """They are what zarr-python makes of them: values for all fields, errors for one."""
    a = zarr.create_array(zarr.storage.MemoryStore(), shape=(24,), dtype=[("x", "<i4"), ("y", "<f8")], **KINDS[kind])
    d = np.zeros(24, a.dtype)
    d["x"], d["y"] = np.arange(24), np.arange(24) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", ZardineFallbackWarning)
        a[:] = d
        a[3:5] = d[[7, 8]]
        d[3:5] = d[[7, 8]]
        np.testing.assert_array_equal(a[:], d)
        np.testing.assert_array_equal(a["x", "y"], d)
    own = plainly(a)
    for read in (
        lambda array: array["x"],
        lambda array: array["y", 5:17],
        lambda array: array.get_basic_selection(slice(None), fields=["y"]),
        lambda array: array["y", "x"],
        lambda array: array.get_basic_selection(slice(2, 20, 3), fields="y"),
        lambda array: array.get_coordinate_selection(([1, 23],), fields="x"),
    ):
        each = zarr.open_array(a.store_path)
        with pytest.warns(ZardineFallbackWarning, match="its values are wanted as"):
            found = outcome(lambda read=read, each=each: read(each))
        assert found == outcome(lambda read=read: read(own))
        with zardine.zarr_python.enable(strict=True), pytest.raises(UnsupportedError, match="wanted as"):
            read(each)


class Elsewhere:
    """An array that is no NumPy array, as those on a GPU are none."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __getitem__(self, key: Any) -> Any:
        return Elsewhere(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = value.array if isinstance(value, Elsewhere) else value

    def __array__(self, *args: Any, **options: Any) -> Any:
        return np.array(self.array, *args, **options)

    def __len__(self) -> int:
        return len(self.array)


class BufferElsewhere(cpu.NDBuffer):
    """A buffer of such an array."""

    @classmethod
    def create(cls, *, shape: Any, dtype: Any, order: Any = "C", fill_value: Any = None) -> Any:
        found = np.empty(tuple(shape), dtype, order=order)
        if fill_value is not None:
            found[...] = fill_value
        return cls(Elsewhere(found))

    @classmethod
    def empty(cls, shape: Any, dtype: Any, order: Any = "C") -> Any:
        return cls.create(shape=shape, dtype=dtype, order=order)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value._data if isinstance(value, cpu.NDBuffer) else value


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_none_of_numpy(kind: str) -> None:
    """A prototype that is not of the CPU, as ``zarr.config.enable_gpu()`` sets one."""
    a = zarr.create_array(zarr.storage.MemoryStore(), shape=(24,), dtype="i4", **KINDS[kind])
    d = np.arange(24, dtype="i4")
    a[:] = d
    prototype = BufferPrototype(buffer=cpu.Buffer, nd_buffer=BufferElsewhere)

    def read(array: zarr.Array) -> Any:
        return array.get_basic_selection(slice(3, 19), prototype=prototype)

    own = plainly(a)
    with pytest.warns(ZardineFallbackWarning, match=r"wanted as .*Elsewhere, not as NumPy arrays"):
        assert outcome(lambda: read(a)) == outcome(lambda: read(own))
    if kind != "sharded":  # zarr-python has no such arrays within shards
        found = read(a)
        assert isinstance(found, Elsewhere)
        np.testing.assert_array_equal(found.array, d[3:19])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome(lambda: read(a))  # it was said once
        np.testing.assert_array_equal(a[:], d)  # and the others go on as before
    with zardine.zarr_python.enable(strict=True), pytest.raises(UnsupportedError, match="Elsewhere"):
        read(a)
