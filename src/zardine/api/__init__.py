"""The functions of this package in two forms: ``zardine.api.synchronous`` and ``zardine.api.asynchronous``."""

from zardine.public_names import Exports

_MODULES = ("asynchronous", "synchronous")
_exports = Exports(__name__, {}, _MODULES, modules=_MODULES)

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
