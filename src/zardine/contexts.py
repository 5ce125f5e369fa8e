"""Contexts of ``with`` that are left for sure, whenever Ctrl-C is pressed.

Python may raise ``KeyboardInterrupt`` when an ``__exit__`` begins that is written in Python: before it has done
anything. A lock that is not let go then stays for as long as the process lives, and all who wait for it hang.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from zardine.kernel import KERNEL

_P = ParamSpec("_P")
_T = TypeVar("_T")

if KERNEL is not None and not TYPE_CHECKING:
    SureExit = KERNEL.SureExit
else:

    class SureExit:
        """The base of a class whose ``__exit__`` does what its method ``_exit`` says, which may be called again."""

        __slots__ = ()

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            try:
                self._exit(error)
            except Exception:
                raise
            except BaseException:
                self._exit(error)
                raise

        def _exit(self, error: BaseException | None) -> None:
            """Leave the context, in which ``error`` was raised; where that was begun before, finish it."""


class _SureContext(SureExit, Generic[_T]):
    __slots__ = ("_steps",)

    def __init__(self, steps: Generator[_T, None, None]) -> None:
        self._steps = steps

    def __enter__(self) -> _T:
        try:
            return next(self._steps)
        except BaseException:
            self._steps.close()
            raise

    def _exit(self, error: BaseException | None) -> None:
        if error is None:
            next(self._steps, None)
            return
        trace = error.__traceback__
        try:
            self._steps.throw(error)
        except StopIteration:
            pass  # no context keeps an error to itself
        except BaseException as raised:
            if raised is not error:
                raise
            error.__traceback__ = trace  # else the error holds this frame, which holds the error


class SureStack(SureExit):
    """Contexts that are entered one after another, and left together, the last one first.

    Those may be left twice, or with an error before they were entered, as all are that are made here.
    """

    __slots__ = ("_inside",)

    def __init__(self) -> None:
        self._inside: list[AbstractContextManager[object]] = []

    def __enter__(self) -> Self:
        return self

    def enter(self, context: AbstractContextManager[object]) -> None:
        """Enter one more."""
        self._inside.append(context)  # first: where Ctrl-C comes right after it was entered it has to be left
        context.__enter__()

    def _exit(self, error: BaseException | None) -> None:
        try:
            while self._inside:
                kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
                self._inside[-1].__exit__(kind, error, trace)
                self._inside.pop()
        except Exception as failed:
            self._inside.pop()
            self._exit(failed)  # the others
            raise


def sure_context(
    function: Callable[_P, Generator[_T, None, None]],
) -> Callable[_P, AbstractContextManager[_T, None]]:
    """Make a context of a generator as :func:`contextlib.contextmanager` does, which keeps no error to itself."""

    @wraps(function)
    def make(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        return _SureContext(function(*args, **kwargs))

    return make


__all__ = ["SureExit", "SureStack", "sure_context"]
