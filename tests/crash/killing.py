"""Killing a process (SIGKILL) at one chosen call of the system.

Two ways. *Calls*: the functions of :mod:`os` that change files are wrapped; the n-th kills the process before it is
made, or when a part of its bytes is written. *Tracer*: ``strace`` kills at the n-th system call of a name, whoever
makes it, before it is made.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_writes import write_by_python

CALLS = (
    *(
        "write",
        "pwrite",
        "writev",
        "pwritev",
        "copy_file_range",
        "sendfile",
        "posix_fallocate",
        "ftruncate",
        "truncate",
    ),
    *("replace", "rename", "link", "symlink", "unlink", "remove", "mkdir", "rmdir", "utime", "fchmod", "chmod"),
    *("fsync", "fdatasync", "open"),
)
"""Functions of :mod:`os` that change what is stored; ``open`` where it makes a file."""
PARTS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("write", "pwrite", "pwritev", "copy_file_range"), ("first byte", "half", "all but a byte")
)
"""How much of its bytes a call may have written when the process dies, for those that write any."""


@dataclass(frozen=True)
class Point:
    """Where to kill: at call number ``at`` of the functions, or of the system call ``name``."""

    at: int
    name: str
    part: str | None = None
    """How much of the call is done; ``None``: nothing."""


def points_of(calls: list[str]) -> list[Point]:
    """Every point of a process that makes these calls."""
    return [Point(at, name, part) for at, name in enumerate(calls) for part in (None, *PARTS.get(name, ()))]


Instead = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Gets the name, the function and the arguments of a call, and is to make it and give its result."""


def watch_calls(instead: Instead, put: Callable[[Any, str, Any], None] = setattr, more: tuple[str, ...] = ()) -> None:
    """From now on have ``instead`` called for each of :data:`CALLS`, and ``more``; ``put`` puts wrappers in place.

    Files are changed in part without the kernel then, whose calls only a tracer sees.
    """
    write_by_python(put)

    def wrapper(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if name != "open" or name in more or (len(args) > 1 and args[1] & os.O_CREAT):
                return instead(name, call, args, kwargs)
            return call(*args, **kwargs)

        return wrapped

    for name in dict.fromkeys((*CALLS, *more)):
        if hasattr(os, name):
            put(os, name, wrapper(name, getattr(os, name)))


def record_calls() -> list[str]:
    """The names of the calls that this process makes from now on; the list grows."""
    names: list[str] = []

    def instead(name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names.append(name)
        return call(*args, **kwargs)

    watch_calls(instead)
    return names


def kill_at(point: Point, number: signal.Signals = signal.SIGKILL) -> None:
    """Let this process die there; or stop there, with another signal, and make the rest of the call when it goes on."""
    done = 0

    def instead(name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal done
        if done == point.at:
            done += 1
            if point.part is not None:
                written = do_part(name, call, args, point.part)
                os.kill(os.getpid(), number)
                return written
            os.kill(os.getpid(), number)
            return call(*args, **kwargs)
        done += 1
        return call(*args, **kwargs)

    watch_calls(instead)


def do_part(name: str, call: Callable[..., Any], args: tuple[Any, ...], part: str) -> Any:
    """Make a call with only a part of its bytes; return what it gives."""

    def cut(length: int) -> int:
        return {"first byte": min(1, length), "half": length // 2, "all but a byte": max(0, length - 1)}[part]

    if name == "copy_file_range":
        return call(args[0], args[1], cut(args[2]), *args[3:])
    if name == "pwritev":
        data = b"".join(map(bytes, args[1]))
        return call(args[0], [data[: cut(len(data))]], *args[2:])
    data = bytes(args[1])
    return call(args[0], data[: cut(len(data))], *args[2:])


def has_tracer() -> bool:
    """Whether there is a tracer that may trace our children."""
    strace = shutil.which("strace")
    if strace is None:
        return False
    test = [strace, "-f", "-qq", "-o", os.devnull, "-e", "inject=all:signal=SIGCONT:when=1", "true"]
    return subprocess.run(test, capture_output=True).returncode == 0


def let_others_trace() -> None:
    """Allow any process of this user to trace this one, where the system restricts that to ancestors."""
    with_prctl = ctypes.CDLL(None)
    if hasattr(with_prctl, "prctl"):
        with_prctl.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY


class Tracer:
    """``strace`` attached to a process that waits; it lets go when the process ends."""

    def __init__(self, pid: int, options: list[str], log: str = os.devnull) -> None:
        command = ["strace", "-f", "-p", str(pid), "-o", log, *options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert "attached" in line, line + self._process.stderr.read()
        self._rest = threading.Thread(target=self._process.stderr.read)  # so that it never waits for us
        self._rest.start()

    def wait(self) -> None:
        """Until it is gone."""
        self._process.wait(60)
        self._rest.join()


def killing(point: Point) -> list[str]:
    """What makes the tracer kill."""
    return ["-e", f"trace={point.name}", "-e", f"inject={point.name}:signal=SIGKILL:when={point.at + 1}"]


def traced_points(log: Path) -> list[Point]:
    """Every system call that a log shows: how often each was made by the thread that made it most often.

    Without those by which threads wait for each other, whose number differs from run to run.
    """
    most: Counter[str] = Counter()
    each = Counter(re.findall(r"^(\d+) +((?!futex)\w+)\(", log.read_text(), re.MULTILINE))
    for (_, name), times in each.items():
        most[name] = max(most[name], times)
    return [Point(at, name) for name, times in sorted(most.items()) for at in range(times)]
