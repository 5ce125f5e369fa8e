"""Making codec objects of numcodecs from documents, and never one that can run a program hidden in stored bytes.

A document is written by others, and names codecs as it likes. Unpickling runs whatever the bytes say, so a codec that
unpickles is made only where the setting ``array.allow_unsafe_pickle_decode`` says so. Which codecs these are is told by
what they are (the class behind a name, its bases, the functions that it calls), not by their names alone, and it is
looked for at any depth of a configuration, since there are codecs that hold others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from zardine.errors import UnsupportedError
from zardine.json_document import JSON
from zardine.settings import is_on

MAY_UNPICKLE: Final = "array.allow_unsafe_pickle_decode"

_RUNNERS: Final = frozenset(
    ("pickle", "_pickle", "pickletools", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve", "torch")
)
"""Packages whose readers run what they read."""

_RUNNING_NAMES: Final = _RUNNERS | {"allow_pickle", "eval", "exec", "__import__", "import_module"}
"""Names in a function that make it one that may run what it is given."""

_PREFIXES: Final = ("numcodecs.", "zarrs.")


class UnsafeCodecError(UnsupportedError):
    """A document names a codec that can run programs hidden in data, which was not allowed."""


def build_codec(configuration: Mapping[str, JSON]) -> Any:
    """Return the codec object of numcodecs for a configuration with its ``id``.

    Raises :class:`UnsafeCodecError` for one that can run programs, unless a setting allows it, and whatever numcodecs
    raises.
    """
    import numcodecs

    check_safe(configuration)
    codec = numcodecs.get_codec(dict(configuration))
    if not is_on(MAY_UNPICKLE):
        unsafe = _unsafe_part(codec)
        if unsafe is not None:
            raise _refusal(str(getattr(unsafe, "codec_id", type(unsafe).__name__)))
    return codec


def may_be_kept(codec: Any, configuration: Mapping[str, JSON]) -> bool:
    """Return whether what :func:`build_codec` gave would be given whatever the setting says.

    Other codecs are made for each use: what is kept would be used when the setting says something else.
    """
    return not is_on(MAY_UNPICKLE) or (unsafe_codec(configuration) is None and _unsafe_part(codec) is None)


def check_safe(configuration: Mapping[str, JSON]) -> None:
    """Raise :class:`UnsafeCodecError` for a configuration that :func:`build_codec` refuses; nothing is made."""
    if not is_on(MAY_UNPICKLE):
        unsafe = unsafe_codec(configuration)
        if unsafe is not None:
            raise _refusal(unsafe)


class RefusedCodec:
    """Stands for a codec that was not made: it says what the document says, and does nothing.

    ``why`` is the error that says why; none for a codec that can run programs.
    """

    def __init__(self, configuration: Mapping[str, JSON], why: UnsupportedError | None = None) -> None:
        self.codec_id = str(configuration.get("id"))
        self._configuration = dict(configuration)
        self._why = _refusal(self.codec_id) if why is None else why

    def get_config(self) -> dict[str, JSON]:
        """Return what the document says."""
        return dict(self._configuration)

    def encode(self, buf: Any) -> Any:
        """Raise :class:`~zardine.errors.UnsupportedError`."""
        raise self._why.with_traceback(None)  # else it would hold all that was given before

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Raise :class:`~zardine.errors.UnsupportedError`."""
        raise self._why.with_traceback(None)  # else it would hold all that was given before

    def __repr__(self) -> str:
        return f"RefusedCodec({self._configuration!r})"


def shown_codec(configuration: Mapping[str, JSON]) -> Any:
    """Return the codec object as :func:`build_codec` does; for one that is not allowed, what stands for it.

    So it is for one of which numcodecs wants to be told more than the document does, and more than reading takes: the
    ``dtype`` of a filter is that of the array.
    """
    try:
        return build_codec(configuration)
    except UnsafeCodecError as error:
        return RefusedCodec(configuration, error)
    except Exception as error:  # code of another package, or of numcodecs: options that are missing or that it has not
        name = str(configuration.get("id"))
        return RefusedCodec(configuration, UnsupportedError(f"numcodecs makes no codec {name!r} of this: {error}"))


def unsafe_codec(configuration: JSON) -> str | None:
    """Return the name of the first codec in a configuration, however deep, that can run programs.

    ``None``: there is none.
    """
    waiting: list[tuple[JSON, bool]] = [(configuration, False)]
    while waiting:
        value, is_foreign = waiting.pop()
        if isinstance(value, Mapping):
            names = [each for member in ("id", "name", "codec_id") if isinstance(each := value.get(member), str)]
            unsafe = next(filter(_runs_code, names), None)
            if unsafe is not None:
                return unsafe
            if any("pickle" in str(name).lower() and setting for name, setting in value.items()):
                return names[0] if names else "pickle"
            foreign = is_foreign or any(map(_is_foreign, names))
            waiting += [(each, foreign) for each in value.values()]
        elif isinstance(value, (list, tuple)):
            waiting += [(each, is_foreign) for each in value]
        elif is_foreign and isinstance(value, str) and _runs_code(value):
            return value  # a codec of another package may take the name of the codec that it holds
    return None


def _refusal(name: str) -> UnsafeCodecError:
    return UnsafeCodecError(
        f"the codec {name!r} reads pickles, and reading one can run any program hidden in it; if you trust the data: "
        f"zardine.config.set({{{MAY_UNPICKLE!r}: True}})"
    )


def _plain(name: str) -> str:
    return next((name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix)), name)


def _class_of(name: str) -> Any:
    """Return the class that numcodecs makes for a name; ``None`` where it has none."""
    from numcodecs import registry

    found: Any = registry.codec_registry.get(name)
    entry: Any = registry.entries.get(name)
    if found is None and entry is not None:
        try:
            found = entry.load()
        except Exception:  # code of another package: whatever fails in it, there is no such codec
            return None
    return found


def _runs_code(name: str) -> bool:
    plain = _plain(name)
    if "pickle" in plain.lower():
        return True
    found = _class_of(plain)
    return isinstance(found, type) and _class_runs_code(found)


def _is_foreign(name: str) -> bool:
    found = _class_of(_plain(name))
    return isinstance(found, type) and not found.__module__.startswith("numcodecs.")


@lru_cache(maxsize=256)
def _class_runs_code(kind: type) -> bool:
    """Return whether a class, or one that it is made from, reads pickles or runs text, as far as can be seen."""
    for base in kind.__mro__:
        if base.__module__ == "numcodecs.pickles":
            return True
        if base.__module__ == "builtins" or base.__module__.startswith("numcodecs."):
            continue  # none but the one above does
        if _runs(base, vars(sys.modules.get(base.__module__, sys)), set()):
            return True
    return False


def _runs(value: Any, names: Mapping[str, Any], seen: set[int]) -> bool:
    """Return whether a function or class, or what it calls of its own module, does."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, type):
        members = [getattr(each, "__func__", getattr(each, "fget", each)) for each in vars(value).values()]
        return any(_runs(each, names, seen) for each in members if isinstance(each, FunctionType))
    if not isinstance(value, FunctionType):
        return False
    for code in _codes(value.__code__):
        used = {*code.co_names, *(name for each in code.co_consts if isinstance(each, tuple) for name in each)}
        if used & _RUNNING_NAMES:
            return True
        for name in code.co_names:
            found = names.get(name)
            module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None)
            if isinstance(module, str) and module.partition(".")[0] in _RUNNERS:
                return True
            if getattr(found, "__module__", None) == value.__module__ and _runs(found, names, seen):
                return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _unsafe_part(codec: Any) -> Any:
    return next((part for part in _parts(codec) if _class_runs_code(part.__class__)), None)


def _parts(codec: Any) -> Iterator[Any]:
    """Yield a codec object and those that it holds."""
    from numcodecs.abc import Codec

    waiting, seen = [codec], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Codec):
            yield value
            waiting += list(getattr(value, "__dict__", {}).values())
        elif isinstance(value, Mapping):
            waiting += list(value.values())
        elif isinstance(value, (list, tuple)):
            waiting += list(value)


__all__ = [
    *("MAY_UNPICKLE", "RefusedCodec", "UnsafeCodecError"),
    *("build_codec", "check_safe", "may_be_kept", "shown_codec", "unsafe_codec"),
]
