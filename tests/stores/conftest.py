"""What several tests of stores need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from effort import SOAK
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.testing.store import StoreConformance

if not SOAK:  # there are thirty stores, and most of them share what the rounds of threads are about
    StoreConformance.rounds = 15


@pytest.fixture(scope="module")
def s3_proxy() -> Iterator[FaultProxy]:
    """A proxy with faults in front of the S3 server."""
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    yield proxy
    proxy.close()
