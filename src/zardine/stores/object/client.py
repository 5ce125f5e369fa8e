"""The calls of an obstore store: each has its turn, is counted, and repeated where an answer was cut short."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from zardine.buffers import BytesLike
from zardine.stores.attempts import REQUESTS, attempts
from zardine.stores.base import FAR, MOST_REQUESTS
from zardine.stores.extras import need
from zardine.stores.object.buckets import BucketOptions
from zardine.stores.object.errors import (
    GivenUp,
    has_no_etag,
    is_out_of_range,
    is_passing,
    is_refusal,
    is_uncertain,
    repetitions,
    status_of,
)
from zardine.stores.object.kinds import bucket_of, origin_of
from zardine.stores.object.runtime import RUNTIME
from zardine.stores.object_meter import RequestMeter
from zardine.stores.pace import Turn, Turns, turns_of

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


T = TypeVar("T")


class _ReplacedError(Exception):
    """A value was replaced, or removed, while it was read: the next try finds what is there."""

    passing = True


MARKS: Final = "zardinewrite"
"""Metadata of an object, and what :meth:`ObjectClient.head` and :meth:`ObjectClient.get` call it: the marks of its last
writes, see :mod:`zardine.stores.object.conditions`."""

_ONE_PUT: Final = 64 * 2**20
"""Bytes up to which a value is one request; longer ones go up in parts of :data:`_PART`, unless on a condition."""

_PART: Final = 16 * 2**20
"""Bytes."""

_MOST_ERASED: Final = {"S3Store": 1000, "AzureStore": 256}
_MOST_LISTED: Final = {"AzureStore": 5000}
"""Keys that one request erases, or lists."""


class ObjectClient:
    """What an :class:`ObjectStore` asks of the service. Errors are obstore's own, or :class:`GivenUp`.

    obstore repeats requests that fail at once, but gives up some that break off in the midst of the answer: those are
    repeated here, within the number and time of its ``retry_config``. Keys are those below ``prefix``, a path in
    ``inner``, which is shared with others where it was made of ``options``.
    """

    def __init__(
        self,
        inner: Any,
        kind: str,
        meter: RequestMeter | None = None,
        *,
        prefix: str = "",
        options: BucketOptions | None = None,
    ) -> None:
        self._obstore = need("obstore", "an object store")
        self.inner, self.kind, self.options = inner, kind, options
        self._prefix = f"{prefix}/" if prefix else ""
        retry = getattr(inner, "retry_config", None) or {}
        most = int(retry.get("max_retries", REQUESTS.most)) + 1
        longest: timedelta | None = retry.get("retry_timeout")
        seconds = REQUESTS.seconds if longest is None else longest.total_seconds()
        self.patience = replace(REQUESTS, most=min(REQUESTS.most, most), seconds=seconds)
        self.meter = meter or RequestMeter()
        self._place = (*origin_of(inner, kind), bucket_of(inner, kind))

    @classmethod
    def sharing(cls, options: BucketOptions, prefix: str) -> Self:
        """A client of a path in a bucket, or on a web server, whose connections others use, too."""
        return cls(options.client(), options.kind, prefix=prefix, options=options)

    @property
    def prefix(self) -> str:
        """The path of the store in its bucket; empty for all of it."""
        return self._prefix[:-1] if self.options is not None else str(getattr(self.inner, "prefix", None) or "")

    @property
    def turns(self) -> Turns:
        """Those of all clients of the same bucket or web server."""
        return turns_of(self._place, FAR.gap, may_be_small=self.kind == "HTTPStore")

    @property
    def keeps_attributes(self) -> bool:
        """Whether a value can be given metadata."""
        return self.kind in ("S3Store", "GCSStore", "AzureStore")

    def without_repetitions(self) -> ObjectClient:
        """A client of the same place (of S3) for which obstore makes every request only once."""
        inner = need("obstore.store", "an object store").S3Store(
            prefix=self.inner.prefix,
            config=self.inner.config,
            client_options=self._client_options(),
            retry_config={**(self.inner.retry_config or {}), "max_retries": 0},
            credential_provider=self.inner.credential_provider,
        )
        return ObjectClient(inner, self.kind, self.meter, prefix=self._prefix[:-1])

    def _client_options(self) -> Any:
        """The options of ``inner``; where TLS is not used, with one that spares reading the machine's certificates.

        That takes as long as a quick request.
        """
        config, options = self.inner.config, self.inner.client_options or {}
        is_plain = str(config.get("endpoint") or "").startswith("http://")
        asks_nobody = "access_key_id" in config or self.inner.credential_provider is not None  # for credentials
        proxies = [
            options.get("proxy_url"),
            *(os.environ[each] for each in os.environ if each.upper().endswith("_PROXY")),
        ]
        if is_plain and asks_nobody and not any(str(each).lower().startswith("https:") for each in proxies):
            return {**options, "allow_invalid_certificates": True}
        return options

    def get(self, key: str, most: int | None = None, **options: Any) -> tuple[Any, memoryview | None]:
        """What the service tells of a value, and the bytes, or a ``range`` of them.

        ``None`` in their place where the value has more than ``most`` bytes; then they are not waited for.
        """

        def call() -> tuple[Any, memoryview | None]:
            answer = self._obstore.get(self.inner, self._prefix + key, options=options)
            meta = self._meta(answer)
            if most is not None and meta["size"] > most:
                return meta, None
            return meta, memoryview(self._body(answer))

        wanted = options.get("range")
        if isinstance(wanted, tuple):
            expected = wanted[1] - wanted[0]
        else:
            expected = wanted["suffix"] if isinstance(wanted, dict) and "suffix" in wanted else None
        return self._again(call, nbytes=expected, length=lambda found: len(found[1] or b""))

    def _body(self, answer: Any) -> BytesLike:
        """The bytes of an answer.

        Where it breaks off obstore asks for the rest, which another value that is there by then may not have.
        """
        try:
            return answer.bytes()  # type: ignore[no-any-return]
        except Exception as error:
            if isinstance(error, FileNotFoundError) or status_of(error) == 404 or is_out_of_range(error):
                raise _ReplacedError(str(error)) from error
            raise

    def _meta(self, answer: Any) -> Any:
        """Return what the service tells of a value, with its :data:`MARKS`, if it has any."""
        meta = answer.meta
        marks = answer.attributes.get(MARKS) if self.keeps_attributes else None
        return meta if marks is None else {**meta, MARKS: marks}

    def head(self, key: str) -> Any:
        """What the service tells of a value."""
        if not self.keeps_attributes:
            return self._again(lambda: self._obstore.head(self.inner, self._prefix + key))
        options = {"head": True}
        return self._again(lambda: self._meta(self._obstore.get(self.inner, self._prefix + key, options=options)))

    def put(self, key: str, data: BytesLike, mode: Any = None, attributes: dict[str, str] | None = None) -> Any:
        """Store a value; on a condition, which ``mode`` says, it is tried once only."""
        options: dict[str, Any] = {"use_multipart": False}
        requests = 1
        if mode is not None:
            options["mode"] = mode
        elif len(data) > _ONE_PUT:
            options = {"chunk_size": _PART}
            requests = -(-len(data) // _PART) + (1 if self.kind == "AzureStore" else 2)
        if attributes:
            options["attributes"] = attributes

        def call() -> Any:
            try:
                return self._obstore.put(self.inner, self._prefix + key, data, **options)
            except Exception as error:
                if has_no_etag(error):
                    return {"e_tag": None, "version": None}
                raise

        return self._again(
            call,
            requests=requests,
            once=mode is not None,
            nbytes=len(data),
        )

    @property
    def erased_together(self) -> int:
        """How many keys one request removes at most."""
        return _MOST_ERASED.get(self.kind, 1)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove values."""
        paths = [self._prefix + key for key in keys]
        self._again(
            lambda: self._obstore.delete(self.inner, paths if len(paths) > 1 else paths[0]),
            requests=-(-len(keys) // self.erased_together),
        )

    def listed(self, prefix: str | None) -> Iterator[tuple[str, Any]]:
        """The key of each value and what the service tells of it, as it comes, a page of the service at a time."""
        last: str | None = None
        below = self._path_of(prefix)
        count, page_size = 0, self._page()
        made, begin = 0, time.monotonic()
        for last_attempt in attempts(replace(self.patience, seconds=inf)):  # it may take long to go through the names
            try:
                self.meter.add()
                with RUNTIME:
                    pages = iter(self._obstore.list(self.inner, below, offset=last, chunk_size=page_size))
                while True:
                    with self._turn(0), RUNTIME:
                        page = next(pages, None)
                    if page is None:
                        return
                    for each in page:
                        if count and count % page_size == 0:
                            self.meter.add()
                        count += 1
                        last = each["path"]
                        yield each["path"][len(self._prefix) :], each
            except Exception as error:
                made += repetitions(error)
                if not is_passing(error):
                    raise
                if last_attempt:
                    raise GivenUp(made, time.monotonic() - begin, is_uncertain=False) from error

    def directory(self, prefix: str | None) -> tuple[list[str], list[str]]:
        """The values directly below a prefix, and the prefixes there."""

        def call() -> Any:
            return self._obstore.list_with_delimiter(self.inner, self._path_of(prefix))

        found = self._again(call)
        own = len(self._prefix)
        keys = [each["path"][own:] for each in found["objects"]]
        prefixes = [str(each)[own:] for each in found["common_prefixes"]]
        self.meter.add(max(0, -(-(len(keys) + len(prefixes)) // self._page()) - 1))
        return keys, prefixes

    def _path_of(self, prefix: str | None) -> str | None:
        """The path in the bucket of what is listed."""
        return f"{self._prefix}{prefix or ''}".removesuffix("/") or None

    def _page(self) -> int:
        return _MOST_LISTED.get(self.kind, 1000)

    def _turn(self, nbytes: int | None) -> Turn:
        """Return a context of one request, which waits for its turn. What is in this process's memory takes none."""
        return Turn(None) if self.kind == "MemoryStore" else self.turns.turn(nbytes, is_refusal)

    def _again(
        self,
        call: Callable[[], T],
        *,
        requests: int = 1,
        once: bool = False,
        nbytes: int | None = 0,
        length: Callable[[T], int] | None = None,
    ) -> T:
        """What ``call`` gives. ``nbytes``: that it sends, or asks for; ``length`` tells those that came."""
        made, uncertain, begin = 0, False, time.monotonic()
        for last in attempts(self.patience):
            try:
                with self._turn(nbytes) as turn, RUNTIME:
                    result = call()
                    if length is not None:
                        turn.nbytes = turn.answered = length(result)
            except Exception as error:
                sent = repetitions(error)
                self.meter.add(sent)
                made, uncertain = made + sent, uncertain or is_uncertain(error)
                if not is_passing(error):
                    raise
                if once or last:
                    raise GivenUp(made, time.monotonic() - begin, is_uncertain=uncertain) from error
            else:
                self.meter.add(requests)
                return result
        raise AssertionError("unreachable")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_obstore": None} | ({} if self.options is None else {"inner": None})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._obstore = need("obstore", "an object store")
        if self.options is not None:
            self.inner = self.options.client()


R = TypeVar("R")


class _Pool:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None

    def executor(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(MOST_REQUESTS, thread_name_prefix="zardine-store")
            return self._executor


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def concurrently(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call ``work`` with each item, all at the same time; return the results in their order, or raise the first error.

    ``work`` must not call this function: it could wait for a thread that waits for it.
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    try:
        others = [_pool.executor().submit(work, item) for item in items[1:]]
    except RuntimeError:  # the interpreter is shutting down
        return [work(item) for item in items]
    first = work(items[0])
    return [first, *(other.result() for other in others)]


__all__ = ["ObjectClient", "concurrently"]
