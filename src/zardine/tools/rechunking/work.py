"""Rechunking as jobs: an array is copied to a new place, which shows nothing before all of it is there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from zardine.chunk_grids.axis import Axis
from zardine.engine.freshness import GENERATION, generation_of
from zardine.engine.stored import stored_objects
from zardine.errors import ContainsArrayError, MetadataError, NodeExistsError, PlanError
from zardine.hierarchy.create import create_ancestors
from zardine.hierarchy.find import describe, find_node, load_array
from zardine.jobs.places import Place, Places
from zardine.jobs.records import Done
from zardine.jobs.work import holds_node
from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.tools.converting.target import OtherConversionError, Target, write_documents
from zardine.tools.rechunking.append import array_prefix
from zardine.tools.rechunking.copying import CopyWork, parts_of

_WAY: Final = "a new array needs a place of its own, such as target_path='name' within a group"


@dataclass(frozen=True)
class RechunkWork(CopyWork):
    """The array at ``source``, to be stored in other chunks at ``target``."""

    kind: ClassVar[str] = "rechunk"

    def describe(self) -> str:
        how = "" if self.between is None else f" by way of {self.between}"
        return f"rechunk {self.source} to {self.target}{how}"

    # before and after

    def check(self) -> None:
        now = load_array(self.source.store, self.source.path)
        wrong = differences(self.old, now)
        if wrong:
            raise PlanError(
                f"the plan was made for {self.source} as it was: since then its {wrong[0]}; cancel this plan, and make "
                "it again"
            )

    def _mark(self, plan: str) -> Target:
        grids, sharding = self._new_layout.grids, self._new_layout.sharding
        options: dict[str, JSON] = {
            "chunks": _lengths(grids.storage) if sharding is None else list(sharding.chunk_shape),
            "shards": None if sharding is None else _lengths(grids.storage),
            "max_memory": self.max_memory,
        }
        return Target(self.target.store, self.target.path, str(self.source), plan, options, "rechunk")

    def begin(self, plan: str) -> None:
        mark = self._mark(plan)
        if not self._look(mark):
            with suppress(NodeExistsError):  # another worker was faster
                mark.begin(overwrite=False)
            if not self._look(mark):
                raise NodeExistsError(f"{self.target} was begun and cancelled just now: begin again")

    def _look(self, mark: Target) -> bool:
        """Return whether this plan is begun. Raises where the place is taken."""
        try:
            return mark.look(overwrite=False, resume=True, way=_WAY)
        except OtherConversionError as error:
            anew = "cancelling its plan, or erasing what is there, and calling again"
            raise NodeExistsError(error.in_words(lambda name, value: f"{name}={value}", anew=anew)) from None

    def is_finished(self, plan: str) -> bool:
        try:
            node = find_node(self.target.store, self.target.path, 3)
        except MetadataError:
            return False
        return isinstance(node, ArrayMetadata) and generation_of(node) == plan

    def may_be_finished(self, plan: str) -> bool:
        return holds_node(self.target)  # which held none when the plan was begun

    def finish(self, plan: str, done: Done) -> None:
        member: JSON = {"must_understand": False, "id": plan}
        store, path = self.target.store, self.target.path
        if not self.is_finished(plan):
            self.compare_sums(done.found)
            create_ancestors(store, path, 3)
            write_documents(store, path, replace(self.new, unknown={**self.new.unknown, GENERATION: member}))
        store.erase(self._mark(plan).key)
        self.erase_between()

    def cancel(self, plan: str) -> None:
        mark = self._mark(plan)
        if mark.is_begun():
            handle = self._target()
            if self.blocks.appends:
                handle.store.wait_for_writers(array_prefix(handle))  # who comes later is not wanted, and sees that
            handle.store.erase_values([key for key, _ in stored_objects(handle)])
            self.erase_between()
            handle.store.erase(mark.key)

    # JSON

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> RechunkWork:
        source, target = places.source(), places.target()
        between = None if places.named["between"] is None else places.target("between")
        return cls(source, target, between, **parts_of(document))


def _lengths(axes: Sequence[Axis]) -> list[JSON]:
    """Return the length of chunks of each axis, or a list of how many there are of which lengths."""
    return [axis.runs[0][0] if axis.is_regular else [list(run) for run in axis.runs] for axis in axes]


def differences(old: ArrayMetadata, now: ArrayMetadata) -> list[str]:
    """Return in words what of an array, as far as its elements and where they are, is not as it was."""
    wrong = []
    if now.shape != old.shape:
        wrong.append(f"shape has become {now.shape}, which was {old.shape}")
    if now.data_type != old.data_type:
        wrong.append(f"data type has become {now.data_type}, which was {old.data_type}")
    for name, words in (
        ("chunk_grid", "chunk grid"),
        ("chunk_key_encoding", "chunk key encoding"),
        ("codecs", "chain of codecs"),
        ("zarr_format", "version of Zarr"),
    ):
        if getattr(now, name) != getattr(old, name):
            wrong.append(f"{words} has become another one")
    if now.fill.tobytes() != old.fill.tobytes():
        wrong.append("fill value has become another one")
    if generation_of(now) != generation_of(old):
        wrong.append("contents were replaced as a whole")
    return wrong


def refuse_taken(target: Place) -> None:
    """Raise :class:`~zardine.errors.ContainsArrayError` where an array is at the place already."""
    try:
        node = find_node(target.store, target.path)
    except MetadataError:
        return
    if isinstance(node, ArrayMetadata):
        raise ContainsArrayError(f"an array is already stored at {describe(target.store, target.path)}: {_WAY}")


def own_folder(folder: str, source: Place, target: Place) -> str:
    """Return a path below ``folder`` that is for this work alone: several may have their arrays between there."""
    name = hashlib.sha256(f"{source}\n{target}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return join_path(folder, f"between-{name}")


__all__ = ["RechunkWork", "own_folder", "refuse_taken"]
