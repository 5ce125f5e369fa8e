"""Being told to end: what has to be put back is put back first, as after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_ENDING: Final = ("SIGTERM", "SIGHUP")


@contextmanager
def interruptible() -> Iterator[None]:
    """Take the signals by which schedulers and closed terminals end programs for Ctrl-C (``KeyboardInterrupt``)."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    changed = []
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup, for one, has it ignored
            try:
                signal.signal(number, interrupt)
            except ValueError:  # not the main thread
                break
            changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
