"""SWC: skeletons of neurons, files and folders of them, into stores and out of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import ABOVE
from zardine.vectors.content.run_content import depth_first, inverse
from zardine.vectors.exchange.file_lists import FileList, together
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.losses import bounds_of_nothing, check_space, check_store, warn_names, warn_objects
from zardine.vectors.exchange.targets import writing
from zardine.vectors.skeleton import read_skeleton, write_spooled_trees
from zardine.vectors.swc import read_swc, write_swc

_LINE: Final = 24
"""Bytes of a line of a file, at least, about."""
_OF_A_LINE: Final = 600
"""Bytes that it takes to read one, at most."""
_FIXED: Final = 16 * 2**20


class SwcParts:
    """A SWC file, or a folder of them, as :class:`~zardine.vectors.exchange.file_parts.FileParts`: whole files.

    Types and radii become attributes of vertices. Each file of a folder is an object with the attribute ``name``, and
    the id that it is called by where all are called by numbers.
    """

    outline: None = None

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        self._ordered = not {"object_ids", "vertex_attributes"} & set(options)  # else these are as vertices in the file
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
        pieces = [_tree(file, ordered=self._ordered) for file in files]
        for piece, file in zip(pieces, files, strict=True):
            if self._list.names is not None and not len(piece.positions):
                raise DataError(f"{file} holds no samples, and an object has some: leave it out")
        return together(pieces, files)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all trees."""
        given = {} if self._list.names is None else {"object_attributes": {"name": list(self._list.names)}}
        self._list.warn_of_others(self._source)
        lengths, ids = whole.of_lines[LENGTHS], self._list.ids
        if not whole.count:
            options, lengths, ids = {**options, **bounds_of_nothing(self._source, options)}, lengths[:0], ids[:0]
        write_spooled_trees(path, whole, lengths, ids, {**given, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


def _tree(file: Path, *, ordered: bool) -> Piece:
    """What is in a file; ``ordered``: in an order in which parents come before children, and branches are whole."""
    positions, parents, attributes = read_swc(file)
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


def swc_out(path: StoreLike, target: Path, level: int) -> None:
    """Of attributes the format keeps ``type`` and ``radius``."""
    check_store(path, target, level, ("skeleton",), ("vertex_attributes",))
    found = read_skeleton(path, level=level)
    check_space(found.positions, target)
    warn_objects(found.object_ids, target)
    for name, kinds in (("type", "iub"), ("radius", "iuf")):
        values = found.attributes.get(name)
        if values is not None and (values.ndim != 1 or values.dtype.kind not in kinds):
            told = "whole numbers" if name == "type" else "numbers"
            raise DataError(f"{target}: the attribute {name!r} is a column of {told} in this format")
    others = [name for name in found.attributes if name not in ("type", "radius")]
    warn_names(others, target, "the format holds 'type' and 'radius'")
    with writing(target) as place:
        write_swc(place, found.positions, found.parents, found.attributes)


__all__ = ["SwcParts", "swc_out"]
