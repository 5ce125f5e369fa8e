"""Filesystems of fsspec against the shipped suite."""

from __future__ import annotations

import pytest

from zardine.storage import FsspecStore
from zardine.testing.store import StoreConformance

fsspec = pytest.importorskip("fsspec")


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
class TestFsspecLocal(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path

    def make_store(self):
        return FsspecStore(fsspec.filesystem("file"), str(self.root))


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
class TestFsspecMemory(StoreConformance):
    def make_store(self):
        fs = fsspec.filesystem("memory")
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
        return FsspecStore(fs, "/root")
