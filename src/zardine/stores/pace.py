"""How many requests to one place go at the same time: as many as have been seen to be worth while.

A :class:`Pace` is told how requests went and says how many may be under way; a :class:`Flow`, how many bytes flow in
the time of one. They know nothing of threads or clocks. :class:`Turns` lets threads wait for their turn accordingly,
and bounds the bytes that are on their way. All stores of one place have the same turns (:func:`turns_of`), so reading,
writing and listing share what was learned.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import inf
from threading import Condition
from types import TracebackType
from typing import Final, Self

LEAST: Final = 4
MOST: Final = 128
FIRST: Final = 64
"""Requests at a time: never fewer, never more, and before anything is known."""
SMALL: Final = 4
"""The same of a web server before anything is known of it, and at most while answers are quick. Small servers let few
connections wait (Python's own five), and who is refused one waits for seconds; of a near one nobody needs more."""
_NEAR: Final = 0.002
_FAR: Final = 0.02
"""Seconds of an answer of a web server that is near, and of one that is not. What is in between tells little: the first
ones take longer; after some, and none that is quick, it is far enough for many requests at a time."""
_SOME: Final = 4

_GAIN: Final = 1.05
"""What more requests at a time must give to be worth while: so many times what was given before."""
_SAME: Final = 0.97
"""What fewer at a time must give at least, of the best that was seen."""
_REST: Final = 12
"""Measurements after which another number is tried again, when neither more nor fewer were better."""
_FALL: Final = 0.7
"""The share of what was given before at which it is looked at once whether fewer do as well."""


@dataclass(slots=True)
class Pace:
    """How many requests at a time are worth while, by what came of them.

    A *measurement* is twice as many requests as go at a time, all of which left others waiting: the rate at which they
    ended. Each counts 1, and its bytes as many as flow in the time of a request. Now and then another number is tried:
    a larger one is kept if it gives more, a smaller one if it gives as much. A refusal, or an answer that breaks off,
    halves the number.
    """

    unit: int
    """Bytes that count as much as a request."""
    limit: int = FIRST
    """How many requests may go at a time now."""
    most: int = MOST
    """How many ever may."""
    _kept: tuple[int, float] | None = None
    """The number that is kept, and the rate that it gave; while another is tried, too."""
    _best: float = 0.0
    _goes_up: bool = True
    """Whether a larger number is tried next."""
    _failed: int = 0
    """Trials that came to nothing, one after the other."""
    _rested: int = 0
    _skipped: int = 0
    """Requests to end before a measurement begins: they began when another number held, and so do refusals of them."""
    _ended: int = 0
    _weight: float = 0.0
    _begin: float = 0.0

    def note(self, at: float, nbytes: int, *, crowded: bool, refused: bool = False) -> None:
        """A request ended ``at`` this time in seconds with so many bytes; others were waiting if it was ``crowded``."""
        if self._skipped:
            self._skipped -= 1
        elif refused:
            self._kept = None
            self._try(max(LEAST, self.limit // 2))
        elif not crowded:
            self._ended = 0  # nothing limits the rate but what is asked for
        elif self._ended == 0:
            self._begin, self._weight, self._ended = at, 0.0, 1
        else:
            self._weight += 1 + nbytes / self.unit
            self._ended += 1
            if self._ended > 2 * self.limit and at > self._begin:
                self._ended = 0
                self._measured(self._weight / (at - self._begin))

    def _measured(self, rate: float) -> None:
        if self._kept is None:
            self._kept, self._best, self._failed = (self.limit, rate), rate, 0
        number, before = self._kept
        if self.limit != number:
            goes_up = self.limit > number
            if rate >= (_GAIN * before if goes_up else _SAME * self._best):
                self._kept, self._best, self._failed = (self.limit, rate), max(self._best, rate), 0
            else:
                self._goes_up, self._failed = not goes_up, self._failed + 1
        else:
            if rate < _FALL * before:
                self._goes_up, self._failed = False, 0
            self._kept, self._best = (number, (before + rate) / 2), self._best + (rate - self._best) / 4
            self._rested += 1
        number = self._kept[0]
        if self._failed < 2 or self._rested >= _REST:
            self._failed, self._rested = self._failed % 2, 0
            other = min(self.most, -(-number * 3 // 2)) if self._goes_up else max(LEAST, number * 3 // 4)
            if other == number:
                self._goes_up, self._failed = not self._goes_up, self._failed + 1
            number = other
        self._try(number)

    def _try(self, number: int) -> None:
        if number != self.limit:
            self.limit, self._skipped, self._ended = number, self.limit, 0


_MEASURED: Final = 64 * 2**10
"""Bytes from which on an answer tells how fast bytes flow."""
_LEAST_TIME: Final = 1e-3
"""Seconds that bytes are taken to flow for, at least."""
_QUICK: Final = 0.01
"""Seconds of a request, at least, for the time of which bytes may flow: some pass in this process."""
_FORGOTTEN: Final = 128
"""Answers after which the oldest measurement counts no more: another one may be made."""


@dataclass(slots=True)
class Flow:
    """How many bytes flow in the time of a request, by what came of those before.

    A measurement is by how much an answer took longer than the quickest one: of those that came alone, and of those
    that came with many others, separately. Some of the others may have been on their way before, so that half of the
    time counts at least. The best of the last four measurements holds, since whatever else a machine does makes them
    slower; while there are not three, it is the ``unit``.
    """

    unit: int
    spare: tuple[int, int] = field(init=False)
    """Of one answer, and of all that come at the same time."""
    _quickest: float = inf
    _alone: deque[float] = field(default_factory=lambda: deque(maxlen=4))
    _together: deque[float] = field(default_factory=lambda: deque(maxlen=4))
    _count: int = 0

    def __post_init__(self) -> None:
        self.spare = self.unit, self.unit

    def note(self, seconds: float, nbytes: int, ended: int) -> None:
        """A request was answered by so many bytes; that is how many were ``ended`` meanwhile, with others."""
        self._count += 1
        if self._count % _FORGOTTEN == 0:
            self._forget()
        quickest = self._quickest
        if seconds < quickest:
            self._quickest = seconds
        if nbytes < _MEASURED or quickest == inf:
            return
        if ended == nbytes:
            self._alone.append(nbytes / max(seconds - quickest, _LEAST_TIME))
        elif ended >= self.unit // 2:
            self._together.append(ended / max(seconds - quickest, seconds / 2, _LEAST_TIME))
        self._count_anew()

    def _forget(self) -> None:
        for rates in (self._alone, self._together):
            if rates:
                rates.popleft()
        self._count_anew()

    def _count_anew(self) -> None:
        self.spare = self._spare(self._alone), self._spare(self._together)

    def _spare(self, rates: deque[float]) -> int:
        return int(max(self._quickest, _QUICK) * max(rates)) if len(rates) > 2 else self.unit


@dataclass(slots=True)
class Turns:
    """Whose turn it is to ask: as many at a time as ``pace`` says, and ``most_bytes`` of answers and values at most."""

    pace: Pace
    most_bytes: int = 256 * 2**20
    may_be_small: bool = False
    """Whether it may be a small server: see :data:`SMALL`."""
    _slow: int = 0
    """Answers that say that it is far, since the last one that was quick."""
    _changed: Condition = field(default_factory=Condition)
    _under_way: int = 0
    _waiting: int = 0
    _nbytes: int = 0
    _usual: float = 0.0
    """Bytes of an answer whose length nobody knew before, on average."""
    _ended: int = 0
    """Bytes of all answers that came."""
    _flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        self._flow = Flow(self.pace.unit)
        if self.may_be_small:
            self.pace.limit = SMALL

    @property
    def limit(self) -> int:
        """How many may ask at a time now."""
        return self.pace.limit

    @property
    def spare(self) -> tuple[int, int]:
        """Bytes that flow in the time of a request, of one answer and of many together; see :class:`Flow`."""
        return self._flow.spare

    def turn(self, nbytes: int | None, is_refusal: Callable[[Exception], bool] | None = None) -> Turn:
        """Return a context to ask for, or send, so many bytes in (``None``: nobody knows). May not be nested.

        Entering it waits for one's turn. ``is_refusal`` says of an error in it whether there was too much to do.
        """
        return Turn(self, nbytes, is_refusal)

    def begin(self, turn: Turn) -> None:
        """Wait until a turn may begin."""
        with self._changed:
            turn.nbytes = int(self._usual) if turn.expected is None else turn.expected
            if not self._may_go(turn.nbytes):
                self._waiting += 1
                try:
                    while not self._may_go(turn.nbytes):
                        self._changed.wait()
                finally:
                    self._waiting -= 1
            self._under_way += 1
            self._nbytes += turn.nbytes
            turn.counted, turn.before = turn.nbytes, self._ended
        turn.since = time.monotonic()

    def end(self, turn: Turn) -> None:
        """Let others begin, and learn from how it went."""
        with self._changed:
            self._under_way -= 1
            self._nbytes -= turn.counted
            if turn.expected is None:
                self._usual += (turn.nbytes - self._usual) / 8
            now = time.monotonic()
            if self.may_be_small and turn.answered is not None:
                self._weigh(now - turn.since, turn.answered)
            self.pace.note(now, turn.nbytes, crowded=self._waiting > 0, refused=turn.refused)
            if turn.answered is not None:
                self._ended += turn.answered
                self._flow.note(now - turn.since, turn.answered, self._ended - turn.before)
            if self._waiting:
                free = max(1, self.pace.limit - self._under_way)
                self._changed.notify_all() if self._nbytes > self.most_bytes // 2 else self._changed.notify(free)

    def _weigh(self, seconds: float, nbytes: int) -> None:
        """A server that may be small has answered."""
        pace = self.pace
        is_near = pace.most == SMALL
        if seconds < _NEAR:
            pace.limit = pace.most = SMALL
            self._slow = 0
        elif nbytes < _MEASURED:
            if seconds >= _FAR:
                self._slow += 1 if is_near else _SOME
            elif not is_near:
                self._slow += 1
            if self._slow >= _SOME and pace.limit == SMALL:
                pace.limit, pace.most = FIRST, MOST
                self.may_be_small = not is_near  # what was quick and no longer is may be so for many reasons

    def _may_go(self, nbytes: int) -> bool:
        if self._under_way == 0:
            return True
        return self._under_way < self.pace.limit and self._nbytes + nbytes <= self.most_bytes


class Turn:
    """One request: its bytes, and whether it was refused, or broke off. A context, see :meth:`Turns.turn`.

    Without ``turns`` nobody waits, and nothing is learned.
    """

    __slots__ = ("_is_refusal", "_turns", "answered", "before", "counted", "expected", "nbytes", "refused", "since")

    def __init__(
        self, turns: Turns | None, expected: int | None = 0, is_refusal: Callable[[Exception], bool] | None = None
    ) -> None:
        self._turns, self.expected, self._is_refusal = turns, expected, is_refusal
        self.nbytes = 0
        self.refused = False
        self.answered: int | None = None
        """Bytes of the answer, where it is one to who reads."""
        self.counted = self.before = 0
        """Bytes that count as under way, and those of answers that had come when it began."""
        self.since = 0.0

    def __enter__(self) -> Self:
        if self._turns is not None:
            self._turns.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and self._is_refusal is not None:
            self.nbytes, self.refused = 0, self._is_refusal(error)
        if self._turns is not None:
            self._turns.end(self)


_turns: dict[Hashable, Turns] = {}


def turns_of(place: Hashable, unit: int, *, may_be_small: bool = False) -> Turns:
    """Return the turns of a place (the bucket, or the web server), made when first asked for."""
    known = _turns.get(place)
    return _turns.setdefault(place, Turns(Pace(unit), may_be_small=may_be_small)) if known is None else known


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.clear)  # who has a turn there is in the parent


__all__ = ["FIRST", "LEAST", "MOST", "SMALL", "Flow", "Pace", "Turn", "Turns", "turns_of"]
