"""A plugin of pytest that runs zarr-python's own tests with zardine in its place, and notes what came of each.

``sys.modules["zarr"]`` is zardine. What the tests import from further inside of zarr-python is a copy of the module
there in which every class and function that is public in both packages is zardine's; its helpers, which zardine has not
got, are its own. Stores answer the tests with coroutines, as they expect, and zardine as they are.

``ZARR_SUITE_NOTES`` names the file to write: a line of JSON for each test, with what came of it and whether any code of
zardine ran. With ``ZARR_SUITE_PLAIN=1`` nothing is replaced: zarr-python is tested by itself.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import sys
import warnings
from abc import ABCMeta
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partialmethod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

os.environ["ZARDINE_ARRAY__CHECKSUM"] = "false"  # new arrays without the checksum that zarr-python's have not got
PLAIN = bool(os.environ.get("ZARR_SUITE_PLAIN"))
NOTES = Path(os.environ["ZARR_SUITE_NOTES"])

PAIRS = {
    "zarr": "zardine",
    "zarr.abc.store": "zardine.abc.store",
    "zarr.abc.codec": "zardine.abc.codec",
    "zarr.api.asynchronous": "zardine.api.asynchronous",
    "zarr.api.synchronous": "zardine.api.synchronous",
    "zarr.codecs": "zardine.codecs",
    "zarr.codecs.numcodecs": "zardine.codecs.numcodecs",
    "zarr.errors": "zardine.errors",
    "zarr.registry": "zardine.registry",
    "zarr.storage": "zardine.storage",
}
"""Public modules; what has a name in both is zardine's wherever zarr-python holds it."""

FURTHER = {
    ("zarr.core.array", "create_array"): ("zardine.api.asynchronous", "create_array"),
    ("zarr.core.array_spec", "ArrayConfig"): ("zardine", "ArrayConfig"),
    ("zarr.core.config", "config"): ("zardine", "config"),
    ("zarr.core.group", "ConsolidatedMetadata"): ("zardine.metadata.documents", "ConsolidatedMetadata"),
    ("zarr.core.group", "create_hierarchy"): ("zardine.api.asynchronous", "create_hierarchy"),
    ("zarr.core.sync_group", "create_hierarchy"): ("zardine", "create_hierarchy"),
    ("zarr.core.sync", "sync"): ("zardine.zarr_python.core.sync", "sync"),
}
"""What is documented of modules that are private by their name."""

AMBIGUOUS = frozenset({"__version__", "abc", "api", "codecs", "dtype", "errors", "registry", "storage"})


def replacements() -> dict[int, Any]:
    found: dict[int, Any] = {}
    for theirs, ours in PAIRS.items():
        from_module, to_module = importlib.import_module(theirs), importlib.import_module(ours)
        for name in dir(from_module):
            value = getattr(from_module, name)
            if name.startswith("_") or name in AMBIGUOUS or isinstance(value, (ModuleType, str, int, tuple)):
                continue
            if name in getattr(to_module, "__all__", ()) or hasattr(to_module, name):
                found.setdefault(id(value), adapted(getattr(to_module, name)))
    for (module, name), (own_module, own_name) in FURTHER.items():
        value = getattr(importlib.import_module(module), name)
        found[id(value)] = getattr(importlib.import_module(own_module), own_name)
    for name, module, own_name, version in (
        ("GroupMetadata", "zarr.core.group", "GroupMetadata", None),
        ("ArrayV2Metadata", "zarr.core.metadata.v2", "ArrayMetadata", 2),
        ("ArrayV3Metadata", "zarr.core.metadata.v3", "ArrayMetadata", 3),
    ):
        original = getattr(importlib.import_module(module), name)
        own = getattr(importlib.import_module("zardine"), own_name)
        found[id(original)] = Document(name, (), {"original": original, "own": own, "version": version})
    return found


def in_json(value: Any) -> Any:
    """Codecs of zardine as they stand in a document."""
    from zardine.codecs.base import Codec

    if isinstance(value, (list, tuple)):
        return type(value)(map(in_json, value))
    return value.to_dict() if isinstance(value, Codec) else value


class Document(type):
    """A class of metadata: its constructor is zarr-python's, what it makes is zardine's."""

    original: Any
    own: Any
    version: int | None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        plain = {name: in_json(value) for name, value in kwargs.items()}
        return cls.own.from_dict(json.loads(json.dumps(cls.original(*args, **plain).to_dict())))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.own) and cls.version in (None, instance.zarr_format)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.own, name)


def install() -> None:
    import zarr as original

    for info in pkgutil.walk_packages(original.__path__, "zarr."):
        try:
            importlib.import_module(info.name)
        except Exception:  # optional parts whose packages are not installed
            continue
    theirs = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "zarr"}
    import zardine
    from zardine import errors

    for name in errors.__all__:  # filters of warnings name zarr-python's classes, and its helpers give them
        if name.endswith("Warning") and hasattr(theirs["zarr.errors"], name):
            setattr(errors, name, getattr(theirs["zarr.errors"], name))
    help_private_names()
    found = replacements()
    copies: dict[str, ModuleType] = {}
    for name, module in theirs.items():
        copies[name] = copy = ModuleType(name, module.__doc__)
        for key, value in vars(module).items():
            vars(copy)[key] = found.get(id(value), value)
        if name in PAIRS:
            own = importlib.import_module(PAIRS[name])
            for key in [*getattr(own, "__all__", ())]:
                vars(copy)[key] = adapted(getattr(own, key))
    theirs["zarr.registry"].get_codec_class = importlib.import_module("zardine.registry").get_codec_class
    vars(copies["zarr.core.array"])["_parse_chunk_encoding_v3"] = in_own_codecs(
        theirs["zarr.core.array"]._parse_chunk_encoding_v3
    )
    give_helpers(copies)
    copies["zarr"] = zardine
    for name, module in copies.items():
        above, _, last = name.rpartition(".")
        if above and above != "zarr":
            setattr(copies[above], last, module)
        elif above and last not in AMBIGUOUS:
            setattr(zardine, last, module)
        sys.modules[name] = module
    for last in AMBIGUOUS - {"__version__"}:
        setattr(zardine, last, copies[f"zarr.{last}"])
    zardine.abc, zardine.api = copies["zarr.abc"], copies["zarr.api"]


def give_helpers(copies: dict[str, ModuleType]) -> None:
    """Private functions that tests build their hierarchies with, made of the public one and of documents."""
    from zardine.api.open import open as open_node
    from zardine.metadata.formats import to_documents
    from zardine.metadata.node_names import join_path
    from zardine.nodes.asynchronous import as_async
    from zardine.nodes.group import create_hierarchy

    def create_rooted_hierarchy(*, store: Any, nodes: Any, overwrite: bool = False) -> Any:
        made = dict(create_hierarchy(store=store, nodes=nodes, overwrite=overwrite))
        return made[min(nodes, key=len)]

    def create_nodes(*, store: Any, nodes: Any) -> Any:
        for path, node in nodes.items():  # and none above them
            for name, document in to_documents(node).items():
                if document is not None:
                    _plain(store, "set")(join_path(path, name), document)
            yield path, open_node(store, path=path, mode="r+")

    async def create_nodes_later(*, store: Any, nodes: Any) -> Any:
        for path, node in create_nodes(store=store, nodes=nodes):
            yield path, as_async(node)

    async def create_rooted_hierarchy_later(**kwargs: Any) -> Any:
        return as_async(create_rooted_hierarchy(**kwargs))

    copies["zarr.core.group"].create_rooted_hierarchy = create_rooted_hierarchy_later
    copies["zarr.core.sync_group"].create_nodes = create_nodes
    copies["zarr.core.sync_group"].create_rooted_hierarchy = create_rooted_hierarchy
    copies["zarr.core.group"].create_nodes = create_nodes_later


def help_private_names() -> None:
    """What tests of public behaviour look at on the way, though it is private: data types, counts, codecs compared."""
    from zarr.abc.codec import BaseCodec as TheirCodec
    from zarr.core.dtype import ZDType, get_data_type_from_json, get_data_type_from_native_dtype

    from zardine.codecs.base import Codec
    from zardine.data_types import DataType
    from zardine.nodes.array import Array
    from zardine.nodes.asynchronous import AsyncArray

    def their_dtype(array: Any) -> Any:
        older = array.metadata.older
        if older is not None:
            return get_data_type_from_native_dtype(array.dtype)
        return get_data_type_from_json(array.metadata.data_type.to_json(), zarr_format=3)

    Array._zdtype = AsyncArray._zdtype = property(their_dtype)
    Array._nshards_initialized = property(lambda self: self.nshards_initialized)
    Array._chunk_grid_shape = AsyncArray._chunk_grid_shape = property(lambda self: self.cdata_shape)
    Array._nshards = AsyncArray._nshards = property(lambda self: self.nshards)
    Array._shard_grid_shape = AsyncArray._shard_grid_shape = property(
        lambda self: tuple(axis.count for axis in self._handle.layout.grids.storage)
    )

    from zarr.core.chunk_grids import ChunkGrid
    from zarr.core.config import config as their_config
    from zarr.core.metadata.v2 import ArrayV2Metadata
    from zarr.core.metadata.v3 import ArrayV3Metadata

    def their_grid(array: Any) -> Any:
        kind = ArrayV3Metadata if array.metadata.zarr_format == 3 else ArrayV2Metadata
        with their_config.set({"array.rectilinear_chunks": True}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ChunkGrid.from_metadata(kind.from_dict(array.metadata.to_dict()))

    Array._chunk_grid = AsyncArray._chunk_grid = property(their_grid)

    def same_codec(mine: Any, other: Any, original: Any) -> Any:
        return mine.to_dict() == other.to_dict() if isinstance(other, Codec) else original(mine, other)

    def same_dtype(mine: Any, other: Any, original: Any) -> Any:
        return mine.to_json(zarr_format=3) == other.to_json() if isinstance(other, DataType) else original(mine, other)

    for kind, base in ((same_codec, TheirCodec), (same_dtype, ZDType)):
        for cls in below(base):
            if "__eq__" in getattr(cls, "__dict__", {}):
                cls.__eq__ = partialmethod(kind, original=vars(cls)["__eq__"])


def in_own_codecs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A helper of zarr-python whose results are compared with codecs of zardine."""
    from zardine.codecs.base import Codec
    from zardine.codecs.registry import codec_from

    def own(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(own, value))
        return value if value is None or isinstance(value, Codec) else codec_from(value.to_dict())

    def call(**arguments: Any) -> Any:
        for name in ("filters", "compressors"):
            if isinstance(arguments[name], Codec):
                arguments[name] = (arguments[name],)
        return own(function(**arguments))

    return call


def below(cls: Any) -> Iterator[Any]:
    yield cls
    for each in type.__subclasses__(cls) if isinstance(cls, type) else ():
        yield from below(each)


# stores as the tests use them


def asked_by_zardine() -> bool:
    """Whether the method of a store was called by zardine, not by a test."""
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return caller.split(".")[0] == "zardine"


ADAPTED: dict[type, type] = {}


def adapted(thing: Any) -> Any:
    from zardine.storage import Store, StorePath

    if thing is StorePath:
        for name, method in PATH_METHODS.items():
            setattr(StorePath, name, method)
        return StorePath
    if not (isinstance(thing, type) and issubclass(thing, Store)) or thing is Store:
        return thing
    if thing not in ADAPTED:
        names = {"__module__": __name__, "adapts": thing}
        ADAPTED[thing] = globals()[thing.__name__] = AwaitedKind(thing.__name__, (Awaited, thing), names)
    return ADAPTED[thing]


def buffer_of(data: Any) -> Any:
    from zarr.core.buffer import cpu

    return None if data is None else cpu.Buffer.from_bytes(bytes(data))


class AwaitedKind(ABCMeta):
    """A store that tests make; those that zardine makes count as of the same class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__.get("adapts", ())) or super().__instancecheck__(instance)


class Awaited:
    """Methods that answer tests with coroutines."""

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)

    def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        found = super().get(key)
        if asked_by_zardine():
            return found

        async def answer() -> Any:
            data = None if found is None else bytes(found)
            if data is not None and byte_range is not None:
                start = getattr(byte_range, "start", getattr(byte_range, "offset", None))
                end = getattr(byte_range, "end", None)
                data = data[-byte_range.suffix :] if hasattr(byte_range, "suffix") else data[start:end]
            return buffer_of(data)

        return answer()

    def list_dir(self, prefix: str) -> Any:
        if asked_by_zardine():
            return super().list_dir(prefix)
        path = prefix.strip("/")
        keys, below = super().list_dir(f"{path}/" if path else "")
        return later([name.rstrip("/").rpartition("/")[2] for name in [*keys, *below]])

    def list_prefix(self, prefix: str) -> Any:
        if asked_by_zardine():
            return super().list_prefix(prefix)
        return later([key for key in super().list_prefix("") if key.startswith(prefix)])

    def list(self) -> Any:
        return super().list_prefix("") if asked_by_zardine() else later([*super().list_prefix("")])

    @property
    def _store_dict(self) -> dict[str, Any]:
        return {key: buffer_of(super(Awaited, self).get(key)) for key in super().list_prefix("")}


async def later(values: list[str]) -> AsyncIterator[str]:
    for value in values:
        yield value


def awaited(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = getattr(super(Awaited, self), name)
        if asked_by_zardine():
            return plain(*args, **kwargs)

        async def answer() -> Any:
            return plain(*args, **kwargs)

        return answer()

    return method


for _name in ("set", "exists", "delete", "delete_dir", "clear", "getsize", "getsize_prefix", "is_empty"):
    setattr(Awaited, _name, awaited(_name))
Awaited.set_if_not_exists = awaited("set_if_not_exists")


async def _path_get(self: Any, prototype: Any = None, byte_range: Any = None) -> Any:
    return buffer_of(self.store.read(self.path) and self.store.read(self.path).parts[0])


async def _path_set(self: Any, value: Any) -> None:
    type(self.store).__mro__[-1]
    _plain(self.store, "set")(self.path, value)


async def _path_exists(self: Any) -> bool:
    return self.store.read(self.path) is not None


async def _path_delete(self: Any) -> None:
    self.store.erase(self.path)


async def _path_empty(self: Any) -> bool:
    return bool(_plain(self.store, "is_empty")(self.path))


def _plain(store: Any, name: str) -> Callable[..., Any]:
    return getattr(super(Awaited, store), name) if isinstance(store, Awaited) else getattr(store, name)


PATH_METHODS = {
    "get": _path_get,
    "set": _path_set,
    "exists": _path_exists,
    "delete": _path_delete,
    "is_empty": _path_empty,
}


# notes


class Watch:
    """Tells whether code of zardine runs, at next to no cost."""

    def __init__(self) -> None:
        self.touched = self.other_words = self.silent = False
        self.folder = ""
        if PLAIN:
            return
        import zardine

        self.folder = str(Path(zardine.__file__).parent)
        sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "zarr-suite")
        sys.monitoring.register_callback(sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START, self.started)

    def started(self, code: Any, offset: int) -> Any:
        if code.co_filename.startswith(self.folder) and code.co_name not in ("reset", "<module>"):
            self.touched = True
            self.listen(False)
            return None
        return sys.monitoring.DISABLE

    def listen(self, on: bool) -> None:
        if not PLAIN:
            sys.monitoring.set_events(
                sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START if on else sys.monitoring.events.NO_EVENTS
            )


class Lenient:
    """``pytest.raises`` without a look at the text of the error: zardine has words of its own."""

    def __init__(self, context: Any, match: Any) -> None:
        self.context, self.match = context, match

    def __enter__(self) -> Any:
        self.found = self.context.__enter__()
        return self.found

    def __exit__(self, *error: Any) -> Any:
        done = self.context.__exit__(*error)
        if done and self.match is not None and not re.search(self.match, str(self.found.value)):
            WATCH.other_words = True
        return done


def raises(expected: Any, *args: Any, match: Any = None, original: Any = pytest.raises, **kwargs: Any) -> Any:
    return original(expected, *args, **kwargs) if args else Lenient(original(expected, **kwargs), match)


class Silent:
    """``pytest.warns`` that lets the test go on where nothing warned: zardine gives few warnings."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def __enter__(self) -> Any:
        return self.context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return self.context.__exit__(*error)
        except pytest.fail.Exception:
            WATCH.silent = True
            return False


def warns(expected: Any, *args: Any, match: Any = None, original: Any = pytest.warns, **kwargs: Any) -> Any:
    return original(expected, *args, **kwargs) if args else Silent(original(expected, match=match, **kwargs))


if not PLAIN:
    install()
    pytest.raises = raises
    pytest.warns = warns
WATCH = Watch()
OUTCOMES: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[Any]:
    WATCH.touched = WATCH.other_words = WATCH.silent = False
    WATCH.listen(True)
    try:
        return (yield)
    finally:
        WATCH.listen(False)
        if item.nodeid in OUTCOMES:
            found = {"touched": WATCH.touched, "other_words": WATCH.other_words, "silent": WATCH.silent}
            OUTCOMES[item.nodeid] |= found


def pytest_runtest_logreport(report: Any) -> None:
    note = OUTCOMES.setdefault(report.nodeid, {"outcome": "passed", "why": ""})
    if report.outcome == "failed" or (report.outcome == "skipped" and note["outcome"] == "passed"):
        note["outcome"] = "error" if report.outcome == "failed" and report.when != "call" else report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        note["why"] = crash.message if crash is not None else str(report.longrepr)[:2000]


def pytest_collectreport(report: Any) -> None:
    if report.outcome == "failed":
        OUTCOMES[report.nodeid] = {"outcome": "error", "why": str(report.longrepr)[-2000:], "touched": True}


def pytest_sessionfinish() -> None:
    with NOTES.open("w", encoding="utf-8") as notes:
        for name, note in OUTCOMES.items():
            notes.write(json.dumps({"test": name, **note}) + "\n")
