"""What ``make soak`` runs: the campaigns are found, and the parts of the mutation run are where it looks for them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import effort

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same part each time, from all of it; everything in a soak run."""
    monkeypatch.setattr(effort, "SOAK", False)
    chosen = list(effort.some(range(1000), 10))
    assert chosen == list(effort.some(iter(range(1000)), 10))
    assert chosen[0] == 0
    assert 95 <= len(chosen) <= 105
    assert all(later - earlier <= 20 for earlier, later in pairwise(chosen))
    assert (effort.new_seed(3), effort.examples(5)) == (3, 5)
    monkeypatch.setattr(effort, "SOAK", True)
    assert list(effort.some(range(1000), 10)) == list(range(1000))
    assert effort.examples(5) == 100
    assert len({effort.new_seed(3) for _ in range(9)}) > 1


def test_every_campaign_is_in_the_soak() -> None:
    places = script("soak").campaigns()
    for file in Path(__file__).parent.rglob("*.py"):
        name = str(file.relative_to(BENCHMARKS.parent))
        if "SOAK" in file.read_text() and file.name.startswith("test_") and file != Path(__file__):
            assert any(name.startswith(place) for place in places), name


def test_parts_of_the_mutation_run() -> None:
    mutants = script("mutants")
    for part in mutants.PARTS:
        assert mutants.files_of(part)
        assert mutants.tests_of(part)


def test_known_faults_fit_the_code() -> None:
    """What each of them replaces is there once, and its tests are, too."""
    script("mutants")
    known = script("known_mutants")
    cases = list(known.chosen([]))
    assert len(cases) == len({mutant.what for mutant, _ in cases}) > 50
    for mutant, tests in cases:
        assert mutant.source != mutant.file.read_text()
        compile(mutant.source, str(mutant.file), "exec")
        assert tests
    gone = known.FAULTS[0]._replace(old="what is nowhere")
    with pytest.raises(SystemExit, match=r"0 times in stores/local/base_directory\.py, not once"):
        known.mutant_of(gone)


def test_a_fault_is_found_or_told(tmp_path: Path) -> None:
    """In a repository of one function and one test, which says nothing of a second condition."""
    for folder in ("src/zardine", "tests", "benchmarks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/zardine/__init__.py").touch()
    (tmp_path / "src/zardine/locks.py").write_text(
        '"""Says 1 > 2."""\n\n\ndef free(a: int, b: int) -> bool:\n    return a > 1 and b > 1\n'
    )
    (tmp_path / "tests/test_locks.py").write_text(
        "from zardine.locks import free\n\n\ndef test_free():\n    assert free(2, 2)\n    assert not free(1, 2)\n"
    )
    text = (BENCHMARKS / "mutants.py").read_text()
    start, end = text.index("PARTS: dict"), text.index('"""For each part its files')
    text = f'{text[:start]}PARTS: dict[str, tuple[str, str]] = {{"locks": ("locks.py", "test_locks.py")}}\n{text[end:]}'
    (tmp_path / "benchmarks/mutants.py").write_text(text)
    command = [sys.executable, str(tmp_path / "benchmarks/mutants.py"), "--jobs", "1", "--minutes", "5"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    told = {line.partition(": src/")[2] for line in run.stdout.splitlines() if "NOT FOUND" in line}
    assert told == {
        "zardine/locks.py:5: without b > 1: a > 1 and b > 1",
        "zardine/locks.py:5: compares otherwise: b > 1",
    }, run.stdout
    assert "7 of 7 tried, 2 not found" in run.stdout
