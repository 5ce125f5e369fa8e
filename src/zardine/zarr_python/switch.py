"""Switching zardine's pipeline on and off in zarr-python's configuration."""

from __future__ import annotations

from typing import Any, Final

from zardine.stores.extras import need
from zardine.zarr_python.fallback import ZardineFallbackWarning as ZardineFallbackWarning

_PATH: Final = "codec_pipeline.path"
_STRICT: Final = "codec_pipeline.strict"
_NAME: Final = "zardine.ZardineCodecPipeline"
_DEFAULT: Final = "zarr.core.codec_pipeline.BatchedCodecPipeline"

_before: str | None = None


def enable(strict: bool = False) -> Any:
    """Let zarr-python read and write the arrays that it opens from now on by zardine's engine.

    With ``strict``, what zardine does not know raises :class:`~zardine.errors.UnsupportedError`; without, it goes
    through zarr-python's own pipeline, with a :class:`ZardineFallbackWarning`. As a context manager it lasts for the
    block: ``with zardine.zarr_python.enable(): ...``. Raises ``UnsupportedError`` where zarr-python is not installed.
    """
    global _before
    zarr = need("zarr", "zardine.zarr_python.enable")
    from zardine.zarr_python.pipeline import ZardineCodecPipeline as ZardineCodecPipeline  # which registers itself

    now = zarr.config.get(_PATH)
    if now != _NAME:
        _before = now
    return zarr.config.set({_PATH: _NAME, _STRICT: bool(strict)})


def disable() -> None:
    """Let zarr-python use the pipeline again that it used before :func:`enable`, for the arrays opened from now on."""
    zarr = need("zarr", "zardine.zarr_python.disable")
    if zarr.config.get(_PATH) == _NAME:
        zarr.config.set({_PATH: _before or _DEFAULT, _STRICT: False})


__all__ = ["ZardineFallbackWarning", "disable", "enable"]
