"""Adding extensions of one's own: codecs, data types, chunk grids, chunk key encodings.

A call registers for this process; an installed package registers for everybody by an entry point in the group
``zardine.codecs``, ``zardine.data_types``, ``zardine.chunk_grids`` or ``zardine.chunk_key_encodings``.
"""

from zardine.chunk_grids import register_chunk_grid
from zardine.chunk_keys import register_chunk_key_encoding
from zardine.codecs.registry import codec_class as get_codec_class
from zardine.codecs.registry import register_codec
from zardine.data_types import register_data_type

__all__ = [
    "get_codec_class",
    "register_chunk_grid",
    "register_chunk_key_encoding",
    "register_codec",
    "register_data_type",
]
