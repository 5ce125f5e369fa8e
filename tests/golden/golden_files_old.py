"""What the generators of golden files of older formats share: Zarr v2, v1 and the 2023 draft of the sharding codec.

A case is one stored array or group below ``data/`` and one entry of ``manifest_old.json``. The fields that
``golden_files.py`` explains mean the same here (``path``, ``kind``, ``writer``, ``version``, ``dtype``, ``shape``,
``expected``, ``needs``, ``optional``, ``members``). The others:

``zarr_format``       ``"2"``, ``"1"`` or ``"3-draft"``
``dtype``             of the elements in memory, in native byte order. For ``|O`` it is ``string`` (vlen-utf8),
                      ``bytes`` (vlen-bytes) or ``object``. Elements of ``object`` are kept as :func:`element_to_json`
                      says.
``fill``              as in ``golden_files.py``, for ``object`` the JSON value; ``null`` where the document has ``null``
``stored_dtype``, ``chunks``, ``order``, ``separator``, ``compressor``, ``filters``, ``fill_value``
                      what the document says; codecs by their ids alone. A ``separator`` of ``null`` means that the
                      document has no such member; a ``fill_value`` that is no JSON number is kept as text
``region``            ``expected`` holds these ``[start, stop]`` of each axis alone; the array itself is too large
``undefined_chunks``  chunks that are not stored while the fill value is ``null``: the specification leaves their
                      elements open; ``expected`` has zeros (empty texts) there
``disputed``          readers of these bytes differ, and why; ``expected`` is what the writer was given, ``others_read``
                      a second file with what the readers named in the text make of it
``attributes``        of the node itself; numbers that are no JSON numbers stand there as text
``member_attributes`` for groups: path of each member that has attributes -> its attributes
``consolidated``      for groups: whether there is a ``.zmetadata``
``store``             ``zip`` where the case is one zip file
``zarr1_reads``, ``zarr2_reads``, ``zarr3_reads``
                      whether zarr-python 1.1, 2.18 and 3.4 read exactly the expected elements (groups: see the same
                      members and attributes); where not, ``zarr3_why`` and so on say what happens.
                      ``note_old_readers.py`` fills these in
``about``             what is special
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from golden_files import fill_hex, sample

HERE = Path(__file__).resolve().parent
DOCUMENT = {"1": "meta", "2": ".zarray", "3-draft": "zarr.json"}
READERS = ("zarr1_", "zarr2_", "zarr3_")
FIRST_FIELDS = (
    "path",
    "kind",
    "writer",
    "version",
    "zarr_format",
    "dtype",
    "shape",
    "chunks",
    "order",
    "separator",
    "stored_dtype",
    "compressor",
    "filters",
    "fill_value",
    "fill",
    "expected",
)


def native(dtype: Any) -> np.dtype[Any]:
    """The same data type in the byte order of this machine, fields included."""
    return np.dtype(dtype).newbyteorder("=")


def samples(dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Sample values in native byte order."""
    return sample(native(dtype), shape) if math.prod(shape) else np.zeros(shape, native(dtype))


def objects(elements: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An object array that repeats these elements."""
    flat = np.empty(math.prod(shape), dtype=object)
    for i in range(flat.size):
        flat[i] = elements[i % len(elements)]
    return flat.reshape(shape)


def element_to_json(element: Any) -> Any:
    """JSON keeps its own types; bytes and arrays become ``{"$bytes": …}`` and ``{"$array": …, "$dtype": …}``."""
    if isinstance(element, bytes):
        return {"$bytes": list(element)}
    if isinstance(element, np.ndarray):
        return {"$array": strict_json(element.tolist()), "$dtype": str(native(element.dtype))}
    if isinstance(element, (list, tuple)):
        return [element_to_json(inner) for inner in element]
    if isinstance(element, dict):
        return {key: element_to_json(inner) for key, inner in element.items()}
    return strict_json(element)


def element_from_json(value: Any) -> Any:
    """The element that :func:`element_to_json` made this of."""
    if isinstance(value, list):
        return [element_from_json(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "$bytes" in value:
        return bytes(value["$bytes"])
    if "$array" in value:
        return np.array(value["$array"], dtype=value["$dtype"])
    return {key: element_from_json(inner) for key, inner in value.items()}


def strict_json(value: Any) -> Any:
    """The same JSON value with text in place of NaN and the infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (list, tuple)):
        return [strict_json(inner) for inner in value]
    if isinstance(value, dict):
        return {key: strict_json(inner) for key, inner in value.items()}
    return value


def elements_to_json(array: np.ndarray[Any, Any], dtype: str) -> list[Any]:
    """All elements of an object array, flat in C order."""
    flat = array.reshape(-1)
    elements = [flat[i] for i in range(flat.size)]
    if dtype == "string":
        return [str(text) for text in elements]
    if dtype == "bytes":
        return [list(content) for content in elements]
    return [element_to_json(element) for element in elements]


def load_expected(entry: dict[str, Any], field: str = "expected", root: Path = HERE) -> np.ndarray[Any, Any]:
    """The right elements of a case; with ``field="others_read"`` what other readers make of a disputed one."""
    file = root / "expected" / entry[field]
    if file.suffix == ".npy":
        return np.load(file)
    kept = json.loads(file.read_text(encoding="utf-8"))
    if entry["dtype"] == "bytes":
        elements = [bytes(content) for content in kept]
    else:
        elements = [element_from_json(value) for value in kept]
    return objects(elements, tuple(entry["shape"]))


def same_elements(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], dtype: str) -> bool:
    """Equal shapes and elements, bit for bit."""
    if left.shape != right.shape:
        return False
    if dtype in ("string", "bytes", "object"):
        return elements_to_json(left, "object") == elements_to_json(right, "object")
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()


def document_bytes(value: Any) -> bytes:
    """The bytes of a file of ``bad_documents_old.json``: text as it is, other values as JSON, or as a ``$`` form says.

    ``{"$hex": "…"}`` are bytes in hexadecimal; ``{"$nested": ["[", "]"], "times": 9}`` brackets that deep around
    ``middle``, with ``before`` and ``after`` outside.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and "$hex" in value:
        return bytes.fromhex(value["$hex"])
    if isinstance(value, dict) and "$nested" in value:
        left, right = value["$nested"]
        inside = left * value["times"] + value.get("middle", "") + right * value["times"]
        return (value.get("before", "") + inside + value.get("after", "")).encode()
    return json.dumps(value).encode()


class OldManifest:
    """The entries of one folder below ``data/``; :meth:`save` replaces these and leaves the others.

    ``root`` is the folder that holds ``data/``, ``expected/`` and ``manifest_old.json``.
    """

    def __init__(self, folder: str, writer: str, version: str, root: Path = HERE) -> None:
        self.folder, self.writer, self.version, self.root = folder, writer, version, root
        self.entries: list[dict[str, Any]] = []
        shutil.rmtree(root / "data" / folder, ignore_errors=True)
        (root / "data" / folder).mkdir(parents=True)
        (root / "expected").mkdir(exist_ok=True)

    def path(self, name: str) -> Path:
        return self.root / "data" / self.folder / name

    def array(
        self, name: str, zarr_format: str, expected: np.ndarray[Any, Any], dtype: str, fill: Any, **more: Any
    ) -> None:
        """Note an array that has been written to :meth:`path` of ``name``.

        ``fill`` is the fill value as an element, or ``None``; ``more`` are further fields, left out where empty.
        """
        entry = self._entry(name, "array") | {"zarr_format": zarr_format, "dtype": dtype}
        entry |= document_facts(self.path(name), zarr_format)
        entry |= {"fill": noted_fill(fill, dtype), "expected": self._save_expected(expected, dtype)}
        other = more.pop("others_read", None)
        if other is not None:
            more["others_read"] = self._save_expected(other, dtype)
        self._add(entry, more)

    def group(self, name: str, zarr_format: str, members: dict[str, str], **more: Any) -> None:
        """Note a group; its arrays are noted one by one."""
        self._add(self._entry(name, "group") | {"zarr_format": zarr_format, "members": members}, more)

    def save(self) -> None:
        """Write the manifest; drop files of expected elements that no entry needs any more."""
        file = self.root / "manifest_old.json"
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        mine = {entry["path"]: entry for entry in before if entry["path"].startswith(self.folder + "/")}
        for entry in self.entries:
            keep_readings(entry, mine.get(entry["path"], {}))
        kept = [entry for entry in before if entry["path"] not in mine]
        save_entries(file, kept + self.entries)
        newer = self.root / "manifest.json"
        others = json.loads(newer.read_text(encoding="utf-8")) if newer.exists() else []
        for name in files_of(before) - files_of(kept + self.entries + others):
            (self.root / "expected" / name).unlink(missing_ok=True)
        print(f"{self.folder}: {len(self.entries)} entries")

    def _entry(self, name: str, kind: str) -> dict[str, Any]:
        return {"path": f"{self.folder}/{name}", "kind": kind, "writer": self.writer, "version": self.version}

    def _add(self, entry: dict[str, Any], more: dict[str, Any]) -> None:
        entry |= {field: value for field, value in more.items() if value not in (None, "", [], {})}
        self.entries.append(strict_json(entry))

    def _save_expected(self, expected: np.ndarray[Any, Any], dtype: str) -> str:
        """Write the elements to ``expected/``, once for equal elements; gives the file's name."""
        unit = dtype.replace("[M]", "[month]").replace("[m]", "[minute]")  # some file systems do not tell M from m
        text = "".join(c if c.isascii() and c.isalnum() else "_" for c in unit)[:24]
        stem = f"{'x'.join(map(str, expected.shape)) or 'scalar'}-{text}"
        for number in range(1, 1000):
            if dtype in ("string", "bytes", "object"):
                content = json.dumps(elements_to_json(expected, dtype)).encode()
                file = self.root / "expected" / f"{stem}-{number}.json"
                if not file.exists():
                    file.write_bytes(content)
                if file.read_bytes() == content:
                    return file.name
                continue
            file = self.root / "expected" / f"{stem}-{number}.npy"
            if not file.exists():
                np.save(file, np.ascontiguousarray(expected).reshape(expected.shape))
            if same_elements(np.load(file), expected, dtype):
                return file.name
        raise RuntimeError("too many files of expected elements")


def document_facts(path: Path, zarr_format: str) -> dict[str, Any]:
    """What the metadata document of an array says, codecs by their ids alone."""
    document = json.loads((path / DOCUMENT[zarr_format]).read_text(encoding="utf-8"))
    if zarr_format == "3-draft":
        return {
            "shape": document["shape"],
            "chunks": document["chunk_grid"]["configuration"]["chunk_shape"],
            "stored_dtype": document["data_type"],
            "fill_value": document["fill_value"],
        }
    facts = {name: document[name] for name in ("shape", "chunks", "order", "fill_value")}
    facts |= {"stored_dtype": document["dtype"], "separator": document.get("dimension_separator")}
    if zarr_format == "1":
        return facts | {"compressor": document["compression"]}
    facts["compressor"] = document["compressor"] and document["compressor"]["id"]
    facts["filters"] = document["filters"] and [codec["id"] for codec in document["filters"]]
    return facts


def noted_fill(fill: Any, dtype: str) -> Any:
    """A fill value as the manifest has it."""
    if fill is None or dtype == "string":
        return fill
    if dtype == "bytes":
        return list(fill)
    if dtype == "object":
        return element_to_json(fill)
    return fill_hex(fill, fill.dtype)


def keep_readings(entry: dict[str, Any], before: dict[str, Any]) -> None:
    """Carry over what other readers make of a case if nothing else about it changed."""
    noted = {key: value for key, value in before.items() if key.startswith(READERS)}
    if {key: value for key, value in before.items() if key not in noted} == entry:
        entry |= noted


def save_entries(file: Path, entries: list[dict[str, Any]]) -> None:
    """One entry in each line, sorted by path, the most telling fields first."""
    lines = []
    for entry in sorted(entries, key=lambda entry: entry["path"]):
        first = {field: entry[field] for field in FIRST_FIELDS if field in entry}
        lines.append(json.dumps(first | entry, ensure_ascii=False, allow_nan=False))
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def files_of(entries: list[dict[str, Any]]) -> set[str]:
    """Names of the files of expected elements that these entries use."""
    return {entry[field] for entry in entries for field in ("expected", "others_read") if field in entry}
