"""The native kernel: batches of chunks, decoded into an array or encoded from one, in threads, without the GIL.

It knows buffers, file descriptors, offsets, strides and codec parameters only; see ``rust/``. No call of it corrupts
memory or shows bytes that nobody wrote: jobs that share places of the output, an output whose elements share memory
and sources that lie in the output are refused (:class:`ValueError`), and buffers may change while they are in use:
content is anything then, and nothing else suffers. (``bytes``, and views of them, are read where they are; of other
sources what needs decoding is copied first.) Stored bytes are never trusted: bytes that are damaged give a failure,
``(job number, reason)``, and never hinder other jobs. Arguments that do not fit together raise :class:`ValueError`
before anything is done. A failure does not say which error the Python codecs would raise: decode the chunk with them
to learn that (and, for rare forms that the kernel leaves to them, such as a gzip header with a checksum, to get the
content).

Of a chunk only the parts that are asked for are decoded, or read where it is neither compressed nor has checksums. A
checksum outside of a compressor is always verified, over all stored bytes; one within, by decoding all.

An *axis* of a selection is a tuple of int64 arrays over the rows of that axis; one row is one chunk along the axis:

- strided, ``("s", extents, first, count, out_first, step)``: row ``k`` takes the chunk's elements
  ``first[k] + n * step``, ``n < count[k]``, to the places ``out_first[k] + n``;
- listed, ``("l", extents, bounds, indices, places)``: row ``k`` takes the chunk's elements
  ``indices[bounds[k]:bounds[k + 1]]`` to ``places`` at the same positions, or to these positions (``None``).

``extents[k]`` is the full length of the chunk, also where it reaches beyond the array. Integer arrays have to be
C-contiguous. Arrays of elements are buffers of any strides whose items are as large as an element: view them as
``V{item_size}``.
"""

from collections.abc import Sequence
from typing import Any, Self, final

from typing_extensions import Buffer

class Descriptor:
    """An open file that is closed when nothing refers to it."""

    def detach(self) -> int:
        """Return its number, for the caller to close."""

class SureExit:
    """The base of a class whose ``__exit__`` does what its method ``_exit`` says: see :mod:`zardine.contexts`.

    ``_exit`` takes the error that was raised in the context, or ``None``. What it raises is raised; where that is no
    :class:`Exception` (``KeyboardInterrupt``), it is called once more before.
    """

    def __new__(cls, *arguments: Any, **named: Any) -> Self: ...
    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

@final
class StoredFiles:
    """Files that a call opens, each for the one job that names it, and closes: a few are open at a time.

    ``paths`` are those of the files, of which none is read that does not lie below the real path ``below`` (with a
    slash at its end) once it is open. A file that is ``missing`` is a chunk that is not stored; or a failure.
    """

    def __new__(cls, below: bytes, paths: Sequence[bytes], *, missing: bool) -> StoredFiles: ...

@final
class Crew:
    """Threads that take part in what others do, as soon as they have nothing to do themselves."""

    def help(self) -> None:
        """Take part in calls that others have made with this crew, until none is left."""

@final
class NewFiles:
    """Where values go that are files: see :func:`open_new_files`. To be closed, by the caller, or as a context."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def close(self) -> None:
        """Close the directories. Those that were made, and in which nothing is, go."""

@final
class ObjectFiles:
    """Objects that are files, chunks or shards: their paths are what ``form`` makes of their grid coordinates.

    By a ``%d`` for each (``%%`` is a percent sign). None is read that does not lie below the real path ``below``, which
    ends with a slash. ``shard``: the number of rows of an index, whether it lies in front of the chunks, and whether a
    checksum is behind it.
    """

    def __new__(cls, below: bytes, form: bytes, shard: tuple[int, bool, bool] | None) -> ObjectFiles: ...

@final
class UniformGrid:
    """Chunks of one shape in objects of one shape: lengths along each axis.

    ``shape`` of a chunk, chunks of an object, and the rows of an object's index from one chunk to the next. Numbers
    that are no grid raise :class:`ValueError`, or :class:`OverflowError`.
    """

    def __new__(cls, shape: tuple[int, ...], per_object: tuple[int, ...], strides: tuple[int, ...]) -> UniformGrid: ...
    def locate(
        self, starts: tuple[int, ...], counts: tuple[int, ...]
    ) -> tuple[tuple[int, ...], int, tuple[int, ...]] | None:
        """Where a block is, if it lies in one chunk: see ``zardine.engine.layout``.

        Grid coordinates of the object, row of the chunk in its index, first element of the block in the chunk.
        """

@final
class Pipeline:
    """What is the same for all chunks of an array. Immutable; any number of threads may use it at once.

    ``item_size``: bytes of an element, in memory and as stored. ``swap``: the stored byte order is the other one, so
    each word of ``word_size`` (2, 4 or 8) bytes is reversed. ``is_bool``: every byte but 0 is decoded as 1. ``order``:
    axis ``j`` of the encoded chunk is axis ``order[j]`` of the chunk. ``steps``: the bytes -> bytes codecs in the order
    of encoding, each ``("crc32c",)``, ``("gzip", level)``, ``("zstd", level, checksum)`` or
    ``("blosc", cname, clevel, shuffle, typesize, blocksize)`` (``shuffle`` 0: none, 1: bytes, 2: bits); at most one of
    them compresses. ``fill``: one element.
    """

    def __new__(
        cls,
        *,
        item_size: int,
        word_size: int,
        swap: bool,
        is_bool: bool,
        order: Sequence[int],
        steps: Sequence[tuple[Any, ...]],
        fill: bytes,
    ) -> Pipeline: ...
    def decode(
        self,
        sources: Sequence[Buffer | int] | StoredFiles,
        jobs: Buffer,
        axes: Sequence[tuple[Any, ...]],
        out: Buffer,
        threads: int,
    ) -> list[tuple[int, str]]:
        """Decode chunks into ``out``; the failures, in the order of jobs.

        ``sources``: contiguous bytes, or descriptors of regular files that stay open. ``jobs``: int64 of shape
        ``(n, 3 + number of axes)``: source, offset and length in bytes (length -1: not stored, full of the fill
        value), then the row of each axis. Or files to be opened: a job takes all of one, and its length is the most
        bytes that this may have. Jobs, or rows of an axis, that share places of ``out`` are refused.
        Where a job fails its places hold what was there, or anything of what was read.
        """

    def decode_box(
        self,
        objects: Sequence[tuple[Buffer | int | KnownFile, Buffer, Buffer]] | ObjectFiles,
        grid: UniformGrid,
        first: tuple[int, ...],
        out: Buffer,
        *,
        most: int,
        missing: bool,
        threads: int,
        document: KnownFile | None = None,
        is_checked: bool = True,
    ) -> str | None:
        """Decode a box of elements of chunks of one shape; the reason if that fails anywhere.

        The box begins at ``first`` and is as large as ``out``. ``objects``: those that the box touches, in C order,
        each with offsets and lengths of its chunks (int64); or files, which are opened and closed, 1,024 at most, of
        shards 128. No chunk has more than ``most`` bytes. One that is not stored is full of the fill value if chunks
        may be ``missing``, else a failure.

        A source that is a :class:`KnownFile` has to be current when all is read, and so has the ``document``. Nobody
        may be about to edit a shard, unless that is noticed by checksums (``is_checked``). Otherwise as :meth:`decode`.
        """

    def decode_points(
        self,
        sources: Sequence[Buffer | int] | StoredFiles,
        jobs: Buffer,
        extents: Sequence[Buffer],
        point_bounds: Buffer,
        points: Sequence[Buffer],
        places: Buffer,
        out: Buffer,
        threads: int,
    ) -> list[tuple[int, str]]:
        """Decode chunks and put single elements into ``out`` (of one dimension); the failures, in the order of jobs.

        ``jobs``: int64 of shape ``(n, 4)``: source, offset, length, and the row ``r`` of the chunk, whose shape is
        ``extents[axis][r]`` and whose points are rows ``point_bounds[r]`` to ``point_bounds[r + 1]`` (exclusive) of
        ``points`` (an array for each axis: the index in the chunk) and ``places`` (the index in ``out``). A place that
        is named more than once gets one of the elements, or, if they are longer than a word, words of several.
        """

    def encode(
        self,
        values: Buffer,
        jobs: Buffer,
        axes: Sequence[tuple[Any, ...]],
        *,
        write_empty: bool,
        head: int,
        tail: int,
        threads: int,
        sources: Sequence[Buffer | int] | None = None,
    ) -> tuple[bytearray, bytes, bytes, list[tuple[int, str]]]:
        """Encode chunks out of ``values``, an array of the selection's shape (strides of 0 are fine).

        ``jobs``: int64 of shape ``(n, number of axes)``: the row of each axis. Elements of a chunk that the selection
        does not name are the fill value; or, with ``sources``, what they are in the stored chunk: ``jobs`` then has
        the columns of :meth:`decode`, and a chunk that cannot be decoded is a failure. Returns ``head`` zero bytes,
        the encoded chunks in the order of jobs and ``tail`` zero bytes in one buffer; the offset in it and the length
        of each chunk as native uint64 (both ``2**64 - 1`` for chunks that failed and, unless ``write_empty``, those
        that are bitwise full of the fill value); and the failures. Zeros are where a chunk failed after its place was
        given.
        """

    def encode_to_files(
        self,
        values: Buffer,
        parts: Buffer,
        axes: Sequence[tuple[Any, ...]],
        *,
        write_empty: bool,
        threads: int,
        files: NewFiles,
        shard: tuple[int, bool, bool, Sequence[Buffer], Buffer | None] | None = None,
        one_by_one: bool = False,
    ) -> tuple[bytes, list[tuple[int, str]]]:
        """As :meth:`encode`, each chunk into a file of its own; what became of each, and the failures.

        ``parts``: int64 of shape ``(n, twice the number of axes)``: the row of each axis, and the one after it; one
        part for each of the ``files``. What becomes of a chunk: 1, the file has its name; 2, the chunk is full of the
        fill value and no file was made (unless ``write_empty``); 0, it is the caller's to do, and everything is as
        before: the file that is there is locked (``flock``), may not be replaced, or is no file, or a call of the
        system failed.

        With ``shard``, a file for each shard instead: its chunks are all combinations of the rows of each axis, from
        the first to the second that its part names (exclusive). ``shard`` is the number of rows of an index, whether it
        lies in front of the chunks, whether a checksum is behind it (it is of little-endian words), for each axis what
        each row adds to the row of the chunk in the index (int64), and for each row of the index when its chunk comes
        (int64; ``None``: in C order). Numbers of failures are those of shards.

        Chunks of a shard go to its file as they are encoded: all by one thread; or, ``one_by_one``, all threads work
        for one shard, and what a handler of signals raises is raised meanwhile: shards that are done by then stay.
        """

    def change_files(
        self,
        values: Buffer,
        parts: Buffer,
        axes: Sequence[tuple[Any, ...]],
        *,
        write_empty: bool,
        threads: int,
        files: NewFiles,
        most: int,
        shard: tuple[int, bool, bool, Sequence[Buffer], Buffer | None] | None = None,
    ) -> tuple[
        list[tuple[Descriptor | None, tuple[int, int, int, int] | None, bytes, bytes] | None], list[tuple[int, str]]
    ]:
        """As :meth:`encode_to_files`, where files keep what is stored and not named by the parts; and the failures.

        That is the other elements of chunks, and the other chunks of shards. Nothing is known to be stored of more than
        ``most`` bytes in one chunk: otherwise, where an index or a chunk that is changed in part is damaged, where
        nothing is left to be stored, and where :meth:`encode_to_files` leaves a file, too, it is the caller's to do and
        ``None``. What was changed: the descriptor of the file before, for the caller to close, if there was one; and of
        a shard inode, size, and the times of modification and of change in nanoseconds of the new file, and offset and
        length of each chunk as native int64 (-1: not stored). A file is not replaced that has another name or a record.
        """

def block_of_elements(
    selection: object, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[slice | int, ...] | None] | None:
    """The block of elements that Python integers and slices of step 1 mean: see ``zardine.indexing.parse``.

    First indices, counts, and what takes the axes of integers out of the result; ``None`` for all other selections.
    """

def open_new_files(
    base: int | tuple[bytes, bytes],
    keys: Sequence[str],
    conditions: Sequence[str | None],
    beside: tuple[bytes, bytes, bytes],
    number: int,
) -> NewFiles | None:
    """Open the directories of ``keys`` below the directory ``base``, and make those that are missing.

    ``base``: an open one, or its path, and the real path of it with a slash at the end, below which the files have to
    lie. ``conditions``: of each key the version that what it replaces must have, ``""`` where nothing may be there,
    ``None`` where anything may; empty: anything, for all. ``beside``: names of files until they are whole are the first
    of these, 16 digits and the last; a file called the second, its own name and the last goes when the file is
    replaced. ``number``: where the digits begin, which no other call may use. ``None`` where a key has an empty part,
    ``.``, ``..`` or a name of that kind, where a link or a file is in the place of a directory, or the base lies
    elsewhere. Raises ``OSError``.
    """

def make_files(files: Sequence[tuple[int, bytes]], contents: Sequence[Buffer], threads: int) -> list[tuple[int, int]]:
    """Make files that are not there; number and error number of each that could not be made, or filled.

    ``files``: for each the descriptor of an open directory, and a name in it.
    """

def read_file(
    path: str, below: bytes | None, most: int, beside: Sequence[str]
) -> tuple[bytes | None, int, int, int, int, bool] | None:
    """Read a whole regular file: its bytes; its inode, size, and times of modification and change in nanoseconds.

    It must lie ``below`` a directory, given by its real path with a slash at its end; without one, ``path`` must not be
    a link. ``None`` where it is missing; no bytes of a file of more than ``most``. The last item is what
    :func:`none_is_there` says then of the paths ``beside``. Raises ``OSError``, also for what is no regular file, or
    lies elsewhere.
    """

def none_is_there(paths: Sequence[str]) -> bool:
    """Whether none of these paths leads to anything that this process may look at."""

class KnownFile:
    """A path, and the file that it meant: inode, device, size, and times of modification and change in nanoseconds.

    With ``fd``, a descriptor that the caller keeps open, a source to read from.
    """

    def __init__(self, path: bytes, identity: tuple[int, int, int, int, int], fd: int | None = None) -> None: ...

def are_current(files: Sequence[KnownFile]) -> bool:
    """Whether each path means the file that it meant, as it was."""

def has_version(path: str, version: str) -> bool:
    """Whether a path means a file of this version: see ``zardine.stores.open_files``. An error is no."""

def extend_shards(
    elements: list[bytes],
    sums: int,
    shards: tuple[Buffer, Buffer, int, bool, bool],
    files: NewFiles,
    most: int,
    most_unused: float,
) -> list[tuple[Descriptor | None, tuple[int, int, int, int] | None, bytes, bytes] | None]:
    """Put chunks that hold one byte string each into shards within their files: behind what is there, and a new index.

    ``elements`` are the byte strings, ``sums`` as for :func:`read_elements`. ``shards``: int64 bounds of the elements
    of each shard, and of each element the row in its index; the number of rows; whether the index is at the start,
    which it may not be, and has a checksum, which it must. What becomes empty is not stored any more. The shards are
    ``files``, locked meanwhile, each with a record beside it that tells of the edit; where more than the share
    ``most_unused`` of a file would be unused, a new one takes its place. What was done: as
    :meth:`Pipeline.change_files` says.

    ``None``, for the caller to do: where no shard is, or is locked, damaged or has a record; where nothing would be
    stored any more, or nothing changes; where a chunk of more than ``most`` bytes is there, or a file that would be
    made anew begins as no chunk does; and after errors, as the file was, or with both contents in it.
    """

def read_elements(
    sources: Sequence[Buffer | int], jobs: Buffer, ends: Sequence[int], sums: int, threads: int
) -> list[bytearray] | None:
    """Read chunks that hold one byte string each: these, one after the other, an output for the jobs up to each of
    ``ends`` (exclusive), the last of which is that of all.

    ``sources`` as for :meth:`Pipeline.decode`, ``jobs``: int64 of shape ``(n, 3)``: source, offset and length in bytes;
    length -1: not stored, which gives nothing. A chunk is the numbers 1 and of its bytes, as ``<u4``, then these, then
    so many checksums (CRC32C, ``sums``), each of all that stands before it. ``None`` where one is anything else.
    """

def read_element_parts(
    sources: Sequence[Buffer | int], jobs: Buffer, sizes: Sequence[int], spans: Buffer, sums: int, threads: int
) -> list[bytearray] | None:
    """Read rows of chunks that hold one byte string each: for each of ``sizes``, the bytes of a row, an output.

    ``sources``, ``jobs`` and ``sums`` as for :func:`read_elements`; there are as many jobs for each of ``sizes``, one
    after the other. ``spans``: int64 of shape ``(n, 3)``: the number of a job among these, the first row, and how many;
    their rows follow each other in the outputs. All chunks are verified. ``None`` where one is unusual or wrong, or
    does not have such rows.
    """

def pack_elements(
    elements: tuple[Buffer, Buffer, Buffer] | tuple[Buffer, Buffer, Buffer, Buffer],
    sums: int,
    shards: tuple[Buffer, Buffer, int, bool, bool] | None,
    threads: int,
) -> tuple[bytearray, list[int]]:
    """Make chunks of byte strings, as :func:`read_elements` reads them; and tell how long each value is.

    ``elements``: a buffer, and of each byte string where it begins there and its length (int64). With a fourth part
    these are runs of bytes, and that says at which of them each byte string begins, and how many there are (int64): it
    is of several, one after the other. A chunk is a value of its own; or, with ``shards``, there is a value for each of
    these: where the chunks of each start, and in all, and of each chunk its row in the index (int64); then the rows of
    an index, whether it lies in front of the chunks, and whether a checksum is behind it.
    """

def make_cell_files(
    base: int,
    arrays: Sequence[
        tuple[
            bytes,
            Buffer,
            tuple[Buffer, Buffer, Buffer] | tuple[Buffer, Buffer, Buffer, Buffer],
            int,
            tuple[Sequence[int], Sequence[int], int, bool, bool] | None,
        ]
    ],
    beside: tuple[bytes, bytes, bytes],
    number: int,
    threads: int,
    crew: Crew | None = None,
) -> list[tuple[bytes, int]]:
    """Make files of the cells of ``arrays`` below the open directory ``base``; keys and error numbers of what failed.

    Of each array the form of its keys, with ``%d`` for each coordinate; the coordinates of each cell (int64, two
    dimensions); the cells, named as the ``elements`` of :func:`pack_elements`; how many checksums the chunk of each
    has; and how shards hold them: cells along each axis, by how many
    rows of the index one is behind another there, the rows of an index, whether it lies in front of the cells, and
    whether a checksum is behind it. Without shards each is a file. None of the files is there; they are made in place.
    Where one fails, others that were begun with it may be made, and no more. ``beside`` and ``number`` as for
    :func:`open_new_files`. Where that is for one thread, those that help a ``crew`` take part.
    """

def put_files(files: NewFiles, contents: Sequence[Buffer], threads: int) -> list[int]:
    """Make files, each at one moment, and in the place of what is there; numbers of those left, ascending.

    These are the caller's to make: what is there is not the usual, or something failed. All is as before there.
    """

def read_files(files: Sequence[tuple[int, bytes]], most: int, threads: int) -> list[bytes | None]:
    """Read whole files, named as for :func:`make_files`.

    ``None`` where there is no regular file of ``most`` bytes at most, or it cannot be read, or the name is a link.
    """

def read_named_files(below: bytes, paths: Sequence[bytes], most: int) -> list[bytes | None]:
    """Read whole files one after the other, each as :func:`read_file` does it.

    ``None`` where one is missing, has more than ``most`` bytes, is no regular file, lies elsewhere or cannot be read.
    """

def number_cells(
    positions: Buffer, double: bool, grid: tuple[Sequence[float], Sequence[float], Sequence[int]], threads: int
) -> tuple[bytearray, bytearray, bytearray]:
    """Which cells of a grid positions lie in, rows of float32 or, ``double``, of float64.

    ``grid``: of each axis the length of a cell, the number of the first one, and how many there are. Returns for
    each position the place of its cell among those in which any lies; numbers of these cells, in C order, ascending;
    and how many positions are in each: native int64. A position outside, and far more cells than positions, are refused
    (:class:`ValueError`).
    """

def find_extent(positions: Buffer, double: bool, rank: int, threads: int) -> tuple[list[float], list[float]] | None:
    """The lowest and the highest coordinates of positions, rows of ``rank`` float32 or, ``double``, of float64.

    ``None`` where there are none, or one is no finite number.
    """

def cell_texts(cells: Buffer, rank: int) -> list[str]:
    """The ``rank`` coordinates of each of ``cells`` (int64), with dots between them: ascending as text."""

def take_rows(values: Buffer, size: int, rows: Buffer, threads: int) -> bytearray:
    """The rows of ``size`` bytes each that ``values`` has at the places ``rows`` (int64).

    A row that is not there is refused (:class:`ValueError`).
    """

def take_runs(values: Buffer, size: int, first: Buffer, lengths: Buffer, threads: int) -> bytearray:
    """As :func:`take_rows`, runs of ``lengths`` rows from each of ``first`` on (int64), one after the other."""

def find_cell_runs(
    positions: Buffer,
    double: bool,
    grid: tuple[Sequence[float], Sequence[float], Sequence[int]],
    edges: Buffer,
    threads: int,
) -> list[bytearray]:
    """Where runs of positions begin that lie in one cell each, cut at the places ``edges`` (int64, ascending).

    Arguments as for :func:`number_cells`. Returns native int64: the first position of each run, and the place of its
    cell among those in which any lies; numbers of these cells, ascending; and how many positions are in each. What is
    refused there, and edges that do not ascend or are no places, are refused (:class:`ValueError`).
    """

def find_runs(numbers: Buffer, edges: Buffer) -> bytearray:
    """Where runs of equal int64 begin, which are cut at the places ``edges`` (int64, ascending): as native int64.

    Edges that do not ascend, or are no places, are refused (:class:`ValueError`).
    """

def encode_manifests(starts: Buffer, chunks: Buffer, fragments: Buffer, rank: int) -> bytearray:
    """Lists of what objects are made of, one after the other: see ``zardine.vectors.format.manifests``.

    Int64: object ``o`` is of the fragments ``starts[o]`` to ``starts[o + 1]`` (exclusive), and ``chunks`` has ``rank``
    numbers for each. What does not fit together is refused (:class:`ValueError`).
    """

def join_pieces(elements: tuple[Buffer, Buffer, Buffer] | tuple[Buffer, Buffer, Buffer, Buffer]) -> bytearray:
    """Byte strings, named as for :func:`pack_elements`, one after the other, each behind its length as ``<u4``."""

def stable_order(numbers: Buffer, count: int) -> bytearray:
    """The stable ascending order of int64 from 0 to below ``count``, found by counting: as native int64.

    Others, and a count that is much larger than there are numbers, are refused (:class:`ValueError`).
    """

def replace_elements(data: bytes, start: int, count: int, first: int, elements: list[bytes]) -> bytes | None:
    """Return ``data`` with other byte strings: ``count`` begin at ``start``, each behind its length as ``<u4``.

    ``elements`` take the places of those from number ``first`` on. ``None`` where these are not there, or ``data`` do
    not end with the last one.
    """

def remove_files(files: Sequence[tuple[int, bytes]], threads: int) -> list[tuple[int, int]]:
    """Remove files, named as for :func:`make_files`; number and error number of each that could not be removed."""

def unique_rows(rows: Buffer, width: int) -> tuple[bytearray, bytearray] | None:
    """Return the distinct ones of rows of ``width`` int64, ascending, and for each row its number, as int64.

    ``None`` where they lie too far from each other to be numbered, or there is none.
    """

def encode_tiles(before: Buffer, counts: Buffer) -> bytearray:
    """Make fragment indexes of cells, one after the other: see ``zardine.vectors.format.fragment_index``.

    Int64: how many fragments there are before each cell, and in all; and of each how many rows it has, which follow
    those of the one before in its cell. What does not fit together is refused (:class:`ValueError`).
    """

def find_cells(starts: Buffer, rows: Buffer) -> tuple[bytearray, bytearray]:
    """The cell of each of ``rows``, and its number there: native int64.

    ``starts``: where those of each cell begin, and in all (int64). Rows that are in none, and starts that do not ascend
    from 0, are refused (:class:`ValueError`).
    """

def place_links(keys: Buffer, cells: Buffer, rows: Buffer, canonical: bool) -> list[bytearray] | None:
    """Where links go: see ``zardine.vectors.content.link_placement``. All numbers are int64.

    ``keys``: coordinates of cells, ascending. Of each link the numbers of the cells of its endpoints (two dimensions),
    and their rows in these; ``canonical``: endpoints may be reordered. Returns: of each family the offsets from the
    cell of the first endpoint to those of the others, ascending; where the cells of each family begin, and in all; the
    numbers of these cells, and where the links of each begin, and in all; what number each link had; what is stored of
    them, and where that of each cell begins, and in all. ``None`` for what does not fit together, or is too far apart.
    """

def line_parts(
    first: Buffer, cells: Buffer, edges: Buffer, keys: Buffer
) -> tuple[bytearray, bytearray, list[bytearray]] | None:
    """What is stored of lines beside their vertices. All numbers are int64.

    ``first``: where each run of vertices begins, and the numbers of their ``cells``; ``edges``: where each line begins,
    and how many vertices there are; ``keys``: coordinates of cells, ascending. Returns at which run each line begins,
    and how many there are; what :func:`encode_manifests` gives for the lines; and what :func:`place_links` gives for
    the links from each run to the next. ``None`` for what does not fit together, or is too far apart.
    """

def find_rows(table: Buffer, rows: Buffer, width: int) -> bytearray | None:
    """Return the number of each of ``rows`` among those of ``table``, which are distinct; -1 where it is not there.

    ``None`` as for :func:`unique_rows`, of the table.
    """

def decode_ranges(data: Buffer, lengths: Buffer, row_counts: Buffer) -> tuple[bytes, bytes, bytes, bool] | None:
    """Decode fragment indexes of cells that hold ranges only: ``data`` are those, each of so many bytes (int64).

    Gives as int64 how many fragments each cell has, the first row of each and how many rows it has; and whether they
    cut the ``row_counts`` rows of every cell in pieces, in order. ``None`` where anything else is there.
    """

def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC32C checksum of what gave ``value`` so far, followed by the C-contiguous ``data``."""

def retire_threads() -> None:
    """End the threads that wait for work from call to call. They are made again where they are needed."""

def version() -> str:
    """The version of the kernel; ``+debug`` follows if it was built with overflow checks and debug assertions."""
