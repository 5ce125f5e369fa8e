"""LAS and LAZ, files of points, through laspy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.level_parts import LevelParts, SeenColumns, columns_with_ids, numbers_among
from zardine.vectors.exchange.losses import (
    bounds_of_nothing,
    check_rank,
    check_store,
    reading,
    storable,
    tell_of_metadata,
    warn_crs,
)
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.exchange.scan_claims import check_count, check_points, check_records
from zardine.vectors.outside import STEPS, needing, tell_of_booleans, warn, warn_names, without_steps
from zardine.vectors.points import write_spooled_points
from zardine.vectors.results import Points
from zardine.vectors.storing.store import VectorStore

_COORDINATES = ("X", "Y", "Z", "x", "y", "z")
_COLOURS = ("red", "green", "blue")
_FIXED = 64 * 2**20
"""Bytes that reading takes beside the points, about."""
_TIME = "gps_time"
_OLDEST, _NEWEST = 3, 8
_FORMATS = (3, 6, 7, 8)
"""Formats of points whose fields hold all that those of others do: of LAS 1.2, which have fewer, and of 1.4."""
_FILLED = ("zardine", 1, "dimensions that are filled")
"""Who, and under which number, says in a file which of the dimensions that all such files have are filled."""
_STEP_OF_A_PLANE = 1e-6
"""The step of an axis along which all positions are equal: any does, since the offset is that position."""


FATES = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    scales="kept/kept: as the table 'las' of crs, and used where the positions of an axis fit",
    precision="kept/told: in steps that 32 bits allow",
    integers="kept/kept",
    floats="kept/kept",
    booleans="-/told: as 0 and 1",
    text="-/told",
    several_values="kept/kept: up to three; more are told",
    missing_text="-/told",
    vertex_attributes="kept/kept",
    object_attributes="-/told",
    ids="-/kept: as the dimension 'object_id'",
    groups="-/told",
    normals="kept/kept: as an extra dimension",
    colours="kept/kept: as the dimensions red, green and blue, the numbers as they are",
    crs="kept/kept",
    bounds="-/told",
    metadata="told/told: fields of the header, and records (VLRs) but those of crs",
    missing_integers="told/-: they stay the number that stands for them",
    comments="told/-: records (VLRs), and descriptions of extra dimensions",
)


class ScanParts:
    """A LAS or LAZ file as :class:`~zardine.vectors.exchange.file_parts.FileParts`: each has ``at_once`` points.

    Every dimension but the coordinates becomes an attribute, without those that are all zero and that an export of ours
    did not fill; the reference system becomes ``crs`` (``wkt``), with the steps of coordinates (``las``). Raises
    :class:`DataError` for a file that ends before the last point of its header.
    """

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source, self._at_once = source, at_once
        with self._opened() as reader:
            header = reader.header
            self.vertices = self.rows = int(header.point_count)
            check_points(header, source)
            self._row = int(header.point_format.size) + 8 * len(list(header.point_format.dimension_names))

    @property
    def outline(self) -> None:
        """Nothing: it is known at once where the parts are."""

    @property
    def count(self) -> int:
        """How many parts there are."""
        return max(1, -(-self.vertices // self._at_once))

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one: the points, their coordinates and attributes twice, and as bytes."""
        return 4 * self._row * min(self._at_once, max(1, self.vertices)) + _FIXED

    def read(self, number: int) -> Piece:
        """Return positions and attributes of the points of a part."""
        start = number * self._at_once
        wanted = min(self._at_once, self.vertices - start)
        with self._opened() as reader:
            if start:
                reader.seek(start)
            points = reader.read_points(wanted) if wanted else reader.read().points
            names = [name for name in reader.header.point_format.dimension_names if name not in _COORDINATES]
            check_count(self.vertices, start + len(points) if len(points) != wanted else self.vertices, self._source)
            positions = np.stack([np.asarray(points[axis], np.float64) for axis in "xyz"], axis=1)
            return Piece(positions, {name: np.array(points[name]) for name in names})

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all points, and warn of what the store cannot hold."""
        with self._opened() as reader:
            header = reader.header
            hidden = set(header.point_format.extra_dimension_names) & set(_COORDINATES)
            warn_names(sorted(hidden), self._source, "coordinates are called so")
            crs = options["crs"] if "crs" in options else _crs_in(header, self._source)
            if crs is None or isinstance(crs, Mapping):
                options = {**options, "crs": {STEPS: _steps_in(header), **(crs or {})}}
            _warn_left_out(header, self._source)
            unfilled = _unfilled(header)
        for _, values in whole.parts() if unfilled else ():
            unfilled = {name for name in unfilled if not values[name].any()}
        names = [name for name in whole.columns if name not in unfilled]
        whole.rename(storable({name: name for name in names}, self._source))
        more = {} if self.rows else bounds_of_nothing(self._source, options)
        write_spooled_points(path, whole, {**options, **more}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with needing(self._source):
            import laspy
        with reading(self._source):
            check_records(self._source)
            with laspy.open(str(self._source)) as reader:
                yield reader


def _look(path: StoreLike, target: Path, level: int, parts: LevelParts[Points]) -> dict[str, Any]:
    """See which steps, format of points and dimensions a file needs.

    Coordinates are stored as 32-bit integers: along each axis in the steps of the file that the store was made of, if
    these hold all positions, else in the least steps of a power of ten that hold the extent. The file is LAS 1.2 with
    points of format 0, or 1, 2 or 3 for times and colours; LAS 1.4 with format 6, 7 or 8 where values of an attribute,
    or the reference system, need it. Attributes without a field have up to three values for each point.
    """
    with needing(target):
        import_module("laspy")

    check_store(path, target, level, ("point_cloud",), ("vertex_attributes",), crs=True)
    check_rank(parts.rank, target)
    seen, low, high = SeenColumns(_Look), np.full(3, np.inf), np.full(3, -np.inf)
    for part in parts:
        seen.look(part.attributes, part.object_ids)
        low = np.minimum(low, part.positions.min(axis=0, initial=np.inf))
        high = np.maximum(high, part.positions.max(axis=0, initial=-np.inf))
    looks = numbers_among(seen.found(target), target)
    crs = _crs_out(path, target)
    header = _header(looks, crs)
    kept = _steps_out(path)
    header.global_encoding.gps_time_type = _gps_times(kept["gps_time_type"])
    finest = _steps(low, high) if np.isfinite(low).all() else (header.offsets, header.scales)
    choices = [finest] if kept["steps"] is None or not _hold(kept["steps"], low, high) else [kept["steps"], finest]
    moved = np.zeros((len(choices), 3), np.bool_)
    for part in parts.through(None):
        moved |= [_moved(part.positions, each, low, high) for each in choices]
    chosen = np.where(moved[0], len(choices) - 1, 0)
    header.offsets, header.scales = (np.stack(each)[chosen, np.arange(3)] for each in zip(*choices, strict=True))
    if moved[chosen, np.arange(3)].any():
        told = ", ".join(f"{each:g}" for each in header.scales)
        warn(target, f"positions are rounded to steps of {told}: the format has 32 bits for each coordinate")
    fields, extra = _kept(looks, header, target)
    return {
        "version": str(header.version),
        "point_format": int(header.point_format.id),
        "offsets": np.asarray(header.offsets).tolist(),
        "scales": np.asarray(header.scales).tolist(),
        "gps_time_type": int(header.global_encoding.gps_time_type),
        "wkt": None if crs is None else crs.to_wkt(),
        "fields": fields,
        "extra": extra,
    }


def _write(path: StoreLike, place: Path, parts: LevelParts[Points], layout: Mapping[str, Any]) -> None:
    import laspy

    header = laspy.LasHeader(point_format=layout["point_format"], version=layout["version"])
    header.offsets, header.scales = np.array(layout["offsets"]), np.array(layout["scales"])
    header.global_encoding.gps_time_type = _gps_times(layout["gps_time_type"])
    user, number, about = _FILLED
    filled = [name for name in layout["fields"] if name in header.point_format.standard_dimension_names]
    header.vlrs.append(laspy.VLR(user, number, about, "\n".join(filled).encode("ascii")))
    if layout["wkt"] is not None:
        import pyproj

        header.add_crs(pyproj.CRS.from_wkt(layout["wkt"]))
    if layout["extra"]:
        header.add_extra_dims(
            [laspy.ExtraBytesParams(name=name, type=np.dtype(kind)) for name, kind in layout["extra"]]
        )
    with laspy.open(str(place), mode="w", header=header) as file:
        for part in parts:
            columns = columns_with_ids(part.attributes, part.object_ids)
            record = _record(part.positions, file.header)
            for name in layout["fields"]:
                record[name] = _plain(columns[name]).astype(record[name].dtype)
            file.write_points(record)


scan_out = FileWriter(_look, _write, ways=3)
"""Points as LAS or LAZ."""


class _Look:
    """What is known of values: which fields of this name hold them."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        import laspy

        self.like = like
        formats = (laspy.PointFormat(number) for number in _FORMATS)
        fields = (each.dimension_by_name(name) for each in formats if name in each.standard_dimension_names)
        self._limits: dict[tuple[Any, int | None], bool] = {_limits(field): like.ndim == 1 for field in fields}

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if self.like.dtype.kind not in "iufb":
            return
        for limits, fits in self._limits.items():
            dtype, most = limits
            cast = _cast(_plain(values), dtype) if fits else None
            self._limits[limits] = cast is not None and (most is None or int(cast.max(initial=0)) <= most)

    def fits(self, points: Any, name: str) -> bool:
        """Whether a point format has a field of this name for these values."""
        return name in points.standard_dimension_names and self._limits[_limits(points.dimension_by_name(name))]


def _limits(field: Any) -> tuple[Any, int | None]:
    """The type of a field, and the most that it holds where it has only some bits."""
    return (np.dtype(np.uint8), int(field.max)) if field.dtype is None else (field.dtype, None)


def _record(positions: npt.NDArray[Any], header: Any) -> Any:
    """Points of a file at some positions."""
    from laspy.point.record import ScaleAwarePointRecord

    record = ScaleAwarePointRecord.zeros(len(positions), header=header)
    record[("x", "y", "z")] = positions.astype(np.float64)
    return record


def _crs_in(header: Any, source: Path) -> dict[str, str] | None:
    """The reference system as the store has it; ``None``, with a warning, where there is one that cannot be read."""
    records = [*header.vlrs, *(header.evlrs or ())]
    if not any(each.user_id == "LASF_Projection" for each in records):
        return None
    why = "laspy does not understand its records"
    try:
        crs = header.parse_crs()
        if crs is not None:
            return {"wkt": crs.to_wkt()}
    except ModuleNotFoundError:
        why = "that needs pyproj: pip install pyproj"
    except Exception as error:  # whatever laspy and pyproj make of records that are damaged
        why = str(error)
    warn(source, f"the reference system is left out, since it cannot be read: {why}; crs= gives one")
    return None


def _unfilled(header: Any) -> set[str]:
    """The dimensions that an export of ours says that it did not fill; none for other files."""
    for each in header.vlrs:
        if (each.user_id, each.record_id) == _FILLED[:2]:
            filled = bytes(each.record_data_bytes()).decode("ascii", "replace").split("\n")
            return set(header.point_format.standard_dimension_names) - {*filled, *_COORDINATES}
    return set()


def _is_said(value: Any) -> bool:
    """Whether a field of a header says something: it is not empty, and not what laspy writes of itself."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.strip("\0 0-") not in ("", "OTHER")


def _warn_left_out(header: Any, source: Path) -> None:
    """Warn of records beside the points, and of waveforms; those of the reference system are told of elsewhere."""
    records = [
        each
        for each in (*header.vlrs, *(header.evlrs or ()))
        if each.user_id not in ("LASF_Projection", _FILLED[0])
        and type(each).__name__ not in ("ExtraBytesVlr", "LasZipVlr")
    ]
    fields = [name for name in ("system_identifier", "file_source_id", "uuid") if _is_said(getattr(header, name))]
    if fields:
        warn(source, f"fields of the header are left out: {', '.join(fields)}")
    lost = [f"{len(records)} records beside the points (VLRs and EVLRs)"] if records else []
    if "wavepacket_index" in header.point_format.dimension_names or header.start_of_waveform_data_packet_record:
        lost.append("waveforms")
    if lost:
        warn(source, f"{' and '.join(lost)} are left out")
    told = list[str]()
    for record in header.vlrs:
        for each in record.extra_bytes_structs if type(record).__name__ == "ExtraBytesVlr" else ():
            name, about = each.format_name(), each.description.decode("utf-8", "replace").strip("\0 ")
            told += [f"the description {about!r} of the attribute {name!r}"] if about else []
            if each.no_data is not None:
                told.append(f"that {np.asarray(each.no_data).tolist()} stands for no value of the attribute {name!r}")
    tell_of_metadata(source, told)


def _crs_out(path: StoreLike, target: Path) -> Any:
    """The store's reference system for pyproj; ``None``, with a warning, where there is one that it does not know."""
    stored = without_steps(VectorStore.open(path).root.block.get("crs"))
    if not stored:
        return None
    text = stored.get("wkt") if isinstance(stored, Mapping) else None
    why = "it has no text 'wkt'"
    if isinstance(text, str):
        try:
            import pyproj

            return pyproj.CRS.from_wkt(text)
        except ModuleNotFoundError:
            why = "that needs pyproj: pip install pyproj"
        except Exception as error:  # CRSError, and what else pyproj makes of stored text
            why = str(error)
    warn_crs(target, why)
    return None


def _header(looks: Mapping[str, _Look], crs: Any) -> Any:
    """The header of the oldest format that holds the values of all fields, and the reference system."""
    import laspy

    older, newest = (laspy.PointFormat(number) for number in (_OLDEST, _NEWEST))
    needed = any(look.fits(newest, name) and not look.fits(older, name) for name, look in looks.items())
    if not needed:
        number = (1 if _TIME in looks else 0) + (2 if set(_COLOURS) & set(looks) else 0)
        header = laspy.LasHeader(point_format=number, version="1.2")
        if crs is None or _as_keys(header, crs):
            return header
    number = 8 if "nir" in looks and looks["nir"].fits(newest, "nir") else 7 if set(_COLOURS) & set(looks) else 6
    header = laspy.LasHeader(point_format=number, version="1.4")
    if crs is not None:
        header.add_crs(crs)
    return header


def _as_keys(header: Any, crs: Any) -> bool:
    """Put the reference system into a header as GeoTIFF has them; whether it is the same when it is read."""
    if len(crs.axis_info) != 2:
        return False  # laspy would write its code as that of a system without heights
    try:
        header.add_crs(crs)
        return bool(header.parse_crs() == crs)
    except Exception:  # laspy knows only some of them, and names in ASCII: formats from 6 on have the whole text
        return False


def _cast(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """The same values of another type, if it has them."""
    nans = values.dtype.kind == "f"
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
        same = np.array_equal(cast, values, equal_nan=nans)
        return cast if same and np.array_equal(cast.astype(values.dtype), values, equal_nan=nans) else None


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of a type that LAS has; rows of one value as values."""
    kept = values.astype(np.uint8) if values.dtype.kind == "b" else values
    kept = kept.astype(np.float32) if kept.dtype == np.float16 else kept
    return kept[:, 0] if kept.ndim == 2 and kept.shape[1] == 1 else kept


def _kept(looks: Mapping[str, _Look], header: Any, target: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The attributes that a file can have, and the types of those that need a new field. Warns of the others."""
    import laspy

    taken, long, extra = [], [], list[tuple[str, str]]()
    found: list[str] = []
    points = laspy.LasData(header)
    fields = set(header.point_format.dimension_names) - set(_COORDINATES)
    for name, look in looks.items():
        like = _plain(look.like)
        if name not in fields and _is_taken(points, name):
            taken.append(name)
        elif name not in fields and len(name.encode()) > 32:
            long.append(name)
        elif like.ndim > 1 and like.shape[1] > 3:
            warn(target, f"the attribute {name!r} cannot be kept: it has {like.shape[1]} values for each row, not 3")
        elif name in fields and not look.fits(header.point_format, name):
            warn(target, f"the attribute {name!r} cannot be kept: the field of this name does not hold its values")
        else:
            found.append(name)
        if found[-1:] == [name] and name not in fields:
            shape = "" if like.ndim == 1 else str(like.shape[1])
            extra.append((name, shape + like.dtype.str[1:]))
    warn_names(taken, target, "coordinates, or other parts of a file, are called so")
    warn_names(long, target, "names have up to 32 bytes")
    tell_of_booleans({name: looks[name].like for name in found}, target)
    return found, extra


def _is_taken(scan: Any, name: str) -> bool:
    """Whether laspy has something else under this name: an extra dimension would hide it, or be hidden by it."""
    from laspy.point import dims

    older: Mapping[str, str] = getattr(dims, "OLD_LASPY_NAMES", {})
    return name in _COORDINATES or name in older or hasattr(scan, name) or hasattr(scan.points, name)


def _steps(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> tuple[Any, Any]:
    """Offsets and steps: the finest that 32 bits allow, and not much below what float64 resolves there."""
    middle = low / 2 + high / 2
    flat = low == high
    half = np.where(flat, _STEP_OF_A_PLANE, high / 2 - low / 2)
    finest = np.floor(np.log10(np.spacing(np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-290))))
    powers = np.maximum(np.ceil(np.log10(half / (2**31 - 4096)) - 1e-9), finest)
    scales = np.where(flat, _STEP_OF_A_PLANE, [float(f"1e{each:.0f}") for each in powers])
    return np.where(flat, low, np.round(middle / scales) * scales), scales


def _moved(positions: npt.NDArray[Any], steps: tuple[Any, Any], low: Any, high: Any) -> Any:
    """Return for each axis whether coordinates change by more than the type of the store resolves from low to high."""
    offsets, scales = (np.asarray(each, np.float64) for each in steps)
    resolved = 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(positions.dtype)).astype(np.float64)
    exact = positions.astype(np.float64)
    written = np.round((exact - offsets) / scales) * scales + offsets
    return (np.abs(written - exact) > resolved).any(axis=0)


def _gps_times(number: int) -> Any:
    """What times are counted from: the beginning of a week, or a day in 1980, for 1."""
    from laspy.header import GpsTimeType

    return GpsTimeType(number)


def _hold(steps: tuple[Any, Any], low: Any, high: Any) -> bool:
    """Whether 32 bits hold coordinates from low to high in such steps."""
    with np.errstate(all="ignore"):
        ends = (np.stack([low, high]) - steps[0]) / steps[1]
    return bool((np.abs(ends) < 2**31 - 1).all())


def _steps_in(header: Any) -> dict[str, Any]:
    """The steps of coordinates, and what times are counted from, as the store keeps them in ``crs``."""
    found = {"scales": np.asarray(header.scales).tolist(), "offsets": np.asarray(header.offsets).tolist()}
    return {**found, "gps_time_type": _gps_times(int(header.global_encoding.gps_time_type)).name}


def _steps_out(path: StoreLike) -> dict[str, Any]:
    """What the store keeps of :func:`_steps_in`: ``steps`` (offsets and scales, or ``None``) and ``gps_time_type``."""
    crs = VectorStore.open(path).root.block.get("crs")
    told = crs.get(STEPS) if isinstance(crs, Mapping) else None
    told = told if isinstance(told, Mapping) else {}
    try:
        steps = tuple(np.array(told[name], np.float64) for name in ("offsets", "scales"))
        usable = all(each.shape == (3,) and np.isfinite(each).all() for each in steps) and bool((steps[1] > 0).all())
    except (KeyError, TypeError, ValueError):
        steps, usable = (), False
    return {"steps": steps if usable else None, "gps_time_type": int(told.get("gps_time_type") == "STANDARD")}
