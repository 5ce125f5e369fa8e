"""The groups and data sets of an HDF5 file, each reached by hard links only, so that nothing leads out or around."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zardine.metadata.node_names import join_path
from zardine.sources.arrays import explain_name
from zardine.sources.hdf5.attributes import shown
from zardine.sources.hdf5.library import h5py


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A group or data set."""

    path: str
    found: Any
    """``h5py.Group`` or ``h5py.Dataset``."""
    address: int
    """Where its header is in the file, which is what tells objects apart."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The path of the group it is in."""
        return self.path.rpartition("/")[0]


@dataclass(slots=True, eq=False)
class Tree:
    """What was found, in the order of the file."""

    groups: list[Member] = field(default_factory=list)
    datasets: list[Member] = field(default_factory=list)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """Of groups, by their paths."""
    left_out: list[tuple[str, str]] = field(default_factory=list)


def walk(root: Any) -> Tree:
    """Return all groups and data sets of an opened file. A group that has several names counts by the first one."""
    library = h5py()
    tree = Tree()
    first = Member("", root["/"], _address(root.id))
    seen = {first.address: ""}
    waiting = [first]
    while waiting:
        group = waiting.pop(0)
        tree.groups.append(group)
        remarks = tree.remarks.setdefault(group.path, [])
        links = group.found.id.links
        for raw in group.found.id:
            name = shown(raw)
            path = join_path(group.path, name)
            kind = links.get_info(raw).type
            if kind == library.h5l.TYPE_EXTERNAL:
                file, target = map(shown, links.get_val(raw))
                remarks.append(f"its member {name!r} is a link to {target} of the file {file!r}: left out")
                continue
            if kind == library.h5l.TYPE_SOFT:
                remarks.append(f"its member {name!r} is a link to {shown(links.get_val(raw))}: left out")
                continue
            if kind != library.h5l.TYPE_HARD:
                remarks.append(f"its member {name!r} is a link of a kind that HDF5 does not know: left out")
                continue
            reason = explain_name(name) if name.encode() == raw else "its name is not UTF-8"
            if reason is not None:
                tree.left_out.append((path, reason))
                continue
            found = library.h5o.open(group.found.id, raw)
            address = _address(found)
            if isinstance(found, library.h5d.DatasetID):
                tree.datasets.append(Member(path, library.Dataset(found, readonly=True), address))
            elif isinstance(found, library.h5g.GroupID):
                if address in seen:
                    remarks.append(f"its member {name!r} is another name of the group /{seen[address]}: left out")
                    continue
                seen[address] = path
                waiting.append(Member(path, library.Group(found), address))
            else:
                remarks.append(f"its member {name!r} is a type by itself, which Zarr has not: left out")
    return tree


def _address(found: Any) -> int:
    return int(h5py().h5o.get_info(found).addr)


__all__ = ["Member", "Tree", "walk"]
