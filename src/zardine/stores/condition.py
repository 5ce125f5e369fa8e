"""What must hold for a conditional write."""

from __future__ import annotations

from dataclasses import dataclass

from zardine.public_names import public
from zardine.stores.byte_ranges import Version


@public("zardine.storage")
@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold for a conditional write: the key has this version, or (``version`` is ``None``) does not exist."""

    version: Version | None
    strict: bool = False
    """Whether to refuse the write where nothing can compare versions and write in one step, instead of warning."""


__all__ = ["Condition"]
