"""The native kernel, if it is there and wanted.

``ZARDINE_KERNEL=0`` in the environment turns it off; then, and where it was not built, everything works through the
Python codecs, chunk by chunk.
"""

from __future__ import annotations

import os
from types import ModuleType

KERNEL: ModuleType | None = None
"""The module ``zardine._kernel``, or ``None``."""

if os.environ.get("ZARDINE_KERNEL", "1") != "0":
    try:
        from zardine import _kernel as KERNEL  # noqa: N812
    except ImportError:
        KERNEL = None


__kernel__: str | None = None if KERNEL is None else str(KERNEL.version())
"""Version of the native kernel in use; ``None`` where it is not built, or turned off by ``ZARDINE_KERNEL=0``."""
