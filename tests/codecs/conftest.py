"""Chunk descriptions, and what damaged data have to lead to."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from zardine.codecs.base import BytesBytesCodec, ChunkSpec, Codec, SizeLimit
from zardine.codecs.registry import parse_codec
from zardine.data_types import DataType, data_type_for
from zardine.errors import CorruptionError
from zardine.json_document import Problems


def make_spec(dtype: Any, shape: tuple[int, ...], fill: Any = None) -> ChunkSpec:
    data_type = data_type_for(dtype)
    return ChunkSpec(shape, data_type, data_type.default_fill() if fill is None else data_type.cast_fill(fill))


def spec_of(data_type: DataType, shape: tuple[int, ...]) -> ChunkSpec:
    return ChunkSpec(shape, data_type, data_type.default_fill())


def spec_like(array: np.ndarray) -> ChunkSpec:
    return make_spec(array.dtype, array.shape)


def damaged(data: bytes) -> Iterator[bytes]:
    """Every truncation, an extra byte, and three changes of every byte."""
    for stop in range(len(data)):
        yield data[:stop]
    yield data + b"\0"
    for at in range(len(data)):
        for bits in (0x01, 0x80, 0xFF):
            yield data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def count_refusals(codec: BytesBytesCodec, encoded: bytes, nbytes: int) -> int:
    """Decode damaged forms of ``encoded``: data of the right size or CorruptionError. How many were refused."""
    errors = []
    for wrong in damaged(bytes(encoded)):
        try:
            decoded = codec.decode(wrong, SizeLimit(nbytes, True))
        except CorruptionError as error:
            errors.append(error)
        else:
            assert len(decoded) == nbytes
    assert all(error.codec == codec.name and error.reason for error in errors)
    return len(errors)


def problems_of(value: Any) -> list[str]:
    """What reading ``value`` as a codec of a document finds wrong."""
    problems = Problems()
    codec = parse_codec(value, "codecs[0]", problems)
    assert (codec is None) == bool(problems)
    return [str(problem) for problem in problems.found]


def read(value: Any) -> Codec:
    problems = Problems()
    codec = parse_codec(value, "codecs[0]", problems)
    assert codec is not None, problems.found
    return codec


class Helpers:
    """The functions of this file; tests are imported one by one and cannot import each other."""

    spec = staticmethod(make_spec)
    spec_of = staticmethod(spec_of)
    spec_like = staticmethod(spec_like)
    damaged = staticmethod(damaged)
    count_refusals = staticmethod(count_refusals)
    problems_of = staticmethod(problems_of)
    read = staticmethod(read)


@pytest.fixture(scope="session")
def h() -> Helpers:
    return Helpers()
