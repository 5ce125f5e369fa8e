"""Codecs of numcodecs as other packages have them, some of which run what they read."""

from __future__ import annotations

import pickle
from typing import Any

import numcodecs
from numcodecs.abc import Codec
from numcodecs.pickles import Pickle


class Wrapper(Codec):
    """Another codec, given by its configuration or its name."""

    codec_id = "hostile_wrapper"

    def __init__(self, inner: Any) -> None:
        self.inner = numcodecs.get_codec({"id": inner} if isinstance(inner, str) else inner)

    def encode(self, buf: Any) -> Any:
        return self.inner.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        return self.inner.decode(buf, out)


class Subclass(Pickle):
    codec_id = "hostile_subclass"

    def decode(self, buf: Any, out: Any = None) -> Any:
        return pickle.loads(buf)


class Own(Codec):
    codec_id = "hostile_own"

    def encode(self, buf: Any) -> Any:
        return pickle.dumps(bytes(buf))

    def decode(self, buf: Any, out: Any = None) -> Any:
        from pickle import loads

        return loads(buf)


class Helper(Codec):
    codec_id = "hostile_helper"

    def encode(self, buf: Any) -> Any:
        return bytes(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        return _help(buf)


def _help(data: Any) -> Any:
    return pickle.loads(data)


def register() -> None:
    for kind in (Wrapper, Subclass, Own, Helper):
        numcodecs.register_codec(kind)
