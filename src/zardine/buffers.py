"""The one spelling of contiguous bytes that every layer passes around."""

from __future__ import annotations

from typing import TypeAlias

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes; a memoryview has format ``B`` and one dimension, so that ``len`` counts bytes."""
