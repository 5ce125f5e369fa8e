"""References that VirtualiZarr makes of a file of HDF5, as JSON and as Parquet.

They need ``pip install virtualizarr kerchunk fastparquet``, which is no part of ``make test``; without it they are left
out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine

virtualizarr: Any = pytest.importorskip("virtualizarr")
pytest.importorskip("kerchunk")
pytest.importorskip("fastparquet")
h5py: Any = pytest.importorskip("h5py")

VALUES = np.arange(1000.0).reshape(10, 100)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_references_of_a_file_are_read(form: str, tmp_path: Path) -> None:
    file, out = tmp_path / "a.h5", str(tmp_path / f"refs.{form}")
    with h5py.File(file, "w") as made:
        dataset = made.create_dataset("t", data=VALUES, chunks=(5, 50), compression="gzip", shuffle=True)
        dataset.attrs["units"] = "K"
    parser = pytest.importorskip("virtualizarr.parsers").HDFParser()
    stores = pytest.importorskip("obstore.store")
    registry = pytest.importorskip("obspec_utils.registry").ObjectStoreRegistry({"file://": stores.LocalStore()})
    found = virtualizarr.open_virtual_dataset(f"file://{file}", registry=registry, parser=parser)
    found.vz.to_kerchunk(out, format=form)
    group = zardine.open_group("reference://", mode="r", storage_options={"fo": out, "remote_protocol": "file"})
    assert sorted(group) == ["t"]
    np.testing.assert_array_equal(group["t"][:], VALUES)
    assert group["t"].attrs["units"] == "K"
    assert zardine.verify(group.store).ok
