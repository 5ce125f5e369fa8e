"""See :mod:`zardine.engine.side_by_side`."""

from zardine.engine.side_by_side import begun, made, side_by_side

__all__ = ["begun", "made", "side_by_side"]
