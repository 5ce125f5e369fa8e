"""What exports have in common that write values to their place in any store: all but a document, which comes last.

What is there before goes when they begin, and so does what others have left there that were not finished. Who is killed
goes on by the same plan; without the document nothing counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar, Final

from zardine.errors import NodeExistsError, PlanError
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.metadata.node_names import join_path
from zardine.vectors.exchange.level_cuts import checked_cuts
from zardine.vectors.exchange.level_work import EXPORT, LevelWork
from zardine.vectors.exchange.unfinished import discard, folder_of, left, note, noted

PLAN: Final = "zardine_export"
"""The member of the document that says of which plan it is."""
_BEGUN: Final = "begun.json"
"""Lies beside what is made in between from when there is room for values."""
_OTHER: Final = "no document"


@dataclass(frozen=True)
class ValuesWork(LevelWork):
    """A level of a store, to be written as values and a document."""

    document: ClassVar[str]
    """What the document is called."""

    cuts: tuple[int, ...]
    """Where the parts of the level begin, and where the last one ends."""
    size: int
    """Bytes of all vertices and their attributes."""
    memory: int
    """Bytes that a job needs."""

    @property
    def count(self) -> int:
        """How many parts there are, and as many jobs that write."""
        return len(self.cuts) - 1

    def job_bytes(self, stage: int, job: int) -> int:
        if stage == 0:
            return self.size
        return self.size * (job + 1) // self.count - self.size * job // self.count

    @property
    def uses_findings(self) -> bool:
        return True

    def begin(self, plan: str) -> None:
        store, own = self.target.store, self.hidden(plan)
        if own not in left(self.target, EXPORT):
            if what_is_at(self.target, self.document) != self.replaced:
                check_room(self.target, overwrite=False)
                raise PlanError(f"what was in {self.target} when the export was planned is gone: plan it anew")
            note(self.target, EXPORT, plan, self.facts())
        if store.get(f"{own}{_BEGUN}") is None:
            discard(self.target, EXPORT, str(self.source), self.facts(), own)
            self._remove_values()
            store.set(f"{own}{_BEGUN}", b"{}")

    def _remove_values(self) -> None:
        """Remove what is of the format, the document first."""
        ours = sorted(filter(self.is_ours, stored_at(self.target)), key=lambda name: name != self.document)
        self.target.store.erase_values([join_path(self.target.path, name) for name in ours])

    @abstractmethod
    def is_ours(self, name: str) -> bool:
        """Return whether a value that is called so, relative to the target, is of the format."""

    def cancel(self, plan: str) -> None:
        if self.hidden(plan) in left(self.target, EXPORT):
            self._remove_values()
        self.tidy(plan)

    def tidy(self, plan: str) -> None:
        """Remove what was made in between."""
        self.target.store.erase_prefix(self.hidden(plan))

    def to_json(self) -> dict[str, Any]:
        more = {"cuts": list(self.cuts), "size": self.size, "memory": self.memory}
        return {**super().to_json(), **more}

    @classmethod
    def fields_of(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return what :meth:`to_json` has of all such works. Raises :class:`PlanError` for what is none."""
        numbers = {name: document[name] for name in ("level", "size", "memory")}
        if not all(type(each) is int and each >= 0 for each in numbers.values()):
            raise PlanError("a plan of an export has numbers of a level and bytes")
        words = {name: document[name] for name in ("state", "format", "replaced")}
        if document["format"] != cls.kind or not all(isinstance(each or "", str) for each in words.values()):
            raise PlanError(f"a plan of the kind {cls.kind} is of that format, and has digests")
        if words["state"] is None:
            raise PlanError("a plan of an export has a digest of the level")
        return {**numbers, **words, "cuts": checked_cuts(document["cuts"])}


def stored_at(target: Place) -> list[str]:
    """Return what is stored at a target, relative to that, but what is hidden there."""
    prefix = f"{target.path}/" if target.path else ""
    names = (key[len(prefix) :] for key in target.store.list_prefix(prefix))
    return [name for name in names if not name.startswith(f"{HIDDEN}/")]


def what_is_at(target: Place, document: str) -> str | None:
    """Return the digest of the document at a target; ``None`` where nothing is stored, or by an unfinished export."""
    found = target.store.get(join_path(target.path, document))
    if found is not None:
        return sha256(found).hexdigest()
    return _OTHER if stored_at(target) and not left(target, EXPORT) else None


def check_room(target: Place, *, overwrite: bool) -> None:
    """Raise :class:`NodeExistsError` where something is stored at a target that is not to be replaced.

    What exports that were not finished have left there does not count.
    """
    if not overwrite and not left(target, EXPORT) and stored_at(target):
        raise NodeExistsError(f"something is stored at {target} already: overwrite=True replaces it")


def plan_of(work: ValuesWork, *, overwrite: bool) -> Plan:
    """Return the plan of a work, or of the same if it was begun. Raises as :func:`check_room`."""
    for each in left(work.target, EXPORT):  # it has removed the document that was there
        with suppress(ValueError, TypeError, KeyError):
            begun = Plan(replace(work, replaced=noted(work.target.store, each)["replaced"]))
            if folder_of(work.target, EXPORT, begun.id) == each:
                return begun
    check_room(work.target, overwrite=overwrite)
    return Plan(work)


__all__ = ["PLAN", "ValuesWork", "check_room", "plan_of", "stored_at", "what_is_at"]
