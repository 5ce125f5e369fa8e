"""Public names: a module exports what others define. Each is loaded when it is first used, and says whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")


def public(module: str) -> Callable[[T], T]:
    """Let a class or function say that it is of ``module``, which exports it.

    It is shown, documented and pickled by that name. For classes whose objects come to users by other ways than the
    name; what is only reached by its name says so as soon as :class:`Exports` gives it out.
    """

    def mark(thing: T) -> T:
        thing.__module__ = module
        if module in _APART:
            import_module(module)
        return thing

    return mark


_APART = ("zardine.storage",)
"""Modules that are nothing but such a table, and no package of what they export, so that they may not be imported when
that is. They are then: cloudpickle, which Dask uses, sends a class whose module is not imported as a whole, and where
it arrives there may be one of that name already."""


class Exports:
    """The names that ``module`` exports, by the modules below ``package`` that define them.

    A module takes ``load`` for its ``__getattr__``, ``names`` for its ``__all__`` and ``listed`` for its ``__dir__``.
    ``others`` are names that it has by itself, ``modules`` public ones below it, which are imported when asked for.
    """

    def __init__(
        self,
        module: str,
        homes: Mapping[str, Iterable[str]],
        others: Iterable[str] = (),
        package: str | None = None,
        modules: Iterable[str] = (),
    ) -> None:
        self.module = module
        self.modules = frozenset(modules)
        self.package = module if package is None else package
        self.homes = {name: home for home, names in homes.items() for name in names}
        self.names = sorted({*self.homes, *others})

    def listed(self) -> list[str]:
        """Return all names, sorted: what ``dir()`` shows."""
        return list(self.names)

    def load(self, name: str) -> Any:
        """Return the object called ``name``, from where it is defined. Raises ``AttributeError`` for other names."""
        home = self.homes.get(name)
        if name in self.modules:
            return import_module(f"{self.package}.{name}")
        if home is None:
            raise AttributeError(f"module {self.module!r} has no attribute {name!r}")
        found = getattr(import_module(f"{self.package}.{home}"), name)
        if isinstance(found, FunctionType):
            found.__module__ = self.module
        vars(import_module(self.module))[name] = found
        return found
