"""How arrays are cut into chunks."""

from zardine.chunk_grids.axis import Axis
from zardine.chunk_grids.base import ChunkGrid
from zardine.chunk_grids.rectilinear import RectilinearGrid
from zardine.chunk_grids.registry import parse_chunk_grid, register_chunk_grid
from zardine.chunk_grids.regular import RegularGrid

__all__ = ["Axis", "ChunkGrid", "RectilinearGrid", "RegularGrid", "parse_chunk_grid", "register_chunk_grid"]
