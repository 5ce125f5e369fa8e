"""What of zarr-python's own tests always runs: the arrays and selections that its package draws for its tests.

``suite.py`` runs all of them, from the source package.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.testing import strategies

import zardine
import zardine.zarr_python

REASONS = Path(__file__).parent / "suite_reasons.toml"
PAGE = Path(zardine.__file__).parents[2] / "docs" / "zarr-python.md"
OWN = "zarr.core.codec_pipeline.BatchedCodecPipeline"

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*(endian|specification|chunk)"),
]


@pytest.fixture(autouse=True, scope="module")
def ours() -> Iterator[None]:
    """Zardine's pipeline, where anything that it does not know is an error."""
    rectilinear = {"array.rectilinear_chunks": True} if hasattr(strategies, "rectilinear_arrays") else {}
    with zardine.zarr_python.enable(strict=True), zarr.config.set(rectilinear):
        yield


def plainly(array: zarr.Array) -> zarr.Array:
    """The same array through zarr-python's own pipeline."""
    with zarr.config.set({"codec_pipeline.path": OWN}):
        return zarr.open_array(array.store_path, mode="r+")


def drawn(data: Any) -> tuple[zarr.Array, zarr.Array, Any]:
    """An array that zarr-python draws, written by zardine; by zarr-python's own pipeline; its elements by that."""
    array = data.draw(strategies.arrays())
    assert type(array.async_array.codec_pipeline).__name__ == "ZardineCodecPipeline"
    own = plainly(array)
    return array, own, np.asarray(own[...])


def same(found: Any, expected: Any) -> None:
    """Raise where these differ, be it in shape or type."""
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), strict=True)


@given(data=st.data())
def test_basic_selections(data: Any) -> None:
    array, own, values = drawn(data)
    same(array[...], values)
    index = data.draw(strategies.basic_indices(shape=array.shape))
    same(array[index], own[index])
    new = data.draw(strategies.numpy_arrays(shapes=st.just(np.asarray(values[index]).shape), dtype=values.dtype))
    array[index] = new
    values[index] = new
    same(own[...], values)
    same(array[...], values)


@given(data=st.data())
def test_orthogonal_selections(data: Any) -> None:
    array, own, values = drawn(data)
    if array.ndim == 0:
        return
    index, numpy_index = data.draw(strategies.orthogonal_indices(shape=array.shape))
    same(array.oindex[index], own.oindex[index])
    for each in index:
        if isinstance(each, np.ndarray) and len(np.unique(each % max(array.shape))) != each.size:
            return  # which of the values stays is not said
    new = data.draw(strategies.numpy_arrays(shapes=st.just(values[numpy_index].shape), dtype=values.dtype))
    array.oindex[index] = new
    values[numpy_index] = new
    same(own[...], values)
    same(array[...], values)


@given(data=st.data())
def test_points(data: Any) -> None:
    array, own, values = drawn(data)
    if array.ndim == 0 or 0 in array.shape:
        return
    count = data.draw(st.integers(1, 12))
    index = tuple(
        np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count))) for n in array.shape
    )
    same(array.vindex[index], own.vindex[index])
    mask = np.zeros(array.shape, bool)
    mask[index] = True
    same(array.vindex[mask], own.vindex[mask])
    array.vindex[mask] = values[index][0]
    values[mask] = values[index][0]
    same(own[...], values)


def test_every_reason_is_in_the_documentation_and_no_other() -> None:
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"]
    assert all(re.compile(each["pattern"]) for each in listed)
    _, _, table = PAGE.read_text(encoding="utf-8").partition("| test | why |\n|---|---|\n")
    rows = re.findall(r"^\| `(.*?)`(?: \((\d+)\))? \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(why for _, _, why in rows) == sorted(each["text"] for each in listed)
    assert sum(int(count or 1) for _, count, _ in rows) <= 25
    for name, _, why in rows:
        pattern = next(each["pattern"] for each in listed if each["text"] == why)
        assert pattern.partition("::")[0] == name
