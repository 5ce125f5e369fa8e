"""Use zardine from zarr-python: its arrays read and write through zardine's engine.

``zarr.config.set({"codec_pipeline.path": "zardine.ZardineCodecPipeline"})``, or :func:`enable`. From here on the arrays
that zarr-python opens hold a :class:`ZardineCodecPipeline`, which translates what zarr-python asks of it
(``selections``), finds the store (``stores``) and the array (``handles``) in zardine's terms and calls the engine.
"""

from zardine.public_names import Exports

_exports = Exports(
    __name__, {"pipeline": ("ZardineCodecPipeline",), "switch": ("ZardineFallbackWarning", "disable", "enable")}
)

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
