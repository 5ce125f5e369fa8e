"""Data sets of which an axis that is not the first has no end: HDF5 lists their chunks at wrong coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import zardine
import zardine.sources

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, ...]]] = [
    ((4, 6), (2, 2), (4, None)),
    ((4, 6), (2, 2), (20, None)),
    ((4, 6), (1, 6), (20, None)),
    ((3, 4, 5), (2, 2, 2), (9, None, 12)),
    ((3, 4, 5), (2, 1, 2), (9, 8, None)),
    ((3, 4, 5), (1, 2, 2), (None, 8, 5)),
    ((3, 4), (2, 2), (None, None)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"compression": "lzf"}], ids=str)
@pytest.mark.parametrize(("shape", "chunks", "most"), SHAPES)
def test_chunks_are_where_hdf5_reads_them(
    tmp_path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    most: tuple[int | None, ...],
    options: dict[str, Any],
    version: str,
) -> None:
    values = np.random.default_rng(0).integers(1, 100, shape, "int32")
    last = tuple(slice(length - 1, None) for length in shape)
    first_rows = (slice(0, chunks[0]),)
    for number, (user_block, part) in enumerate([(0, ...), (512, ...), (0, last), (0, first_rows)]):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w", libver=version, userblock_size=user_block) as file:
            stored = file.create_dataset("a", shape, "int32", chunks=chunks, maxshape=most, **options)
            stored[part] = values[part]
            wanted = stored[...]
        found = zardine.sources.open(path)["a"]
        np.testing.assert_array_equal(found[...], wanted)
        new = zardine.convert(path, tmp_path / f"{number}.zarr")["a"]
        np.testing.assert_array_equal(new[...], wanted)
