"""A second look at chunks that seem to lie outside of their array: an append stores them before the array has grown."""

from __future__ import annotations

import time
from collections.abc import Sequence

from zardine.engine.layout import prepare_layout
from zardine.errors import MetadataError, NodeNotFoundError, StoreError
from zardine.hierarchy.find import document_key, load_array
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.stores.base import Store, is_soon_unlocked
from zardine.tools.checking.scan import Scan, chunk_places
from zardine.tools.report import Fault

_PAUSES = (0.0, 0.05, 0.2, 0.75, 1.5)
"""Seconds before each further look, where appends that are under way cannot be waited for."""


def drop_passing(store: Store, scanned: Scan) -> None:
    """Take those faults ``outside`` away that are none any more: the array has grown, or the object is gone."""
    places = {each.place for each in scanned.faults if each.kind == "outside"}
    for place in sorted(places):
        mine = [each for each in scanned.faults if each.kind == "outside" and each.place == place]
        others = [each for each in scanned.faults if each not in mine]
        scanned.faults = others + _still_outside(store, place[1:], mine, scanned.nodes.get(place[1:], ()))


def _still_outside(store: Store, path: str, faults: list[Fault], nodes: Sequence[NodeMetadata]) -> list[Fault]:
    arrays = [node for node in nodes if isinstance(node, ArrayMetadata)]
    if arrays and store.lock_is_exclusive and is_soon_unlocked(store, document_key(path, arrays[0])):
        return _look(store, path, faults, arrays)  # an append that was under way is over
    for pause in _PAUSES:
        time.sleep(pause)
        faults = _look(store, path, faults, arrays)
        if not faults:
            break
    return faults


def _look(store: Store, path: str, faults: list[Fault], arrays: list[ArrayMetadata]) -> list[Fault]:
    """Return those of ``faults`` that the documents, read anew, leave."""
    layouts = []
    try:
        for each in arrays:
            layouts.append(prepare_layout(load_array(store, path, each.zarr_format, unfinished=True), ""))
        start = len(path) + 1 if path else 0
        return [
            fault
            for fault in faults
            if fault.key is not None
            and not any(inside for layout in layouts for _, inside in chunk_places(layout, fault.key[start:]))
            and store.exists(fault.key)
        ]
    except (StoreError, MetadataError, NodeNotFoundError):
        return faults


__all__ = ["drop_passing"]
