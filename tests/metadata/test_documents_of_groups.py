"""The bytes of documents of groups: what ``json.dumps`` with an indentation of two gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.metadata.documents import GroupMetadata
from zardine.metadata.v3 import serialize

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def expected(attributes: dict[Any, Any]) -> bytes:
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    try:
        return json.dumps(document, indent=2, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=2).encode()


@given(st.dictionaries(st.text(), VALUES))
def test_they_are_indented_by_two(attributes: dict[str, Any]) -> None:
    assert serialize(GroupMetadata(attributes=attributes)) == expected(attributes)


class Words(str):
    """A text of another class."""


UNUSUAL: dict[str, dict[Any, Any]] = {
    "tuples": {"a": (1, (), ("b",))},
    "numbers as names": {"a": {1: 2, 0.5: 3, None: 4, False: 5}},
    "other classes": {"a": [Words("b"), np.float64(0.1)]},
    "surrogates": {"a": "\udc80"},
}


@pytest.mark.parametrize("attributes", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_as_json_has_it(attributes: dict[Any, Any]) -> None:
    assert serialize(GroupMetadata(attributes=attributes)) == expected(attributes)


def test_numbers_that_are_none_are_words() -> None:
    written = json.loads(serialize(GroupMetadata(attributes={"a": [float("nan"), float("-inf")]})))
    assert written["attributes"] == {"a": ["NaN", "-Infinity"]}


def test_what_json_has_no_form_for_is_refused() -> None:
    with pytest.raises(TypeError):
        serialize(GroupMetadata(attributes={"a": {1, 2}}))
