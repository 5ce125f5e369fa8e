"""What nodes show of themselves, in a terminal and in a notebook."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import zardine


def made(**arguments: Any) -> zardine.Array:
    return zardine.create_array(
        None, **{"shape": (8, 12), "dtype": "i4", "chunks": (2, 3), "shards": (4, 6), **arguments}
    )


def drawing(array: zardine.Array) -> tuple[ElementTree.Element, list[ElementTree.Element]]:
    """The picture in the HTML of an array, and its lines."""
    html = array._repr_html_()
    svg = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    return svg, [element for element in svg.iter() if element.tag.endswith("line")]


def test_one_line_for_an_array() -> None:
    text = repr(made())
    assert text.startswith("<Array memory://")
    assert text.endswith(" shape=(8, 12) dtype=int32>")


def test_info_names_what_matters() -> None:
    array = made(dimension_names=["y", None], fill_value=7)
    facts = dict(array.info.items)
    assert facts["Shape"] == "(y: 8, 12)"
    assert facts["Shard shape"] == "(4, 6)"
    assert facts["Inner chunk shape"] == "(2, 3)"
    assert facts["Shards"] == "4 of 4 inner chunks each"
    assert facts["Fill value"] == "7"
    assert facts["Checksum"] == "crc32c on every chunk"
    assert facts["Codecs"] == "bytes(endian=little) → zstd(level=0, checksum=False) → crc32c"
    assert "Bytes stored" not in facts
    array[0, 0] = 1
    complete = dict(array.info_complete().items)
    assert complete["Chunks stored"] == "1 of 16"
    assert complete["Shards stored"] == "1 of 4"
    assert complete["Bytes stored"].replace(",", "").split()[0] == str(array.nbytes_stored())
    lines = repr(array.info).splitlines()
    assert len({line.index(" : ") for line in lines}) == 1
    assert dict(made(checksum=False).info.items)["Checksum"] == "none"


def test_html_draws_shards_and_chunks() -> None:
    svg, lines = drawing(made())
    thick = [line for line in lines if line.get("stroke-width") == "1.4"]
    thin = [line for line in lines if line.get("stroke-width") == "0.6"]
    assert (len(thick), len(thin)) == (1 + 1, 3 + 3)
    assert svg.get("aria-label") == "8 × 12, shards, inner chunks"
    assert "Shard shape" in made()._repr_html_()


def test_html_draws_chunks_that_differ() -> None:
    _, lines = drawing(made(chunks=[[2, 5, 1], [12]], shards=None))
    heights = sorted(
        {line.get("y1") for line in lines if line.get("y1") == line.get("y2")}, key=lambda y: float(y or 0)
    )
    assert [round(float(y or 0) / 120 * 8) for y in heights] == [2, 7]


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (10**6, 10**6), (2**62, 1), (1, 2**62), (1000, 2)])
def test_html_of_every_shape_is_small_and_well_formed(shape: tuple[int, ...]) -> None:
    array = zardine.create_array(None, shape=shape, dtype="u1", chunks=tuple(min(n, 4) for n in shape))
    svg, lines = drawing(array)
    assert len(lines) < 1000
    assert 0 < float(svg.get("width") or 0) < 400
    assert 0 < float(svg.get("height") or 0) < 400


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_html_without_elements_has_no_picture(shape: tuple[int, ...]) -> None:
    html = zardine.create_array(None, shape=shape, dtype="u1")._repr_html_()
    assert "<svg" not in html
    assert "<table>" in html


def test_html_is_escaped() -> None:
    group = zardine.create_group(None)
    array = group.create_array("<b>&", shape=(2,), dtype="string", fill_value="<script>", dimension_names=["<i>"])
    for html in (array._repr_html_(), group._repr_html_(), group.tree()._repr_html_()):
        assert not any(tag in html for tag in ("<script", "<b>", "<i>"))


def tree_of() -> zardine.Group:
    root = zardine.create_group(None)
    root.create_array("x", shape=(2, 3), dtype="f4")
    root.create_array("g/inner/y", shape=(4,), dtype=[("a", "i4"), ("b", "f8")])
    root.create_group("z")
    return root


def test_tree() -> None:
    root = tree_of()
    assert repr(root.tree()).splitlines() == [
        "/",
        "├── g",
        "│   └── inner",
        "│       └── y (4,) struct",
        "├── x (2, 3) float32",
        "└── z",
    ]
    assert repr(root.tree(level=1)).splitlines() == ["/", "├── g", "├── x (2, 3) float32", "└── z"]
    assert repr(zardine.tree(root["g"])).splitlines()[0] == "/g"
    assert "more than 2 nodes" in repr(root.tree(max_nodes=2))
    assert "└── inner" in root.tree()._repr_html_()


def test_groups() -> None:
    root = tree_of()
    assert repr(root["g"]).endswith("/g>")
    assert repr(root).startswith("<Group memory://")
    facts = dict(root.info_complete().items)
    assert (facts["Arrays below"], facts["Groups below"]) == ("2", "3")
    assert facts["Consolidated"] == "False"
    assert "Arrays below" not in dict(root.info.items)
    assert "<table>" in root._repr_html_()
    root.create_array("sharded", shape=(8, 8), chunks=(2, 2), shards=(4, 8), dtype="f8")
    assert "sharded (8, 8) float64, chunks 2 × 2, shards 4 × 8, bytes 512" in root._repr_html_()


def test_scalars_of_info_are_short() -> None:
    array = zardine.create_array(None, shape=(3,), dtype=[("a", "i4"), ("b", "f8")], fill_value=(1, 2.5))
    assert dict(array.info.items)["Fill value"] == "(1, 2.5)"
    assert np.dtype(array.dtype).names == ("a", "b")


def test_debug_info(capsys: pytest.CaptureFixture[str]) -> None:
    zardine.print_debug_info()
    printed = capsys.readouterr().out
    assert f"zardine: {zardine.__version__}" in printed
    assert f"numpy: {np.__version__}" in printed


@pytest.mark.parametrize("shape", [(1000, 3), (1, 1), (5,), (2, 3, 4, 100_000, 7), (8, 12)])
def test_the_caption_of_the_drawing_is_not_cut(shape: tuple[int, ...]) -> None:
    svg, _ = drawing(zardine.create_array(None, shape=shape, dtype="i4", chunks=(1,) * len(shape), shards=shape))
    (caption,) = [element for element in svg.iter() if element.tag.endswith("text")]
    width = float(svg.get("width") or 0)
    assert (svg.get("viewBox") or "").split()[2] == svg.get("width")
    assert caption.text is not None
    assert caption.text == f"{' × '.join(map(str, shape))}: shards, inner chunks"
    assert width >= 6.5 * len(caption.text)  # wider than letters of 11 pixels are
