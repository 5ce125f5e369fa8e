"""``docs/internals/stored.md`` lists every name that zardine stores besides the standard, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import zardine

SOURCE = Path(zardine.__file__).parent
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/internals/stored.md"

NOT_STORED = {
    *("zardine-close", "zardine-follow", "zardine-store"),  # threads
    *("zardine-*", "zardine-*-*", "zardine-write-"),  # a topic and tasks of Dask
    *("zardine-meter", "/nodes.json", "/view/nodes.json"),  # of the server
    "zardine_",  # what all members begin with
    *("zarr.json", "header.json"),  # of the standard, and of TRX
    *(".json", ".tmp", "[0-9a-f]{16}\\.part"),  # endings
}
"""Texts of the source that look like such names."""

_OURS = re.compile(r"(?:\*/?)*[._]*zardine[-_/]|__zardine$|\S*\.(?:json|part|tmp|lock|npz|between)$")
_DEEP = 20


def stored_names(text: dict[str, str]) -> set[str]:
    """Texts in modules of Python, by their dotted names, that look like names of what is stored; ``*`` for any text."""
    modules = {name: ast.parse(each) for name, each in text.items()}
    known = {name: dict(_constants(name, tree)) for name, tree in modules.items()}
    for name, tree in modules.items():
        for each in ast.walk(tree):
            if isinstance(each, ast.ImportFrom) and each.module in known:
                for alias in each.names:
                    if alias.name in known[each.module]:
                        known[name].setdefault(alias.asname or alias.name, known[each.module][alias.name])

    def shown(node: ast.AST, module: str, depth: int = _DEEP) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if isinstance(node, ast.JoinedStr):
            return "".join(shown(each, module, depth) for each in node.values)
        if isinstance(node, ast.FormattedValue):
            return shown(node.value, module, depth)
        if isinstance(node, ast.Name) and node.id in known[module] and depth:
            above, value = known[module][node.id]
            return shown(value, above, depth - 1)
        return "*"

    found = set()
    for name, tree in modules.items():
        nodes = list(ast.walk(tree))
        parts = {id(part) for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values}
        texts = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}  # docstrings
        for each in nodes:
            if isinstance(each, ast.JoinedStr | ast.Constant) and id(each) not in parts | texts:
                form = re.sub(r"\*+", "*", shown(each, name).strip('"'))
                if " " not in form and _OURS.match(form) and not form.endswith("/zarr.json"):
                    found.add(re.sub(r"^\*/|^\*(?=\w)", "", form))
    return found - NOT_STORED


def _constants(module: str, tree: ast.Module) -> Iterator[tuple[str, tuple[str, ast.AST]]]:
    for each in tree.body:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        value = getattr(each, "value", None)
        if isinstance(targets[0], ast.Name) and value is not None:
            yield targets[0].id, (module, value)


def listed_names(page: str) -> set[str]:
    """The names in the first column of the tables of the page, with ``*`` for what varies."""
    cells = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(set(cells)) == len(cells)
    return {re.sub(r"<[^>]*>", "*", cell) for cell in cells}


def differences(found: set[str], listed: set[str]) -> tuple[set[str], set[str]]:
    """Names that are not listed, and names that are not found; the beginning of a listed one is no name by itself."""
    listed = {each.rstrip("/") for each in listed}
    whole = {each.rstrip("/") for each in found}
    begins = {each for each in found if each[-1] in "-._/" or each == "__zardine"}
    missing = {
        each
        for each in found
        if each.rstrip("/") not in listed
        and not (each in begins and any(name.startswith(each.rstrip("/")) for name in listed))
    }
    return missing, {each for each in listed - whole if each.rstrip("*") not in begins}


def modules() -> dict[str, str]:
    return {
        ".".join(("zardine", *path.relative_to(SOURCE).with_suffix("").parts)): path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts
    }


def test_every_name_that_is_stored_is_listed() -> None:
    missing, left = differences(stored_names(modules()), listed_names(PAGE.read_text(encoding="utf-8")))
    assert not missing, f"{sorted(missing)}: say in {PAGE.name} who stores this, or in NOT_STORED that nobody does"
    assert not left, f"{PAGE.name} lists {sorted(left)}, which no module names"


def test_a_new_name_is_noticed() -> None:
    listed = listed_names(PAGE.read_text(encoding="utf-8"))
    for line, name in (
        ('NEW = "zardine_new"', "zardine_new"),
        ('from zardine.hierarchy.find import HIDDEN\nkey = f"{HIDDEN}/new/{plan}/"', "__zardine/new/*/"),
        ('from zardine.stores.local.beside import START\nname = f"{START}new-{number}"', ".zardine-new-*"),
        ('key = f"{prefix}state.json"', "state.json"),
        ('path = f"{path}.{number}.part"', "*.*.part"),
        ('HEAD = b"zardine_head"', "zardine_head"),
    ):
        found = stored_names({**modules(), "zardine.new": line})
        assert name in found
        assert (name in differences(found, listed)[0]) == (name != "*.*.part")
    assert differences(stored_names(modules()) - {"zardine_log"}, listed) == (set(), {"zardine_log"})


def test_the_kernel_names_nothing_by_itself() -> None:
    """It is told names of files, and knows no documents."""
    for path in (ROOT / "rust/src").rglob("*.rs"):
        assert not re.search(r'"[._]*(?:zardine_|\.zardine|__zardine)', path.read_text(encoding="utf-8")), path
