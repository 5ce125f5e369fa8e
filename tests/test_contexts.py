"""Contexts of generators that are left for sure."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from zardine.contexts import SureStack, sure_context


class Seen:
    """Something that whoever keeps an error keeps, too."""


@sure_context
def context(steps: list[str]) -> Iterator[int]:
    try:
        yield 7
    except KeyError:
        steps.append("handled")
    finally:
        steps.append("left")


def test_an_error_is_let_go_with_all_that_its_frames_hold() -> None:
    def failing() -> weakref.ref[Seen]:
        seen = Seen()
        found = weakref.ref(seen)
        with suppress(ValueError), context(steps):
            raise ValueError(seen)
        return found

    steps: list[str] = []
    gc.disable()
    try:
        assert failing()() is None
    finally:
        gc.enable()
    assert steps == ["left"]


def test_errors_come_through() -> None:
    steps: list[str] = []
    with context(steps) as number:
        assert number == 7
    with pytest.raises(ValueError, match="through") as info, context(steps):
        raise ValueError("through")
    assert [each.name for each in info.traceback] == ["test_errors_come_through"]
    with pytest.raises(KeyError), context(steps):
        raise KeyError
    assert steps == ["left", "left", "handled", "left"]


def test_contexts_that_are_entered_one_after_another() -> None:
    left: list[str] = []

    @sure_context
    def named(name: str, fails: bool = False) -> Iterator[None]:
        try:
            yield
        finally:
            left.append(name)
            if fails:
                raise KeyError(name)

    with SureStack() as stack:
        for name in "abc":
            stack.enter(named(name))
        assert not left
    assert left == ["c", "b", "a"]
    left.clear()
    stack = SureStack()
    for name in "abc":
        stack.enter(named(name, fails=name == "b"))
    with pytest.raises(KeyError, match="b"):
        stack.__exit__(None, None, None)
    assert left == ["c", "b", "a"]
    left.clear()
    with suppress(ValueError), SureStack() as stack:
        stack.enter(named("a"))
        raise ValueError
    assert left == ["a"]
