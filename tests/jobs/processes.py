"""Processes that run jobs: who they are, and how much memory they took."""

from __future__ import annotations

from pathlib import Path


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process has begun to run jobs."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
                words = (each / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if parent == pid and b"spawn_main" in words:
                found.append(int(each.name))
    return found


def peak_memory(pid: int | str) -> int:
    """Return the most bytes that a process (``"self"``: this one) had in memory; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


__all__ = ["peak_memory", "workers_of"]
