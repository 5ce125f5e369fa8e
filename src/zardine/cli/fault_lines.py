"""Faults and notes, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from zardine.cli.console import make_console
from zardine.cli.output import clean

if TYPE_CHECKING:
    from zardine.tools.report import Fault


def print_faults(faults: Iterable[Fault], notes: Iterable[Fault] = (), label: str = "note") -> None:
    """Print them on stdout, the faults first."""
    console = make_console()
    for word, style, found in (("fault", "bold red", faults), (label, "yellow", notes)):
        for each in found:
            console.print(word, style=style, end=" ")
            console.print(clean(str(each)), soft_wrap=True)
