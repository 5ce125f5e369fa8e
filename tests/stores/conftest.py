"""What several tests of stores need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import servers
from servers.fault_proxy import FaultProxy


@pytest.fixture(scope="module")
def s3_proxy() -> Iterator[FaultProxy]:
    """A proxy with faults in front of the S3 server."""
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    yield proxy
    proxy.close()
