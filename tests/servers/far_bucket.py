"""A bucket of S3 behind a proxy that answers late, and how many requests of a call wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.stores.object.urls import object_store_of_url

T = TypeVar("T")

LATENCY = 0.05
"""Seconds that each request waits."""
_TRIES = 5
"""A busy machine may begin some requests late."""


class FarBucket:
    """A new bucket."""

    def __init__(self) -> None:
        self.proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
        self._bucket = servers.new_bucket()

    def near(self, prefix: str = "a") -> Any:
        """A store in it, as fast as the server is."""
        return object_store_of_url("s3", f"{self._bucket}/{prefix}", servers.s3_options())

    def far(self, prefix: str = "a") -> Any:
        """The same store through the proxy."""
        return object_store_of_url("s3", f"{self._bucket}/{prefix}", servers.s3_options(self.proxy.url))

    def in_rounds(self, most: int, call: Callable[[], T]) -> T:
        """Call, and return what that gives. Raises ``AssertionError`` unless it takes ``most`` rounds of requests."""
        rounds = []
        for _ in range(_TRIES):
            self.proxy.reset()
            self.proxy.latency = LATENCY
            try:
                found = call()
            finally:
                self.proxy.latency = 0.0
            rounds.append(self.proxy.rounds())
            if rounds[-1] <= most:
                return found
        raise AssertionError(f"{rounds} rounds, not {most}: {self.proxy.requests}")
