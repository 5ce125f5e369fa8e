"""What zardine does not know goes through zarr-python's own pipeline, and it is said why."""

from __future__ import annotations

import warnings
from typing import Any, Final

from zardine.errors import UnsupportedError, ZarrUserWarning
from zardine.shown_text import shown
from zardine.stores.extras import need

_EVOLVES: Final = "evolve_from_array_spec"
"""What zarr-python calls where its metadata does not hold the codecs as they are for the array: not before 3.2."""


class ZardineFallbackWarning(ZarrUserWarning):
    """An array is read and written by zarr-python's own pipeline, without what zardine promises."""


class UnknownToZardineError(Exception):
    """Why zardine cannot read or write an array of zarr-python, or reach what its store stands for."""


def own_pipeline(metadata: Any = None) -> Any:
    """Return zarr-python's default pipeline of an array with this ``metadata``; without, its class."""
    kind = need("zarr.core.codec_pipeline", "zardine's codec pipeline").BatchedCodecPipeline
    if metadata is None:
        return kind
    from zarr.core.array import create_codec_pipeline
    from zarr.core.array_spec import ArrayConfig, ArraySpec
    from zarr.core.buffer import default_buffer_prototype

    if metadata.zarr_format == 2:
        from zarr.codecs._v2 import V2Codec

        codecs: Any = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
        shape, config = metadata.chunks, ArrayConfig.from_dict({"order": metadata.order})
    else:
        codecs, config = metadata.codecs, ArrayConfig.from_dict({})
        shape = getattr(metadata.chunk_grid, "chunk_shape", (1,) * len(metadata.shape))
    spec = ArraySpec(
        shape=shape,
        dtype=metadata.dtype,
        fill_value=metadata.fill_value,
        config=config,
        prototype=default_buffer_prototype(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python has said it, when the array was opened
        found = kind.from_codecs(codecs)
        return found.evolve_from_array_spec(spec) if _EVOLVES in create_codec_pipeline.__code__.co_names else found


def report_fallback(pipeline: Any, reason: str) -> None:
    """Warn once for each ``reason`` that ``pipeline`` is replaced; with ``strict`` an :class:`UnsupportedError`."""
    text = f"an array is read and written by zarr-python's own pipeline, without zardine's speed and safety: {reason}"
    if need("zarr", "zardine's codec pipeline").config.get("codec_pipeline.strict", False):
        raise UnsupportedError(
            f"zardine's codec pipeline cannot read or write this array: {reason} "
            "(without codec_pipeline.strict zarr-python's own pipeline would do it)"
        )
    told: set[str] = vars(pipeline).setdefault("_told", set())
    if reason not in told:
        told.add(reason)
        warnings.warn(shown(text), ZardineFallbackWarning, stacklevel=3)


__all__ = ["UnknownToZardineError", "ZardineFallbackWarning", "own_pipeline", "report_fallback"]
