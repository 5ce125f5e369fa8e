"""No space left: a clear error, and the old contents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import zardine

CHILD = """
import json, resource, signal, sys, zardine
path, strategy, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
array = zardine.open_array(path, mode="r+", config={"write_strategy": strategy})
array[0, 0]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    array[4:12, 4:12] = 9
    print(json.dumps("written"))
except OSError as error:
    print(json.dumps([type(error).__name__, str(error), error.errno]))
"""


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_a_file_that_cannot_grow(strategy: str, location: str, tmp_path: Path) -> None:
    values = np.arange(1, 1025, dtype="u4").reshape(32, 32)
    path = tmp_path / "a.zarr"
    array = zardine.create_array(
        path,
        shape=(32, 32),
        dtype="u4",
        chunks=(4, 4),
        shards={"shape": (32, 32), "index_location": location},
        compressors=None,
    )
    array[...] = values
    size = (path / "c/0/0").stat().st_size
    refused = 0
    for limit in range(size // 2, size + 4 * 68 + 2 * 1030, 97):
        run = subprocess.run(
            [sys.executable, "-c", CHILD, str(path), strategy, str(limit)], capture_output=True, text=True, check=True
        )
        outcome = json.loads(run.stdout)
        if outcome == "written":
            values[4:12, 4:12] = 9
            break
        refused += 1
        assert outcome[0] == "StoreError", outcome
        assert "c/0/0" in outcome[1], outcome
        assert "too large" in outcome[1], outcome
        np.testing.assert_array_equal(zardine.open_array(path, mode="r")[...], values)
        assert sorted(p.name for p in path.rglob("*") if p.is_file()) == ["0", "zarr.json"]
    else:
        pytest.fail("never written")
    assert refused >= (0 if strategy == "in_place" else 5)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], values)
