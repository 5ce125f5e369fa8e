"""What the generators of the golden files share: sample values, expected results, the manifest. NumPy only, no Zarr.

A golden case is one stored array (or group) below ``data/`` and one entry of ``manifest.json``:

``path``      folder below ``data/``
``kind``      ``array`` or ``group``
``writer``    the program that wrote it, ``version`` the release
``dtype``     NumPy's name of the data type in memory; ``string`` and ``bytes`` are the variable-length types
``shape``
``expected``  file below ``expected/`` with the right elements: ``.npy`` (types of ml_dtypes viewed as unsigned
              integers), or ``.json`` (strings; lists of byte values)
``fill``      the fill value: bytes of one little-endian element in hexadecimal; for ``string`` the text, for ``bytes``
              a list of byte values
``needs``     distributions without which the case cannot be read
``optional``  a part of a codec that not every build has (``snappy`` in blosc): refusing it by name is right as well
``notes``     what is special
``damage``    for damaged files: ``error`` (class in ``zardine.errors``) and ``chunks``, the inner chunks that cannot be
              read; all others must be readable. Without ``chunks``: none can be read.
``members``   for groups: path of each member -> ``array`` or ``group``
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
EXPECTED = HERE / "expected"
MANIFEST = HERE / "manifest.json"

WORDS = ("", "a", "Zürich", "日本語", "tin 🐟", "a longer sentence, of many words", "\u0301combining", "tab\tand\nline")


def sample(dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Values that exercise a data type: both signs, extremes, NaN with and without payload, -0.0, infinities."""
    size = int(np.prod(shape))
    count = np.arange(size, dtype="u8")
    if dtype == "string":
        return np.array([WORDS[i % len(WORDS)] for i in range(size)], dtype=object).reshape(shape)
    if dtype == "bytes":
        return np.array([bytes(range(i % 7)) + b"\0" * (i % 2) for i in range(size)], dtype=object).reshape(shape)
    kind = np.dtype(dtype)
    if kind.names is not None:
        flat = np.zeros(size, kind)
        for name in kind.names:
            base, inner = kind[name].subdtype or (kind[name], ())
            flat[name] = sample(base, (size, *inner))
    elif kind.kind == "b":
        flat = count % 3 == 0
    elif kind.kind in "iu":
        flat = (count * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - 8 * kind.itemsize)).astype(f"u{kind.itemsize}")
        flat = flat.view(kind.newbyteorder("="))
        flat[:2] = (np.iinfo(kind).min, np.iinfo(kind).max)[:size]
    elif kind.kind == "f":
        flat = (count.astype("f8") * 1.25 - 7).astype(kind)
        bits = f"u{kind.itemsize}"
        payload = flat[:1].copy()
        payload[...] = np.nan
        payload = (payload.view(bits) + 5).view(kind)
        for place, value in enumerate([-0.0, np.nan, np.inf, -np.inf, np.finfo(kind).tiny, payload[0]]):
            if place + 3 < size:
                flat[place + 3 : place + 4] = value
        if size > 8:
            flat[8:9] = payload
    elif kind.kind == "c":
        part = np.dtype(f"f{kind.itemsize // 2}")
        flat = np.stack([sample(part, (size,)), sample(part, (size,))[::-1]], axis=-1).reshape(-1).view(kind)
    elif kind.kind in "mM":
        flat = (count.astype("i8") * 86399 - 1000).view(kind)
        flat[size // 2 : size // 2 + 1] = "NaT"
    elif kind.kind == "U":
        flat = np.array([WORDS[i % len(WORDS)] for i in range(size)], dtype=kind)
    elif kind.kind == "S":
        flat = np.array([b"x\xff\xfe"[: i % 4] * 2 for i in range(size)], dtype=kind)
    elif kind.kind == "V":
        octets = (np.arange(size * kind.itemsize) * 31 % 251).astype("u1")
        flat = octets.view(kind)
    else:
        raise ValueError(f"no sample values for {dtype!r}")
    return flat.reshape(shape)


class Manifest:
    """The entries of one writer; :meth:`save` replaces that writer's entries and leaves the others."""

    def __init__(self, folder: str, writer: str, version: str, *, keep: bool = False) -> None:
        self.folder, self.writer, self.version = folder, writer, version
        self.entries: list[dict[str, Any]] = []
        if not keep:
            shutil.rmtree(DATA / folder, ignore_errors=True)
        (DATA / folder).mkdir(parents=True, exist_ok=True)
        EXPECTED.mkdir(exist_ok=True)

    def path(self, name: str) -> Path:
        return DATA / self.folder / name

    def array(self, name: str, expected: np.ndarray[Any, Any], dtype: str, **more: Any) -> None:
        """Note an array that has been written to :meth:`path` of ``name``."""
        entry = self._entry(name, "array", more)
        entry |= {"dtype": dtype, "shape": list(expected.shape), "expected": _save_expected(expected, dtype)} | more
        self.entries.append(entry)

    def group(self, name: str, members: dict[str, str], **more: Any) -> None:
        """Note a group; its arrays are noted one by one."""
        self.entries.append(self._entry(name, "group", more) | {"members": members} | more)

    def _entry(self, name: str, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        for field in [field for field, value in more.items() if value in (None, "", [])]:
            del more[field]
        return {"path": f"{self.folder}/{name}", "kind": kind, "writer": self.writer, "version": self.version}

    def save(self) -> None:
        old = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else []
        kept = [entry for entry in old if not entry["path"].startswith(self.folder + "/")]
        entries = sorted(kept + self.entries, key=lambda entry: entry["path"])
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        MANIFEST.write_text(f"[\n{lines}\n]\n")
        older = HERE / "manifest_old.json"
        all_entries = entries + (json.loads(older.read_text(encoding="utf-8")) if older.exists() else [])
        used = {entry.get(field) for entry in all_entries for field in ("expected", "others_read")}
        for file in EXPECTED.iterdir():
            if file.name not in used:
                file.unlink()
        print(f"{self.folder}: {len(self.entries)} entries")


def fill_hex(value: Any, dtype: Any) -> str:
    """One element as the ``fill`` member wants it."""
    return np.asarray(value, np.dtype(dtype).newbyteorder("<")).tobytes().hex()


def _save_expected(expected: np.ndarray[Any, Any], dtype: str) -> str:
    """Write the elements to ``expected/``, once for equal elements; gives the file's name."""
    stem = f"{'x'.join(map(str, expected.shape)) or 'scalar'}-{''.join(c if c.isalnum() else '_' for c in dtype)[:24]}"
    for number in range(1, 1000):
        if dtype in ("string", "bytes"):
            content = json.dumps([list(x) if dtype == "bytes" else str(x) for x in expected.reshape(-1)]).encode()
            file = EXPECTED / f"{stem}-{number}.json"
            if not file.exists():
                file.write_bytes(content)
            if file.read_bytes() == content:
                return file.name
            continue
        plain = np.ascontiguousarray(expected).reshape(expected.shape)
        if plain.dtype.isbuiltin == 2:  # a type of ml_dtypes, which .npy files cannot name
            plain = plain.view(f"u{plain.dtype.itemsize}")
        file = EXPECTED / f"{stem}-{number}.npy"
        if not file.exists():
            np.save(file, plain)
        old = np.load(file)
        if old.dtype == plain.dtype and old.tobytes() == plain.tobytes():
            return file.name
    raise RuntimeError("too many files of expected elements")
