"""See :mod:`zardine.engine.waiting_together`."""

from zardine.engine.waiting_together import begun

__all__ = ["begun"]
