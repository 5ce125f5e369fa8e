"""ome-zarr writes and reads images with their pyramids and labels, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from ome_zarr.writer import write_image, write_labels

folder = Path(sys.argv[1])
image = np.random.default_rng(1).integers(0, 255, (3, 128, 128), "u1")
labels = (image[:1] > 128).astype("i4").repeat(3, axis=0)

for version in (FormatV04(), FormatV05()):
    for kind, pixels in (("numpy", image), ("dask", da.from_array(image, chunks=(1, 64, 64)))):
        place = folder / f"{kind}-{version.version}.zarr"
        opened: Any = parse_url(str(place), mode="w", fmt=version)
        root = zarr.group(store=opened.store, zarr_format=version.zarr_format)
        write_image(pixels, root, axes="cyx", fmt=version)
        write_labels(labels, root, name="bright", axes="cyx", fmt=version)
        nodes = list(Reader(parse_url(str(place)))())
        levels = nodes[0].data
        np.testing.assert_array_equal(levels[0].compute(), image)
        assert len(levels) > 1
        assert levels[1].shape == (3, 64, 64)
        found = next(node for node in nodes[1:] if getattr(node, "data", None))
        np.testing.assert_array_equal(found.data[0].compute(), labels)
        assert zarr.open_group(place, mode="r").metadata.zarr_format == version.zarr_format
