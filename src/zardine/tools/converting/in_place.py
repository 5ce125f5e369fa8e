"""Conversion in place: documents of Zarr v3 beside older ones, for chunks that stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zardine.creation.attribute_conventions import names_to_member, strict_attributes
from zardine.engine.array_config import ArrayConfig
from zardine.engine.documents import read_document
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.errors import ConditionFailedError, ConversionError, NodeExistsError, Problem, ReadOnlyError
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import is_within
from zardine.json_document import Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, document_names, to_documents
from zardine.metadata.node_names import join_path
from zardine.metadata.v3 import DOCUMENT_NAME, parse_node
from zardine.nodes.array import Array
from zardine.stores.base import WHOLE, ByteRange, Condition, Reading, Store
from zardine.stores.memory import MemoryStore
from zardine.stores.wrappers.wrapper import WrapperStore
from zardine.tools.converting.codecs import accepted, is_dated, unfit
from zardine.tools.converting.compare import compare_array
from zardine.tools.converting.nodes import read_nodes
from zardine.tools.converting.plan import (
    NodePlan,
    Planned,
    consolidated,
    document_text,
    other_members,
    plan_nodes,
    remark_on_fill,
)
from zardine.tools.converting.to_v3 import explain_type
from zardine.tools.converting.work import ArrayWork, gather_stored, steps_of
from zardine.tools.listing import GatheredCells
from zardine.tools.progress import Progress, Steps


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A document that has to be written."""

    key: str
    content: bytes
    condition: Condition | None
    """That it is still what was read; nothing where the store has no versions."""


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """A conversion in place that was found to be possible."""

    store: Store
    path: str
    plans: tuple[NodePlan, ...]
    """Parents first; where a document of v3 is there already, that is the target."""
    documents: tuple[Document, ...]
    """Children before their parents."""

    def run(self, *, verify: bool = False, remove_old: bool = False, report: Progress | None = None) -> dict[str, Any]:
        """Write the documents that are missing, and give what was done.

        ``verify``: compare first what old and new documents make of the chunks.

        Each is written only if nobody else has written it since the plan was made; run again after an error, what is
        missing follows. The units of ``report`` are bytes of elements to be compared, and documents.
        """
        old = self._old_keys() if remove_old else []
        works = self._works() if verify else []
        advance = Steps(report, sum(work.nbytes for work in works) + len(self.documents) + len(old))
        problems = [problem for work in works for problem in compare_array(work, advance)]
        if problems:
            raise ConversionError("nothing was converted: elements would be read otherwise", problems)
        for document in self.documents:
            try:
                self.store.set(document.key, document.content, condition=document.condition)
            except ConditionFailedError:
                raise NodeExistsError(
                    f"{document.key} of {self.store} has just been written by another program"
                ) from None
            advance(1)
        for key in old:
            self.store.erase(key)
            advance(1)
        return {"documents": len(self.documents), "removed": len(old), "compared": bool(works)}

    def _works(self) -> list[ArrayWork]:
        works = []
        store = _WithoutDocuments(self.store, read_only=True)
        for plan in self.plans:
            if isinstance(plan.source, ArrayMetadata) and isinstance(plan.target, ArrayMetadata) and is_changed(plan):
                place = join_path(self.path, plan.path)
                # not shared: the document may be of v3, and is not to be seen
                before, after = (
                    ArrayHandle(store, place, prepare_layout(each), ArrayConfig(), is_shared=False)
                    for each in (plan.source, plan.target)
                )
                (work,) = steps_of(before, after)
                found = GatheredCells()
                gather_stored(found, 0, work.source, [work])
                works.append(replace(work, cells=found.cells((0, 0))))
        return works

    def _old_keys(self) -> list[str]:
        """Return keys of documents of older versions, children first; of a node last the one by which it is found.

        So whatever is left of them when this is cut off is found again.
        """
        keys = []
        for plan in reversed(self.plans):
            if plan.source.zarr_format != 3:
                first, *others = document_names(plan.source.zarr_format, plan.source.node_type)
                keys += [join_path(join_path(self.path, plan.path), name) for name in (*others, first)]
        return [key for key in keys if self.store.exists(key)]


class _WithoutDocuments(WrapperStore):
    """A store in which an array can be read as no document describes it yet."""

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        return None if key.rpartition("/")[2] == DOCUMENT_NAME else super().read(key, ranges)


def prepare_in_place(store: Store, path: str, *, overwrite: bool) -> InPlace:
    """Read all documents and plan the new ones.

    Raises :class:`~zardine.errors.ConversionError` that lists everything that cannot be expressed in v3, and every
    document of v3 that is there already and describes the chunks otherwise (unless ``overwrite``).
    """
    if store.read_only:
        raise ReadOnlyError(f"cannot write documents to {describe(store, path)}: it was opened read-only")
    plans = {plan.path: plan for plan in plan_in_place(read_nodes(store, path, older_first=True))}
    missing: dict[str, Condition | None] = {}
    problems = []
    for relative, plan in plans.items():
        if not is_changed(plan):
            continue
        place = join_path(path, relative)
        key = join_path(place, DOCUMENT_NAME)
        reading = read_document(store, key)
        if reading is None or plan.source.zarr_format == 3 or overwrite:
            missing[relative] = store.condition_on(key, reading)
            continue
        there = parse_node(bytes(reading.parts[0]), f"the document of {describe(store, place)} is invalid")
        if _same_storage(there, plan.target):
            plans[relative] = replace(plan, target=there)
        else:
            text = f"{DOCUMENT_NAME} is there already, and says something else; overwrite=True replaces it"
            problems.append(Problem(f"/{relative}", text))
    if problems:
        raise ConversionError("nothing was converted: nodes of Zarr v3 are stored in the same place", problems)
    plans = consolidated(plans)
    documents = [
        Document(
            join_path(join_path(path, relative), DOCUMENT_NAME),
            to_documents(plans[relative].target)[DOCUMENT_NAME] or b"",
            missing[relative],
        )
        for relative in reversed(plans)
        if relative in missing
    ]
    return InPlace(store, path, tuple(plans.values()), tuple(documents))


def _same_storage(there: NodeMetadata, wanted: NodeMetadata) -> bool:
    """Whether a document that is there already describes the same chunks; shape and attributes may have changed."""
    if not isinstance(there, ArrayMetadata) or not isinstance(wanted, ArrayMetadata):
        return type(there) is type(wanted)
    members = ("data_type", "chunk_grid", "chunk_key_encoding", "codecs", "fill_value")
    old, new = there.to_dict(), wanted.to_dict()
    return all(old[member] == new[member] for member in members)


def plan_in_place(nodes: Mapping[str, NodeMetadata]) -> tuple[NodePlan, ...]:
    """Return plans for all nodes, parents first; the target of a node that is v3 already is its source.

    Raises :class:`~zardine.errors.ConversionError` that lists every node and all that cannot be expressed.
    """
    plans = plan_nodes(nodes, array_in_place, 3)
    changed = [plan.path for plan in plans if isinstance(plan.source, ArrayMetadata) and is_changed(plan)]
    return tuple(
        plan
        if plan.source.zarr_format != 3 or any(is_within(path, plan.path) for path in changed)
        else replace(plan, target=plan.source, remarks=())
        for plan in plans
    )


def is_changed(plan: NodePlan) -> bool:
    """Whether the document of a node is to be another one."""
    return plan.target is not plan.source and document_text(plan.target) != document_text(plan.source)


def array_in_place(path: str, metadata: ArrayMetadata) -> Planned:
    """Return the document of v3 that describes the stored chunks of an older array, or of one of the sharding draft."""
    source = Array(MemoryStore(), path, metadata)
    if metadata.older is None:
        if not is_dated([codec.to_json() for codec in metadata.codecs]):
            return NodePlan(path=path, source=metadata, target=metadata)
        return NodePlan(path=path, source=metadata, target=replace(metadata, codecs=_documents(source)))
    reason = explain_type(metadata)
    reasons = [*([] if reason is None else [reason]), *unfit(source.codecs)]
    if reasons:
        return reasons
    attributes, remarks = strict_attributes(metadata.attributes)
    attributes, names, more = names_to_member(attributes, metadata)
    unknown, found = other_members(metadata, 3)
    target = replace(
        metadata,
        codecs=_documents(source),
        attributes=attributes,
        axis_names=names,
        unknown=unknown,
        zarr_format=3,
        older=None,
    )
    made = Array(MemoryStore(), path, target)
    return NodePlan(
        path=path, source=metadata, target=made.metadata, remarks=(*remarks, *more, *found, *remark_on_fill(metadata))
    )


def _documents(source: Array) -> tuple[Extension, ...]:
    return tuple(Extension(codec.name, codec.configuration()) for codec in map(accepted, source.codecs))
