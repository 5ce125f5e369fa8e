"""Plans on an object store: what is forecast is what the log of the server counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zardine
from servers.servers import new_bucket, s3, s3_options
from zardine.jobs import Plan

VALUES = np.random.default_rng(0).integers(0, 100, (24, 40, 36)).astype("int32")


@pytest.mark.parametrize("speculative", [False, True])
def test_rechunk(tmp_path: Path, speculative: bool) -> None:
    """Where the memory of a work is stated, nothing is read unasked, so that the forecast holds."""
    server, options = s3(), s3_options()
    url = f"s3://{new_bucket()}"
    array = zardine.create_array(
        f"{url}/a", shape=VALUES.shape, dtype="int32", chunks=(1, 40, 36), storage_options=options
    )
    array[...] = VALUES
    plan = zardine.plan_rechunk(
        f"{url}/a",
        f"{url}/b",
        chunks=(24, 4, 4),
        max_memory="96 KiB",
        storage_options=options,
        target_options=options,
    )
    forecast = plan.requests, plan.bytes_read
    plan.save(tmp_path / "plan.json")
    assert "secret" not in (tmp_path / "plan.json").read_text()
    plan = Plan.load(tmp_path / "plan.json", storage_options=options, target_options=options)
    server.log()
    with zardine.config.set({"speculative_read": speculative}):
        assert plan.run()
    lines = [line.split() for line in server.log()]
    chunks = [words for words in lines if "/c/" in words[1]]
    assert forecast[0] == len(chunks) + 1  # what lay between is erased in one request
    assert abs(forecast[1] - sum(int(words[4]) for words in chunks if words[0] == "GET")) <= 0.1 * forecast[1]
    gets = [words[1] for words in chunks if words[0] == "GET" and "/a/c/" in words[1]]
    assert len(gets) == len(set(gets)) == 24
    assert np.array_equal(zardine.open_array(f"{url}/b", storage_options=options)[...], VALUES)
    assert [key for key in zardine.open_array(f"{url}/b", storage_options=options).store.list() if "__" in key] == []
