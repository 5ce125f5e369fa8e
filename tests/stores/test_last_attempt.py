"""Whether an attempt is the last one is answered once."""

from __future__ import annotations

import pytest

from zardine.stores import attempts
from zardine.stores.attempts import Patience


def test_time_that_runs_out_after_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes on until somebody was told that it was the last time."""
    now = 0.0
    monkeypatch.setattr(attempts.time, "monotonic", lambda: now)
    monkeypatch.setattr(attempts.time, "sleep", lambda seconds: None)
    told = []
    for last in attempts.attempts(Patience(seconds=1.0)):
        told.append(bool(last))
        now = 2.0
    assert told == [False, True]
