"""``zardine.advise``: chunk and shard shapes for the reads that one has in mind, with what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from math import ceil, inf, prod
from typing import TYPE_CHECKING, Any

from zardine.creation.chunk_shapes import choose_grid
from zardine.creation.options import DTypeLike
from zardine.creation.v3 import parse_shape
from zardine.data_types import data_type_for
from zardine.stores.base import FAR, NEAR, ReadCost, Store
from zardine.stores.resolve import StoreLike
from zardine.tools.advice_costs import Access, Cost, Layout, cost_of, least_seconds
from zardine.tools.arguments import place_of

if TYPE_CHECKING:
    from zardine.nodes.array import Array

COSTS: Mapping[str, ReadCost] = {
    "local": NEAR,
    "s3": FAR,
}
"""What :class:`~zardine.storage.LocalStore` and stores of objects far away say that reading costs."""

_LEAST, _MOST = 2**14, 2**24
"""Bytes of a chunk: fewer compress badly and cost more in the index than they spare, more take long to decode."""

_SHARDS = {"local": 2**26, "s3": 2**27}
"""Bytes of a shard in memory: as many as an update, or a writer's memory, can bear."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One layout, and what each kind of read costs with it."""

    name: str
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    chunk_nbytes: int
    object_nbytes: int
    objects: int
    index_nbytes: int
    reads: tuple[Cost, ...]
    relative: float
    """How many times longer reads take, on weighted average, than if each lay in one piece."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Layouts to choose among, the proposed one first, and the reasons for it in words."""

    shape: tuple[int, ...]
    dtype: str
    store: str
    choices: tuple[Choice, ...]
    reasons: tuple[str, ...]

    @property
    def chunks(self) -> tuple[int, ...]:
        """The proposed chunks."""
        return self.choices[0].chunks

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The proposed shards, or ``None`` for none."""
        return self.choices[0].shards

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as JSON has it."""
        return {"chunks": self.chunks, "shards": self.shards, **asdict(self)}


def advise(
    array: StoreLike | Array | int | tuple[int, ...],
    dtype: DTypeLike | None = None,
    *,
    path: str | None = None,
    access: str | Iterable[str] | Mapping[str, float] | None = None,
    store: str | Store | ReadCost = "local",
    ratio: float | None = None,
) -> Advice:
    """Propose chunks and shards for a stored array, or for a shape and a ``dtype``.

    ``access`` names the reads that count, with weights if it is a mapping: ``"point"``, ``"all"``, ``"plane:0"`` (one
    index of axis 0, all of the others), ``"line:2"`` (all of axis 2 at one index of the others), ``"box:64,64,64"``.
    Without it every plane counts, and points. ``store`` is ``"local"``, ``"s3"``, a store, or its
    :class:`~zardine.stores.base.ReadCost`. ``ratio`` is stored bytes for each byte in memory: of a stored array that
    of its first objects, else 1. Weights and ``ratio`` are finite numbers above 0, else ``ValueError`` is raised.

    Nothing is written. Every number is an average over all places of a read in the array, with nothing cached.
    """
    if ratio is not None and not 0 < ratio < inf:
        raise ValueError(f"ratio is stored bytes for each byte in memory, a number above 0, not {ratio}")
    present = None
    if _is_shape(array):
        shape = parse_shape(array)
        if dtype is None:
            raise TypeError("a shape needs a dtype, too")
        if path is not None:
            raise TypeError(f"path is for what is stored: a shape has no node {path!r} in it")
        data_type = data_type_for(dtype)
        item_size, name = data_type.item_size or 16, str(data_type.dtype)
    else:
        if dtype is not None:
            text = f"{array!r} is no shape such as (10, 10), and a" if isinstance(array, str) else "a"
            raise TypeError(f"{text} stored array has a dtype of its own: leave {dtype!r} out, or give a shape")
        opened = _opened(array, path)
        shape, name = opened.shape, str(opened.dtype)
        item_size = opened.metadata.data_type.item_size or 16
        ratio = _measured(opened) if ratio is None else ratio
        present = opened
    if not shape or 0 in shape:
        raise ValueError(f"an array of shape {shape} is one chunk, or none: there is nothing to choose")
    where, cost = _cost_model(store)
    reads = _parse(access, shape)
    base = Layout(shape, item_size, tuple(1 for _ in shape), None, 1.0 if ratio is None else float(ratio))
    best = _grow_shards(_best_chunks(base, reads, cost), reads, cost, _most_of_shard(cost))
    choices = [_choice("proposed", best, reads, cost)]
    if best.shards is not None:
        choices.append(_choice("the same chunks without shards", replace(best, shards=None), reads, cost))
    choices.append(_choice('shards="auto"', _automatic(base), reads, cost))
    if present is not None:
        now = _present(present, base)
        if now is not None:
            choices.append(_choice("as it is now", now, reads, cost))
    return Advice(shape, name, where, tuple(choices), tuple(_reasons(best, choices, cost, where)))


def shards_for(
    shape: tuple[int, ...], item_size: int, chunks: tuple[int, ...], *, cost: ReadCost, most: float = inf
) -> tuple[int, ...] | None:
    """Return the shards that :func:`advise` proposes for these ``chunks``, of up to ``most`` bytes; ``None`` for none.

    ``cost`` is what reading from the store costs.
    """
    layout = Layout(shape, item_size, chunks, None, 1.0)
    return _grow_shards(layout, _parse(None, shape), cost, int(min(most, _most_of_shard(cost)))).shards


def _most_of_shard(cost: ReadCost) -> int:
    return _SHARDS["local" if cost.latency < 1e-3 else "s3"]


def _best_chunks(base: Layout, reads: list[Access], cost: ReadCost) -> Layout:
    """Return the chunk shape with the cheapest reads, looked for by doubling and halving axes from several starts."""
    best: tuple[float, Layout] | None = None
    for start in _starts(base, reads):
        layout = start
        score = _chunk_score(layout, reads, cost)
        while True:
            tried = min(((_chunk_score(each, reads, cost), each) for each in _neighbours(layout)), key=_first)
            if not tried[0] < score * 0.9999:
                break
            score, layout = tried
        if best is None or score < best[0]:
            best = score, layout
    assert best is not None
    return best[1]


def _starts(base: Layout, reads: list[Access]) -> Iterator[Layout]:
    for wanted in [base.shape, *(read.box for read in reads)]:
        chunks = [_power(min(w, n)) for w, n in zip(wanted, base.shape, strict=True)]
        while prod(chunks) * base.item_size > 2**18 and max(chunks) > 1:
            axis = max(range(len(chunks)), key=lambda i: chunks[i])
            chunks[axis] //= 2
        yield replace(base, chunks=tuple(chunks))


def _neighbours(layout: Layout) -> Iterator[Layout]:
    chunks = layout.chunks
    for axis, size in enumerate(chunks):
        larger = min(size * 2, _power(layout.shape[axis]))
        for new in {larger, max(1, size // 2)} - {size}:
            yield replace(layout, chunks=(*chunks[:axis], new, *chunks[axis + 1 :]))
            for other, own in enumerate(chunks):
                if other != axis and new > size and own > 1:
                    moved = list(chunks)
                    moved[axis], moved[other] = new, own // 2
                    yield replace(layout, chunks=tuple(moved))
    yield layout


def _chunk_score(layout: Layout, reads: list[Access], cost: ReadCost) -> float:
    """Return the relative time of reads from shards so large that requests do not matter; odd chunk sizes cost more."""
    shards = tuple(ceil(n / c) * c for n, c in zip(layout.shape, layout.chunks, strict=True))
    whole = prod(layout.shape) * layout.item_size
    penalty = max(0.0, min(_LEAST, whole) / layout.chunk_nbytes - 1) + max(0.0, layout.chunk_nbytes / _MOST - 1)
    return _relative(replace(layout, shards=shards), reads, cost, index=False) * (1 + penalty)


def _grow_shards(layout: Layout, reads: list[Access], cost: ReadCost, most: int) -> Layout:
    """Return shards of up to ``most`` bytes, grown axis by axis so that reads touch few of them."""
    chunks = layout.chunks
    top = tuple(ceil(n / c) * c for n, c in zip(layout.shape, chunks, strict=True))
    if prod(-(-n // c) for n, c in zip(layout.shape, chunks, strict=True)) == 1:
        return replace(layout, shards=None)
    layout = replace(layout, shards=chunks)
    while True:
        assert layout.shards is not None
        grown = []
        for axis, size in enumerate(layout.shards):
            new = min(size * 2, top[axis])
            if new > size:
                each = replace(layout, shards=(*layout.shards[:axis], new, *layout.shards[axis + 1 :]))
                if each.object_nbytes <= max(most, layout.chunk_nbytes):
                    grown.append((_relative(each, reads, cost), each.object_nbytes, axis, each))
        if not grown:
            return replace(layout, shards=None) if layout.shards == chunks else layout
        layout = min(grown, key=lambda each: each[:3])[3]


def _relative(layout: Layout, reads: list[Access], cost: ReadCost, *, index: bool = True) -> float:
    total = 0.0
    for read in reads:
        found = cost_of(layout, read, cost)
        without = 0.0 if index else found.objects * layout.index_nbytes / cost.bandwidth
        total += read.weight * (found.seconds - without) / least_seconds(layout, read, cost)
    return total / sum(read.weight for read in reads)


def _choice(name: str, layout: Layout, reads: list[Access], cost: ReadCost) -> Choice:
    return Choice(
        name,
        layout.chunks,
        layout.shards,
        layout.chunk_nbytes,
        layout.object_nbytes,
        layout.objects,
        layout.index_nbytes,
        tuple(cost_of(layout, read, cost) for read in reads),
        _relative(layout, reads, cost),
    )


def _reasons(best: Layout, choices: list[Choice], cost: ReadCost, where: str) -> Iterator[str]:
    mine = choices[0]
    needed = {each.access: max(1.0, each.wanted * best.ratio) for each in mine.reads}
    worst = max(mine.reads, key=lambda each: each.nbytes / needed[each.access])
    yield (
        f"Chunks {best.chunks} of {mine.chunk_nbytes:,} bytes: of all shapes tried, reads take least time, on "
        f"weighted average {mine.relative:,.1f} times that of reads of one piece. {worst.access!r} reads most in vain: "
        f"{worst.nbytes / needed[worst.access]:,.1f} times the bytes it needs."
    )
    if best.shards is None:
        why = "all is in one chunk" if mine.objects == 1 else "one chunk is as large as a shard may be"
        yield f"No shards: {why}."
    else:
        yield (
            f"Shards {best.shards} of up to {mine.object_nbytes:,} bytes: {mine.objects:,} objects in place of "
            f"{choices[1].objects:,}. Who has not seen a shard fetches its index first, {mine.index_nbytes:,} bytes."
        )
    yield (
        f"A request to {where!r} takes {cost.latency * 1e3:,.2f} ms, {cost.requests} go at a time. In that time "
        f"{cost.gap:,} bytes flow: gaps up to there are read along."
    )


def _parse(access: str | Iterable[str] | Mapping[str, float] | None, shape: tuple[int, ...]) -> list[Access]:
    if access is None:
        access = ["point", *(f"plane:{axis}" for axis in range(len(shape)))] if len(shape) > 1 else ["point", "all"]
    if isinstance(access, str):
        access = [access]
    pairs = access.items() if isinstance(access, Mapping) else ((each, 1.0) for each in access)
    reads = [Access(text, _box(text, shape), float(weight)) for text, weight in pairs]
    for read in reads:
        if not 0 < read.weight < inf:
            raise ValueError(f"the weight of access {read.name!r} is a number above 0, not {read.weight}")
    if not reads:
        raise ValueError("access names at least one kind of read")
    return reads


def _box(text: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    kind, _, numbers = text.partition(":")
    try:
        values = [int(each) for each in numbers.split(",")] if numbers else []
    except ValueError:
        values = [-1]
    ndim = len(shape)
    if kind == "point" and not numbers:
        return (1,) * ndim
    if kind == "all" and not numbers:
        return shape
    if kind in ("plane", "line") and len(values) == 1 and 0 <= values[0] < ndim:
        axis = values[0]
        chosen = [(i == axis) == (kind == "line") for i in range(ndim)]
        return tuple(n if whole else 1 for n, whole in zip(shape, chosen, strict=True))
    if kind == "box" and len(values) == ndim and all(each > 0 for each in values):
        return tuple(min(w, n) for w, n in zip(values, shape, strict=True))
    if kind in ("plane", "line") and len(values) == 1 and values[0] >= ndim:
        axes = "1 axis, called 0" if ndim == 1 else f"{ndim} axes, called 0 to {ndim - 1}"
        raise ValueError(f"access {text!r}: the array has {axes}")
    if kind == "box" and numbers and all(each > 0 for each in values):
        raise ValueError(f"access {text!r}: the box needs {ndim} lengths, one for each axis, not {len(values)}")
    sizes = ",".join(["64"] * ndim)
    raise ValueError(f"access {text!r} is none of 'point', 'all', 'plane:AXIS', 'line:AXIS' and 'box:{sizes}'")


def _cost_model(store: str | Store | ReadCost) -> tuple[str, ReadCost]:
    if isinstance(store, ReadCost):
        return "the store", store
    if isinstance(store, Store):
        return str(store), store.cost
    if store not in COSTS:
        raise ValueError(f"store is 'local', 's3', a store or a ReadCost, not {store!r}")
    return store, COSTS[store]


def _is_shape(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value))


def _opened(array: Any, path: str | None) -> Array:
    from zardine.api.open import open_array

    store, inner = place_of(array, path)
    return open_array(store, path=inner, mode="r")


def _measured(array: Array) -> float:
    from zardine.engine.stored import stored_objects

    keys = [key for key, _ in islice(stored_objects(array._handle), 16)]
    sizes = [array.store.size(key) or 0 for key in keys]
    return sum(sizes) / (len(sizes) * array._handle.layout.object_nbytes) if sum(sizes) else 1.0


def _present(array: Array, base: Layout) -> Layout | None:
    try:
        return replace(base, chunks=array.chunks, shards=array.shards)
    except NotImplementedError:
        return None


def _automatic(base: Layout) -> Layout:
    grid, inner = choose_grid(base.shape, base.item_size, "auto", "auto")
    shards = tuple(axis.runs[0][0] for axis in grid.axes(base.shape))
    return replace(base, chunks=inner or shards, shards=shards)


def _power(number: int) -> int:
    """Return the least power of two that is not below ``number``, or ``number`` where that would be much more."""
    power = 1 << (number - 1).bit_length()
    return power if power <= number * 1.15 or number < 2 else 1 << (number.bit_length() - 1)


def _first(pair: tuple[float, Layout]) -> float:
    return pair[0]


__all__ = ["Advice", "Choice", "advise"]
