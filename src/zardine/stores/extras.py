"""Packages that only some stores and sources need, and that are installed with an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from zardine.errors import UnsupportedError

_EXTRAS: Final = {"obstore": "cloud", "fsspec": "fsspec", "h5py": "sources", "zarr": "zarr"}


def need(module: str, purpose: str) -> Any:
    """The module of an optional package; :class:`UnsupportedError` with the command that installs it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise UnsupportedError(
            f"{purpose} needs the package {package!r}, which is not installed: run "
            f"pip install 'zardine[{_EXTRAS[package]}]'"
        ) from None


__all__ = ["need"]
