"""PLY, OBJ and STL files: those that are cut off, points, and what comes back equal."""

from __future__ import annotations

import re
import struct
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors

VERTICES = [[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0.5]]
PLY = """ply
format {form} 1.0
element vertex 4
property float x
property float y
property float z
element face 3
property list uchar int vertex_indices
end_header
"""
ASCII = PLY.format(form="ascii") + "0 0 0\n9 0 0\n9 9 0\n0 9 0.5\n3 0 1 2\n3 0 2 3\n3 1 2 3\n"
STL = (
    "solid a\n"
    + 2 * ("facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n")
    + "endsolid a\n"
)
BINARY_STL = bytes(80) + (2).to_bytes(4, "little") + 2 * (np.arange(12, dtype="<f4").tobytes() + b"\0\0")


def refused(folder: Path, name: str, data: str | bytes, told: str) -> None:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(DataError, match=told) as caught:
        import_vectors(folder / name, str(folder / "a.zv"))
    assert name in str(caught.value)
    assert not (folder / "a.zv").exists()


def imported(folder: Path, name: str, data: str | bytes) -> str:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    import_vectors(folder / name, str(folder / "a.zv"), chunk_shape=20)
    return str(folder / "a.zv")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (-1, "declares 3 of 'face', 2 are there"),
        (-3, "declares 3 of 'face', 0 are there"),
        (-5, "declares 4 of 'vertex', 2 are there"),
    ],
)
def test_ply_of_text_without_its_last_lines(tmp_path: Path, lines: int, told: str) -> None:
    refused(tmp_path, "a.ply", "\n".join(ASCII.splitlines()[:lines]) + "\n", told)


@pytest.mark.parametrize("cut", [3, 5, 7])
def test_ply_of_text_cut_in_a_line(tmp_path: Path, cut: int) -> None:
    refused(tmp_path, "a.ply", ASCII[:-cut], "the values of number 3 are not all there: '3")
    refused(tmp_path, "b.ply", ASCII[: ASCII.index("3 0 1 2") - 5], "the values of number 4 are not all there")


@pytest.mark.parametrize("faces", [0, 1, 2])
def test_ply_in_binary_that_is_cut_off(tmp_path: Path, faces: int) -> None:
    body = np.array(VERTICES, "<f4").tobytes() + faces * (b"\x03" + np.arange(3, dtype="<i4").tobytes())
    refused(tmp_path, "a.ply", PLY.format(form="binary_little_endian").encode() + body, r"a\.ply")


def test_stl_that_is_cut_off(tmp_path: Path) -> None:
    refused(tmp_path, "a.stl", BINARY_STL[:-60], "it has 124 bytes, not 184 for the 2 faces")
    refused(tmp_path, "b.stl", BINARY_STL[:50], "it has 50 bytes, not 84 or more")
    refused(tmp_path, "c.stl", STL[: STL.rindex("vertex 0 1 0")], "1 'solid' and 0 'endsolid'.* 5 of their 6")
    refused(tmp_path, "d.stl", b"solid" + BINARY_STL[5:-50], "it has 134 bytes, not 184")
    path = imported(tmp_path, "e.stl", STL)
    assert len(vectors.read_mesh(path).faces) == 2


def test_binary_stl_that_is_whole(tmp_path: Path) -> None:
    assert len(vectors.read_mesh(imported(tmp_path, "a.stl", b"solid" + BINARY_STL[5:])).faces) == 2


OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 5 5 5\n"


def test_obj_that_is_cut_off(tmp_path: Path) -> None:
    refused(tmp_path, "a.obj", OBJ + "f 1 2 3\nf 2 3", "line 6: a face has three corners or more, not 'f 2 3'")
    refused(tmp_path, "b.obj", "# b\n" + OBJ + "v 0 1", "line 6: a vertex has three coordinates")


def test_a_file_that_does_not_tell_what_it_is_of(tmp_path: Path) -> None:
    refused(tmp_path, "a.obj", "# nothing\n", "holds no vertices.*vectors.create")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ply", PLY.format(form="ascii").replace(" 4", " 0").replace(" 3", " 0")),
        ("a.stl", "solid a\nendsolid a\n"),
        ("a.stl", bytes(84)),
    ],
)
def test_files_that_say_that_they_hold_nothing(tmp_path: Path, name: str, data: str | bytes) -> None:
    with pytest.warns(ZarrUserWarning, match="it holds nothing"):
        path = imported(tmp_path, name, data)
    assert len(vectors.read_mesh(path)) == 0
    assert vectors.validate(path).ok


def test_obj_with_vertices_that_no_face_uses(tmp_path: Path) -> None:
    assert len(vectors.read_mesh(imported(tmp_path, "a.obj", OBJ + "f 1 2 3\n")).positions) == 4


SMOOTH = "".join(f"vn {x} {y} {z}\n" for x, y, z in trimesh.creation.box().vertices.tolist())
FLAT = "".join(f"vn {x} {y} {z}\n" for x, y, z in trimesh.creation.box().face_normals.tolist())
CORNERS: dict[str, tuple[str, Any, set[str], set[str]]] = {
    "plain": ("", lambda face, corner: f"{corner}", set(), set()),
    "flat normals": (FLAT, lambda face, corner: f"{corner}//{face}", set(), {"normal"}),
    "smooth normals": (SMOOTH, lambda face, corner: f"{corner}//{corner}", {"normal"}, set()),
    "seams": ("vt 0 0\nvt 1 .5\n", lambda face, corner: f"{corner}/{1 + face % 2}", set(), {"uv"}),
    "no seams": ("vt 0 0\nvt 1 .5\n", lambda face, corner: f"{corner}/{1 + corner % 2}", {"uv"}, set()),
    "all": ("vt 0 0 1\n" + FLAT, lambda face, corner: f"{corner}/1/{face}", {"uv"}, {"normal"}),
    "backwards": (FLAT, lambda face, corner: f"{corner - 9}//{face - 13}", set(), {"normal"}),
    "materials": ("usemtl red\n" + FLAT, lambda face, corner: f"{corner}//{face}", set(), {"normal"}),
}


@pytest.mark.parametrize("name", CORNERS)
def test_obj_keeps_its_vertices(tmp_path: Path, name: str) -> None:
    box, (more, corner, of_vertices, of_faces) = trimesh.creation.box(), CORNERS[name]
    lines = ["v {:g} {:g} {:g}".format(*place) for place in box.vertices] + ["v 9 9 9"] * (name != "backwards")
    lines += [more.strip()]
    lines += ["f " + " ".join(corner(at, each + 1) for each in face) for at, face in enumerate(box.faces, 1)]
    path = str(tmp_path / "a.zv")
    (tmp_path / "a.obj").write_text("\n".join(lines) + "\n")
    import_vectors(tmp_path / "a.obj", path, chunk_shape=20)
    found = vectors.read_mesh(path)
    assert len(found.positions) == 8 + (name != "backwards")
    assert (set(found.attributes), set(found.face_attributes)) == (of_vertices, of_faces)
    mesh = trimesh.Trimesh(found.positions, found.faces, process=False)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(1)
    if "normal" in of_faces:
        normals = found.face_attributes["normal"].reshape(-1, 3, 3)
        assert np.allclose(normals, mesh.face_normals[:, np.newaxis], atol=1e-9)
    if name == "smooth normals":
        assert np.allclose(found.attributes["normal"][:8], found.positions[:8])
    if name == "no seams":
        ways = [box.vertices.tolist().index(place) for place in found.positions[:8].tolist()]
        assert found.attributes["uv"][:8, 0].tolist() == [float((each + 1) % 2) for each in ways]


@pytest.mark.parametrize("corner", ["9", "0", "-5", "x", "", "1/1", "1//2", "1.5"])
def test_obj_with_corners_that_are_none(tmp_path: Path, corner: str) -> None:
    refused(tmp_path, "a.obj", OBJ + f"vn 0 0 1\nf 1 2 {corner or '/1'}\n", r"line 6: a corner '.*' names a 'v.?'")


def test_obj_with_colours_and_weights(tmp_path: Path) -> None:
    faces = "f 1 2 3\nf 1 3 4\n"
    rows = [f"v {x} {y} {z} {shade} 0 {255 - shade}" for shade, (x, y, z) in enumerate(VERTICES)]
    found = vectors.read_mesh(imported(tmp_path, "a.obj", "\n".join([*rows, faces])))
    assert sorted(found.attributes["blue"].tolist()) == [252, 253, 254, 255]
    for name, vertex, told in (("b", "v 1 2 3 .5", "weights"), ("c", "v 1 2 3 1 1 1", "colours"), ("d", rows[0], "")):
        text = OBJ.replace("v 5 5 5", vertex) if name != "d" else OBJ.replace("v", "v 9 8 7 300 -1 0\nv")
        (tmp_path / f"{name}.obj").write_text(text + faces)
        with pytest.warns(ZarrUserWarning, match=told or "colours"):
            import_vectors(tmp_path / f"{name}.obj", tmp_path / f"{name}.zv", chunk_shape=20)


def test_faces_of_obj_that_have_many_corners(tmp_path: Path) -> None:
    places = "".join(f"v {np.cos(at)} {np.sin(at)} 0\nvt {at} 0\n" for at in range(6))
    text = places + "f " + " ".join(f"{at}/{at}" for at in range(1, 7)) + "\n"
    (tmp_path / "a.obj").write_text(text)
    with pytest.warns(ZarrUserWarning, match="stored as triangles"):
        import_vectors(tmp_path / "a.obj", tmp_path / "a.zv", chunk_shape=20)
    found = vectors.read_mesh(tmp_path / "a.zv")
    assert found.faces.shape == (4, 3)
    assert sorted(found.attributes["uv"][:, 0].tolist()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("scale", [1e-20, 1e-8, 1 / 3, 1e12])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_positions_in_obj_come_back_equal(tmp_path: Path, scale: float, dtype: str) -> None:
    points = (np.random.default_rng(0).normal(0, 1, (6, 3)) * scale).astype(dtype)
    colours = {name: np.arange(6, dtype="u1") * 40 for name in ("red", "green", "blue")}
    made = str(tmp_path / "a.zv")
    vectors.write_mesh(made, points, [[0, 1, 2], [3, 4, 5]], chunk_shape=scale * 20, vertex_attributes=colours)
    export_vectors(made, tmp_path / "a.obj")
    import_vectors(tmp_path / "a.obj", str(tmp_path / "b.zv"), chunk_shape=scale * 20)
    found = vectors.read_mesh(str(tmp_path / "b.zv"))
    assert sorted(found.positions.tolist()) == sorted(points.astype("f8").tolist())
    order = np.lexsort(found.positions.T), np.lexsort(points.T)
    for name, values in colours.items():
        assert found.attributes[name][order[0]].tolist() == values[order[1]].tolist()


@pytest.mark.parametrize("name", ["vertex_indices", "vertex_index", "count", "index", "texcoord"])
def test_attributes_of_faces_that_ply_has_no_name_for(tmp_path: Path, name: str) -> None:
    made = str(tmp_path / "a.zv")
    vectors.write_mesh(made, VERTICES, [[0, 1, 2]], chunk_shape=20, face_attributes={name: [7], "part": [8]})
    with pytest.warns(ZarrUserWarning, match=repr(name)):
        export_vectors(made, tmp_path / "a.ply")
    import_vectors(tmp_path / "a.ply", str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_mesh(str(tmp_path / "b.zv"))
    assert len(found.faces) == 1
    assert {key: values.tolist() for key, values in found.face_attributes.items()} == {"part": [8]}


def test_ply_of_points(tmp_path: Path) -> None:
    head = PLY.format(form="ascii").split("element face")[0]
    body = "".join(f"{x} {y} {z} {row} {row / 2}\n" for row, (x, y, z) in enumerate(VERTICES))
    text = head + "property uchar red\nproperty float w\nend_header\n" + body
    found = vectors.read_points(imported(tmp_path, "a.ply", text))
    order = np.argsort(found.attributes["w"])
    assert found.positions[order].tolist() == VERTICES
    assert found.attributes["red"][order].tolist() == [0, 1, 2, 3]
    (tmp_path / "b").mkdir()
    refused(tmp_path / "b", "b.obj", OBJ, "holds no faces; the file may be cut off.*write_points")


@pytest.mark.parametrize("name", ["a.stl", "a.geojson"])
def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).write_text(STL)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(ImportError, match=r"pip install 'zardine\[vectors\]'"):
        import_vectors(tmp_path / name, str(tmp_path / "a.zv"))


def test_libraries_of_the_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[>=]", each)[0] for each in project["optional-dependencies"]["vectors"]}
    assert {"scipy", "charset-normalizer", "trimesh"} <= named


def test_obj_with_text_in_latin_1(tmp_path: Path) -> None:
    pytest.importorskip("charset_normalizer")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*comments are left out: 'M", ZarrUserWarning)
        path = imported(tmp_path, "a.obj", "# M\xfcller\n".encode("latin-1") + (OBJ + "f 1 2 3\n").encode())
    assert len(vectors.read_mesh(path).faces) == 1


def test_ply_with_edges(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    edges = "element edge 1\nproperty int vertex1\nproperty int vertex2\nend_header"
    head, body = ASCII.split("end_header")
    (tmp_path / "a.ply").write_text(head + edges + body + "0 1\n")
    with pytest.warns(ZarrUserWarning, match="elements of the file are left out: edge"):
        import_vectors(tmp_path / "a.ply", str(tmp_path / "a.zv"), chunk_shape=20)
    assert len(vectors.read_mesh(str(tmp_path / "a.zv")).faces) == 3


def test_corners_of_stl_that_are_equal_are_one_vertex(tmp_path: Path) -> None:
    ball = trimesh.creation.icosphere(2, 3.0)
    ball.export(tmp_path / "a.stl")
    import_vectors(tmp_path / "a.stl", str(tmp_path / "a.zv"), chunk_shape=20)
    found = vectors.read_mesh(str(tmp_path / "a.zv")).to_trimesh()
    assert (len(found.vertices), len(found.faces)) == (len(ball.vertices), len(ball.faces))
    assert found.is_watertight
    assert found.volume == pytest.approx(ball.volume, rel=1e-5)
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "b.stl")
    import_vectors(tmp_path / "b.stl", str(tmp_path / "b.zv"), chunk_shape=20)
    again = vectors.read_mesh(str(tmp_path / "b.zv"))
    assert np.array_equal(np.unique(again.positions, axis=0), np.unique(found.vertices, axis=0))


def test_corners_that_differ_by_the_least_stay_two(tmp_path: Path) -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0], [-1, 0, 0]], np.float32)
    corners[3, 0] = np.nextafter(np.float32(0), np.float32(1))
    corners[0, 1] = -0.0  # which is equal to 0
    trimesh.Trimesh(corners, np.arange(6).reshape(2, 3), process=False).export(tmp_path / "a.stl")
    import_vectors(tmp_path / "a.stl", str(tmp_path / "a.zv"), chunk_shape=20)
    found = vectors.read_mesh(str(tmp_path / "a.zv"))
    assert (len(found), len(found.faces)) == (5, 2)
    shapes = {tuple(map(tuple, found.positions[face].tolist())) for face in found.faces}
    assert shapes == {tuple(map(tuple, corners[first : first + 3].tolist())) for first in (0, 3)}


def test_what_obj_files_hold_beside_faces_is_told(tmp_path: Path) -> None:
    """Names of a single object, and lines of kinds that nothing is known of; not what is the same without them."""
    lines = "mtllib a.mtl\no Käse\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0 0.5\ns off\nvp 1\nf 1/1 2/1 3/1\n"
    with pytest.warns(ZarrUserWarning, match="left out: materials, names of objects, lines 'vp', third texture"):
        imported(tmp_path, "a.obj", lines)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (tmp_path / "b.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0 0\ns off\nf 1/1 2/1 3/1\n")
        import_vectors(tmp_path / "b.obj", tmp_path / "b.zv", chunk_shape=20)


@pytest.mark.parametrize(("shade", "is_rounded"), [("0.502", False), ("0.50196078", False), ("0.5", True)])
def test_colours_of_obj_files_that_are_rounded(tmp_path: Path, shade: str, is_rounded: bool) -> None:
    lines = f"v 0 0 0 {shade} 0 1\nv 1 0 0 0 1 0\nv 0 1 0 0 0 0\nf 1 2 3\n"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        imported(tmp_path, "a.obj", lines)
    assert ["colours of vertices are rounded to 8 bits" in str(each.message) for each in told] == [True] * is_rounded
    assert 128 in vectors.read_mesh(tmp_path / "a.zv").attributes["red"]


def test_names_of_solids_in_stl_are_told(tmp_path: Path) -> None:
    two = STL.replace("solid a", "solid Käse") + STL.replace("solid a", "solid two")
    with pytest.warns(ZarrUserWarning, match="comments are left out: 'Käse' and 1 more lines"):
        imported(tmp_path, "a.stl", two)


ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}


def ply_file(form: str, elements: dict[str, tuple[list[tuple[str, str]], list[list[Any]]]]) -> bytes:
    """A PLY file of elements: properties as pairs of a type and a name, and rows, with a list for each list."""
    head, body = ["ply", f"format {form} 1.0"], b""
    letters = {"uchar": "B", "short": "h", "uint": "I", "int": "i", "float": "f", "double": "d"}
    for name, (properties, rows) in elements.items():
        head += [f"element {name} {len(rows)}", *(f"property {kind} {each}" for kind, each in properties)]
        for row in rows:
            words = list[str]()
            for (kind, _), value in zip(properties, row, strict=True):
                values = value if isinstance(value, list) else [value]
                count, letter = kind.split()[-2:-1], letters[kind.split()[-1]]
                words += [str(len(values))] * len(count) + list(map(repr, values))
                form_of = ORDERS[form] + "".join(letters[each] for each in count) + letter * len(values)
                body += struct.pack(form_of, *[len(values)] * len(count), *values) if ORDERS[form] else b""
            body += b"" if ORDERS[form] else f"{' '.join(words)}\n".encode()
    return "\n".join([*head, "end_header\n"]).encode() + body


@pytest.mark.parametrize("form", ORDERS)
@pytest.mark.parametrize("mixed", [False, True])
def test_ply_in_every_form(tmp_path: Path, form: str, mixed: bool) -> None:
    """Faces of several sizes in binary, too, which trimesh does not read; and lists of a single face."""
    places = [[1 / 3, 0.0, 0.0, -7, 1], [9.0, 0.0, 0.0, 2, 2], [9.0, 9.0, 0.0, 3, 4], [0.0, 9.0, 0.5, 32767, 2**32 - 1]]
    vertex = [("double", "x"), ("double", "y"), ("double", "z"), ("short", "n"), ("uint", "big")], places
    faces = [[[0, 1, 2], 5, [0.5, 0.25]], [[0, 1, 2, 3], -6, [1.0, 2.0]]][: 1 + mixed]
    face = [("list uchar uint", "vertex_index"), ("int", "part"), ("list int float", "uv")], faces
    other = [("list uchar short", "odd")], [[[1, 2]], [[]], [[3]]]
    source = tmp_path / "a.ply"
    source.write_bytes(ply_file(form, {"material": other, "vertex": vertex, "face": face}))
    with pytest.warns(ZarrUserWarning, match="elements of the file are left out: material") as told:
        import_vectors(source, tmp_path / "a.zv", chunk_shape=99)
    assert len(told) == 1 + mixed
    found = vectors.read_mesh(tmp_path / "a.zv")
    assert found.positions.tolist() == [each[:3] for each in places]
    assert found.attributes["n"].tolist() == [-7, 2, 3, 32767]
    assert found.attributes["big"].tolist() == [1, 2, 4, 2**32 - 1]
    assert found.attributes["big"].dtype == np.uint32
    assert found.faces.tolist() == [[0, 1, 2], [0, 1, 2], [0, 2, 3]][: 3 if mixed else 1]
    assert found.face_attributes["part"].tolist() == [5, -6, -6][: 3 if mixed else 1]
    assert found.face_attributes["uv"].tolist() == [[0.5, 0.25], [1, 2], [1, 2]][: 3 if mixed else 1]


@pytest.mark.parametrize("form", ORDERS)
def test_every_part_of_a_ply_file_is_refused(tmp_path: Path, form: str) -> None:
    vertex = [("float", "x"), ("float", "y"), ("float", "z")], VERTICES
    face = [("list uchar int", "vertex_indices"), ("short", "n")], [[[0, 1, 2], 7], [[0, 1, 2, 3], 8]]
    whole = ply_file(form, {"vertex": vertex, "face": face})
    for end in range(len(whole) - (form == "ascii") * 2):
        (tmp_path / "a.ply").write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"a\.ply"):
            import_vectors(tmp_path / "a.ply", tmp_path / "a.zv")
    if ORDERS[form]:
        refused(tmp_path, "b.ply", whole + b"more", "4 bytes more than its header declares")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("ply\n", "plx\n", "no PLY file"),
        ("format ascii", "format text", "a line of its header is 'format text 1.0'"),
        ("property float x", "property half x", "a line of its header is 'property half x'"),
        ("property float x\n", "", "no vertices with coordinates"),
        ("element vertex 4", "element vertex 99999999999999999", "cut off"),
        ("vertex_indices", "corners", "no list 'vertex_indices'"),
        ("3 0 1 2\n", "3 0 1 9\n", "face 0 names vertices"),
        ("0 0 0\n", "0 zero 0\n", "cannot be read"),
    ],
)
def test_ply_that_is_none(tmp_path: Path, old: str, new: str, told: str) -> None:
    refused(tmp_path, "a.ply", ASCII.replace(old, new, 1), told)
