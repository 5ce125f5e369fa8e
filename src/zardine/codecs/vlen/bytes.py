"""``vlen-bytes``: byte strings of any length.

Specification: zarr-extensions "codecs/vlen-bytes".
"""

from __future__ import annotations

from typing import ClassVar

from zardine.codecs.vlen.elements import BYTES_TYPES, VLenElements
from zardine.public_names import public


@public("zardine.codecs")
class VLenBytesCodec(VLenElements):
    """Each element as its length and its bytes. Encodes object arrays of bytes-like values."""

    name: ClassVar[str] = "vlen-bytes"
    MEANT_FOR = BYTES_TYPES
