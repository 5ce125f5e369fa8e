"""What every ``numcodecs.*`` codec shares: the configuration goes to numcodecs, and is written back, as it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from zardine.codecs.base import Codec
from zardine.errors import UnsupportedError
from zardine.json_document import JSON, Problems, show
from zardine.metadata.numcodecs_objects import build_codec

PREFIX = "numcodecs."


class NumcodecsCodec(Codec):
    """A codec of the package numcodecs. Options are those of the class in numcodecs, by keyword.

    Equal where name and options are equal. Raises ``ValueError`` for options that numcodecs refuses, and
    :class:`~zardine.errors.UnsupportedError` where the installed numcodecs has no such codec.
    """

    def __init__(self, **options: Any) -> None:
        options.pop("id", None)
        self._options = {name: _to_json(value) for name, value in options.items()}
        self.fill_in()
        if self.is_complete():
            try:
                _ = self.codec
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                raise ValueError(f"{self.name}: numcodecs refuses {show(self._options)}: {error}") from None

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec with this configuration, if numcodecs takes it."""
        try:
            return cls(**(configuration or {}))
        except UnsupportedError as error:
            problems.unknown(place, str(error))
        except (TypeError, ValueError) as error:
            problems.add(place, str(error))
        return None

    def configuration(self) -> dict[str, JSON] | None:
        """The options as they were given."""
        return dict(self._options)

    def fill_in(self) -> None:
        """Add options that do not depend on an array. For subclasses."""

    def is_complete(self) -> bool:
        """Whether numcodecs can be asked already: some options wait for the data type of the array."""
        return True

    def with_options(self, **options: JSON) -> Self:
        """A copy with more options."""
        return type(self)(**{**self._options, **options})

    @property
    def options(self) -> Mapping[str, JSON]:
        """The options, in JSON."""
        return self._options

    @cached_property
    def codec(self) -> Any:
        """The object of numcodecs that does the work."""
        from numcodecs.errors import UnknownCodecError

        try:
            return build_codec({"id": self.name.removeprefix(PREFIX), **self._options})
        except (UnknownCodecError, ImportError) as error:
            raise UnsupportedError(f"the installed numcodecs has no {self.name}: {error}") from None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._options == other._options

    def __hash__(self) -> int:
        return hash((self.name, *self._options))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({options})"


def _to_json(value: Any) -> JSON:
    """NumPy dtypes and scalars as JSON."""
    if isinstance(value, np.dtype):
        return value.str
    if isinstance(value, type):
        return np.dtype(value).str
    return value.item() if isinstance(value, np.generic) else value
