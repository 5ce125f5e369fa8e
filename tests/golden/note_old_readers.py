"""Note in ``manifest_old.json`` what the installed zarr-python makes of the golden files of older formats.

Run it in each environment that the generators name, after all of them: with zarr-python 1.1 it notes ``zarr1_reads``
(v1), with 2.18 ``zarr2_reads`` (v2; v1 after its own ``migrate_1to2``), with 3 ``zarr3_reads`` (v2; the sharding
draft as it stands, and ``zarr3_reads_accepted`` for the same bytes under a document in the accepted form).
"""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from golden_files_old import HERE, load_expected, native, objects, same_elements, save_entries, strict_json

warnings.simplefilter("ignore")
MAJOR = int(zarr.__version__.split(".")[0])
FORMATS = {1: ("1",), 2: ("1", "2"), 3: ("2", "3-draft")}[MAJOR]
Entry = dict[str, Any]


def directory(path: Path) -> Any:
    """The store of one folder or zip file."""
    if path.suffix == ".zip":
        return zarr.storage.ZipStore(path if MAJOR == 3 else str(path), mode="r")
    return zarr.storage.LocalStore(path, read_only=True) if MAJOR == 3 else zarr.storage.DirectoryStore(str(path))


def open_array(path: Path) -> Any:
    return zarr.Array(directory(path), readonly=True) if MAJOR == 1 else zarr.open_array(directory(path), mode="r")


def elements(path: Path, entry: Entry) -> np.ndarray[Any, Any]:
    """What zarr-python reads, in native byte order; zeros where the specification leaves it open."""
    array = open_array(path)
    region = entry.get("region")
    found = np.asarray(array[tuple(slice(*part) for part in region)] if region else array[...])
    if entry["dtype"] in ("string", "bytes", "object"):
        found = objects(found.reshape(-1).tolist() or [None], found.shape) if found.dtype != object else found.copy()
        empty: Any = {"string": "", "bytes": b"", "object": None}[entry["dtype"]]
    else:
        found = found.astype(native(found.dtype))
        empty = np.zeros((), found.dtype)
    for place in entry.get("undefined_chunks", ()):
        box = tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, entry["chunks"]))  # noqa: B905
        found[box] = empty
    return found


def problem(path: Path, entry: Entry) -> str:
    """Why zarr-python does not read what is expected; empty if it does."""
    try:
        found, expected = elements(path, entry), load_expected(entry)
    except Exception as error:
        return as_text(error)
    if same_elements(found, expected, entry["dtype"]):
        return ""
    if entry.get("others_read") and same_elements(found, load_expected(entry, "others_read"), entry["dtype"]):
        return "reads others_read"
    if found.dtype != expected.dtype and entry["dtype"] not in ("string", "bytes"):
        return f"the type is {found.dtype}"
    return "other elements"


def migrated_problem(path: Path, entry: Entry, scratch: Path) -> str:
    """The same for v1 after zarr-python 2 has made v2 of it."""
    shutil.copytree(path, scratch)
    try:
        zarr.storage.migrate_1to2(zarr.storage.DirectoryStore(str(scratch)))
    except Exception as error:
        return f"migrate_1to2: {as_text(error)}"
    return problem(scratch, entry)


def group_problem(path: Path, entry: Entry) -> str:
    """Why zarr-python does not see the expected tree; empty if it does."""
    try:
        root = zarr.open_group(directory(path), mode="r")
        nodes: Entry = {}
        if MAJOR == 3:
            nodes = dict(root.members(max_depth=None))
        else:
            root.visititems(nodes.__setitem__)
        kinds = {name: "array" if isinstance(node, zarr.Array) else "group" for name, node in nodes.items()}
        attributes = {name: strict_json(dict(node.attrs)) for name, node in nodes.items() if dict(node.attrs)}
    except Exception as error:
        return as_text(error)
    if kinds != entry["members"]:
        return "other members"
    if attributes != entry.get("member_attributes", {}) or strict_json(dict(root.attrs)) != entry.get("attributes", {}):
        return "other attributes"
    return ""


def as_text(error: Exception) -> str:
    """The first sentence of an error, without paths of this machine."""
    lines = str(error).replace(str(HERE), "").strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0].split('. ')[0][:150]}".rstrip(": ")


def accepted(codec: Entry) -> list[Entry]:
    """A codec of the draft in the accepted form: no codec, itself or its newer name."""
    name, configuration = codec["name"], codec.get("configuration", {})
    if name == "endian":
        return [codec | {"name": "bytes"}]
    if name == "transpose" and configuration["order"] == "C":
        return []
    if name == "sharding_indexed":
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        inner = accepted_chain(configuration.get("codecs", []), len(configuration["chunk_shape"]))
        return [{"name": name, "configuration": configuration | {"codecs": inner, "index_codecs": [little]}}]
    return [codec]


def accepted_chain(codecs: list[Entry], ndim: int) -> list[Entry]:
    """The codecs of the draft in the accepted form, which always says how elements become bytes."""
    chain = [new for codec in codecs for new in accepted(codec)]
    for codec in chain:
        if codec["name"] == "transpose" and codec["configuration"]["order"] == "F":
            codec["configuration"] = {"order": list(range(ndim))[::-1]}
    if not any(codec["name"] in ("bytes", "sharding_indexed") for codec in chain):
        first = next((i for i, codec in enumerate(chain) if codec["name"] != "transpose"), len(chain))
        chain.insert(first, {"name": "bytes", "configuration": {"endian": "little"}})
    return chain


def note_draft(path: Path, entry: Entry, scratch: Path) -> None:
    """Read the same shards under a document in the accepted form."""
    shutil.copytree(path, scratch)
    document = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
    document["codecs"] = accepted_chain(document["codecs"], len(document["shape"]))
    (scratch / "zarr.json").write_text(json.dumps(document))
    why = problem(scratch, entry)
    entry |= {"zarr3_reads_accepted": not why} | ({"zarr3_why_accepted": why} if why else {})


def note(entry: Entry, scratch: Path) -> None:
    """Add what this release makes of one case."""
    path = HERE / "data" / entry["path"]
    for key in [key for key in entry if key.startswith(f"zarr{MAJOR}_")]:
        del entry[key]
    if MAJOR == 2 and entry["zarr_format"] == "1":
        why = migrated_problem(path, entry, scratch)
    else:
        why = group_problem(path, entry) if entry["kind"] == "group" else problem(path, entry)
    entry |= {f"zarr{MAJOR}_reads": not why} | ({f"zarr{MAJOR}_why": why} if why else {})
    if entry["zarr_format"] == "3-draft":
        note_draft(HERE / "data" / entry["path"], entry, scratch)


def main() -> None:
    if MAJOR == 3:
        import numcodecs.pickles

        zarr.config.set({"array.allow_unsafe_pickle_decode": True})
        numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True
    file = HERE / "manifest_old.json"
    entries = json.loads(file.read_text(encoding="utf-8"))
    for entry in entries:
        if entry["zarr_format"] in FORMATS:
            with tempfile.TemporaryDirectory() as folder:
                note(entry, Path(folder) / "array")
    save_entries(file, entries)
    read = [entry[f"zarr{MAJOR}_reads"] for entry in entries if f"zarr{MAJOR}_reads" in entry]
    print(f"zarr-python {zarr.__version__} reads {sum(read)} of {len(read)}")


if __name__ == "__main__":
    main()
