"""Files that an export makes: none is replaced unasked, and after an error all are as they were."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from zardine.errors import NodeExistsError

_WITH_SHAPEFILES = (".shx", ".dbf", ".prj", ".cpg", ".qix", ".sbn", ".sbx", ".qmd")
"""Endings of files that belong to a Shapefile, or would be taken for such."""


def files_of(target: Path) -> list[Path]:
    """Return the file and those that belong to it."""
    others = _WITH_SHAPEFILES if target.suffix.lower() == ".shp" else ()
    return [target, *(target.with_suffix(ending) for ending in others)]


def check_files(files: Sequence[Path], overwrite: bool) -> None:
    """Raise where a file is there that is not to be replaced, and where a directory is."""
    for each in files:
        if each.is_dir():
            raise NodeExistsError(f"{each} is a directory, not a file")
        if each.exists() and not overwrite:
            raise NodeExistsError(f"{each} exists already: overwrite=True replaces it")


@contextmanager
def replacing(files: Sequence[Path]) -> Iterator[None]:
    """Put files aside for the block: libraries add to some, and may fail half-way. After an error they are back."""
    places = [Path(os.path.realpath(each)) for each in files]
    aside = {each: Path(mkdtemp(prefix=".zardine-", dir=each.parent), each.name) for each in places if each.exists()}
    try:
        for each, kept in aside.items():
            os.replace(each, kept)
        yield
    except BaseException:
        for each in places:
            if each not in aside or aside[each].exists():  # else it is the old one still
                with suppress(OSError):
                    each.unlink()
        for each, kept in aside.items():
            if kept.exists():
                os.replace(kept, each)
            kept.parent.rmdir()
        raise
    for kept in aside.values():
        rmtree(kept.parent)
