"""What formats have in common with a store: the features of a file, and what becomes of each of them.

Each module of a format has such a table for it. The tables make ``docs/vector-formats.md`` and the cases of its tests,
which fail for a feature that is kept, told of or refused without a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

Verdict: TypeAlias = Literal["kept", "told", "refused", "none"]
"""Kept as it is; kept otherwise or lost, with a warning that names it; an error that names it; no such thing there."""
Fates: TypeAlias = "Mapping[str, Fate]"
"""What becomes of each of :data:`FEATURES`, by its name."""

FEATURES: Final[Mapping[str, str]] = {
    "two_axes": "positions of two coordinates",
    "four_axes": "positions of four coordinates",
    "measures": "measures (M) of positions",
    "axis_names": "names of axes other than x, y, z",
    "units": "units of axes",
    "scales": "scales, offsets and steps of coordinates",
    "precision": "positions in float64",
    "integers": "integers above 2^53",
    "floats": "numbers in float64",
    "booleans": "truth values",
    "text": "text",
    "times": "dates and times",
    "several_values": "several values for each row",
    "missing_integers": "missing integers",
    "missing_booleans": "missing truth values",
    "missing_text": "missing text",
    "vertex_attributes": "attributes of vertices",
    "object_attributes": "attributes of whole objects",
    "link_attributes": "attributes of edges and faces",
    "ids": "ids of objects, nodes or features",
    "groups": "groups of objects",
    "normals": "normals",
    "uv": "texture coordinates",
    "colours": "colours of vertices",
    "crs": "reference system",
    "bounds": "bounds wider than the positions",
    "metadata": "other metadata",
    "comments": "comments and descriptions",
}


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a feature when a file is imported, and when a store is exported."""

    read: Verdict
    written: Verdict
    how: str = ""
    """As what it is kept, or why it is not."""


def fates(**given: str) -> dict[str, Fate]:
    """Return the fates of features, each as ``"kept/told: how"``: of an import, and of an export.

    ``-`` stands for ``none``, and so do features that are left out. Raises ``ValueError`` for anything else.
    """
    found = dict.fromkeys(FEATURES, Fate("none", "none"))
    for name, text in given.items():
        verdicts, _, how = text.partition(":")
        read, written = (each.strip().replace("-", "none") for each in verdicts.split("/"))
        if name not in FEATURES or not {read, written} <= {"kept", "told", "refused", "none"}:
            raise ValueError(f"{name}: {text!r} is no fate of a feature")
        found[name] = Fate(cast(Verdict, read), cast(Verdict, written), how.strip())
    return found


def feature_tables(formats: Mapping[str, Fates]) -> str:
    """Return the tables of formats as Markdown."""
    lines = list[str]()
    names = list(formats)
    for title, part in (("Import", "read"), ("Export", "written")):
        lines += [f"## {title}", "", f"| feature | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        for feature, what in FEATURES.items():
            cells = [getattr(formats[name][feature], part).replace("none", "–") for name in names]
            lines.append(f"| {what} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## As what, and why", ""]
    for feature, what in FEATURES.items():
        by_text: dict[str, list[str]] = {}
        for name in names:
            if formats[name][feature].how:
                by_text.setdefault(formats[name][feature].how, []).append(name)
        told = "; ".join(f"{', '.join(each)}: {how}" for how, each in by_text.items())
        lines += [f"- *{what[0].upper()}{what[1:]}*. {told}."] if told else []
    return "\n".join([*lines, ""])


__all__ = ["FEATURES", "Fate", "Fates", "Verdict", "fates", "feature_tables"]
