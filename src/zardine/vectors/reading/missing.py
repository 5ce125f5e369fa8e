"""What to say of an attribute that is asked for and not there: its name as it was given, and those that there are."""

from __future__ import annotations

from zardine.errors import SelectionError, UnsupportedError
from zardine.vectors.storing.store import Level


def missing_attribute(level: Level, relative: str) -> SelectionError:
    """Return the error for an attribute without a node; ``relative``: ``FAMILY_attributes/NAME``."""
    family, _, name = relative.partition("/")
    there = _names(level, family)
    told = "" if there is None else f"; there are {', '.join(there) or 'none'}"
    whose = family.removesuffix("_attributes")
    return SelectionError(f"{level.owner.name} has no {whose} attribute {name!r} at level {level.document.level}{told}")


def no_attribute(level: Level, name: str) -> SelectionError:
    """Return the error for a condition on an attribute that neither vertices nor objects have."""
    there = {kind: _names(level, f"{kind}_attributes") for kind in ("vertex", "object")}
    told = [f"of {kind} attributes {', '.join(names)}" for kind, names in there.items() if names]
    return SelectionError(
        f"{level.owner.name} has no vertex attribute {name!r}, and no object attribute; there are "
        f"{', '.join(told) if told else 'none'}"
    )


def _names(level: Level, family: str) -> list[str] | None:
    """The names of a family; ``None`` where the store cannot list them."""
    try:
        return level.names(family)
    except UnsupportedError:
        return None


__all__ = ["missing_attribute", "no_attribute"]
