"""spatialdata writes, reads and changes images, labels, points, shapes and tables, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from pathlib import Path

import anndata
import geopandas
import numpy as np
import pandas as pd
import spatialdata
from shapely.geometry import Point
from spatialdata.models import Image2DModel, Labels2DModel, PointsModel, ShapesModel, TableModel

random = np.random.default_rng(0)
image = random.integers(0, 255, (3, 200, 200), "u1")
labels = (image[0] > 128).astype("i4")
table = anndata.AnnData(
    np.arange(6.0).reshape(2, 3),
    obs=pd.DataFrame({"region": pd.Categorical(["shapes"] * 2), "id": [0, 1]}, index=["0", "1"]),
)
points = pd.DataFrame({"x": random.random(50), "y": random.random(50), "gene": pd.Categorical(["a", "b"] * 25)})
circles = geopandas.GeoDataFrame({"geometry": [Point(1, 2), Point(3, 4)], "radius": [1.0, 2.0]})
data = spatialdata.SpatialData(
    images={"image": Image2DModel.parse(image, dims=("c", "y", "x"), scale_factors=[2, 2])},
    labels={"labels": Labels2DModel.parse(labels, dims=("y", "x"))},
    points={"points": PointsModel.parse(points)},
    shapes={"shapes": ShapesModel.parse(circles)},
    tables={"table": TableModel.parse(table, region="shapes", region_key="region", instance_key="id")},
)
place = Path(sys.argv[1])
data.write(place / "a.zarr")
found = spatialdata.read_zarr(place / "a.zarr")
np.testing.assert_array_equal(np.asarray(found["image"]["scale0"]["image"]), image)
np.testing.assert_array_equal(np.asarray(found["labels"]), labels)
np.testing.assert_array_equal(found["table"].X, table.X)
np.testing.assert_array_equal(found["points"].compute()["x"], points["x"])
found["more"] = Labels2DModel.parse(labels, dims=("y", "x"))
found.write_element("more")
assert "more" in spatialdata.read_zarr(place / "a.zarr").labels
found.delete_element_from_disk("more")
assert "more" not in spatialdata.read_zarr(place / "a.zarr").labels
spatialdata.read_zarr(place / "a.zarr").write(place / "b.zarr")
