"""The native kernel, if it is there and wanted.

``ZARDINE_KERNEL=0`` in the environment turns it off; then, and where it was not built, everything works through the
Python codecs, chunk by chunk.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

KERNEL: ModuleType | None = None
"""The module ``zardine._kernel``, or ``None``."""

_missing = ""

if os.environ.get("ZARDINE_KERNEL", "1") == "0":
    _missing = "turned off by ZARDINE_KERNEL=0"
else:
    try:
        KERNEL = import_module("zardine._kernel")
    except ModuleNotFoundError:
        _missing = "it was not built: that takes Rust (https://rustup.rs), and then installing zardine anew"
    except ImportError as error:
        _missing = f"it cannot be loaded: {error}"


if KERNEL is not None and hasattr(os, "register_at_fork"):
    os.register_at_fork(before=KERNEL.retire_threads)  # so that Python counts no threads that the program does not know

__kernel__: str | None = None if KERNEL is None else str(KERNEL.version())
"""Version of the native kernel in use; ``None`` where it is not built, or turned off by ``ZARDINE_KERNEL=0``."""


def describe_kernel() -> str:
    """Return which kernel is in use, or why none is, and what that costs."""
    if __kernel__ is not None:
        return f"native kernel {__kernel__}"
    return f"no native kernel ({_missing}), so that many small chunks are read and written several times slower"
