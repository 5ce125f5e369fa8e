"""The public names: pinned here and in ``api/signatures.txt``, so that none appears or goes by accident; all explain
themselves."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import zardine


def _pinned_with_signatures() -> dict[str, str]:
    """The names of each module in ``api/signatures.txt``."""
    found: dict[str, str] = {}
    text = (Path(__file__).parent / "api" / "signatures.txt").read_text()
    for section in re.split("^# ", text, flags=re.M)[1:]:
        module, *lines = section.splitlines()
        names = [re.match(r"(?:class |value |module )?(\w+)", line) for line in lines if line[:1].strip()]
        found[module] = " ".join(name[1] for name in names if name)
    return {module: names for module, names in found.items() if module in FACES}


FACES = ("zardine", "zardine.codecs", "zardine.registry", "zardine.sources", "zardine.storage", "zardine.vectors")
NAMES = {
    **_pinned_with_signatures(),
    "zardine.errors": """
        ArrayChangedError
        ArrayIndexError ArrayNotFoundError BaseZarrError BoundsCheckError ChecksumError ChunkDecodeError
        ChunkNotFoundError ChunkTooLargeError CommittedError ConditionFailedError ContainsArrayAndGroupError
        ContainsArrayError ContainsGroupError
        ConversionError CorruptionError DataError DataTypeValidationError DimensionNamesError
        EncodeError GroupNotFoundError InvalidKeyError JobsFailedError MetadataError MetadataValidationError
        NegativeStepError
        NodeExistsError
        NodeNotFoundError NodeTypeValidationError PickleCodecDisabledError PlanError
        Problem ReadOnlyError SelectionError ShardIndexError StoreError
        TornShardWarning
        UnfinishedError
        UnknownCodecError UnknownExtensionError UnstableSpecificationWarning UnsupportedError
        VindexInvalidSelectionError ZardineError ZarrDeprecationWarning ZarrFutureWarning ZarrRuntimeWarning
        ZarrUserWarning ZeroStepError
    """,
    "zardine.dtype": """
        Bool Complex64 Complex128 DateTime64 FixedLengthUTF32 Float16 Float32 Float64 Int8 Int16 Int32 Int64
        NullTerminatedBytes RawBytes Struct Structured TimeDelta64 UInt8 UInt16 UInt32 UInt64 VariableLengthBytes
        VariableLengthUTF8 ZDType parse_dtype register_data_type
    """,
    "zardine.abc.store": "ByteRange ByteRequest Condition Reading Store Version",
    "zardine.abc.codec": "ArrayArrayCodec ArrayBytesCodec BaseCodec BytesBytesCodec ChunkSpec Codec SizeLimit",
}


NOT_BY_STAR = {"zardine.vectors": {"open"}}
"""Names of built-in functions, which ``from ... import *`` would hide."""


@pytest.mark.parametrize("module", NAMES)
def test_the_names_are_these(module: str) -> None:
    found = import_module(module)
    assert {*found.__all__} == {*NAMES[module].split()} - NOT_BY_STAR.get(module, set())
    assert len(set(found.__all__)) == len(found.__all__)
    for name in found.__all__:
        assert getattr(found, name) is not None or name == "__kernel__"


def test_every_name_is_loaded_from_its_home_when_it_is_used() -> None:
    modules = {file.stem for file in Path(zardine.__file__).parent.iterdir()}
    assert not modules.intersection(zardine._exports.homes), "importing the module would hide the name"
    code = "import sys, zardine; dir(zardine); print([name for name in sys.modules if name.startswith('zardine.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['zardine.public_names', 'zardine.stand_in']"


@pytest.mark.parametrize("module", ["zardine", "zardine.codecs", "zardine.storage", "zardine.vectors"])
def test_editors_see_every_name_where_it_is_loaded_from(module: str) -> None:
    face = import_module(module)
    (block,) = (
        node
        for node in ast.parse(Path(str(face.__file__)).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        each.asname: f"{node.module}.{each.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    loaded = {name: f"{face._exports.package}.{home}.{name}" for name, home in face._exports.homes.items()}
    assert {name: home for name, home in imported.items() if home != f"zardine.{name}"} == {
        name: home for name, home in loaded.items() if name != "__kernel__"
    }


@pytest.mark.parametrize("module", NAMES)
def test_dir_shows_the_public_names_only(module: str) -> None:
    found = import_module(module)
    assert dir(found) == sorted({*found.__all__} | NOT_BY_STAR.get(module, set()))


def test_all_names_of_vectors_leave_open_as_it_is() -> None:
    space: dict[str, Any] = {}
    exec("from zardine.vectors import *", space)
    assert "open" not in space
    assert space["write"] is zardine.vectors.write


@pytest.mark.parametrize("module", NAMES)
def test_public_objects_say_whose_they_are_and_pickle(module: str) -> None:
    for name in import_module(module).__all__:
        thing = getattr(import_module(module), name)
        own = isinstance(thing, (type, FunctionType)) and thing.__module__.startswith("zardine")
        if own and thing.__name__ == name:  # else it is an alias
            assert thing.__module__ == module or getattr(import_module(thing.__module__), name) is thing
            assert thing.__module__ in NAMES, f"{module}.{name} says {thing.__module__}"
            assert pickle.loads(pickle.dumps(thing)) is thing


def test_classes_say_whose_they_are_before_anybody_asked_by_name() -> None:
    code = """
import zardine
array = zardine.zeros((4, 4), chunks=(2, 2), shards=(4, 4), store={})
group = zardine.group()
kinds = [array, array.metadata, array.config, group, group.metadata, array.async_array, *array.codecs]
kinds += [*array.codecs[0].codecs, array.store, array.store_path]
print(sorted({type(each).__module__ for each in kinds}))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['zardine', 'zardine.codecs', 'zardine.storage']"


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every public function, class, method and property, by its full name."""
    for module, names in NAMES.items():
        for name in names.split():
            thing = getattr(import_module(module), name)
            if inspect.isclass(thing) and thing.__module__.startswith("zardine"):
                yield f"{module}.{name}", thing
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                        yield f"{module}.{name}.{member}", value
                    if isinstance(value, (classmethod, staticmethod)):
                        yield f"{module}.{name}.{member}", value.__func__
            elif inspect.isroutine(thing):
                yield f"{module}.{name}", thing


def test_every_public_object_has_a_docstring() -> None:
    found = dict(public_objects())
    assert len(found) > 300
    inherited = {  # what a store or codec overrides is described where it is declared
        name
        for name in found
        if name.rpartition(".")[0].endswith(("Store", "Codec", "CastValue", "ScaleOffset"))
        and inspect.getdoc(found[name]) is None
        and _described_above(name)
    }
    missing = [name for name, thing in found.items() if name not in inherited and not inspect.getdoc(thing)]
    assert missing == []


def _described_above(name: str) -> bool:
    owner, _, member = name.rpartition(".")
    module, _, kind = owner.rpartition(".")
    parents = getattr(import_module(module), kind).__mro__[1:]
    return any(inspect.getdoc(vars(parent)[member]) for parent in parents if member in vars(parent))


def test_modules_tell_what_they_are() -> None:
    for module in NAMES:
        assert inspect.getdoc(import_module(module))


def test_unknown_names_are_attribute_errors() -> None:
    for module in (zardine, zardine.codecs, zardine.storage):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Nonsense'"):
            module.Nonsense  # noqa: B018


def test_errors_are_one_tree() -> None:
    for name in zardine.errors.__all__:
        kind = getattr(zardine.errors, name)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, zardine.errors.ZardineError), name
