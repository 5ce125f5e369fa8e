"""The functions that make, open, save and load arrays and groups; all of them are names of ``zardine`` too."""

from __future__ import annotations

from zardine.api.consolidate import consolidate_metadata
from zardine.api.copy import copy, copy_all, copy_store
from zardine.api.open import open, open_array, open_consolidated, open_group
from zardine.api.save_load import load, save, save_array, save_group
from zardine.nodes.create_array import create_array, create_group, create_hierarchy, from_array
from zardine.nodes.create_like import (
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
from zardine.nodes.tree_view import tree

__all__ = [
    "array",
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
    "save",
    "save_array",
    "save_group",
    "tree",
    "zeros",
    "zeros_like",
]
