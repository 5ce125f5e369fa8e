"""Foreign files seen as groups and arrays: HDF5, NetCDF 3 and 4, read-only.

:func:`zardine.sources.open` opens one; :func:`zardine.convert` takes their paths as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.sources.opening import open as open

_exports = Exports(__name__, {"opening": ("open",)})

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
