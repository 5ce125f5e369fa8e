"""The pages in ``docs`` and the README: every example runs, every table is what the code says.

Python blocks of a page run in order, in one namespace and an empty folder. After an expression, ``# → text`` (or
``# words → text``) is what ``repr`` gives.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import zardine
from zardine.codecs.registry import CODECS
from zardine.data_types import registry as data_types
from zardine.settings import DEFAULTS

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/*.md"))
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(source: str, space: dict[str, Any]) -> int:
    """Run a block; gives how many results it stated."""
    lines, stated = source.splitlines(), 0
    for node in ast.parse(source).body:
        assert node.end_lineno is not None
        _, comment, result = lines[node.end_lineno - 1].partition("→ ")
        if comment and isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), "<example>", "eval"), space)
            assert repr(value) == result.strip(), ast.unparse(node)
            stated += 1
        else:
            exec(compile(ast.Module([node], []), "<example>", "exec"), space)
            assert not comment, f"no expression to check: {ast.unparse(node)}"
    return stated


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = _BLOCK.findall(page.read_text())
    assert blocks
    space: dict[str, Any] = {}
    stated = sum(run(block, space) for block in blocks)
    assert stated == sum(block.count("→ ") for block in blocks)
    zardine.config.reset()


def test_the_example_of_the_readme_runs_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        for block in _BLOCK.findall((ROOT / "README.md").read_text()):
            run(block, {})


@pytest.mark.parametrize(
    "page",
    [*PAGES, *ROOT.glob("docs/internals/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    text = (ROOT / "docs" / page).read_text().split(heading, 1)[1]
    table = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_settings() -> None:
    found = {quoted(name)[0]: ast.literal_eval(quoted(default)[0]) for name, default, _ in rows("config.md", "# Conf")}
    assert found == dict(DEFAULTS)


def test_error_tree() -> None:
    """The drawing is that of ``errors.py``, and both show the classes as they are."""
    drawing = re.search(r"```text\n(.*?)```", (ROOT / "docs/errors.md").read_text(), re.DOTALL)
    assert drawing is not None
    in_docstring = re.search(r"::\n\n(.*?)\n\n", zardine.errors.__doc__ or "", re.DOTALL)
    assert in_docstring is not None
    shown: dict[str, tuple[str, set[str]]] = {}
    parents = [""]
    for line in drawing[1].splitlines():
        branch, name, others = re.fullmatch(r"([│├└─ ]*)(\w+)(?: \(([\w, ]+)\))?.*", line).groups()  # type: ignore[union-attr]
        depth = len(branch) // 4
        parents[depth + 1 :] = [name]
        shown[name] = parents[depth], set((others or "").split(", ")) - {""}
    for name, (parent, others) in shown.items():
        bases = {base.__name__ for base in getattr(zardine.errors, name).__bases__}
        assert bases == {parent or "Exception"} | others, name
    classes = {
        name
        for name, value in vars(zardine.errors).items()
        if isinstance(value, type) and issubclass(value, zardine.errors.ZardineError) and value.__name__ == name
    }
    assert set(shown) == classes
    words = [line.strip() for line in in_docstring[1].splitlines()]
    assert [line.strip() for line in drawing[1].splitlines()] == words


def test_codecs() -> None:
    table = rows("arrays.md", "## Codecs")
    names = {quoted(row[0])[0] for row in table}
    built_in = {name for name in CODECS if not name.startswith(("numcodecs.", "zardine.", "https:"))} - {"endian"}
    assert names == built_in | {"numcodecs.*"}
    for name, kind, what, _ in table:
        if quoted(name)[0] in built_in:
            found = CODECS.get(quoted(name)[0])
            assert found is not None
            assert kind == "by name" or found is getattr(zardine.codecs, quoted(kind)[0])
            assert found.kind.replace("->", "→") == what


def test_data_types() -> None:
    named = " ".join(row[0] for row in rows("arrays.md", "## Data types"))
    names = set(quoted(named))
    known = {*data_types.READY, *data_types._CONFIGURED, *data_types._STRUCTS}
    assert known <= names
    for name in names - known:
        if "*" in name:
            assert any(each.startswith(name.rstrip("*")) for each in data_types.ML_NAMES)
        else:
            assert data_types.is_built_in(name), name
    prefixes = tuple(name.rstrip("*") for name in names if "*" in name)
    assert all(name in names or name.startswith(prefixes) for name in data_types.ML_NAMES)


def test_every_page_is_linked() -> None:
    index = (ROOT / "docs/index.md").read_text()
    assert all(f"({page.name})" in index for page in PAGES if page.name != "index.md")
