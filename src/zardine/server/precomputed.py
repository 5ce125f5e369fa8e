"""Zarr Vectors for neuroglancer, made while it asks for them: ``/precomputed/NAME/...``.

Skeletons and meshes are read an object at a time. Annotations are held in memory, as the levels of their spatial index
are of all of them, until the store changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.errors import CorruptionError, DataError, UnsupportedError
from zardine.metadata.documents import GroupMetadata
from zardine.server.data import MadeValue, ValueChangedError, not_found, send_value
from zardine.server.served import Served
from zardine.server.threads import in_thread
from zardine.server.viewer.geometry import is_vectors
from zardine.stores.path import StorePath
from zardine.vectors.exchange.precomputed.tables import Contents
from zardine.vectors.exchange.precomputed.writing import contents_of, kind_of
from zardine.vectors.storing.store import Level, VectorStore

_MOST_VERTICES: Final = 4_000_000
"""Of points and straight lines, which are held in memory."""
_PER_VERTEX: Final = 120
"""Bytes that one takes there, about."""
_UNPROCESSABLE: Final = 422
"""RFC 9110, 15.5.21."""


@dataclass(frozen=True, slots=True, eq=False)
class Precomputed:
    """What was made of stores that are asked for, and the answers."""

    _made: Cache[tuple[str, str], tuple[Level, Contents]] = field(
        default_factory=lambda: Cache(2 * _MOST_VERTICES * _PER_VERTEX)
    )
    _making: Lock = field(default_factory=Lock)

    async def answer(self, request: Request, served: Served, key: str) -> Response:
        """Answer a request for ``key``, relative to the node that is served."""

        def make() -> bytes:
            found = self._value(served, key)
            if found is None:
                raise ValueChangedError("no document or value of neuroglancer is called so here")
            return bytes(found)

        media_type = "application/json" if key.rpartition("/")[2] == "info" else "application/octet-stream"
        try:
            value = await in_thread(MadeValue, make, media_type)
        except CorruptionError:
            raise
        except ValueChangedError as error:
            return not_found(str(error))
        except DataError as error:  # the store is as it should be, and neuroglancer has no form for it
            text = f"{key} has no form for neuroglancer: {error}\n"
            return Response(text, _UNPROCESSABLE, media_type="text/plain")
        return await send_value(request, value)

    def _value(self, served: Served, key: str) -> BytesLike | None:
        parts = key.split("/")
        for length in range(len(parts)):
            path = "/".join(parts[:length])
            node = served.node(path)
            if isinstance(node, GroupMetadata) and is_vectors(node):
                return self._contents(served, path).get("/".join(parts[length:]))
        return None

    def _contents(self, served: Served, path: str) -> Contents:
        place = StorePath(served.store, served.key(path))
        with self._making:  # many are asked for at once; the first makes what all of them want
            known = self._made.get((served.name, path))
            if known is not None and known[0].is_current():
                return known[1]
            level = VectorStore.open(place).level(0)
            count = level.document.vertex_count
            held = kind_of(place) in ("point_cloud", "line")
            if held and count > _MOST_VERTICES:
                raise UnsupportedError(
                    f"{level.owner.name} has {count} vertices, and {_MOST_VERTICES} are served as annotations at most: "
                    "'zardine vectors export --format precomputed' makes files of them"
                )
            contents = contents_of(place)
            self._made.put((served.name, path), (level, contents), count * _PER_VERTEX if held else 2**16)
            return contents


__all__ = ["Precomputed"]
