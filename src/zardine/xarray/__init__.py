"""Use zardine from xarray: the engine that opens stores, and ``to_zarr``.

``xr.open_dataset(path, engine="zardine")`` needs no import; :func:`open` is the same by another name, and
:func:`to_zarr` writes. Names are loaded when they are first used, and the package xarray with them.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.xarray.engine import ZardineBackendEntrypoint as ZardineBackendEntrypoint
    from zardine.xarray.opening import open as open
    from zardine.xarray.writing import to_zarr as to_zarr

_exports = Exports(__name__, {"engine": ("ZardineBackendEntrypoint",), "opening": ("open",), "writing": ("to_zarr",)})

__all__ = _exports.names
__dir__ = _exports.listed


def __getattr__(name: str) -> Any:
    if name in _exports.homes and find_spec("xarray") is None:
        raise ImportError("zardine.xarray needs the package xarray: pip install 'zardine[xarray]'")
    return _exports.load(name)
