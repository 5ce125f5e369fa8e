"""Chunk grids by name."""

from __future__ import annotations

from zardine.chunk_grids.base import ChunkGrid
from zardine.chunk_grids.rectilinear import RectilinearGrid
from zardine.chunk_grids.regular import RegularGrid
from zardine.json_document import Extension, Problems
from zardine.public_names import public
from zardine.registry_table import ExtensionTable

CHUNK_GRIDS: ExtensionTable[type[ChunkGrid]] = ExtensionTable("chunk grid", "zardine.chunk_grids")
CHUNK_GRIDS.register("regular", RegularGrid)
CHUNK_GRIDS.register("rectilinear", RectilinearGrid)


def parse_chunk_grid(extension: Extension, shape: tuple[int, ...], problems: Problems) -> ChunkGrid | None:
    """The grid that the ``chunk_grid`` member describes for an array of ``shape``."""
    kind = CHUNK_GRIDS.get(extension.name)
    if kind is None:
        problems.unknown("chunk_grid.name", CHUNK_GRIDS.explain_unknown(extension.name))
        return None
    return kind.from_json(extension.configuration, shape, "chunk_grid.configuration", problems)


@public("zardine.registry")
def register_chunk_grid(name: str, kind: type[ChunkGrid]) -> None:
    """Use ``kind`` for chunk grids called ``name``."""
    CHUNK_GRIDS.register(name, kind)
