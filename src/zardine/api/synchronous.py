"""The functions that make, open, save and load arrays and groups; all of them are names of ``zardine`` too."""

from __future__ import annotations

from zardine.api.consolidate import consolidate_metadata
from zardine.api.copy import copy, copy_all, copy_store
from zardine.api.create import array, create, empty, full, ones, zeros
from zardine.api.open import group, open, open_array, open_consolidated, open_group, open_like
from zardine.api.save_load import load, save, save_array, save_group
from zardine.nodes.create_array import create_array, from_array
from zardine.nodes.create_like import empty_like, full_like, ones_like, zeros_like
from zardine.nodes.display import tree
from zardine.nodes.group import create_group, create_hierarchy

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
