"""Errors of unknown and unnamed arguments, and of unknown attributes, that say what may be meant."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from numpy import ndarray

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
    takes_others = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
    unnamed = [name for name, each in parameters.items() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > len(unnamed):
            raise _too_many(function.__name__, args, unnamed, known)
        unknown: Any = kwargs.keys() - known
        if unknown and not takes_others:
            raise unknown_argument(function.__name__, min(unknown), known - {"self"})
        return function(*args, **kwargs)

    return call


def _too_many(function: str, args: tuple[object, ...], unnamed: list[str], known: Collection[str]) -> TypeError:
    """Return the error for more arguments without a name than the first ones, ``unnamed``."""
    first = [name for name in unnamed if name != "self"]
    value = args[len(unnamed)]
    if isinstance(value, str):
        is_mode = "mode" in known and value.strip("b+") in _MODES
        meant = "mode" if is_mode else "name" if "name" in known else "path"
    elif isinstance(value, int) or (isinstance(value, tuple) and all(isinstance(each, int) for each in value)):
        meant = "shape"
    else:
        meant = "data"
    example = f", as in {function}({', '.join(first)}, {meant}=...)" if meant in known and meant not in first else ""
    taken = f"{len(first)} argument{'s' if len(first) > 1 else ''} without a name ({', '.join(first)})"
    given = len(args) - len(unnamed) + len(first)
    return TypeError(f"{function}() takes {taken}, and {given} were given: name the others{example}")


_MODES = ("r", "rw", "a", "w", "w-", "x")

_READ = "array[...] reads all of its elements"
_COMPUTE = "array[...] is a NumPy array, which has it, and zardine.dask.from_zarr(array) computes in parts"
_OF_ARRAYS = {
    **dict.fromkeys(("values", "data", "compute", "load", "persist", "to_numpy", "tolist", "item", "copy"), _READ),
    **dict.fromkeys(("sel", "isel", "loc", "coords"), "array[...] selects by position, and xarray by coordinates"),
    **dict.fromkeys(
        ("chunk", "chunksize", "to_dask"), "chunks are array.chunks, and of Dask zardine.dask.from_zarr(array)"
    ),
    **dict.fromkeys(("dims", "sizes"), "array.dimension_names and array.shape say this"),
    "attributes": "array.attrs holds them",
    "close": "an array needs no closing",
    "rechunk": "zardine.rechunk(array, place, chunks=...) stores it in other chunks",
}
_OF_GROUPS = {
    **dict.fromkeys(("data_vars", "variables"), "group.members() lists them"),
    **dict.fromkeys(("sel", "isel", "dims", "coords", "load", "compute"), "zardine.xarray.open(place) has it"),
    "attributes": "group.attrs holds them",
    "close": "a group needs no closing; group.store.close() closes its store",
}
"""For attributes that arrays and groups have in other programs: what zardine has instead."""


def no_attribute(owner: object, name: str, *, is_array: bool) -> AttributeError:
    """Return the error for an attribute that an array or group does not have."""
    hint = (_OF_ARRAYS if is_array else _OF_GROUPS).get(name)
    if hint is None and is_array and not name.startswith("_") and hasattr(ndarray, name):
        hint = _COMPUTE
    if hint is None and not is_array and not name.startswith("_"):
        hint = f"members are items, as in group[{name!r}]"
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(text if hint is None else f"{text}: {hint}", name=name, obj=owner)


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
