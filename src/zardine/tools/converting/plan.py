"""What becomes of each node: from source metadata to target metadata, or to the reasons why not. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

from zardine.creation.attribute_conventions import strict_attributes
from zardine.data_types.structs import Struct
from zardine.engine.freshness import CLOSING, GENERATION
from zardine.errors import ConversionError, MetadataError, Problem
from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, document_names, parse_documents, to_documents
from zardine.metadata.node_names import join_path
from zardine.stores.base import Version


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodePlan:
    """One node as it is and as it is to be."""

    path: str
    """Relative to the node that is converted; empty for that one."""
    source: NodeMetadata
    target: NodeMetadata
    remarks: tuple[str, ...] = ()
    """What users should know: something that the wanted version cannot hold in the same words."""
    exact: bool = True
    """Whether the codecs of the target give back every value; else the result has to be compared."""
    as_text: bool = False
    """Whether objects are to become text."""
    everything: bool = False
    """Whether all objects are to be stored, since the target leaves undefined what is not."""


Planned: TypeAlias = "NodePlan | list[str]"
"""A plan, or every reason why there is none."""


def plan_nodes(
    nodes: Mapping[str, NodeMetadata],
    plan_array: Callable[[str, ArrayMetadata], Planned],
    zarr_format: int,
    lost: Sequence[Problem] = (),
) -> tuple[NodePlan, ...]:
    """Return plans for all nodes of a hierarchy, parents first; ``lost`` are nodes besides that have no form in Zarr.

    Raises :class:`~zardine.errors.ConversionError` that lists every node and all that cannot be expressed.
    """
    plans: dict[str, NodePlan] = {}
    problems: list[Problem] = []
    for path, source in nodes.items():
        planned: Planned
        if isinstance(source, ArrayMetadata):
            try:
                planned = plan_array(path, source)
            except MetadataError as error:
                planned = [str(problem) for problem in error.problems] or [str(error)]
        else:
            planned = plan_group(path, source, zarr_format)
        if isinstance(planned, NodePlan):
            planned = _written_and_read(planned)
        if isinstance(planned, NodePlan):
            plans[path] = planned
        else:
            problems += [Problem(f"/{path}", reason) for reason in dict.fromkeys(planned)]
    problems += lost
    if problems:
        refuse(problems, len(nodes) + len(lost), zarr_format)
    return tuple(consolidated(plans).values())


def refuse(problems: list[Problem], count: int, zarr_format: int) -> None:
    """Raise the error that lists why some of ``count`` nodes cannot be converted."""
    bad = len({problem.place for problem in problems})
    which = "it" if count == 1 else f"{bad:,} of the {count:,} nodes"
    raise ConversionError(f"nothing was converted: {which} cannot be expressed in Zarr v{zarr_format}", problems)


def plan_group(path: str, source: GroupMetadata, zarr_format: int) -> Planned:
    """Return a group in another version."""
    attributes, remarks = strict_attributes(source.attributes)
    if zarr_format == 1:
        return ["Zarr v1 has no groups: convert its arrays one by one"]
    unknown, found = other_members(source, zarr_format)
    target = replace(source, zarr_format=zarr_format, attributes=attributes, unknown=unknown)
    return NodePlan(path=path, source=source, target=target, remarks=(*remarks, *found))


def other_members(source: NodeMetadata, zarr_format: int) -> tuple[dict[str, JSON], list[str]]:
    """Return members of a document that zardine does not know, for another version; and remarks on those left out."""
    unknown = {name: each for name, each in source.unknown.items() if name not in (GENERATION, CLOSING)}
    if source.zarr_format == zarr_format:
        return unknown, []
    kept: dict[str, JSON] = {}
    remarks = []
    for name, value in unknown.items():
        if isinstance(value, Mapping) and zarr_format == 3:
            kept[name] = {**value, "must_understand": False}
        else:
            remarks.append(f"the member {name!r}, which zardine does not know, is left out")
    return kept, remarks


def to_consolidate(plans: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
    """Return the same plans, with consolidated metadata in every group: each can be opened by one request.

    Not in those above records in v3: zarr-python 3.1 could open none of them, nor anything beside the records.
    """
    above = {
        parent
        for plan in plans
        if isinstance(plan.target, ArrayMetadata) and plan.target.zarr_format == 3
        if isinstance(plan.target.data_type, Struct)
        for parent in ("", *accumulate(plan.path.split("/"), "{}/{}".format))
    }
    asked = {}
    for plan in plans:
        target = plan.target
        if isinstance(target, GroupMetadata) and plan.path not in above:
            target = target.with_consolidated({})
        asked[plan.path] = replace(plan, target=target)
    return tuple(consolidated(asked).values())


def consolidated(plans: Mapping[str, NodePlan]) -> dict[str, NodePlan]:
    """Return the same plans, with consolidated metadata in the groups whose sources have it."""
    result = {}
    for path, plan in plans.items():
        target = plan.target
        if isinstance(target, GroupMetadata) and (
            target.consolidated_metadata is not None or target.consolidated_faults
        ):
            target = target.with_consolidated(documents_below(plans, path))
        result[path] = replace(plan, target=target)
    return result


def documents_below(plans: Mapping[str, NodePlan], path: str) -> dict[str, dict[str, JSON]]:
    """Return the documents of the nodes below a group as its consolidated metadata holds them, by relative path."""
    start = join_path(path, "x")[:-1]
    found = {}
    for other, plan in plans.items():
        if other != path and other.startswith(start):
            metadata = plan.target
            if isinstance(metadata, GroupMetadata):
                metadata = metadata.with_consolidated({} if metadata.zarr_format == 3 else None)
            found[other[len(start) :]] = metadata.to_dict()
    return found


def _written_and_read(plan: NodePlan) -> Planned:
    """Return the plan, if its documents are read as what it says; else why not."""
    target = plan.target
    name = document_names(target.zarr_format, target.node_type)[0]
    try:
        documents = to_documents(target)
        again = parse_documents(name, documents, "the new document would be invalid")
    except MetadataError as error:
        return [str(problem) for problem in error.problems] or [str(error)]
    except (TypeError, ValueError) as error:
        return [str(error)]
    if document_text(again) != document_text(target):
        return [f"its document would be read as another one: this is a bug in zardine; {documents[name]!r}"]
    return plan


def document_text(metadata: NodeMetadata) -> str:
    """Return what a node's documents say, to compare: NaN, which equals nothing, equals itself as text."""
    return json.dumps(metadata.to_dict(), sort_keys=True, default=repr)


def fingerprint(source: str, plans: Sequence[NodePlan], version: Version | None = None) -> str:
    """Return what two runs have equal if the second may continue the first; ``version``: of all of the source."""
    request = {
        "source": source,
        **({} if version is None else {"version": version}),
        "nodes": {plan.path: [document_text(plan.source), document_text(plan.target), plan.as_text] for plan in plans},
    }
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def bits(metadata: ArrayMetadata) -> object:
    """Return the fill value of an array, to compare bit by bit."""
    return metadata.fill.tobytes() if metadata.data_type.item_size is not None else metadata.fill[()]


def remark_on_fill(source: ArrayMetadata) -> tuple[str, ...]:
    """Return what v3 cannot say of the fill value of an older array: that there is none."""
    if source.fill_is_defined:
        return ()
    return ("fill value null: v3 cannot leave undefined what was never written, which gets the data type's default",)
