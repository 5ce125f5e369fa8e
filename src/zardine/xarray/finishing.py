"""What comes after the values: verification, the marks of what was unfinished, consolidated metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zardine.api.consolidate import consolidate_metadata
from zardine.errors import CorruptionError
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.find import find_node
from zardine.hierarchy.unfinished import finish_below, finish_group, mark_group
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.stores.base import Store
from zardine.tools.verify import verify as verify_stored

BY: Final = "zardine.xarray.to_zarr"


@dataclass(frozen=True)
class Ending:
    """How a call of ``to_zarr`` ends. Can be sent to another process."""

    store: Store
    root: str
    """Of the group that gets consolidated metadata."""
    path: str
    version: int
    consolidated: bool | None
    """As the user said."""
    written: tuple[str, ...]
    """Paths of the arrays that are written."""
    identity: str | None
    """Of the mark of a new group."""
    below: Mapping[str, NodeMetadata]
    """Nodes below that are marked, too, by path."""
    documents: bool
    """Whether documents may have changed, which consolidated metadata would tell of."""

    def verify(self) -> None:
        """Read back what was written. Raises :class:`~zardine.errors.CorruptionError` for damage."""
        for path in self.written:
            report = verify_stored(self.store, path=path)
            if not report:
                faults = "; ".join(map(str, report.faults[:3]))
                raise CorruptionError(f"{len(report.faults)} faults in what was just written: {faults}", array=path)

    def finish(self) -> None:
        """Remove the marks, that of the group last, and tell the consolidated metadata."""
        if self.identity is not None:
            finish_below(self.store, self.below, self.identity)
        if self.documents:
            self._consolidate()
        if self.identity is not None:
            finish_group(self.store, self.path, self.identity, self.version)

    def begin_again(self) -> None:
        """Mark the group, and what is marked with it, since values are written now."""
        if self.identity is not None:
            mark_group(self.store, self.path, self.identity, self.version, by=BY, below=self.below)

    def _consolidate(self) -> None:
        """Write documents into that of the root, or what has changed, if they are there already."""
        root = find_node(self.store, self.root)
        if not isinstance(root, GroupMetadata):
            return
        if root.consolidated_metadata is not None and self.identity is None:
            start = len(self.root) + 1 if self.root else 0
            changed = [path[start:] for path in dict.fromkeys((self.path, *self.written)) if path != self.root]
            nodes = Consolidated(self.store, self.root, root.zarr_format, root.consolidated_metadata)
            nodes.keep_true(changed)
        elif self.consolidated is not False:
            consolidate_metadata(self.store, self.root, root.zarr_format)


def begin_computing(ending: Ending) -> None:
    """Mark what is written from now on. A task."""
    ending.begin_again()


def end_computing(_: Any, ending: Ending | None, verify: bool) -> None:
    """Do what comes last, after the values are written. A task."""
    if ending is None:
        return
    if verify:
        ending.verify()
    ending.finish()
