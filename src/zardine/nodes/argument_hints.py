"""Errors of unknown arguments that say which one may be meant."""

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
    """Return ``function``, whose errors of unknown arguments say which one may be meant."""
    known = frozenset(signature(function).parameters)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        unknown: Any = kwargs.keys() - known
        if unknown:
            raise unknown_argument(function.__name__, min(unknown), known - {"self"})
        return function(*args, **kwargs)

    return call


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
