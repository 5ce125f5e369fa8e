"""Consoles of rich, set so that nothing that is stored is ever taken for markup.

Colours and line breaks are for terminals: elsewhere there are neither, unless the environment asks for them
(``FORCE_COLOR``, ``COLUMNS``). With ``NO_COLOR`` nothing but text is printed: no colours, no bold letters, no bar.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Any, Final

from rich.console import Console

_UNLIMITED: Final = 100_000


def without_escapes() -> bool:
    """Whether the user wants no terminal codes at all (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise


def make_console(*, stderr: bool = False) -> Console:
    """Return a console on the present stdout or stderr that prints text as it is."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper) and not stderr:
        stream.reconfigure(errors="backslashreplace")  # names in characters that the terminal does not have
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _UNLIMITED
    plain: dict[str, Any] = {"color_system": None, "force_terminal": False} if without_escapes() else {}
    return _Console(file=stream, width=width, markup=False, emoji=False, highlight=False, **plain)
