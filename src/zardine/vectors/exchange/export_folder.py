"""Folders of files that are parts of one level: ``part-00000.laz``, …, and a document that says that all are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from zardine.errors import DataError
from zardine.hierarchy.find import HIDDEN
from zardine.json_document import parse_json
from zardine.stores.file_calls import replace_file
from zardine.vectors.exchange.unfinished import sum_of

PARTS_DOCUMENT: Final = "_parts.json"
"""Written last: names and sizes of all files."""
_AT_ONCE: Final = 2**20
"""Bytes that are looked at together."""


def part_name(number: int, ending: str) -> str:
    """Return what the file of a part is called."""
    return f"part-{number:05}{ending}"


def sum_of_file(path: Path) -> str:
    """Return size and checksum of a file. Raises ``OSError``."""
    with path.open("rb") as file:
        return sum_of(iter(partial(file.read, _AT_ONCE), b""))


def listed(folder: Path) -> dict[str, int]:
    """Return names and sizes of what is in a folder, but what is hidden there."""
    if not folder.is_dir():
        return {}
    return {each.name: each.stat().st_size for each in sorted(folder.iterdir()) if each.name != HIDDEN}


def digest_of(folder: Path) -> str | None:
    """Return a digest of what is in a folder; ``None`` where nothing is."""
    found = listed(folder)
    if not found:
        return None
    document = folder / PARTS_DOCUMENT
    told = document.read_text() if document.is_file() else ""
    return hashlib.sha256(json.dumps([found, told]).encode()).hexdigest()


def write_document(folder: Path, facts: Mapping[str, Any]) -> None:
    """Say that all files of a folder are there."""
    made = folder / HIDDEN / PARTS_DOCUMENT
    made.write_text(json.dumps(facts, indent=2) + "\n")
    replace_file(made, folder / PARTS_DOCUMENT)


def document_of(folder: Path) -> dict[str, Any] | None:
    """Return what :func:`write_document` wrote; ``None`` where there is no such document.

    Raises :class:`~zardine.errors.DataError` for one that is damaged.
    """
    path = folder / PARTS_DOCUMENT
    if not path.is_file():
        return None
    try:
        found: Any = parse_json(path.read_bytes())
        sizes = found["files"]
        if not all(isinstance(name, str) and type(size) is int for name, size in sizes.items()):
            raise ValueError("its files have no sizes")
        return dict(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} does not say which files belong together ({error}): export them again") from None


def check_complete(folder: Path) -> None:
    """Raise :class:`~zardine.errors.DataError` for a folder to which an export is not finished, or that lacks files."""
    if any((folder / HIDDEN / "export").glob("*")):
        raise DataError(f"{folder} is not complete: an export to it was not finished; go on with that, or cancel it")
    document = document_of(folder)
    for name, size in ({} if document is None else document["files"]).items():
        path = folder / Path(name).name
        there = path.stat().st_size if path.is_file() else None
        if there != size:
            what = "is missing" if there is None else f"has {there} bytes"
            raise DataError(
                f"{path} {what}: {PARTS_DOCUMENT} tells of {size} bytes; export again, or remove "
                f"{PARTS_DOCUMENT} to do with what is there"
            )


__all__ = [
    "PARTS_DOCUMENT",
    "check_complete",
    "digest_of",
    "document_of",
    "listed",
    "part_name",
    "sum_of_file",
    "write_document",
]
