"""A progress bar on stderr, where somebody watches it and it takes long enough."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE: Final = 0.5
"""Seconds without a bar."""


class Advance:
    """Tells how far the work is. May be called from any thread, by :meth:`report` also as a plain callback."""

    def __init__(self, text: str, total: int | None, *, show: bool) -> None:
        self._text = text
        self._total = total
        self._done = 0
        self._show = show
        self._begin = time.monotonic()
        self._bar: Progress | None = None
        self._guard = threading.Lock()

    def __call__(self, n: int = 1, *, total: int | None = None, text: str | None = None) -> None:
        """Say that ``n`` more are done; ``total`` and ``text`` replace what was said before."""
        if self._show:
            with self._guard:
                self._update(self._done + n, self._total if total is None else total, text or self._text)

    def report(self, done: int, total: int) -> None:
        """Say that ``done`` of ``total`` are done: what functions of the library call, given as their ``progress``."""
        if self._show:
            with self._guard:
                self._update(max(done, self._done), total, self._text)

    def close(self) -> None:
        """Take the bar away."""
        with self._guard:
            self._show = False
            if self._bar is not None:
                self._bar.stop()

    def _update(self, done: int, total: int | None, text: str) -> None:
        self._done, self._total, self._text = done, total, text
        if self._bar is None:
            if time.monotonic() - self._begin < _PATIENCE:
                return
            self._bar = _make_bar()
            self._bar.add_task(text, total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total, description=text)


@contextmanager
def progress(text: str, *, total: int | None = None, show: bool = True) -> Iterator[Advance]:
    """Show a bar for the block, gone afterwards. ``show`` false (``--json``, ``--quiet``): none.

    Without ``total`` the bar moves and counts. There is none where stderr is not a terminal.
    """
    advance = Advance(text, total, show=show and _is_watched())
    try:
        yield advance
    finally:
        advance.close()


def _is_watched() -> bool:
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    from zardine.cli.console import without_escapes

    return not without_escapes()


def _make_bar() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from zardine.cli.console import make_console

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # redirecting stdout would send it to stderr
    return Progress(*columns, console=make_console(stderr=True), transient=True, redirect_stdout=False)
