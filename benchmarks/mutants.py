"""Put one fault at a time into a copy of the code, run the tests of that part, and print the faults that none finds.

``make soak`` and ``make mutants``. The parts are those where a fault loses or mixes data and hardly ever shows: locks,
conditions, caches, recovery, paths. Which faults are tried, and in which order, is drawn anew in every run unless
``--seed`` is given. A fault that is not found either lacks a test or changes nothing; somebody has to look. Those that
were found wanting once are in ``known_mutants.py``.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import fnmatch
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent

PARTS: dict[str, tuple[str, str]] = {
    "locks": (
        "stores/locks.py stores/zip/lock.py stores/zip/archive.py stores/open_files.py stores/late_closing.py",
        "stores/test_lo*.py stores/test_late_closing.py stores/test_zip_processes.py stores/test_zip_threads.py "
        "engine/test_concurrency.py engine/test_generations.py",
    ),
    "conditions": (
        "engine/*change.py engine/write.py engine/update_shard.py engine/freshness.py engine/erased.py "
        "hierarchy/update.py stores/object/conditions.py tools/compact.py",
        "stores/test_cloud.py stores/test_object*.py engine tools/test_compact.py tools/test_repair.py "
        "test_resize_and_append.py test_consolidated_handles.py",
    ),
    "caches": (
        "cache.py engine/index_cache.py engine/read_index.py engine/joined_ranges.py engine/speculative_read.py "
        "engine/locate.py engine/chunk_cache.py engine/handle.py indexing/plan.py "
        "**/cached.py **/cache_entries.py stores/open_files.py **/seen_documents.py **/forms.py",
        "test_cache.py engine indexing stores/test_cached*.py metadata/test_seen*.py metadata/test_forms.py "
        "test_resize_and_append.py test_hierarchy.py",
    ),
    "recovery": (
        "stores/local/beside.py stores/open_files.py engine/update_shard.py engine/file_index.py engine/read_index.py "
        "engine/whole_shard.py sharding/layout.py "
        "tools/repair.py tools/salvage/older_index.py",
        "engine sharding crash/test_what_says*.py crash/test_every_bit*.py crash/test_power_loss.py "
        "tools/test_repair.py tools/test_salvage.py",
    ),
    "paths": (
        "**/base_directory.py **/beside.py **/file_tree.py stores/**/path.py metadata/node_names.py "
        "stores/zip/directory.py",
        "stores/test_local*.py stores/test_conformance.py stores/test_zip*.py test_hierarchy.py test_names*.py "
        "metadata/test_consolidated.py",
    ),
}
"""For each part its files, below ``src/zardine``, and its tests, below ``tests``."""

Edit = Callable[[ast.AST], ast.AST | None]
"""Gets a copy of a node and gives what takes its place; ``None``: it goes."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One fault in one file."""

    part: str
    file: Path
    line: int
    what: str
    source: str
    """The file with the fault."""

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.what}"


def edits(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    """What can be done to a node, in words and as a function of a copy of it."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield "compares otherwise", lambda n: _put(n, "ops", [COMPARISONS[type(op)]()])
        case ast.BoolOp(op=op, values=values):
            yield "and for or", lambda n: _put(n, "op", ast.Or() if isinstance(op, ast.And) else ast.And())
            for at, value in enumerate(values):
                yield (
                    f"without {ast.unparse(value)}",
                    lambda n, at=at: _put(n, "values", [*values[:at], *values[at + 1 :]]),
                )
        case ast.UnaryOp(op=ast.Not()):
            yield "without not", lambda n: n.operand  # type: ignore[attr-defined]
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            yield "calculates otherwise", lambda n: _put(n, "op", OPERATORS[type(op)]())
        case ast.Constant(value=bool(value)):
            yield "the other truth", lambda n: _put(n, "value", not value)
        case ast.Constant(value=int(value)):
            yield "one more", lambda n: _put(n, "value", value + 1)
        case ast.If() | ast.IfExp():
            for truth in (True, False):
                yield f"if {truth}", lambda n, truth=truth: _put(n, "test", ast.Constant(truth))
        case ast.While(test=test, body=body) if not isinstance(test, ast.Constant):
            yield "if for while", lambda n: ast.If(test, body, [])
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield f"{NAMES[name]} for {name}", lambda n: _put(n, "func", ast.Name(NAMES[name]))
        case ast.Call(keywords=keywords):
            for at, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    without = [each for i, each in enumerate(keywords) if i != at]
                    yield f"without {keyword.arg}", lambda n, without=without: _put(n, "keywords", without)
        case ast.With(body=body):
            yield "without the context", lambda n: ast.If(ast.Constant(True), body, [])
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield "left out", lambda n: ast.Pass()
        case ast.Continue() | ast.Break():
            yield "left out", lambda n: ast.Pass()


def _put(node: ast.AST, field: str, value: object) -> ast.AST:
    setattr(node, field, value)
    if isinstance(node, ast.BoolOp) and len(node.values) == 1:
        return node.values[0]
    return node


def mutants_of(part: str, file: Path) -> Iterator[Mutant]:
    """Every fault that can be put into a file."""
    text = file.read_text()
    tree = ast.parse(text)
    for at, node in enumerate(_code(tree)):
        for what, edit in edits(node):
            changed = copy.deepcopy(tree)
            target = next(each for number, each in enumerate(_code(changed)) if number == at)
            instead = edit(target)
            source = ast.unparse(ast.fix_missing_locations(_Replace(target, instead).visit(changed)))
            shown = " ".join(ast.unparse(getattr(node, "test", node)).split())
            line = getattr(node, "lineno", 0)
            yield Mutant(part, file, line, f"{what}: {shown[:110]}{'…' * (len(shown) > 110)}", source)


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, instead: ast.AST | None) -> None:
        self.target, self.instead = target, instead

    def visit(self, node: ast.AST) -> ast.AST | None:
        return self.instead if node is self.target else self.generic_visit(node)


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run: no annotations, docstrings, decorators or messages of errors."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params", "exc", "msg"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.AST) and not isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
                yield node
                yield from _code(node)


class Place:
    """A copy of the repository in which one fault at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=_left_out, symlinks=True)

    def failure(self, tests: list[str], seconds: float) -> str | None:
        """The first test that fails, or what else keeps them from passing in time; ``None`` if all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
        paths = {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "ZARDINE_SOAK": "0"}
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            with subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | paths,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    return f"not done after {seconds:.0f} s"
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            if code == 0:
                return None
            said.seek(0)
            lines = said.read().splitlines()
        failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return failed[0] if failed else f"pytest ended with {code}"

    def finder(self, mutant: Mutant, tests: list[str], seconds: float) -> str | None:
        """The test that fails with the fault."""
        file = self.folder / mutant.file.relative_to(ROOT)
        before = file.read_text()
        file.write_text(mutant.source)
        try:
            return self.failure(tests, seconds)
        finally:
            file.write_text(before)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What was built, or stored by the demonstration; below, such names are those of samples."""
    patterns = ["__pycache__", ".hypothesis", "target"]
    if Path(folder) == ROOT:
        patterns += [".venv*", ".git", "build", "*.zarr", "*.zv"]
    return {name for pattern in patterns for name in fnmatch.filter(names, pattern)}


def places(folder: Path, count: int) -> SimpleQueue[Place]:
    """Copies of the repository below ``folder``, for as many at a time."""
    free: SimpleQueue[Place] = SimpleQueue()
    for number in range(count):
        free.put(Place(folder / str(number)))
    return free


def files_of(part: str) -> list[Path]:
    """The source files of a part; each pattern names some, or the part has been moved and is to be named anew."""
    found = []
    for pattern in PARTS[part][0].split():
        files = sorted((ROOT / "src/zardine").glob(pattern))
        if not files:
            sys.exit(f"mutants: {pattern} names no file any more; mend PARTS in {Path(__file__).name}")
        found += files
    return found


def tests_of(part: str) -> list[str]:
    found = []
    for pattern in PARTS[part][1].split():
        paths = sorted((ROOT / "tests").glob(pattern))
        if not paths:
            sys.exit(f"mutants: tests/{pattern} names nothing any more; mend PARTS in {Path(__file__).name}")
        found += [str(path.relative_to(ROOT)) for path in paths]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--part", choices=PARTS, action="append", help="one of the parts; otherwise all, by turns")
    parser.add_argument("--file", help="a word in the name of the files")
    parser.add_argument("--list", action="store_true", help="print the faults, and try none")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    rng = random.Random(seed)
    parts = options.part or list(PARTS)
    queues = []
    for part in parts:
        mutants = [
            each for file in files_of(part) if (options.file or "") in file.name for each in mutants_of(part, file)
        ]
        rng.shuffle(mutants)
        queues.append(mutants)
        tests_of(part)
    total = sum(map(len, queues))
    order = [each for turn in range(max(map(len, queues))) for queue in queues for each in queue[turn : turn + 1]]
    if options.list:
        print(*sorted(map(str, order)), sep="\n")
        return 0
    print(f"mutants: {total} faults in {', '.join(parts)}; seed {seed}; {options.minutes:g} minutes", flush=True)
    end = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        free = places(Path(folder), options.jobs)
        limits: dict[str, float] = {}
        first = free.get()
        for part in parts:
            begin = time.monotonic()
            reason = first.failure(tests_of(part), 1800)
            if reason is not None:
                print(f"mutants: the tests of {part} fail as the code is: {reason}")
                return 1
            limits[part] = 60 + 4 * (time.monotonic() - begin)
        free.put(first)

        def attempt(mutant: Mutant) -> bool | None:
            if time.monotonic() > end:
                return None
            place = free.get()
            try:
                found = place.finder(mutant, tests_of(mutant.part), limits[mutant.part]) is not None
            finally:
                free.put(place)
            if not found:
                print(f"NOT FOUND by the tests of {mutant.part}: {mutant}", flush=True)
            return found

        results = [each for each in pool.map(attempt, order) if each is not None]
    print(f"mutants: {len(results)} of {total} tried, {results.count(False)} not found (seed {seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
