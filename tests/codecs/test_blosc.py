import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine.codecs import BloscCname, BloscCodec, BloscShuffle
from zardine.codecs.base import SizeLimit
from zardine.codecs.blosc import in_kernel
from zardine.errors import ChunkDecodeError, EncodeError

DATA = np.arange(1000, dtype="<u4").tobytes()
EXACT = SizeLimit(len(DATA), True)


def test_random_damage_never_ends_the_process():
    script = Path(__file__).with_name("blosc_mutations.py")
    done = subprocess.run([sys.executable, script, "20000", "11"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, gave_data = map(int, done.stdout.split())
    assert refused + gave_data == 20000
    assert refused > 1000
    assert gave_data > 1000


@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", list(BloscShuffle))
@pytest.mark.parametrize("typesize", [1, 2, 3, 8, 255, 256, 5000])
def test_every_combination(cname, shuffle, typesize):
    codec = BloscCodec(cname=cname, shuffle=shuffle, typesize=typesize, clevel=3)
    encoded = codec.encode(DATA)
    assert encoded[3] == (typesize if typesize <= 255 else 1)
    assert bytes(codec.decode(encoded, EXACT)) == DATA


@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zlib", "zstd"])
@pytest.mark.parametrize("size", [0, 1, 15, 100, 5000, 300_000])
def test_with_and_without_the_kernel(cname, size, monkeypatch):
    if zardine.__kernel__ is None:
        pytest.skip("needs the kernel")
    data, codecs = (np.arange(size) // 7 % 251).astype("u1").tobytes(), []
    for shuffle, typesize in itertools.product(BloscShuffle, [1, 3, 8]):
        codecs.append(BloscCodec(cname=cname, shuffle=shuffle, typesize=typesize))
    with_kernel = [bytes(codec.encode(data)) for codec in codecs]
    limit = SizeLimit(size, True)
    with monkeypatch.context() as patch:
        patch.setattr(in_kernel, "KERNEL", None)
        without = [bytes(codec.encode(data)) for codec in codecs]
        assert {bytes(codec.decode(each, limit)) for codec, each in zip(codecs, with_kernel, strict=True)} == {data}
    assert {bytes(codec.decode(each, limit)) for codec, each in zip(codecs, without, strict=True)} == {data}
    pairs = zip(with_kernel, without, strict=True)  # of zlib there are several libraries, and of zstd versions
    assert all(abs(len(a) - len(b)) <= len(b) // 4 for a, b in pairs)


@pytest.mark.skipif(zardine.__kernel__ is None, reason="needs the kernel")
def test_numcodecs_is_not_imported_where_the_kernel_is_there():
    code = (
        "import sys; from zardine.codecs import BloscCodec; from zardine.codecs.base import SizeLimit; "
        "codec = BloscCodec(); print(bytes(codec.decode(codec.encode(b'abc' * 9), SizeLimit(27, True))) == b'abc' * 9, "
        "'numcodecs' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == (
        "True False\n"
    )


def test_typesize_and_shuffle_are_chosen_for_the_data_type(h):
    def choose(dtype, **options):
        codec = BloscCodec(**options).resolve(h.spec(dtype, (1,)))
        return codec.typesize, codec.shuffle

    assert choose("uint8") == (1, "bitshuffle")
    assert choose("float64") == (8, "shuffle")
    assert choose("complex128") == (16, "shuffle")
    assert choose("string") == (1, "bitshuffle")
    assert choose("U100") == (400, "shuffle")
    assert choose("int32", typesize=2) == (2, "shuffle")
    assert choose("int32", shuffle="noshuffle") == (4, "noshuffle")
    assert BloscCodec().configuration()["shuffle"] == "bitshuffle"


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (0, 1, "format version 1"),
        (3, 0, "elements of 0 bytes"),
        (4, 255, "expected 4000"),
        (8, 0, "blocks of"),
        (12, 255, "the blosc header says"),
    ],
)
def test_header_is_checked(at, value, text):
    encoded = bytearray(BloscCodec(cname="lz4", blocksize=256, typesize=4, shuffle="shuffle").encode(DATA))
    encoded[at] = value
    if at == 8:
        encoded[8:12] = bytes(4)
    with pytest.raises(ChunkDecodeError, match=text):
        BloscCodec().decode(encoded, EXACT)


def test_too_many_bytes_are_refused():
    class Long(bytes):
        def __len__(self):
            return 2**31

    with pytest.raises(EncodeError, match="too many for blosc"):
        BloscCodec().encode(Long())


def test_snappy_comes_from_the_kernel(monkeypatch):
    codec = BloscCodec(cname=BloscCname.snappy, typesize=4, shuffle="shuffle")
    if zardine.__kernel__ is not None:
        encoded = bytes(codec.encode(DATA * 50))
        assert len(encoded) < len(DATA * 50)
        assert codec.decode(encoded, SizeLimit(len(DATA * 50), True)) == DATA * 50
        with pytest.raises(ChunkDecodeError, match="not valid blosc data"):
            codec.decode(encoded[:16] + b"\xff" * 4 + encoded[20:], SizeLimit(len(DATA * 50), True))
    monkeypatch.setattr(in_kernel, "KERNEL", None)
    with pytest.raises(EncodeError, match="snappy inside blosc needs the native kernel"):
        codec.encode(DATA)


def test_configuration(h):
    document = {
        "name": "blosc",
        "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
    }
    codec = BloscCodec(cname=BloscCname.lz4, clevel=1, shuffle=BloscShuffle.shuffle, typesize=4)
    assert h.read(document) == codec
    assert codec.to_json() == document
    plain = {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0}
    assert h.read({"name": "blosc", "configuration": plain}).typesize is None
    assert h.read({"name": "blosc", "configuration": {**plain, "typesize": 0}}).typesize is None


@pytest.mark.parametrize(
    ("changes", "place", "text"),
    [
        ({"typesize": ...}, "typesize", "required member is missing (unless"),
        ({"typesize": 0}, "typesize", "an integer from 1"),
        ({"cname": "lzma"}, "cname", "expected one of"),
        ({"cname": ...}, "cname", "required member is missing"),
        ({"clevel": 10}, "clevel", "an integer from 0 to 9"),
        ({"clevel": ...}, "clevel", "required member is missing"),
        ({"shuffle": 1}, "shuffle", "expected one of"),
        ({"shuffle": None}, "shuffle", "expected one of"),
        ({"blocksize": -1}, "blocksize", "an integer from 0"),
        ({"nthreads": 1}, "nthreads", "unknown member"),
    ],
)
def test_refusals(h, changes, place, text):
    configuration = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0, **changes}
    configuration = {name: value for name, value in configuration.items() if value is not ...}
    (problem,) = h.problems_of({"name": "blosc", "configuration": configuration})
    assert problem.startswith(f"codecs[0].configuration.{place}: ")
    assert text in problem
