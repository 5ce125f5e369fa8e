"""Pieces of a value reach its file in order, small ones together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zardine.buffers import BytesLike
from zardine.stores import open_files
from zardine.stores.local.store import LocalStore
from zardine.stores.open_files import FilePart, joined


def test_small_pieces_are_one_call_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "_MOST_PARTS", 3)
    store = LocalStore(tmp_path)
    store.set("a", b"0123456789")
    large = bytes(open_files._SMALL_PIECE + 1)
    small: list[BytesLike] = [b"x", bytearray(b"yz"), memoryview(b"u"), np.arange(2, dtype="u1").data, b"", b"t"]
    with store.files.edit("a") as file:
        assert file is not None
        part, other = FilePart(file, 2, 3), FilePart(file, 0, 2)
        pieces = [*small, part, other, large, large, b"v", part, b"w", b"s"]
        given = [each if isinstance(each, FilePart) else bytes(each) for each in joined(pieces)]
        assert given == [b"xyzu", b"\0\1", b"t", part, other, large, large, b"v", part, b"ws"]
        file.replace(pieces)
    assert store.get("a") == b"xyzu\0\1t" + b"23401" + 2 * large + b"v" + b"234" + b"ws"
    assert list(joined([])) == []
