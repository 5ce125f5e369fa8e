"""``vlen-utf8``: strings of any length.

Specification: zarr-extensions "codecs/vlen-utf8".
"""

from __future__ import annotations

from typing import ClassVar

from zardine.codecs.vlen.elements import TEXT_TYPES, VLenElements
from zardine.public_names import public


@public("zardine.codecs")
class VLenUTF8Codec(VLenElements):
    """Each string as its length in bytes and its UTF-8 bytes. Encodes ``StringDType``, ``U`` and object arrays."""

    name: ClassVar[str] = "vlen-utf8"
    MEANT_FOR = TEXT_TYPES
