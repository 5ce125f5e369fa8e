"""Warnings that show the user's own line."""

from __future__ import annotations

import sys
import warnings

from zardine.shown_text import shown


def warn_user(text: str, category: type[Warning], *, through: tuple[str, ...] = ("zardine",)) -> None:
    """Warn at the line outside of this package that called into it; ``through`` are the packages passed over."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in through:
        level, frame = level + 1, frame.f_back
    warnings.warn(shown(text), category, stacklevel=level)


__all__ = ["warn_user"]
