"""The tree that ``zardine tree`` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text
from rich.tree import Tree

from zardine.cli.describe import attribute_lines
from zardine.shown_text import printable

_INDENT: Final = 4
_WIDEST: Final = 40


def draw(facts: Mapping[str, Any], title: str, width: int) -> Tree:
    """Return the tree, whose root is called ``title``, for lines of ``width`` characters. Arrays side by side align."""
    root = Tree(_lines({**facts, "name": title}, (0, 0, 0), width), guide_style="dim")
    _add_below(root, facts, width - _INDENT)
    return root


def _add_below(tree: Tree, facts: Mapping[str, Any], width: int) -> None:
    for line in attribute_lines(facts.get("attributes", {})):
        tree.add(Text("@", "dim").append_text(line))
    members = facts.get("children", ())
    arrays = [_words(member)[:3] for member in members if member["kind"] == "array"]
    columns = tuple(min(max(map(cell_len, column)), _WIDEST) for column in zip(*arrays, strict=True))
    for member in members:
        _add_below(tree.add(_lines(member, columns, width)), member, width - _INDENT)


def _lines(facts: Mapping[str, Any], columns: Sequence[int], width: int) -> Text:
    """Return what stands at a node; how chunks lie goes to a second line where the first would be too long."""
    name = printable(facts["name"]) or "/"
    if facts["kind"] == "group":
        return Text.assemble((name, "bold blue"), (f"  {printable(facts['holds'])}" if "holds" in facts else "", "dim"))
    if facts["kind"] == "broken":
        return Text.assemble((name, "bold red"), f"  broken: {_reason(facts['error'])}")
    styles = ("bold", "", "green")
    words = [each + " " * (column - cell_len(each)) for each, column in zip(_words(facts), columns, strict=False)]
    line = Text("  ").join(map(Text, words, styles))
    stored = _words(facts)[3]
    gap = "  " if line.cell_len + 2 + len(stored) <= width else "\n  "
    if gap.startswith("\n"):
        line.rstrip()
    return line.append(gap).append(stored, "dim")


def _words(facts: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return name, data type, shape and chunks of an array."""
    kind = facts["data_type"]
    if not isinstance(kind, str):
        kind = "struct" if facts["dtype"].startswith(("[", "{")) else facts["dtype"]
    if facts["shards"] is not None:
        stored = f"shards {facts['shards']} of {facts['chunks']}"
    else:
        stored = "rectilinear chunks" if facts["chunks"] is None else f"chunks {facts['chunks']}"
    return printable(facts["name"]) or "/", printable(kind), str(facts["shape"]), stored


def _reason(error: str) -> str:
    """Return the first problem of a document, or the whole of another error."""
    first, *problems = map(printable, error.split("\n"))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return problems[0].strip(" -") + more if problems else first
