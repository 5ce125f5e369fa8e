"""How many points writers are killed at: ``PYTHONPATH=tests python -m crash.counts`` writes the table in the docs."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from crash.driver import Plan, calls_made
from crash.killing import points_of
from crash.scenarios import STRATEGIES, combinations

DOCS = Path(__file__).parents[2] / "docs/editing.md"
BEGIN, END = "<!-- points: written by tests/crash/counts.py -->", "<!-- end of points -->"
ROWS = {
    "changes chunks of a shard": ("update",),
    "makes shards, and replaces them": ("new",),
    "makes large shards while it encodes them": ("in parts",),
    "makes chunks shorter and longer": ("other lengths",),
    "empties chunks and shards": ("empty",),
    "stores what waited in a buffer": ("buffered",),
    "appends": ("append",),
    "grows and shrinks the array": ("resize",),
    "writes chunks that are not in shards": ("chunks",),
    "sets attributes": ("attributes", "attributes of Zarr v2"),
}
"""What the writer does, in the words of the docs, and the scenarios that this is."""


def counted(names: Iterable[str] = ROWS) -> dict[str, list[int]]:
    """For each of these rows the number of points with each strategy; what has no shards is written in one way."""
    table = {}
    for row in names:
        counts: Counter[str] = Counter()
        for name in ROWS[row]:
            for strategy, location, durable in combinations(name):
                with tempfile.TemporaryDirectory(prefix="z") as folder:
                    counts[strategy] += len(points_of(calls_made(Plan(folder, name, strategy, location, durable))))
        table[row] = [counts[strategy] for strategy in STRATEGIES if counts[strategy]]
    return table


def table(names: Iterable[str] = ROWS) -> str:
    """The rows, and their sum."""
    rows = counted(names)
    lines = ["| a writer that … | `rewrite` | `append` | `in_place` |", "|---|--:|--:|--:|"]
    for row, counts in rows.items():
        lines.append(f"| {row} | {' | '.join([*map(str, counts), *['–'] * (3 - len(counts))])} |")
    return "\n".join([*lines, f"| **all** | {sum(map(sum, rows.values())):,} | | |"])


def main() -> None:
    before, rest = DOCS.read_text().split(BEGIN)
    _, after = rest.split(END)
    DOCS.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main()
