"""What the clock of a file system says, which may be that of a file server and differ from ours by minutes.

File systems of this machine take times from its clock. Of others (NFS, SMB, FUSE, shared folders) only times that they
gave themselves count, and those that passed here since they were seen.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from zardine.stores.file_calls import close_file, open_descriptor

_OF_THIS_MACHINE: Final = {"btrfs", "overlay", "ramfs", "tmpfs", "zfs"}
"""Kinds without a disk of their own, as the system calls them, of which the times are those of our clock."""

_latest: dict[int, tuple[int, float] | None] = {}
"""For each device a time that it gave, and the moment at which it was seen; ``None``: its clock is ours."""

_asked: dict[int, tuple[float, float]] = {}
"""For each device that was asked, its clock in seconds, and the moment at which that was so."""


def is_settled(status: os.stat_result, within: int) -> bool:
    """Whether a directory gets another time than it has, by ``within`` nanoseconds, if names come or go from now on.

    ``False`` also where nobody knows yet: of a file server, until it is asked again that long after.
    """
    device = status.st_dev
    if device not in _latest:
        _latest[device] = None if _has_our_clock(device) else (status.st_ctime_ns, time.monotonic())
    known = _latest[device]
    if known is None:
        return abs(time.time_ns() - status.st_mtime_ns) >= within
    now = known[0] + int((time.monotonic() - known[1]) * 1e9)
    if status.st_ctime_ns > now:  # which programs cannot set, as they can that of the last change
        now = status.st_ctime_ns
        _latest[device] = now, time.monotonic()
    return now - status.st_mtime_ns >= within


def is_older(status: os.stat_result, seconds: float) -> bool:
    """Whether the last change of a file was ``seconds`` ago and more, by the clock of its file system.

    Of a file server, of which nobody has asked for it (:func:`ask_clock`), ours stands for that. A change that much
    ahead of the clock was made before the clock was put back.
    """
    asked = _asked.get(status.st_dev)
    now = time.time() if asked is None else asked[0] + time.monotonic() - asked[1]
    return abs(now - status.st_ctime) >= seconds


def ask_clock(path: str, name: str) -> None:
    """Ask the clock of the file system of a directory, if it may not be ours, by a file ``name`` that is made for it.

    Where no file can be made, nothing is known of it.
    """
    try:
        device = os.stat(path).st_dev
        if _has_our_clock(device):
            return
        place = os.path.join(path, name)
        file = open_descriptor(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _asked[device] = os.fstat(file).st_ctime, time.monotonic()
        finally:
            close_file(file)
            os.unlink(place)
    except OSError:
        return


def _has_our_clock(device: int) -> bool:
    if sys.platform != "linux":
        return False
    if os.major(device):  # a disk of this machine
        return True
    mark = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            found = [line.split() for line in mounts]
    except OSError:
        return False
    kinds = {words[words.index("-") + 1] for words in found if words[2] == mark}
    return bool(kinds) and kinds <= _OF_THIS_MACHINE


__all__ = ["ask_clock", "is_older", "is_settled"]
