"""What a store has to know of fsspec's many filesystems, told by what they call themselves."""

from __future__ import annotations

import errno
import weakref
from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from zardine.stores.object.kinds import service_of

_ROOTED: Final = ("zip", "tar", "libarchive", "reference")
"""Filesystems whose root is a thing that the user named."""

_BUCKETS: Final = (
    *("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "ocilake", "cos", "cosn", "obs", "tos"),
    *("b2", "r2", "wasb"),
)
"""Services whose directories are nothing but parts of names; to make one there may make a bucket."""

_NO_BUCKET: Final = ("bucket does not exist", "container does not exist", "NoSuchBucket", "ContainerNotFound")

_COPYING: Final = ("simplecache", "filecache", "blockcache", "cached")

_ON_A_HOST: Final = ("sftp", "ssh", "ftp", "smb", "hdfs", "arrow_hdfs", "webhdfs")

_SERVICES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}

_BUSY: Final = (429, 500, 502, 503, 504)
_BUSY_ERRNO: Final = (errno.EBUSY, errno.EAGAIN, errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT)

_PACKAGES: Final[Mapping[str, str]] = {
    "smbclient": "smbprotocol",
    "gdrive_fsspec": "gdrive-fsspec",
    "gdrivefs": "gdrive-fsspec",
    "huggingface_hub": "huggingface-hub",
    "lakefs_spec": "lakefs-spec",
    "dropboxdrivefs": "dropboxdrivefs dropbox requests",
    "libarchive": "libarchive-c",
    "distributed": "dask distributed",
    "fsspec_xrootd": "fsspec-xrootd",
}
"""What to install for a module, where it is not called as the module is."""


def names_of(fs: Any) -> tuple[str, ...]:
    """The schemes of the URLs that a filesystem stands for."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def unwrapped(fs: Any, path: str) -> tuple[Any, str]:
    """The filesystem in which a ``DirFileSystem`` is a directory, and the path there; any other one as it is.

    Of one that is made for coroutines, as zarr-python wants them, the same filesystem to be called from threads. Raises
    ``TypeError`` where there is none.
    """
    while type(fs).__module__ == "fsspec.implementations.dirfs":
        path = f"{fs.path}/{path.strip('/')}".rstrip("/") if fs.path else path
        fs = fs.fs
    inner = _for_threads(fs)
    if getattr(inner, "asynchronous", False):
        raise TypeError(f"the fsspec filesystem {type(fs).__name__} can be used in coroutines only")
    return (inner, path) if inner is fs else unwrapped(inner, path)


def _for_threads(value: Any) -> Any:
    """Return a filesystem, or the options of one, as it is called from threads: those that it is made of, too."""
    if isinstance(value, dict):
        plain = {name: _for_threads(each) for name, each in value.items()}
        return {**plain, "asynchronous": False} if "asynchronous" in plain else plain
    if type(value).__module__ == "fsspec.implementations.asyn_wrapper":
        return value.sync_fs
    if getattr(value, "asynchronous", False) and hasattr(value, "storage_options"):
        return type(value)(*value.storage_args, **_for_threads(value.storage_options))
    return value


def is_rooted(fs: Any) -> bool:
    """Whether the root of a filesystem is something of its own (an archive), and not all that can be reached."""
    return any(name in _ROOTED for name in names_of(fs))


def has_buckets(fs: Any) -> bool:
    """Whether a filesystem is a service of buckets, where no directory has to be made for a file."""
    return any(name in _BUCKETS for name in names_of(fs))


def is_url(path: str) -> bool:
    """Return whether a filesystem's path is a URL of a web server, where names of files are percent-encoded."""
    return path[:8].lower().startswith(("http://", "https://"))


def is_without_bucket(error: BaseException) -> bool:
    """Whether a service said that there is no such bucket. Not all filesystems pass that on."""
    told = f"{error} {error.__cause__ or ''}"
    return any(each in told for each in _NO_BUCKET)


def keeps_copies(fs: Any) -> bool:
    """Whether a filesystem keeps copies of files that it does not compare with the files whenever they are read."""
    return any(name in _COPYING for each in _layers(fs) for name in names_of(each))


def forget_listings(fs: Any) -> None:
    """Have a filesystem, and those it is made of, answer from no listing that was made before it was asked."""
    for each in _layers(fs):
        if getattr(each, "use_listings_cache", False) is True:
            each.use_listings_cache = False
        if hasattr(getattr(each, "dircache", None), "use_listings_cache"):
            each.dircache.use_listings_cache = False
        each.invalidate_cache()


def _layers(fs: Any) -> Iterator[Any]:
    seen: list[Any] = []
    while hasattr(fs, "protocol") and not any(fs is each for each in seen):
        seen.append(fs)
        yield fs
        inner = vars(fs)
        fs = inner.get("fs", inner.get("sync_fs"))


def shown(fs: Any, path: str) -> str:
    """The URL of a path, with the host where that is not in the path; nothing that is secret."""
    names = names_of(fs)
    if any(path.startswith(f"{name}://") for name in names):
        return path
    if names[0] in ("file", "local"):
        return f"{names[0]}://{path or '/'}"
    host = getattr(fs, "host", "") if names[0] in _ON_A_HOST else ""
    return f"{names[0]}://{f'{host}/' if host else ''}{path.strip('/')}"


def endpoint_of(fs: Any) -> str | None:
    """The URL of the service that a filesystem was told to talk to; ``None`` where it was told none."""
    options = getattr(fs, "storage_options", None) or {}
    nested = options.get("client_kwargs") or {}
    found = options.get("endpoint_url") or nested.get("endpoint_url") or options.get("endpoint")
    return str(found) if found else None


def account_of(fs: Any) -> str:
    """The storage account of a filesystem of Azure; empty for others."""
    return str(getattr(fs, "account_name", None) or "") if names_of(fs)[0] in ("az", "abfs", "abfss") else ""


def origin_of(fs: Any) -> tuple[str, str, str] | None:
    """Return scheme, host of the service (empty for the cloud's own), and account; ``None`` of what has no buckets."""
    scheme = _SERVICES.get(names_of(fs)[0])
    return None if scheme is None else (scheme, service_of(endpoint_of(fs) or ""), account_of(fs))


def number_of(fs: Any) -> int:
    """Return a number that no filesystem of other files has or had in this process: that of this object, as a rule.

    What they are made of does not tell their service: variables of the environment may say where that is.
    """
    if f"{type(fs).__module__}.{type(fs).__name__}" in _ONE_FOR_ALL:
        return 0
    number = _numbers.get(id(fs))
    if number is None:
        number = _numbers.setdefault(id(fs), next(_counter))
        weakref.finalize(fs, _numbers.pop, id(fs), None).atexit = False
    return number


_ONE_FOR_ALL: Final = ("fsspec.implementations.local.LocalFileSystem", "fsspec.implementations.memory.MemoryFileSystem")
"""Filesystems of which all objects have the same files."""

_numbers: Final[dict[int, int]] = {}
_counter: Final = count(1)


def place_of(fs: Any, path: str) -> Hashable:
    """Return what tells the bucket, or the server, that a path is on: object stores and HTTP as those of obstore do."""
    origin = origin_of(fs)
    if origin is not None:
        return *origin, path.strip("/").partition("/")[0]
    if names_of(fs)[0] in ("http", "https"):
        parts = urlsplit(path)
        return parts.scheme, parts.netloc.rpartition("@")[2].lower(), "", ""
    return names_of(fs)[0], str(getattr(fs, "host", "") or getattr(fs, "_fs_token", id(fs)))


def what_failed(error: FileNotFoundError) -> BaseException:
    """Return what failed where a filesystem says that a file is missing: that of HTTP says so whatever it was."""
    cause = error.__cause__
    if cause is None or isinstance(cause, FileNotFoundError):
        return error
    status = getattr(cause, "status", None)
    if isinstance(status, int):
        return error if status in (404, 410) else cause
    is_other = isinstance(cause, (OSError, TimeoutError)) or type(cause).__module__.startswith("aiohttp")
    return cause if is_other else error


def is_reference(fs: Any, name: str) -> bool:
    """Return whether a file is a reference to another one, so that it is damage where that is missing."""
    return "reference" in names_of(fs) and name in fs.references


def is_no_reference(fs: Any, name: str) -> bool:
    """Return whether a name is none that references kept as Parquet can have: they have documents of v2, and chunks.

    fsspec takes any other one for the number of a chunk: that is a ``ValueError``, or an empty file below an array
    without axes.
    """
    if "reference" not in names_of(fs) or isinstance(fs.references, dict):
        return False
    folder, _, last = name.rpartition("/")
    return bool(folder) and not last.startswith(".z") and not all(each.isdecimal() for each in last.split("."))


def is_inline(fs: Any, name: str) -> bool:
    """Return whether the bytes of a file are in the document of references itself.

    fsspec tells the length of their text there, which base64 makes longer than what is read.
    """
    if "reference" not in names_of(fs):
        return False
    held = fs.references.get(name)
    return isinstance(held, (str, bytes)) and held[:7] in ("base64:", b"base64:")


def is_busy(error: BaseException) -> bool:
    """Return whether a service, or the way to it, seems to have too much to do."""
    for each in (error, error.__cause__):
        if isinstance(each, (TimeoutError, ConnectionError)) or getattr(each, "errno", None) in _BUSY_ERRNO:
            return True
        told = (getattr(each, name) for name in ("status", "status_code", "code") if hasattr(each, name))
        if next(told, None) in _BUSY:
            return True
    return False


def missing_package(url: str, error: ImportError) -> str:
    """What to say of a URL whose filesystem cannot be imported: the command that installs what lacks."""
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, ModuleNotFoundError) and cause.name):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return f"{url!r} cannot be opened: {error}"
    module = str(getattr(cause, "name", "")).partition(".")[0]
    package = _PACKAGES.get(module, module)
    return f"{url!r} needs the package {module!r}, which is not installed: run pip install {package}"


__all__ = [
    "account_of",
    "endpoint_of",
    "forget_listings",
    "has_buckets",
    "is_busy",
    "is_rooted",
    "is_url",
    "is_without_bucket",
    "keeps_copies",
    "missing_package",
    "names_of",
    "number_of",
    "origin_of",
    "place_of",
    "shown",
    "unwrapped",
]
