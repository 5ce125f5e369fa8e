"""zardine: every Zarr, sharded. Arrays of many small chunks in few objects, read and edited safely.

``import zardine as zarr`` runs code written for zarr-python 3.
"""

from zardine import codecs, errors, registry, storage
from zardine.array import Array
from zardine.config import config
from zardine.consolidate import consolidate_metadata
from zardine.copying import copy, copy_all, copy_store
from zardine.create import create_array, create_group, create_hierarchy, from_array
from zardine.creation import (
    array,
    create,
    empty,
    empty_like,
    full,
    full_like,
    group,
    ones,
    ones_like,
    open_like,
    zeros,
    zeros_like,
)
from zardine.debug_info import print_debug_info
from zardine.engine.array_config import ArrayConfig
from zardine.group import Group
from zardine.kernel import kernel_version
from zardine.metadata import ArrayMetadata, GroupMetadata
from zardine.open import open, open_array, open_consolidated, open_group
from zardine.save_load import load, save, save_array, save_group
from zardine.tree_view import tree

__version__ = "0.1.0"

__kernel__ = kernel_version()
"""Version of the native kernel in use; ``None`` where it is not built, or turned off by ``ZARDINE_KERNEL=0``."""

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
    "array",
    "codecs",
    "config",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
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
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> object:
    if name in ("AsyncArray", "AsyncGroup"):  # needed by few, and they would cost the import of asyncio
        from zardine import async_nodes

        return getattr(async_nodes, name)
    raise AttributeError(f"module 'zardine' has no attribute {name!r}")
