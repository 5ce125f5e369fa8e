"""Clients of whole buckets and web servers, shared by all stores behind URLs there: connections stay open."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zardine.cache import Cache
from zardine.stores.extras import need

_MOST: Final = 32
"""Clients that are kept."""
_KEPT: Final = 300.0
"""Seconds after which files of credentials are read again, for stores that are opened from then on."""
_VARIABLES: Final = ("AWS_", "AZURE_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""How variables begin that say how buckets and web servers are reached."""

_clients: Final[Cache[tuple[str, ...], tuple[float, Any]]] = Cache(_MOST)


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """What obstore's store of a bucket, or of a web server, is made with. Pickles, with whatever secrets were given."""

    kind: str
    """The name of its class."""
    config: Mapping[str, Any]
    """The bucket among it; of a web server the ``url`` alone."""
    client_options: Mapping[str, Any]
    retry_config: Mapping[str, Any]

    def client(self) -> Any:
        """Return obstore's store of it all: one for all who ask with the same options, for some minutes."""
        described = (sorted(each.items()) for each in (self.config, self.client_options, self.retry_config))
        around = sorted(each for each in os.environ.items() if each[0].upper().startswith(_VARIABLES))
        key = (self.kind, *map(repr, described), repr(around))
        now = time.monotonic()
        found = _clients.get(key)
        if found is None or now - found[0] > _KEPT:
            found = now, self.own_client()
            _clients.put(key, found, 1)
        return found[1]

    def own_client(self, prefix: str | None = None) -> Any:
        """Return obstore's store of a path there, which nobody else has."""
        kind = getattr(need("obstore.store", "an object store"), self.kind)
        how = {"client_options": dict(self.client_options), "retry_config": dict(self.retry_config)}
        if self.kind == "HTTPStore":
            url = self.config["url"]
            return kind(url if prefix is None else f"{url}/{prefix}", **how)
        return kind(prefix=prefix, config=dict(self.config), **how)


__all__ = ["BucketOptions"]
