"""The floors inside ``vectors`` (DESIGN, section 6): a module imports only from its own floor and from those below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import zardine.vectors

SOURCE = Path(zardine.vectors.__file__).parent

FLOORS = (
    ("format",),
    ("content",),
    ("storing",),
    ("reading", "results"),
    ("changing",),
    ("findings", "validation", "sharding", "repairing"),
    ("points", "polylines", "graph", "skeleton", "mesh", "parametric", "pyramid", "inspecting"),
    ("exchange", "types"),
    ("",),
)
"""From the ground up; names are folders, or modules, below ``zardine.vectors``; the last is the package itself."""

PURE = ("format", "content")


def module_of(file: Path) -> str:
    """The name of a file's module below ``zardine.vectors``: ``""`` for the package."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in sorted(SOURCE.rglob("*.py"))}


def floor_of(module: str) -> int:
    return next(number for number, names in enumerate(FLOORS) if module.split(".")[0] in names)


def imports(node: ast.AST) -> Iterator[str]:
    """Full names of what is imported in a file, also in function bodies, but for type checkers only."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test):
            continue
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            assert each.level == 0, "imports are written in full"
            yield from (f"{each.module}.{alias.name}" for alias in each.names)
        yield from imports(each)


def modules_imported(module: str) -> set[str]:
    """The modules of ``zardine.vectors`` that one of them imports."""
    found = set()
    for name in imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if f"{name}.".startswith("zardine.vectors."):
            inner = name.removeprefix("zardine.vectors").removeprefix(".")
            found.add(inner if inner in MODULES else inner.rpartition(".")[0])
    return found


def test_every_module_stands_on_a_floor_and_every_name_is_one() -> None:
    assert {module.split(".")[0] for module in MODULES} == {name for floor in FLOORS for name in floor}


@pytest.mark.parametrize("floor", range(len(FLOORS)), ids=lambda number: FLOORS[number][0] or "package")
def test_modules_look_only_down(floor: int) -> None:
    up = [
        f"{module} imports {other}"
        for module in MODULES
        if floor_of(module) == floor
        for other in modules_imported(module)
        if floor_of(other) > floor
    ]
    assert sorted(up) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {module: modules_imported(module) - {module} for module in MODULES}
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert {module: sorted(others & left.keys()) for module, others in left.items()} == {}


@pytest.mark.parametrize("module", [each for each in MODULES if each.split(".")[0] in PURE])
def test_format_and_content_know_neither_stores_nor_arrays(module: str) -> None:
    doing = ("zardine.stores", "zardine.engine", "zardine.hierarchy", "zardine.nodes", "zardine.api")
    names = list(imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))))
    assert [name for name in names if f"{name}.".startswith(tuple(f"{each}." for each in doing))] == []
    assert {name.split(".")[0] for name in names} & {"os", "io", "pathlib", "threading", "tempfile", "shutil"} == set()
