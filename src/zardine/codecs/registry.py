"""Which class implements which codec name. Modules are imported when a name is first needed.

Names that are not known here are looked up once among the entry points of the group ``zardine.codecs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zardine.codecs.base import Codec
from zardine.errors import MetadataError
from zardine.json_document import JSON, Problems, parse_extension
from zardine.registry_table import ExtensionTable

__all__ = ["codec_class", "codec_from", "parse_codec", "register_codec"]

_NUMCODECS = {
    "adler32": "checksums:Adler32",
    "astype": "filters:AsType",
    "bitround": "filters:BitRound",
    "blosc": "compressors:Blosc",
    "bz2": "compressors:BZ2",
    "crc32": "checksums:CRC32",
    "crc32c": "checksums:CRC32C",
    "delta": "filters:Delta",
    "fixedscaleoffset": "filters:FixedScaleOffset",
    "fletcher32": "checksums:Fletcher32",
    "gzip": "compressors:GZip",
    "jenkins_lookup3": "checksums:JenkinsLookup3",
    "lz4": "compressors:LZ4",
    "lzma": "compressors:LZMA",
    "packbits": "filters:PackBits",
    "pcodec": "serializers:PCodec",
    "quantize": "filters:Quantize",
    "shuffle": "compressors:Shuffle",
    "zfpy": "serializers:ZFPY",
    "zlib": "compressors:Zlib",
    "zstd": "compressors:Zstd",
}

_ZARRS = "https://codec.zarrs.dev"

CODECS: ExtensionTable[type[Codec]] = ExtensionTable(
    "codec",
    "zardine.codecs",
    {
        "bitround": "zardine.codecs.bitround:BitRoundCodec",
        "blosc": "zardine.codecs.blosc.codec:BloscCodec",
        "bytes": "zardine.codecs.bytes_codec:BytesCodec",
        "cast_value": "zardine.codecs.cast.codec:CastValue",
        "crc32c": "zardine.codecs.crc32c:Crc32cCodec",
        "endian": "zardine.codecs.bytes_codec:BytesCodec",
        "gzip": "zardine.codecs.gzip:GzipCodec",
        "packbits": "zardine.codecs.packbits:PackBitsCodec",
        "reshape": "zardine.codecs.reshape:ReshapeCodec",
        "scale_offset": "zardine.codecs.scale_offset:ScaleOffset",
        "sharding_indexed": "zardine.codecs.sharding_indexed:ShardingCodec",
        "transpose": "zardine.codecs.transpose:TransposeCodec",
        "vlen-array": "zardine.codecs.vlen.elements:VLenArrayCodec",
        "vlen-bytes": "zardine.codecs.vlen.bytes:VLenBytesCodec",
        "vlen-utf8": "zardine.codecs.vlen.utf8:VLenUTF8Codec",
        "zardine.v2_compressor": "zardine.codecs.v2_filters:V2Compressor",
        "zardine.v2_filters": "zardine.codecs.v2_filters:V2Filters",
        "zarrs.squeeze": "zardine.codecs.squeeze:SqueezeCodec",
        "zarrs.vlen": "zardine.codecs.vlen.offsets:VLenOffsetsCodec",
        "zarrs.vlen_v2": "zardine.codecs.vlen.elements:VLenV2Codec",
        "zstd": "zardine.codecs.zstd:ZstdCodec",
        **{f"numcodecs.{name}": f"zardine.codecs.numcodecs.{place}" for name, place in _NUMCODECS.items()},
        # as zarrs before 0.20 called them
        f"{_ZARRS}/array_to_array/bitround": "zardine.codecs.bitround:BitRoundCodec",
        f"{_ZARRS}/array_to_bytes/pcodec": f"zardine.codecs.numcodecs.{_NUMCODECS['pcodec']}",
        f"{_ZARRS}/array_to_bytes/vlen": "zardine.codecs.vlen.offsets:VLenOffsetsCodec",
        f"{_ZARRS}/array_to_bytes/vlen_v2": "zardine.codecs.vlen.elements:VLenV2Codec",
        f"{_ZARRS}/bytes_to_bytes/bz2": f"zardine.codecs.numcodecs.{_NUMCODECS['bz2']}",
        f"{_ZARRS}/bytes_to_bytes/fletcher32": f"zardine.codecs.numcodecs.{_NUMCODECS['fletcher32']}",
    },
    {
        **dict.fromkeys(
            ("zarrs.gdeflate", f"{_ZARRS}/bytes_to_bytes/gdeflate"),
            "zardine does not read it: there is no library for Python that decodes GDeflate",
        ),
        **dict.fromkeys(
            ("optional", "zarrs.optional"),
            "zardine does not read it: NumPy has no type for elements that may be missing",
        ),
        **dict.fromkeys(
            ("zfp", "zarrs.zfp", f"{_ZARRS}/array_to_bytes/zfp"),
            "zardine does not read it: it stores zfp without the header that the library for Python needs "
            "(numcodecs.zfpy, which has it, is read)",
        ),
    },
)


def register_codec(name: str, cls: type[Codec]) -> None:
    """Let ``cls`` implement codec ``name``, in place of what did so far."""
    if not (isinstance(cls, type) and issubclass(cls, Codec)):
        raise TypeError(f"expected a subclass of Codec, found {cls!r}")
    CODECS.register(name, cls)


def codec_class(name: str) -> type[Codec] | None:
    """The class that implements ``name``, or ``None``."""
    return CODECS.get(name)


def parse_codec(value: JSON, place: str, problems: Problems, *, within: bool = False) -> Codec | None:
    """The codec at ``place`` of a metadata document: an object, or a name by itself; ``within`` another codec.

    ``None`` after noting every problem; ``None`` also for an unknown codec that says ``"must_understand": false``,
    which is passed over (core 3.1, "Extension definition").
    """
    extension = parse_extension(value, place, problems)
    if extension is None:
        return None
    if within and extension.name.startswith("zardine.v2_"):
        problems.unknown(f"{place}.name", f"{extension.name} belongs to Zarr v2; no v3 document may name it")
        return None
    cls = codec_class(extension.name)
    if extension.name == "endian":
        problems.note(f"{place}.name", 'it is called "bytes" since version 1.0')
    if cls is None and not extension.must_understand:
        return None
    if cls is None:
        problems.unknown(f"{place}.name", CODECS.explain_unknown(extension.name))
        return None
    return cls.from_json(extension.configuration, f"{place}.configuration", problems)


def codec_from(value: object) -> Codec:
    """The codec that a user means.

    ``value`` is a codec; a name, for its default options; ``{"name": ..., "configuration": {...}}``, where options
    may be left out that a document has to spell out; a numcodecs object; or a codec of zarr-python. Raises
    ``TypeError`` for anything else and :class:`MetadataError` where a name or an option is wrong.
    """
    if isinstance(value, Codec):
        return value
    if isinstance(value, str):
        return _with_defaults({"name": value})
    if isinstance(value, Mapping):
        return _with_defaults(_from_numcodecs(value["id"], value) if "id" in value and "name" not in value else value)
    if isinstance(identifier := getattr(value, "codec_id", None), str):
        return _with_defaults(_from_numcodecs(identifier, value.get_config()))  # type: ignore[attr-defined]
    if callable(to_dict := getattr(value, "to_dict", None)):
        return _with_defaults(to_dict())
    raise TypeError(f"expected a codec, its name or its JSON object, found {value!r}")


def _with_defaults(document: Mapping[str, Any]) -> Codec:
    problems = Problems()
    extension = parse_extension(document, "codec", problems, ignorable=False)
    cls = codec_class(extension.name) if extension else None
    if extension and cls is None:
        problems.unknown("codec.name", CODECS.explain_unknown(extension.name) + _within_blosc(extension.name))
    if extension and cls and not problems:
        try:
            return cls(**(extension.configuration or {}))
        except (TypeError, ValueError):
            # the strict reading names each fault; where it has none, the constructor lacked an argument
            codec = cls.from_json(extension.configuration, "codec.configuration", problems)
            if codec is not None:
                return codec
            if not problems:
                raise
    problems.raise_if_any("not a codec")
    raise MetadataError("not a codec")


def _within_blosc(name: str) -> str:
    """Return a hint for a compressor that is part of the codec ``blosc``; empty for other names."""
    if name.lower() not in ("lz4", "lz4hc", "blosclz", "snappy"):
        return ""
    codec = f'{{"name": "blosc", "configuration": {{"cname": "{name.lower()}"}}}}'
    return f" (or, for all programs, {codec})"


def _from_numcodecs(identifier: Any, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """The codec object for a numcodecs configuration: a registered codec that means the same, else ``numcodecs.*``.

    ``packbits`` is not the same: numcodecs counts bits from the highest.
    """
    options = {name: value for name, value in configuration.items() if name != "id"}
    if identifier == "zstd":
        return {"name": "zstd", "configuration": options}
    if identifier == "gzip":
        return {"name": "gzip", "configuration": options}
    if identifier == "blosc":
        shuffle = options.get("shuffle", 1)
        names = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle", -1: None}
        options["shuffle"] = names.get(shuffle, shuffle)
        return {"name": "blosc", "configuration": options}
    if identifier in ("vlen-utf8", "vlen-bytes"):
        return {"name": identifier}
    return {"name": f"numcodecs.{identifier}", "configuration": options}
