"""Documents of Zarr v3 for arrays whose chunks stay as they are: what they say, or every reason why not. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from zardine.creation.attribute_conventions import names_to_member, strict_attributes
from zardine.hierarchy.place import is_within
from zardine.json_document import Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.nodes.array import Array
from zardine.stores.memory import MemoryStore
from zardine.tools.converting.codecs import accepted, is_dated, unfit
from zardine.tools.converting.plan import NodePlan, Planned, document_text, other_members, plan_nodes, remark_on_fill
from zardine.tools.converting.to_v3 import explain_type


def plan_in_place(nodes: Mapping[str, NodeMetadata]) -> tuple[NodePlan, ...]:
    """Plans for all nodes, parents first; the target of a node that is v3 already is its source.

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
    """The document of v3 that describes the stored chunks of an older array, or of one of the sharding draft."""
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
    attributes, names = names_to_member(attributes, metadata)
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
        path=path, source=metadata, target=made.metadata, remarks=(*remarks, *found, *remark_on_fill(metadata))
    )


def _documents(source: Array) -> tuple[Extension, ...]:
    return tuple(Extension(codec.name, codec.configuration()) for codec in map(accepted, source.codecs))
