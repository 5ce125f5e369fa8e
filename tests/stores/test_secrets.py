"""Secrets in URLs and options: no error, with its causes, contexts and traceback, shows them; nor a warning or plan."""

from __future__ import annotations

import functools
import http.server
import logging
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import zardine
from zardine import sources
from zardine.jobs.plan import Plan
from zardine.shown_text import has_masks, mask_error, shown, without_secrets

SECRET = "S3cr3tT0ken"

pytest.importorskip("obstore")
pytest.importorskip("fsspec")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://host/a", "http://host/a"),
        ("http://localhost:9000/a@b", "http://localhost:9000/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://host/a:b@c", "http://host/a:b@c"),
        ("http://me:pw@host/a", "http://me:***@host/a"),
        ("http://me:p@w@host/a@b", "http://me:***@host/a@b"),
        ("http://me:p/w@host/a", "http://me:***@host/a"),
        ("http://me:p w@host/a", "http://me:***@host/a"),
        ("http://me:p'w@host/a", "http://me:***@host/a"),
        ("http://:pw@host", "http://:***@host"),
        ("https://token@host/a", "https://***@host/a"),
        ("https://token:@host/a", "https://***@host/a"),
        ("https://token:x-oauth-basic@host/a", "https://***@host/a"),
        ("github://token@org/a", "github://***@org/a"),
        ("github://org:token@main/a", "github://org:***@main/a"),
        ("simplecache::sftp://me:pw@host/a", "simplecache::sftp://me:***@host/a"),
        ("zip://a/b::http://me:pw@host/a.zip::c@d", "zip://a/b::http://me:***@host/a.zip::c@d"),
        ("sftp://me@host/a", "sftp://me@host/a"),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("https://h/a?X-Amz-Signature=b%2B&c=d#e", "https://h/a?X-Amz-Signature=***&c=***#e"),
        ("https://h/a?token", "https://h/a?***"),
        ("https://h/a.zip?sig=b::inner", "https://h/a.zip?sig=***::inner"),
        ("key 'a?sig=b/zarr.json' of az://c", "key 'a?sig=***' of az://c"),
        ("AccountName=a;AccountKey=b==;E=1", "AccountName=a;AccountKey=***;E=1"),
        ("{'Authorization': 'Basic b='}", "{'Authorization': 'Basic ***'}"),
        ("cannot open 'http://me:pw@host/a': no", "cannot open 'http://me:***@host/a': no"),
    ],
)
def test_texts_without_secrets(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
    assert without_secrets(expected) == expected
    assert has_masks(expected) == ("***" in expected and "://" in text)


def test_long_texts_take_little_time() -> None:
    """Time grows with the length and not with its square."""
    for part in ("a", "://", "?", "=", ":", "@", "a:b@", "://a:", "?a=", "::", "'", "authorization", "a-"):
        assert without_secrets("http://" + part * (20_000 // len(part)))


class OwnTextError(Exception):
    """An error that makes its text of an attribute, as aiohttp's do."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def __str__(self) -> str:
        return f"failed: {self.url}"


def test_errors_of_others_are_masked_with_all_behind_them() -> None:
    url = f"http://me:{SECRET}@host/?sig={SECRET}"
    errors = [
        FileNotFoundError(url),
        OSError(5, f"no {url}", url),
        KeyError(url),
        OwnTextError(url),
        ExceptionGroup("some", [ValueError(url)]),
        ValueError(1, url, [url]),
    ]
    kinds = [type(error) for error in errors]
    for first, second in pairwise(errors):
        first.__cause__ = second
    errors[-1].__context__ = last = RuntimeError(url)
    mask_error(errors[0])
    for error, kind in zip([*errors, last], [*kinds, RuntimeError], strict=True):
        assert isinstance(error, kind)
        assert SECRET not in f"{error} {error!r}"
    assert SECRET not in "".join(traceback.format_exception(errors[0]))


def everything_of(error: BaseException) -> str:
    """Return all texts of an error and of those behind it, also of contexts that Python would not show."""
    texts, waiting, seen = [], [error], set()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            texts += [str(each), repr(each), repr(vars(each)), *traceback.format_exception(each)]
            waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
    return "\n".join(texts)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a web server that has ``a.zarr``, refuses ``/refused``, and breaks down at ``/broken``."""
    folder = tmp_path_factory.mktemp("web")
    zardine.create_array(str(folder / "a.zarr"), data=list(range(100)), chunks=10)
    zardine.create_array(str(folder / "a.zip"), data=list(range(100)), chunks=10)
    (folder / "damaged.zip").write_bytes(b"PK no archive")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            if self.path.startswith("/refused"):
                return self.send_error(403, f"refused {self.path}")
            if self.path.startswith("/broken"):
                return self.send_error(400, f"broken {self.path}")
            return super().send_head()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


URLS = (
    "http://me:{secret}@127.0.0.1:{port}/a.zarr",
    "http://me:{secret}@127.0.0.1:{port}/missing.zarr",
    "http://me:{secret}@127.0.0.1:{port}/refused",
    "http://me:{secret}@127.0.0.1:{port}/broken.zarr",
    "http://me:{secret}@127.0.0.1:1/a.zarr",
    "http://me:{secret}@127.0.0.1:{port}/damaged.zip",
    "http://me:{secret}@127.0.0.1:{port}/a.zip",
    "http://{secret}@127.0.0.1:1/a.zarr",
    "http://{secret}:@127.0.0.1:1/a.zarr",
    "http://me:a/{secret}@127.0.0.1:1/a.zarr",
    "http://me:{secret}@127.0.0.1:port/a.zarr",
    "http://me:{secret}@[::1/a.zarr",
    "http://127.0.0.1:{port}/a.zarr?sig={secret}",
    "https://127.0.0.1:1/a.nc?X-Amz-Signature={secret}&X-Amz-Expires=9",
    "zip::http://me:{secret}@127.0.0.1:{port}/damaged.zip",
    "zip::http://me:{secret}@127.0.0.1:1/a.zip",
    "zip://x::http://127.0.0.1:{port}/refused.zip?sig={secret}",
    "zip://x::http://127.0.0.1:{port}/broken.zip?token={secret}",
    "simplecache::http://me:{secret}@127.0.0.1:{port}/a.zarr",
    "simplecache::http://127.0.0.1:{port}/refused?token={secret}",
    "filecache::http://127.0.0.1:1/a?access_token={secret}",
    "github://{secret}@127.0.0.1:1/a.zarr",
    "ftp://me:{secret}@127.0.0.1:1/a.zarr",
    "sftp://me:{secret}@127.0.0.1:1/a.zarr",
    "smb://me:{secret}@127.0.0.1:1/a.zarr",
    "webhdfs://me:{secret}@127.0.0.1:1/a.zarr",
    "az://container/a.zarr?sv=1&sig={secret}",
    "abfs://container@account.dfs.core.windows.net/a?sig={secret}",
    "s3://key:{secret}@bucket/a.zarr",
    "s3://bucket/a.zarr?X-Amz-Signature={secret}",
    "gs://bucket/a.zarr?X-Goog-Signature={secret}",
    "nonsense://me:{secret}@host/a?token={secret}",
    "file://me:{secret}@host/a",
    "http://me:{secret}@127.0.0.1:{port}/a.zarr::no/such/node",
)


def attempts(url: str) -> dict[str, Callable[[], Any]]:
    """Return calls that take a URL. A server that is not there is asked once: requests to it are repeated."""
    if url.startswith("http") and ":1/" in url:
        return {"open": lambda: zardine.open(url, mode="r", storage_options={"max_retries": 0})}
    return {
        "open": lambda: zardine.open(url, mode="r")[...],
        "open_group": lambda: zardine.open_group(url, mode="r"),
        "open_array": lambda: zardine.open_array(url, mode="r")[...],
        "create": lambda: zardine.create_array(url, shape=(1,), dtype="i1"),
        "sources": lambda: sources.open(url),
        "verify": lambda: zardine.verify(url),
        "list": lambda: list(zardine.open_group(url, mode="r").members()),
        "options": lambda: zardine.open(url, mode="r", storage_options={"no_such_option": SECRET}),
    }


@pytest.mark.parametrize("form", URLS)
@pytest.mark.filterwarnings("default")
def test_no_error_shows_a_secret(form: str, port: int, caplog: pytest.LogCaptureFixture) -> None:
    url = form.format(secret=SECRET, port=port)
    caplog.set_level(logging.WARNING)
    failed, shows = 0, {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for name, attempt in attempts(url).items():
            try:
                result = attempt()
            except Exception as error:
                failed += 1
                told = everything_of(error)
            else:
                told = f"{result} {result!r}"
            if SECRET in told:
                shows[name] = told
    assert failed
    assert shows == {}
    assert not [each for each in warned if SECRET in str(each.message)]
    assert SECRET not in caplog.text


def test_no_representation_shows_a_secret(port: int) -> None:
    url = f"http://me:{SECRET}@127.0.0.1:{port}/a.zarr"
    for each in (url, f"simplecache::{url}", f"http://me:{SECRET}@127.0.0.1:{port}/a.zip"):
        array = zardine.open_array(each, mode="r")
        assert array[3] == 3
        store = array.store
        shown_texts = [repr(array), str(array), repr(store), str(store), repr(array.info), array._repr_html_()]
        shown_texts += [array.info._repr_html_(), repr(zardine.storage.StorePath(store, "a"))]
        assert SECRET not in "\n".join(shown_texts)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "abfs"])
def test_a_signature_in_the_url_of_a_bucket_is_refused(scheme: str) -> None:
    with pytest.raises(zardine.errors.StoreError, match=r"no signature.*sas_token"):
        zardine.open(f"{scheme}://bucket/a.zarr?sv=1&sig={SECRET}", mode="r")


# plans


def planners(url: str) -> dict[str, Callable[[], Plan]]:
    """Return plans of what is at a URL."""
    return {
        "convert": lambda: zardine.plan_convert(url, "converted.zarr"),
        "rechunk": lambda: zardine.plan_rechunk(url, "rechunked.zarr", chunks=5),
        "verify": lambda: zardine.plan_verify(url, records="records"),
        "reshard": lambda: zardine.plan_reshard(url, target="resharded.zarr", shards=50),
    }


FORMS = (
    "http://me:{secret}@127.0.0.1:{port}/a.zarr",
    "simplecache::http://me:{secret}@127.0.0.1:{port}/a.zarr",
    "http://me:{secret}@127.0.0.1:{port}/a.zip",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["convert", "rechunk", "verify", "reshard"])
def test_a_plan_holds_no_secret(
    kind: str, form: str, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = form.format(secret=SECRET, port=port)
    plan = planners(url)[kind]()
    plan.save("plan.json")
    assert SECRET not in f"{plan!r} {plan} {plan.work!r} {[*plan.work.places()]!r}"
    with pytest.raises(zardine.errors.PlanError, match=r"urls=.*Plan\.load.*ZARDINE_URLS.*--url") as caught:
        Plan.load("plan.json")
    assert SECRET not in everything_of(caught.value)
    with pytest.raises(zardine.errors.PlanError, match="holds no secrets"):
        Plan.load("plan.json", urls=["http://me:other@127.0.0.2/a.zarr"])
    loaded = Plan.load("plan.json", urls=["http://unused/", url])
    assert loaded.id == plan.id
    assert loaded.run()
    stored = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    assert len(stored) > 1
    assert not [each for each in stored if SECRET.encode() in each]


def test_keys_and_names_that_move_the_cursor_are_escaped_in_errors() -> None:
    assert shown("a\x1b[2J\nb\rc\u202e") == "a\\x1b[2J\nb\\rc\\u202e"
    group = zardine.create_group({})
    for name in ("a\x1b[2Jb", "a\rb", "a\u202eb", "a\x9bb", "a\u2028b"):
        group.create_array(name, shape=(1,), dtype="i1", attributes={name: name})
        for call in (
            lambda name=name: group[f"{name}/no"],
            lambda name=name: group.create_array(name, shape=(1,), dtype="i1"),
            lambda name=name: zardine.open_group(group.store, path=name, mode="r"),
            lambda name=name: group[name][5],
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011
                call()
            assert all(each.isprintable() for each in str(caught.value).split("\n"))
    for text in (repr(group.tree()), repr(group.info), *(repr(each) for _, each in group.arrays())):
        assert all(each.isprintable() for each in text.split("\n"))
    for _, array in group.arrays():
        assert all(each.isprintable() for each in repr(array.info).split("\n"))
