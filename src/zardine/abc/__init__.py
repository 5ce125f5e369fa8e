"""Base classes for stores and codecs of one's own, where zarr-python has them."""

from zardine.public_names import Exports

_MODULES = ("codec", "store")
_exports = Exports(__name__, {}, _MODULES, modules=_MODULES)

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
