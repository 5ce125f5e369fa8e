"""A progress bar on stderr, where somebody watches it and it takes long enough."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE: Final = 0.5
"""Seconds without a bar."""
_INTERVAL: Final = 30.0
"""Seconds between two lines where there is no terminal."""


class Advance:
    """Tells how far the work is. May be called from any thread, by :meth:`report` also as a plain callback."""

    def __init__(self, text: str, total: int | None, *, show: bool, nbytes: bool = False, logs: bool = False) -> None:
        self._text = text
        self._total = total
        self._done = 0
        self._before: int | None = None
        """What was done before, by an earlier run."""
        self._show, self._nbytes, self._logs = show, nbytes, logs
        self._begin = time.monotonic()
        self._bar: Progress | None = None
        self._guard = threading.Lock()
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._log_now_and_then if logs else self._appear, daemon=True)
        if show:
            self._watch.start()

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
        self._is_over.set()
        with self._guard:
            self._show = False
            if self._bar is not None:
                self._bar.stop()

    def _update(self, done: int, total: int | None, text: str) -> None:
        self._done, self._total, self._text = done, total, text
        if self._before is None and total is not None:  # what an earlier run has done is not done now
            self._before, self._begin = done, time.monotonic()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total, description=text)

    def _appear(self) -> None:
        """Show the bar, with what was said until now; also where nothing was, since the first job takes long."""
        if self._is_over.wait(_PATIENCE):
            return
        with self._guard:
            if self._show:
                self._bar = _make_bar(self._rate, nbytes=self._nbytes)
                self._bar.add_task(self._text, completed=self._done, total=self._total)
                self._bar.start()

    def _log_now_and_then(self) -> None:
        while not self._is_over.wait(_INTERVAL):
            with self._guard:
                line = self._line()
            print(line, file=sys.stderr, flush=True)

    def _rate(self) -> float:
        """How much is done in a second, of what this run does; 0 where that is not known."""
        return (self._done - (self._before or 0)) / max(time.monotonic() - self._begin, 1e-9)

    def _line(self) -> str:
        if not self._total:
            return f"{self._text}: {time.monotonic() - self._begin:,.0f} s so far"
        rate = self._rate()
        left = f", {(self._total - self._done) / rate:,.0f} s left" if rate else ""
        return f"{self._text}: {self._done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB, {rate / 1e6:,.0f} MB/s{left}"


@contextmanager
def progress(text: str, *, total: int | None = None, show: bool = True, nbytes: bool = False) -> Iterator[Advance]:
    """Show a bar for the block, gone afterwards. ``show`` false (``--json``, ``--quiet``): none.

    Without ``total`` the bar moves and counts. There is none where stderr is not a terminal. With ``nbytes`` things
    are bytes: the bar says how many a second, and where there is no terminal a line tells that now and then.
    """
    watched = _is_watched()
    logs = nbytes and not watched and sys.stderr is not None
    advance = Advance(text, total, show=show and (watched or logs), nbytes=nbytes, logs=logs)
    try:
        yield advance
    finally:
        advance.close()


def _is_watched() -> bool:
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    from zardine.cli.console import without_escapes

    return not without_escapes()


def _make_bar(rate: Callable[[], float], *, nbytes: bool) -> Progress:
    from datetime import timedelta

    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    from zardine.cli.console import make_console

    class Speed(ProgressColumn):
        """What is done in a second since this run began: many small things may end in one instant."""

        def render(self, task: Task) -> Text:
            return Text(f"{rate() / 1e6:,.1f} MB/s" if rate() else "? MB/s", style="progress.data.speed")

    class Left(ProgressColumn):
        """How long the rest takes at that speed."""

        def render(self, task: Task) -> Text:
            left = (task.remaining or 0) / rate() if rate() and task.total is not None else None
            text = "-:--:--" if left is None or left > 1e8 else str(timedelta(seconds=round(left)))
            return Text(text, style="progress.remaining")

    counts: list[ProgressColumn] = [DownloadColumn(), Speed()] if nbytes else [MofNCompleteColumn()]
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *counts,
        TimeElapsedColumn(),
        Left(),
    )
    # redirecting stdout would send it to stderr
    return Progress(*columns, console=make_console(stderr=True), transient=True, redirect_stdout=False)
