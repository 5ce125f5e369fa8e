"""bioio writes OME-Zarr of both versions level by level, and reads it back, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from pathlib import Path

import numpy as np
import zarr
from bioio_ome_zarr import Reader
from bioio_ome_zarr.writers import OMEZarrWriter

image = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 64, 64), "u2")
for version in (2, 3):
    place = str(Path(sys.argv[1]) / f"{version}.zarr")
    writer = OMEZarrWriter(
        store=place,
        level_shapes=[image.shape, (2, 3, 4, 32, 32)],
        shard_shape=[(1, 3, 4, 64, 64), (1, 3, 4, 32, 32)] if version == 3 else None,
        chunk_shape=[(1, 1, 1, 32, 32), (1, 1, 1, 32, 32)],
        dtype="uint16",
        zarr_format=version,
        axes_names=["t", "c", "z", "y", "x"],
        axes_types=["time", "channel", "space", "space", "space"],
    )
    writer.write_full_volume(image)
    assert zarr.open_group(place, mode="r")["0"].shards == ((1, 3, 4, 64, 64) if version == 3 else None)
    reader = Reader(place)
    assert reader.resolution_levels == (0, 1)
    np.testing.assert_array_equal(reader.get_image_data("TCZYX"), image)
    np.testing.assert_array_equal(reader.get_image_dask_data("YX", T=1, C=2, Z=3).compute(), image[1, 2, 3])
