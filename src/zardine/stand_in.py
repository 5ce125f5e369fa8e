"""``sys.modules["zarr"] = zardine``: modules of zarr-python that other code imports then are those of zardine.

Without this, ``import zarr.errors`` would load the file of :mod:`zardine.errors` a second time, under another name and
with other classes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_INSIDE = {
    "zarr.core": None,
    "zarr.core.buffer": "zardine.zarr_python.core.buffer",
    "zarr.core.chunk_key_encodings": "zardine.chunk_keys",
    "zarr.core.dtype": "zardine.dtype",
    "zarr.core.sync": "zardine.zarr_python.core.sync",
}
"""What other packages import from the inside of zarr-python, and where it is here; ``None``: nothing but these."""

_PUBLIC = {
    "zarr.core.array": ("Array", "AsyncArray"),
    "zarr.core.config": ("config",),
    "zarr.core.group": ("AsyncGroup", "Group", "GroupMetadata"),
    "zarr.core.metadata": ("ArrayMetadata", "GroupMetadata"),
}
"""Modules inside of zarr-python from which programs, and its user guide, take what is public here under that name."""


class StandIn:
    """Finds ``zarr.<name>`` where :mod:`zardine` stands for ``zarr``, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module of ``zarr``; ``None`` for all others."""
        if not name.startswith("zarr.") or not is_stand_in():
            return None
        if name in _PUBLIC:
            return ModuleSpec(name, _Names(_PUBLIC[name]))  # type: ignore[arg-type]
        own = _INSIDE.get(name, "zardine" + name[4:])
        if own is None:
            return ModuleSpec(name, _Empty(), is_package=True)  # type: ignore[arg-type]
        try:
            module = import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not own.startswith(error.name):
                raise
            raise ModuleNotFoundError(
                f"zardine stands in for zarr and has no module {name!r}, which is "
                + ("internal to zarr-python" if name.startswith("zarr.core") else "part of zarr-python only"),
                name=name,
            ) from None
        return ModuleSpec(name, _Loaded(module))  # type: ignore[arg-type]

    def invalidate_caches(self) -> None:
        """Do nothing: nothing is kept."""


class _Loaded:
    """A loader of a module that is there already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # as it was before it got another name


class _Names:
    """A loader of a module that has some of zardine's public names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        zardine = import_module("zardine")
        vars(module).update({name: getattr(zardine, name) for name in self._names}, __all__=list(self._names))


class _Empty:
    """A loader of a package in which only :class:`StandIn` finds modules."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        pass


def is_stand_in() -> bool:
    """Return whether ``sys.modules["zarr"]`` is zardine."""
    module = sys.modules.get("zarr")
    return module is not None and module is sys.modules.get("zardine")
