"""Metadata documents and their normal form."""

from zardine.metadata.documents import ArrayMetadata, GroupMetadata

__all__ = ["ArrayMetadata", "GroupMetadata"]
