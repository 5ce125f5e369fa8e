import numpy as np
import pytest

from zardine.codecs import ReshapeCodec


@pytest.mark.parametrize(
    ("source", "shape", "expected"),
    [
        ((100, 50, 64, 3), [[0, 1], [2], 3], (5000, 64, 3)),
        ((4, 6), [-1], (24,)),
        ((4, 6), [2, -1, 3], (2, 4, 3)),
        ((4, 6), [[0], 2, 3], (4, 2, 3)),
        ((4, 6), [2, 2, [1]], (2, 2, 6)),
        ((4, 6), [[0, 1]], (24,)),
        ((4, 6), [1, [0], [1], 1], (1, 4, 6, 1)),
        ((4, 6), [[0], [], [1]], (4, 1, 6)),
        ((), [], ()),
        ((), [1, -1], (1, 1)),
        ((1,), [], ()),
        ((0, 3), [[0], [1]], (0, 3)),
    ],
)
def test_round_trip(h, source, shape, expected):
    array = np.arange(np.prod(source, dtype=int)).reshape(source)
    spec, codec = h.spec_like(array), ReshapeCodec(shape)
    assert codec.check(spec) is None
    assert codec.encoded_spec(spec).shape == expected
    encoded = codec.encode(array, spec)
    assert np.array_equal(encoded, array.reshape(expected))
    assert np.array_equal(codec.decode(encoded, spec), array)
    assert h.read(codec.to_json()) == codec


@pytest.mark.parametrize(
    ("source", "shape", "text"),
    [
        ((4, 6), [25], "does not fit"),
        ((4, 6), [-1, 5], "does not fit"),
        ((4, 6), [[0], [2]], "names dimension 2, the chunk has 2"),
        ((4, 6), [[1], 4], "would move dimensions [1]"),
        ((4, 6), [6, [0]], "would move dimensions [0]"),
        ((2, 3, 2), [[0, 2], 3], "would move dimensions [0, 2]"),
        ((0, 3), [-1, [0]], "does not fit"),
    ],
)
def test_check(h, source, shape, text):
    assert text in ReshapeCodec(shape).check(h.spec("int8", source))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (3, "codecs[0].configuration.shape: expected an array, found 3"),
        ([0], "codecs[0].configuration.shape[0]: expected a positive integer, -1 or an array of dimensions, found 0"),
        ([-2], "codecs[0].configuration.shape[0]: expected a positive integer"),
        ([True], "codecs[0].configuration.shape[0]: expected a positive integer"),
        ([[-1]], "codecs[0].configuration.shape[0][0]: expected an integer"),
        ([-1, -1], "codecs[0].configuration.shape: -1 may stand only once"),
        ([[1], [0]], "codecs[0].configuration.shape: the input dimensions have to increase"),
        ([[1, 0], 10, [3, 4]], "codecs[0].configuration.shape: the input dimensions have to increase"),
        ([[3, 4], 10, [0, 1]], "codecs[0].configuration.shape: the input dimensions have to increase"),
    ],
)
def test_refusals(h, shape, expected):
    (problem,) = h.problems_of({"name": "reshape", "configuration": {"shape": shape}})
    assert problem.startswith(expected)


def test_shape_is_required(h):
    assert h.problems_of("reshape") == ["codecs[0].configuration.shape: required member is missing"]
