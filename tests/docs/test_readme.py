"""The README: its figures are those that were measured, and its first commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import zardine

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FIRST_BLOCK = README.split("## In 60 seconds", 1)[1].split("```console\n", 1)[1].split("```", 1)[0]


def lines() -> list[list[str]]:
    """The words of each command of the first block, without the comments."""
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in FIRST_BLOCK.splitlines()]


def test_figures_are_those_of_the_benchmarks() -> None:
    """The sentences with figures, made anew from what ``make bench`` stored."""
    code = """
from pathlib import Path
from results import Results, geometric_mean

results = Results.load(Path("."))
ratios = [ratio for each in results.workloads if each.wanted is not None and (ratio := results.ratio(each)) is not None]
print(f"The fastest of them takes {geometric_mean(ratios):.1f} times as long, in the mean of {len(ratios)} workloads;")
updates = [each for each in results.workloads if each.name.startswith("update/")]
def of(variant):
    return [1e3 * results.cell(each.name, variant).seconds for each in updates]
appended = of("zardine append")
peers = [1e3 * results.best_peer(each)[1] for each in updates]
print(
    f"is changed in {min(appended):.1f} (not compressed, lz4) to {max(appended):.1f} ms (gzip), "
    f"where other programs take {min(peers):.0f} ms and more."
)
print(f"the shard is replaced in one step, in {min(of('zardine')):.0f} to {max(of('zardine')):.0f} ms.")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"\s+", " ", README)
    sentences = done.stdout.splitlines()
    assert len(sentences) == 3
    for sentence in sentences:
        assert sentence in text


def test_the_first_block_installs_what_it_uses() -> None:
    first, *_, last = lines()
    assert first[:2] == ["pip", "install"]
    assert "serve" in first[2]
    assert last[:2] == ["zardine", "view"]


def test_the_first_block_runs(tmp_path: Path) -> None:
    for words in lines()[1:-1]:
        program = [sys.executable, *(["-m", "zardine"] if words[0] == "zardine" else [])]
        done = subprocess.run([*program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "a.zarr").rglob("*/*/*"))) == 4
    array = zardine.open_array(tmp_path / "a.zarr", mode="r")
    assert array.nchunks == 4 * 100
    assert float(array[...].std()) > 0.05  # there is something to see


def test_the_commands_for_all_set_up_stand_together_on_the_first_screen() -> None:
    screen = README.splitlines()[:30]
    demo, test = (
        [number for number, line in enumerate(screen) if line.startswith(f"| `make {name}` |")]
        for name in ("demo", "test")
    )
    assert len(demo) == 1
    assert test == [demo[0] + 1]
