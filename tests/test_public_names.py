"""The public names: pinned here, so that none appears or goes by accident; and every one of them explains itself."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import zardine

NAMES = {
    "zardine": """
        Array ArrayConfig ArrayMetadata AsyncArray AsyncGroup Group GroupMetadata __kernel__ __version__ abc advise
        api array codecs compact config consolidate_metadata convert copy copy_all copy_store create create_array
        create_group create_hierarchy dtype empty empty_like errors from_array full full_like group load ones
        ones_like open open_array open_consolidated open_group open_like print_debug_info registry repair
        reshard save save_array save_group storage tree vectors verify zeros zeros_like
    """,
    "zardine.storage": """
        ByteRange CachedStore Condition CountingStore Counts FsspecStore HTTPStore LocalStore ManagedMemoryStore
        MemoryStore ObjectStore PrefixStore Reading Store StoreLike StorePath Version WrapperStore ZipStore
    """,
    "zardine.codecs": """
        BitRoundCodec BloscCname BloscCodec BloscShuffle BytesCodec CastValue Crc32cCodec Endian GzipCodec
        PackBitsCodec ReshapeCodec ScaleOffset ShardingCodec ShardingCodecIndexLocation TransposeCodec VLenBytesCodec
        VLenUTF8Codec ZstdCodec
        Adler32 AsType BZ2 BitRound Blosc CRC32 CRC32C Delta FixedScaleOffset Fletcher32 GZip
        JenkinsLookup3 LZ4 LZMA PCodec PackBits Quantize Shuffle SubchunkWriteOrder ZFPY Zlib Zstd
        codec_from parse_codec register_codec
    """,
    "zardine.errors": """
        ArrayChangedError
        ArrayIndexError ArrayNotFoundError BaseZarrError BoundsCheckError ChecksumError ChunkDecodeError
        ChunkNotFoundError ChunkTooLargeError ConditionFailedError ContainsArrayAndGroupError
        ContainsArrayError ContainsGroupError
        ConversionError CorruptionError DataError DataTypeValidationError
        EncodeError GroupNotFoundError InvalidKeyError MetadataError MetadataValidationError NegativeStepError
        NodeExistsError
        NodeNotFoundError NodeTypeValidationError PickleCodecDisabledError
        Problem ReadOnlyError SelectionError ShardIndexError StoreError
        TornShardWarning
        UnknownCodecError UnknownExtensionError UnstableSpecificationWarning UnsupportedError
        VindexInvalidSelectionError ZardineError ZarrDeprecationWarning ZarrFutureWarning ZarrRuntimeWarning
        ZarrUserWarning
    """,
    "zardine.dtype": """
        Bool Complex64 Complex128 DateTime64 FixedLengthUTF32 Float16 Float32 Float64 Int8 Int16 Int32 Int64
        NullTerminatedBytes RawBytes Struct Structured TimeDelta64 UInt8 UInt16 UInt32 UInt64 VariableLengthBytes
        VariableLengthUTF8 ZDType parse_dtype register_data_type
    """,
    "zardine.abc.store": "ByteRange Condition Reading Store Version",
    "zardine.abc.codec": "ArrayArrayCodec ArrayBytesCodec BaseCodec BytesBytesCodec ChunkSpec Codec SizeLimit",
    "zardine.vectors": """
        Finding FragmentTable Graph GroupTable Mesh ObjectTable ParametricObject Points Polylines Report Skeleton
        append_graph append_mesh append_points append_polylines append_skeleton build_pyramid delete
        describe_store get_shard_info is_sharded move_vertices read_cross_level_links read_fragments read_graph
        read_groups read_objects read_lines read_mesh
        read_parametric_objects read_points read_polylines read_skeleton repair reshard set_attribute shard_store
        unshard_store validate write_graph write_lines write_mesh write_parametric_objects write_points
        write_polylines write_skeleton
    """,
    "zardine.registry": """
        get_chunk_key_encoding_class get_codec_class register_chunk_grid register_chunk_key_encoding register_codec
        register_data_type
    """,
}


@pytest.mark.parametrize("module", NAMES)
def test_the_names_are_these(module: str) -> None:
    found = import_module(module)
    assert sorted(found.__all__) == sorted(NAMES[module].split())
    assert len(set(found.__all__)) == len(found.__all__)
    for name in found.__all__:
        assert getattr(found, name) is not None or name == "__kernel__"


def test_every_name_is_loaded_from_its_home_when_it_is_used() -> None:
    assert sorted(zardine.__all__) == sorted([*zardine._HOME, *zardine._MODULES, "__version__"])
    modules = {file.stem for file in Path(zardine.__file__).parent.iterdir()}
    assert not modules.intersection(zardine._HOME), "importing the module would hide the name"
    code = "import sys, zardine; dir(zardine); print([name for name in sys.modules if name.startswith('zardine.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['zardine.stand_in']"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        zardine.nothing  # noqa: B018


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
    for module in (zardine, zardine.codecs):
        with pytest.raises(AttributeError, match="Nonsense"):
            module.Nonsense  # noqa: B018


def test_errors_are_one_tree() -> None:
    for name in zardine.errors.__all__:
        kind = getattr(zardine.errors, name)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, zardine.errors.ZardineError), name


@pytest.mark.parametrize("name", [*zardine.codecs.__all__])
def test_names_of_modules_that_load_late_are_listed(name: str) -> None:
    assert name in dir(zardine.codecs)
