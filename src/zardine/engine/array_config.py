"""How one opened array is read and written: choices of this process that no metadata records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from zardine.public_names import public
from zardine.settings import check_setting, config
from zardine.settings import parse_bytes as parse_bytes

WriteStrategy: TypeAlias = Literal["rewrite", "append", "in_place"]


@public("zardine")
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayConfig:
    """Run-time choices. ``Array.with_config`` gives the same array with other ones."""

    order: Literal["C", "F"] = "C"
    """Memory layout of arrays that reading returns: ``"C"`` or ``"F"``."""
    write_empty_chunks: bool = False
    """Whether chunks that equal the fill value are stored all the same."""
    read_missing_chunks: bool = True
    """Whether chunks that are not stored read as the fill value; else reading them is an error."""
    write_strategy: WriteStrategy = "rewrite"
    """How a shard is changed of which a part stays; see ``docs/editing.md``."""
    chunk_order: Literal["c", "f", "morton", "as_written"] = "as_written"
    """Order of inner chunks in shards that are written whole; where it says ``as_written``, new ones are in C order."""
    most_unused: float = 0.5
    """Share of a shard (0 to 1) that editing may leave unused before it is written anew."""
    cache: int = 0
    """Bytes of decoded chunks to keep in memory; may be given as text, ``"256 MiB"``."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_setting(f"array.{field.name}", getattr(self, field.name), field.name)
        object.__setattr__(self, "cache", parse_bytes(self.cache))

    @classmethod
    def from_settings(cls) -> ArrayConfig:
        """What ``zardine.config`` says now."""
        global _last
        settings = config.snapshot
        if _last is None or _last[0] is not settings:
            _last = settings, cls(**{field.name: config[f"array.{field.name}"] for field in fields(cls)})
        return _last[1]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArrayConfig:
        """Return what ``zardine.config`` says now, with some choices changed."""
        return cls.from_settings().changed(data)

    def changed(self, changes: Mapping[str, Any]) -> ArrayConfig:
        """With some choices changed. Raises ``TypeError`` for unknown names."""
        if not isinstance(changes, Mapping):
            raise TypeError(f"config is a mapping of names to values, not {type(changes).__name__}")
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known and not name.startswith("sharding_coalesce_"):
                raise TypeError(f"unknown array setting {name!r}; known are {', '.join(sorted(known))}")
        return replace(self, **{name: value for name, value in changes.items() if name in known})

    def to_dict(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)


_last: tuple[Mapping[str, Any], ArrayConfig] | None = None
"""The settings of ``zardine.config`` that were looked at last, and what they say."""

ArrayConfigLike: TypeAlias = ArrayConfig | Mapping[str, Any] | None


def parse_array_config(value: ArrayConfigLike) -> ArrayConfig:
    """A user's ``config=`` argument: ``None``, an :class:`ArrayConfig`, or some of its fields by name."""
    if isinstance(value, ArrayConfig):
        return value
    base = ArrayConfig.from_settings()
    if value is None:
        return base
    if not isinstance(value, Mapping):
        raise TypeError(f"config is a mapping of names to values, not {type(value).__name__}")
    return base.changed(value)
