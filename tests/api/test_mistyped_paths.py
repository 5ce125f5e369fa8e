"""What is said where nothing is stored at a path, but beside it under a name that is like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import zardine
from zardine.errors import NodeNotFoundError
from zardine.storage import LocalStore, MemoryStore


@pytest.mark.parametrize("function", [zardine.open, zardine.open_array, zardine.open_group])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_the_name_that_may_be_meant(tmp_path: Path, function: Any, mode: Any) -> None:
    zardine.create_group(str(tmp_path / "data.zarr")).create_array("first", shape=3, dtype="i4")
    place = f"{tmp_path}/data.zarr"
    for options, meant in (
        ({"store": f"{tmp_path}/dat.zarr"}, place),
        ({"store": f"{place}/fisrt"}, f"{place}/first"),
        ({"store": LocalStore(place), "path": "fisrt"}, f"{place}/first"),
    ):
        with pytest.raises(NodeNotFoundError, match="looked for") as raised:
            function(**options, mode=mode)
        assert str(raised.value).endswith(f"; did you mean {meant!r}?")
    (tmp_path / "empty").mkdir()
    for store in (tmp_path / "quite/else", tmp_path / "empty", MemoryStore()):
        with pytest.raises(NodeNotFoundError) as raised:
            function(store, mode=mode)
        assert "did you mean" not in str(raised.value)
