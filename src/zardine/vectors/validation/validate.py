"""``validate``: is everything in a store what readers take it for?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ParamSpec, TypeAlias

from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun, each_begun
from zardine.errors import MetadataError, NodeNotFoundError, StoreError, UnsupportedError
from zardine.hierarchy.find import HIDDEN, describe
from zardine.hierarchy.place import find_place
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.vectors.content.content import Content
from zardine.vectors.findings import Finding, Report, error, found_by, guarded, unexpected, warning
from zardine.vectors.format.documents import FORMAT_VERSION, KINDS
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.looking_below import looked_below
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.consolidation import differing_documents
from zardine.vectors.storing.level_nodes import Survey
from zardine.vectors.storing.store import NEXT, UNFINISHED, Level, VectorStore, named_levels
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE, state_of
from zardine.vectors.validation.arrays import check_arrays
from zardine.vectors.validation.links import check_links, checks_between
from zardine.vectors.validation.objects import check_objects
from zardine.vectors.validation.parametric import check_parametric
from zardine.vectors.validation.rows import AT_ONCE, AttributeChecks, Outline, RowChecks, contents

P = ParamSpec("P")

_FAMILIES = ("vertex_attributes", "fragment_attributes", "link_attributes", "object_attributes")

_TOGETHER = 8
"""Levels that are checked at the same time, at most, where a store is far away."""


def validate(path: StoreLike, *, progress: Progress | None = None) -> Report:
    """Check a whole store: documents, lists of chunks, rows, fragments, attributes, links, objects, groups, levels.

    Reads everything once; anew, a few times, where it finds something and somebody changed the store meanwhile. In
    memory are about 250,000 vertices, with what belongs to them, and the object index and lists of chunks; of a store
    far away, whose arrays are looked at together, the lists of all of them. Raises only where there is no store at all,
    or it cannot be reached, or neither the place nor consolidated metadata tell what it has, or it never stays the same
    for long enough; a damaged one gives findings. ``progress`` is called with the number of levels done, and of all.
    """
    for _ in attempts(CHANGES):
        before = state_of(path)  # after the wait, in which others change the store, too
        report = _report(path, progress)
        if not report.findings or state_of(path) == before:
            return report
    raise StoreError(f"{describe(*find_place(path))} changes again and again while it is checked: try later")


def _report(path: StoreLike, progress: Progress | None) -> Report:
    try:
        owner = VectorStore.open(path)
    except NodeNotFoundError:
        raise
    except MetadataError as fault:
        return Report.of([error("root-document", "", str(fault))])
    except NOT_ON_PURPOSE as fault:
        return Report.of([error("root-document", "", unexpected(fault))])
    findings: list[Finding] = []
    calls: list[Callable[[], Any]] = [partial(_found, "root-document", "", _check_root, owner), owner.level_numbers]
    of_root, level_numbers, below = begun(owner.store, [*calls, partial(owner.names, "0")])
    findings += of_root()
    levels: dict[int, tuple[Level, Content]] = {}
    counts: dict[int, int] = {}
    numbers = level_numbers()
    for number in numbers[:1]:  # where nothing tells what is there nothing can be checked, which is no fault of it
        owner.names(str(number)) if number else below()
    for done, (number, level, looked) in enumerate(_checked_levels(owner, numbers)):
        found, checked = looked()
        findings += found
        if level is not None and checked is not None:
            levels[number], counts[number] = (level, checked[0]), checked[1]
        if progress is not None:
            progress(done + 1, len(numbers))
    between = [partial(found_by, each) for level, _ in levels.values() for each in checks_between(level, levels)]
    for look in begun(owner.store, between) if _are_small([level for level, _ in levels.values()]) else between:
        findings += look()
    checks = [
        partial(found_by, lambda own: guarded(own, "parametric", "parametric", lambda: check_parametric(owner, own))),
        partial(_found, "levels", "", _check_levels, owner, numbers, counts),
        partial(_found, "import-unfinished", "", _check_imports, owner),
    ]
    for look in begun(owner.store, checks):
        findings += look()
    return Report.of(findings, tuple(counts.values()))


_Checked: TypeAlias = tuple[list[Finding], tuple[Content, int] | None]
"""What was found of a level, and which cells it has, and how many vertices, if these can be read."""


def _checked_levels(
    owner: VectorStore, numbers: Sequence[int]
) -> Iterator[tuple[int, Level | None, Callable[[], _Checked]]]:
    """Yield the number of each level, the level, if there is more to check than its arrays, and what all of that gives.

    Far away all are checked together, if they have no more vertices than else are in memory of one of them.
    """
    looks = each_begun(owner.store, partial(_look, owner), numbers)
    if not is_far(owner.store):
        for number, looked in looks:
            level, found = looked()
            yield number, level, partial(_checked, number, level, found)
        return
    there = [(number, *looked()) for number, looked in looks]
    calls: list[Callable[[], _Checked]] = [partial(_checked, *each) for each in there]
    are_small = _are_small([level for _, level, _ in there if level is not None])
    for (number, level, _), call in zip(there, begun(owner.store, calls) if are_small else calls, strict=True):
        yield number, level, call


def _are_small(levels: Sequence[Level]) -> bool:
    return len(levels) <= _TOGETHER and sum(level.document.vertex_count for level in levels) <= AT_ONCE


def _checked(number: int, level: Level | None, found: list[Finding]) -> _Checked:
    findings = list(found)
    if level is None:
        return findings, None
    return findings, guarded(findings, "unreadable", str(number), partial(_check_level, level, findings))


def _look(owner: VectorStore, number: int) -> tuple[Level | None, list[Finding]]:
    """Open a level, and check its arrays; gives it, if there is more to check, and what was found."""
    findings: list[Finding] = []
    level = guarded(findings, "level-document", str(number), partial(owner.level, number))
    if level is None or _is_being_changed(level, findings):
        return None, findings
    looked = looked_below(level, names=_FAMILIES, nodes=(*_FAMILIES, "links/0", "groups"))
    guarded(findings, "unreadable", str(number), partial(check_arrays, level, Survey(looked), findings))
    return looked, findings


def _check_imports(owner: VectorStore) -> Iterator[Finding]:
    """Name imports that are to replace the store, whose jobs keep what they make in a hidden folder of it."""
    above = f"{child(owner.path, HIDDEN)}/import/"
    try:
        folders = owner.store.list_dir(above)[1]
    except UnsupportedError:
        return
    if folders:
        reason = (
            f"an import that is to replace the store is under way, or was cut off ({folders[0]}): the same import "
            "again goes on with it, any other one discards it, and cancelling its plan takes it back"
        )
        yield warning("import-unfinished", "", reason)


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
    differing = next(differing_documents(owner), None)
    if differing is not None:
        reason = f"consolidated metadata contradicts the document of {differing}, and other programs believe it: repair"
        yield error("consolidated", "", f"{reason} removes it, consolidate_metadata makes it anew")
    if not owner.level_numbers():
        yield error("no-level", "", "there is no level")


def _is_being_changed(level: Level, findings: list[Finding]) -> bool:
    """Whether a level is none at all for readers, as a writer that was killed left it, or one that is at work."""
    place = str(level.document.level)
    if NEXT in level.document.attributes:
        reason = "another store takes the place of this one; if no writer is at work, one was killed: see repair"
        findings.append(error("replacement-unfinished", place, reason))
        return True
    if level.document.level and UNFINISHED in level.document.attributes:
        reason = "the level is being made or removed, and no reader knows it; if no writer is at work: see repair"
        findings.append(warning("level-unfinished", place, reason))
        return True
    return False


def _check_level(level: Level, findings: list[Finding]) -> tuple[Content, int] | None:
    """Check all that a level holds; gives which cells it has, and how many vertices, if these can be read."""
    place = str(level.document.level)
    if level.is_claimed:
        reason = "a writer has claimed the store, to store arrays anew; if none is at work, one was killed: see repair"
        findings.append(warning("claimed", place, reason))
    if not level.is_settled:
        findings.append(
            warning("change-unfinished", place, "a change was agreed on and not carried out; repair does that")
        )
    if guarded(findings, "fragments", f"{place}/vertex_fragments", lambda: level.node("vertex_fragments") is None):
        findings.append(error("fragments-missing", f"{place}/vertex_fragments", "there is no fragment index"))
    of_attributes: list[Finding] = []
    kept, outline = KeptLevel.of(level), Outline()
    checks, attributes = RowChecks(kept), AttributeChecks(kept, of_attributes)

    def look() -> Content:
        for content in contents(kept):
            outline.add(content)
            checks.add(content)
            attributes.add(content)
        whole = outline.content(level.rank)
        attributes.end(whole)
        return whole

    content = guarded(findings, "vertices", f"{place}/vertices", look)
    if content is None:
        return None
    of_objects, *others = begun(
        level.owner.store,
        [
            partial(found_by, partial(check_objects, level, content)),
            *(partial(_found, "attribute", f"{place}/{family}", _check_family, level, family) for family in _FAMILIES),
            partial(found_by, partial(check_links, level, content)),
            partial(_found, "arrays-present", place, _check_present, level),
        ],
    )
    findings += [*of_objects(), *checks.of_fragments(), *checks.of_rows(), *of_attributes]
    for found in others:
        findings += found()
    return content, outline.visible


def _found(
    code: str, place: str, check: Callable[P, Iterator[Finding]], *args: P.args, **kwargs: P.kwargs
) -> list[Finding]:
    """What ``check`` finds, and what it raises."""
    return found_by(lambda own: guarded(own, code, place, lambda: own.extend(check(*args, **kwargs))))


def _check_family(level: Level, relative: str) -> Iterator[Finding]:
    try:
        is_empty = level.attributes(relative) is not None and not level.names(relative)
    except UnsupportedError:  # nothing can be listed
        return
    if is_empty:
        yield error(
            "attributes-lost", f"{level.document.level}/{relative}", "there is a group for them, and none in it"
        )


def _check_present(level: Level) -> Iterator[Finding]:
    place = str(level.document.level)
    for name in level.document.block.get("arrays_present", ()):
        if not isinstance(name, str):
            yield error("arrays-present", place, f"arrays_present names {name!r}, which is no name")
        elif level.node(name) is None:
            yield warning("arrays-present", place, f"arrays_present names {name!r}, which is not there")


def _check_levels(owner: VectorStore, numbers: list[int], counts: Mapping[int, int]) -> Iterator[Finding]:
    looks = begun(owner.store, [partial(owner.is_unfinished, number) for number in numbers if number])
    unfinished = [number for number, look in zip(filter(None, numbers), looks, strict=True) if look()]
    numbers = [number for number in numbers if number not in unfinished]
    if numbers != list(range(len(numbers))):
        yield error("levels", "", f"levels are numbered {numbers}, not from 0 on without gaps")
    named = [name for name in named_levels(owner.root) if name not in map(str, unfinished)]
    if named != [str(number) for number in numbers]:
        yield error("datasets", "", f"multiscales names the levels {named}; there are {numbers}")
    older = owner.older_levels()
    if older:
        which = f"levels {older[0]} to {older[-1]} are" if len(older) > 1 else f"level {older[0]} is"
        reason = f"{which} older than what {'they were' if len(older) > 1 else 'it was'} made of"
        yield warning("levels-older", "", f"{reason}: build_pyramid makes anew what has changed")
    for (_, before), (number, count) in pairwise(counts.items()):
        if count > before:
            yield warning("levels", str(number), f"{count} vertices, more than the {before} of the level below")
