"""Which codecs a converted array gets from its source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from zardine.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec
from zardine.codecs.base import Codec
from zardine.codecs.v2_filters import V2Compressor, V2Filters
from zardine.creation.options import is_word
from zardine.data_types.v2_names import dtype_to_json
from zardine.json_document import JSON
from zardine.metadata.documents import OlderForm
from zardine.nodes.array import Array
from zardine.sources.arrays import undone_filters
from zardine.tools.converting.options import ConvertOptions

_CORE = ("blosc", "gzip", "zstd")
"""Compressors that every program for Zarr v3 has."""

_CHECKSUMS = ("crc32c", *(f"numcodecs.{name}" for name in ("adler32", "crc32", "crc32c", "fletcher32")))

_EXACT = {
    *("transpose", "reshape", "bytes", "vlen-utf8", "vlen-bytes", "crc32c", *_CORE, *_CHECKSUMS),
    *("zarrs.squeeze", "zarrs.vlen", "zarrs.vlen_v2", "vlen-array"),
    *("numcodecs.jenkins_lookup3", "numcodecs.shuffle", "numcodecs.pcodec"),
    *(f"numcodecs.{name}" for name in ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")),
}
"""Codecs that give back every value as it was."""


def accepted(codec: Codec) -> Codec:
    """Return the codec as documents of today have it, where it is of the draft of 2023; its bytes mean the same."""
    if not isinstance(codec, ShardingCodec):
        return codec
    return replace(codec, codecs=tuple(map(accepted, codec.codecs)), draft=False)


def is_dated(codecs: Iterable[JSON]) -> bool:
    """Whether codecs of a document of v3 are told in words of the drafts of 2023, which programs of today may not know.

    These are the codec ``endian``, the orders "C" and "F" of ``transpose``, and shards without ``index_codecs``.
    """
    for codec in codecs:
        name, options = (codec, {}) if isinstance(codec, str) else (codec["name"], codec.get("configuration") or {})
        if name == "endian" or (name == "transpose" and isinstance(options.get("order"), str)):
            return True
        if name == "sharding_indexed" and "index_codecs" not in options:
            return True
        if is_dated((*options.get("codecs", ()), *options.get("index_codecs", ()))):
            return True
    return False


def rewritten(codec: Codec) -> Codec:
    """Return the same as :func:`accepted`, for shards written anew: their chunks and their index end with checksums."""
    if not isinstance(codec, ShardingCodec):
        return codec
    codecs = tuple(map(rewritten, codec.codecs))
    if not codec.draft:
        return replace(codec, codecs=codecs)
    if not has_shards(codecs) and codecs[-1].name != "crc32c":
        codecs += (Crc32cCodec(),)
    return replace(codec, codecs=codecs, index_codecs=(BytesCodec(), Crc32cCodec()), draft=False)


def has_shards(codecs: Iterable[Codec]) -> bool:
    """Whether one of the codecs makes shards."""
    return any(isinstance(codec, ShardingCodec) for codec in codecs)


def is_exact(codecs: Iterable[Codec]) -> bool:
    """Whether every value comes back from these codecs as it was."""
    return all(is_exact(codec.codecs) if isinstance(codec, ShardingCodec) else codec.name in _EXACT for codec in codecs)


def chosen_codecs(
    source: Array, options: ConvertOptions, *, foreign: bool = False, copied: bool = False
) -> dict[str, Any]:
    """Return filters, serializer and compressors for v3, as arguments of ``new_array_metadata``; and ``reasons``.

    A source of v3 keeps what it has. Of an older one ``"auto"`` keeps what all programs have: the order of elements and
    a compressor of the core. ``"keep"`` keeps the rest, too, as codecs ``numcodecs.*``. A ``foreign`` one, that is a
    file of another format, keeps all codecs where its chunks are ``copied``. What is not compressed in it is compressed
    by default, and so is what was compressed in a way that no codec stands for.
    """
    older = source.metadata.older
    chosen: dict[str, Any] = {"filters": options.filters, "serializer": options.serializer}
    chosen["compressors"] = options.compressors
    for name, value in chosen.items():
        if is_word(value, "keep") or (is_word(value, "auto") and ((older is None and not foreign) or copied)):
            kept = getattr(source._inner_chain(), name)
            chosen[name] = rewritten(kept) if isinstance(kept, Codec) else list(kept) or None
    if older is not None and is_word(options.filters, "auto"):
        chosen["filters"] = [TransposeCodec(order="F")] if older.order == "F" and source.ndim > 1 else None
    if older is not None and is_word(options.compressors, "auto"):
        chosen["compressors"] = _of_the_core(source._inner_chain().compressors, older)
    if foreign and not copied:
        if is_word(options.filters, "auto"):
            chosen["filters"] = None
        if is_word(options.compressors, "auto"):
            found = [each for each in source._inner_chain().compressors if each.name not in _CHECKSUMS]
            chosen["compressors"] = found if len(found) == 1 and found[0].name in _CORE else "auto"
        elif is_word(options.compressors, "keep") and undone_filters(source.metadata):
            chosen["compressors"] = "auto"
    chosen["reasons"] = [reason for value in chosen.values() for reason in unfit(value)]
    return chosen


def can_be_copied(source: Array, options: ConvertOptions) -> bool:
    """Return whether the chunks of a file are compressed by codecs, none of which is asked to be another one."""
    asked = (options.filters, options.serializer, options.compressors)
    if undone_filters(source.metadata) or not all(is_word(each, "auto", "keep") for each in asked):
        return False
    return any(_compresses(each) for each in source._inner_chain().compressors)


def _compresses(codec: Codec) -> bool:
    return codec.name not in _CHECKSUMS and codec.name != "numcodecs.shuffle"


def unfit(value: Any) -> list[str]:
    """Return why codecs of a Zarr v2 array cannot be in a document of v3, for those that cannot."""
    codecs = [value] if isinstance(value, Codec) else value if isinstance(value, (list, tuple)) else ()
    reasons = []
    for codec in codecs:
        if isinstance(codec, V2Filters):
            names = ", ".join(str(each["id"]) for each in codec.filters)
            elements = f"elements of {json.dumps(dtype_to_json(codec.dtype), ensure_ascii=False)}"
            if names:
                reasons.append(f"filters {names} on {elements}: v3 has no codecs that do this")
            else:
                reasons.append(f"{elements}: v3 has no codec for fields of different byte orders")
        elif isinstance(codec, V2Compressor):
            reasons.append(f"compressor {codec.options['id']}: v3 has no such codec")
    return reasons


def _of_the_core(compressors: Sequence[Codec], older: OlderForm) -> Any:
    """Return the compressor, if every program has it; else the default one. Checksums are another matter."""
    found = [codec for codec in compressors if codec.name not in _CHECKSUMS]
    if not found:
        return None
    codec = found[0]
    if len(found) > 1 or codec.name not in _CORE:
        return "auto"
    if isinstance(codec, BloscCodec):
        automatic = (older.compressor or {}).get("shuffle") == -1
        # without the filters before it, other elements are shuffled
        codec = replace(codec, typesize=None, shuffle=None if automatic else codec.shuffle)
        return "auto" if codec.cname == "snappy" else [codec]
    return found
