"""The layers of the design, enforced: what a module may import, and what only some may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import zardine

SOURCE = Path(zardine.__file__).parent

LAYERS = {
    "base": ("errors", "buffers", "settings", "limits", "cache", "public_names"),
    "format": ("json_document", "registry_table", "data_types", "metadata"),
    "geometry": ("chunk_grids", "chunk_keys", "indexing"),
    "bytes": ("codecs", "sharding", "kernel", "_kernel"),
    "stores": ("stores",),
    "engine": ("engine",),
    "command line": ("cli", "__main__"),
}
"""Layers by the modules and packages in them; all others are the user layer, which may import anything."""

MAY_IMPORT = {
    "base": ("base",),
    "format": ("base", "format"),
    "geometry": ("base", "format", "geometry"),
    "bytes": ("base", "format", "bytes"),
    "stores": ("base", "stores"),
    "engine": ("base", "format", "geometry", "bytes", "stores", "engine"),
    "user": ("base", "format", "geometry", "bytes", "stores", "engine", "user"),
    "command line": ("base", "format", "geometry", "bytes", "stores", "engine", "user", "command line"),
}

PURE = ("format", "geometry", "bytes")
"""Layers of pure functions: no I/O, no threads."""

IMPURE_MODULES = {
    *(
        "asyncio",
        "concurrent",
        "fcntl",
        "glob",
        "io",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "selectors",
        "shutil",
    ),
    *("socket", "subprocess", "tempfile", "threading", "urllib", "http"),
}

HARMLESS = {("codecs/zstd.py", "threading.local"), ("kernel.py", "os")}
"""A compressor for each thread, and an environment variable that switches the kernel off."""

FILES = sorted(SOURCE.rglob("*.py"))


def layer_of(module: str) -> str:
    """The layer of ``zardine.<module>``."""
    first = module.split(".")[0]
    return next((layer for layer, names in LAYERS.items() if first in names), "user")


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[str]:
    """Full names of everything that a file imports, also within functions and for type checking."""
    package = ["zardine", *file.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_the_layers_name_what_is_there() -> None:
    there = {file.stem if file.name != "__init__.py" else file.parent.name for file in FILES}
    named = {name for names in LAYERS.values() for name in names}
    assert named - there <= {"_kernel"}
    assert len(FILES) > 100


@pytest.mark.parametrize("layer", [*LAYERS, "user"])
def test_modules_import_only_from_their_own_layer_and_lower_ones(layer: str) -> None:
    wrong = [
        f"{file.relative_to(SOURCE)} imports {name}"
        for file in FILES
        if layer_of(module_name(file)) == layer
        for name in imports(file)
        if name.split(".")[0] == "zardine"
        and name != "zardine._kernel"
        and layer_of(name.removeprefix("zardine.")) not in MAY_IMPORT[layer]
    ]
    assert wrong == []


def test_stores_know_errors_buffers_and_the_cache_only() -> None:
    known = {
        "zardine.errors",
        "zardine.buffers",
        "zardine.limits",
        "zardine.cache",
        "zardine.public_names",
        "zardine.stores",
    }
    for file in (SOURCE / "stores").rglob("*.py"):
        for name in imports(file):
            if name.startswith("zardine."):
                assert ".".join(name.split(".")[:2]) in known, f"{file.name} imports {name}"


def test_format_geometry_and_bytes_do_no_io_and_have_no_threads() -> None:
    wrong = [
        f"{file.relative_to(SOURCE)} imports {name}"
        for file in FILES
        if layer_of(module_name(file)) in PURE
        for name in imports(file)
        if name.split(".")[0] in IMPURE_MODULES and (file.relative_to(SOURCE).as_posix(), name) not in HARMLESS
    ]
    assert wrong == []


def test_only_the_command_line_knows_click_and_rich() -> None:
    for file in FILES:
        if layer_of(module_name(file)) != "command line":
            for name in imports(file):
                assert name.split(".")[0] not in ("click", "rich"), f"{file.name} imports {name}"


def test_geometry_has_integers_only() -> None:
    """It never sees data types, codecs or stores, except to name extensions."""
    for file in FILES:
        if layer_of(module_name(file)) == "geometry":
            for name in imports(file):
                assert not name.startswith(("zardine.data_types", "zardine.metadata")), f"{file.name} imports {name}"


def test_no_module_is_called_by_what_it_is_not() -> None:
    assert not any(file.stem in ("utils", "util", "helpers", "common", "misc") for file in FILES)


def test_every_module_says_what_it_is() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), f"{file.relative_to(SOURCE)} has no docstring"
