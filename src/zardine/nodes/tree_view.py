"""``group.tree()``: a hierarchy as a drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from zardine.nodes.array import Array

if TYPE_CHECKING:
    from zardine.nodes.group import Group


@dataclass(frozen=True, slots=True)
class TreeView:
    """Shows as text in a terminal and in a notebook; ``level`` limits the depth, ``max_nodes`` the number of lines."""

    group: Group
    level: int | None = None
    max_nodes: int = 500
    text: str | None = None
    """The drawing, where it was made already."""

    def drawn(self) -> TreeView:
        """Return a drawing that looks at the store no more."""
        return replace(self, text=repr(self))

    def __repr__(self) -> str:
        if self.text is not None:
            return self.text
        lines = [self.group.name]
        self._draw(self.group, "", 1, lines)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.3">{escape(repr(self))}</pre>'

    def _draw(self, group: Group, indent: str, depth: int, lines: list[str]) -> None:
        if self.level is not None and depth > self.level:
            return
        members = list(group.items())
        for number, (name, node) in enumerate(members):
            if len(lines) > self.max_nodes:
                lines.append(f"{indent}... (more than {self.max_nodes} nodes)")
                return
            last = number == len(members) - 1
            lines.append(f"{indent}{'└── ' if last else '├── '}{name}{_facts(node)}")
            if not isinstance(node, Array):
                self._draw(node, indent + ("    " if last else "│   "), depth + 1, lines)


def _facts(node: Array | Group) -> str:
    if not isinstance(node, Array):
        return ""
    return f" {node.shape} {node.dtype if node.dtype.names is None else 'struct'}"


def tree(grp: Group, expand: bool | None = None, level: int | None = None) -> TreeView:
    """The hierarchy below a group as a drawing; ``level`` limits its depth."""
    if not hasattr(grp, "tree"):
        raise TypeError(f"tree takes a group, not {type(grp).__name__}: open it first, with open_group")
    return grp.tree(expand, level)
