"""Adding extensions of one's own: codecs, data types, chunk grids, chunk key encodings.

A call registers for this process; an installed package registers for everybody by an entry point in the group
``zardine.codecs``, ``zardine.data_types``, ``zardine.chunk_grids`` or ``zardine.chunk_key_encodings``.
"""

from __future__ import annotations

from zardine import chunk_keys
from zardine.chunk_grids import register_chunk_grid
from zardine.chunk_keys import ChunkKeyEncoding
from zardine.chunk_keys.encodings import CHUNK_KEY_ENCODINGS
from zardine.codecs import registry as codec_registry
from zardine.codecs.base import Codec
from zardine.data_types import register_data_type
from zardine.errors import UnknownExtensionError


def register_codec(key: str, codec_cls: type[Codec], *, qualname: str | None = None) -> None:
    """Let ``codec_cls`` implement the codec ``key``, in place of what did so far. ``qualname`` has no effect."""
    codec_registry.register_codec(key, codec_cls)


def get_codec_class(key: str, reload_config: bool = False) -> type[Codec]:
    """Return the class that implements the codec ``key``. Raises :class:`~zardine.errors.UnknownExtensionError`."""
    found = codec_registry.codec_class(key)
    if found is None:
        raise UnknownExtensionError(codec_registry.CODECS.explain_unknown(key))
    return found


def register_chunk_key_encoding(key: str, cls: type[ChunkKeyEncoding]) -> None:
    """Use ``cls`` for chunk key encodings called ``key``."""
    chunk_keys.register_chunk_key_encoding(key, cls)


def get_chunk_key_encoding_class(key: str) -> type[ChunkKeyEncoding]:
    """Return the class for chunk key encodings called ``key``.

    Raises :class:`~zardine.errors.UnknownExtensionError`.
    """
    found = CHUNK_KEY_ENCODINGS.get(key)
    if found is None:
        raise UnknownExtensionError(CHUNK_KEY_ENCODINGS.explain_unknown(key))
    return found


__all__ = [
    "get_chunk_key_encoding_class",
    "get_codec_class",
    "register_chunk_grid",
    "register_chunk_key_encoding",
    "register_codec",
    "register_data_type",
]


def __dir__() -> list[str]:
    return sorted(__all__)
