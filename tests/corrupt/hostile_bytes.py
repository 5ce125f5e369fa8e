"""Stored bytes that ask for gigabytes, or for a program to be run, and everything that can be done with them.

``main`` runs in a process of its own with a limit of memory, does each thing with each specimen, and prints a line of
JSON for it: what came of it, the seconds of processor time, and the growth of resident memory.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import resource
import shutil
import struct
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import zstandard

import zardine
from corrupt.hostile import array, peak, reset_peak, zstd_blocks
from corrupt.specimens import CRC, GZIP, LITTLE, ZSTD, sharding
from effort import SOAK
from zardine.errors import ZardineError

MEMORY = 4 * 2**30
"""Bytes of address space that the process may have."""

GIB = 2**30
Chunks = dict[str, "bytes | Sparse"]


@dataclass(frozen=True)
class Sparse:
    """A file of ``size`` bytes that takes no room on the disk, with ``tail`` at its end."""

    size: int
    head: bytes = b""
    tail: bytes = b""


@dataclass(frozen=True)
class Specimen:
    """The documents and objects of one array, and what they may lead to."""

    documents: dict[str, Any]
    objects: Chunks
    refused: tuple[str, ...] = ("ChunkTooLargeError", "ChunkDecodeError", "ShardIndexError", "ChecksumError")
    """Errors that reading may end with."""
    megabytes: float = 64
    """How much memory anything that is done may take."""
    settings: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """What is left out since it takes long, and is right: copying a large file."""

    def store(self, place: Path) -> None:
        for name, document in self.documents.items():
            text = document if isinstance(document, (bytes, Sparse)) else json.dumps(document).encode()
            write(place / name, text)
        for name, stored in self.objects.items():
            write(place / name, stored)


def write(path: Path, content: bytes | Sparse) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    with open(path, "wb") as file:
        file.write(content.head)
        file.truncate(content.size)
        file.seek(content.size - len(content.tail))
        file.write(content.tail)


def v3(
    codecs: list[Any], stored: bytes | Sparse, *, shape: int = 10, chunk: int | None = None, **more: Any
) -> Specimen:
    given = {name: more.pop(name) for name in ("refused", "megabytes", "settings", "without") if name in more}
    document = array(shape, shape, codecs, **more)
    return Specimen({"zarr.json": document}, {"c/0": stored}, **given)


def v2(
    stored: bytes | Sparse, *, shape: int = 10, dtype: Any = "|u1", given: dict[str, Any] | None = None, **more: Any
) -> Specimen:
    document = {
        "zarr_format": 2,
        "shape": [shape],
        "chunks": [shape],
        "dtype": dtype,
        "compressor": None,
        "filters": None,
    }
    return Specimen({".zarray": document | {"fill_value": None, "order": "C"} | more}, {"0": stored}, **(given or {}))


STRINGS = {"data_type": "string", "fill_value": ""}
VLEN = {"name": "vlen-utf8"}


def shard_entry(length: int, codecs: list[Any], at: str = "end") -> Specimen:
    """A shard of which one inner chunk of 5 bytes is said to take ``length``, with a valid index and checksum."""
    from zardine.codecs.crc32c import crc32c

    index = struct.pack("<QQQQ", 0, length, 2**64 - 1, 2**64 - 1)
    index += struct.pack("<I", crc32c(index))
    stored = Sparse(length + len(index), tail=index)
    if at == "start":
        index = struct.pack("<QQQQ", 36, length, 2**64 - 1, 2**64 - 1)
        index += struct.pack("<I", crc32c(index))
        stored = Sparse(length + len(index), head=index)
    codec = sharding((5,), codecs, at, [LITTLE, CRC])
    return v3([codec], stored)


def zeros_by_zstd(count: int) -> bytes:
    """A frame that says nothing of its size and holds ``count`` zero bytes."""
    return zstd_blocks(-(-count // (128 * 1024)))


def text_bomb(nbytes: int, compress: Callable[[bytes, int], bytes]) -> bytes:
    return compress(struct.pack("<II", 10, nbytes - 44), nbytes)


def by_zstd(head: bytes, nbytes: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    pieces = [compressor.compress(head)]
    block = bytes(2**22)
    for _ in range(nbytes // len(block)):
        pieces.append(compressor.compress(block))
    return b"".join((*pieces, compressor.flush()))


def by_gzip(head: bytes, nbytes: int) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    pieces = [compressor.compress(head)]
    block = bytes(2**22)
    for _ in range(nbytes // len(block)):
        pieces.append(compressor.compress(block))
    return b"".join((*pieces, compressor.flush()))


class Runs:
    """Unpickled, it leaves a file: the mark that a program hidden in data was run."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (self.mark,))


def specimens(mark: str) -> Iterator[tuple[str, Callable[[], Specimen]]]:
    """Names and makers."""
    small = {"limits.text_bytes": 32 * 2**20, "limits.unused_bytes": 2**20}
    for name, codecs in (("raw", [LITTLE]), ("gzip", [LITTLE, GZIP]), ("crc", [LITTLE, CRC]), ("zstd", [LITTLE, ZSTD])):
        yield f"entry-3GiB-{name}", lambda codecs=codecs: shard_entry(3 * GIB, codecs)
        yield f"sparse-1.2GB-{name}", lambda codecs=codecs: v3(codecs, Sparse(1_200_000_000), without=("copy",))
        yield f"sparse-1TB-{name}", lambda codecs=codecs: v3(codecs, Sparse(10**12))
    yield "entry-3GiB-start", lambda: shard_entry(3 * GIB, [LITTLE], "start")
    yield (
        "entry-3GiB-nested",
        lambda: shard_entry(3 * GIB, [sharding((1,), [LITTLE], "end", [LITTLE, CRC])]),
    )
    yield "sparse-1TB-claimed", lambda: v3([LITTLE], Sparse(10**12), shape=10**12)
    for name, index in (("shard", [LITTLE]), ("torn", [LITTLE, CRC])):
        yield (
            f"sparse-1.2GB-{name}",
            lambda index=index: v3([sharding((5,), [LITTLE], "end", index)], Sparse(1_200_000_000), without=("copy",)),
        )
    yield (
        "sparse-10GB-index",
        lambda: v3([sharding((1,), [LITTLE], "end", [LITTLE])], Sparse(10**10), shape=2**29),
    )
    for name, codec, bomb in (("zstd", ZSTD, by_zstd), ("gzip", GZIP, by_gzip)):
        for size in (64 * 2**20, 4 * GIB) if name == "zstd" else (64 * 2**20,):
            yield (
                f"text-{size >> 20}MiB-{name}",
                lambda codec=codec, bomb=bomb, size=size: v3(
                    [VLEN, codec], text_bomb(size, bomb), settings=small, megabytes=160, **STRINGS
                ),
            )
    yield (
        "text-count",
        lambda: v3(
            [VLEN, ZSTD],
            by_zstd(struct.pack("<I", 2**20), 2**22),
            megabytes=100,
            shape=2**20,
            without=("reshard", "memory", "cached", "drop"),
            settings=small,
            **STRINGS,
        ),
    )
    yield (
        "zstd-in-2^42",
        lambda: v3([LITTLE, ZSTD], zeros_by_zstd(8 * GIB), shape=2**42),
    )
    yield "gzip-in-2^42", lambda: v3([LITTLE, GZIP], by_gzip(b"", 2**26), shape=2**42)
    for name, codec in (
        ("numcodecs.bz2", numcodecs.BZ2()),
        ("numcodecs.lzma", numcodecs.LZMA()),
        ("numcodecs.zlib", numcodecs.Zlib()),
        ("numcodecs.gzip", numcodecs.GZip()),
        ("numcodecs.zstd", numcodecs.Zstd()),
        ("numcodecs.lz4", numcodecs.LZ4()),
        ("numcodecs.blosc", numcodecs.Blosc()),
    ):
        bomb = codec.encode(bytes(2**26))
        identifier = name.partition(".")[2]
        given = {"name": name, "configuration": {}}
        yield f"v3-{name}", lambda given=given, bomb=bomb: v3([LITTLE, given], bomb)
        yield f"v2-{identifier}", lambda identifier=identifier, bomb=bomb: v2(bomb, compressor={"id": identifier})
        yield (
            f"v2-filter-{identifier}",
            lambda identifier=identifier, bomb=bomb: v2(
                bomb, dtype=[["a", "<i4"], ["b", "|S3"]], filters=[{"id": identifier}]
            ),
        )
        yield (
            f"v2-text-{identifier}",
            lambda identifier=identifier, bomb=bomb: v2(
                bomb,
                dtype="|O",
                filters=[{"id": "vlen-utf8"}, {"id": identifier}],
                given={"settings": small, "megabytes": 160},
            ),
        )
    # sizes that headers claim
    lying = struct.pack("<I", 0x7FFFFFF0) + b"\x1f" + bytes(80)
    yield "v2-lz4-claim", lambda: v2(lying, compressor={"id": "lz4"})
    yield "v2-lz4-claim-text", lambda: v2(lying, dtype="|O", filters=[{"id": "vlen-bytes"}, {"id": "lz4"}])
    counted = struct.pack("<I", 0x41414141) + b"A" * 80
    for name in ("vlen-array", "vlen-bytes", "vlen-utf8"):
        options = {"id": name, "dtype": "<i4"} if name == "vlen-array" else {"id": name}
        yield f"v2-{name}", lambda options=options: v2(counted, dtype="|O", filters=[options])
        yield (
            f"v2-{name}-behind-a-filter",
            lambda options=options: v2(counted, dtype="|O", filters=[options, {"id": "base64"}]),
        )
    for shape in ([2**33], [2**31, 2**31], [-1], "x", [], None, [2**62, 0]):
        for dtype in ("|O", "<i8", "|V100000000", {"names": ["a"], "formats": ["O"]}):
            text = json.dumps([1, 2, dtype, shape]).encode()
            yield f"v2-json2-{shape}-{dtype}", lambda text=text: v2(text, dtype="|O", filters=[{"id": "json2"}])
    packed = numcodecs.MsgPack().encode(zardine_objects())[:-4] + b"\x91\xcf" + struct.pack(">Q", 2**33)
    yield "v2-msgpack2", lambda: v2(packed, dtype="|O", filters=[{"id": "msgpack2"}])
    yield (
        "v2-json2-zip-encoding",
        lambda: v2(zlib.compress(bytes(2**26)), dtype="|O", filters=[{"id": "json2", "encoding": "zlib"}]),
    )
    yield (
        "v2-categorize",
        lambda: v2(
            bytes(10),
            dtype="|O",
            filters=[{"id": "categorize", "labels": ["a"], "dtype": "<U100000000", "astype": "|u1"}],
        ),
    )
    yield (
        "v2-delta-of-large",
        lambda: v2(bytes(10), dtype="|V1", filters=[{"id": "delta", "dtype": "|V1000000000", "astype": "|u1"}]),
    )
    yield (
        "v2-zeros-of-text",
        lambda: v2(Sparse(1_200_000_000), dtype="|O", filters=[{"id": "vlen-utf8"}], given={"without": ("copy",)}),
    )
    # documents
    unreadable = ("ChunkTooLargeError", "MetadataError")
    for name in ("zarr.json", ".zarray", ".zgroup"):
        yield f"document-3GB-{name}", lambda name=name: Specimen({name: Sparse(3 * 10**9, b"{")}, {}, unreadable, 300)
    good = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None, "filters": None}
    good |= {"fill_value": 0, "order": "C"}
    yield (
        "document-3GB-.zattrs",
        lambda: Specimen({".zarray": good, ".zattrs": Sparse(3 * 10**9, b"{")}, {}, unreadable, 300),
    )
    yield (
        "document-3GB-.zmetadata",
        lambda: Specimen({".zgroup": {"zarr_format": 2}, ".zmetadata": Sparse(3 * 10**9, b"{")}, {}, unreadable, 300),
    )
    yield (
        "document-of-many-lists",
        lambda: Specimen({"zarr.json": b'{"a": [' + b"[]," * (20 * 2**20) + b"0]}"}, {}, unreadable, 200),
    )
    # programs in data
    pickled = pickle.dumps(Runs(mark))
    harmless = ("ChunkDecodeError", "PickleCodecDisabledError", "MetadataError", "UnknownExtensionError", "EncodeError")
    for name, options in (
        ("compressor", {"compressor": {"id": "pickle"}}),
        ("compressor-of-objects", {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle"}}),
        ("filter", {"filters": [{"id": "pickle"}]}),
        ("object-codec", {"dtype": "|O", "filters": [{"id": "pickle"}]}),
        ("object-codec-protocol", {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 4}]}),
        ("second-filter", {"filters": [{"id": "delta", "dtype": "|u1"}, {"id": "pickle"}]}),
        ("both", {"dtype": "|O", "filters": [{"id": "pickle"}], "compressor": {"id": "pickle"}}),
        ("wrapped", {"compressor": {"id": "hostile_wrapper", "inner": {"id": "pickle"}}}),
        ("wrapped-by-name", {"compressor": {"id": "hostile_wrapper", "inner": "pickle"}}),
        ("wrapped-deep", {"compressor": {"id": "hostile_wrapper", "inner": {"id": "zlib", "x": [{"id": "pickle"}]}}}),
        ("subclass", {"compressor": {"id": "hostile_subclass"}}),
        ("own", {"compressor": {"id": "hostile_own"}}),
        ("own-helper", {"filters": [{"id": "hostile_helper"}]}),
    ):
        yield f"pickle-v2-{name}", lambda options=options: v2(pickled, given={"refused": harmless}, **options)
    one = {"zarr_format": 1, "shape": [10], "chunks": [10], "dtype": "|u1", "compression": "pickle"}
    one |= {"compression_opts": None, "fill_value": 0, "order": "C"}
    yield "pickle-v1", lambda: Specimen({"meta": one, "attrs": {}}, {"0": pickled}, harmless)
    for name, configuration in (
        ("numcodecs.pickle", {}),
        ("pickle", {}),
        ("zardine.v2_compressor", {"id": "pickle"}),
        ("zardine.v2_filters", {"dtype": "|O", "order": "C", "filters": [{"id": "pickle"}]}),
        ("numcodecs.hostile_own", {}),
    ):
        codec = {"name": name, "configuration": configuration}
        chain = [codec] if "filters" in name else [LITTLE, codec]
        yield f"pickle-v3-{name}", lambda chain=chain: v3(chain, pickled, refused=harmless)
        yield (
            f"pickle-v3-sharded-{name}",
            lambda chain=chain: v3(
                [sharding((10,), chain, "end", [LITTLE])],
                pickled + struct.pack("<QQ", 0, len(pickled)),
                refused=harmless,
            ),
        )


def zardine_objects() -> Any:
    objects = np.empty(2, object)
    objects[:] = ["a", "b"]
    return objects


def register_foreign_codecs() -> None:
    """Codecs as other packages add them to numcodecs: a wrapper, and some that unpickle, openly or not."""
    from corrupt import hostile_codecs

    hostile_codecs.register()


def actions() -> dict[str, Callable[[Path, Path], Any]]:
    """What is done with the node at the first path; the second is free to write to."""

    def opened(place: Path) -> Any:
        return zardine.open(place, mode="r+")

    def partial(place: Path, _: Path) -> Any:
        node = opened(place)
        return node[:1] if hasattr(node, "shape") else list(node)

    def read(place: Path, _: Path) -> Any:
        node = opened(place)
        if not hasattr(node, "shape"):
            return list(node.members(None))
        return node[: min(node.shape[0], 1000)]

    def write_part(place: Path, _: Path) -> None:
        node = opened(place)
        if hasattr(node, "shape"):
            kind = node.dtype.kind
            node[1:2] = {"V": np.zeros(1, node.dtype), "T": "x"}.get(kind, node[:1] if kind == "O" else 1)

    def in_memory(place: Path, _: Path) -> Any:
        values = {
            str(p.relative_to(place)): p.read_bytes()
            for p in place.rglob("*")
            if p.is_file() and p.stat().st_size < 2**24
        }
        node = zardine.open(zardine.storage.MemoryStore(values), mode="r+")
        if hasattr(node, "shape"):
            node[1:2] = node[1:2]

    return {
        "info": lambda place, _: repr(opened(place)) + str(getattr(opened(place), "info", "")),
        "partial": partial,
        "read": read,
        "write": write_part,
        "memory": in_memory,
        "cached": lambda place, _: zardine.open(place, mode="r").with_config({"cache": 2**20})[:1],
        "verify": lambda place, _: list(zardine.verify(place).faults),
        "shallow": lambda place, _: list(zardine.verify(place, deep=False).faults),
        "repair": lambda place, _: zardine.repair(place),
        "drop": lambda place, _: zardine.repair(place, drop_unreadable=True, keep_damaged=False),
        "compact": lambda place, _: zardine.compact(place).faults,
        "convert": lambda place, free: zardine.convert(place, free),
        "reshard": lambda place, free: zardine.reshard(place, target=free, chunks=(5,), shards=None),
        "copy": lambda place, free: zardine.copy_store(str(place), str(free)),
    }


def outcome(action: Callable[[Path, Path], Any], place: Path, free: Path) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action(place, free)
    except ZardineError as error:
        return type(error).__name__, str(error)
    except Exception as error:
        return f"foreign: {type(error).__name__}", str(error)
    return "ok", ""


def main(folder: str, wanted: str = "") -> None:
    """Make every specimen below ``folder``, read it and do every other thing with it; everything in a soak run."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    register_foreign_codecs()
    base = Path(folder)
    mark = str(base / "a-program-was-run")
    warm_up(base)
    for number, (name, make) in enumerate(specimens(mark)):
        if wanted not in name:
            continue
        specimen = make()
        for place_in_turn, (title, action) in enumerate(actions().items()):
            left_out = not SOAK and title != "read" and (number + place_in_turn) % 3  # a third, but for reading
            if title in specimen.without or left_out:
                continue
            place, free = base / "node", base / "free"
            specimen.store(place)
            with zardine.config.set(specimen.settings):
                before = reset_peak()
                start = time.process_time()
                result, text = outcome(action, place, free)
                seconds = time.process_time() - start
                megabytes = (peak() - before) / 2**10
            report = {"specimen": name, "action": title, "outcome": result, "text": text[:400]}
            report |= {"seconds": seconds, "megabytes": megabytes, "most": specimen.megabytes}
            report |= {"ran": os.path.exists(mark), "refused": specimen.refused}
            print(json.dumps(report), flush=True)
            shutil.rmtree(place, ignore_errors=True)
            shutil.rmtree(free, ignore_errors=True)


def warm_up(base: Path) -> None:
    """Import what is imported late."""
    for number, codecs in enumerate(([LITTLE, CRC], [LITTLE, GZIP], [LITTLE, ZSTD], [sharding((5,), [LITTLE])])):
        for title, action in actions().items():
            place, free = base / f"warm{number}{title}", base / f"free{number}{title}"
            v3(codecs, gzip.compress(b"abc")).store(place)
            outcome(action, place, free)


if __name__ == "__main__":
    main(*sys.argv[1:])
