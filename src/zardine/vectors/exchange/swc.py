"""SWC: skeletons of neurons, files and folders of them, into stores and out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import ABOVE
from zardine.vectors.content.run_content import depth_first, inverse
from zardine.vectors.exchange.export_folder import PARTS_DOCUMENT, check_complete
from zardine.vectors.exchange.file_lists import FileList, together
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.level_parts import LevelParts, numbers_of, own
from zardine.vectors.exchange.losses import bounds_of_nothing, check_rank, check_store
from zardine.vectors.exchange.targets import writing
from zardine.vectors.format.ragged import ranges
from zardine.vectors.outside import tell_of_comments, warn_objects
from zardine.vectors.results import Skeleton
from zardine.vectors.skeleton import write_spooled_trees
from zardine.vectors.storing.spools import forget, mapped
from zardine.vectors.swc import KEPT, SAMPLE, check_kept, read_swc, samples_of, swc_header, swc_lines, warn_left_out

_LINE: Final = 24
"""Bytes of a line of a file, at least, about."""
_OF_A_LINE: Final = 600
"""Bytes that it takes to read one, at most."""
_FIXED: Final = 16 * 2**20
_AT_ONCE: Final = 2**16
"""Lines that are written together."""


FATES = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    scales="told/-: a SCALE in the header is not applied",
    precision="kept/kept",
    integers="-/told",
    floats="-/told",
    booleans="-/told",
    text="-/told",
    several_values="-/told",
    missing_text="-/told",
    vertex_attributes="kept/kept: type and radius; others are told",
    object_attributes="-/told",
    ids="told/told: numbers of samples other than 1, 2, …; of a folder of files kept as their names",
    groups="-/told",
    crs="-/told",
    bounds="-/told",
    metadata="told/told: columns after the seventh",
    comments="told/-",
)


class SwcParts:
    """A SWC file, or a folder of them, as :class:`~zardine.vectors.exchange.file_parts.FileParts`: whole files.

    Types and radii become attributes of vertices. Each file of a folder is an object with the attribute ``name``, and
    the id that it is called by where all are called by numbers.
    """

    outline: None = None

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        self._ordered = not {"object_ids", "vertex_attributes"} & set(options)  # else these are as vertices in the file
        check_complete(source)
        self._list = FileList.of(source, (".swc",), at_once * _LINE)
        self.count = self._list.count

    @property
    def vertices(self) -> int:
        """How many there are, about."""
        return self._list.nbytes // _LINE

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a part: the text, and the numbers of its lines."""
        return self._list.largest * (_OF_A_LINE // _LINE) + _FIXED

    def read(self, number: int) -> Piece:
        """Return the trees of the files of a part, each branch whole."""
        files = self._list.part(number)
        comments = list[str]()
        pieces = [_tree(file, comments, ordered=self._ordered) for file in files]
        tell_of_comments(self._source, comments)
        for piece, file in zip(pieces, files, strict=True):
            if self._list.names is not None and not len(piece.positions):
                raise DataError(f"{file} holds no samples, and an object has some: leave it out")
        return together(pieces, files)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all trees."""
        given = {} if self._list.names is None else {"object_attributes": {"name": list(self._list.names)}}
        self._list.warn_of_others(self._source, (PARTS_DOCUMENT,))
        lengths, ids = whole.of_lines[LENGTHS], self._list.ids
        if not whole.count:
            options, lengths, ids = {**options, **bounds_of_nothing(self._source, options)}, lengths[:0], ids[:0]
        write_spooled_trees(path, whole, lengths, ids, {**given, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


def _tree(file: Path, comments: list[str], *, ordered: bool) -> Piece:
    """What is in a file; ``ordered``: in an order in which parents come before children, and branches are whole."""
    positions, parents, attributes = read_swc(file, comments)
    own = np.arange(len(parents))
    try:
        order = depth_first(parents, np.zeros(len(parents), np.int64))
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    if not ordered:
        order = own
    parents = np.where(parents[order] >= 0, inverse(order)[parents[order]], own)
    return Piece(
        positions[order], {ABOVE: own - parents, **{name: values[order] for name, values in attributes.items()}}
    )


def swc_out(path: StoreLike, target: Path, level: int, step: Step) -> None:
    """Of attributes the format keeps ``type`` and ``radius``. Each branch is written to its end.

    In memory are the branches, not their vertices: where each begins, and which vertex is above that.
    """
    check_store(path, target, level, ("skeleton",), ("vertex_attributes",))
    parts = LevelParts[Skeleton](path, level, step, ways=3)  # the file is a way, too
    check_rank(parts.rank, target)
    trees, ids = _Trees(), np.zeros(0, np.int64)

    def looked() -> Iterator[Skeleton]:
        nonlocal ids
        for part in parts:
            mine = slice(0, own(part))
            if part.object_ids is not None:
                ids = np.union1d(ids, part.object_ids[mine])
            numbers = numbers_of(part)
            trees.look(numbers[mine], np.where(part.parents[mine] >= 0, numbers[part.parents[mine]], -1))
            yield part
        warn_objects(ids, target)

    check_swc(looked(), target)
    samples = mapped((trees.count,), SAMPLE)
    for part in parts:
        mine = slice(0, own(part))
        columns = {name: values[mine] for name, values in part.attributes.items() if name in KEPT}
        samples[numbers_of(part)[mine]] = samples_of(part.positions[mine], columns)
        forget(samples)
    with writing(target) as place, place.open("w", encoding="utf-8") as file:
        file.write(swc_header(trees.count))
        number = 1
        for rows, parents in trees.in_order():
            file.write(swc_lines(samples[rows], np.arange(number, number + len(rows)), parents))
            number += len(rows)
            forget(samples)


def check_swc(parts: Iterable[Skeleton], target: Path) -> None:
    """Go through skeletons, and warn of attributes that the format has no place for.

    Raises :class:`DataError` for types and radii that are none.
    """
    names: list[str] = list(KEPT)
    for part in parts:
        names = list(part.attributes) if len(part) else names
        check_kept(part.attributes, target)
    warn_left_out(names, target)


class _Trees:
    """Trees as paths: runs of vertices each of which is the parent of the next."""

    def __init__(self) -> None:
        self.count = 0
        """How many vertices there are."""
        self._begins: list[Ints] = []
        self._above: list[Ints] = []

    def look(self, rows: Ints, parents: Ints) -> None:
        """Look at the next vertices: their numbers, which follow those before, and those of their parents."""
        begins = parents != rows - 1
        begins[:1] |= self.count == 0  # the first of all has -1 above it, which is no row
        self._begins.append(rows[begins])
        self._above.append(parents[begins])
        self.count += len(rows)

    def in_order(self) -> Iterator[tuple[Ints, Ints]]:
        """Give the vertices tree by tree, each branch to its end: their numbers, and the lines of their parents.

        Lines are counted from 1 on; -1: there is no parent.
        """
        first = np.concatenate([np.zeros(0, np.int64), *self._begins])
        above = np.concatenate([np.zeros(0, np.int64), *self._above])
        starts = np.union1d(first, above[above >= 0] + 1)  # who has several children ends a path
        starts = starts[starts < self.count]
        over = starts - 1
        over[np.searchsorted(starts, first)] = above
        ends = np.append(starts[1:], self.count)[: len(starts)]
        order = depth_first(np.searchsorted(starts, over, side="right") - 1, np.zeros(len(starts), np.int64))
        lengths = (ends - starts)[order]
        lines = np.empty(len(starts), np.int64)
        lines[order] = np.cumsum(lengths) - lengths + 1
        parent = np.searchsorted(starts, over, side="right") - 1
        parents = np.where(over >= 0, lines[parent] + over - starts[parent], -1)[order]
        cuts = np.cumsum(lengths)
        at = 0
        while at < len(order):
            end = max(at + 1, int(np.searchsorted(cuts, cuts[at] - lengths[at] + _AT_ONCE, side="right")))
            some = order[at:end]
            rows = ranges(starts[some], lengths[at:end])
            before = np.repeat(lines[some] - starts[some], lengths[at:end]) + rows - 1
            before[np.cumsum(lengths[at:end]) - lengths[at:end]] = parents[at:end]
            yield rows, before
            at = end


__all__ = ["SwcParts", "check_swc", "swc_out"]
