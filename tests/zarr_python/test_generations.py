"""Arrays that zardine has resharded or replaced, which carry an id in their documents, opened by zarr-python."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import zardine
import zardine.zarr_python
from zardine.errors import ArrayChangedError


@pytest.fixture(autouse=True)
def ours() -> Iterator[None]:
    """Zardine's pipeline, where anything that it does not know is an error; nor are there warnings."""
    with zardine.zarr_python.enable(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def document(path: Path) -> dict[str, object]:
    """The stored document of the array."""
    found: dict[str, object] = json.loads((path / "zarr.json").read_text())
    return found


@pytest.mark.parametrize("how", ["reshard", "overwrite"])
def test_it_is_read_written_resized_and_appended_to(how: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = zardine.create_array(path, shape=(20, 20), shards=(10, 20), chunks=(5, 5), dtype="i4")
    made[...] = 1
    if how == "reshard":
        zardine.reshard(path, shards=(20, 10), grace=0)
    else:
        made = zardine.create_array(path, shape=(20, 20), shards=(20, 10), chunks=(5, 5), dtype="i4", overwrite=True)
        made[...] = 1
    identity = document(path).get("zardine_generation")
    assert identity
    a = zarr.open_array(path)
    b = zarr.open_array(path)
    assert (a[:] == 1).all()
    a[3:12, 4] = 2
    a.resize((30, 20))
    a[25:] = 3
    a.append(np.full((5, 20), 4, "i4"))
    a.attrs["title"] = "still there"
    b[0] = 5  # opened before, and of the same generation
    expected = np.ones((35, 20), "i4")
    expected[3:12, 4], expected[20:25], expected[25:30], expected[30:], expected[0] = 2, 0, 3, 4, 5
    np.testing.assert_array_equal(a[:], expected)
    np.testing.assert_array_equal(zarr.open_array(path)[:], expected)
    ours = zardine.open_array(path)
    np.testing.assert_array_equal(ours[...], expected)
    assert ours.attrs["title"] == "still there"
    a.resize((10, 20))
    np.testing.assert_array_equal(zarr.open_array(path)[:], expected[:10])
    assert zardine.verify(path).ok


@pytest.mark.parametrize("how", ["reshard", "overwrite"])
def test_what_was_opened_before_says_so(how: str, tmp_path: Path) -> None:
    """By the same layout, too, when it was replaced."""
    options = {"shape": (20, 20), "shards": (10, 20), "chunks": (5, 5), "dtype": "i4"}
    made = zardine.create_array(tmp_path, **options)
    made[...] = 1
    a = zarr.open_array(tmp_path)
    assert (a[:] == 1).all()
    if how == "reshard":
        zardine.reshard(tmp_path, shards=(20, 10), grace=0)
    else:
        zardine.create_array(tmp_path, **options, overwrite=True)
    with pytest.raises(ArrayChangedError):
        a[0] = 2
    with pytest.raises(ArrayChangedError):
        a[:]
    assert (zarr.open_array(tmp_path)[:] == (1 if how == "reshard" else 0)).all()


def test_a_store_that_lost_the_id_by_zarr_python_is_read(tmp_path: Path) -> None:
    """zarr-python may write the document anew without what it does not know; what it holds is the same array."""
    made = zardine.create_array(tmp_path, shape=(8,), chunks=(4,), dtype="i4")
    made = zardine.create_array(tmp_path, shape=(8,), chunks=(4,), dtype="i4", overwrite=True)
    made[...] = 1
    a = zarr.open_array(tmp_path)
    a.update_attributes({"x": 1})
    a[0] = 7
    assert a[:].tolist() == made[...].tolist() == [7] + [1] * 7
