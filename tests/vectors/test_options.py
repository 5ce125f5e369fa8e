"""Options that functions hand on are typed by tables of names: these are the arguments of whom they are handed to."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import pytest

from zardine import vectors
from zardine.vectors.changing.creating import StoreOptions
from zardine.vectors.exchange.formats import ImportOptions
from zardine.vectors.exchange.tables import TABLE_OPTIONS
from zardine.vectors.polylines import LineOptions, LineQuestions
from zardine.vectors.reading.query import QueryOptions


def named(function: Callable[..., Any]) -> set[str]:
    """The names of keyword arguments; with those of a writer's options."""
    found = signature(function).parameters.values()
    more = StoreOptions.__annotations__ if any(each.kind is Parameter.VAR_KEYWORD for each in found) else ()
    return {each.name for each in found if each.kind is Parameter.KEYWORD_ONLY} | set(more)


def names(options: Any) -> set[str]:
    return set(options.__required_keys__ | options.__optional_keys__)


@pytest.mark.parametrize(
    ("options", "function", "others"),
    [
        (QueryOptions, vectors.read_points, set()),
        (LineQuestions, vectors.read_polylines, set()),
        (LineOptions, vectors.write_polylines, {"geometry_type"}),
    ],
)
def test_options_are_the_arguments_of_whom_they_are_handed_to(
    options: Any, function: Callable[..., Any], others: set[str]
) -> None:
    assert names(options) | others == named(function)


def test_options_of_stores_are_those_of_points() -> None:
    assert names(StoreOptions) <= named(vectors.write_points)


def test_import_takes_the_options_of_tables_and_of_every_writer_that_it_calls() -> None:
    writers = (vectors.write_points, vectors.write_polylines, vectors.write_mesh, vectors.write_skeleton)
    assert names(ImportOptions) == set(TABLE_OPTIONS).union(*map(named, writers))


def test_what_is_no_option_is_refused_as_any_other_argument() -> None:
    with pytest.raises(TypeError, match="unexpected argument 'chunk_shpe'; there are chunk_shape, "):
        vectors.write_graph("memory://no-option", [[0, 0]], [], chunk_shpe=2)
