"""Stores that are far away, as far as those who use them can tell."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from zardine.storage import WrapperStore
from zardine.stores.base import ReadCost


class FarStore(WrapperStore):
    """A store where a look is a request, and where nobody knows who writes."""

    @property
    def has_cheap_looks(self) -> bool:
        return False

    @property
    def lock_is_exclusive(self) -> bool:
        return False

    @property
    def files(self) -> None:
        return None

    def writer(self, prefix: str) -> Any:
        return nullcontext(False)

    def wait_for_writers(self, prefix: str) -> bool:
        return False


class Far(WrapperStore):
    """A store of which each request takes long, as far as others can tell."""

    @property
    def has_cheap_looks(self) -> bool:
        return False

    @property
    def cost(self) -> ReadCost:
        return ReadCost(latency=0.03, requests=8)
