"""The reader of napari for OME-Zarr finds the layers of images, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from pathlib import Path

import numpy as np
import zarr
from napari_ome_zarr._reader import napari_get_reader
from ome_zarr.writer import write_image

image = np.random.default_rng(0).integers(0, 255, (3, 128, 128), "u1")
place = str(Path(sys.argv[1]) / "a.ome.zarr")
write_image(image, zarr.open_group(place, mode="w"), axes="cyx")
read = napari_get_reader(place)
assert read is not None
layers = read(place)
assert [kind for _, _, kind in layers] == ["image"] * 3
for channel, (levels, _, _) in zip(image, layers, strict=True):
    assert len(levels) > 1
    np.testing.assert_array_equal(np.asarray(levels[0]), channel)
