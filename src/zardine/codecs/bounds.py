"""How large the encoded form of ``n`` bytes can be."""

from __future__ import annotations


def compressed_limit(nbytes: int) -> int:
    """More bytes than any sensible writer's compressed form of ``nbytes`` bytes takes.

    Deflate with fixed codes grows data by an eighth, every other format by less; headers with file names and
    comments are paid from the constant.
    """
    return nbytes + nbytes // 4 + 4096
