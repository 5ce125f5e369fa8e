"""Metadata documents and their normal form."""

from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata  # which says how all versions are parsed

__all__ = ["ArrayMetadata", "GroupMetadata", "NodeMetadata"]
