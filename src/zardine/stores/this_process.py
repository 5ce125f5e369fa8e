"""What lies in the memory of one process: other processes get neither a silent copy of it nor lost writes."""

from __future__ import annotations

import os
import sys
import uuid
from typing import Any, Final, NoReturn

from zardine.errors import StoreError

_HOW: Final = (
    "keep it in files instead (zardine.storage.LocalStore, or a path), or send store.with_read_only(True), which "
    "travels as a copy"
)


class Ticket:
    """Part of what a store in memory is pickled as, so that it can be unpickled in this process alone.

    ``multiprocessing`` pickles for other processes only. There the error is raised while pickling, in the process that
    can do something about it: a worker that cannot unpickle its task dies, or is waited for without end.
    """

    def __init__(self, subject: str) -> None:
        self.process, self.subject = _name, subject

    def __reduce__(self) -> tuple[Any, ...]:
        # its pickler has no hook for types that are defined before it is imported; what calls here is who pickles
        if sys._getframe(1).f_globals.get("__name__") == "multiprocessing.reduction":
            _refuse(self.subject)
        return _admit, (self.process, self.subject)


def _admit(process: str, subject: str) -> None:
    if process != _name:
        _refuse(subject)


def _refuse(subject: str) -> NoReturn:
    raise StoreError(
        f"{subject} is in the memory of one process and cannot be sent to another: what is written to it there "
        f"would be lost; {_HOW}"
    )


def process_name() -> str:
    """A name of this process that no other has; one that is forked from it gets another."""
    return _name


def check_own(process: str, subject: object) -> None:
    """:class:`~zardine.errors.StoreError` where what was made in ``process`` is about to be changed in a fork of it."""
    if process != _name:
        raise StoreError(
            f"{subject} was made in the memory of another process, of which this one is a fork: what is written to it "
            "here would be lost; keep it in files instead (zardine.storage.LocalStore, or a path), or write to a "
            "copy of this process's own, copy.deepcopy(store)"
        )


def _new_name(*_: Any) -> None:
    global _name
    _name = uuid.uuid4().hex


_name = ""
_new_name()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_name)


__all__ = ["Ticket", "check_own", "process_name"]
