"""Put faults into a copy of the code that no test once found, one at a time, and print which test finds each now.

Part of ``make soak``. These are faults that a user would feel: a case was tested in one form only (sharded and not
unsharded, local and not without versions, one damaged chunk and not two). Ends with an error if one is not found, and
before anything is run where the text that a fault replaces is not in its file, once: the code has changed, and the
fault has to be put into what is there now.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants import ROOT, Mutant, places


class Fault(NamedTuple):
    """One way to get something wrong."""

    about: str
    file: str
    """Below ``src/zardine``."""
    old: str
    new: str
    tests: str
    """Files and folders below ``tests``."""


FAULTS = (
    # paths
    Fault(
        "a link leads to a neighbour whose name begins like that of the store",
        "stores/local/base_directory.py",
        'self._real.rstrip("/") + "/"',
        'self._real.rstrip("/")',
        "stores/test_local_safety.py",
    ),
    Fault(
        "a shard that is a link is edited through it",
        "stores/local/files.py",
        '_EDIT: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | NO_LINK',
        '_EDIT: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0)',
        "stores/test_local_safety.py",
    ),
    # conditions and locks
    Fault(
        "a part of a chunk is written over what came meanwhile",
        "engine/write.py",
        "store.set(key, encoded, condition=condition)",
        "store.set(key, encoded)",
        "engine/test_conditions.py",
    ),
    Fault(
        "a chunk that is emptied takes what came meanwhile with it",
        "engine/write.py",
        "store.erase_version(key, there.version)",
        "store.erase(key)",
        "engine/test_meeting_writers_of_any_form.py",
    ),
    Fault(
        "a chunk that is emptied is written over what came meanwhile",
        "engine/write.py",
        "store.set(key, whole, condition=condition)",
        "store.set(key, whole)",
        "engine/test_meeting_writers_of_any_form.py",
    ),
    Fault(
        "repair writes over what came meanwhile",
        "tools/repair.py",
        "store.set(key, data, condition=condition_of(store, key, old, keeps_others=True))",
        "store.set(key, data)",
        "tools/test_repair.py",
    ),
    Fault(
        "repair drops all chunks of a shard, and what came meanwhile",
        "tools/repair.py",
        "store.set(key, layout.assemble([None] * layout.count), condition=condition)",
        "store.set(key, layout.assemble([None] * layout.count))",
        "tools/test_repair.py",
    ),
    Fault(
        "repair erases what came meanwhile",
        "tools/repair.py",
        "store.erase_version(key, old.version)",
        "store.erase(key)",
        "tools/test_repair.py",
    ),
    Fault(
        "compact writes over what came meanwhile",
        "tools/compact.py",
        "store.set(key, shard, condition=condition_of(store, key, whole, keeps_others=True))",
        "store.set(key, shard)",
        "engine/test_conditions.py",
    ),
    Fault(
        "compact judges by an index that counts no more",
        "tools/compact.py",
        "if whole is None or whole.version != found.version:",
        "if whole is None:",
        "engine/test_conditions.py",
    ),
    Fault(
        "what is carried over of a shard with unused space is of two versions of it",
        "engine/whole_shard.py",
        "if rest is None or rest.version != stored.version:",
        "if rest is None:",
        "engine/test_conditions.py",
    ),
    Fault(
        "two conversions begin at the same place",
        "tools/copying/new_place.py",
        "json.dumps(document, indent=2).encode(), condition=Condition(None))",
        "json.dumps(document, indent=2).encode())",
        "engine/test_conditions.py",
    ),
    Fault(
        "resharding ends though the array has grown meanwhile",
        "tools/resharding/in_place.py",
        "                and now.shape == old.shape  # else there are chunks that were not copied\n",
        "",
        "engine/test_generations.py",
    ),
    Fault(
        "what a change of vectors puts in order first is not read after that",
        "vectors/changing/one_writer.py",
        "owner = replace(before, store=store)",
        "owner = before",
        "vectors/test_change_log.py",
    ),
    Fault(
        "a level of vectors is replaced though somebody else has changed it",
        "vectors/storing/transactions.py",
        "if dict(old.attributes) != dict(expected):",
        "if False:",
        "vectors/test_writers_that_meet.py",
    ),
    Fault(
        "an array of vectors is replaced though somebody else has changed it",
        "vectors/storing/transactions.py",
        "if current != old:",
        "if False:",
        "vectors/test_writers_that_meet.py",
    ),
    Fault(
        "a fork keeps descriptors of locked files",
        "stores/locks.py",
        "            close_file(file)\n        entry.files = {}",
        "            pass\n        entry.files = {}",
        "stores/test_locks_and_versions.py",
    ),
    Fault(
        "a fork keeps descriptors of directories that its parent writes in",
        "stores/locks.py",
        "    for file in _held:\n        close_file(file)",
        "    for file in _held:\n        pass",
        "stores/test_locks_and_versions.py engine/test_generations.py",
    ),
    Fault(
        "who has looked while an array was about to change is not refused later",
        "engine/freshness.py",
        "    if is_closing(current):\n        watch.forget()",
        "    if False:\n        watch.forget()",
        "engine/test_generations.py",
    ),
    Fault(
        "a put waits for no look that is under way",
        "engine/freshness.py",
        "    if pending is not None and writing:",
        "    if False:",
        "engine/test_far_requests.py",
    ),
    Fault(
        "who replaces an array far away does not wait for the leases of others",
        "engine/freshness.py",
        "    if not all(store.wait_for_writers(prefix) for prefix in prefixes):",
        "    if False:",
        "engine/test_far_requests.py",
    ),
    Fault(
        "a handle by consolidated metadata counts as one whose document was read just now",
        "nodes/group.py",
        "if isinstance(node, Array) and self._consolidated is None:",
        "if isinstance(node, Array):",
        "engine/test_far_requests.py",
    ),
    Fault(
        "writing is not refused while an array is about to change",
        "engine/freshness.py",
        "    if writing:\n        refuse_closing(handle, current, lost)",
        "    if False:\n        refuse_closing(handle, current, lost)",
        "engine/test_generations.py",
    ),
    # requests at a time
    Fault(
        "a refusal does not lower how many requests go at a time",
        "stores/pace.py",
        "self._try(max(LEAST, self.limit // 2))",
        "pass",
        "stores/test_pace.py",
    ),
    Fault(
        "the bytes that are on their way are not bounded",
        "stores/pace.py",
        " and self._nbytes + nbytes <= self.most_bytes",
        "",
        "stores/test_pace.py",
    ),
    Fault(
        "another number of requests is kept though it gives less",
        "stores/pace.py",
        "_SAME * self._best)",
        "0.0)",
        "stores/test_pace.py",
    ),
    Fault(
        "a part of a raw chunk is taken of one of another length",
        "engine/locate.py",
        "if reading.size == handle.layout.chain_of(part.object).encoded.nbytes:",
        "if True:",
        "engine/test_raw_ranges.py",
    ),
    Fault(
        "more of a shard than its bound is read unasked",
        "engine/speculative_read.py",
        "unasked <= one and unasked * together",
        "unasked * together",
        "engine/test_read_along.py",
    ),
    Fault(
        "of many shards more is read unasked than flows in the time of a request",
        "engine/speculative_read.py",
        "unasked <= one and unasked * together <= min(most, window_bytes() // _OF_MEMORY)",
        "unasked <= one",
        "engine/test_read_along.py",
    ),
    Fault(
        "calls at the same time read more unasked than one may",
        "engine/speculative_read.py",
        "fits = self._nbytes + nbytes <= most",
        "fits = True",
        "engine/test_read_along.py",
    ),
    Fault(
        "chunks are looked for beyond what was read with the index",
        "engine/locate.py",
        "if len(starts) and not held.has(int(starts.min()), int((starts + lengths[stored]).max())):",
        "if False:",
        "engine/test_read_along.py",
    ),
    Fault(
        "what came with the index is of any version of the shard",
        "engine/locate.py",
        "unchanged = reading is not None and reading.version == known.version",
        "unchanged = reading is not None",
        "engine/test_read_along.py",
    ),
    Fault(
        "an index that is remembered holds the shard that it was read with",
        "sharding/index.py",
        "ShardIndex(table[:, 0].copy(), table[:, 1].copy())  # it is kept",
        "ShardIndex(table[:, 0], table[:, 1])  # it is kept",
        "sharding",
    ),
    Fault(
        "the environment cannot switch off what is on",
        "settings.py",
        "return _WORDS[word]",
        "return text",
        "test_config.py",
    ),
    Fault(
        "what is read in a stream is taken to flow in no time",
        "stores/pace.py",
        "max(seconds - quickest, seconds / 2, _LEAST_TIME)",
        "max(seconds - quickest, _LEAST_TIME)",
        "stores/test_pace.py",
    ),
    # caches
    Fault(
        "indexes are remembered where nobody can tell whether they still count",
        "engine/index_cache.py",
        "if entry.version is not None:",
        "if True:",
        "engine/test_indexes_that_are_remembered.py",
    ),
    Fault(
        "caches grow beyond their limits",
        "cache.py",
        "while self.nbytes > most:",
        "if self.nbytes > most:",
        "engine/test_indexes_that_are_remembered.py test_cache.py",
    ),
    Fault(
        "plans of a shorter array are kept",
        "indexing/plan.py",
        "known if same else Cache(_MOST_SEEN)",
        "known",
        "indexing/test_plan.py",
    ),
    Fault(
        "a file that was changed and given its old time is taken for the one before",
        "stores/open_files.py",
        "-{modified:x}-{changed:x}",
        "-{modified:x}",
        "engine/test_indexes_that_are_remembered.py",
    ),
    # shards
    Fault(
        "bytes that chunks share are written over",
        "engine/update_shard.py",
        "    alone[:-1] &= ~shared\n    alone[1:] &= ~shared\n",
        "",
        "engine/test_strategies.py",
    ),
    Fault(
        "bytes that a later chunk shares are written over",
        "engine/update_shard.py",
        "    alone[:-1] &= ~shared\n",
        "",
        "engine/test_strategies.py",
    ),
    Fault(
        "bytes that an earlier chunk shares are written over",
        "engine/update_shard.py",
        "    alone[1:] &= ~shared\n",
        "",
        "engine/test_strategies.py",
    ),
    Fault(
        "bytes that a chunk before the one before shares are written over",
        "engine/update_shard.py",
        "np.maximum.accumulate(offsets + lengths) if len(order) else offsets",
        "offsets + lengths",
        "engine/test_strategies.py",
    ),
    Fault(
        "shards of which chunks become empty keep all of their bytes",
        "engine/update_shard.py",
        "bool(edit.appended or edit.moved)",
        "bool(edit.appended)",
        "engine/test_strategies.py",
    ),
    Fault(
        "the index of a shard in a shard is not checked",
        "codecs/sharding_indexed.py",
        "index = prepared.layout.checked_index_of(data)",
        "index = prepared.layout.index_of(data)",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "the index of a shard in a shard is taken for that of the one around",
        "sharding/layout.py",
        "if self.is_chunk is not None and not",
        "if False and not",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "entries of an index that cannot be its shard's are believed: files",
        "engine/file_index.py",
        "    layout.check(index, file.size, file.read)\n    return index, encoded",
        "    return index, encoded",
        "engine/test_partial_writes.py crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "entries of an index that cannot be its shard's are believed: other stores",
        "engine/read_index.py",
        "            layout.check(index, reading.size, _Parts(store, key, reading.version, held).read)",
        "            pass",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "entries of an index that cannot be its shard's are believed: verify",
        "tools/checking/stored_object.py",
        "            layout.check(index, size, partial(_part, stored, version))",
        "            pass",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "ranges that reach beyond the next ones are cut short",
        "engine/joined_ranges.py",
        "np.maximum.accumulate(sorted_starts + sizes[order])",
        "sorted_starts + sizes[order]",
        "engine/test_indexes_that_are_remembered.py",
    ),
    Fault(
        "a chunk that overlaps one before the one before is not told of",
        "tools/checking/index.py",
        "reach = np.maximum.accumulate(ends)",
        "reach = ends",
        "engine/test_indexes_that_are_remembered.py",
    ),
    Fault(
        "bytes that two chunks share count as unused",
        "tools/checking/index.py",
        "np.maximum.accumulate(ends)[:-1]",
        "ends[:-1]",
        "engine/test_indexes_that_are_remembered.py",
    ),
    Fault(
        "chunks without checksums are read while they are written over",
        "engine/read.py",
        "if not handle.layout.is_checked:",
        "if False:",
        "engine/test_strategies.py",
    ),
    Fault(
        "a block of a chunk without checksum is read while it is written over",
        "engine/read_block.py",
        "if place is None else 1,\n            document=document,\n            is_checked=layout.is_checked,",
        "if place is None else 1,\n            document=document,\n            is_checked=True,",
        "engine/test_strategies.py",
    ),
    Fault(
        "ranges beyond the end are of two versions of a value",
        "stores/object/store.py",
        "if (reading.version, reading.size) == (version, size):",
        "if reading.size == size:",
        "stores/test_locks_and_versions.py",
    ),
    Fault(
        "a chunk of the wrong length is found by decoding it only",
        "tools/checking/chunk.py",
        "if chain.encoded_size is not None and",
        "if deep and chain.encoded_size is not None and",
        "tools/test_verify_many_chunks.py",
    ),
    Fault(
        "an inner chunk of the wrong length is found by decoding it only",
        "tools/checking/stored_object.py",
        "        if chain.encoded_size is not None:",
        "        if False:",
        "tools/test_verify_many_chunks.py",
    ),
    # tools
    Fault(
        "repair that is to change nothing removes leftovers",
        "tools/repair.py",
        "if leftovers and not dry_run:",
        "if leftovers:",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    Fault(
        "verify does not tell of leftovers",
        "tools/checking/work.py",
        ' + [note("/", each, kind="leftover", message=message) for each in store.leftovers()]',
        "",
        "crash/test_what_says_it_was_cut_off.py",
    ),
    # values and documents
    Fault(
        "the sign of a zero is lost",
        "codecs/chain.py",
        'if array.dtype.kind in "OT":',
        'if array.dtype.kind in "OTfc":',
        "codecs/test_equals_fill.py",
    ),
    Fault(
        "members of consolidated metadata have slashes around their paths: v3",
        "metadata/v3.py",
        'found = {path.strip("/"): node',
        "found = {path: node",
        "metadata/test_consolidated.py",
    ),
    Fault(
        "members of consolidated metadata have slashes around their paths: v2",
        "metadata/v2.py",
        '{key.strip("/"): document',
        "{key: document",
        "metadata/test_consolidated.py",
    ),
    Fault(
        "fill values of v1 are read as UTF-8",
        "metadata/v1.py",
        'fill_value.encode("latin-1", "replace")',
        "fill_value.encode()",
        "test_older_formats.py",
    ),
    Fault(
        "fill values of v1 are written as UTF-8",
        "metadata/v1.py",
        '.decode("latin-1")',
        '.decode("utf-8", "replace")',
        "test_older_formats.py",
    ),
    Fault(
        "text with NULs at its end equals no fill value",
        "codecs/chain.py",
        "corner: Any = (*(0,) * array.ndim, ...)",
        "corner: Any = (0,) * array.ndim",
        "codecs/test_equals_fill.py",
    ),
    Fault(
        "bytes with NULs at their end are no fill value",
        "data_types/raw_bytes.py",
        "if len(data) > self.length:\n            problems.add",
        "if len(data.rstrip(b'\\0')) != len(data) or len(data) > self.length:\n            problems.add",
        "test_older_formats.py",
    ),
    Fault(
        "of two faults one is an extension, and only that is told",
        "json_document.py",
        "self.unknown_extension and len(self.found) == 1",
        "self.unknown_extension",
        "metadata/test_documents.py",
    ),
    Fault(
        "an entry of an archive reaches into the directory",
        "stores/zip/directory.py",
        "if stop > end:",
        "if False:",
        "stores/test_zip_records.py",
    ),
    Fault(
        "a fragment lists the row behind the last one of its cell",
        "vectors/format/fragment_index.py",
        "listed.max() >= row_count",
        "listed.max() > row_count",
        "vectors/test_writers_that_meet.py",
    ),
    Fault(
        "boxes read the cells around them",
        "vectors/reading/answer.py",
        "slack = 1e-6 if",
        "slack = 0.3 if",
        "vectors/test_writers_that_meet.py",
    ),
)


def mutant_of(fault: Fault) -> Mutant:
    """The fault in its file; raises where what it replaces is not there, once."""
    file = ROOT / "src/zardine" / fault.file
    text = file.read_text() if file.exists() else ""
    if text.count(fault.old) != 1:
        sys.exit(
            f"known_mutants: {fault.old!r} is {text.count(fault.old)} times in {fault.file}, not once: "
            f"put this fault into the code as it is now ({fault.about})"
        )
    line = text[: text.index(fault.old)].count("\n") + 1
    return Mutant("known", file, line, fault.about, text.replace(fault.old, fault.new))


def tests_of(fault: Fault) -> list[str]:
    """The tests, as pytest has them."""
    tests = [f"tests/{each}" for each in fault.tests.split()]
    for each in tests:
        if not (ROOT / each).exists():
            sys.exit(f"known_mutants: {each} is not there any more; name the tests that find this: {fault.about}")
    return tests


def chosen(words: list[str]) -> Iterator[tuple[Mutant, list[str]]]:
    """The faults in whose file or text one of the words is; all without words."""
    for fault in FAULTS:
        mutant, tests = mutant_of(fault), tests_of(fault)
        if not words or any(word in f"{mutant}" for word in words):
            yield mutant, tests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("words", nargs="*", help="only faults in whose file or text one of these words is")
    options = parser.parse_args()
    faults = list(chosen(options.words))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        free = places(Path(folder), options.jobs)
        place = free.get()
        reason = place.failure(sorted({each for _, tests in faults for each in tests}), 1800)
        if reason is not None:
            print(f"known_mutants: the tests fail as the code is: {reason}")
            return 1
        free.put(place)
        limit = 60 + 4 * (time.monotonic() - begin)

        def attempt(case: tuple[Mutant, list[str]]) -> bool:
            mutant, tests = case
            place = free.get()
            try:
                finder = place.finder(mutant, tests, limit)
            finally:
                free.put(place)
            told = "NOT FOUND" if finder is None else "found"
            print(f"{told}: {mutant}\n    {finder or ' '.join(tests)}", flush=True)
            return finder is not None

        found = list(pool.map(attempt, faults))
    print(f"known_mutants: {len(found)} tried, {found.count(False)} not found, {time.monotonic() - begin:.0f} s")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
