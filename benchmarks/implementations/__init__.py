"""The implementations that are measured, by name, and the ways to run them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from implementations.protocol import Implementation


@dataclass(frozen=True)
class Variant:
    """One column of the tables: a module of this folder, with settings."""

    name: str
    module: str
    settings: dict[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ("*",)
    """Patterns of the workloads it takes part in."""
    compared: bool = True
    """Whether it can be the best peer; else it is shown beside."""
    checksum: bool = False
    """Whether it uses the layouts with a crc32c on every chunk."""

    def takes(self, workload: str) -> bool:
        return any(fnmatch(workload, pattern) for pattern in self.only)

    def load(self, threads: int) -> Implementation:
        """The implementation, ready to be used by this process."""
        module = import_module(f"implementations.{self.module}")
        return module.IMPLEMENTATION(threads=threads, **self.settings)


EDITS = ("fill/*", "update/*", "append/*")
OURS = "zardine"
VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(OURS, "zardine"),
        Variant("tensorstore", "tensorstore"),
        Variant("zarrs", "zarrs"),
        Variant("zarrista", "zarrista"),
        Variant("zarr", "zarr_python"),
        Variant("zarr fused", "zarr_python", {"fused": True}),
        # shown beside
        Variant(
            "zardine with checksums",
            "zardine",
            only=("read/*", "chunk/*", "write/*", "update/*"),
            compared=False,
            checksum=True,
        ),
        Variant("zarrista partial", "zarrista", {"partial": True}, only=EDITS, compared=False),
        Variant("tensorstore transaction", "tensorstore", {"transaction": True}, only=EDITS[:1], compared=False),
        Variant("zarrista index cache", "zarrista", {"index_cache": True}, only=("chunk/*",), compared=False),
        Variant("zardine append", OURS, {"strategy": "append"}, only=EDITS[1:], compared=False),
        Variant("zardine in place", OURS, {"strategy": "in_place"}, only=EDITS[1:], compared=False),
        Variant("zardine buffered", OURS, {"buffered": True}, only=EDITS[:1], compared=False),
    )
}
PEERS = tuple(v.name for v in VARIANTS.values() if v.compared and v.name != OURS)
