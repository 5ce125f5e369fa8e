"""``zardine.compact``: smaller shards with the same inner chunks."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from tools.test_repair import VALUES, make, read_by_others
from zardine.errors import ReadOnlyError


def spread(path: Path, array: zardine.Array) -> None:
    """Every write appends, so that the shards have unused space."""
    appending = array.with_config({"write_strategy": "append", "most_unused": 1.0})
    for row in range(0, 20, 2):
        appending[row : row + 2, :5] = VALUES[row : row + 2, :5]


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("order", [None, "c", "f", "morton"])
def test_unused_space_goes(tmp_path: Path, location: str, order: str | None) -> None:
    path = tmp_path / "a.zarr"
    array = make(str(path), location)
    before = sum(file.stat().st_size for file in (path / "c").rglob("*") if file.is_file())
    spread(path, array)
    assert {note.kind for note in zardine.verify(str(path)).notes} == {"unused"}
    done = zardine.compact(str(path), order=order)
    assert done
    assert done.bytes_after == before
    assert done.bytes_won > 0
    assert (done.shards, done.rewritten) == (4, 2 if order in (None, "c") else 4)
    for found in (array[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, VALUES)
    report = zardine.verify(str(path))
    assert report
    assert report.notes == ()
    assert zardine.compact(str(path), order=order).rewritten == 0
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    offsets = layout.index_of((path / "c/0/0").read_bytes()).offsets.reshape(5, 2)
    if order == "c":
        assert (np.diff(offsets.ravel().astype(int)) > 0).all()
    if order == "f":
        assert (np.diff(offsets.T.ravel().astype(int)) > 0).all()
    if order == "morton":
        assert np.argsort(offsets.ravel()).tolist()[:4] in ([0, 1, 2, 3], [0, 2, 1, 3])


def test_shared_bytes_stay_shared_and_damaged_shards_as_they_are() -> None:
    from zardine.sharding.index import encode_index

    store: dict[str, Any] = {}
    array = make(store)
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    shard = bytes(store["c/0/0"])
    index = layout.index_of(shard)
    index.offsets[3], index.lengths[3] = index.offsets[2], index.lengths[2]
    store["c/0/0"] = shard[: -layout.index_size] + bytes(encode_index(index, layout.index_chain))
    store["c/1/1"] = shard[:-1]
    values = array[:10, :10]
    done = zardine.compact(store)
    assert not done
    assert [fault.key for fault in done.faults] == ["c/1/1"]
    assert store["c/1/1"] == shard[:-1]
    assert done.rewritten == 1
    assert len(store["c/0/0"]) == len(shard) - int(index.lengths[2])
    np.testing.assert_array_equal(zardine.open_array(store)[:10, :10], values)


def test_a_writer_that_comes_in_between_is_not_lost() -> None:
    class Racing(zardine.storage.WrapperStore):
        writes = 3

        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if condition is not None and self.writes:
                self.writes -= 1
                whole = super().get(key)
                assert whole is not None
                super().set(key, bytes(whole))  # a new version
            return super().set(key, value, condition=condition)

    inner = zardine.storage.MemoryStore()
    make(inner)
    shard = bytes(inner.get("c/0/0") or b"")
    zardine.compact(Racing(inner), order="f")
    assert inner.get("c/0/0") != shard
    np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)


def test_command(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    spread(path, make(str(path)))
    result = run("compact", path, "--json")
    assert json.loads(result.stdout)["bytes_won"] > 0
    assert run("compact", path).stdout.startswith("0 of ")
    assert run("compact", path, "--order", "x").exit_code == 2
    (path / "c/0/0").write_bytes(b"")
    result = run("compact", path, "-q")
    assert result.exit_code == 1
    assert "left as it is" in result.stdout


def test_a_shard_whose_last_append_was_cut_off(tmp_path: Path) -> None:
    spread(tmp_path, make(str(tmp_path)))
    shard = tmp_path / "c/0/0"
    shard.write_bytes(shard.read_bytes()[:-20])
    [fault] = zardine.compact(str(tmp_path)).faults
    assert (fault.key, fault.kind) == ("c/0/0", "index")
    assert fault.message.endswith("left as it is; zardine.repair saves what can be read of it")


def test_an_array_opened_for_reading(tmp_path: Path) -> None:
    make(str(tmp_path))
    opened = zardine.open_array(str(tmp_path), mode="r")
    for tool in (zardine.compact, zardine.repair, partial(zardine.reshard, shards=(20, 20))):
        with pytest.raises(ReadOnlyError, match="this changes what is stored: open it with mode='r\\+'"):
            tool(opened)
