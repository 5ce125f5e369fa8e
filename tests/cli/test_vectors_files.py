"""``zardine vectors import`` and ``export``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError
from zardine.vectors.exchange import formats
from zardine.vectors.exchange.targets import writing

SKELETON = "1 1 0 0 0 2 -1\n2 3 10 0 0 1 1\n3 3 20 5 0 1 2\n"


@pytest.fixture
def swc(tmp_path: Path) -> str:
    path = tmp_path / "cell.swc"
    path.write_text(SKELETON)
    return str(path)


@pytest.fixture
def skeleton(tmp_path: Path) -> str:
    """A store with an attribute that SWC does not hold."""
    path = str(tmp_path / "cell.zv")
    attributes = {"radius": np.ones(3), "charge": np.arange(3)}
    vectors.write_skeleton(path, np.eye(3) * 9, [-1, 0, 1], vertex_attributes=attributes)
    return path


def test_import(run: Any, swc: str, tmp_path: Path) -> None:
    path = str(tmp_path / "new.zv")
    result = run("vectors", "import", swc, path, "--chunk-shape", "10", "--shard-shape", "4,4,2")  # as Layout has it
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "3 vertices, 1 object, 2 links, 3 chunks\n"
    assert vectors.read_skeleton(path).positions.tolist() == [[0, 0, 0], [10, 0, 0], [20, 5, 0]]
    facts = vectors.describe_store(path)
    assert facts["chunk_shape"] == [10, 10, 10]
    assert facts["levels"][0]["shard_shape"] == [4, 4, 2]
    assert facts["levels"][0]["compressors"] == ["crc32c"]

    result = run("vectors", "import", swc, path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: something is stored at {path!r} already: --overwrite replaces it\n"
    more = ("--chunks", "5,20,20", "--compressor", "zstd", "--overwrite", "--json")
    told = json.loads(run("vectors", "import", swc, path, *more).stdout)
    assert told == {
        "path": facts["path"],
        "geometry_types": ["skeleton"],
        "vertex_count": 3,
        "objects": 1,
        "groups": None,
        "links": 2,
        "chunks": 3,
        "links_counted": True,
    }
    facts = vectors.describe_store(path)
    assert facts["chunk_shape"] == [5, 20, 20]
    assert facts["levels"][0]["compressors"] == ["zstd", "crc32c"]
    assert run("vectors", "import", swc, path, "--overwrite", "--compressor", "none", "-q").output == ""


def test_in_a_hierarchy(run: Any, swc: str, tmp_path: Path) -> None:
    """``--path`` names the node, as for all other commands; groups on the way to it are made."""
    path, out = str(tmp_path / "all.zarr"), str(tmp_path / "out.swc")
    for _ in range(2):
        result = run("vectors", "import", swc, path, "--path", "cells/one")
        if result.exit_code:
            break
    assert result.stderr == f"Error: something is stored at '{path}/cells/one' already: --overwrite replaces it\n"
    assert vectors.open(f"{path}/cells/one").kind == "skeleton"
    assert "cells" in run("tree", path).stdout
    assert run("vectors", "export", path, out, "--path", "cells/one", "-q").output == ""
    assert Path(out).read_text().count("\n") == 4
    told = run("vectors", "export", path, out, "--path", "cells", "--overwrite")
    assert told.exit_code == 1
    assert "Zarr Vectors" in told.stderr
    assert Path(out).read_text().count("\n") == 4


def test_a_directory_of_files(run: Any, tmp_path: Path) -> None:
    """Each is an object, with the number that all are called by, or with numbers from 0 on."""
    folder = tmp_path / "cells"
    folder.mkdir()
    for name in ("20", "3", "100"):
        (folder / f"{name}.swc").write_text(SKELETON)
    (folder / "notes.txt").write_text("notes")
    result = run("vectors", "import", folder, tmp_path / "a.zv", "--chunks", "9", "--json")
    assert result.exit_code == 0, result.output
    assert "1 files that do not end in .swc are left out" in result.stderr
    found = vectors.read_objects(str(tmp_path / "a.zv"))
    assert found.ids.tolist() == [3, 20, 100]
    assert found.attributes["name"].tolist() == ["3", "20", "100"]
    (folder / "cell 4.swc").write_text(SKELETON)
    assert run("jobs", "plan", "import", folder, tmp_path / "b.zv", "--out", tmp_path / "plan.json").exit_code == 0
    for words in (("run",), ("finish",)):
        result = run("jobs", *words, tmp_path / "plan.json")
        assert result.exit_code == 0, result.output
    found = vectors.read_objects(str(tmp_path / "b.zv"))
    assert found.ids.tolist() == [0, 1, 2, 3]
    assert found.attributes["name"].tolist() == ["3", "20", "100", "cell 4"]
    (folder / "mesh.ply").write_text("ply")
    result = run("vectors", "import", folder, tmp_path / "c.zv")
    assert result.exit_code == 1
    assert "holds files of several formats: format= says which are read: swc or ply" in result.stderr


def test_faults_of_imports(run: Any, swc: str, tmp_path: Path) -> None:
    path = str(tmp_path / "new.zv")
    other, empty = tmp_path / "cell.xyz", tmp_path / "empty"
    other.write_text(SKELETON)
    empty.mkdir()
    for words, text in {
        ("nothing.swc", path): "'nothing.swc' does not exist",
        (str(empty), path): f"{str(empty)!r} is a directory, not a file",
        (str(empty), path, "--format", "gpkg"): f"{str(empty)!r} is a directory, not a file",
        (str(empty), path, "--format", "laz"): f"{empty} holds no files that end in .laz",
        (str(empty), path, "--format", "ply"): f"{empty} holds no files that end in .ply",
        (str(other), path): f"{other}: the ending is none of .trk, ",
        (swc, path, "--compressor", "unheard"): "'unheard' is no compressor",
        (swc, path, "--chunks", "1,2"): "chunk_shape",
        (swc, other): "is a file: a store is a directory",
    }.items():
        result = run("vectors", "import", *words)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert text in result.stderr
        assert not Path(path).exists()
    for option, shown in (("--chunks", "--chunks' / '--chunk-shape"), ("--shards", "--shards' / '--shard-shape")):
        for text in ("0", "4,-4,4", "nan", "inf", "many", ""):
            result = run("vectors", "import", swc, path, option, text)
            assert result.exit_code == 2
            assert f"Invalid value for '{shown}'" in result.stderr


def test_storage_options(run: Any, swc: str, tmp_path: Path) -> None:
    option = ("--storage-option", "auto_mkdir=true")
    path, file = str(tmp_path / "new.zv"), str(tmp_path / "out.swc")
    for words in (("import", swc, path), ("export", path, file)):
        result = run("vectors", *words, *option)
        assert result.exit_code == 2
        assert "storage_options ('auto_mkdir') have no meaning for" in result.stderr
    assert run("vectors", "import", swc, f"local://{path}", *option).exit_code == 0
    assert run("vectors", "export", f"local://{path}", file, *option).exit_code == 0
    assert len(Path(file).read_text().splitlines()) == 4


def test_export(run: Any, skeleton: str, tmp_path: Path) -> None:
    file = tmp_path / "out.swc"
    result = run("vectors", "export", skeleton, file)
    assert result.exit_code == 0
    assert result.stdout == f"{file}: {file.stat().st_size} bytes\n"
    assert result.stderr.startswith(f"Warning: {file}: attributes cannot be kept: 'charge'")
    assert len(file.read_text().splitlines()) == 4

    file.write_text("mine")
    result = run("vectors", "export", skeleton, file)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {str(file)!r} exists already: --overwrite replaces it\n"
    assert file.read_text() == "mine"
    assert run("vectors", "export", skeleton, file, "--overwrite", "-q").output == ""
    result = run("vectors", "export", skeleton, file, "--overwrite", "--json")
    assert json.loads(result.stdout) == {"file": str(file), "bytes": file.stat().st_size, "level": 0}
    assert "charge" in result.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cell.zv", "out.swc"]


def test_a_level_is_exported(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("laspy")
    path, file = str(tmp_path / "scan.zv"), tmp_path / "out.las"
    vectors.write_points(path, np.random.default_rng(0).uniform(0, 40, (100, 3)), chunk_shape=10)
    vectors.build_pyramid(path)
    count = vectors.describe_store(path)["levels"][1]["vertex_count"]
    assert run("vectors", "export", path, file, "--level", "1").exit_code == 0
    told = json.loads(run("vectors", "import", file, tmp_path / "back.zv", "--json").stdout)
    assert told["vertex_count"] == count < 100
    assert run("vectors", "export", path, file, "--level", "-1").exit_code == 2
    assert run("vectors", "export", path, file, "--level", "7", "--overwrite").exit_code == 1


def test_faults_of_exports(run: Any, skeleton: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder.swc"
    folder.mkdir()
    missing = str(tmp_path / "missing.zv")
    for words, text in {
        (missing, tmp_path / "out.swc"): f"{missing!r} does not exist",
        (skeleton, tmp_path / "out.xyz"): "the ending is none of .trk, ",
        (skeleton, folder, "--overwrite"): f"{str(folder)!r} is a directory, not a file",
        (skeleton, tmp_path / "none/out.swc"): f"the directory {str(tmp_path / 'none')!r} does not exist",
        (skeleton, tmp_path / "out.stl"): "holds a skeleton; this format is for mesh",
    }.items():
        result = run("vectors", "export", *words)
        assert result.exit_code == 1
        assert text in result.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cell.zv", "folder.swc"]


def test_after_an_error_the_old_file_is_there(
    run: Any, skeleton: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Any, target: Path, level: int, step: Any) -> None:
        with writing(target) as place:
            assert not place.exists()
            place.write_text("half")
            place.with_suffix(".shx").write_text("half")
            raise DataError("no more space")

    monkeypatch.setitem(formats.FORMATS, "shp", replace(formats.FORMATS["shp"], write=fail))
    file, kept, link = tmp_path / "out.shp", tmp_path / "out.dbf", tmp_path / "link.shp"
    kept.write_text("mine")
    result = run("vectors", "export", skeleton, file)
    assert result.stderr == f"Error: {str(kept)!r} exists already: --overwrite replaces it\n"
    file.write_text("old")
    link.symlink_to(file)
    for target in (file, link):
        result = run("vectors", "export", skeleton, target, "--overwrite")
        assert result.exit_code == 1
        assert result.stderr == "Error: no more space\n"
        assert (file.read_text(), kept.read_text()) == ("old", "mine")
        assert link.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cell.zv", "link.shp", "out.dbf", "out.shp"]


def test_files_that_cannot_be_put_aside_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "out.shp", tmp_path / "out.shx", tmp_path / "out.dbf", tmp_path / "out.qix"]
    for each in files:
        each.write_text(each.name)
    change, left = os.replace, [0]

    def fail(source: Any, target: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise PermissionError(13, "Permission denied", str(source))
        change(source, target)

    monkeypatch.setattr("zardine.vectors.exchange.targets.os.replace", fail)

    def write() -> None:
        with writing(files[0]) as place:
            for each in files[:3]:
                (place.parent / each.name).write_text("new")

    for count in range(1, 7):
        left[0] = count
        with pytest.raises(PermissionError):
            write()
        assert [each.read_text() for each in files] == [each.name for each in files]
        assert sorted(tmp_path.iterdir()) == sorted(files)
    write()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {each.name: "new" for each in files[:3]}


def test_who_is_killed_leaves_the_old_file(run: Any, skeleton: str, tmp_path: Path) -> None:
    """Nothing half-made has the name of the file, or its ending at that place."""
    target = tmp_path / "out.swc"
    target.write_text("old")
    script = (
        "import os, signal, sys\nfrom zardine.vectors.exchange import swc\nfrom zardine.vectors import export_vectors\n"
        "def half(*given):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "swc.swc_lines = half\nexport_vectors(sys.argv[1], sys.argv[2], overwrite=True)\n"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", script, skeleton, str(target)], env=environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".zardine-")] == ["cell.zv", "out.swc"]


def test_a_package_is_replaced_not_added_to(run: Any, tmp_path: Path) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    geopandas = pytest.importorskip("geopandas")
    file, path = tmp_path / "out.gpkg", str(tmp_path / "scan.zv")
    old = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1], [2]), crs=4326)
    for layer in ("old", "older"):
        old.to_file(file, layer=layer)
    vectors.write_points(path, [[0, 0], [3, 4]])
    assert run("vectors", "export", path, file, "--overwrite").exit_code == 0
    assert pyogrio.list_layers(file)[:, 0].tolist() == ["out"]


def test_packages_that_are_missing(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    path, mesh = str(tmp_path / "mesh.zv"), tmp_path / "mesh.stl"
    vectors.write_mesh(path, np.eye(3), [[0, 1, 2]])
    old = bytes(80) + b"\1\0\0\0" + bytes(50)
    mesh.write_bytes(old)
    for words in (("import", mesh, tmp_path / "new.zv"), ("export", path, mesh, "--overwrite")):
        result = run("vectors", *words)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert "trimesh" in result.stderr
        assert "pip install 'zardine[vectors]'" in result.stderr
        assert "bug" not in result.stderr
    assert mesh.read_bytes() == old


@pytest.mark.parametrize("file", ["http://127.0.0.1:9/a%20b.las", "s3://bucket/tracts.trk"])
def test_single_files_behind_urls(run: Any, tmp_path: Path, file: str) -> None:
    result = run("vectors", "import", file, tmp_path / "x.zv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {file} is behind a URL, ")
    assert "no single files: copy it" in result.stderr
    assert not (tmp_path / "x.zv").exists()


def test_options_of_sources_that_there_are_not(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.swc").write_text("1 1 0 0 0 1 -1\n")
    for file in ("s3://bucket/s.precomputed", tmp_path / "a.swc"):
        result = run("vectors", "import", file, tmp_path / "x.zv", "--source-option", "colour=red")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "storage_options" in result.stderr
        assert "Traceback" not in result.stderr


def test_tables(run: Any, tmp_path: Path) -> None:
    path, source, target = str(tmp_path / "a.zv"), tmp_path / "points.csv", tmp_path / "out.csv"
    source.write_text("lat;lon;depth;t;name\n1;2;3;4;a\n5;6;7;8;b\n")
    result = run("vectors", "import", str(source), path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "2 vertices, 2 chunks\n"
    result = run("vectors", "export", path, str(target))
    assert (result.exit_code, result.stderr) == (0, "")
    assert sorted(target.read_text().splitlines()) == ["2.0,1.0,3,a,4", "6.0,5.0,7,b,8", "lon,lat,depth,name,t"]

    named = ("--x", "lon", "--y", "lat", "--z", "depth", "--time", "t", "--delimiter", ";", "--overwrite")
    assert run("vectors", "import", str(source), path, *named).exit_code == 0
    assert [axis["name"] for axis in vectors.open(path).axes] == ["lon", "lat", "depth", "t"]
    result = run("vectors", "import", str(source), path, "--x", "lon", "--y", "height", "--overwrite")
    columns = "'lat', 'lon', 'depth', 't', 'name'"
    assert result.exit_code == 1
    assert result.stderr == f"Error: {source} has no column 'height': there are the columns {columns}\n"
    (tmp_path / "cell.swc").write_text(SKELETON)
    result = run("vectors", "import", str(tmp_path / "cell.swc"), path, "--x", "lon", "--overwrite")
    assert result.exit_code == 2
    assert "the format swc has no option 'x', which is of csv, feather, parquet" in result.stderr

    plan = ("--z", "depth", "--out", str(tmp_path / "plan.json"))
    result = run("jobs", "plan", "import", str(source), str(tmp_path / "b.zv"), *plan)
    assert (result.exit_code, result.stderr) == (0, "")
