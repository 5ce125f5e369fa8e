"""An opened array as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from zardine.engine.array_config import ArrayConfig
from zardine.engine.chunk_cache import ChunkCache
from zardine.engine.freshness import Watch
from zardine.engine.layout import ArrayLayout
from zardine.engine.write_buffer import WriteBuffer
from zardine.frozen import with_fields
from zardine.metadata.documents import ArrayMetadata
from zardine.stores.base import Store

_serial = count()


@dataclass(frozen=True, slots=True, eq=False)
class ArrayHandle:
    """Where an array is (``store`` and node ``path``), how it lies there, and how this process reads and writes it."""

    store: Store
    path: str
    layout: ArrayLayout
    config: ArrayConfig
    cache_space: int = field(default_factory=lambda: next(_serial))
    """Names this opening of the array in caches."""
    chunk_cache: ChunkCache | None = None
    """Decoded chunks, where ``config.cache`` asks for it."""
    is_shared: bool = True
    """Whether others may write to the array, or change its shape and shards, meanwhile.

    Reads and writes look at the document then, and what objects hold beyond the shape stays: another writer may have
    made the array longer. ``False`` while an array is being made or resharded, when nobody else knows of it.
    """
    buffer: WriteBuffer | None = None
    """Writes that wait, within ``Array.buffered``."""
    usual_nbytes: int | None = None
    """Bytes that an encoded chunk takes as a rule, from who knows that where its elements vary in length."""
    watch: Watch = None  # type: ignore[assignment]  # made below
    """What is known of the document; shared by all that this handle becomes within its generation."""

    key_form: str | None = field(init=False)
    """What the keys of objects are made of, by ``%``, where the encoding of keys says that."""
    write_empty_chunks: bool = field(init=False)
    """Whether chunks that equal the fill value are stored: if that is wanted, or others may not know the value."""

    def __post_init__(self) -> None:
        put, layout, config = object.__setattr__, self.layout, self.config
        metadata = layout.metadata
        put(self, "write_empty_chunks", config.write_empty_chunks or not metadata.fill_is_defined)
        form = layout.key_form
        if form is not None and self.path:
            form = f"{self.path.replace('%', '%%')}/{form}"
        put(self, "key_form", form)
        if self.watch is None:
            put(self, "watch", Watch(self.path, metadata))
        kept = 0 if self.chunk_cache is None else self.chunk_cache.limit
        if kept != config.cache:
            put(self, "chunk_cache", ChunkCache(config.cache) if config.cache else None)

    def key(self, coordinates: Sequence[int]) -> str:
        """The store key of the object at these grid coordinates."""
        if self.key_form is not None:
            return self.key_form % tuple(coordinates)
        name = self.layout.keys.encode(coordinates)
        return f"{self.path}/{name}" if self.path else name

    def keys(self, objects: Iterable[tuple[int, ...]]) -> list[str]:
        """The store keys of several objects."""
        form = self.key_form
        return [form % each for each in objects] if form is not None else list(map(self.key, objects))

    @property
    def order(self) -> Literal["C", "F"]:
        """Memory layout of what reading returns: that of the elements in the chunks for Zarr v2 and v1."""
        older = self.layout.metadata.older
        return self.config.order if older is None else "F" if older.order == "F" else "C"

    def with_layout(self, layout: ArrayLayout) -> ArrayHandle:
        """The same array after a change of its metadata."""
        watch = Watch(self.path, layout.metadata)
        return replace(self, layout=layout, cache_space=next(_serial), chunk_cache=None, watch=watch)

    def with_shape(self, metadata: ArrayMetadata) -> ArrayHandle:
        """The same array after its ``metadata`` changed in shape, grid or attributes only: its objects are the same."""
        cache = ChunkCache(self.config.cache) if self.config.cache else None
        return with_fields(self, layout=self.layout.with_shape(metadata), chunk_cache=cache)

    def with_config(self, config: ArrayConfig) -> ArrayHandle:
        """The same array, used in another way."""
        return replace(self, config=config)
