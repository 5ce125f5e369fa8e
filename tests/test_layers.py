"""The floors of the house, enforced: what a module may import, in function bodies too, and what only some may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import zardine

SOURCE = Path(zardine.__file__).parent

FLOORS = (
    ("__main__", "cli"),
    ("server",),
    ("xarray", "zarr_python"),
    ("dask",),
    ("vectors",),
    ("tools",),
    ("sources",),
    ("jobs",),
    ("__init__", "abc", "api", "dtype", "experimental", "registry", "storage", "testing"),
    ("nodes",),
    ("creation",),
    ("hierarchy",),
    ("engine",),
    ("codecs", "sharding"),
    ("chunk_grids", "chunk_keys", "data_types", "indexing", "metadata"),
    ("stores",),
    (
        *(
            "buffers",
            "cache",
            "contexts",
            "errors",
            "frozen",
            "json_document",
            "kernel",
            "limits",
            "registry_table",
            "settings",
        ),
        *("public_names", "shown_text", "stand_in", "user_warnings"),
    ),
)
"""From the top to the bottom; names on one line are one floor, which imports from floors below and from itself."""

PURE = ("codecs", "sharding", "chunk_grids", "chunk_keys", "data_types", "indexing", "metadata", "creation")
"""Folders without I/O and threads, which import no stores."""

VECTORS = (
    ("vectors",),
    ("vectors.handle",),
    ("vectors.writing", "vectors.members", "vectors.writing_cells"),
    ("vectors.exchange", "vectors.types"),
    ("vectors.selecting",),
    (
        *("vectors.points", "vectors.polylines", "vectors.graph", "vectors.skeleton", "vectors.mesh"),
        *("vectors.parametric", "vectors.pyramid", "vectors.inspecting"),
    ),
    ("vectors.findings", "vectors.validation", "vectors.sharding", "vectors.repairing"),
    ("vectors.changing",),
    ("vectors.reading", "vectors.results"),
    ("vectors.outside", "vectors.swc"),
    ("vectors.storing",),
    ("vectors.content",),
    ("vectors.format",),
)
"""The floors within vectors."""

IMPURE_MODULES = {
    *("asyncio", "concurrent", "fcntl", "glob", "io", "mmap", "multiprocessing", "os", "pathlib", "selectors"),
    *("shutil", "socket", "subprocess", "tempfile", "threading", "urllib", "http"),
}

HARMLESS = {("codecs/zstd.py", "threading.local")}
"""A compressor for each thread."""

FILES = {
    ".".join(("zardine", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
"""Every file by the name of its module."""


@cache
def imports(module: str) -> frozenset[str]:
    """Full names of what a module imports, also within functions, but for type checking only."""
    file = FILES[module]
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    found = set()

    def look(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    look(other)
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                above = package[: len(package) - child.level + 1] if child.level else []
                base = ".".join([*above, *([child.module] if child.module else [])])
                found.update(f"{base}.{alias.name}" for alias in child.names)
            look(child)

    look(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def files_imported_by(module: str) -> frozenset[str]:
    """The modules of zardine whose files a module runs when it, or a function of it, runs its imports."""
    found = set()
    for name in imports(module):
        while name.startswith("zardine") and name not in FILES:
            name = name.rpartition(".")[0]
        if name.startswith("zardine") and name not in ("zardine", module):
            found.add(name)
    return frozenset(found)


def floor_of(module: str, floors: tuple[tuple[str, ...], ...]) -> int:
    """The number of the floor of ``zardine.<name>``, counted from the top."""
    parts = module.removeprefix("zardine").strip(".").split(".") if module != "zardine" else ["__init__"]
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for number, names in enumerate(floors):
            if name in names:
                return number
    raise AssertionError(f"{module} is on no floor")


def upward(floors: tuple[tuple[str, ...], ...], below: str) -> list[str]:
    """Imports, among the modules whose names begin with ``below``, from a floor above."""
    return [
        f"{module} imports {name}"
        for module in FILES
        if module.startswith(below)
        for name in sorted(files_imported_by(module))
        if name.startswith(below) and floor_of(name, floors) < floor_of(module, floors)
    ]


def test_every_file_is_on_a_floor_and_every_floor_is_there() -> None:
    there = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES.values()}
    named = {name for names in FLOORS for name in names}
    assert there == named
    assert len(FILES) > 100


def test_a_floor_imports_only_from_floors_below() -> None:
    assert upward(FLOORS, "zardine") == []


def test_a_floor_of_vectors_imports_only_from_floors_below() -> None:
    named = {name for names in VECTORS for name in names}
    assert {name for name in named if f"zardine.{name}" not in FILES} == set()
    assert upward(VECTORS, "zardine.vectors") == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert list(circles({module: files_imported_by(module) for module in FILES})) == []


def circles(graph: dict[str, frozenset[str]]) -> Iterator[list[str]]:
    """Groups of modules each of which can be reached from every other (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for other in graph[module]:
            if other not in number:
                yield from visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                yield sorted(group)

    for module in graph:
        if module not in number:
            yield from visit(module)


def test_circles_are_found() -> None:
    graph = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("bd"), "d": frozenset()}
    assert list(circles(graph)) == [["b", "c"]]
    assert list(circles({"a": frozenset("b"), "b": frozenset()})) == []


@pytest.mark.parametrize("floor", ["format", "content"])
def test_the_lower_floors_of_vectors_know_neither_stores_nor_arrays(floor: str) -> None:
    doing = ("zardine.stores", "zardine.engine", "zardine.hierarchy", "zardine.nodes", "zardine.api")
    wrong = [
        f"{module} imports {name}"
        for module in FILES
        if module.startswith(f"zardine.vectors.{floor}")
        for name in imports(module)
        if name.startswith(doing) or name.split(".")[0] in IMPURE_MODULES
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", PURE)
def test_pure_folders_do_no_io_have_no_threads_and_know_no_stores(folder: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, file in FILES.items()
        if file.relative_to(SOURCE).parts[0] == folder
        for name in imports(module)
        if (name.split(".")[0] in IMPURE_MODULES and (file.relative_to(SOURCE).as_posix(), name) not in HARMLESS)
        or name.startswith("zardine.stores")
    ]
    assert wrong == []


def test_stores_know_nothing_of_arrays() -> None:
    known = {
        f"zardine.{name}"
        for name in (
            *("buffers", "cache", "contexts", "errors", "kernel", "limits", "public_names", "settings"),
            *("shown_text", "stores"),
        )
    }
    wrong = [
        f"{module} imports {name}"
        for module in FILES
        if module.startswith("zardine.stores")
        for name in files_imported_by(module)
        if ".".join(name.split(".")[:2]) not in known
    ]
    assert wrong == []


def test_only_the_command_line_knows_click_and_rich() -> None:
    for module in FILES:
        if not module.startswith("zardine.cli"):
            assert not {name.split(".")[0] for name in imports(module)} & {"click", "rich"}, module


def test_geometry_has_integers_only() -> None:
    """It never sees data types or documents."""
    for module in FILES:
        if module.startswith(("zardine.chunk_grids", "zardine.chunk_keys", "zardine.indexing")):
            for name in imports(module):
                assert not name.startswith(("zardine.data_types", "zardine.metadata")), f"{module} imports {name}"


def test_no_module_is_called_by_what_it_is_not() -> None:
    assert not any(file.stem in ("utils", "util", "helpers", "common", "misc") for file in FILES.values())


def test_every_module_says_what_it_is() -> None:
    for file in FILES.values():
        text = file.read_text(encoding="utf-8")
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), f"{file.relative_to(SOURCE)} has no docstring"
