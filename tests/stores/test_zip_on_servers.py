"""Zip archives on a web server and in an object store: cut short, at the root of a host, and not there at all."""

from __future__ import annotations

import pytest

import zardine
from servers import servers
from zardine.errors import ReadOnlyError, StoreError, TornShardWarning
from zardine.storage import ZipStore
from zardine.stores.resolve import resolve_store


def test_a_cut_archive_on_a_web_server(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        zardine.create_array(store, shape=(1000,), chunks=(100,), dtype="i4")
    with ZipStore(path) as store:
        zardine.open_array(store)[...] = 7
    server = servers.nginx()
    (server.root / "whole.zip").write_bytes(path.read_bytes())
    (server.root / "cut.zip").write_bytes(path.read_bytes()[:-1])
    (server.root / "half.zip").write_bytes(path.read_bytes()[:300])
    assert zardine.open(f"{server.url}/whole.zip", mode="r")[:2].tolist() == [7, 7]
    with pytest.warns(TornShardWarning, match=r"^http://[^/]+/cut\.zip is cut short"):
        assert zardine.open(f"{server.url}/cut.zip", mode="r")[:2].tolist() == [0, 0]
    with pytest.raises(StoreError, match=r"^http://[^/]+/half\.zip is not a zip archive, or not a whole one"):
        zardine.open(f"{server.url}/half.zip", mode="r")
    with pytest.warns(TornShardWarning):
        store = resolve_store(f"{server.url}/cut.zip")[0]
    assert str(store) == f"{server.url}/cut.zip"
    assert list(store.faults()) == list(store.leftovers())
    assert len(list(store.faults())) == 1
    with pytest.raises(ReadOnlyError, match="written to local files only"):
        store.remove_leftovers()


def test_archives_are_not_written_to_object_stores():
    url, options = f"s3://{servers.new_bucket()}", servers.s3_options()
    source = zardine.create_array({}, data=[1, 2, 3])
    for place in (f"{url}/x.zip", f"{url}/folder/x.zip::node"):
        with pytest.raises(StoreError, match=r"there is no zip archive 'x\.zip' .* only written to local files"):
            zardine.convert(source, place, target_options=options)
