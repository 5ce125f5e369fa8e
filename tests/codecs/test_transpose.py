import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.codecs import BytesCodec, TransposeCodec


@given(shape=st.lists(st.integers(0, 4), max_size=4), data=st.data())
def test_round_trip(h, shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    spec, codec = h.spec_like(array), TransposeCodec(order)
    assert codec.check(spec) is None
    encoded = codec.encode(array, spec)
    assert encoded.shape == codec.encoded_spec(spec).shape == tuple(shape[axis] for axis in order)
    assert np.array_equal(codec.decode(encoded, spec), array)


def test_dimension_i_of_the_encoded_chunk_is_dimension_order_i(h):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    spec, codec = h.spec_like(array), TransposeCodec((2, 0, 1))
    encoded = codec.encode(array, spec)
    assert encoded.shape == (4, 2, 3)
    assert encoded[3, 1, 2] == array[1, 2, 3]
    assert bytes(BytesCodec().encode(encoded, codec.encoded_spec(spec)))[:6] == bytes([0, 4, 8, 12, 16, 20])
    assert np.shares_memory(encoded, array)


def test_configuration(h):
    document = {"name": "transpose", "configuration": {"order": [1, 0]}}
    assert h.read(document) == TransposeCodec(order=(1, 0))
    assert TransposeCodec([1, 0]).to_json() == document
    assert hash(TransposeCodec([1, 0])) == hash(TransposeCodec((1, 0)))


@pytest.mark.parametrize(
    ("codec", "place", "text"),
    [
        ("transpose", "codecs[0].configuration.order", "required member is missing"),
        ({"order": "K"}, "codecs[0].configuration.order", 'expected one of "C", "F"'),
        ({"order": 1}, "codecs[0].configuration.order", "expected an array of integers"),
        ({"order": [0, 0]}, "codecs[0].configuration.order", "a permutation of 0 to 1"),
        ({"order": [1, 2]}, "codecs[0].configuration.order", "a permutation of 0 to 1"),
        ({"order": [0, -1]}, "codecs[0].configuration.order[1]", "an integer"),
        ({"order": [0, True]}, "codecs[0].configuration.order[1]", "an integer"),
        ({"order": [0.0]}, "codecs[0].configuration.order[0]", "an integer"),
    ],
)
def test_refusals(h, codec, place, text):
    document = codec if isinstance(codec, str) else {"name": "transpose", "configuration": codec}
    (problem,) = h.problems_of(document)
    assert problem.startswith(place + ": ")
    assert text in problem


def test_rank_is_checked(h):
    assert "orders 2 dimensions, the chunk has 3" in TransposeCodec((1, 0)).check(h.spec("int8", (1, 2, 3)))
    with pytest.raises(ValueError, match="a permutation"):
        TransposeCodec((0, 2))
