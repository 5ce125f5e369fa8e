"""Settings of this process: ``zardine.config``.

``config.get("array.write_empty_chunks")`` reads, ``config.set({...})`` changes; used as a context manager, ``set`` puts
the old values back. An environment variable gives a setting its first value: ``ZARDINE_ARRAY__WRITE_EMPTY_CHUNKS=1``
(dots become two underscores).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from numbers import Real
from operator import index as as_index
from string import ascii_letters
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
    "speculative_read": True,  # whether a small shard far away is read with its index, so that this is one request
    "allow_lost_updates": False,  # whether parts of shards are changed where stores have no conditional writes
    # caches
    "cache.shard_index_bytes": 64 * 2**20,
    # what stored bytes may ask for
    "limits.chunk_bytes": None,  # of one chunk, encoded or decoded; None: half of the memory
    "limits.text_bytes": 2**30,  # decoded, of one chunk of text or bytes
    "limits.unused_bytes": 64 * 2**20,  # of one chunk, beyond what its values need, where a format allows any number
    "limits.document_bytes": 256 * 2**20,  # of one metadata document
}
"""Every setting with its default."""

FOREIGN: Final[Mapping[str, Any]] = {
    "array.rectilinear_chunks": True,
    "array.sharding_coalesce_max_bytes": 16 * 2**20,
    "array.sharding_coalesce_max_gap_bytes": 2**20,
    "array.target_shard_size_bytes": None,
    "async.concurrency": 10,
    "async.timeout": None,
    "buffer": "zarr.buffer.cpu.Buffer",
    "codec_pipeline.batch_size": 1,
    "codec_pipeline.max_workers": None,
    "codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "json_indent": 2,
    "ndbuffer": "zarr.buffer.cpu.NDBuffer",
}
"""Settings of zarr-python that code written for it reads or sets; they are kept and have no effect here."""

_FOREIGN = (*FOREIGN, "array.v2_default_", "async.", "codec_pipeline.", "codecs.")

_ALIASES: Final[Mapping[str, str]] = {"threading.max_workers": "threads"}
"""Settings of zarr-python that have an effect here, under another name."""

_CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "default_zarr_format": (3, 2, 1),
    "array.order": ("C", "F"),
    "array.write_strategy": ("rewrite", "append", "in_place"),
    "array.chunk_order": ("c", "f", "morton", "as_written"),
}
_SIZES: Final = (
    *("array.cache", "window_bytes"),
    *("limits.chunk_bytes", "limits.text_bytes", "limits.unused_bytes", "limits.document_bytes"),
)
_COUNTS: Final = ("threads", "cache.shard_index_bytes")
_FLAGS: Final = tuple(name for name, value in DEFAULTS.items() if isinstance(value, bool))

_NOT_GIVEN: Final[Any] = object()


class Config:
    """The settings. Reading is cheap; changes hold for all threads."""

    def __init__(self) -> None:
        self.snapshot: Mapping[str, Any] = {}
        """All settings. A change makes a new mapping, so that the same one always says the same."""
        self.reset()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Every setting with its default."""
        return DEFAULTS

    def get(self, key: str, default: Any = _NOT_GIVEN, override_with: Any = None) -> Any:
        """The value of a setting. ``override_with`` wins if it is not ``None``.

        A name that others begin with gives all of these, nested: ``config.get("array")["order"]``. Where the setting is
        unknown: ``default``, or ``KeyError`` without.
        """
        if override_with is not None:
            return override_with
        if default is not _NOT_GIVEN and key not in self:
            return default
        return self[key]

    def set(self, arg: Mapping[str, Any] | None = None, **kwargs: Any) -> _Restore:
        """Change settings now; ``with config.set({...}):`` changes them for the block.

        Nested mappings count as dotted names. Settings that neither zardine nor zarr-python has raise ``KeyError``,
        values that a setting cannot have ``ValueError`` or ``TypeError``; then nothing is changed.
        """
        if arg is not None and not isinstance(arg, Mapping):
            raise TypeError(f"settings are a mapping of names to values, not {type(arg).__name__}")
        given = {**(arg or {}), **{name.replace("__", "."): value for name, value in kwargs.items()}}
        flat = {_ALIASES.get(name, name): value for name, value in _flatten(given)}
        for name in flat:
            if name not in DEFAULTS and not name.startswith(_FOREIGN):
                raise KeyError(_explain_unknown(name))
        for name, value in flat.items():
            check_setting(name, value)
        old = {name: self.snapshot.get(name, _ABSENT) for name in flat}
        self.snapshot = {**self.snapshot, **flat}
        return _Restore(self, old)

    def reset(self) -> None:
        """Back to the defaults and what the environment says."""
        values = {**DEFAULTS, **FOREIGN}
        for name in DEFAULTS:
            text = os.environ.get("ZARDINE_" + name.upper().replace(".", "__"))
            if text is not None:
                values[name] = _from_environment(name, text)
        self.snapshot = values

    refresh = reset

    def pprint(self, **kwargs: Any) -> None:
        """Print all settings; arguments are those of :func:`pprint.pprint`, as ``stream`` and ``width``."""
        from pprint import pprint

        pprint(self.to_dict(), **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """A copy of all settings."""
        return dict(self.snapshot)

    def __getitem__(self, key: str) -> Any:
        try:
            return self.snapshot[_ALIASES.get(key, key)]
        except KeyError:
            below = self._below(key)
            if not below:
                raise KeyError(_explain_unknown(key)) from None
            return below

    def __contains__(self, key: object) -> bool:
        return key in self.snapshot or key in _ALIASES or bool(isinstance(key, str) and self._below(key))

    def __repr__(self) -> str:
        return f"Config({self.snapshot})"

    def _below(self, key: str) -> dict[str, Any]:
        """The settings whose names begin with ``key`` and a dot, nested."""
        values = {**self.snapshot, **{name: self.snapshot[own] for name, own in _ALIASES.items()}}
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name.startswith(f"{key}."):
                *parts, last = name[len(key) + 1 :].split(".")
                inner = found
                for part in parts:
                    inner = inner.setdefault(part, {})
                inner[last] = value
        return found

    def _restore(self, old: Mapping[str, Any]) -> None:
        values = {**self.snapshot, **old}
        self.snapshot = {name: value for name, value in values.items() if value is not _ABSENT}


_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _from_environment(name: str, text: str) -> Any:
    """Return what a variable says: JSON, or else text; ``True`` and ``False`` in the words that are usual for them."""
    if name in _FLAGS and (word := text.strip().lower()) in _WORDS:
        return _WORDS[word]
    try:
        return json.loads(text)
    except ValueError:
        return text


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


def check_setting(name: str, value: Any, called: str | None = None) -> None:
    """Raise ``ValueError`` or ``TypeError`` for a value that a setting, ``called`` so in the text, cannot have."""
    called = called or name
    if name in _CHOICES:
        if isinstance(value, bool) or not any(isinstance(value, type(c)) and c == value for c in _CHOICES[name]):
            *others, last = map(repr, _CHOICES[name])
            text = f"one of {', '.join([*others, last])}" if len(others) > 1 else f"{others[0]} or {last}"
            raise ValueError(f"{called} is {text}, not {value!r}")
    elif name in _FLAGS:
        if type(value).__name__ not in ("bool", "bool_") and not (isinstance(value, int) and value in (0, 1)):
            raise ValueError(f"{called} is True or False, not {value!r}")
    elif name in _SIZES:
        try:
            parse_bytes(value)
        except TypeError:
            raise TypeError(f"{called} is a number of bytes such as 1000000 or '256 MiB', not {value!r}") from None
        except ValueError as error:
            raise ValueError(f"{called}: {error}") from None
    elif name in _COUNTS:
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise TypeError(f"{called} is None or an integer, not {value!r}")
        if value is not None and value < 0 and name != "threads":
            raise ValueError(f"{called} is 0 or more, not {value!r}")
    elif name == "array.most_unused":
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{called} is a share from 0 to 1, not {value!r}")
        if not 0 <= float(value) <= 1:
            raise ValueError(f"{called} is a share from 0 to 1, not {value!r}")


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_bytes(size: int | str | None) -> int:
    """A number of bytes, or text such as ``"256 MiB"`` or ``"1.5 GB"``; ``None`` means 0."""
    count: int | None = None
    if isinstance(size, str):
        number = size.strip().rstrip(ascii_letters)
        unit = _UNITS.get(size.strip()[len(number) :].upper())
        with suppress(ValueError):
            count = None if unit is None else int(float(number) * unit)
    else:
        count = 0 if size is None else as_index(size)
    if count is None or count < 0:
        raise ValueError(f"{size!r} is not a number of bytes such as 1000000 or '256 MiB'")
    return count


config: Final = Config()


def is_on(name: str) -> bool:
    """Return what a setting says that is true or false. Raises ``ValueError`` where the environment says neither."""
    value = config.snapshot[name]
    if value is not True and value is not False:
        check_setting(name, value)
    return bool(value)


def thread_count() -> int:
    """How many threads one call may use."""
    threads = config.snapshot["threads"]
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(threads))
