"""What jobs of an import or export have made so far: in a hidden folder of its target, with what it is of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from zardine.codecs.crc32c import crc32c
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.places import Place
from zardine.jobs.records import Records
from zardine.json_document import parse_json
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.vectors.outside import warn


def folder_of(target: Place, kind: str, plan: str) -> str:
    """Return what the keys begin with of what a plan of some kind, ``import`` or ``export``, has made."""
    return join_path(target.path, f"{HIDDEN}/{kind}/{plan}/")


def note(target: Place, kind: str, plan: str, facts: Mapping[str, Any]) -> None:
    """Say beside what a plan makes what it is of: its ``source``, a table, and its ``options``."""
    key = _facts_key(folder_of(target, kind, plan))
    if target.store.get(key) is None:
        target.store.set(key, json.dumps(facts).encode())


def noted(store: Store, folder: str) -> dict[str, Any]:
    """Return what :func:`note` has said in a folder. Raises ``ValueError`` or ``TypeError`` where that is damaged."""
    return dict(parse_json(store.get(_facts_key(folder)) or b""))


def _facts_key(folder: str) -> str:
    return f"{folder}{folder.split('/')[-3]}.json"


def left(target: Place, kind: str) -> list[str]:
    """Return the folders of all plans of some kind that are not finished."""
    return target.store.list_dir(join_path(target.path, f"{HIDDEN}/{kind}/"))[1]


def discard(target: Place, kind: str, name: str, now: Mapping[str, Any] | None = None, own: str = "") -> None:
    """Remove what other imports, or exports, to a place have left there, and warn of it, as one of ``name`` begins.

    ``now`` is what this one is of, and ``own`` the folder of what it makes; without both it keeps none.
    """
    for folder in left(target, kind):
        if folder != own:
            warn(name, f"an unfinished {kind} to {target} is discarded: {_why(target.store, folder, name, now)}")
            Records(target, folder.rstrip("/").rpartition("/")[2]).erase()
            target.store.erase_prefix(folder)


def _why(store: Store, folder: str, name: str, now: Mapping[str, Any] | None) -> str:
    """Why it is not gone on with what another one has left in a folder."""
    try:
        found = noted(store, folder)
        source, options = dict(found["source"]), dict(found["options"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "what it was of is not known any more"
    if source.get("path") != name:
        return f"it was of {source.get('path')}"
    if now is None:
        return "this one is not by jobs"
    if source != now["source"]:
        what = "file" if "modified" in source else "store" if "state" in source else "folder"
        return f"the {what} has changed since"
    differing = [each for each in {**options, **now["options"]} if options.get(each) != now["options"].get(each)]
    if differing:
        return f"it had other options: {', '.join(sorted(differing))}"
    return "it was cut into other parts, or what it was to replace has changed"


def sum_of(pieces: Iterable[bytes]) -> str:
    """Return what a job says of bytes that it has made, one piece after the other: how many, and their checksum."""
    size = checksum = 0
    for data in pieces:
        size, checksum = size + len(data), crc32c(data, checksum)
    return f"{size} {checksum:08x}"


__all__ = ["discard", "folder_of", "left", "note", "noted", "sum_of"]
