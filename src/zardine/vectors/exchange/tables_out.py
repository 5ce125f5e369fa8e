"""Points as tables: CSV, Feather, and Parquet with columns of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.csv_values import inferred, written
from zardine.vectors.exchange.level_parts import LevelParts, SeenColumns, columns_with_ids
from zardine.vectors.exchange.losses import check_rank, check_store, columns_in_order
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.exchange.table_columns import EMPTY, LARGE, ROLES, TEXT, Facts, coordinate_columns
from zardine.vectors.outside import column_names, needing, warn
from zardine.vectors.results import Points
from zardine.vectors.storing.store import VectorStore

Write: TypeAlias = Callable[[Any], object]


class _Look:
    """What is known of an attribute: its type, and what its text would be taken for in a CSV file."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like, self.facts = like, Facts(EMPTY)

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if values.dtype.kind not in "iufb":
            self.facts = self.facts.joined(inferred(_arrow_of(values.reshape(-1))))


def _arrow_of(values: npt.NDArray[Any]) -> Any:
    """An array of Arrow; text may be missing."""
    arrow: Any = import_module("pyarrow")
    if values.dtype.kind in "iufb":
        return arrow.array(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False))
    return arrow.array(values.tolist(), arrow.string())


def _look(
    path: StoreLike, target: Path, level: int, parts: LevelParts[Points], *, is_text: bool = False
) -> dict[str, Any]:
    """See which columns a file has: coordinates by the names of axes, and attributes; warns of what is lost."""
    with needing(target):
        import_module("pyarrow")
    check_store(path, target, level, ("point_cloud",), ("vertex_attributes",), axes=True)
    check_rank(parts.rank, target, (2, 3, 4))
    root = VectorStore.open(path).root
    order = columns_in_order(root.axes) or range(len(root.axes))
    names = [str(root.axes[at].get("name")) for at in order]
    units = [str(axis["unit"]) for axis in root.axes if axis.get("unit")]
    if units:
        warn(target, f"units of axes cannot be kept: {', '.join(dict.fromkeys(units))}")
    seen, dtype = SeenColumns(_Look, in_order=parts.in_order), "<f8"
    for part in parts:
        dtype = part.positions.dtype.str
        seen.look(part.attributes, part.object_ids)
    looks = seen.found(target)
    widths = {name: None if look.like.ndim == 1 else int(look.like.shape[1]) for name, look in looks.items()}
    for name, width in widths.items():
        if width is not None:
            warn(
                target, f"the attribute {name!r} of several values becomes columns: '{name}_0' to '{name}_{width - 1}'"
            )
    columns = column_names(widths, names, target)
    for name, look in looks.items():
        if is_text and look.like.dtype.kind not in "iufb" and look.facts.form not in (TEXT, EMPTY, LARGE):
            warn(target, f"the attribute {name!r} comes back as numbers or truth values: all of its text looks so")
    _tell_of_names([*names, *columns], len(names), target)
    dtypes = {name: look.like.dtype.str if look.like.dtype.kind in "iufb" else None for name, look in looks.items()}
    told = {name: [of, channel, dtypes[of]] for name, (of, channel) in columns.items()}
    return {"axes": names, "dtype": dtype, "columns": told}


def _tell_of_names(names: list[str], rank: int, target: Path) -> None:
    """Warn where an import does not take the first columns for coordinates by their names."""
    try:
        known = coordinate_columns(names, {}, target)
    except DataError:
        known = []
    if known != list(range(rank)):
        wanted = ", ".join(f"{role}={name!r}" for role, name in zip(ROLES, names[:rank], strict=False))
        warn(target, f"its columns of coordinates are not known by their names: import it with {wanted}")


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The points of a level, part by part, as tables of Arrow."""

    layout: Mapping[str, Any]
    parts: LevelParts[Points]

    @property
    def schema(self) -> Any:
        """The columns of all of them."""
        arrow: Any = import_module("pyarrow")
        positions = arrow.from_numpy_dtype(np.dtype(self.layout["dtype"]))
        types = {name: dtype for name, (_, _, dtype) in self.layout["columns"].items()}
        attributes = {
            name: arrow.string() if dtype is None else arrow.from_numpy_dtype(np.dtype(dtype).newbyteorder("="))
            for name, dtype in types.items()
        }
        return arrow.schema([*((name, positions) for name in self.layout["axes"]), *attributes.items()])

    def __iter__(self) -> Iterator[Any]:
        arrow: Any = import_module("pyarrow")
        schema = self.schema
        for part in self.parts:
            columns = columns_with_ids(part.attributes, part.object_ids)
            arrays = [_arrow_of(each) for each in part.positions.T]
            for name, channel, _ in self.layout["columns"].values():
                arrays.append(_arrow_of(columns[name] if channel is None else columns[name][:, channel]))
            arrays = [each.cast(field.type) for each, field in zip(arrays, schema, strict=True)]
            yield arrow.Table.from_arrays(arrays, schema=schema)


@contextmanager
def _to_feather(place: Path, schema: Any) -> Iterator[Write]:
    arrow: Any = import_module("pyarrow")
    options = arrow.ipc.IpcWriteOptions(compression="zstd")
    with arrow.ipc.new_file(str(place), schema, options=options) as file:
        yield file.write_table


@contextmanager
def _to_parquet(place: Path, schema: Any) -> Iterator[Write]:
    with import_module("pyarrow.parquet").ParquetWriter(place, schema, compression="snappy") as file:
        yield file.write_table


@contextmanager
def _to_csv(place: Path, schema: Any) -> Iterator[Write]:
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    delimiter = "\t" if place.suffix.lower() == ".tsv" else ","

    def lines(columns: list[Any]) -> bytes:
        if not len(columns[0]):
            return b""
        wide = arrow.large_string()
        between = arrow.scalar(delimiter, wide)
        rows = compute.binary_join_element_wise(*(each.cast(wide) for each in columns), between)
        whole = arrow.ListArray.from_arrays([0, len(rows)], rows)
        return bytes(compute.binary_join(whole, arrow.scalar("\n", wide))[0].as_buffer()) + b"\n"

    with place.open("wb") as file:
        file.write(lines([written(arrow.array([name]), delimiter) for name in schema.names]))

        def write(table: Any) -> None:
            for batch in table.to_batches(max_chunksize=2**16):
                file.write(lines([written(each, delimiter) for each in batch.columns]))

        yield write


def _write(
    path: StoreLike, place: Path, parts: LevelParts[Points], layout: Mapping[str, Any], *, to: Callable[..., Any]
) -> None:
    rows = _Rows(layout, parts)
    with to(place, rows.schema) as write:
        for table in rows:
            write(table)


csv_out = FileWriter(partial(_look, is_text=True), partial(_write, to=_to_csv))
"""Points as CSV."""
feather_out = FileWriter(_look, partial(_write, to=_to_feather))
"""Points as Feather."""
parquet_table_out = FileWriter(_look, partial(_write, to=_to_parquet))
"""Points as Parquet with columns of coordinates."""

__all__ = ["csv_out", "feather_out", "parquet_table_out"]
