"""Resharding to lists of lengths that was cut off: the array grows, and the same call goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import MemoryStore, WrapperStore


class KilledError(BaseException):
    """What a call that is killed does no more."""


class _Dying(WrapperStore):
    left = 0

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KilledError
        return super().set(key, value, condition=condition)


@pytest.mark.parametrize(
    "new", [{"chunks": [[10, 20, 10]], "shards": None}, {"chunks": (5,), "shards": [[10, 20, 10]]}]
)
@pytest.mark.parametrize("copies", [False, True])
def test_the_last_length_goes_on(new: dict[str, Any], copies: bool) -> None:
    resumed = 0
    for at in range(1, 40):
        inner = MemoryStore()
        array = zardine.create_array(inner, name="a", data=np.arange(40), chunks=(4,))
        store, more = _Dying(inner), {"target_path": "b"} if copies else {}
        store.left = at
        target = {"target": store} if copies else {}
        try:
            zardine.reshard(store, path="a", **new, **target, **more)
            break
        except KilledError:
            pass
        if not any("zardine_reshard" in key for key in inner.list()):
            continue
        if "zardine_resharding" in bytes(inner.get("a/zarr.json") or b"").decode():
            continue  # nobody may write any more
        if zardine.open_array(inner, path="a").metadata.chunk_grid != array.metadata.chunk_grid:
            continue  # it is done, but for what is to be erased
        array.append(np.arange(40, 65))
        made = {"target": inner, **more} if copies else {}
        zardine.reshard(inner, path="a", **new, **made)
        done = zardine.open_array(inner, path="b" if copies else "a")
        assert done[...].tolist() == list(range(65))
        assert zardine.verify(inner).faults == ()
        resumed += 1
    assert resumed > 1
