"""The table in the docs says how many points there are."""

from __future__ import annotations

import re

from crash.counts import BEGIN, DOCS, END, ROWS, table
from crash.scenarios import SCENARIOS
from effort import SOAK, some


def numbers(rows: str) -> dict[str, list[int]]:
    """The cells of each row that are numbers."""
    cells = [line.strip("|").split("|") for line in rows.strip().splitlines()[2:]]
    return {name.strip(): [int(n) for n in re.findall(r"\d+", " ".join(row).replace(",", ""))] for name, *row in cells}


def test_the_table_in_the_docs() -> None:
    """Give or take a tenth, so that not every change of a call is one of the docs."""
    assert sorted(name for names in ROWS.values() for name in names) == sorted(SCENARIOS)
    said = numbers(DOCS.read_text().split(BEGIN)[1].split(END)[0])
    counted = numbers(table(some(ROWS, 4)))
    for row, counts in counted.items() if SOAK else list(counted.items())[:-1]:
        there = said.get(row, [])
        close = all(abs(a - b) <= max(2, b / 10) for a, b in zip(there, counts, strict=False))
        assert len(there) == len(counts), f"{row}: {there} in the docs, {counts} now"
        assert close, f"{row}: {there} in the docs, {counts} now: PYTHONPATH=tests python -m crash.counts"
