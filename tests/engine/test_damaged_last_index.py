"""An index that was damaged after it was written is an error, not a reason to show what an older one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ChecksumError, CorruptionError

LOCATIONS = pytest.mark.parametrize("location", ["end", "start"])


def written(path: Path, location: str, count: int = 8, edits: int = 2) -> zardine.Array:
    shards = {"shape": (count,), "index_location": location}
    config: Any = {"write_strategy": "append", "most_unused": 0.99}
    array = zardine.create_array(
        path, shape=(count,), chunks=(1,), shards=shards, dtype="i8", compressors=None, config=config, fill_value=0
    )
    array[...] = np.arange(count) + 133
    for i in range(edits):
        array[0] = 5 + i
    return array


@LOCATIONS
@pytest.mark.parametrize("count", [1, 2, 8, 64])
@pytest.mark.parametrize("edits", [1, 2, 5])
def test_any_flipped_bit_of_the_last_index(location: str, count: int, edits: int, tmp_path: Path) -> None:
    array = written(tmp_path / "a", location, count, edits)
    path = tmp_path / "a/c/0"
    good = path.read_bytes()
    size = 16 * count + 4
    start = 0 if location == "start" else len(good) - size
    rng = np.random.default_rng(count)
    for at in rng.choice(size, min(size, 24), replace=False).tolist():
        bad = bytearray(good)
        bad[start + at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        with pytest.raises(CorruptionError):
            zardine.open_array(tmp_path / "a")[0]
        if count > 1:  # otherwise nothing that is stored is needed
            with pytest.raises(CorruptionError, match="nothing was written"):
                array[count - 1] = 99
        assert path.read_bytes() == bad
    zardine.repair(tmp_path / "a")
    assert array[0] == 4 + edits


@LOCATIONS
def test_several_damaged_bytes(location: str, tmp_path: Path) -> None:
    written(tmp_path / "a", location)
    path = tmp_path / "a/c/0"
    bad = bytearray(path.read_bytes())
    start = 0 if location == "start" else len(bad) - 132
    bad[start + 18 : start + 40] = bytes(22)
    path.write_bytes(bad)
    with pytest.raises(ChecksumError):
        zardine.open_array(tmp_path / "a")[0]
