"""Settings of this process: ``zardine.config``.

``config.get("array.write_empty_chunks")`` reads, ``config.set({...})`` changes; used as a context manager, ``set`` puts
the old values back. An environment variable gives a setting its first value: ``ZARDINE_ARRAY__WRITE_EMPTY_CHUNKS=1``
(dots become two underscores).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

DEFAULTS: Final[Mapping[str, Any]] = {
    "default_zarr_format": 3,
    # new arrays
    "array.order": "C",  # memory layout of the arrays that reading returns
    "array.write_empty_chunks": False,
    "array.read_missing_chunks": True,
    "array.checksum": True,  # every inner chunk chain ends with crc32c
    # work
    "threads": None,  # None: one for each processor
    # caches
    "cache.shard_index_bytes": 64 * 2**20,
}
"""Every setting with its default."""

_FOREIGN = (
    "array.allow_unsafe_pickle_decode",
    "array.rectilinear_chunks",
    "array.sharding_coalesce_",
    "array.target_shard_size_bytes",
    "array.v2_default_",
    "async.",
    "buffer",
    "codec_pipeline.",
    "codecs.",
    "json_indent",
    "ndbuffer",
    "threading.max_workers",
)
"""Settings of zarr-python that code written for it may set; they are kept and have no effect here."""


class Config:
    """The settings. Reading is cheap; changes hold for all threads."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.reset()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Every setting with its default."""
        return DEFAULTS

    def get(self, name: str, default: Any = None, override_with: Any = None) -> Any:
        """The value of a setting; ``default`` where it is unknown. ``override_with`` wins if it is not ``None``."""
        if override_with is not None:
            return override_with
        return self._values.get(name, default)

    def set(self, values: Mapping[str, Any] | None = None, **more: Any) -> _Restore:
        """Change settings now; ``with config.set({...}):`` changes them for the block.

        Nested mappings count as dotted names. Settings that neither zardine nor zarr-python has raise ``KeyError``.
        """
        flat = dict(_flatten({**(values or {}), **{name.replace("__", "."): value for name, value in more.items()}}))
        for name in flat:
            if name not in DEFAULTS and not name.startswith(_FOREIGN):
                from difflib import get_close_matches

                close = get_close_matches(name, DEFAULTS, n=2)
                hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
                raise KeyError(f"unknown setting {name!r}{hint}")
        old = {name: self._values.get(name, _ABSENT) for name in flat}
        self._values = {**self._values, **flat}
        return _Restore(self, old)

    def reset(self) -> None:
        """Back to the defaults and what the environment says."""
        self._values = dict(DEFAULTS)
        for name in DEFAULTS:
            text = os.environ.get("ZARDINE_" + name.upper().replace(".", "__"))
            if text is not None:
                try:
                    self._values[name] = json.loads(text)
                except ValueError:
                    self._values[name] = text

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __repr__(self) -> str:
        return f"Config({self._values})"

    def _restore(self, old: Mapping[str, Any]) -> None:
        values = {**self._values, **old}
        self._values = {name: value for name, value in values.items() if value is not _ABSENT}


class _Restore:
    def __init__(self, config: Config, old: Mapping[str, Any]) -> None:
        self._config = config
        self._old = old

    def __enter__(self) -> Config:
        return self._config

    def __exit__(self, *error: object) -> None:
        self._config._restore(self._old)


_ABSENT = object()


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


config: Final = Config()


def thread_count() -> int:
    """How many threads one call may use."""
    threads = config["threads"]
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(threads))
