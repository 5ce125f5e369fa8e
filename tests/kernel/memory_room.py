"""A limit on the memory of this process, and how much of it was needed."""

from __future__ import annotations

import resource
from pathlib import Path

MIB = 2**20


class MemoryRoom:
    """From its making on the process has no more than ``mib`` MiB of addresses beyond those it has now.

    ``grown`` tells, in MiB, by how much the most addresses, and the most memory in use, have grown since (both 0 where
    the system does not tell).
    """

    def __init__(self, mib: int) -> None:
        self._start = _peaks()
        now = _status("VmSize")
        if now:
            limit = now + mib * MIB
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def grown(self) -> tuple[int, int]:
        """Addresses, memory in use."""
        addresses, used = (now - before for now, before in zip(_peaks(), self._start, strict=True))
        return addresses // MIB, used // MIB


def _peaks() -> tuple[int, int]:
    return _status("VmPeak"), _status("VmHWM")


def _status(name: str) -> int:
    """A size in bytes out of ``/proc/self/status``; 0 where that is not there."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
