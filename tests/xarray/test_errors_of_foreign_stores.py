"""Errors about stores of other programs: one line, however long the text of the store is."""

from __future__ import annotations

import pytest

import zardine.xarray  # noqa: F401
from servers import servers
from zardine.errors import UnsupportedError
from zardine.shown_text import one_line

xarray = servers.package("xarray")
storage = servers.package("zarr.storage")


class Remote(storage.MemoryStore):
    """A store whose text has many lines."""

    def __str__(self) -> str:
        return "\n".join(f"option {number}: https://me:secret@host/a" for number in range(100))


def test_the_text_of_a_store_is_one_line() -> None:
    with pytest.raises(UnsupportedError, match=r"^option 0: .*\.\.\. cannot be opened here: ") as found:
        xarray.open_dataset(Remote(), engine="zardine")
    assert "\n" not in str(found.value)
    assert "secret" not in str(found.value)
    assert len(str(found.value)) < 500


def test_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 300) == "x" * 117 + "..."
    assert one_line("\x1b[31m") == "\\x1b[31m"
