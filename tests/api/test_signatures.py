"""The public names and signatures are those of ``signatures.txt``, so that they change on purpose only.

After a wanted change: ``python tests/api/test_signatures.py`` writes the file anew; look at what changed in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import EnumType
from importlib import import_module
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

import zardine
from zardine.nodes import options

_TABLE = Path(__file__).with_name("signatures.txt")
_MODULES = ("zardine", "zardine.sources", "zardine.storage", "zardine.codecs", "zardine.registry", "zardine.vectors")
_DEPRECATED = {("Array", "create"), ("Group", "array")}  # gone in zarr-python 3.4, as the argument zarr_version is
_OPERATORS = frozenset(f"__{name}__" for name in ("array", "call", "contains", "getitem", "iter", "len", "setitem"))


def public_interface() -> Iterator[str]:
    for module_name in _MODULES:
        module = import_module(module_name)
        yield f"# {module_name}"
        for name in sorted(module.__all__, key=str.lower):
            yield from _lines(name, getattr(module, name))
        yield ""
    yield "# zardine.config"
    yield from _members(type(zardine.config))
    yield ""
    yield "# attributes of arrays and groups"
    yield from _members(type(zardine.zeros(1).attrs))


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        yield f"class {name}{_signature(value)}"
        if value.__module__.startswith("zardine") and value.__module__ != "zardine.codecs":
            yield from _members(value)
    elif isinstance(value, ModuleType):
        yield f"module {name}"
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"value {name}"


def _members(kind: type) -> Iterator[str]:
    for name in sorted(dir(kind)):
        if name.startswith("_") and name not in _OPERATORS:
            continue
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property):
            yield f"    .{name}{' (may be set)' if value.fset else ''}"
        elif isinstance(value, (classmethod, staticmethod)) or callable(value):
            yield f"    {name}{_signature(getattr(kind, name))}"


def _signature(value: Any) -> str:
    if isinstance(value, (GenericAlias, EnumType)):
        return ""  # which differs between versions of Python
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown, keyword_only = [], False
    for each in parameters:
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            shown.append("*")
        keyword_only |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_default(each.default)}"
        shown.append(f"{stars}{each.name}{default}")
    return f"({', '.join(shown)})"


def _default(value: Any) -> str:
    shown = repr(value)
    return "<default>" if shown.startswith("<") else shown


def test_public_interface() -> None:
    assert list(public_interface()) == _TABLE.read_text().splitlines()


def test_options_that_are_handed_on_are_those_of_the_function_that_gets_them() -> None:
    def names(function: Any) -> set[str]:
        return set(inspect.signature(function).parameters)

    assert names(zardine.create_array) - {"store", "name"} == options.ArrayOptions.__optional_keys__
    for kind, function in (
        (options.GroupArrayOptions, zardine.Group.create_array),
        (options.RequiredOptions, zardine.create_array),
        (options.FilledOptions, zardine.create),
        (options.LikeInGroupOptions, zardine.create_array),
        (options.CopyOptions, zardine.from_array),
        (options.CreateAnywhereOptions, zardine.create),
        (options.ArrayOfDataOptions, zardine.create),
        (options.OpenArrayOptions, zardine.create),
        (options.GroupOptions, zardine.create_group),
        (options.OpenGroupOptions, zardine.open_group),
    ):
        assert kind.__optional_keys__ <= names(function), kind
    assert names(zardine.Group.create_array) - {"self", "name"} == options.GroupArrayOptions.__optional_keys__


def test_parameters_say_what_they_take() -> None:
    """None is a bare ``Any``, which tells neither people nor editors anything; ``object`` takes whatever there is."""
    untold = []
    for name in zardine.__all__:
        thing = getattr(zardine, name)
        members = vars(thing).items() if isinstance(thing, type) else [("", thing)]
        for member, value in members:
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function) and (not member.startswith("_") or member in _OPERATORS):
                for parameter, annotation in function.__annotations__.items():
                    if parameter != "return" and annotation in ("Any", "Any | None"):
                        untold.append(f"{name}.{member}: {parameter}")
    assert untold == []


def test_every_public_name_of_zarr_python_is_here() -> None:
    import zarr

    assert set(zarr.__all__) <= set(zardine.__all__)


def test_parameters_of_zarr_python() -> None:
    """Functions and methods take the parameters of their namesakes, of the same kind and order."""
    import zarr

    pairs = {name: (getattr(zarr, name), getattr(zardine, name)) for name in zarr.__all__}
    functions = {name: pair for name, pair in pairs.items() if inspect.isfunction(pair[0])}
    for kind in ("Array", "Group"):
        theirs, ours = pairs[kind]
        for name, value in inspect.getmembers(theirs):
            if not name.startswith("_") and (kind, name) not in _DEPRECATED:
                assert hasattr(ours, name), f"{kind}.{name}"
                if callable(value):
                    functions[f"{kind}.{name}"] = value, getattr(ours, name)
    for name, (theirs, ours) in functions.items():
        wanted = [each for each in inspect.signature(theirs).parameters.values() if each.name != "zarr_version"]
        found = inspect.signature(ours).parameters
        named = [each for each in wanted if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        for each in named:
            assert each.name in found, f"{name} lacks {each.name}"
            if each.kind is each.POSITIONAL_OR_KEYWORD:
                assert list(found).index(each.name) == wanted.index(each), f"{name}: {each.name} is elsewhere"
            assert found[each.name].kind is each.kind, f"{name}: {each.name} is of another kind"


if __name__ == "__main__":
    _TABLE.write_text("\n".join(public_interface()) + "\n")
