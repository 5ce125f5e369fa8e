"""Runs a tool in a child that is killed (SIGKILL) at a chosen call that changes files.

``python kill_points.py FOLDER AT CALL``: in FOLDER lies ``a.zarr``; ``CALL`` is an expression over ``zardine`` and
``path``. The call number AT of the functions of :mod:`os` that change files kills the process, before it is made.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("write", "pwritev", "replace", "link", "unlink", "rename", "rmdir", "utime", "copy_file_range", "mkdir")


def child(folder: str, at: int, call: str) -> None:
    import zardine

    count = 0

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return original(*args, **kwargs)

        return wrapped

    space = {"zardine": zardine, "path": f"{folder}/a.zarr"}
    warm = eval(f"lambda: {call}", space)
    zardine.config.set({"threads": 1})
    for name in CALLS:
        if hasattr(os, name):
            setattr(os, name, wrap(getattr(os, name)))
    warm()


def forked(folder: Path, at: int, call: str) -> int:
    """Exit status of a forked child: that it was killed, or that it finished."""
    pid = os.fork()
    if pid == 0:
        try:
            child(str(folder), at, call)
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    return status


def every_point(folder: Path, start: Path, call: str, look: Callable[[int], object], step: int = 1) -> int:
    """Kill at every ``step``-th point in turn, each time with a copy of ``start``; gives how many there were."""
    import shutil

    at = 0
    while True:
        shutil.rmtree(folder / "a.zarr", ignore_errors=True)
        shutil.copytree(start, folder / "a.zarr")
        status = forked(folder, at, call)
        assert os.WIFSIGNALED(status) or status == 0, f"the child failed at point {at}"
        look(at)
        if status == 0:
            return at
        at += step


def run(folder: Path, at: int, call: str) -> int:
    """The same in a new process; gives its return code."""
    return subprocess.run([sys.executable, __file__, str(folder), str(at), call]).returncode


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]), sys.argv[3])
