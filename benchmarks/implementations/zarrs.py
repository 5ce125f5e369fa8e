"""zarrs-python: zarr-python with the codec pipeline of the Rust crate zarrs; as many threads as there are cores.

What its pipeline cannot do (steps, points) it hands to zarr-python's own pipeline.
"""

from __future__ import annotations

import warnings

import zarrs

from implementations.zarr_python import ZarrPython


class Zarrs(ZarrPython):
    packages = ("zarrs", "zarr")
    imports = 'import zarr, zarrs; zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})'
    pipeline = f"zarrs.{zarrs.ZarrsCodecPipeline.__name__}"

    def __init__(self, threads):
        super().__init__(threads)
        warnings.filterwarnings("ignore", message=".*ZarrsCodecPipeline.*")


IMPLEMENTATION = Zarrs
