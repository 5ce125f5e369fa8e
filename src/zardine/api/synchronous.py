"""The functions that make, open, save and load arrays and groups; all of them are names of ``zardine`` too."""

from __future__ import annotations

from types import FunctionType

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
from zardine.nodes.create_array import create_array as create_array
from zardine.nodes.create_array import from_array as from_array
from zardine.nodes.create_like import empty_like as empty_like
from zardine.nodes.create_like import full_like as full_like
from zardine.nodes.create_like import ones_like as ones_like
from zardine.nodes.create_like import zeros_like as zeros_like
from zardine.nodes.display import tree as tree
from zardine.nodes.group import create_group as create_group
from zardine.nodes.group import create_hierarchy as create_hierarchy

__all__ = sorted(name for name, value in globals().items() if isinstance(value, FunctionType))


def __dir__() -> list[str]:
    return sorted(__all__)
