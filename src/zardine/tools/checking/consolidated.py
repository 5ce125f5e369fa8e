"""Whether consolidated metadata says what the documents of the nodes say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zardine.errors import MetadataError
from zardine.hierarchy.find import UNFINISHED_NODE
from zardine.json_document import replace_non_numbers
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.metadata.node_names import join_path
from zardine.metadata.v2 import CONSOLIDATED
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.tools.report import Fault

_KIND = "consolidated"


def check_consolidated(nodes: Mapping[str, Sequence[NodeMetadata]]) -> Iterator[Fault]:
    """Compare the consolidated metadata of every group among ``nodes`` with the nodes below it."""
    for path, found in nodes.items():
        for group in found:
            if isinstance(group, GroupMetadata) and group.consolidated_metadata is not None:
                for message in _differences(path, group, nodes):
                    yield _fault(path, group, message)


def broken_consolidated(path: str, group: GroupMetadata) -> list[Fault]:
    """Return the faults that make the consolidated metadata of a group unreadable."""
    return [_fault(path, group, str(problem)) for problem in group.consolidated_faults]


def _fault(path: str, group: GroupMetadata, message: str) -> Fault:
    name = CONSOLIDATED if group.zarr_format == 2 else DOCUMENT_NAME
    return Fault(f"/{path}", join_path(path, name), kind=_KIND, message=message)


def _differences(path: str, group: GroupMetadata, nodes: Mapping[str, Sequence[NodeMetadata]]) -> Iterator[str]:
    consolidated = group.consolidated_metadata
    assert consolidated is not None
    below = f"{path}/" if path else ""
    actual = {
        each[len(below) :]: node
        for each, found in nodes.items()
        if each != path and each.startswith(below)
        for node in found
        if node.zarr_format == group.zarr_format
    }
    for name, document in consolidated.items():
        if name not in actual:
            if any(each.startswith(f"{name}/") for each in actual) and "shape" not in document:
                continue  # a group without a document of its own
            yield f"it has a node {name!r}, which is not stored, or whose document is invalid"
            continue
        try:
            node = parse_node_json(document, "")
        except MetadataError as error:
            yield f"what it has of {name!r} is invalid: {error.problems[0] if error.problems else error}"
            continue
        members = _unlike(node, actual[name])
        if members:
            yield f"what it has of {name!r} differs from the document there: {', '.join(members)}"
    for name in sorted(actual.keys() - consolidated.keys()):
        yield f"it lacks the node {name!r}"


def _unlike(one: NodeMetadata, other: NodeMetadata) -> list[str]:
    """Return the members that mean something else in one document; a default may be written or left out."""
    first, second = replace_non_numbers(one.to_dict()), replace_non_numbers(other.to_dict())
    alike = {"consolidated_metadata", UNFINISHED_NODE}
    if isinstance(one, ArrayMetadata) and isinstance(other, ArrayMetadata):
        if one.codecs == other.codecs:
            alike |= {"codecs", "compressor", "filters"}
        if one.data_type == other.data_type and _is_same_fill(one, other):
            alike.add("fill_value")
    return [name for name in sorted((first.keys() | second.keys()) - alike) if first.get(name) != second.get(name)]


def _is_same_fill(one: ArrayMetadata, other: ArrayMetadata) -> bool:
    if one.dtype.kind in "OT" or one.fill_is_defined != other.fill_is_defined:
        return False
    return one.fill.tobytes() == other.fill.tobytes()
