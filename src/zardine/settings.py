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
    "array.write_strategy": "rewrite",  # how a shard is changed: rewrite, append or in_place
    "array.chunk_order": "as_written",  # of inner chunks in shards that are written whole: c, f, morton or as_written
    "array.most_unused": 0.5,  # share of a shard that may be unused before it is written anew
    "array.cache": 0,  # bytes of decoded chunks that an opened array keeps
    "array.allow_unsafe_pickle_decode": False,  # whether chunks of Zarr v2 that are pickles may be read
    "array.checksum": True,  # every inner chunk chain ends with crc32c
    # work
    "threads": None,  # None: one for each processor
    "window_bytes": 256 * 2**20,  # memory of one call beside its result, about
    "speculative_read": False,  # whether a small shard is read whole where index and chunks would be two requests
    # caches
    "cache.shard_index_bytes": 64 * 2**20,
}
"""Every setting with its default."""

_FOREIGN = (
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
)
"""Settings of zarr-python that code written for it may set; they are kept and have no effect here."""

_ALIASES: Final[Mapping[str, str]] = {"threading.max_workers": "threads"}
"""Settings of zarr-python that have an effect here, under another name."""

_NOT_GIVEN: Final[Any] = object()


class Config:
    """The settings. Reading is cheap; changes hold for all threads."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.reset()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Every setting with its default."""
        return DEFAULTS

    def get(self, key: str, default: Any = _NOT_GIVEN, override_with: Any = None) -> Any:
        """The value of a setting. ``override_with`` wins if it is not ``None``.

        Where the setting is unknown, or is one of zarr-python that was not set: ``default``, or ``KeyError`` without.
        """
        if override_with is not None:
            return override_with
        if default is not _NOT_GIVEN and key not in self:
            return default
        return self[key]

    def set(self, arg: Mapping[str, Any] | None = None, **kwargs: Any) -> _Restore:
        """Change settings now; ``with config.set({...}):`` changes them for the block.

        Nested mappings count as dotted names. Settings that neither zardine nor zarr-python has raise ``KeyError``.
        """
        if arg is not None and not isinstance(arg, Mapping):
            raise TypeError(f"settings are a mapping of names to values, not {type(arg).__name__}")
        given = {**(arg or {}), **{name.replace("__", "."): value for name, value in kwargs.items()}}
        flat = {_ALIASES.get(name, name): value for name, value in _flatten(given)}
        for name in flat:
            if name not in DEFAULTS and not name.startswith(_FOREIGN):
                raise KeyError(_explain_unknown(name))
        old = {name: self._values.get(name, _ABSENT) for name in flat}
        self._values = {**self._values, **flat}
        return _Restore(self, old)

    def reset(self) -> None:
        """Back to the defaults and what the environment says."""
        values = dict(DEFAULTS)
        for name in DEFAULTS:
            text = os.environ.get("ZARDINE_" + name.upper().replace(".", "__"))
            if text is not None:
                try:
                    values[name] = json.loads(text)
                except ValueError:
                    values[name] = text
        self._values = values

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """All settings. A change makes a new mapping, so that the same one always says the same."""
        return self._values

    def to_dict(self) -> dict[str, Any]:
        """A copy of all settings."""
        return dict(self._values)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._values[_ALIASES.get(key, key)]
        except KeyError:
            raise KeyError(_explain_unknown(key)) from None

    def __contains__(self, key: object) -> bool:
        return key in self._values or key in _ALIASES

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


def _explain_unknown(name: str) -> str:
    from difflib import get_close_matches

    if name.startswith(_FOREIGN):
        return f"{name!r} is a setting of zarr-python that has no effect here and was not set"
    close = get_close_matches(name, DEFAULTS, n=2)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"unknown setting {name!r}{hint}"


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
