"""Plans: a work, what is done of it, and who does the rest."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from zardine.cache import Cache
from zardine.errors import NodeExistsError, PlanError, StoreError, ZardineError
from zardine.jobs.job import MOST_TRIES, Job, JobDone, NotWantedError, OvertakenError
from zardine.jobs.places import Places
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done, Records, recorder_of
from zardine.jobs.running import ExecutorLike, Runner, run_jobs, runner_of
from zardine.jobs.telling import TELLS, Advance, Told
from zardine.jobs.work import WORKS, Forecast, Found, Work
from zardine.json_document import parse_json
from zardine.public_names import public
from zardine.shown_text import shown
from zardine.stores.file_calls import replace_file

_FORM: Final = 2
"""The version of files of plans."""
_PASSES: Final = 20
"""How often jobs run again since others write to the source, before that is given up."""

PRICES: Final[Mapping[str, float]] = {"requests": 0.005 / 1000, "read": 0.0, "written": 0.0}
"""Of a request, and of a byte of traffic: about what a cloud asks for writes, within one region."""


@public("zardine.jobs")
@dataclass(frozen=True)
class StageStatus:
    """How far one stage is."""

    name: str
    jobs: int
    done: int
    missing: str
    """Numbers of the jobs that are not done, counted from 0, as ranges; empty where all are."""

    @property
    def is_complete(self) -> bool:
        """Whether all of its jobs are done."""
        return self.done == self.jobs


@public("zardine.jobs")
@dataclass(frozen=True)
class PlanStatus:
    """How far a plan is. True where it is finished."""

    state: str
    """``new``: nothing is begun; ``begun``; ``complete``: all jobs are done, and the result does not count yet;
    ``finished``."""
    stages: tuple[StageStatus, ...]
    result: Any = field(default=None, compare=False)
    """What there is to say of the result, where this call finished it."""

    def __bool__(self) -> bool:
        return self.state == "finished"

    def __str__(self) -> str:
        stages = ", ".join(f"{each.name} {each.done} of {each.jobs} jobs" for each in self.stages)
        return f"{self.state}: {stages}"


@public("zardine.jobs")
@dataclass(frozen=True)
class Plan:
    """A long work as independent jobs in stages; made by :func:`zardine.plan_rechunk` and its like.

    It is a value: it pickles, and :meth:`save` makes a file of it that any machine can load which reaches the same
    stores. Nothing is written before :meth:`run`. Jobs are counted from 0 through all stages.
    """

    work: Work = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.work.is_recorded_here or any(place.url is None for place in self.work.places()):
            return Plan, (self.work,)
        return _restored, (self.id, self._pickled)  # once, however many jobs go to a process

    @cached_property
    def _pickled(self) -> bytes:
        return pickle.dumps(self.work)

    def __len__(self) -> int:
        return sum(map(len, self.work.stages))

    def __repr__(self) -> str:
        stages = "; ".join(
            f"stage {number} {stage.name!r}: {len(stage):,} jobs of at most {_size(stage.memory)}"
            for number, stage in enumerate(self.work.stages, 1)
        )
        known: Forecast | None = self.__dict__.get("_forecast")  # which takes reading a sample
        forecast = "" if known is None else f"; {_in_words(known)}"
        return f"<Plan {shown(self.work.describe())}; {stages}{forecast}>"

    @cached_property
    def id(self) -> str:
        """What tells this plan from others, and is the same for the same request."""
        document = {**self.work.identity(), "places": [str(place) for place in self.work.places()]}
        text = json.dumps({"kind": self.work.kind, "work": document}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def memory(self) -> int:
        """Bytes that a job needs at most, beside the interpreter."""
        return max((stage.memory for stage in self.work.stages), default=0)

    @cached_property
    def _forecast(self) -> Forecast:
        return self.work.forecast()

    @property
    def objects(self) -> int:
        """Stored objects that are written, those in between among them.

        Exactly so many where no chunk is empty (equals the fill value as a whole); else about, from a :attr:`sample`.
        """
        return self._forecast.objects

    @property
    def requests(self) -> int:
        """Requests for chunks and shards, if one worker does all; documents and records are a few more for each job."""
        return self._forecast.requests

    @property
    def bytes_read(self) -> int:
        """Bytes read by all jobs, of the source and in between; from a sample of the source where that is large."""
        return self._forecast.bytes_read

    @property
    def bytes_written(self) -> int:
        """Bytes written by all jobs, about.

        Where chunks are carried over as they are encoded, they follow from the sizes of those that are stored; where
        they are encoded anew, from what a :attr:`sample` becomes, which is read when this is asked for first.
        """
        return self._forecast.bytes_written

    @property
    def sample(self) -> str:
        """What was looked at to say how much is written, in words; empty where that follows from what is stored.

        Of the source at most 16 objects are read, or parts of them.
        """
        return self._forecast.sample

    def cost(self, prices: Mapping[str, float] = PRICES) -> float:
        """Return what requests and traffic cost, by ``prices``, in their currency.

        ``requests`` is the price of one; ``read`` and ``written`` of a byte each; what is left out costs nothing.
        Without ``prices`` a thousand requests are 0.005, and traffic is free, as in one region of a cloud, about.
        Raises ``ValueError`` for other names.
        """
        unknown = set(prices) - set(PRICES)
        if unknown:
            raise ValueError(f"prices are of {', '.join(PRICES)}, not of {', '.join(sorted(unknown))}")
        forecast = self._forecast
        return (
            prices.get("requests", 0.0) * forecast.requests
            + prices.get("read", 0.0) * forecast.bytes_read
            + prices.get("written", 0.0) * forecast.bytes_written
        )

    def job(self, number: int) -> Callable[[], None]:
        """Return one job as a function without arguments, which pickles.

        It raises :class:`~zardine.errors.PlanError` where the stage before its own is not complete, or :meth:`begin`
        was not called.
        """
        for stage, each in enumerate(self.work.stages):
            if number < len(each):
                if number < 0:
                    break
                return partial(_run_numbered, self, stage, number)
            number -= len(each)
        raise IndexError(f"the plan has {len(self)} jobs, counted from 0")

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
        """Write the plan to a file, as JSON, without secrets. Raises where a store has no name in other processes.

        Without ``overwrite`` a file that is there is an error.
        """
        unnamed = [str(place) for place in self.work.places() if place.url is None]
        if unnamed:
            raise PlanError(f"a plan can be saved where stores have paths or URLs, and {unnamed[0]} has none")
        if self.work.is_recorded_here:
            raise PlanError("the plan has no place for what its jobs find: make it again with records=")
        place = made = Path(os.path.realpath(path))
        try:
            if overwrite and place.is_file():  # the old plan stays until the file system has accepted the new one
                made = place.with_name(f"{place.name}.{os.urandom(8).hex()}.part")
            file = made.open("w" if overwrite else "x", encoding="utf-8")
            try:
                with file:
                    file.write(json.dumps(self._document(), indent=2) + "\n")
                if made != place:
                    replace_file(made, place)
            except BaseException:
                with suppress(OSError):
                    if made.is_file():  # and no pipe or device
                        made.unlink()
                raise
        except FileExistsError:
            raise
        except OSError as error:
            failure = StoreError(f"cannot write the plan to {os.fspath(path)!r}: {error.strerror}")
            failure.errno, failure.filename = error.errno, os.fspath(path)
            raise failure from error

    def _document(self) -> Any:
        """Return what the file of the plan says, as it is read from there."""
        document = {"zardine_plan": _FORM, "kind": self.work.kind, "id": self.id, "work": self.work.to_json()}
        return json.loads(json.dumps(document))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        target_options: Mapping[str, Any] | None = None,
        functions: Collection[str] = (),
        urls: Collection[str] = (),
    ) -> Plan:
        """Return the plan in a file. Raises :class:`~zardine.errors.PlanError` for a file that holds none.

        ``storage_options`` are for the store that is read, ``target_options`` for the one that is written. A plan of
        :func:`zardine.vectors.plan_write_cells` names a function, as ``module:function``, which its jobs import only if
        it is one of ``functions``: a file is no program. ``urls`` are the URLs that had passwords or tokens in them
        when the plan was made: the file has ``***`` in their place.
        """
        document = _read(Path(path))
        if document["zardine_plan"] != _FORM:
            raise PlanError(
                f"{os.fspath(path)} is a plan of form {document['zardine_plan']!r}, and this zardine reads form "
                f"{_FORM}: make the plan again"
            )
        kind = document.get("kind")
        work_class = WORKS.get(kind) if isinstance(kind, str) else None
        if work_class is None or not isinstance(document.get("work"), dict):
            raise PlanError(f"{os.fspath(path)} is a plan of the kind {kind!r}, which this zardine does not know")
        try:
            places = Places(document["work"]["places"], storage_options, target_options, functions, urls)
            plan = cls(work_class.from_json(document["work"], places))
            changed = plan.id != document.get("id") or plan._document() != document
        except PlanError:
            raise
        except ZardineError as error:
            raise PlanError(f"{os.fspath(path)} is a plan that cannot be loaded: {error}") from error
        except KeyError as error:
            raise PlanError(
                f"{os.fspath(path)} says that it is a plan of the kind {kind!r}, and has no member {error}, as these "
                "have: it was changed since it was written, so make the plan again"
            ) from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise PlanError(
                f"{os.fspath(path)} is a plan of the kind {kind!r} with a part of another type: {error}"
            ) from None
        if changed:
            raise PlanError(f"{os.fspath(path)} was changed since it was written: make the plan again")
        return plan

    @cached_property
    def _records(self) -> Records:
        return Records(self.work.home, self.id)

    def is_under_way(self) -> bool:
        """Return whether the plan is begun and neither finished nor cancelled."""
        return self._records.token() is not None

    def begin(self) -> None:
        """Prepare the place of the result and record that the plan is under way; :meth:`run` does that by itself.

        Raises :class:`~zardine.errors.PlanError` where what was planned on has changed since, and
        :class:`~zardine.errors.NodeExistsError` where the place is taken.
        """
        if self.work.is_finished(self.id):
            return
        self.work.check()
        try:
            self.work.begin(self.id)
        except NodeExistsError:
            if self.work.is_finished(self.id):  # by another, just now
                return
            raise
        if self._records.begin() and self.work.is_finished(self.id):  # by another, just before
            self._clean_up()

    def run(
        self,
        executor: ExecutorLike | None = None,
        *,
        workers: int | None = None,
        progress: Callable[[int, int], object] | None = None,
        finish: bool = True,
    ) -> PlanStatus:
        """Run all jobs that are not done, stage by stage, and then :meth:`finish`.

        ``executor``: any of :mod:`concurrent.futures`, a client of Dask, or what that gives by ``get_executor()``;
        ``workers``: so many processes of this machine; without either, one job at a time in this process, which uses as
        many threads as the settings say. Each worker needs :attr:`memory`. ``progress`` is called with the bytes done,
        and of all, from any thread, never twice at once: every half second as jobs run; in an executor with processes
        of its own as they end. Jobs that run again are more bytes in all. Interrupted or killed, the same call goes on.

        Raises :class:`~zardine.errors.JobsFailedError` where jobs fail, also when they are tried again.
        """
        if self.work.is_finished(self.id):
            return self._clean_up()
        with runner_of(executor, workers, type(self.work).__module__) as runner:
            self.begin()
            done = self._look()
            if done is None:
                return self.status()
            meter = _Meter(self.work, done, progress)
            for stage in range(len(self.work.stages)):
                self._run_stage(runner, stage, done.of(stage).missing(len(self.work.stages[stage])), meter)
            return self._finish(runner, meter) if finish else self.status()

    def result(self) -> Any:
        """Return what the finished plan gives: the report of verifying, or what was done."""
        return self.work.result(self.id)

    def run_part(
        self,
        *,
        stage: int | None = None,
        part: tuple[int, int] = (1, 1),
        executor: ExecutorLike | None = None,
        workers: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> PlanStatus:
        """Run one of several equal parts of the jobs of a stage, as a numbered job of a batch system does.

        ``stage`` is counted from 1; without, it is the first that is not complete. ``part`` is its number, counted from
        1, and how many there are. Nothing is finished. Raises :class:`~zardine.errors.PlanError` where the stage before
        is not complete, with the jobs that are missing.
        """
        number, count = part
        if not 1 <= number <= count:
            raise ValueError(f"part is a number from 1 on, and how many there are, not {number}/{count}")
        if self.work.is_finished(self.id):
            return self.status()
        with runner_of(executor, workers, type(self.work).__module__) as runner:
            self.begin()
            done = self._look()
            if done is None:
                return self.status()
            stages = self.work.stages
            open_ = [i for i, each in enumerate(stages) if len(done.of(i).within(len(each))) < len(each)]
            if stage is None:
                chosen = open_[0] if open_ else len(stages) - 1
            elif not 1 <= stage <= len(stages):
                raise ValueError(f"the plan has stages 1 to {len(stages)}, not {stage}")
            else:
                chosen = stage - 1
            self._refuse_early(chosen, done)
            length = len(stages[chosen])
            mine = Ranges([((number - 1) * length // count, number * length // count)])
            self._run_stage(runner, chosen, mine - done.of(chosen), _Meter(self.work, done, progress))
        return self.status()

    def status(self) -> PlanStatus:
        """Return how far the plan is, from a few objects, however many jobs there are."""
        done = self._look()
        stages = []
        finished = done is None and self.work.is_finished(self.id)
        for number, stage in enumerate(self.work.stages):
            length = len(stage)
            of = Ranges([(0, length)]) if finished else Ranges() if done is None else done.of(number).within(length)
            stages.append(StageStatus(stage.name, length, len(of), str(of.missing(length))))
        state = "finished" if finished else "new"
        if done is not None:
            state = "complete" if all(each.is_complete for each in stages) else "begun"
        return PlanStatus(state, tuple(stages))

    def finish(
        self,
        executor: ExecutorLike | None = None,
        *,
        workers: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> PlanStatus:
        """Make the result count, once all jobs are done.

        Looks at the versions of all source objects before: jobs whose source others have changed meanwhile run again,
        and ``progress`` is called as by :meth:`run`, with more bytes in all.
        Raises :class:`~zardine.errors.PlanError` where jobs are missing.
        """
        if self.work.is_finished(self.id):
            return self._clean_up()
        with runner_of(executor, workers, type(self.work).__module__) as runner:
            return self._finish(runner, _Meter(self.work, None, progress))

    def cancel(self) -> None:
        """Remove what the jobs have written, so that all is as before; nothing happens where nothing is begun.

        Jobs that are just running write nothing any more that counts, and take away what they have stored. Raises
        :class:`~zardine.errors.PlanError` where the plan is finished.
        """
        with self._lock():
            if self.work.is_finished(self.id):
                raise PlanError(f"it is too late to cancel: {self.work.home} is finished; erase it instead")
            self._records.cancel()  # first, so that what is erased now is no job's that counts
            self.work.cancel(self.id)
            self._records.erase()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self.work.lock(), self.work.home.store.lock(self._records.key):
            yield

    def _look(self, *, details: bool = False) -> Done | None:
        return self._records.look(details=details)

    def _run_stage(self, runner: Runner, stage: int, jobs: Ranges, meter: _Meter) -> None:
        meter.begin_stage(stage)
        found = self._found_before(stage)
        state = self._records.state()
        if not jobs or state is None or found is None:
            return
        recorder = recorder_of(self._records, *state)
        idle = self.work.idle(stage, found) & jobs
        if idle:
            recorder.add_idle(stage, idle)
            meter.skip(idle)
        do = _do_job if self.work.is_recorded_here else _run_job
        channel = runner.channel if meter.is_watched else None
        if channel is not None:
            channel.listen(meter.told)
            do = partial(do, opener=channel.opener(), interval=0.0 if runner.is_here else TELLS)

        def call_of(job: int) -> Callable[[int], Any]:
            meter.begin(job)
            return partial(do, self, stage, given=self.work.given(stage, job, found))

        def on_done(job: int, result: Any) -> None:
            if self.work.is_recorded_here:
                recorder.add(stage, job, result)
            meter.done(job)

        run_jobs(runner, call_of, jobs - idle, self.work.stages[stage].name, on_done)

    def _refuse_early(self, stage: int, done: Done) -> None:
        """Raise :class:`~zardine.errors.PlanError` where a stage before this one is not complete."""
        for before, each in enumerate(self.work.stages[:stage]):
            missing = done.of(before).missing(len(each))
            if missing:
                raise PlanError(
                    f"stage {stage + 1} has to wait for stage {before + 1}, of which {len(missing)} of "
                    f"{len(each)} jobs are missing: {missing}"
                )

    def _found_before(self, stage: int) -> Found | None:
        """Return what the jobs of earlier stages found; ``None`` where another worker has finished the plan meanwhile.

        Raises as :meth:`_refuse_early`.
        """
        if not stage or not self.work.uses_findings:
            return {}
        done = self._look(details=True)
        if done is None:
            return None
        try:
            self._refuse_early(stage, done)
        except PlanError:
            if self.work.is_finished(self.id):  # its records are just being removed
                return None
            raise
        return done.found

    def _clean_up(self) -> PlanStatus:
        """Do what is left of finishing, where that was cut off once the result counted."""
        with self._lock():
            done, result = self._look(details=True), None
            if done is None:
                self.work.clean(self.id)
                self._records.erase()  # of a worker that was killed as it wrote one too late
            else:
                try:
                    result = self.work.finish(self.id, done)
                except OvertakenError as error:
                    raise PlanError(f"the plan was finished, and then {error}: cancel it, and make it again") from error
                self._records.erase()
        return replace(self.status(), result=result)

    def _finish(self, runner: Runner, meter: _Meter) -> PlanStatus:
        try:
            return self._finish_closed(runner, meter)
        except BaseException:
            if not self.work.is_finished(self.id):
                self.work.reopen(self.id)
            raise

    def _finish_closed(self, runner: Runner, meter: _Meter) -> PlanStatus:
        before = len(self)
        for _ in range(_PASSES):
            done = self._look(details=True)
            if done is None:
                if self.work.is_finished(self.id):  # by another, just now
                    return self.status()
                raise PlanError("the plan cannot be finished: it is not begun, or was cancelled; run its jobs before")
            for number, stage in enumerate(self.work.stages):
                missing = done.of(number).missing(len(stage))
                if missing and self.work.is_finished(self.id):  # by another, just now
                    return self._clean_up()
                if missing:
                    raise PlanError(
                        f"the plan cannot be finished: of stage {number + 1} ({stage.name!r}) {len(missing)} of "
                        f"{len(stage)} jobs are missing: {missing}"
                    )
            self.work.check()
            again = self._changed(done)
            if again:
                self._records.void(done, again)
                meter.more(again)
                for number in sorted(again):
                    self._run_stage(runner, number, again[number], meter)
                now = sum(map(len, again.values()))
                if 2 * now > before:  # it does not become less by itself
                    self.work.close(self.id)
                before = now
            elif not self.work.close(self.id):
                try:
                    with self._lock():
                        if self._records.token() != done.token:
                            continue  # finished by another, or cancelled, since its records were read
                        result = self.work.finish(self.id, done)
                        self._records.erase()
                except OvertakenError:
                    continue
                return replace(self.status(), result=result)
        raise PlanError(
            f"others write to the source again and again: after {_PASSES} passes {self.work.home} is not finished; let "
            "them pause, and finish the plan then"
        )

    def _changed(self, done: Done) -> dict[int, Ranges]:
        """Return the jobs, by stage, that have to run again since others have changed what they saw."""
        again: dict[int, Ranges] = {}
        for stage, each in enumerate(self.work.stages):
            noted = done.seen.get(stage, {})
            wrong = Ranges([(0, len(each))])
            for surely in (False, True):
                now = self.work.seen(stage, wrong, surely=surely) if wrong else ()
                wrong = Ranges.of(job for job, text in now if noted.get(job, "") != text)
            if wrong:
                again[stage] = again.get(stage, Ranges()) | wrong
        for stage in sorted(again):
            for later, jobs in self.work.after(stage, again[stage]).items():
                again[later] = again.get(later, Ranges()) | jobs
        return again


class _Meter:
    """Tells a user's ``progress`` of the bytes that are done, which become no fewer. May be called from any thread."""

    def __init__(self, work: Work, done: Done | None, progress: Callable[[int, int], object] | None) -> None:
        """Begin with what is ``done``; ``None``: all."""
        self._work, self._progress = work, progress
        self._guard = Lock()
        self._stage = 0
        self._shares: dict[int, int] = {}
        """Bytes of the jobs of the stage that are begun, and what of them is done."""
        self._within: dict[int, int] = {}
        self._total = self._bytes = self._under_way = 0
        self._said = (-1, -1)
        if progress is None:
            return
        wholes = [work.stage_bytes(i) for i in range(len(work.stages))]
        self._total = self._bytes = sum(wholes)
        if done is not None:
            for i, (stage, whole) in enumerate(zip(work.stages, wholes, strict=True)):
                left = done.of(i).missing(len(stage))
                self._bytes -= whole if len(left) == len(stage) else work.jobs_bytes(i, left)
            self._say()

    @property
    def is_watched(self) -> bool:
        """Whether there is anybody to be told."""
        return self._progress is not None

    def begin_stage(self, stage: int) -> None:
        """Say of which stage the next jobs are."""
        with self._guard:
            self._stage, self._under_way = stage, 0
            self._shares, self._within = {}, {}

    def begin(self, job: int) -> None:
        """Say that a job is begun, or about to be."""
        if self._progress is not None:
            with self._guard:
                self._shares[job] = self._work.job_bytes(self._stage, job)

    def told(self, stage: int, job: int, nbytes: int) -> None:
        """Say how many bytes of a job are done."""
        with self._guard:
            if stage == self._stage and job in self._shares:
                now = max(0, min(nbytes, self._shares[job]))
                self._under_way += now - self._within.get(job, 0)
                self._within[job] = now
                self._say()

    def done(self, job: int) -> None:
        """Say that a job is done."""
        if self._progress is not None:
            with self._guard:
                self._under_way -= self._within.pop(job, 0)
                self._bytes += self._shares.pop(job, 0)
                self._say()

    def skip(self, jobs: Ranges) -> None:
        """Say that these jobs had nothing to do."""
        if self._progress is not None:
            with self._guard:
                self._bytes += self._work.jobs_bytes(self._stage, jobs)
                self._say()

    def more(self, again: Mapping[int, Ranges]) -> None:
        """Say that these jobs, by stage, are to be done once more."""
        if self._progress is not None:
            with self._guard:
                self._total += sum(self._work.jobs_bytes(stage, jobs) for stage, jobs in again.items())
                self._say()

    def _say(self) -> None:
        now = min(self._total, self._bytes + self._under_way)
        if (max(now, self._said[0]), self._total) != self._said:
            self._said = max(now, self._said[0]), self._total
            if self._progress is not None:
                self._progress(*self._said)


_RESTORED: Final[Cache[str, Plan]] = Cache(4)
"""Plans that came to this process, by their ids."""


def _read(path: Path) -> dict[str, Any]:
    """Return what is in the file of a plan. Raises :class:`~zardine.errors.PlanError` if it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_READ + 1)
        if len(data) > _MOST_READ:
            raise ValueError(f"it has more than {_MOST_READ:,} bytes")
        document = parse_json(data)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PlanError(f"{os.fspath(path)} is no plan: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{os.fspath(path)} is no plan: {error}; plan.save makes one") from None
    if not isinstance(document, dict) or "zardine_plan" not in document:
        raise PlanError(f"{os.fspath(path)} is no plan: the member 'zardine_plan' is missing; plan.save makes one")
    return document


_MOST_READ: Final = 2**28
"""Bytes of the file of a plan."""


def _restored(id_: str, pickled: bytes) -> Plan:
    plan = _RESTORED.get(id_)
    if plan is None:
        plan = Plan(pickle.loads(pickled))
        _RESTORED.put(id_, plan, 1)
    return plan


def _do_job(plan: Plan, stage: int, number: int, *, given: Any = None, **telling: Any) -> JobDone:
    """Do one job of a plan that is recorded in another process."""
    return plan.work.run(_telling(Job(stage, number, given), **telling))


def _telling(job: Job, opener: Callable[[], Told] | None = None, interval: float = TELLS) -> Job:
    """Return the job so that it tells what it has done."""
    return job if opener is None else replace(job, advance=Advance(opener(), job.stage, job.number, interval))


def _run_numbered(plan: Plan, stage: int, number: int) -> None:
    """Do one job, by what is recorded of earlier stages, all of whose jobs have to be done."""
    done, given = plan._look(details=plan.work.uses_findings) if stage else None, None
    if done is not None:
        plan._refuse_early(stage, done)
        given = plan.work.given(stage, number, done.found)
    _run_job(plan, stage, number, given=given)


def _run_job(plan: Plan, stage: int, number: int, *, given: Any = None, **telling: Any) -> None:
    """Do one job and record it; nothing where the plan is finished. Runs in any process."""
    records = plan._records
    state = records.state()
    if state is None:
        if plan.work.is_finished(plan.id):
            return
        raise PlanError(f"the plan for {plan.work.home} is not under way: it was cancelled, or not begun")
    job = Job(stage, number, given, is_wanted=lambda: records.state() == state, looks=state[1] > 0)
    job = _telling(job, **telling)
    for _ in range(MOST_TRIES):
        try:
            done = plan.work.run(job)
        except OvertakenError:
            job = replace(job, looks=True)
        except NotWantedError:
            _take_back(plan, job, state)
            return
        except Exception:
            with suppress(Exception):  # what went wrong first is what is told
                _take_back(plan, job, state)
            raise
        else:
            if not recorder_of(records, *state).add(stage, number, done):
                _take_back(plan, job, state)
            return
    raise StoreError(f"others write again and again what job {number} of stage {stage + 1} writes for {plan.work.home}")


def _take_back(plan: Plan, job: Job, state: tuple[str, int]) -> None:
    """Remove what a job has stored if its plan was cancelled meanwhile: perhaps after that was looked for."""
    now = plan._records.state() if job.targets else state
    if (now is None or now[0] != state[0]) and not plan.work.may_be_finished(plan.id):
        job.take_back(lambda: plan._records.state() is None and not plan.work.may_be_finished(plan.id))


def _in_words(forecast: Forecast) -> str:
    about = f", as of {forecast.sample}" if forecast.sample else ""
    return f"{forecast.objects:,} objects and {_size(forecast.bytes_written)} to write{about}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**20:,.0f} MiB"


__all__ = ["PRICES", "Plan", "PlanStatus", "StageStatus"]
