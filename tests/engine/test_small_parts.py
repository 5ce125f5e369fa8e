"""Many small parts of one large raw shard, read by several threads: each opens the file for itself, and closes it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import zardine


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs the number of open files")
def test_planes_and_points_by_many_threads(tmp_path: Path) -> None:
    values = np.arange(96 * 128 * 128, dtype="i4").reshape(96, 128, 128)
    array = zardine.create_array(
        tmp_path / "a", shape=values.shape, dtype="i4", chunks=(48, 64, 64), shards=values.shape, compressors=None
    )
    array[...] = values
    random = np.random.default_rng(4)
    opened = []
    with zardine.config.set(threads=6):
        for at in range(0, 128, 9):
            np.testing.assert_array_equal(array[:, at], values[:, at])
            np.testing.assert_array_equal(array[:, 3:5, at], values[:, 3:5, at])
            points = tuple(random.integers(0, length, 3000) for length in values.shape)
            np.testing.assert_array_equal(array.vindex[points], values[points])
            opened.append(len(os.listdir("/proc/self/fd")))
            if at == 63:
                values = values + 1  # in a file that takes the place of the other
                array[...] = values
    assert max(opened) < opened[0] + 4  # a thread that left one open would do so at every turn


def test_a_file_that_others_replace(tmp_path: Path) -> None:
    values = np.arange(64 * 64 * 64, dtype="u2").reshape(64, 64, 64)
    array = zardine.create_array(
        tmp_path / "a", shape=values.shape, dtype="u2", chunks=(64, 64, 64), shards=values.shape, compressors=None
    )
    other = zardine.open_array(tmp_path / "a")
    with zardine.config.set(threads=4):
        for number in range(8):
            other[...] = values + number
            np.testing.assert_array_equal(array[:, number], values[:, number] + number)
