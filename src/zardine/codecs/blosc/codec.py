"""``blosc``: the container format of c-blosc 1, with one of six compressors inside and shuffling before.

Specification: "Blosc codec", version 1.0; c-blosc "README_CHUNK_FORMAT".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, ChunkSpec, SizeLimit
from zardine.codecs.blosc.header import MAX_INPUT, OVERHEAD, blosc_fault, blosc_nbytes
from zardine.codecs.blosc.in_kernel import MISSING, compress, decompress, is_snappy
from zardine.codecs.configured import Check, Configured, choice, integer
from zardine.codecs.options import BloscCname, BloscShuffle
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.json_document import JSON, Problems, is_integer
from zardine.public_names import public

_SHUFFLE_NUMBERS = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


@public("zardine.codecs")
@dataclass(frozen=True, slots=True, kw_only=True)
class BloscCodec(Configured, BytesBytesCodec):
    """Blosc compression with ``clevel`` from 0 (stored) to 9 (smallest).

    ``typesize`` and ``shuffle`` left ``None`` are chosen for the data type when an array is made, and recorded:
    bits are shuffled for elements of one byte, bytes for larger ones. ``blocksize`` 0 lets the library choose.
    """

    typesize: int | None = None
    cname: str = "zstd"
    clevel: int = 5
    shuffle: str | None = None
    blocksize: int = 0

    name: ClassVar[str] = "blosc"
    pads: ClassVar[bool] = False
    MEMBERS: ClassVar[Mapping[str, Check]] = {
        "typesize": integer(1, 2**31 - 1),
        "cname": choice(BloscCname),
        "clevel": integer(0, 9),
        "shuffle": choice(BloscShuffle),
        "blocksize": integer(0, 2**31 - 1),
    }
    REQUIRED = ("cname", "clevel", "shuffle", "blocksize")
    AUTOMATIC = ("typesize", "shuffle")

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """As the base class, but ``typesize`` may only be missing where nothing is shuffled."""
        given = configuration or {}
        if given.get("shuffle") == "noshuffle":  # then "the value is ignored", whatever it is
            usable = is_integer(given.get("typesize")) and 0 < given["typesize"] < 2**31
            given = {name: value for name, value in given.items() if name != "typesize" or usable}
        elif "typesize" not in given:
            problems.add(f"{place}.typesize", 'required member is missing (unless "shuffle" is "noshuffle")')
            super(BloscCodec, cls).from_json(given, place, problems)
            return None
        return super(BloscCodec, cls).from_json(given, place, problems)

    def configuration(self) -> dict[str, JSON] | None:
        """Every member; what is still automatic as ``encode`` takes it."""
        return {
            "typesize": self.typesize or 1,
            "cname": self.cname,
            "clevel": self.clevel,
            "shuffle": self.shuffle or "bitshuffle",
            "blocksize": self.blocksize,
        }

    def resolve(self, spec: ChunkSpec) -> Self:
        """Take ``typesize`` from the element's size, 1 where that varies, and ``shuffle`` from ``typesize``."""
        item = spec.data_type.item_size or 1
        typesize = self.typesize or item
        return replace(self, typesize=typesize, shuffle=self.shuffle or ("bitshuffle" if item == 1 else "shuffle"))

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """What does not become smaller is stored as it is, after a header of 16 bytes; some more is left to the header
        to refuse, which says what is wrong."""
        return nbytes + 16 * OVERHEAD

    def encode(self, data: BytesLike) -> BytesLike:
        """One blosc buffer; at most 2 GiB - 17 bytes fit."""
        if len(data) > MAX_INPUT:
            raise EncodeError(f"{len(data)} bytes are too many for blosc, which takes {MAX_INPUT}", codec=self.name)
        shuffle = _SHUFFLE_NUMBERS[self.shuffle or "bitshuffle"]
        typesize = self.typesize or 1
        typesize = typesize if typesize <= 255 else 1  # c-blosc's own rule for elements over 255 bytes
        made = compress(data, self.cname, self.clevel, shuffle, typesize, self.blocksize) if len(data) else None
        if made is not None:
            return made
        if self.cname == "snappy":
            raise EncodeError(MISSING, codec=self.name)
        try:
            encoded: bytes = _library().compress(
                data, self.cname.encode(), self.clevel, shuffle, self.blocksize, typesize
            )
        except (RuntimeError, ValueError) as error:
            raise EncodeError(f"blosc failed: {error}", codec=self.name) from None
        return encoded

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """The content; the header is checked before the library sees the data."""
        return decompress_blosc(data, limit, codec=self.name)


def decompress_blosc(data: BytesLike, limit: SizeLimit, *, codec: str) -> BytesLike:
    """Decompress one blosc buffer that fills ``data`` to no more than ``limit.nbytes`` bytes."""
    whole = limit if limit.claimed is None else SizeLimit(limit.claimed, True)
    if reason := blosc_fault(data, whole):
        if len(data) >= OVERHEAD and reason == whole.check(blosc_nbytes(data)):
            whole.enforce(blosc_nbytes(data), codec)
        raise ChunkDecodeError(reason, codec=codec)
    limit.enforce(blosc_nbytes(data), codec)
    if blosc_nbytes(data) == 0:  # the library takes this for an error
        return b""
    by_kernel = decompress(data, blosc_nbytes(data), codec=codec)
    if by_kernel is not None:
        return by_kernel
    if is_snappy(data):
        raise ChunkDecodeError(MISSING, codec=codec)
    try:
        decoded: bytes = _library().decompress(data)
    except (RuntimeError, ValueError) as error:
        raise ChunkDecodeError(f"not valid blosc data: {error}", codec=codec) from None
    limit.enforce(len(decoded), codec)
    return decoded


@cache
def _library() -> Any:
    """numcodecs' c-blosc, set to one thread per call: several would store the blocks in a random order."""
    from numcodecs import blosc

    blosc.use_threads = False
    return blosc


def use_one_thread() -> None:
    """Let c-blosc work in the calling thread only; see :func:`_library`."""
    _library()
