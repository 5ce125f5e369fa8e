"""Copies of frozen values."""

from __future__ import annotations

from typing import Any, TypeVar

V = TypeVar("V")


def with_fields(value: V, **changes: Any) -> V:
    """Return a copy of a frozen dataclass with slots, of which some fields are others.

    As ``dataclasses.replace``, in a third of the time: fields that are not of its ``__init__`` are copied as well, and
    nothing is worked out anew.
    """
    kind = type(value)
    copy = object.__new__(kind)
    put = object.__setattr__
    for name in kind.__slots__:  # type: ignore[attr-defined]
        put(copy, name, changes[name] if name in changes else getattr(value, name))
    return copy


__all__ = ["with_fields"]
