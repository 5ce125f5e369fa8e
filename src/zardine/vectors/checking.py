"""``validate``: is everything in a store what readers take it for?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from zardine.errors import MetadataError, ZardineError
from zardine.stores.resolve import StoreLike
from zardine.vectors.checking_arrays import check_arrays, check_fragments, check_rows
from zardine.vectors.content import Content
from zardine.vectors.documents import FORMAT_VERSION
from zardine.vectors.findings import Finding, Report, error, warning
from zardine.vectors.kinds import KINDS
from zardine.vectors.level_access import Level, VectorStore
from zardine.vectors.loading import ALL, load_cells
from zardine.vectors.loading_links import deltas_of, load_cross_links, load_links
from zardine.vectors.loading_objects import load_groups, load_manifests, load_tables, with_objects
from zardine.vectors.offsets import parse_segment, signed

Progress = Callable[[int, int], object] | None


def validate(path: StoreLike, *, progress: Progress = None) -> Report:
    """Check a whole store: documents, lists of chunks, rows, fragments, attributes, links, objects, groups, levels.

    Reads everything. Raises only where there is no store at all; a damaged one gives findings. ``progress`` is called
    with the number of levels done, and of all.
    """
    try:
        owner = VectorStore.open(path)
    except MetadataError as fault:
        return Report((error("root-document", "", str(fault)),))
    findings = list(_check_root(owner))
    levels: dict[int, tuple[Level, Content]] = {}
    numbers = owner.level_numbers()
    for done, number in enumerate(numbers):
        try:
            level = owner.level(number)
        except ZardineError as fault:
            findings.append(error("level-document", str(number), str(fault)))
            continue
        content = None
        try:
            findings += check_arrays(level)
            content = _check_level(level, findings)
        except ZardineError as fault:
            findings.append(error("unreadable", str(number), str(fault)))
        if content is not None:
            levels[number] = level, content
        if progress is not None:
            progress(done + 1, len(numbers))
    findings += _check_levels(owner, numbers, levels)
    counts = tuple(int(content.visible().sum()) for _, content in levels.values())
    return Report(tuple(findings), counts)


def _check_root(owner: VectorStore) -> Iterator[Finding]:
    root = owner.root
    version = str(root.block.get("zv_version"))
    if version.split(".")[:2] != FORMAT_VERSION.split(".")[:2]:
        yield warning("version", "", f"format version {version}; {FORMAT_VERSION} is what is known here")
    if not root.geometry_types:
        yield warning("geometry", "", "geometry_types is empty")
    for name in root.geometry_types:
        kind = KINDS.get(name)
        if kind is None:
            yield warning("geometry", "", f"geometry {name!r} is not known")
        elif root.links_convention not in kind.conventions:
            yield error("convention", "", f"links_convention {root.links_convention!r} does not go with {name}")
    if not owner.level_numbers():
        yield error("no-level", "", "there is no level")


def _check_level(level: Level, findings: list[Finding]) -> Content | None:
    """Check all that a level holds; gives its content, if that can be read."""
    place = str(level.document.level)
    if level.pending:
        findings.append(
            warning("change-unfinished", place, "a change was agreed on and not carried out; repair does that")
        )
    if level.attributes("vertex_fragments") is None:
        findings.append(error("fragments-missing", f"{place}/vertex_fragments", "there is no fragment index"))
    try:
        content = load_cells(level)
    except ZardineError as fault:
        findings.append(error("vertices", f"{place}/vertices", str(fault)))
        return None
    content = _check_objects(level, content, findings)
    findings += check_fragments(level, content)
    findings += check_rows(level, content)
    for family in ("vertex_attributes", "fragment_attributes"):
        for name in level.names(family):
            try:
                wanted = {family: [name]}
                load_cells(level, content.keys, **wanted)  # type: ignore[arg-type]
            except ZardineError as fault:
                findings.append(error("attribute", f"{place}/{family}/{name}", str(fault)))
    _check_links(level, content, findings)
    for name in level.document.block.get("arrays_present", ()):
        if level.attributes(name) is None:
            findings.append(warning("arrays-present", place, f"arrays_present names {name!r}, which is not there"))
    return content


def _check_objects(level: Level, content: Content, findings: list[Finding]) -> Content:
    place = f"{level.document.level}/object_index"
    try:
        manifests = load_manifests(level)
        if manifests is None:
            return content
        content = with_objects(level, content, manifests)
    except ZardineError as fault:
        findings.append(error("object-index", place, str(fault)))
        return content
    about = level.attributes("object_index") or {}
    ids = manifests.ids
    if len(np.unique(ids)) != len(ids):
        findings.append(error("object-ids", place, "an id is there more than once"))
    if about.get("object_ids_sorted") and (np.diff(ids) < 0).any():
        findings.append(error("object-ids", place, "object_ids_sorted is claimed, and ids do not ascend"))
    present = int((np.diff(manifests.starts) > 0).sum())
    for name, count in (("num_objects", len(ids)), ("num_present", present)):
        if about.get(name) is not None and about[name] != count:
            findings.append(error("object-count", place, f"{name} is {about[name]}; there are {count}"))
    try:
        load_tables(level, "object_attributes", len(ids))
        groups = load_groups(level)
    except ZardineError as fault:
        findings.append(error("object-attribute", f"{level.document.level}/object_attributes", str(fault)))
        return content
    if groups is not None:
        for number, members in enumerate(groups.members):
            if not np.isin(members, ids).all():
                where = f"{level.document.level}/groups"
                findings.append(warning("group", where, f"group {number} names objects that do not exist"))
    return content


def _check_links(level: Level, content: Content, findings: list[Finding]) -> None:
    place, root = f"{level.document.level}/links", level.owner.root
    needs = [name for name in root.geometry_types if name in KINDS and KINDS[name].links]
    if needs and level.document.level == 0 and level.attributes("links/0") is None:
        findings.append(error("links-missing", place, f"a {needs[0]} has links, and none are there"))
    try:
        deltas = deltas_of(level)
    except ZardineError as fault:
        findings.append(error("links", place, str(fault)))
        return
    for delta in deltas:
        where = f"{place}/{signed(delta)}"
        about = level.attributes(f"links/{signed(delta)}") or {}
        try:
            if delta == 0:
                links = load_links(level, content, attributes=ALL)
                width = about.get("link_width")
                if "mesh" in root.geometry_types and isinstance(width, int) and width < 3:
                    findings.append(error("links", where, f"faces of {width} corners"))
                if not about.get("directed") and about.get("store", "canonical") == "canonical":
                    _check_canonical(level, where, findings)
            else:
                other = level.owner.level(level.document.level + delta)
                links = load_cross_links(level, content, load_cells(other), other, delta)
        except ZardineError as fault:
            findings.append(error("links", where, str(fault)))
            continue
        assert links is not None
        count = len(links.endpoints)
        if (links.endpoints < 0).any():
            findings.append(error("links", where, "links refer to chunks that hold nothing"))
        if about.get("store") != "duplicate" and about.get("num_links") not in (None, count):
            findings.append(error("link-count", where, f"num_links is {about['num_links']}; there are {count}"))


def _check_canonical(level: Level, place: str, findings: list[Finding]) -> None:
    for segment in level.names("links/0"):
        offsets = parse_segment(segment, level.rank)
        if list(offsets) != sorted(offsets) or any(offset < (0,) * level.rank for offset in offsets):
            reason = f"undirected links are filed under their first chunk; {segment!r} says otherwise"
            findings.append(error("link-order", f"{place}/{segment}", reason))


def _check_levels(
    owner: VectorStore, numbers: list[int], levels: dict[int, tuple[Level, Content]]
) -> Iterator[Finding]:
    if numbers != list(range(len(numbers))):
        yield error("levels", "", f"levels are numbered {numbers}, not from 0 on without gaps")
    scales = owner.root.attributes["multiscales"][0].get("datasets") or ()
    named = [each.get("path") for each in scales]
    if named != [str(number) for number in numbers]:
        yield error("datasets", "", f"multiscales names the levels {named}; there are {numbers}")
    counts = [(number, int(content.visible().sum())) for number, (_, content) in levels.items()]
    for (_, before), (number, count) in pairwise(counts):
        if count > before:
            yield warning("levels", str(number), f"{count} vertices, more than the {before} of the level below")
