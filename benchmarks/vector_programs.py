"""What each program does with the lines and points of ``vectors_beside.py``: a class for each, a method for each step.

Every program gets what its own documentation recommends for such data. Steps that it has no way for are ``None``. A
step that reads gives how many vertices it found.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

Floats = np.ndarray[Any, Any]

SIDE, CHUNK, SHARD = 1000.0, 100.0, 8
"""Space is a cube of ten cells of ``CHUNK`` along each axis."""
STEPS: Final = {
    "write": "write",
    "all": "read all",
    "one": "box of 1 cell",
    "many": "box of 200 cells",
    "objects": "100 objects by id",
    "append": "append",
    "pyramid": "pyramid of 2 levels",
}
BOXES: Final = {"one": ((500.0,) * 3, (599.9,) * 3), "many": ((200.0, 200.0, 100.0), (699.9, 699.9, 899.9))}
FACTORS = [(2.0, 1.0), (2.0, 1.0)]


class Lines:
    """Lines of 50 vertices that wander through two or three cells, with a value for each vertex."""

    def __init__(self, count: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        heading = random.normal(0, 1, (count, 1, 3))
        steps = heading / np.linalg.norm(heading, axis=2, keepdims=True) * 4 + random.normal(0, 1, (count, 50, 3))
        paths = random.uniform(0, SIDE, (count, 1, 3)) + np.cumsum(steps, axis=1)
        self.positions: Floats = np.clip(paths, 0, SIDE - 0.01).astype("f4").reshape(-1, 3)
        self.values = random.uniform(0, 1, 50 * count).astype("f4")
        self.starts = np.arange(0, 50 * count + 1, 50)
        self.wanted = random.choice(count, min(count, 100), replace=False)

    def parts(self, values: Floats) -> list[Floats]:
        return np.split(values, self.starts[1:-1])

    @property
    def more(self) -> Lines:
        """Ten lines to be added."""
        return Lines(10, 1)


class Points:
    """Points anywhere in the cube, with an intensity."""

    def __init__(self, count: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.positions: Floats = random.uniform(0, SIDE - 0.01, (count, 3)).astype("f4")
        self.intensity = random.integers(0, 4096, count).astype("u2")

    @property
    def more(self) -> Points:
        """A hundred points to be added, in one cell."""
        few = Points(100, 1)
        few.positions = few.positions / 20 + np.float32(510)
        return few


def within(positions: Floats, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows are in a box."""
    low, high = (np.array(corner, "f4") for corner in BOXES[name])
    return np.asarray(((positions >= low) & (positions <= high)).all(axis=1))


class Program:
    """A program and where it stores; ``bucket`` is ``(endpoint, name)`` of S3, or ``None``."""

    ending = ""

    def __init__(self, folder: Path, data: Lines | Points, bucket: tuple[str, str] | None) -> None:
        self.data, self.bucket, self.place = data, bucket, folder / f"store{self.ending}"
        self.count = len(data.positions)
        self.lines = isinstance(data, Lines)

    def in_bucket(self) -> Any:
        """A store of obstore, which zardine and zarr-vectors take."""
        from obstore.store import S3Store

        url, bucket = self.bucket or ("", "")
        keys = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
        return S3Store(bucket, prefix="store", endpoint=url, client_options={"allow_http": True}, **keys)

    def clear(self) -> None:
        """Remove what is stored here, if that is a folder or file."""
        if self.place.is_dir():
            shutil.rmtree(self.place)
        else:
            self.place.unlink(missing_ok=True)

    @classmethod
    def takes(cls, step: str, *, lines: bool) -> bool:
        """Whether there is a way to do a step; points are part of no objects here."""
        return getattr(cls, step) is not None and (lines or step != "objects")

    def one(self) -> int:
        return self.box("one")

    def many(self) -> int:
        return self.box("many")

    def box(self, name: str) -> int:
        raise NotImplementedError

    write: Any = None
    all: Any = None
    objects: Any = None
    append: Any = None
    pyramid: Any = None


class Zardine(Program):
    """zardine, sharded."""

    shards: ClassVar[dict[str, Any]] = {"shard_shape": SHARD}

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        from zardine import vectors

        self.vectors = vectors
        self.path: Any = self.in_bucket() if self.bucket else str(self.place)

    def write(self) -> None:
        data = self.data
        if isinstance(data, Lines):
            ids = np.arange(len(data.starts) - 1)
            lines = self.vectors.Polylines(data.positions, data.starts, ids, {"fa": data.values})
            self.vectors.write(self.path, lines, layout=self.vectors.Layout(chunk_shape=CHUNK, **self.shards))
        else:
            columns = {"intensity": data.intensity}
            self.vectors.write_points(
                self.path, data.positions, chunk_shape=CHUNK, vertex_attributes=columns, **self.shards
            )

    def _read(self, **query: Any) -> int:
        read = self.vectors.read_polylines if self.lines else self.vectors.read_points
        return len(read(self.path, **query).positions)

    def all(self) -> int:
        return self._read()

    def box(self, name: str) -> int:
        return self._read(bbox=BOXES[name])

    def objects(self) -> int:
        return self._read(object_ids=self.data.wanted.tolist())

    def append(self) -> None:
        more = self.data.more
        if isinstance(more, Lines):
            parts = more.parts(more.positions)
            self.vectors.append_polylines(self.path, parts, vertex_attributes={"fa": more.values})
        else:
            self.vectors.append_points(self.path, more.positions, vertex_attributes={"intensity": more.intensity})

    def pyramid(self) -> None:
        self.vectors.build_pyramid(self.path, factors=FACTORS)


class ZardineFlat(Zardine):
    """zardine, without shards."""

    shards: ClassVar[dict[str, Any]] = {}


class ZarrVectors(Program):
    """zarr-vectors 0.9.2, without shards, as it is by default."""

    shards: ClassVar[dict[str, Any]] = {}

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        from zarr_vectors.core.store import open_store
        from zarr_vectors.multiresolution.coarsen import build_pyramid
        from zarr_vectors.ops.edit import EditSession
        from zarr_vectors.types.points import read_points, write_points
        from zarr_vectors.types.polylines import read_polylines, write_polylines

        self.session, self.open, self.build = EditSession, open_store, build_pyramid
        self.writer = write_polylines if self.lines else write_points
        self.reader = read_polylines if self.lines else read_points
        self.path: Any = self.in_bucket() if self.bucket else str(self.place)

    def write(self) -> None:
        data, shape = self.data, (CHUNK,) * 3
        if isinstance(data, Lines):
            columns: Any = {"fa": data.parts(data.values)}
            parts = data.parts(data.positions)
            self.writer(self.path, parts, chunk_shape=shape, vertex_attributes=columns, **self.shards)
        else:
            columns = {"intensity": data.intensity}
            self.writer(self.path, data.positions, chunk_shape=shape, vertex_attributes=columns, **self.shards)

    def _read(self, **query: Any) -> int:
        found = self.reader(self.path, **query)
        if not self.lines:
            return len(found["positions"])
        return sum(len(part) for line in found["polylines"] for part in line)

    def all(self) -> int:
        return self._read()

    def box(self, name: str) -> int:
        return self._read(bbox=tuple(np.array(corner) for corner in BOXES[name]))

    def objects(self) -> int:
        return self._read(object_ids=self.data.wanted.tolist())

    def append(self) -> None:
        more = self.data.more
        with self.session(self.open(self.path, mode="r+")) as session:
            if isinstance(more, Lines):
                for line, values in zip(more.parts(more.positions), more.parts(more.values), strict=True):
                    session.add_object(level=0, vertices=line, attrs={"fa": values})
            else:
                columns = {"intensity": more.intensity}
                session.add_fragment(level=0, chunk=(5, 5, 5), vertices=more.positions, attrs=columns)

    def pyramid(self) -> None:
        self.build(self.path if self.bucket is None else self.open(self.path, mode="r+"), factors=FACTORS)


class ZarrVectorsSharded(ZarrVectors):
    """zarr-vectors 0.9.2, sharded."""

    shards: ClassVar[dict[str, Any]] = {"shard_shape": SHARD}


class Trx(Program):
    """trx-python: one uncompressed archive, mapped into memory; boxes are asked for with NumPy."""

    ending = ".trx"

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        from nibabel.streamlines import ArraySequence
        from trx import trx_file_memmap

        self.trx, self.sequence = trx_file_memmap, ArraySequence

    def _file(self, data: Lines) -> Any:
        file = self.trx.TrxFile(nb_vertices=len(data.positions), nb_streamlines=len(data.starts) - 1)

        def sequence(values: Floats) -> Any:
            made = self.sequence()
            made._data, made._offsets, made._lengths = values, data.starts[:-1].astype("u8"), np.diff(data.starts)
            return made

        file.streamlines = sequence(data.positions)
        file.data_per_vertex = {"fa": sequence(data.values[:, None])}
        return file

    def write(self) -> None:
        file = self._file(self.data)
        self.trx.save(file, str(self.place))
        file.close()

    def _opened(self, chosen: Any) -> int:
        file = self.trx.load(str(self.place))
        try:
            rows = None if chosen is None else chosen(file)
            if rows is not None and not len(rows):
                return 0
            some = file if rows is None else file.select(rows, keep_group=False)
            lines, values = some.streamlines.copy(), some.data_per_vertex["fa"].copy()
            assert len(values._data) >= len(lines._data)
            return int(np.sum(lines._lengths))
        finally:
            file.close()

    def all(self) -> int:
        return self._opened(None)

    def box(self, name: str) -> int:
        def chosen(file: Any) -> Any:
            counts = np.add.reduceat(within(file.streamlines._data, name), np.asarray(file.streamlines._offsets, int))
            return np.flatnonzero(counts)

        return self._opened(chosen)

    def objects(self) -> int:
        return self._opened(lambda _: self.data.wanted)

    def append(self) -> None:
        file, more = self.trx.load(str(self.place)), self._file(self.data.more)
        file.append(more)
        self.trx.save(file, str(self.place))
        more.close()
        file.close()


class GeoParquet(Program):
    """geopandas with GeoParquet: rows in the order of a Hilbert curve, groups of rows with a bounding box each."""

    ending = ".parquet"

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        import geopandas
        import shapely

        self.geo, self.shapely, self.path = geopandas, shapely, str(self.place)
        self.where: dict[str, Any] = {}
        if self.bucket:
            from pyarrow.fs import S3FileSystem

            url, bucket = self.bucket
            host = url.removeprefix("http://")
            keys = {"access_key": "test", "secret_key": "test", "region": "us-east-1"}
            self.where = {"filesystem": S3FileSystem(endpoint_override=host, scheme="http", **keys)}
            self.path = f"{bucket}/store.parquet"

    def _frame(self, data: Lines | Points) -> Any:
        if isinstance(data, Lines):
            number = np.repeat(np.arange(len(data.starts) - 1), np.diff(data.starts))
            geometry = self.shapely.linestrings(data.positions.astype("f8"), indices=number)
            columns = {"id": np.arange(len(data.starts) - 1), "fa": data.parts(data.values)}
        else:
            geometry = self.shapely.points(data.positions.astype("f8"))
            columns = {"intensity": data.intensity}
        return self.geo.GeoDataFrame(columns, geometry=geometry)

    def _store(self, frame: Any) -> None:
        ordered = frame.iloc[frame.hilbert_distance().argsort()]
        rows = 500 if self.lines else 10_000
        ordered.to_parquet(
            self.path, index=False, write_covering_bbox=True, row_group_size=rows, schema_version="1.1.0", **self.where
        )

    def write(self) -> None:
        self._store(self._frame(self.data))

    def _rows(self, frame: Any) -> int:
        return int(self.shapely.get_num_coordinates(frame.geometry.values).sum())

    def all(self) -> int:
        return self._rows(self.geo.read_parquet(self.path, **self.where))

    def box(self, name: str) -> int:
        (left, low, _), (right, high, _) = BOXES[name]
        frame = self.geo.read_parquet(self.path, bbox=(left, low, right, high), **self.where)
        places, rows = self.shapely.get_coordinates(frame.geometry.values, include_z=True, return_index=True)
        return self._rows(frame.iloc[np.unique(rows[within(places, name)])])

    def objects(self) -> int:
        chosen = [("id", "in", self.data.wanted.tolist())]
        return self._rows(self.geo.read_parquet(self.path, filters=chosen, **self.where))

    def append(self) -> None:
        """Store the file anew: geopandas has no other way."""
        frame, more = self.geo.read_parquet(self.path, **self.where), self._frame(self.data.more)
        if self.lines:
            more["id"] += len(frame)
        self._store(self.geo.pd.concat([frame, more]))


class Las(Program):
    """laspy: points in LAS, without compression; boxes are asked for with NumPy."""

    ending = ".las"

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        import laspy

        self.las = laspy

    def _points(self, header: Any, data: Points) -> Any:
        record = self.las.ScaleAwarePointRecord.zeros(len(data.positions), header=header)
        record.x, record.y, record.z = data.positions.T
        record.intensity = data.intensity
        return record

    def write(self) -> None:
        header = self.las.LasHeader(point_format=0, version="1.4")
        header.scales = np.full(3, 1e-4)
        las = self.las.LasData(header, self._points(header, self.data))
        las.write(str(self.place))

    def _xyz(self) -> tuple[Floats, Floats]:
        found = self.las.read(str(self.place))
        return found.xyz, np.array(found.intensity)

    def all(self) -> int:
        return len(self._xyz()[0])

    def box(self, name: str) -> int:
        positions, intensity = self._xyz()
        chosen = within(positions, name)
        return len(positions[chosen]) if len(intensity[chosen]) else 0

    def append(self) -> None:
        with self.las.open(str(self.place), mode="a") as file:
            file.append_points(self._points(file.header, self.data.more))


PROGRAMS: Final[dict[str, type[Program]]] = {
    "zardine": Zardine,
    "zardine, no shards": ZardineFlat,
    "zarr-vectors": ZarrVectors,
    "zarr-vectors, sharded": ZarrVectorsSharded,
    "trx-python": Trx,
    "GeoParquet": GeoParquet,
    "laspy": Las,
}
TAKES: Final = {
    "lines": [name for name in PROGRAMS if name != "laspy"],
    "points": [name for name in PROGRAMS if name != "trx-python"],
}
FAR: Final = ("zardine", "zardine, no shards", "zarr-vectors", "zarr-vectors, sharded", "GeoParquet")
"""Those that read buckets and write into them."""
