"""zardine: every Zarr, sharded. Arrays of many small chunks in few objects, read and edited safely.

``import zardine as zarr`` runs code written for zarr-python 3.

Names are loaded when they are first used, so that importing the package costs next to nothing. No module of the package
is called like a public function or class: importing the module would put it in the place of the name.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from zardine.public_names import Exports
from zardine.stand_in import StandIn, is_stand_in

if TYPE_CHECKING:
    from zardine import abc as abc
    from zardine import api as api
    from zardine import codecs as codecs
    from zardine import dask as dask
    from zardine import dtype as dtype
    from zardine import errors as errors
    from zardine import jobs as jobs
    from zardine import registry as registry
    from zardine import sources as sources
    from zardine import storage as storage
    from zardine import vectors as vectors
    from zardine import xarray as xarray
    from zardine import zarr_python as zarr_python
    from zardine.api.consolidate import consolidate_metadata as consolidate_metadata
    from zardine.api.copy import copy as copy
    from zardine.api.copy import copy_all as copy_all
    from zardine.api.copy import copy_store as copy_store
    from zardine.api.create import array as array
    from zardine.api.create import create as create
    from zardine.api.create import empty as empty
    from zardine.api.create import full as full
    from zardine.api.create import ones as ones
    from zardine.api.create import zeros as zeros
    from zardine.api.debug_info import print_debug_info as print_debug_info
    from zardine.api.log_messages import set_format as set_format
    from zardine.api.log_messages import set_log_level as set_log_level
    from zardine.api.open import group as group
    from zardine.api.open import open as open
    from zardine.api.open import open_array as open_array
    from zardine.api.open import open_consolidated as open_consolidated
    from zardine.api.open import open_group as open_group
    from zardine.api.open import open_like as open_like
    from zardine.api.save_load import load as load
    from zardine.api.save_load import save as save
    from zardine.api.save_load import save_array as save_array
    from zardine.api.save_load import save_group as save_group
    from zardine.engine.array_config import ArrayConfig as ArrayConfig
    from zardine.metadata import ArrayMetadata as ArrayMetadata
    from zardine.metadata import GroupMetadata as GroupMetadata
    from zardine.nodes.array import Array as Array
    from zardine.nodes.asynchronous import AsyncArray as AsyncArray
    from zardine.nodes.asynchronous import AsyncGroup as AsyncGroup
    from zardine.nodes.create_array import create_array as create_array
    from zardine.nodes.create_array import from_array as from_array
    from zardine.nodes.create_like import empty_like as empty_like
    from zardine.nodes.create_like import full_like as full_like
    from zardine.nodes.create_like import ones_like as ones_like
    from zardine.nodes.create_like import zeros_like as zeros_like
    from zardine.nodes.display import tree as tree
    from zardine.nodes.group import Group as Group
    from zardine.nodes.group import create_group as create_group
    from zardine.nodes.group import create_hierarchy as create_hierarchy
    from zardine.server.running import serve as serve
    from zardine.server.viewing import view as view
    from zardine.settings import config as config
    from zardine.tools.advise import advise as advise
    from zardine.tools.compact import compact as compact
    from zardine.tools.convert import convert as convert
    from zardine.tools.convert import plan_convert as plan_convert
    from zardine.tools.rechunk import plan_rechunk as plan_rechunk
    from zardine.tools.rechunk import rechunk as rechunk
    from zardine.tools.repair import repair as repair
    from zardine.tools.reshard import plan_reshard as plan_reshard
    from zardine.tools.reshard import reshard as reshard
    from zardine.tools.verify import plan_verify as plan_verify
    from zardine.tools.verify import verify as verify

    __kernel__: str | None
    __version__: str

_VERSION = "0.1.0"
_STANDS_IN_FOR = "3.4.2"
"""The version of zarr-python whose names are here: what ``__version__`` begins with where zardine is ``zarr``."""

_DOORS = ("dask", "sources", "xarray", "zarr_python")
"""Modules that ``from zardine import *`` leaves out, since they are called like the programs that they are for."""
_MODULES = ("abc", "api", "codecs", "dtype", "errors", "jobs", "registry", "storage", "vectors")

_exports = Exports(
    __name__,
    {
        "nodes.array": ("Array",),
        "nodes.asynchronous": ("AsyncArray", "AsyncGroup"),
        "api.consolidate": ("consolidate_metadata",),
        "api.copy": ("copy", "copy_all", "copy_store"),
        "api.create": ("array", "create", "empty", "full", "ones", "zeros"),
        "nodes.create_array": ("create_array", "from_array"),
        "nodes.create_like": ("empty_like", "full_like", "ones_like", "zeros_like"),
        "api.debug_info": ("print_debug_info",),
        "engine.array_config": ("ArrayConfig",),
        "api.log_messages": ("set_format", "set_log_level"),
        "nodes.group": ("Group", "create_group", "create_hierarchy"),
        "kernel": ("__kernel__",),
        "metadata": ("ArrayMetadata", "GroupMetadata"),
        "api.open": ("group", "open_like", "open", "open_array", "open_consolidated", "open_group"),
        "api.save_load": ("load", "save", "save_array", "save_group"),
        "server.running": ("serve",),
        "server.viewing": ("view",),
        "settings": ("config",),
        "tools.convert": ("convert", "plan_convert"),
        "tools.verify": ("plan_verify", "verify"),
        "tools.rechunk": ("plan_rechunk", "rechunk"),
        "tools.repair": ("repair",),
        "tools.compact": ("compact",),
        "tools.reshard": ("plan_reshard", "reshard"),
        "tools.advise": ("advise",),
        "nodes.display": ("tree",),
    },
    (*_MODULES, "__version__"),
)

__all__ = _exports.names
__dir__ = _exports.listed


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return f"{_STANDS_IN_FOR}+zardine.{_VERSION}" if is_stand_in() else _VERSION
    if name == "ZardineCodecPipeline":
        return import_module("zardine.zarr_python.pipeline").ZardineCodecPipeline
    return import_module(f"zardine.{name}") if name in (*_MODULES, *_DOORS) else _exports.load(name)


if not any(isinstance(finder, StandIn) for finder in sys.meta_path):
    sys.meta_path.insert(0, StandIn())
