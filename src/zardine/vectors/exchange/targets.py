"""Files that are written: beside the old ones, whose place they take when they are complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from zardine.errors import DataError, NodeExistsError, StoreError, ZardineError
from zardine.hierarchy.find import HIDDEN, describe
from zardine.hierarchy.place import find_place, overlap
from zardine.stores.base import Store
from zardine.stores.file_calls import replace_file
from zardine.stores.local.store import LocalStore
from zardine.stores.resolve import StoreLike
from zardine.vectors.outside import needing

_WITH_SHAPEFILES = (".shx", ".dbf", ".prj", ".cpg", ".qix", ".sbn", ".sbx", ".qmd")
"""Endings of files that belong to a Shapefile, or would be taken for such."""


def files_of_target(target: Path) -> list[Path]:
    """Return a file and those that belong to it."""
    others = _WITH_SHAPEFILES if target.suffix.lower() == ".shp" else ()
    return [target, *(target.with_suffix(ending) for ending in others)]


def check_files(files: Sequence[Path], overwrite: bool) -> None:
    """Raise where a file is there that is not to be replaced, and where a directory is."""
    for each in files:
        if each.is_dir():
            raise NodeExistsError(f"{each} is a directory, not a file")
        if each.exists() and not overwrite:
            raise NodeExistsError(f"{each} exists already: overwrite=True replaces it")


def check_folder(folder: Path, ending: str, overwrite: bool, besides: Collection[str] = ()) -> None:
    """Raise where a file is there, or a folder that is not to be replaced, or with other files than end so.

    ``besides``: names of what may be there, too.
    """
    if folder.exists() and not folder.is_dir():
        raise NodeExistsError(f"{folder} is a file, not a directory")
    there = sorted(folder.iterdir()) if folder.exists() else []
    if any(each.name != HIDDEN for each in there) and not overwrite:
        raise NodeExistsError(f"{folder} is not empty: overwrite=True replaces what is in it")
    others = [
        each.name
        for each in there
        if each.name not in besides and (each.suffix.lower() != ending or not each.is_file())
    ]
    if others:
        raise NodeExistsError(f"{folder} is not replaced: it holds {others[0]!r}, which is no {ending} file")


def check_apart(store: tuple[Store, str], other: StoreLike, told: str) -> None:
    """Raise :class:`NodeExistsError` where a file, folder or node is the vectors store, or one is inside of the other.

    ``told`` says what to do instead.
    """
    if isinstance(other, str | os.PathLike) and "://" not in str(other):
        place = Path(os.path.abspath(other))
        found: tuple[Store, str] = LocalStore(place.parent), place.name
    else:
        found = find_place(other)
    if overlap(*store, *found):
        raise NodeExistsError(f"{describe(*store)} and {other} are one place, or one is inside of the other: {told}")


@contextmanager
def writing(target: Path) -> Iterator[Path]:
    """Give where ``target`` is to be written: a file in a hidden folder beside it, which takes its place in the end.

    After an error in the block all is as before; who is killed leaves the hidden folder. What a library says of a file
    that it cannot write becomes a :class:`~zardine.errors.DataError`, what the system says of it (that the disk is
    full) a :class:`~zardine.errors.StoreError`.
    """
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    if place.exists() and not place.is_file():  # a device, or a folder, which the library refuses
        with needing(target):
            yield place
        return
    folder = Path(mkdtemp(prefix=".zardine-", dir=place.parent))
    made = folder / "new" / target.name
    try:
        made.parent.mkdir(exist_ok=True)
        with needing(target):
            try:
                yield made
            except (ZardineError, ImportError, MemoryError):
                raise
            except OSError as error:
                if error.filename is not None and not str(error.filename).startswith(str(folder)):
                    raise
                failure = StoreError(f"{target} cannot be written: {error.strerror or error}")
                failure.errno, failure.filename = error.errno, str(target)
                raise failure from error
            except Exception as error:
                told = str(error).replace(str(made), str(target))
                raise DataError(f"{target} cannot be written: {told}") from error
        _move(made, place, folder / "old")
    finally:
        rmtree(folder, ignore_errors=True)


def _move(made: Path, place: Path, aside: Path) -> None:
    """Put what was made in its place, ``made`` itself last, and old files ``aside``. After an error these are back."""
    new = {each: place.with_name(place.stem + each.suffix) for each in made.parent.iterdir() if each != made}
    old = [each for each in files_of_target(place)[1:] if each.exists()]
    aside.mkdir(exist_ok=True)
    moved: list[Path] = []
    try:
        for each in old:
            replace_file(each, aside / each.name)
        for each, goal in new.items():
            replace_file(each, goal)
            moved.append(goal)
        replace_file(made, place)
    except BaseException:
        _back(moved, old, aside)
        raise


def _back(moved: Sequence[Path], old: Sequence[Path], aside: Path) -> None:
    for each in moved:
        each.unlink(missing_ok=True)
    for each in old:
        if (aside / each.name).exists():
            replace_file(aside / each.name, each)


__all__ = ["check_apart", "check_files", "check_folder", "files_of_target", "writing"]
