"""Times and tables of all reports, as Markdown. Needs nothing but the standard library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median


def shown(seconds: float) -> str:
    """Three digits and the unit: microseconds, milliseconds or seconds."""
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{digits(seconds / size)} {unit}"
    return f"{digits(seconds)} s"


def digits(value: float) -> str:
    """Three digits, or all of a larger number."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def spread(values: Sequence[float], show: Callable[[float], str] = shown) -> str:
    """The median, and behind it least and most where there are several values; their unit once if it is the same."""
    middle, *ends = (show(value) for value in (median(values), min(values), max(values)))
    if len(values) < 2:
        return middle
    _, _, unit = middle.partition(" ")
    if unit and all(end.endswith(f" {unit}") for end in ends):
        ends = [end.removesuffix(f" {unit}") for end in ends]
    return f"{middle} ({' – '.join(ends)})"


def megabytes(nbytes: float | None) -> str:
    """A number of bytes in millions, or a dash."""
    return "–" if nbytes is None else f"{nbytes / 1e6:.0f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; all columns but the first to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


__all__ = ["digits", "megabytes", "shown", "spread", "table"]
