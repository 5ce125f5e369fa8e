"""The one line that puts zardine in the place of zarr-python; imported before anything that imports ``zarr``."""

from __future__ import annotations

import sys

import zardine

assert "zarr" not in sys.modules, "zarr-python was imported before"
sys.modules["zarr"] = zardine

from packaging.version import Version  # noqa: E402

assert Version(zardine.__version__) >= Version("3.4"), zardine.__version__
