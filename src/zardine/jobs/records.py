"""What of a plan is done: ranges of jobs, in one object of each worker, beside the node that the plan makes.

``plan.json`` is there from the beginning to the end. Each worker (process) writes objects of its own, so that nobody
waits for anybody; one is written after each job, and a new one begun when it is full. Where jobs have to run again, a
new **round** begins: an object names the jobs whose records of earlier rounds do not count any more.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zardine.engine.documents import get_document
from zardine.engine.workers import for_each, most_requests
from zardine.errors import ConditionFailedError, PlanError
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.job import JobDone
from zardine.jobs.places import Place
from zardine.jobs.ranges import Ranges
from zardine.json_document import parse_json
from zardine.metadata.node_names import join_path
from zardine.stores.base import Condition

_FULL: Final = 1024
"""Jobs in an object of a worker: it is written anew after each, so it stays small."""
_CANCELLED: Final = "cancelled"
_TWO: Final = "?"
"""In place of what a job saw that ran twice in a round and saw different things: nobody knows which counts."""
_LARGE: Final = 2**20
"""Characters of what jobs found and saw, after which a new object is begun."""


@dataclass(slots=True)
class Done:
    """What is done, by stage; and where that was asked for, what the jobs saw and found."""

    token: str
    """Names this beginning of the plan, among others before and after it."""
    round: int = 0
    stages: dict[int, Ranges] = field(default_factory=dict)
    seen: dict[int, dict[int, str]] = field(default_factory=dict)
    found: dict[int, dict[int, Any]] = field(default_factory=dict)

    def of(self, stage: int) -> Ranges:
        """Return the jobs of a stage that are done."""
        return self.stages.get(stage, Ranges())


@dataclass(frozen=True)
class Records:
    """The records of one plan, below the node at ``home``."""

    home: Place
    plan: str
    """The id of the plan."""

    @property
    def prefix(self) -> str:
        """What the keys of all records begin with."""
        return join_path(self.home.path, f"{HIDDEN}/jobs/{self.plan}/")

    @property
    def key(self) -> str:
        """The key that is there while the plan is under way."""
        return f"{self.prefix}plan.json"

    def begin(self) -> bool:
        """Say that the plan is under way, if that is not said already; gives whether it was not."""
        token = secrets.token_hex(8)
        try:
            self.home.store.set(self.key, json.dumps({"token": token, "round": 0}).encode(), condition=Condition(None))
        except ConditionFailedError:
            if self.token() is None:
                raise PlanError(
                    f"the plan for {self.home} was finished or cancelled just now; where cancelling was cut off, "
                    "cancel it again"
                ) from None
            return False
        return True

    def cancel(self) -> None:
        """Say that the plan is being cancelled: nobody goes on with it, or begins it anew, until this is erased."""
        self.home.store.set(
            self.key, json.dumps({"token": secrets.token_hex(8), "round": 0, _CANCELLED: True}).encode()
        )

    def token(self) -> str | None:
        """Return the token; ``None`` where the plan is not under way. One request."""
        state = self.state()
        return None if state is None else state[0]

    def state(self) -> tuple[str, int] | None:
        """Return token and round; ``None`` where the plan is not under way, or being cancelled. One request."""
        data = get_document(self.home.store, self.key)
        if data is None:
            return None
        try:
            document: Any = parse_json(data)
            token, number = document["token"], document["round"]
            if document.get(_CANCELLED) is True:
                return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            token, number = None, None
        if not isinstance(token, str) or type(number) is not int:
            raise PlanError(
                f"{self.key} of {self.home.store} is no record of a plan, so what was done is not known: erase all "
                f"that is stored at {self.home}, and begin again"
            )
        return token, number

    def look(self, *, details: bool = False) -> Done | None:
        """Return what is done; ``None`` where the plan is not under way. ``details``: also what jobs saw and found."""
        store = self.home.store
        state = self.state()
        if state is None:
            return None
        token, number = state
        keys = [key for key in store.list_prefix(self.prefix) if key != self.key]
        found: list[Any] = [None] * len(keys)

        def read(number: int) -> None:
            data = get_document(store, keys[number])
            try:
                found[number] = None if data is None else parse_json(data)
            except (ValueError, RecursionError):
                found[number] = None

        for_each(read, range(len(keys)), len(keys), most_requests(store))
        records = [each for each in found if isinstance(each, dict) and each.get("token") == token]
        return _merged(token, number, records, details)

    def void(self, done: Done, jobs: Mapping[int, Ranges]) -> None:
        """Begin a round: these jobs, by stage, are not done, whatever earlier rounds say.

        Workers are told of it first: what one has recorded that knew of none, a round that names its job would void.
        """
        document = {
            "token": done.token,
            "round": done.round + 1,
            "void": {str(stage): each.to_json() for stage, each in jobs.items()},
        }
        store = self.home.store
        store.set(self.key, json.dumps({"token": done.token, "round": done.round + 1}).encode())
        store.set(f"{self.prefix}round-{done.round + 1}.json", json.dumps(document).encode())

    def erase(self) -> None:
        """Remove all records, that of the plan last; and what workers left there who were killed as they wrote one.

        Then what workers wrote who saw that of the plan just before; who comes later takes away what he wrote.
        """
        store = self.home.store
        keys = list(store.list_prefix(self.prefix))
        store.erase_values([key for key in keys if key != self.key])
        if self.key in keys:
            store.erase(self.key)
        store.erase_prefix(self.prefix)


def erase_all(home: Place) -> None:
    """Remove the records of every plan for a node."""
    home.store.erase_prefix(join_path(home.path, f"{HIDDEN}/jobs/"))


def _merged(token: str, begun: int, records: Iterable[dict[str, Any]], details: bool) -> Done:
    """Return what records say together; what cannot be understood says nothing, so that its jobs run again.

    Round ``begun`` has begun, if no later one.
    """
    rounds: dict[int, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for each in records:
        number = each.get("round")
        if type(number) is int:
            rounds.setdefault(number, ([], []))["void" not in each].append(each)
    done = Done(token, max((begun, *rounds)))
    for number in sorted(rounds):
        voids, doings = rounds[number]
        for each in voids:
            for stage, jobs in _by_stage(each["void"]).items():
                done.stages[stage] = done.of(stage) - jobs
                for details_ in (done.seen, done.found):
                    for job in [job for job in details_.get(stage, ()) if job in jobs]:
                        del details_[stage][job]
        pairs: dict[int, list[tuple[int, int]]] = {stage: list(jobs.pairs()) for stage, jobs in done.stages.items()}
        noted: dict[int, dict[int, str]] = {}
        for each in doings:
            for stage, jobs in _by_stage(each.get("done")).items():
                pairs.setdefault(stage, []).extend(jobs.pairs())
                if details:
                    saw = noted.setdefault(stage, {})
                    for job, text in _notes(each, "seen", stage, jobs, "").items():
                        saw[job] = text if saw.get(job, text) == text else _TWO
                    done.found.setdefault(stage, {}).update(_notes(each, "found", stage, jobs, None))
        for stage, saw in noted.items():
            done.seen.setdefault(stage, {}).update(saw)
        done.stages = {stage: Ranges(each) for stage, each in pairs.items()}
    return done


def _by_stage(document: Any) -> dict[int, Ranges]:
    found = {}
    for stage, ranges in document.items() if isinstance(document, dict) else ():
        if re.fullmatch("[0-9]{1,3}", stage):
            try:
                found[int(stage)] = Ranges.from_json(ranges)
            except ValueError:
                continue
    return found


def _notes(record: Mapping[str, Any], name: str, stage: int, jobs: Ranges, nothing: Any) -> dict[int, Any]:
    """Return what an object notes of each job; nothing of those that had nothing to say."""
    notes = record.get(name)
    notes = notes.get(str(stage)) if isinstance(notes, dict) else None
    if not isinstance(notes, list) or len(notes) != len(jobs):
        return {}
    return {job: each for job, each in zip(jobs, notes, strict=True) if each != nothing}


class Recorder:
    """Writes what this process has done of one beginning of one plan. May be used from any thread."""

    def __init__(self, records: Records, token: str, round_: int) -> None:
        self._records, self._token, self._round = records, token, round_
        self._guard = threading.Lock()
        self._new_object()

    def _new_object(self) -> None:
        host = re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
        self._key = f"{self._records.prefix}{host}-{os.getpid()}-{secrets.token_hex(4)}.json"
        self._done: dict[int, dict[int, JobDone]] = {}
        self._size = 0

    def add(self, stage: int, job: int, done: JobDone) -> bool:
        """Record that a job is done, and what it saw and found; gives whether the plan was under way still by then."""
        with self._guard:
            self._done.setdefault(stage, {})[job] = done
            self._size += len(done.seen) + (0 if done.found is None else len(json.dumps(done.found)))
            document: dict[str, Any] = {"token": self._token, "round": self._round, "done": {}, "seen": {}, "found": {}}
            for number, jobs in self._done.items():
                document["done"][str(number)] = Ranges.of(jobs).to_json()
                for name, nothing in (("seen", ""), ("found", None)):
                    notes = [getattr(jobs[each], name) for each in sorted(jobs)]
                    if any(each != nothing for each in notes):
                        document[name][str(number)] = notes
            counts = self._write(document)
            if sum(map(len, self._done.values())) >= _FULL or self._size >= _LARGE:
                self._new_object()
        return counts

    def add_idle(self, stage: int, jobs: Ranges) -> None:
        """Record that jobs had nothing to do."""
        with self._guard:
            self._new_object()
            self._write({"token": self._token, "round": self._round, "done": {str(stage): jobs.to_json()}})
            self._new_object()

    def _write(self, document: Mapping[str, Any]) -> bool:
        store = self._records.home.store
        store.set(self._key, json.dumps(document).encode())
        if self._records.token() == self._token:
            return True
        store.erase(self._key)  # finished or cancelled meanwhile
        return False


_recorders: dict[tuple[int, Records, str, int], Recorder] = {}
_guard = threading.Lock()


def recorder_of(records: Records, token: str, round_: int) -> Recorder:
    """Return the recorder of this process."""
    place = os.getpid(), records, token, round_
    with _guard:
        if place not in _recorders:
            while len(_recorders) > _MOST_RECORDERS:
                del _recorders[next(iter(_recorders))]
            _recorders[place] = Recorder(records, token, round_)
        return _recorders[place]


_MOST_RECORDERS: Final = 16
"""Those made first go: whoever needs one of them gets a new one."""


def _renew() -> None:
    global _guard
    _guard = threading.Lock()
    _recorders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

__all__ = ["Done", "Recorder", "Records", "erase_all", "recorder_of"]
