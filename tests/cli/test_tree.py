"""``zardine tree``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import zardine


def drawn(text: str) -> list[str]:
    """The lines below the root, whose path may take more than one."""
    lines = text.splitlines()
    below = [i for i, line in enumerate(lines) if line[:1] in "├└"]
    return lines[below[0] :] if below else []


def test_a_hierarchy(run: Any, hierarchy: Path) -> None:
    result = run("tree", hierarchy, columns=200)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        str(hierarchy),
        "├── [red]",
        "│   └── [b]:fish:  int64  (3,)  chunks (3,)",
        "├── raw",
        "│   ├── counts  uint16          (4, 6)  chunks (2, 2)",
        "│   └── times   datetime64[ns]  (4,)    chunks (2,)",
        "└── uneven  struct  (100, 200)  rectilinear chunks",
    ]


def test_lines_that_are_too_long_are_broken_before_the_chunks(run: Any, tmp_path: Path) -> None:
    group = zardine.create_group(str(tmp_path / "w.zarr"))
    for name in ("a", "b_with_a_longer_name"):
        group.create_array(name, shape=(365, 180, 360), dtype="f4", chunks=(5, 30, 30), shards=(365, 90, 180))
    assert drawn(run("tree", tmp_path / "w.zarr", columns=70).stdout) == [
        "├── a                     float32  (365, 180, 360)",
        "│     shards (365, 90, 180) of (5, 30, 30)",
        "└── b_with_a_longer_name  float32  (365, 180, 360)",
        "      shards (365, 90, 180) of (5, 30, 30)",
    ]


def test_json(run: Any, hierarchy: Path) -> None:
    facts = json.loads(run("tree", hierarchy, "--json").stdout)
    assert (facts["name"], facts["path"], facts["kind"]) == ("", "/", "group")
    red, raw, uneven = facts["children"]
    assert red == {
        "name": "[red]",
        "path": "/[red]",
        "kind": "group",
        "children": [
            {
                "name": "[b]:fish:",
                "path": "/[red]/[b]:fish:",
                "kind": "array",
                "shape": [3],
                "dimension_names": None,
                "data_type": "int64",
                "dtype": "int64",
                "chunks": [3],
                "shards": None,
            }
        ],
    }
    assert [child["name"] for child in raw["children"]] == ["counts", "times"]
    assert uneven["chunks"] is None
    assert "attributes" not in facts


def test_level(run: Any, hierarchy: Path) -> None:
    assert drawn(run("tree", hierarchy, "--level", 0).stdout) == []
    assert len(drawn(run("tree", hierarchy, "-L", 1).stdout)) == 3
    assert len(drawn(run("tree", hierarchy, "-L", 2).stdout)) == 6
    facts = json.loads(run("tree", hierarchy, "-L", 1, "--json").stdout)
    assert [set(child) & {"children"} for child in facts["children"]] == [set()] * 3
    assert run("tree", hierarchy, "-L", -1).exit_code == 2


def test_attributes(run: Any, hierarchy: Path) -> None:
    result = run("tree", hierarchy, "--attributes")
    assert '├── @title = "Example"' in result.stdout
    assert '@units = "[bold]1[/bold]"' in result.stdout
    facts = json.loads(run("tree", hierarchy, "--attributes", "--json").stdout)
    assert facts["attributes"] == {"title": "Example"}
    assert facts["children"][1]["children"][0]["attributes"] == {"units": "[bold]1[/bold]"}


def test_a_node_inside_and_an_array(run: Any, hierarchy: Path) -> None:
    assert len(drawn(run("tree", hierarchy, "--path", "raw").stdout)) == 2
    result = run("tree", hierarchy / "raw" / "counts", columns=500)
    assert result.stdout == f"{hierarchy}/raw/counts  uint16  (4, 6)  chunks (2, 2)\n"


def test_broken_nodes_are_shown_among_the_others(run: Any, broken: Path) -> None:
    result = run("tree", broken, columns=200)
    assert result.exit_code == 1
    fine, incomplete, nonsense = drawn(result.stdout)
    assert fine == "├── fine  int32  (3,)  chunks (3,)"
    assert incomplete.startswith("├── incomplete  broken: ")
    assert incomplete.endswith("more)")
    assert nonsense.startswith("└── nonsense  broken: not a JSON document")
    assert result.stderr == "Error: 2 of the nodes cannot be read: /incomplete, /nonsense\n"
    result = run("tree", broken, "--json")
    assert result.exit_code == 1
    kinds = [(child["name"], child["kind"]) for child in json.loads(result.stdout)["children"]]
    assert kinds == [("fine", "array"), ("incomplete", "broken"), ("nonsense", "broken")]


def test_broken_nodes_in_consolidated_metadata(run: Any, broken: Path) -> None:
    zardine.open_group(str(broken)).create_group("sub")
    for name in ("incomplete", "nonsense"):
        (broken / name / "zarr.json").unlink()
    zardine.consolidate_metadata(str(broken))
    document = json.loads((broken / "zarr.json").read_text())
    document["consolidated_metadata"]["metadata"]["fine"]["data_type"] = "wrong"
    (broken / "zarr.json").write_text(json.dumps(document))
    result = run("tree", broken, "--json")
    kinds = [(child["name"], child["kind"]) for child in json.loads(result.stdout)["children"]]
    assert kinds == [("fine", "array"), ("sub", "group")]  # its own document is whole
    (broken / "fine" / "zarr.json").write_text("{")
    children = json.loads(run("tree", broken, "--json").stdout)["children"]
    assert [(child["name"], child["kind"]) for child in children] == [("fine", "broken"), ("sub", "group")]


def test_names_with_control_characters_do_not_reach_the_terminal(run: Any, tmp_path: Path) -> None:
    group = zardine.create_group(str(tmp_path / "c.zarr"))
    group["\x1b[31mred\nline"] = np.arange(2)
    result = run("tree", tmp_path / "c.zarr")
    assert "\x1b" not in result.stdout
    assert r"└── \x1b[31mred\nline  int64" in result.stdout
    assert json.loads(run("tree", tmp_path / "c.zarr", "--json").stdout)["children"][0]["name"] == "\x1b[31mred\nline"


def test_very_deep_hierarchies(run: Any, tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(600):
        path = path / "g"
    path.mkdir(parents=True)
    for each in (path, *path.parents):
        if each.name == "g":
            (each / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    for option in ("--json", "--attributes"):
        result = run("tree", tmp_path / "g", option)
        assert result.exit_code == 1
        assert "is nested too deeply to be shown whole: --level N goes N levels down" in result.stderr
        assert run("tree", tmp_path / "g", option, "--level", 100).exit_code == 0
