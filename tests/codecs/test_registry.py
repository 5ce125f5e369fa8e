import subprocess
import sys
from importlib import metadata
from importlib.metadata import EntryPoint

import numcodecs
import numpy as np
import pytest
import zarr.codecs

import zardine.codecs
from zardine.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    TransposeCodec,
    VLenUTF8Codec,
    ZstdCodec,
    codec_from,
    parse_codec,
    register_codec,
    registry,
)
from zardine.codecs import numcodecs as adapters
from zardine.codecs.base import Codec
from zardine.errors import MetadataError, UnknownExtensionError
from zardine.json_document import Problems


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (GzipCodec(3), GzipCodec(3)),
        ("zstd", ZstdCodec()),
        ("bytes", BytesCodec()),
        ({"name": "blosc", "configuration": {"cname": "lz4"}}, BloscCodec(cname="lz4")),
        ({"name": "transpose", "configuration": {"order": [1, 0]}}, TransposeCodec((1, 0))),
        (numcodecs.Zstd(4, checksum=True), ZstdCodec(4, True)),
        (numcodecs.GZip(2), GzipCodec(2)),
        (numcodecs.Blosc("zlib", 3, -1, 64), BloscCodec(cname="zlib", clevel=3, shuffle=None, blocksize=64)),
        (numcodecs.Blosc("lz4", 3, 0), BloscCodec(cname="lz4", clevel=3, shuffle="noshuffle")),
        (numcodecs.VLenUTF8(), VLenUTF8Codec()),
        (numcodecs.BZ2(2), adapters.BZ2(level=2)),
        (numcodecs.PackBits(), adapters.PackBits()),
        (numcodecs.Delta("<i4"), adapters.Delta(dtype="<i4", astype="<i4")),
        ({"id": "zlib", "level": 2}, adapters.Zlib(level=2)),
        (zarr.codecs.GzipCodec(level=4), GzipCodec(4)),
        (zarr.codecs.BytesCodec(endian="big"), BytesCodec("big")),
        (zarr.codecs.Crc32cCodec(), Crc32cCodec()),
        (zarr.codecs.BloscCodec(typesize=4, shuffle="shuffle"), BloscCodec(typesize=4, shuffle="shuffle")),
    ],
)
def test_what_users_may_pass(value, expected):
    assert codec_from(value) == expected


@pytest.mark.parametrize("value", [None, 3, ["gzip"], object()])
def test_what_users_may_not_pass(value):
    with pytest.raises(TypeError, match="expected a codec"):
        codec_from(value)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("gzp", UnknownExtensionError, 'unknown codec "gzp"; did you mean "gzip"'),
        ({"name": "gzip", "configuration": {"level": 11}}, MetadataError, "level: expected an integer from 0 to 9"),
        ({"name": "gzip", "configuration": {"lvl": 1}}, MetadataError, "codec.configuration.lvl: unknown member"),
        ({"name": "gzip", "level": 1}, MetadataError, "codec.level: unknown member of an extension object"),
        ("transpose", MetadataError, "codec.configuration.order: required member is missing"),
        (numcodecs.Pickle(), UnknownExtensionError, 'unknown codec "numcodecs.pickle"'),
    ],
)
def test_errors_for_users(value, kind, text):
    with pytest.raises(kind) as raised:
        codec_from(value)
    assert text in str(raised.value)


def test_unknown_names_in_documents():
    problems = Problems()
    assert parse_codec({"name": "https://example.org/codec"}, "codecs[2]", problems) is None
    assert problems.unknown_extension
    assert str(problems.found[0]).startswith('codecs[2].name: unknown codec "https://example.org/codec"')
    problems = Problems()
    assert parse_codec({"name": "magic", "must_understand": False}, "codecs[2]", problems) is None
    assert not problems
    for wrong in (None, 3, [], {}, {"name": 3}, {"name": "gzip", "configuration": []}):
        problems = Problems()
        assert parse_codec(wrong, "codecs[0]", problems) is None
        assert problems


def test_own_codecs(monkeypatch):
    monkeypatch.setattr(registry.CODECS, "_ready", dict(registry.CODECS._ready))

    class Mine(GzipCodec):
        name = "mine"

    register_codec("mine", Mine)
    assert type(codec_from({"name": "mine", "configuration": {"level": 2}})) is Mine
    with pytest.raises(TypeError, match="subclass of Codec"):
        register_codec("mine", int)


def test_entry_points_are_asked_for_unknown_names_only(monkeypatch):
    monkeypatch.setattr(registry.CODECS, "_ready", dict(registry.CODECS._ready))
    asked = []

    def entry_points(*, group, name):
        asked.append((group, name))
        return [EntryPoint(name, "zardine.codecs.gzip:GzipCodec", group)] if name == "third" else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert codec_from("third") == GzipCodec()
    assert codec_from("gzip") == GzipCodec()
    assert asked == [("zardine.codecs", "third")]


def test_every_class_can_be_imported_by_its_name():
    for name in zardine.codecs.__all__:
        if name != "ShardingCodec":
            assert getattr(zardine.codecs, name) is not None
    assert set(zardine.codecs.__all__) <= set(dir(zardine.codecs))
    with pytest.raises(AttributeError, match="no attribute 'NoCodec'"):
        _ = zardine.codecs.NoCodec
    for name in registry.CODECS:
        if name != "sharding_indexed":
            cls = registry.codec_class(name)
            assert issubclass(cls, Codec)
            assert cls.name == name or name == "endian" or name.startswith("https://")  # of older programs


def test_codecs_are_frozen_values():
    for codec in (GzipCodec(), ZstdCodec(), BloscCodec(), BytesCodec(), TransposeCodec((0,)), Crc32cCodec()):
        assert codec == codec_from(codec)
        assert isinstance(hash(codec), int)
        for name in type(codec).MEMBERS:
            with pytest.raises(AttributeError):
                setattr(codec, name, 1)


def test_importing_is_cheap():
    script = (
        "import numpy, sys; import zardine.codecs; "
        "from zardine.codecs import BytesCodec, GzipCodec, ZstdCodec, BloscCodec, Crc32cCodec; "
        "zardine.codecs.codec_from('zstd'); "
        "heavy = {'numcodecs', 'zstandard', 'google_crc32c', 'ml_dtypes', 'importlib.metadata'} & set(sys.modules); "
        "print(heavy)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_public_enums_are_strings():
    assert zardine.codecs.Endian.big == "big"
    assert np.all([isinstance(member, str) for member in zardine.codecs.BloscCname])
