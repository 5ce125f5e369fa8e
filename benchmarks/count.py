"""Count the code by folder, and what a reader of it has to hold in mind: ``make count``. Prints; asserts nothing.

A line of code is one with more on it than a comment or a docstring. Tests are left out, those within Rust files too.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = ROOT / "src/zardine"
RUST: Final = ROOT / "rust/src"
STORED: Final = ROOT / "docs/internals/stored.md"

_NO_CODE: Final = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_RUST_TEXT: Final = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<kept>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])')""", re.DOTALL)


def python_lines(text: str) -> int:
    """Count the lines of a Python module that are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):  # docstrings, those of attributes too
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def rust_lines(text: str) -> int:
    """Count the lines of a Rust file that are code, up to its tests, which come last."""
    code = _RUST_TEXT.sub(lambda found: found["kept"] or "\n" * found[0].count("\n"), text)
    return sum(1 for line in code.partition("#[cfg(test)]\nmod tests")[0].splitlines() if line.strip())


def lines_by_folder(root: Path, ending: str, count: Callable[[str], int]) -> Counter[str]:
    """Count the lines of all files below ``root`` by its folders; ``.`` for the files directly in it."""
    found: Counter[str] = Counter()
    for path in sorted(root.rglob(f"*{ending}")):
        within = path.relative_to(root).parts
        found[within[0] if len(within) > 1 else "."] += count(path.read_text(encoding="utf-8"))
    return found


def methods(path: Path, name: str) -> list[str]:
    """Return the public methods and properties that a class has in its own module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def main() -> None:
    for root, ending, count in ((PYTHON, ".py", python_lines), (RUST, ".rs", rust_lines)):
        found = lines_by_folder(root, ending, count)
        print(f"\n{root.relative_to(ROOT)}: lines of code")
        for folder, lines in found.most_common():
            print(f"{lines:8,}  {folder}")
        print(f"{found.total():8,}  together")
    members = re.findall(r"^\| `(zardine_\w+)` \|", STORED.read_text(encoding="utf-8"), re.MULTILINE)
    entries = re.findall(r"module\.add_(?:class|function)", (RUST / "python/mod.rs").read_text(encoding="utf-8"))
    print()
    print(f"{len(members):8,}  members zardine_* that are stored")
    print(f"{len(entries):8,}  entries of the kernel: classes and functions")
    print(f"{len(methods(PYTHON / 'stores/base.py', 'Store')):8,}  methods and properties of Store")


if __name__ == "__main__":
    main()
