"""zardine: every Zarr, sharded. Arrays of many small chunks in few objects, read and edited safely.

``import zardine as zarr`` runs code written for zarr-python 3.

Names are loaded when they are first used, so that importing the package costs next to nothing. No module of the package
is called like a public function or class: importing the module would put it in the place of the name.
"""

import sys
from typing import TYPE_CHECKING

from zardine.stand_in import StandIn, is_stand_in

if TYPE_CHECKING:
    from zardine import abc, api, codecs, dtype, errors, registry, storage, vectors
    from zardine.api.consolidate import consolidate_metadata
    from zardine.api.copy import copy, copy_all, copy_store
    from zardine.api.create import array, create, empty, full, ones, zeros
    from zardine.api.debug_info import print_debug_info
    from zardine.api.open import group, open, open_array, open_consolidated, open_group, open_like
    from zardine.api.save_load import load, save, save_array, save_group
    from zardine.engine.array_config import ArrayConfig
    from zardine.metadata import ArrayMetadata, GroupMetadata
    from zardine.nodes.array import Array
    from zardine.nodes.asynchronous import AsyncArray, AsyncGroup
    from zardine.nodes.create_array import create_array, from_array
    from zardine.nodes.create_like import empty_like, full_like, ones_like, zeros_like
    from zardine.nodes.display import tree
    from zardine.nodes.group import Group, create_group, create_hierarchy
    from zardine.settings import config
    from zardine.tools.advise import advise
    from zardine.tools.compact import compact
    from zardine.tools.convert import convert
    from zardine.tools.repair import repair
    from zardine.tools.reshard import reshard
    from zardine.tools.verify import verify

    __kernel__: str | None
    __version__: str

_VERSION = "0.1.0"
_STANDS_IN_FOR = "3.4.2"
"""The version of zarr-python whose names are here: what ``__version__`` begins with where zardine is ``zarr``."""

_HOMES = {
    "nodes.array": ("Array",),
    "nodes.asynchronous": ("AsyncArray", "AsyncGroup"),
    "api.consolidate": ("consolidate_metadata",),
    "api.copy": ("copy", "copy_all", "copy_store"),
    "api.create": ("array", "create", "empty", "full", "ones", "zeros"),
    "nodes.create_array": ("create_array", "from_array"),
    "nodes.create_like": ("empty_like", "full_like", "ones_like", "zeros_like"),
    "api.debug_info": ("print_debug_info",),
    "engine.array_config": ("ArrayConfig",),
    "nodes.group": ("Group", "create_group", "create_hierarchy"),
    "kernel": ("__kernel__",),
    "metadata": ("ArrayMetadata", "GroupMetadata"),
    "api.open": ("group", "open_like", "open", "open_array", "open_consolidated", "open_group"),
    "api.save_load": ("load", "save", "save_array", "save_group"),
    "settings": ("config",),
    "tools.convert": ("convert",),
    "tools.verify": ("verify",),
    "tools.repair": ("repair",),
    "tools.compact": ("compact",),
    "tools.reshard": ("reshard",),
    "tools.advise": ("advise",),
    "nodes.display": ("tree",),
}
"""Which module has which public names."""

_MODULES = ("abc", "api", "codecs", "dtype", "errors", "registry", "storage", "vectors")

_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Array",
    "ArrayConfig",
    "ArrayMetadata",
    "AsyncArray",
    "AsyncGroup",
    "Group",
    "GroupMetadata",
    "__kernel__",
    "__version__",
    "abc",
    "advise",
    "api",
    "array",
    "codecs",
    "compact",
    "config",
    "consolidate_metadata",
    "convert",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "dtype",
    "empty",
    "empty_like",
    "errors",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "print_debug_info",
    "registry",
    "repair",
    "reshard",
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "vectors",
    "verify",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        return f"{_STANDS_IN_FOR}+zardine.{_VERSION}" if is_stand_in() else _VERSION
    if name in _MODULES:
        return import_module(f"zardine.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'zardine' has no attribute {name!r}")
    found = getattr(import_module(f"zardine.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not any(isinstance(finder, StandIn) for finder in sys.meta_path):
    sys.meta_path.insert(0, StandIn())
