import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.codecs import PackBitsCodec
from zardine.errors import ChunkDecodeError

NARROW = ["bool", "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]
PAIRS = ["complex_float4_e2m1fn", "complex_float6_e2m3fn", "complex_float6_e3m2fn"]
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
WHOLE += ["float32", "float64", "bfloat16", "complex_float32", "complex_float64", "complex_bfloat16"]
PADDINGS = ["none", "first_byte", "last_byte"]


def random_array(h, name, shape, seed):
    spec = h.spec(name, shape)
    raw = np.random.default_rng(seed).integers(0, 256, spec.nbytes, np.uint8)
    array = np.ndarray(shape, spec.dtype, raw.tobytes())
    return spec, spec.data_type.repair_bits((raw % 2).view(bool).reshape(shape) if name == "bool" else array)


@given(
    name=st.sampled_from(NARROW + PAIRS + WHOLE),
    shape=st.sampled_from([(), (0,), (1,), (3, 5), (8,), (17,)]),
    padding=st.sampled_from(PADDINGS),
    seed=st.integers(0, 1000),
)
def test_round_trip(h, name, shape, padding, seed):
    spec, array = random_array(h, name, shape, seed)
    codec = PackBitsCodec(padding)
    assert codec.check(spec) is None
    encoded = codec.encode(array, spec)
    assert len(encoded) == codec.encoded_size(spec)
    bits = spec.size * spec.data_type.bits * spec.data_type.components
    assert len(encoded) == -(-bits // 8) + (padding != "none")
    decoded = codec.decode(encoded, spec)
    assert decoded.dtype == spec.dtype
    assert decoded.shape == shape
    assert decoded.tobytes() == array.tobytes()


def test_many_elements(h):
    spec, array = random_array(h, "int4", (100_003,), 5)
    codec = PackBitsCodec()
    assert codec.decode(codec.encode(array, spec), spec).tobytes() == array.tobytes()


def test_golden_bytes(h):
    flags = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], bool)
    spec = h.spec("bool", (10,))
    assert bytes(PackBitsCodec().encode(flags, spec)) == b"\x0d\x03"
    assert bytes(PackBitsCodec("first_byte").encode(flags, spec)) == b"\x06\x0d\x03"
    assert bytes(PackBitsCodec("last_byte").encode(flags, spec)) == b"\x0d\x03\x06"
    spec = h.spec("int4", (3,))
    numbers = np.array([1, -2, 7], np.int8).astype(spec.dtype)
    assert bytes(PackBitsCodec().encode(numbers, spec)) == b"\xe1\x07"
    spec = h.spec("uint16", (2,))
    assert bytes(PackBitsCodec().encode(np.array([1, 0x203], np.uint16), spec)) == b"\x01\x00\x03\x02"
    # bits 4 to 9 of 0x3f0 are 0b111111, those of 0x010 are 0b000001
    limited = PackBitsCodec(first_bit=4, last_bit=9)
    assert bytes(limited.encode(np.array([0x3F0, 0x010], np.uint16), spec)) == b"\x7f\x00"


@given(bits=st.tuples(st.integers(0, 15), st.integers(0, 15)).map(sorted), values=st.lists(st.integers(0, 2**16 - 1)))
def test_limited_bits(h, bits, values):
    first, last = bits
    codec = PackBitsCodec(first_bit=first, last_bit=last)
    array = np.array(values, np.uint16)
    unsigned, signed = h.spec("uint16", array.shape), h.spec("int16", array.shape)
    kept = array & np.uint16((1 << (last + 1)) - (1 << first))
    encoded = codec.encode(array, unsigned)
    assert codec.decode(encoded, unsigned).tolist() == kept.tolist()
    shift = 15 - last
    expected = (kept.view(np.int16) << shift) >> shift
    assert codec.decode(codec.encode(array.view(np.int16), signed), signed).tolist() == expected.tolist()


def test_bits_of_complex_numbers_count_in_each_part(h):
    codec = PackBitsCodec(first_bit=16)
    spec = h.spec("complex_float32", (1,))
    array = np.array([1.5 - 2j], np.complex64)
    assert codec.encoded_size(spec) == 4
    assert codec.decode(codec.encode(array, spec), spec).tolist() == [1.5 - 2j]


@pytest.mark.parametrize(
    ("codec", "stored", "text"),
    [
        (PackBitsCodec(), b"\x0d", "1 bytes, expected 2"),
        (PackBitsCodec(), b"\x0d\x03\0", "3 bytes, expected 2"),
        (PackBitsCodec(), b"\x0d\x07", "padding bits are not zero"),
        (PackBitsCodec("first_byte"), b"\x05\x0d\x03", "5 padding bits are stored, expected 6"),
        (PackBitsCodec("last_byte"), b"\x0d\x03\xff", "255 padding bits are stored, expected 6"),
    ],
)
def test_hostile_data(h, codec, stored, text):
    with pytest.raises(ChunkDecodeError, match=text):
        codec.decode(stored, h.spec("bool", (10,)))


def test_configuration(h):
    assert h.read("packbits") == PackBitsCodec()
    document = {"name": "packbits", "configuration": {"padding_encoding": "last_byte", "first_bit": 1, "last_bit": 2}}
    assert h.read(document) == PackBitsCodec("last_byte", 1, 2)
    assert PackBitsCodec("last_byte", 1, 2).to_json() == document
    assert h.read({"name": "packbits", "configuration": {"first_bit": None, "last_bit": None}}) == PackBitsCodec()
    assert PackBitsCodec().to_json() == {"name": "packbits", "configuration": {"padding_encoding": "none"}}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"padding_encoding": "start_byte"}, "codecs[0].configuration.padding_encoding: expected one of"),
        ({"padding_encoding": None}, "codecs[0].configuration.padding_encoding: expected one of"),
        ({"first_bit": -1}, "codecs[0].configuration.first_bit: expected an integer"),
        ({"first_bit": 3, "last_bit": 2}, "codecs[0].configuration.last_bit: 2 is less than first_bit 3"),
        ({"bits": 3}, "codecs[0].configuration.bits: unknown member"),
    ],
)
def test_refusals(h, configuration, expected):
    (problem,) = h.problems_of({"name": "packbits", "configuration": configuration})
    assert problem.startswith(expected)


def test_check(h):
    assert "cannot store data type string" in PackBitsCodec().check(h.spec("string", (1,)))
    assert "bits 0 to 4 of int4, which has 4" in PackBitsCodec(last_bit=4).check(h.spec("int4", (1,)))
    assert "bits 8 to 7 of int8" in PackBitsCodec(first_bit=8).check(h.spec("int8", (1,)))
