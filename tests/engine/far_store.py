"""A store that is far away, as far as those who use it can tell."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from zardine.storage import WrapperStore


class FarStore(WrapperStore):
    """A store where a look is a request, and where nobody knows who writes."""

    @property
    def has_cheap_looks(self) -> bool:
        return False

    @property
    def lock_is_exclusive(self) -> bool:
        return False

    @property
    def gives_files(self) -> bool:
        return False

    @property
    def edits_files(self) -> bool:
        return False

    def writer(self, prefix: str) -> Any:
        return nullcontext(False)

    def wait_for_writers(self, prefix: str) -> bool:
        return False
