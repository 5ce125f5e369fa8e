"""Files of other formats, to and from Zarr Vectors stores, through the libraries that know them.

``pip install 'zardine[vectors]'`` installs the libraries; each is imported when a file needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zardine.errors import UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.graphs import read_mesh, read_skeleton, write_mesh, write_skeleton
from zardine.vectors.points import read_points, write_points
from zardine.vectors.polylines import read_polylines, write_polylines
from zardine.vectors.swc import read_swc, write_swc

__all__ = ["export_vectors", "import_vectors"]


def import_vectors(source: str | Path, path: StoreLike, **options: Any) -> None:
    """Write what is in the file ``source`` to a new store at ``path``.

    The ending of the name says the format: ``.trk``, ``.tck`` (streamlines), ``.swc`` (skeletons), ``.ply``, ``.obj``,
    ``.stl`` (meshes), ``.las``, ``.laz`` (points), ``.geojson``, ``.gpkg``, ``.shp``, ``.parquet`` (lines or points).
    ``options`` are those of the writer: ``chunk_shape``, ``shard_shape``, ``compressor``, …

    Raises :class:`~zardine.errors.UnsupportedError` for another ending.
    """
    _reader(Path(source))(Path(source), path, options)


def export_vectors(path: StoreLike, target: str | Path, *, level: int = 0) -> None:
    """Write a level of the store at ``path`` to the file ``target``, in the format that its ending names.

    Raises :class:`~zardine.errors.UnsupportedError` for an ending that :func:`import_vectors` does not know.
    """
    suffix = Path(target).suffix.lower()
    writer = _WRITERS.get(suffix)
    if writer is None:
        raise UnsupportedError(f"{target}: the ending is none of {', '.join(_WRITERS)}")
    writer(path, Path(target), level)


def _reader(source: Path) -> Callable[[Path, StoreLike, Mapping[str, Any]], None]:
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise UnsupportedError(f"{source}: the ending is none of {', '.join(_READERS)}")
    return reader


def _streamlines_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    from nibabel.streamlines import load

    tracts = load(str(source)).tractogram
    lines = [np.asarray(line) for line in tracts.streamlines]
    vertex = {name: np.concatenate(list(values)) for name, values in tracts.data_per_point.items()}
    whole = {name: np.asarray(values) for name, values in tracts.data_per_streamline.items()}
    given = {"vertex_attributes": vertex or None, "object_attributes": whole or None, **options}
    write_polylines(path, lines, **given)


def _streamlines_out(path: StoreLike, target: Path, level: int) -> None:
    from nibabel.streamlines import Tractogram, save

    found = read_polylines(path, level=level)
    tracts = Tractogram(found.lines, affine_to_rasmm=np.eye(4))
    for name, values in found.object_attributes.items():
        if values.dtype.kind in "iuf":
            tracts.data_per_streamline[name] = values.reshape(len(found), -1)
    for name, values in found.attributes.items():
        if values.dtype.kind in "iuf":
            parts = np.split(values.reshape(len(values), -1), found.starts[1:-1])
            tracts.data_per_point[name] = parts
    save(tracts, str(target))


def _swc_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    positions, parents, attributes = read_swc(source)
    write_skeleton(path, positions, parents, vertex_attributes=attributes, **options)


def _swc_out(path: StoreLike, target: Path, level: int) -> None:
    found = read_skeleton(path, level=level)
    write_swc(target, found.positions, found.parents, found.attributes)


def _mesh_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    import trimesh

    mesh = trimesh.load_mesh(str(source), process=False)
    write_mesh(path, np.asarray(mesh.vertices), np.asarray(mesh.faces), **options)


def _mesh_out(path: StoreLike, target: Path, level: int) -> None:
    import trimesh

    found = read_mesh(path, level=level)
    trimesh.Trimesh(found.positions, found.faces, process=False).export(str(target))


def _las_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    import laspy

    scan = laspy.read(str(source))
    names = [name for name in scan.point_format.dimension_names if name not in ("X", "Y", "Z")]
    columns = {name: np.array(scan[name]) for name in names}
    write_points(path, np.asarray(scan.xyz), vertex_attributes=columns, **options)


def _las_out(path: StoreLike, target: Path, level: int) -> None:
    import laspy

    found = read_points(path, level=level)
    header = laspy.LasHeader(point_format=3, version="1.2")
    if len(found):
        header.offsets = found.positions.min(axis=0)
        extent = np.ptp(found.positions.astype(np.float64), axis=0)
        header.scales = np.maximum(extent / 2**31, 1e-6)
    scan = laspy.LasData(header)
    scan.xyz = found.positions
    known = set(header.point_format.dimension_names)
    for name, values in found.attributes.items():
        if values.ndim == 1 and values.dtype.kind in "iuf":
            if name not in known:
                scan.add_extra_dim(laspy.ExtraBytesParams(name=name[:32], type=values.dtype))
            scan[name[:32]] = values
    scan.write(str(target))


def _features_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    import geopandas

    table = geopandas.read_parquet(source) if source.suffix.lower() == ".parquet" else geopandas.read_file(source)
    table = table[~table.geometry.is_empty & table.geometry.notna()].explode(index_parts=False)
    kinds = set(table.geometry.geom_type)
    columns = {str(name): table[name].to_numpy() for name in table.columns if name != table.geometry.name}
    usable = {name: values for name, values in columns.items() if values.dtype.kind in "iufb" or _is_text(values)}
    given = {"crs": None if table.crs is None else {"wkt": table.crs.to_wkt()}, **options}
    if kinds <= {"Point"}:
        points = np.array([each.coords[0] for each in table.geometry], np.float64)
        write_points(path, points, vertex_attributes=usable, **given)
        return
    boundaries = table.geometry.boundary.explode(index_parts=False) if "Polygon" in kinds else table.geometry
    if len(boundaries) != len(table):
        usable = {}
    lines = [np.array(each.coords, np.float64) for each in boundaries]
    write_polylines(path, lines, geometry_type="polyline", object_attributes=usable, **given)


def _features_out(path: StoreLike, target: Path, level: int) -> None:
    import geopandas
    from shapely.geometry import LineString

    from zardine.vectors.level_access import VectorStore

    root = VectorStore.open(path).root
    crs = (root.block.get("crs") or {}).get("wkt")
    if root.geometry_types[:1] == ("point_cloud",):
        points = read_points(path, level=level)
        shapes: Any = geopandas.points_from_xy(*points.positions.T)
        columns = points.attributes
    else:
        lines = read_polylines(path, level=level)
        kept = np.flatnonzero(np.diff(lines.starts) > 1)
        shapes = [LineString(lines[number]) for number in kept.tolist()]
        columns = {name: values[kept] for name, values in lines.object_attributes.items()}
    flat = {name: values.tolist() for name, values in columns.items() if values.ndim == 1}
    table = geopandas.GeoDataFrame(flat, geometry=shapes, crs=crs)
    if target.suffix.lower() == ".parquet":
        table.to_parquet(target)
    else:
        table.to_file(target)


def _is_text(values: Any) -> bool:
    return all(each is None or isinstance(each, str) for each in values.tolist())


_FEATURES = (".geojson", ".gpkg", ".shp", ".parquet")
_READERS: dict[str, Callable[[Path, StoreLike, Mapping[str, Any]], None]] = {
    ".trk": _streamlines_in,
    ".tck": _streamlines_in,
    ".swc": _swc_in,
    ".ply": _mesh_in,
    ".obj": _mesh_in,
    ".stl": _mesh_in,
    ".las": _las_in,
    ".laz": _las_in,
    **dict.fromkeys(_FEATURES, _features_in),
}
_WRITERS: dict[str, Callable[[StoreLike, Path, int], None]] = {
    ".trk": _streamlines_out,
    ".tck": _streamlines_out,
    ".swc": _swc_out,
    ".ply": _mesh_out,
    ".obj": _mesh_out,
    ".stl": _mesh_out,
    ".las": _las_out,
    ".laz": _las_out,
    **dict.fromkeys(_FEATURES, _features_out),
}
