"""Printing: text by rich for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from zardine.cli.wording import in_the_shell
from zardine.shown_text import counted, printable, shown, without_secrets

if TYPE_CHECKING:
    from rich.text import Text

    from zardine.tools.report import Fault

Row: TypeAlias = "tuple[str, str | Text | Sequence[str | Text]]"
"""A label and its value; several values stand one below the other."""

_LINE: Final = 100
_WORDS: Final = {"error": "fault", "warning": "note", "action": "action"}


def print_facts(rows: Iterable[Row]) -> None:
    """Print labels and values in two columns; long values go on below their beginning."""
    from rich.text import Text

    from zardine.cli.console import make_console

    rows = list(rows)
    console = make_console()
    margin = max(len(label) for label, _ in rows) + 2
    for label, value in rows:
        start = Text.assemble((label.ljust(margin), "cyan"))
        for part in [value] if isinstance(value, (str, Text)) else value:
            text = Text(part) if isinstance(part, str) else part
            for line in text.wrap(console, max(console.width - margin, 20), overflow="fold"):
                whole = start.append_text(line)
                whole.rstrip()
                console.print(whole, soft_wrap=True)
                start = Text(" " * margin)


def print_faults(*found: Iterable[Fault], words: Mapping[str, str] = _WORDS) -> None:
    """Print faults, notes and actions in this order, a line each; ``words`` says what each severity is called."""
    from zardine.cli.console import make_console

    console = make_console()
    for each in chain(*found):
        console.print(words[each.severity], style="bold red" if each.severity == "error" else "yellow", end=" ")
        console.print(printable(without_secrets(in_the_shell(str(each)))), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout; see :func:`jsonable`."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    print(_laid_out(jsonable(value), "", ascii_only=encoding != "utf8"))


def _laid_out(value: Any, indent: str, *, ascii_only: bool) -> str:
    """Return JSON in lines; within the document, what is short takes one line."""
    text = _json(value, ascii_only=ascii_only)
    if not value or not isinstance(value, (dict, list)) or (indent and len(indent) + len(text) <= _LINE):
        return text
    deeper = indent + "  "
    if isinstance(value, list):
        items = [deeper + _laid_out(each, deeper, ascii_only=ascii_only) for each in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    pairs = [
        f"{deeper}{_json(name, ascii_only=ascii_only)}: {_laid_out(each, deeper, ascii_only=ascii_only)}"
        for name, each in value.items()
    ]
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"


def _json(value: Any, *, ascii_only: bool) -> str:
    """Return JSON on one line, in which characters that do not print are escaped, as JSON has it."""
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def jsonable(value: Any) -> Any:
    """Return ``value`` with a JSON form for all in it.

    NaN and infinities become the strings that Zarr has for them; NumPy scalars and arrays numbers and lists; sequences
    lists; complex numbers pairs; everything else its text.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")  # names of files may have lone surrogates
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, complex):
        return [jsonable(value.real), jsonable(value.imag)]
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(each) for each in value]
    if hasattr(value, "tolist") and getattr(value.dtype, "kind", "M") not in "mM":  # times are numbers without units
        plain = value.tolist()
        return str(value) if type(plain) is type(value) else jsonable(plain)
    return str(value)


def json_text(value: Any) -> str:
    """Return a value on one line, as JSON that people read: not escaped, but for what does not print."""
    return printable(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False))


def say(text: object = "", *, flush: bool = False) -> None:
    """Print lines of text on stdout, as they may be shown."""
    print(shown(str(text)), flush=flush)


def cut(text: str, length: int) -> str:
    """Return ``text``, ending in ``…`` where it is longer than ``length``."""
    return text if len(text) <= length else text[: length - 1] + "…"


__all__ = ["Row", "counted", "cut", "json_text", "jsonable", "print_facts", "print_faults", "print_json", "say"]
