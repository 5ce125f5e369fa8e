"""anndata writes and reads tables with dense, sparse, text and category columns, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse
import zarr
from anndata.tests import helpers  # noqa: F401  (it derives from WrapperStore[Store])

folder = Path(sys.argv[1])
obs = pd.DataFrame(
    {"kind": pd.Categorical(["a", "b", "a"]), "n": [1, 2, 3], "text": ["x", "y", "z"]}, index=list("pqr")
)
table = anndata.AnnData(
    np.arange(12.0, dtype="f4").reshape(3, 4),
    obs=obs,
    var=pd.DataFrame({"high": [True, False, True, True]}, index=list("wxyz")),
    layers={"sparse": scipy.sparse.csr_matrix(np.eye(3, 4)), "csc": scipy.sparse.csc_matrix(np.eye(3, 4))},
    uns={"inner": {"number": 1, "text": "t", "values": np.arange(3)}},
    obsm={"pairs": np.ones((3, 2))},
)


def check(found: anndata.AnnData) -> None:
    np.testing.assert_array_equal(found.X, table.X)
    pd.testing.assert_frame_equal(found.obs, table.obs)
    pd.testing.assert_frame_equal(found.var, table.var)
    for name in ("sparse", "csc"):
        assert (found.layers[name] != table.layers[name]).nnz == 0
    assert found.uns["inner"]["text"] == "t"
    np.testing.assert_array_equal(found.uns["inner"]["values"], np.arange(3))
    np.testing.assert_array_equal(found.obsm["pairs"], np.ones((3, 2)))


for version in (2, 3):
    anndata.settings.zarr_write_format = version
    place = folder / f"a{version}"
    table.write_zarr(place)
    assert zarr.open_group(place, mode="r").metadata.zarr_format == version
    check(anndata.read_zarr(place))
    assert zarr.open_group(place, mode="r").attrs["encoding-type"] == "anndata"
    table.write_zarr(place)  # over what is there
    check(anndata.read_zarr(zarr.open_group(place, mode="r")))

    plain, joined = folder / f"plain{version}", folder / f"joined{version}"
    anndata.AnnData(np.ones((3, 4), "f4"), obs=obs, var=table.var).write_zarr(plain)
    anndata.experimental.concat_on_disk([plain, plain], joined)
    assert anndata.read_zarr(joined).shape == (6, 4)

    group = zarr.open_group(folder / f"b{version}", mode="w", zarr_format=version)
    anndata.io.write_elem(group, "/", table)
    check(anndata.io.read_elem(group["/"]))
    lazy = anndata.io.sparse_dataset(group["layers/sparse"])
    np.testing.assert_array_equal(lazy[0:2].toarray(), np.eye(3, 4)[0:2])
    lazy.append(scipy.sparse.csr_matrix(np.eye(3, 4)))
    assert anndata.io.sparse_dataset(group["layers/sparse"]).shape == (6, 4)
    anndata.io.write_elem(group, "more", pd.DataFrame({"a": [1.5, None]}))
    assert anndata.io.read_elem(group["more"])["a"].isna().tolist() == [False, True]
