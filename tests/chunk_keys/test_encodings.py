"""Names of chunks, both ways."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.chunk_keys import DefaultChunkKeyEncoding, V2ChunkKeyEncoding, parse_chunk_key_encoding
from zardine.json_document import Extension, Problems

ENCODINGS = [kind(separator) for kind in (DefaultChunkKeyEncoding, V2ChunkKeyEncoding) for separator in "/."]


@pytest.mark.parametrize(
    ("encoding", "chunk", "key"),
    [
        (DefaultChunkKeyEncoding(), (1, 23, 45), "c/1/23/45"),
        (DefaultChunkKeyEncoding("."), (1, 23, 45), "c.1.23.45"),
        (DefaultChunkKeyEncoding(), (), "c"),
        (DefaultChunkKeyEncoding("."), (), "c"),
        (V2ChunkKeyEncoding(), (1, 23, 45), "1.23.45"),
        (V2ChunkKeyEncoding("/"), (1, 23, 45), "1/23/45"),
        (V2ChunkKeyEncoding(), (), "0"),
        (V2ChunkKeyEncoding(), (7,), "7"),
    ],
)
def test_examples_of_the_specification(encoding: Any, chunk: tuple[int, ...], key: str) -> None:
    assert encoding.encode(chunk) == key
    assert encoding.decode(key, len(chunk)) == chunk


@given(st.sampled_from(ENCODINGS), st.lists(st.integers(0, 2**63), max_size=5))
def test_every_key_is_read_back(encoding: Any, chunk: list[int]) -> None:
    assert encoding.decode(encoding.encode(chunk), len(chunk)) == tuple(chunk)
    assert encoding.form(len(chunk)) % tuple(chunk) == encoding.encode(chunk)


@given(st.sampled_from(ENCODINGS), st.text(alphabet="c0123456789./-+_ ٣²zarjson", max_size=12), st.integers(0, 3))
def test_only_the_one_spelling_of_a_key_is_taken(encoding: Any, key: str, ndim: int) -> None:
    chunk = encoding.decode(key, ndim)
    if chunk is not None:
        assert len(chunk) == ndim
        assert encoding.encode(chunk) == key


@pytest.mark.parametrize("key", ["c/01", "c/-1", "c/1_0", "c/٣", "c", "c/1/2", "C/1", "c/", "c/1/", "zarr.json", ""])
def test_not_a_key_of_a_one_dimensional_array(key: str) -> None:
    assert DefaultChunkKeyEncoding().decode(key, 1) is None


def test_from_json() -> None:
    problems = Problems()
    read = [
        parse_chunk_key_encoding(Extension("default"), problems),
        parse_chunk_key_encoding(Extension("v2"), problems),
        parse_chunk_key_encoding(Extension("default", {"separator": "."}), problems),
        parse_chunk_key_encoding(Extension("v2", {"separator": "/"}), problems),
    ]
    assert not problems
    assert read == [
        DefaultChunkKeyEncoding("/"),
        V2ChunkKeyEncoding("."),
        DefaultChunkKeyEncoding("."),
        V2ChunkKeyEncoding("/"),
    ]
    assert read[0].to_extension().to_json() == {"name": "default", "configuration": {"separator": "/"}}


@pytest.mark.parametrize(
    ("extension", "problem"),
    [
        (Extension("default", {"separator": "-"}), 'separator: expected one of "/", ".", found "-"'),
        (Extension("v2", {"separator": None}), 'separator: expected one of "/", ".", found null'),
        (Extension("v2", {"seperator": "."}), 'seperator: unknown member; known are: "separator"'),
    ],
)
def test_wrong_json(extension: Extension, problem: str) -> None:
    problems = Problems()
    parse_chunk_key_encoding(extension, problems)
    assert [str(each) for each in problems.found] == [f"chunk_key_encoding.configuration.{problem}"]


def test_an_unknown_encoding() -> None:
    problems = Problems()
    assert parse_chunk_key_encoding(Extension("v3"), problems) is None
    assert problems.found[0].place == "chunk_key_encoding.name"
    with pytest.raises(ValueError, match=r"separator of chunk keys is '/' or '\.'"):
        DefaultChunkKeyEncoding("-")
