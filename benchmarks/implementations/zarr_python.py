"""zarr-python: its default pipeline, or ``FusedCodecPipeline``; as many threads as there are cores."""

from __future__ import annotations

import zarr

from implementations.protocol import Implementation

FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"


class ZarrPython(Implementation):
    packages = ("zarr", "numcodecs")
    imports = "import zarr"
    pipeline = None

    def __init__(self, threads, fused=False):
        super().__init__(threads)
        settings = {"threading.max_workers": threads}
        if fused:
            settings |= {"codec_pipeline.path": FUSED, "codec_pipeline.max_workers": threads}
        if self.pipeline is not None:
            settings |= {"codec_pipeline.path": self.pipeline}
        zarr.config.set(settings)

    def open(self, path, *, write=False):
        return zarr.open_array(path, mode="r+" if write else "r")

    def read(self, array, box):
        return array[box]

    def write(self, array, box, values):
        array[box] = values

    def append(self, array, values):
        array.append(values)
        return array

    def read_points(self, array, points):
        return array.vindex[points]

    def list_group(self, path):
        return [array.shape for _, array in zarr.open_group(path, mode="r").arrays()]


IMPLEMENTATION = ZarrPython
