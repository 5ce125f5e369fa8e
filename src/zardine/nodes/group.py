"""The group: a folder of arrays and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from zardine.creation.options import CodecsLike, DTypeLike, ShapeLike
from zardine.creation.v3 import as_written, parse_shape
from zardine.engine.array_config import ArrayConfig, ArrayConfigLike
from zardine.engine.freshness import is_far, moment, note_opened
from zardine.engine.side_by_side import Descent
from zardine.engine.workers import for_each, most_requests
from zardine.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    ZardineError,
)
from zardine.hierarchy.ancestors import Above
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.create import create_node, erase_node, move_keys, parents_first
from zardine.hierarchy.find import (
    Seen,
    child_names,
    describe,
    find_node,
    find_nodes,
    implied_group,
    load_group,
    not_found,
    refuse_unfinished,
    warn_of_broken_consolidated,
)
from zardine.hierarchy.place import find_place, same_place
from zardine.hierarchy.update import update_node
from zardine.metadata.attributes import attributes_to_json
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, format_of_new, parse_node_json
from zardine.metadata.node_names import can_be_named, join_path, normalize_path
from zardine.metadata.v2_dtypes import dtype_in_memory
from zardine.nodes.argument_hints import no_attribute, with_hints, with_options_of
from zardine.nodes.array import Array
from zardine.nodes.attributes import Attributes, AttributesChange
from zardine.nodes.create_array import create_array, from_array, store_new_array
from zardine.nodes.create_like import empty_like, full_like, ones_like, plain_fill, zeros_like
from zardine.nodes.display import ArrayInfo, TreeView, describe_group
from zardine.nodes.older_arguments import compressors_of, key_encoding_of
from zardine.nodes.options import ArrayOptions, FilledOptions, GroupOptions, LikeInGroupOptions, RequiredOptions
from zardine.public_names import public
from zardine.shown_text import printable
from zardine.stores.base import Store, Version
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike

if TYPE_CHECKING:
    from zardine.nodes.asynchronous import AsyncGroup
    from zardine.server.viewing import View


N = TypeVar("N", "Array", "Group")


@public("zardine")
class Group:
    """A group of a hierarchy: a mapping of names (and paths) to arrays and groups.

    Where the metadata of the nodes below is consolidated in this group's document, members are looked up there and
    cost no request; :func:`zardine.consolidate_metadata` makes it so. What is changed through this group, and through
    arrays and groups that come out of it, is changed there, too; what is opened by its own path leaves it as it is.
    """

    _async_face: ClassVar[type[AsyncGroup]]
    """What gives this group awaitable methods, which registers itself here: it builds on this class."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, is_array=False)

    @overload
    def __init__(self, store: AsyncGroup, /) -> None: ...

    @overload
    def __init__(self, store: Store, path: str, metadata: GroupMetadata) -> None: ...

    def __init__(
        self, store: Store | AsyncGroup, path: str | None = None, metadata: GroupMetadata | None = None
    ) -> None:
        if not isinstance(store, Store):
            vars(self).update(vars(store._group))
            return
        if path is None or metadata is None:
            raise TypeError("a Group is made by zardine.open_group and zardine.create_group, or of an AsyncGroup")
        self._store = store
        self._path = path
        if metadata.consolidated_faults:
            warn_of_broken_consolidated(describe(store, path), metadata.consolidated_faults[0])
        self._metadata = metadata.with_consolidated(None)
        nodes = metadata.consolidated_metadata
        self._consolidated = None if nodes is None else Consolidated(store, path, metadata.zarr_format, nodes)
        self._above = ""
        """The path of this group below the one that has the consolidated metadata."""
        self._shown: tuple[int, GroupMetadata, GroupMetadata] | None = None
        """What :attr:`metadata` gave last, and what it was made of."""

    @classmethod
    def open(
        cls, store: StoreLike, zarr_format: int | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> Group:
        """Open the group that is stored at ``store``. Raises :class:`~zardine.errors.GroupNotFoundError`."""
        found, path = find_place(store, storage_options=storage_options, zarr_format=zarr_format)
        return cls(found, path, load_group(found, path, zarr_format))

    @classmethod
    def from_store(
        cls,
        store: StoreLike,
        *,
        attributes: Mapping[str, Any] | None = None,
        zarr_format: int | None = 3,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Group:
        """Create a group at ``store``."""
        return create_group(
            store,
            attributes=attributes,
            zarr_format=zarr_format,
            overwrite=overwrite,
            storage_options=storage_options,
        )

    # what and where it is

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata document."""
        if self._consolidated is None:
            return self._metadata
        state = self._consolidated.changes, self._metadata
        if self._shown is None or self._shown[0] != state[0] or self._shown[1] is not state[1]:
            whole = self._metadata.with_consolidated(self._consolidated.below(self._above))
            self._shown = (*state, whole)
        return self._shown[2]

    @property
    def attrs(self) -> Attributes:
        """User attributes; changes are stored at once."""
        return Attributes(lambda: self._metadata.attributes, self._change_attributes)

    @property
    def store(self) -> Store:
        """The store."""
        return self._store

    @property
    def path(self) -> str:
        """Path in the store, without slashes at its ends; empty for the root."""
        return self._path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return f"/{self._path}"

    @property
    def basename(self) -> str:
        """Last part of the path; empty for the root."""
        return self._path.rpartition("/")[2]

    @property
    def store_path(self) -> StorePath:
        """Store and path together."""
        return StorePath(self._store, self._path)

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._store.read_only

    @property
    def synchronizer(self) -> None:
        """``None``: writers need no helper to be safe."""
        return None

    @property
    def info(self) -> ArrayInfo:
        """A readable description that costs no I/O."""
        return describe_group(self)

    def info_complete(self) -> ArrayInfo:
        """Return a readable description that counts the nodes below."""
        return describe_group(self, complete=True)

    def tree(
        self, expand: bool | None = None, level: int | None = None, *, max_nodes: int = 500, plain: bool = False
    ) -> TreeView:
        """Return the hierarchy below as a drawing; ``level`` limits its depth, ``max_nodes`` its length."""
        return TreeView(self, level, max_nodes)

    @property
    def async_group(self) -> AsyncGroup:
        """The same group with awaitable methods."""
        return self._async_face(self)

    @property
    def _async_group(self) -> AsyncGroup:
        return self.async_group

    # members

    def __getitem__(self, path: str) -> Array | Group:
        """Return the member at ``path`` (``"a"`` or ``"a/b"``), read from the store; ``"/"`` is this group itself.

        Raises ``KeyError`` where there is none.
        """
        relative = self._relative_path(path)
        when, seen = moment(), Seen()
        node = self._opened(relative, self._member(relative, seen))
        if isinstance(node, Array) and self._consolidated is None:
            note_opened(node._handle, seen.version, node.metadata, when)
        return node

    def get(self, path: str, default: object = None) -> Any:
        """Return the member at ``path``, or ``default``, also where no member can have such a name."""
        try:
            relative = self._relative_path(path)
        except ValueError:
            return default
        try:
            return self[relative]
        except KeyError:
            return default

    def get_array(self, path: str) -> Array:
        """Return the array at ``path``. Raises where there is none, or where a group is."""
        try:
            node = self[path]
        except NodeNotFoundError as error:
            raise ArrayNotFoundError(str(error)) from None
        if not isinstance(node, Array):
            raise ContainsGroupError(f"a group, not an array, is stored at {describe(self._store, node.path)}")
        return node

    def get_group(self, path: str) -> Group:
        """Return the group at ``path``. Raises where there is none, or where an array is."""
        try:
            node = self[path]
        except NodeNotFoundError as error:
            raise GroupNotFoundError(str(error)) from None
        if not isinstance(node, Group):
            raise ContainsArrayError(f"an array, not a group, is stored at {describe(self._store, node.path)}")
        return node

    def __contains__(self, member: object) -> bool:
        if not isinstance(member, str):
            return False
        try:
            relative = self._relative_path(member)
        except ValueError:
            return False
        try:
            self._member(relative)  # raises MetadataError, a ValueError, where there is a member, but a wrong one
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return self.keys()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.keys())

    def __len__(self) -> int:
        return self.nmembers()

    def keys(self) -> Iterator[str]:
        """Yield the names of the members directly below, sorted."""
        for name, _ in self._children():
            yield name

    def values(self) -> Iterator[Array | Group]:
        """Yield the members directly below."""
        for _, node in self.items():
            yield node

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        """Yield the names and members directly below."""
        for name, metadata, read in self._found():
            yield name, self._opened(name, metadata, read)

    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, Array | Group], ...]:
        """Return relative paths and nodes, ``max_depth`` levels below the direct members (``None``: all levels).

        ``use_consolidated_for_children=False`` passes over consolidated metadata that groups below have of their own.
        """
        if max_depth is not None and (not isinstance(max_depth, int) or max_depth < 0):
            raise ValueError(f"max_depth is 0 or more, or None, not {max_depth!r}")
        found = tuple(self._walk(max_depth, use_consolidated_for_children))
        for _, node in found:
            refuse_unfinished(node.metadata, self._store, node.path)
        return found

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return how many members there are, ``max_depth`` levels below the direct ones (``None``: all levels)."""
        if max_depth == 0:
            return sum(1 for _ in self._children())
        return sum(1 for _ in self._walk(max_depth, True))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Yield the names and groups directly below."""
        for name, metadata in self._children():
            node = self._opened(name, metadata) if isinstance(metadata, GroupMetadata) else None
            if isinstance(node, Group):
                yield name, node

    def group_keys(self) -> Iterator[str]:
        """Return the names of the groups directly below."""
        return (name for name, metadata in self._children() if isinstance(metadata, GroupMetadata))

    def group_values(self) -> Iterator[Group]:
        """Return the groups directly below."""
        return (group for _, group in self.groups())

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield the names and arrays directly below."""
        for name, metadata, read in self._found():
            node = self._opened(name, metadata, read) if isinstance(metadata, ArrayMetadata) else None
            if isinstance(node, Array):
                yield name, node

    def array_keys(self) -> Iterator[str]:
        """Return the names of the arrays directly below."""
        return (name for name, metadata in self._children() if isinstance(metadata, ArrayMetadata))

    def array_values(self) -> Iterator[Array]:
        """Return the arrays directly below."""
        return (array for _, array in self.arrays())

    # changing

    @with_hints
    @with_options_of(create_array)
    def create_array(self, name: str, *, compressor: CodecsLike = "auto", **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group; see :func:`zardine.create_array`.

        ``name`` may be a path; groups on the way are created. ``compressor`` is another name for ``compressors``.
        """
        self._check_writable()
        options["compressors"] = compressors_of(compressor, options.get("compressors", "auto"))
        path = self._member_name(name, options.get("zarr_format"))
        if options.get("zarr_format") is None:
            options["zarr_format"] = self._metadata.zarr_format
        with self._forgotten_if_erased(path):
            made = create_array(self.store_path, name=path, **options)
        return self._made(made)

    create = create_array
    create_dataset = create_array

    def require_array(
        self,
        name: str,
        *,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        exact: bool = False,
        config: ArrayConfigLike = None,
        **kwargs: Unpack[RequiredOptions],
    ) -> Array:
        """Return the array ``name``, created if it is not there; ``kwargs`` are those of :meth:`create_array`.

        Raises ``TypeError`` if a group is there, or the array with another shape, or with a dtype that cannot be safely
        cast to ``dtype``
        (with ``exact``: with another dtype).
        """
        try:
            array = self.get_array(name)
        except ContainsGroupError as error:
            raise TypeError(str(error)) from None
        except KeyError:
            return self.create_array(name, shape=shape, dtype=dtype, config=config, **kwargs)
        if array.shape != parse_shape(shape):
            raise TypeError(f"array {name!r} is there with shape {array.shape}, not {parse_shape(shape)}")
        if dtype is not None:
            wanted = dtype_in_memory(dtype)
            if array.dtype != wanted and (exact or not np.can_cast(array.dtype, wanted)):
                raise TypeError(f"array {name!r} is there with dtype {array.dtype}, not {wanted}")
        return array if config is None else array.with_config(config)

    require_dataset = require_array

    def create_group(self, name: str, **kwargs: Unpack[GroupOptions]) -> Group:
        """Create a group below this one; takes what :func:`zardine.create_group` takes."""
        self._check_writable()
        kwargs.setdefault("zarr_format", self._metadata.zarr_format)
        made = create_group(self.store_path, path=self._member_name(name, kwargs["zarr_format"]), **kwargs)
        return self._made(made, emptied=bool(kwargs.get("overwrite")))

    def require_group(self, name: str, overwrite: bool = False) -> Group:
        """Return the group ``name``, created if it is missing; ``"/"`` is this group.

        Raises ``TypeError`` where an array is.
        """
        if not overwrite:
            try:
                return self.get_group(name)
            except ContainsArrayError as error:
                raise TypeError(str(error)) from None
            except KeyError:
                pass
        if not self._relative_path(name):
            return create_group(self.store_path, zarr_format=self._metadata.zarr_format, overwrite=overwrite)
        return self.create_group(name, overwrite=overwrite)

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return several groups, each created if it is not there."""
        return tuple(self.require_group(name) for name in names)

    def create_hierarchy(
        self, nodes: Mapping[str, NodeMetadata], *, overwrite: bool = False
    ) -> Iterator[tuple[str, Array | Group]]:
        """Create several nodes from their metadata, by path relative to this group; see :func:`create_hierarchy`.

        Raises ``ValueError`` for a node of another version of Zarr than the group's, and for one in its own place.
        """
        self._check_writable()
        absolute = {}
        for path, metadata in nodes.items():
            if max(2, metadata.zarr_format) != self._metadata.zarr_format:
                raise ValueError(
                    f"{path!r} is to be of Zarr v{metadata.zarr_format}, in a group of v{self._metadata.zarr_format}: "
                    "a hierarchy is of one version"
                )
            absolute[join_path(self._path, self._member_name(path, metadata.zarr_format))] = metadata
        made: list[str] = []
        try:
            for path, node in create_hierarchy(store=self._store, nodes=absolute, overwrite=overwrite):
                relative = path[len(self._path) :].lstrip("/")
                made += [relative] if relative else []
                if self._consolidated is not None and isinstance(node, Array):
                    node._came_out_of(self._consolidated, join_path(self._above, relative), hearsay=False)
                elif isinstance(node, Group):
                    node._came_out_of(self, relative)
                yield relative, node
        finally:
            if made:
                self._keep_true(made, emptied=made if overwrite else ())

    def __setitem__(self, key: str, value: npt.ArrayLike) -> None:
        """Store ``value`` (anything NumPy takes for an array) as the array ``key``, replacing what is there."""
        self._check_writable()
        name = self._member_name(key)
        version = self._metadata.zarr_format
        with self._forgotten_if_erased(name):
            made = from_array(self.store_path, name=name, data=value, overwrite=True, zarr_format=version)
        self._made(made)

    def __delitem__(self, key: str) -> None:
        self._check_writable()
        relative = self._member_name(key)
        self._member(relative)
        if self._consolidated is not None:
            self._consolidated.forget(join_path(self._above, relative))
        erase_node(self._store, join_path(self._path, relative))
        if self._consolidated is not None:  # who consolidated before it was gone may have taken it in
            self._consolidated.forget(join_path(self._above, relative))

    def move(self, source: str, dest: str) -> None:
        """Rename the member ``source`` to ``dest``. Raises where ``dest`` is taken.

        Local stores rename a directory, in one instant. Other stores copy every key, and so do local ones for a member
        with more than 64 nodes.

        An error while values are copied leaves everything at the old place, and nothing at the new one.

        What others write meanwhile comes along. Through handles that they have opened before they get
        :class:`~zardine.errors.ArrayChangedError` then. Killed just before its end, it leaves the new place with all
        values, and arrays of Zarr v3 there that ``zardine.reshard(..., cancel=True)`` lets be written again.
        """
        self._check_writable()
        old, new = self._member_name(source), self._member_name(dest)
        self._member(old)
        move_keys(self._store, join_path(self._path, old), join_path(self._path, new))
        if self._consolidated is not None:
            moved = self._consolidated.below(join_path(self._above, old))
            self._keep_true([old, new, *(join_path(new, each) for each in moved)], emptied=[old])

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Group:
        """Set several attributes in one write; gives this group."""
        self.attrs.update(new_attributes)
        return self

    async def update_attributes_async(self, new_attributes: Mapping[str, Any]) -> Group:
        """Do as :meth:`update_attributes` does, for code that runs in an event loop."""
        await self.async_group.update_attributes(dict(new_attributes))
        return self

    def zeros(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of fill value 0."""
        return self.create_array(name, shape=shape, **_with_fill("zeros", self._filled(kwargs)))

    def ones(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of fill value 1."""
        return self.create_array(name, shape=shape, **_with_fill("ones", self._filled(kwargs)))

    def empty(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of the default fill value."""
        return self.create_array(name, shape=shape, **self._filled(kwargs))

    def full(self, *, name: str, shape: ShapeLike, fill_value: object, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of the given fill value."""
        return self.create_array(name, shape=shape, fill_value=fill_value, **self._filled(kwargs))

    def _filled(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Options of :meth:`create_array` for those of ``zeros`` and others, which take what :func:`create` takes."""
        options = {"dtype": "float64", **kwargs}
        options["chunk_key_encoding"] = key_encoding_of(
            options.pop("dimension_separator", None),
            options.get("chunk_key_encoding"),
            options.get("zarr_format") or self._metadata.zarr_format,
        )
        return options

    def zeros_like(self, *, name: str, data: npt.ArrayLike, **kwargs: Unpack[LikeInGroupOptions]) -> Array:
        """Create an array of fill value 0 like ``data`` in shape, dtype, chunks and shards."""
        return self._make_like(zeros_like, name, data, kwargs)

    def ones_like(self, *, name: str, data: npt.ArrayLike, **kwargs: Unpack[LikeInGroupOptions]) -> Array:
        """Create an array of fill value 1 like ``data`` in shape, dtype, chunks and shards."""
        return self._make_like(ones_like, name, data, kwargs)

    def empty_like(self, *, name: str, data: npt.ArrayLike, **kwargs: Unpack[LikeInGroupOptions]) -> Array:
        """Create an array of the default fill value like ``data`` in shape, dtype, chunks and shards."""
        return self._make_like(empty_like, name, data, kwargs)

    def full_like(self, *, name: str, data: npt.ArrayLike, **kwargs: Unpack[LikeInGroupOptions]) -> Array:
        """Create an array of the given ``fill_value`` like ``data`` in shape, dtype, chunks and shards."""
        return self._make_like(full_like, name, data, kwargs)

    def _make_like(
        self, make: Callable[..., Array], name: str, data: npt.ArrayLike, kwargs: Mapping[str, Any]
    ) -> Array:
        self._check_writable()
        kwargs = {"zarr_format": self._metadata.zarr_format, **kwargs}
        path = self._member_name(name, kwargs["zarr_format"])
        with self._forgotten_if_erased(path):
            made = make(data, store=self.store_path, path=path, **kwargs)
        return self._made(made)

    # the rest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: every write is stored when its call returns."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Group)
            and self._path == other._path
            and same_place(self._store, other._store)
            and self.metadata == other.metadata
        )

    def __hash__(self) -> int:
        return hash((Group, self._path))

    def __repr__(self) -> str:
        return f"<Group {printable(describe(self._store, self._path))}>"

    def view(self, *, height: int = 700, port: int = 0) -> View:
        """Show this group, and what is below it, in a page: in a notebook a frame of ``height`` pixels.

        See :func:`zardine.view`.
        """
        import zardine

        return zardine.view(self, height=height, port=port)

    def _repr_html_(self) -> str:
        return f"{self.info._repr_html_()}{TreeView(self, storage=True)._repr_html_()}"

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"cannot write to {describe(self._store, self._path)}: it was opened read-only")

    def _change_attributes(self, change: AttributesChange) -> None:
        self._check_writable()
        changed = update_node(
            self._store, self._path, self._metadata, lambda old: old.with_attributes(change(old.attributes))
        )
        self._metadata = changed.with_consolidated(None)
        if self._consolidated is not None and self._above:
            self._consolidated.keep_true([self._above])

    def _relative_path(self, path: str, zarr_format: int | None = None) -> str:
        """Return a user's path below this group.

        A backslash in it is one of the version of the group, or of a new node.
        """
        if not isinstance(path, str):
            raise TypeError(f"members of a group are named by strings, not {path!r} ({type(path).__name__})")
        return normalize_path(path, self._metadata.zarr_format if zarr_format is None else zarr_format)

    def _member_name(self, name: str, zarr_format: int | None = None) -> str:
        path = self._relative_path(name, zarr_format)
        if not path:
            raise ValueError(f"{name!r} is no name for a member of a group: it is empty")
        return path

    def _opened(self, relative: str, metadata: NodeMetadata, read: _WhenRead | None = None) -> Array | Group:
        """Return a member. Raises :class:`~zardine.errors.UnfinishedError` for one not written to its end."""
        refuse_unfinished(metadata, self._store, join_path(self._path, relative))
        return self._node(relative, metadata, read)

    def _node(self, relative: str, metadata: NodeMetadata, read: _WhenRead | None = None) -> Array | Group:
        path = join_path(self._path, relative)
        if isinstance(metadata, ArrayMetadata):
            array = Array(self._store, path, metadata)
            if self._consolidated is not None:
                array._came_out_of(self._consolidated, join_path(self._above, relative), hearsay=True)
            elif read is not None:
                note_opened(array._handle, read[0], metadata, read[1])
            return array
        group = Group(self._store, path, metadata)
        group._came_out_of(self, relative)
        return group

    def _came_out_of(self, above: Group, relative: str) -> None:
        if above._consolidated is not None:
            self._consolidated, self._above = above._consolidated, join_path(above._above, relative)
            self._shown = None

    def _made(self, node: N, *, emptied: bool = False) -> N:
        """Return a node that was made below this group, with which consolidated metadata is kept true.

        ``emptied``: what was below it before is gone.
        """
        if self._consolidated is not None:
            relative = node.path[len(self._path) :].lstrip("/")
            path = join_path(self._above, relative)
            self._consolidated.keep_true([path], emptied=[path] if emptied or isinstance(node, Array) else [])
            if isinstance(node, Array):
                node._came_out_of(self._consolidated, path, hearsay=False)
            else:
                node._came_out_of(self, relative)
        return node

    @contextmanager
    def _forgotten_if_erased(self, relative: str) -> Iterator[None]:
        """Take a member out of consolidated metadata where it is gone after an error in this context."""
        try:
            yield
        except BaseException as error:
            path = join_path(self._above, relative)
            if self._consolidated is not None and path in self._consolidated.nodes:
                try:
                    self._consolidated.forget_gone([path])
                except ZardineError as another:
                    error.add_note(f"consolidated metadata may tell of {path!r} still: {another}")
            raise

    def _keep_true(self, relative: Iterable[str], *, emptied: Iterable[str] = ()) -> None:
        """Keep consolidated metadata true, if members are looked up there."""
        if self._consolidated is not None:
            below = [join_path(self._above, each) for each in relative]
            self._consolidated.keep_true(below, emptied=[join_path(self._above, each) for each in emptied])

    def _take_over(self, relative: str) -> None:
        """Say in consolidated metadata what is stored as the member ``relative``, and below it."""
        if self._consolidated is not None:
            member = self._past_consolidated()[relative]
            below = member._walk(None, False) if isinstance(member, Group) else ()
            self._keep_true([relative, *(join_path(relative, path) for path, _ in below)], emptied=[relative])

    def _past_consolidated(self) -> Group:
        """Return this group, without regard to consolidated metadata."""
        return Group(self._store, self._path, self._metadata)

    def _member(self, relative: str, seen: Seen | None = None) -> NodeMetadata:
        """Return the metadata of the member at a normalized relative path. Raises ``KeyError`` where there is none.

        ``seen`` gets what is noticed beside it.
        """
        if self._consolidated is not None:
            if not relative:
                return self.metadata
            if join_path(self._above, relative) not in self._consolidated.nodes:
                raise NodeNotFoundError(
                    f"no array or group is stored at {describe(self._store, join_path(self._path, relative))}, says "
                    f"the consolidated metadata of {describe(self._store, self._path)}; "
                    "open_group(..., use_consolidated=False) looks at the nodes themselves"
                )
            return self._consolidated_member(relative)
        seen = Seen() if seen is None else seen
        metadata = self._find(relative, seen)
        if metadata is None:
            path = join_path(self._path, relative)
            raise not_found(self._store, path, None, NodeNotFoundError, "array or group", seen)
        return metadata

    def _find(self, relative: str, seen: Seen) -> NodeMetadata | None:
        first = self._metadata.zarr_format
        node = find_node(self._store, join_path(self._path, relative), first=first, seen=seen, is_new=first == 3)
        return self._known(relative, node, seen)

    def _known(self, relative: str, metadata: NodeMetadata | None, seen: Seen | None = None) -> NodeMetadata | None:
        """Return the node that was found at a path, or the implied group there, if it can be opened by that path."""
        if metadata is None:
            metadata = implied_group(self._store, join_path(self._path, relative), seen=seen)
        return metadata if metadata is None or self._can_be_named(relative, metadata) else None

    def _can_be_named(self, relative: str, metadata: NodeMetadata) -> bool:
        """Return whether a node can be opened by a path: no backslash is in names of Zarr v2, nor below its groups."""
        return can_be_named(relative.rpartition("/")[2], min(metadata.zarr_format, self._metadata.zarr_format))

    def _children(self) -> Iterator[tuple[str, NodeMetadata]]:
        for name, metadata, _ in self._found():
            yield name, metadata

    def _found(self) -> Iterator[_Found]:
        """Yield what is directly below."""
        if self._consolidated is not None:
            for relative in self._consolidated.names(self._above):
                member = self._consolidated_member(relative)
                if self._can_be_named(relative, member):
                    yield relative, member, None
            return
        names = child_names(self._store, self._path, self._metadata.zarr_format)
        most = most_requests(self._store, 1)
        if most == 1:
            yield from self._near_children(names)
            return
        while some := list(islice(names, most)):
            found: dict[str, tuple[NodeMetadata | None, _WhenRead]] = {}

            def find(name: str, found: dict[str, tuple[NodeMetadata | None, _WhenRead]] = found) -> None:
                when, seen = moment(), Seen()
                metadata = self._find(name, seen)
                found[name] = metadata, (seen.version, when)

            for_each(find, some, len(some), most)
            for name in some:
                metadata, read = found[name]
                if metadata is not None:
                    yield name, metadata, read

    def _near_children(self, names: Iterable[str]) -> Iterator[_Found]:
        listed = list(names)
        paths = [join_path(self._path, name) for name in listed]
        nodes = find_nodes(self._store, paths, self._metadata.zarr_format)
        for name, node in zip(listed, nodes, strict=True):
            metadata = self._known(name, node)
            if metadata is not None:
                yield name, metadata, None  # it is looked at whenever it is used

    def _consolidated_member(self, relative: str) -> NodeMetadata:
        assert self._consolidated is not None
        place = f"the consolidated document of {describe(self._store, join_path(self._path, relative))} is invalid"
        try:
            return parse_node_json(self._consolidated.nodes[join_path(self._above, relative)], place)
        except MetadataError as error:
            with suppress(ZardineError):  # that of the document itself would say the same
                found = self._past_consolidated()._member(relative)
                warn_of_broken_consolidated(describe(self._store, self._path), error.problems[0])
                return found
            raise

    def _walk(self, max_depth: int | None, use_consolidated: bool) -> Iterator[tuple[str, Array | Group]]:
        """Yield all that is below, a group before what is in it; however deep that is, since nothing calls itself."""
        ahead: Descent[tuple[int, Group], _Children] | None = None

        def node_of(group: Group, name: str, metadata: NodeMetadata, read: _WhenRead | None = None) -> Array | Group:
            if isinstance(metadata, GroupMetadata) and not use_consolidated and group._consolidated is None:
                metadata = metadata.with_consolidated(None)
            return group._node(name, metadata, read)

        def inner(place: tuple[int, Group], found: _Children) -> Iterator[tuple[int, Group]]:
            depth, group = place
            if max_depth is None or depth < max_depth:
                for name, metadata, _ in found[0]:
                    node = node_of(group, name, metadata) if isinstance(metadata, GroupMetadata) else None
                    if isinstance(node, Group) and node._consolidated is None:
                        yield depth + 1, node

        def children(depth: int, group: Group) -> Iterator[_Found]:
            if ahead is None or group._consolidated is not None:
                return group._found()
            return _given(ahead.of((depth, group)))

        if self._consolidated is None and is_far(self._store):
            ahead = Descent(
                self._store,
                (0, self),
                lambda place: _all_of(place[1]._found()),
                inner,
                name=lambda place: place[1]._path,
                size=lambda found: len(found[0]),
            )
        within: list[tuple[str, Group, Iterator[_Found]]] = [("", self, children(0, self))]
        while within:
            above, group, members = within[-1]
            name, metadata, read = next(members, (None, None, None))
            if name is None or metadata is None:
                within.pop()
                continue
            node = node_of(group, name, metadata, read)
            path = join_path(above, name)
            yield path, node
            if isinstance(node, Group) and (max_depth is None or len(within) <= max_depth):
                within.append((path, node, children(len(within), node)))


_WhenRead: TypeAlias = tuple[Version | None, tuple[float, int]]
"""The version of the document that was read, and the moment before."""

_Found: TypeAlias = tuple[str, NodeMetadata, _WhenRead | None]
"""What is directly below a group: the name; the metadata, and where looking is a request, when that was read."""

_Children: TypeAlias = tuple[list[_Found], Exception | None]
"""What is directly below a group, as far as it was found, and what ended that."""


def _all_of(children: Iterator[_Found]) -> _Children:
    found: list[_Found] = []
    try:
        found.extend(children)
    except Exception as error:
        return found, error
    return found, None


def _given(children: _Children) -> Iterator[_Found]:
    yield from children[0]
    if children[1] is not None:
        raise children[1]


@with_hints
def create_group(
    store: StoreLike,
    *,
    path: str | None = None,
    zarr_format: int | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Create a group; groups above it are created where they are missing.

    Raises :class:`~zardine.errors.ContainsArrayError` or :class:`~zardine.errors.ContainsGroupError` if the place is
    taken; with ``overwrite`` everything at and below it is erased first.
    """
    version = _version_of_new(zarr_format)
    found, inner = find_place(store, path, storage_options=storage_options, zarr_format=version)
    return new_group(found, inner, zarr_format=version, overwrite=overwrite, attributes=attributes)


def new_group(
    store: Store,
    path: str,
    *,
    zarr_format: int | None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    is_free: bool = False,
    above: Above | None = None,
) -> Group:
    """Create a group as :func:`create_group` does; ``is_free`` and ``above`` as for ``create_node``."""
    version = _version_of_new(zarr_format)
    metadata = GroupMetadata(attributes=attributes_to_json(attributes or {}), zarr_format=version)
    create_node(store, path, metadata, overwrite=overwrite, is_free=is_free, above=above)
    return Group(store, path, metadata)


def _version_of_new(zarr_format: int | None) -> int:
    version = format_of_new(zarr_format)
    if version == 1:
        raise ValueError("Zarr v1 has no groups: use zarr_format=2 or 3")
    return version


def create_hierarchy(
    *,
    store: StoreLike,
    nodes: Mapping[str, NodeMetadata],
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[tuple[str, Array | Group]]:
    """Create several nodes from their metadata, by path; gives each path and node once it is stored.

    Groups above the named nodes are created too, and given out. Parents come before their children.
    Raises ``ValueError`` where nodes are of several versions of Zarr (groups above arrays of v1 are of v2), or below
    an array, and :class:`~zardine.errors.ContainsArrayError` or :class:`~zardine.errors.ContainsGroupError` for a place
    that is taken, unless ``overwrite``.
    """
    found, root = find_place(store, storage_options=storage_options)
    for path, node, is_given in parents_first(nodes):
        place = join_path(root, path)
        if not is_given and isinstance(find_node(found, place), GroupMetadata):
            continue
        if isinstance(node, ArrayMetadata):
            settings = ArrayConfig.from_settings()
            yield path, store_new_array(found, place, as_written(node), settings, overwrite=overwrite and is_given)
        else:
            create_node(found, place, node, overwrite=overwrite and is_given)
            yield path, Group(found, place, node)


def _with_fill(what: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**kwargs, "fill_value": plain_fill(getattr(np, what), kwargs["dtype"])}
