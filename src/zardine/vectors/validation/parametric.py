"""Checking parametric objects."""

from __future__ import annotations

from zardine.errors import UnsupportedError
from zardine.hierarchy.find import find_node
from zardine.nodes.array import Array
from zardine.vectors.findings import Finding, warning
from zardine.vectors.reading.loading_parametric import load_parametric, parametric_table
from zardine.vectors.storing.cell_bytes import find_cells
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import PENDING, VectorStore


def check_parametric(owner: VectorStore, findings: list[Finding]) -> None:
    """What ``validate`` says of parametric objects. Raises for what cannot be read."""
    place = child(owner.path, "parametric")
    group = find_node(owner.store, place, 3)
    found = load_parametric(owner, place, group)
    for name in ("objects", "names") if found else ():
        assert group is not None
        table = parametric_table(owner, place, name, group.attributes.get(PENDING) or {})
        if table is not None and not _is_stored(table):
            reason = "nothing is stored: all are zeros or without names, or they are lost"
            findings.append(warning("values-absent", f"parametric/{name}", reason))


def _is_stored(table: Array) -> bool:
    try:
        return len(find_cells(table)) > 0
    except UnsupportedError:  # the store cannot tell
        return True
