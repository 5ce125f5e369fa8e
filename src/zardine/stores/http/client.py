"""The requests of an :class:`HTTPStore`, also to servers that know little of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zardine.buffers import BytesLike
from zardine.stores.http.encodings import check_encoding
from zardine.stores.object.buckets import BucketOptions
from zardine.stores.object.client import ObjectClient
from zardine.stores.object.errors import has_no_length, has_no_ranges, is_out_of_range, status_of
from zardine.stores.object_meter import RequestMeter

if TYPE_CHECKING:
    from zardine.stores.http.plain import PlainHTTP

_REFUSED: Final = (405, 501)


class HTTPClient(ObjectClient):
    """Values whose length the server does not say beforehand are asked for again, whole, by Python's own client."""

    def __init__(
        self,
        inner: Any,
        kind: str = "HTTPStore",
        meter: RequestMeter | None = None,
        *,
        prefix: str = "",
        options: BucketOptions | None = None,
    ) -> None:
        super().__init__(inner, kind, meter, prefix=prefix, options=options)
        self._known_plain: PlainHTTP | None = None
        self._answers_head = True

    @property
    def url(self) -> str:
        """Where the values are."""
        return f"{str(self.inner.url).rstrip('/')}/{self._prefix}".rstrip("/")

    @property
    def _plain(self) -> PlainHTTP:
        if self._known_plain is None:
            from zardine.stores.http.plain import PlainHTTP  # slow to import, and rarely needed

            self._known_plain = PlainHTTP(self.url, self.inner.client_options or {})
        return self._known_plain

    def get(self, key: str, most: int | None = None, **options: Any) -> tuple[Any, memoryview | None]:
        try:
            return super().get(key, most, **options)
        except Exception as error:
            if options or not has_no_length(error):
                raise
        meta, data = self._again(lambda: self._plain.get(key, most))
        return meta, None if most is not None and len(data) > most else memoryview(data)

    def _body(self, answer: Any) -> BytesLike:
        """No more is waited for once there is more than the server announced: it may never end."""
        check_encoding(answer.attributes.get("Content-Encoding"))
        start, stop = answer.range
        parts: list[BytesLike] = []
        size = 0
        for part in answer.stream(min_chunk_size=max(1, stop - start)):
            parts.append(part)
            size += len(part)
            if size > stop - start:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def head(self, key: str) -> Any:
        if self._answers_head:
            try:
                return super().head(key)
            except Exception as error:
                if has_no_length(error):
                    return self.get(key)[0]
                if status_of(error) not in _REFUSED:
                    raise
                self._answers_head = False
        try:
            return self.get(key, range=(0, 1))[0]
        except Exception as error:
            if not (has_no_length(error) or has_no_ranges(error) or is_out_of_range(error)):
                raise
        return self.get(key)[0]

    def look(self, key: str) -> Any:
        """What the server tells of a value (perhaps not its size) if that costs less than the value; else ``None``.

        ``FileNotFoundError`` if there is none any more.
        """
        if not self._answers_head:
            return None
        try:
            return super().head(key)
        except Exception as error:
            if has_no_length(error):
                return self._again(lambda: self._plain.head(key))
            if status_of(error) not in _REFUSED:
                raise
            self._answers_head = False
            return None


__all__ = ["HTTPClient"]
