"""Errors of unknown and unnamed arguments that say which one may be meant."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_OTHERS = {
    **dict.fromkeys(("compression", "compressor", "compression_opts", "zlib", "complevel"), "compressors"),
    **dict.fromkeys(("scheduler", "num_workers"), "compute_kwargs"),
    **dict.fromkeys(("dims", "dim_names", "dimensions", "axes"), "dimension_names"),
    **dict.fromkeys(("zarr_version", "format", "version"), "zarr_format"),
    **dict.fromkeys(("fill", "fillvalue", "_FillValue", "missing_value"), "fill_value"),
    "chunksizes": "chunks",
    "component": "path",
    "mode": "overwrite",
}
"""What arguments are called in other programs, where spelling does not tell."""


def unknown_argument(function: str, name: str, known: Collection[str]) -> TypeError:
    """Return the error for an argument ``name`` that ``function`` does not have."""
    meant = meant_argument(name, known)
    hint = "" if meant is None else f"; did you mean {meant!r}?"
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def meant_argument(name: str, known: Collection[str]) -> str | None:
    """Return which of those that are known may be meant by ``name``; ``None`` if none is like it."""
    meant = _OTHERS.get(name)
    return meant if meant in known else next(iter(get_close_matches(name, known, n=1)), None)


def with_hints(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function``, whose errors of unknown or unnamed arguments say which one may be meant."""
    parameters = signature(function).parameters
    known = frozenset(parameters)
    unnamed = [name for name, each in parameters.items() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > len(unnamed):
            raise _too_many(function.__name__, args, unnamed, known)
        unknown: Any = kwargs.keys() - known
        if unknown:
            raise unknown_argument(function.__name__, min(unknown), known - {"self"})
        return function(*args, **kwargs)

    return call


def _too_many(function: str, args: tuple[object, ...], unnamed: list[str], known: Collection[str]) -> TypeError:
    """Return the error for more arguments without a name than the first ones, ``unnamed``."""
    first = [name for name in unnamed if name != "self"]
    value = args[len(unnamed)]
    if isinstance(value, str):
        meant = "name"
    elif isinstance(value, int) or (isinstance(value, tuple) and all(isinstance(each, int) for each in value)):
        meant = "shape"
    else:
        meant = "data"
    example = f", as in {function}({', '.join(first)}, {meant}=...)" if meant in known and meant not in first else ""
    taken = f"{len(first)} argument{'s' if len(first) > 1 else ''} without a name ({', '.join(first)})"
    given = len(args) - len(unnamed) + len(first)
    return TypeError(f"{function}() takes {taken}, and {given} were given: name the others{example}")


def with_options_of(other: Callable[..., object]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the signature of a function name the options of ``other``, to which it hands on its ``**options``.

    Editors that read types see them in the ``Unpack[...]`` of these, all others, and ``help()``, in the signature.
    """
    options = [each for each in signature(other).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]

    def describe(function: Callable[P, R]) -> Callable[P, R]:
        own = signature(function)
        kept = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        first = [each for each in kept if each.kind is not Parameter.KEYWORD_ONLY]
        handed_on = [each for each in options if each.name not in own.parameters]
        function.__signature__ = own.replace(parameters=[*first, *handed_on, *kept[len(first) :]])  # type: ignore[attr-defined]
        return function

    return describe
