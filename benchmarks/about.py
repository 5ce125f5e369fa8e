"""What was measured, and on what: versions, processors, whether the kernel is in use; as JSON."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from types import ModuleType

from environment import PEERS

PACKAGES = ("zardine", *PEERS, "numpy", "numcodecs", "zstandard", "deflate")


def about(threads: int) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
        "versions": {name: version(name) for name in PACKAGES},
        "kernel": kernel(),
    }


def kernel() -> str:
    """Whether zardine's native kernel is in use, in words."""
    import zardine

    told = getattr(zardine, "__kernel__", None)
    if told is None:
        from zardine import kernel as module

        told = getattr(module, "KERNEL", None)
    if isinstance(told, ModuleType):
        told = getattr(told, "__version__", True)
    return f"in use ({told})" if isinstance(told, str) else "in use" if told else "not in use"


if __name__ == "__main__":
    print(json.dumps(about(int(sys.argv[1]))))
