"""The groups and data sets of an HDF5 file as groups and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.codecs import BytesCodec, VLenUTF8Codec
from zardine.codecs.base import ChunkSpec, Codec
from zardine.codecs.chain import CodecChain, build_chain
from zardine.codecs.registry import codec_from
from zardine.creation.attribute_conventions import MISSING
from zardine.errors import MetadataError
from zardine.json_document import JSON, Problems
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.sources.arrays import FILTERS, array_metadata, element_bytes
from zardine.sources.blocks import Blocks, MadeChunks, NoChunks, block_shape
from zardine.sources.cf_attributes import attributes_to_json, unique, unsaid_mark
from zardine.sources.foreign_store import Chunks, Coordinates, ForeignFile, ForeignNode
from zardine.sources.hdf5.attributes import read_attributes
from zardine.sources.hdf5.chunks import Dataset, StoredChunks
from zardine.sources.hdf5.dimensions import Dimensions, variable_name
from zardine.sources.hdf5.elements import Elements, elements_of
from zardine.sources.hdf5.filters import Filter, codecs_for, filters_of
from zardine.sources.hdf5.library import h5py, has_filter, open_file, reading
from zardine.sources.hdf5.tree import Member, walk
from zardine.sources.stored_file import StoredFile


class _UnfitError(Exception):
    """Zarr has no form for a data set; says why."""


def read_hdf5(file: StoredFile) -> ForeignFile:
    """Return what is in a file. Raises :class:`~zardine.errors.CorruptionError` where it is cut off or damaged."""
    with reading(f"{file} cannot be read as HDF5, it is cut off or damaged"):
        return _Reader(file, open_file(file)).read()


class _Reader:
    def __init__(self, file: StoredFile, root: Any) -> None:
        self._file = file
        self._root = root
        self._base: int = root.userblock_size
        """Bytes before the header of HDF5."""

    def read(self) -> ForeignFile:
        """Return all nodes."""
        tree = walk(self._root)
        dimensions = Dimensions(tree.datasets)
        nodes: dict[str, ForeignNode] = {}
        left_out = list(tree.left_out)
        for group in tree.groups:
            remarks = tree.remarks[group.path]
            attributes, more = attributes_to_json(read_attributes(group.found, remarks), None)
            nodes[group.path] = ForeignNode(GroupMetadata(attributes=attributes), None, unique([*remarks, *more]))
        for member in tree.datasets:
            if member.found.shape is not None and not dimensions.is_variable(member):
                continue
            path = join_path(member.parent, variable_name(member.name))
            try:
                node = self._array(member, dimensions)
            except _UnfitError as reason:
                left_out.append((path, str(reason)))
                continue
            nodes[path] = node
        return ForeignFile("HDF5", nodes, tuple(left_out))

    def _array(self, member: Member, dimensions: Dimensions) -> ForeignNode:
        found = member.found
        if found.shape is None:
            raise _UnfitError("it has no elements, and no dimensions either")
        shape: Coordinates = dimensions.shape_of(member)
        elements = elements_of(found.id.get_type())
        if isinstance(elements, str):
            raise _UnfitError(elements)
        creation = found.id.get_create_plist()
        fill = _fill(found, creation, elements)
        kind = _layout(creation)
        filters = filters_of(creation) if kind == "chunked" else []
        item_size = elements.data_type.item_size or 16
        compressors = None if elements.in_file is None else codecs_for(filters, item_size)
        if compressors is None:
            missing = [each for each in filters if not has_filter(each.number)]
            if missing:
                raise _UnfitError(
                    f"it needs the filter {', '.join(map(str, missing))}, which neither zardine nor the HDF5 library "
                    "here has (the package hdf5plugin brings many: pip install hdf5plugin)"
                )
        if kind == "elsewhere":
            raise _UnfitError("its elements are in other files, which are never read")
        if kind == "virtual":
            raise _UnfitError("it is made of other data sets (a virtual one), which may be in other files")
        blocks = tuple(creation.get_chunk()) if kind == "chunked" else block_shape(shape, item_size)
        direct = compressors is not None
        codecs = _codecs(elements, compressors if kind == "chunked" and compressors else [])
        remarks: list[str] = []
        values = read_attributes(found, remarks)
        attributes, more = attributes_to_json(values, elements.data_type)
        metadata = array_metadata(
            shape,
            blocks,
            elements.data_type,
            fill,
            codecs,
            attributes,
            dimensions.names_of(member),
            {
                "unlimited_dimensions": dimensions.unlimited(member),
                "enumeration": elements.enumeration,
                MISSING: unsaid_mark(values, elements.data_type),
                FILTERS: [] if direct else [str(each) for each in filters],
            },
        )
        place = f"{self._file}/{member.path}"
        chain = _chain(codecs, ChunkSpec(blocks, elements.data_type, fill))
        dataset = Dataset(place, found, elements, shape, blocks, fill, chain)
        chunks = self._chunks(dataset, kind, filters, direct=direct)
        return ForeignNode(metadata, chunks, unique([*remarks, *more]))

    def _chunks(self, dataset: Dataset, kind: str, filters: Sequence[Filter], *, direct: bool) -> Chunks:
        if kind == "chunked":
            return StoredChunks(dataset, self._file, self._base, filters, direct=direct)
        if kind == "contiguous" and not dataset.found.id.get_storage_size():
            return NoChunks()
        offset = dataset.found.id.get_offset() if kind == "contiguous" else None
        if offset is None or self._base or dataset.elements.in_file is None:
            return MadeChunks(dataset.shape, dataset.blocks, dataset.make)
        element = element_bytes(dataset.fill, dataset.elements.in_file)
        return Blocks(self._file, dataset.shape, dataset.blocks, element, offset)


def _layout(creation: Any) -> str:
    library = h5py()
    if creation.get_external_count():
        return "elsewhere"
    layouts = {library.h5d.CHUNKED: "chunked", library.h5d.CONTIGUOUS: "contiguous", library.h5d.COMPACT: "compact"}
    return layouts.get(creation.get_layout(), "virtual")


def _fill(found: Any, creation: Any, elements: Elements) -> npt.NDArray[Any]:
    data_type = elements.data_type
    if creation.fill_value_defined() != h5py().h5d.FILL_VALUE_USER_DEFINED:
        return data_type.default_fill()
    try:
        value = found.fillvalue
        if elements.text:
            return data_type.cast_fill(value.decode() if isinstance(value, bytes) else str(value or ""))
        return data_type.cast_fill(np.asarray(value, elements.dtype).astype(data_type.dtype)[()])
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise _UnfitError(f"its fill value cannot be read: {error}") from None


def _codecs(elements: Elements, compressors: Sequence[JSON]) -> list[Codec]:
    if elements.text:
        return [VLenUTF8Codec()]
    endian = None
    if elements.data_type.needs_endian:
        endian = "big" if elements.in_file is not None and elements.in_file.byteorder == ">" else "little"
    return [BytesCodec(endian=endian), *map(codec_from, compressors)]


def _chain(codecs: Sequence[Codec], spec: ChunkSpec) -> CodecChain:
    problems = Problems()
    try:
        chain = build_chain(codecs, spec, "codecs", problems)
    except MetadataError as error:
        raise _UnfitError(str(error)) from None
    if chain is None or problems:
        raise _UnfitError("; ".join(map(str, problems.found)))
    return chain


__all__ = ["read_hdf5"]
