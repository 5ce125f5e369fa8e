"""What a process that was killed leaves beside a zip archive: the unfinished file that should have taken its place."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Final

from zardine.stores.zip.lock import no_writer

_NAME: Final = re.compile(r"[0-9a-f]{16}\.part")
_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def leftovers(path: str, older_than: float) -> Iterator[str]:
    """Paths of unfinished files of the archive at ``path`` that no process writes to.

    Those that were changed in the last ``older_than`` seconds are left out: where there are no locks, somebody may be
    writing to them.
    """
    folder, name = os.path.split(path)
    latest = time.time() - older_than
    try:
        found = sorted(os.listdir(folder))
    except OSError:
        return
    for each in found:
        if each.startswith(f"{name}.") and _NAME.fullmatch(each, len(name) + 1):
            there = os.path.join(folder, each)
            with contextlib.suppress(OSError):
                if os.lstat(there).st_ctime <= latest and _is_left(there):
                    yield there


def remove_leftovers(path: str, older_than: float) -> int:
    """Remove the :func:`leftovers`; gives their number."""
    count = 0
    for each in leftovers(path, older_than):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(each)
            count += 1
    return count


def _is_left(path: str) -> bool:
    file = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        with no_writer(file) as free:
            return free
    finally:
        os.close(file)


__all__ = ["leftovers", "remove_leftovers"]
