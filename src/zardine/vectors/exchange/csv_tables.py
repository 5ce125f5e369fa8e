"""CSV: tables of text, through pyarrow."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.exchange.csv_values import NUMBER, bare, inferred, times, typed
from zardine.vectors.exchange.losses import reading
from zardine.vectors.exchange.table_columns import EMPTY, LARGE, TEXT, Facts, values_of
from zardine.vectors.outside import needing

_DELIMITERS: Final = (",", ";", "\t", "|", " ")
"""The last one counts where no other divides rows into values of one number."""
_DATES: Final = "a column of dates has them like 2020-01-31T12:00:00Z, all with a zone or none"
_NAMED: Final = {"tab": "\t", "\\t": "\t", "space": " "}
_ROW: Final = 32
"""Bytes of a row, about."""
_LONGEST: Final = 2**26
"""Bytes of the longest row."""
_HEAD: Final = 2**20
"""Bytes in which the names of columns are, behind lines of comments."""
_LINES: Final = 20
"""So many are looked at to see by what values are divided."""
_COPIES: Final = 12
"""Bytes of arrays for each byte of a block, about."""
_BOM: Final = b"\xef\xbb\xbf"


class CsvTable:
    """A CSV file as :class:`~zardine.vectors.exchange.tables.Table`.

    UTF-8, with names of columns in the first line behind lines of comments (``#``); a comment in front of rows that are
    all numbers has the names. Values are divided by one of ``, ; | tab``, or single spaces, or by the option
    ``delimiter``. Raises :class:`~zardine.errors.DataError`, with the line, for rows of other lengths, and quotes that
    do not end.
    """

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, places: Any = None) -> None:
        self._source, self.metadata = source, list[str]()
        with needing(source):
            self._arrow: Any = import_module("pyarrow")
            self._csv: Any = import_module("pyarrow.csv")
        given = _delimiter(options.get("delimiter"))
        if given is None and source.suffix.lower() == ".tsv":
            given = "\t"
        with source.open("rb") as file:
            self.names, self.delimiter, self.comments, begin = self._head(file, given)
            field = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^%s\r\n]*+' % re.escape(self.delimiter.encode())
            row = rb"%s(?:%s%s)*+" % (field, re.escape(self.delimiter.encode()), field)
            self._row = re.compile(rb"%s(?:\r?\n|\r(?!\n|\Z))" % row)
            self._whole_rows = re.compile(rb"(?:%s)*+" % self._row.pattern)
            self._last_row = re.compile(rb"%s\r?\Z" % row)
            self._places: list[list[int]] = [[0, *begin]] if places is None else places
            if places is None:
                self._places.extend(self._cuts(file, _ROW * at_once))
        self.count = len(self._places) - 1
        begins = [begin for _, begin, _ in self._places]
        self.memory = _COPIES * int(np.diff(begins).max(initial=0))
        self._kept: tuple[int, list[Any]] | None = None

    @property
    def places(self) -> list[list[int]]:
        """For each block its number, and the byte and the line where it begins; and where the last one ends."""
        return self._places

    # where rows are

    def _head(self, file: BinaryIO, given: str | None) -> tuple[list[str], str, list[str], tuple[int, int]]:
        """Names of columns, delimiter, comments, and byte and line of the first row."""
        data = file.read(_HEAD)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{self._source} is UTF-16: save it as UTF-8")
        at = len(_BOM) if data.startswith(_BOM) else 0
        line, comments = 1, list[str]()
        for each in data[at:].splitlines(keepends=True):
            if each.strip() and not each.startswith(b"#"):
                break
            if each.strip():
                comments.append(self._text(each, line).lstrip("#").strip())
            at, line = at + len(each), line + 1
        sample = self._text(data[at:], line, is_cut=len(data) == _HEAD)
        rows = list(_sampled(sample, given))
        if not rows:
            what = "only comments" if comments else "nothing"
            raise DataError(f"{self._source} holds {what}: a line with the names of columns is needed, such as x,y")
        delimiter, fields, length = rows[0]
        if all(NUMBER.fullmatch(each.strip()) for each in fields):
            names = next(csv.reader(comments[-1:], delimiter=delimiter), [])
            if len(names) != len(fields):
                told = f"line {line} is {sample[:length].rstrip()[:60]!r}"
                raise DataError(
                    f"{self._source} has no names of columns: {told}; put a line in front of it, such as x,y"
                )
            return [each.strip() for each in names], delimiter, comments[:-1], (at, line)
        size = len(sample[:length].encode())
        return [each.strip() for each in fields], delimiter, comments, (at + size, line + _lines(data[at : at + size]))

    def _text(self, data: bytes, line: int, *, is_cut: bool = False) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if is_cut and error.start > len(data) - 4:
                return data[: error.start].decode()
            wrong = line + _lines(data[: error.start])
            raise DataError(f"{self._source}, line {wrong}: this is no UTF-8 text: save it as UTF-8") from None

    def _cuts(self, file: BinaryIO, size: int) -> Iterator[list[int]]:
        """Give where blocks end, each of whole rows, and of so many bytes, about."""
        _, at, line = self._places[0]
        number, rest, is_all = 0, b"", False
        file.seek(at)
        while not is_all:
            more = file.read(size)
            data, is_all = rest + more, len(more) < size
            end = self._end(data, line, is_all=is_all)
            rest = data[end:]
            if end or (is_all and number == 0):
                at, line, number = at + end, line + _lines(data[:end]), number + 1
                yield [number, at, line]

    def _end(self, data: bytes, line: int, *, is_all: bool) -> int:
        """Where the last whole row of some bytes ends that begin with one."""
        if b'"' not in data:
            if is_all:
                return len(data)
            end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        else:
            found = self._whole_rows.match(data)
            end = found.end() if found else 0
            if is_all and self._last_row.match(data, end):
                return len(data)
        if (end == 0 and len(data) > _LONGEST) or (is_all and end < len(data)):
            wrong = line + _lines(data[:end])
            raise DataError(f"{self._source}, line {wrong}: this row does not end: a quote is missing, or one too many")
        return end

    def place(self, block: int, row: int) -> str:
        """Return the file and the line where a row of a block begins."""
        return f"{self._source}, line {self._line(self._data(block), block, row)}"

    def _line(self, data: bytes, block: int, row: int) -> int:
        there = -1
        for each in self._row.finditer(data):
            there += bool(each[0].strip(b"\r\n"))
            if there == row:
                return self._places[block][2] + _lines(data[: each.start()])
        return self._places[block + 1][2] - (not data.endswith(b"\n"))

    # what is in them

    def _data(self, block: int) -> bytes:
        (_, start, _), (_, end, _) = self._places[block : block + 2]
        with self._source.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def _columns(self, block: int) -> list[Any]:
        """The columns of a block as text; what is empty, without quotes, is missing."""
        if self._kept is None or self._kept[0] != block:
            self._kept = None
            self._kept = block, self._read(block)
        return self._kept[1]

    def _read(self, block: int) -> list[Any]:
        data = self._data(block)
        names = [f"{at}" for at in range(len(self.names))]
        text = self._arrow.string()
        if not data.strip(b"\r\n"):
            return [self._arrow.array([], text) for _ in names]
        wrong: list[Any] = []

        def note(row: Any) -> str:
            wrong.append(row)
            return "error"

        options = {
            "read_options": self._csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
            "parse_options": self._csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            "convert_options": self._csv.ConvertOptions(
                column_types=dict.fromkeys(names, text),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
                check_utf8=False,
            ),
        }
        try:
            with reading(self._source):
                table = self._csv.read_csv(self._arrow.BufferReader(data), **options)
        except DataError:
            if not wrong:
                raise
            row = wrong[0]
            line = self._line(data, block, row.number - 1)
            raise DataError(
                f"{self._source}, line {line}: {row.actual_columns} values, where {len(names)} columns are named"
            ) from None
        columns = [table.column(at).combine_chunks() for at in range(len(names))]
        try:
            for each in columns:
                each.validate(full=True)
        except self._arrow.ArrowInvalid:
            self._text(data, self._places[block][2])
            raise
        return columns

    def facts(self, block: int, column: int) -> Facts:
        """Return what is known of the values of a column in a block."""
        return inferred(self._columns(block)[column])

    def values(self, block: int, column: int, facts: Facts) -> npt.NDArray[Any]:
        """Return the values of a column in a block."""
        values, form = self._columns(block)[column], facts.form
        if form in (TEXT, EMPTY):
            return values_of(values, form)
        if form == LARGE:
            return values_of(bare(values), form)
        found = typed(values, self._arrow.from_numpy_dtype(np.dtype(facts.kind)))
        if found is None:
            raise DataError(f"{self._source}, column {self.names[column]!r}: the file has changed while it was read")
        return values_of(found, form)

    def numbers(self, block: int, column: int) -> npt.NDArray[Any]:
        """Return coordinates: floats, or times."""
        values = self._columns(block)[column]
        found = typed(values, self._arrow.float64())
        found = times(bare(values)) if found is None else found
        if found is None:
            texts = bare(values).to_pylist()
            row = next(at for at, each in enumerate(texts) if each is not None and not NUMBER.fullmatch(each))
            told = f"{self.place(block, row)}, column {self.names[column]!r}: {texts[row][:60]!r} is no number"
            comma = re.fullmatch(r"[+-]?\d+,\d+", texts[row])
            raise DataError(f"{told}; decimals are divided by a point" if comma else f"{told}; {_DATES}")
        return np.asarray(found.to_numpy(zero_copy_only=False))


def _delimiter(given: Any) -> str | None:
    """A user's delimiter, which may also be its name. Raises :class:`~zardine.errors.DataError` for others."""
    found = _NAMED.get(given, given) if isinstance(given, str) else given
    if found is None or (isinstance(found, str) and len(found) == 1 and found.isascii() and found not in '"\r\n\0#'):
        return found
    raise DataError(f"delimiter= (--delimiter) is one character of ASCII, tab or space, not {given!r}")


def _lines(data: bytes) -> int:
    """How many lines end in some bytes, by LF, CR LF or CR."""
    ends = data.count(b"\n")
    return ends if b"\r" not in data else ends + data.count(b"\r") - data.count(b"\r\n")


def _sampled(text: str, given: str | None) -> Iterator[tuple[str, list[str], int]]:
    """Give the delimiter, and of the first rows the fields and where each ends."""
    candidates: Sequence[str] = _DELIMITERS if given is None else (given,)
    best: tuple[tuple[int, int], list[tuple[str, list[str], int]]] = (-1, -1), []
    for delimiter in candidates:
        rows: list[tuple[str, list[str], int]] = []
        end = 0

        def lines() -> Iterator[str]:
            nonlocal end
            for each in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
                end = each.end()
                yield each[0]

        try:
            for fields in csv.reader(lines(), delimiter=delimiter):
                rows += [(delimiter, fields, end)] if fields else []
                if len(rows) == _LINES:
                    break
        except csv.Error:  # a field of more letters than the module takes
            pass
        lengths = [len(fields) for _, fields, _ in rows]
        is_table = len(set(lengths)) == 1 and lengths[0] > 1
        score = 0 if not is_table else 1 if delimiter == " " else 2, lengths[0] if lengths and delimiter != " " else 0
        if rows and score > best[0]:
            best = score, rows
    yield from best[1]


__all__ = ["CsvTable"]
