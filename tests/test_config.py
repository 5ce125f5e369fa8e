"""Settings: read, changed, put back, and what they do."""

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.settings import DEFAULTS, Config, check_setting, is_on, thread_count
from zardine.storage import MemoryStore


def test_defaults() -> None:
    fresh = Config()
    assert {name: fresh.get(name) for name in DEFAULTS} == dict(DEFAULTS) == dict(fresh.defaults)
    assert fresh["array.order"] == "C"
    assert fresh.get("array.order", override_with="F") == "F"
    assert fresh.get("no.such.setting", 5) == 5
    with pytest.raises(KeyError, match=r"no\.such"):
        fresh.get("no.such.setting")
    with pytest.raises(KeyError):
        fresh["no.such.setting"]


def test_changes_hold_for_a_block_or_for_good() -> None:
    settings = Config()
    with settings.set({"array.order": "F", "threads": 3}) as inside:
        assert inside is settings
        assert (settings["array.order"], settings["threads"]) == ("F", 3)
        with settings.set({"array": {"order": "C"}}):
            assert settings["array.order"] == "C"
        assert settings["array.order"] == "F"
    assert (settings["array.order"], settings["threads"]) == ("C", None)
    settings.set(array__order="F")
    assert settings["array.order"] == "F"
    settings.reset()
    assert settings["array.order"] == "C"


def test_values_come_back_after_an_error() -> None:
    settings = Config()
    with pytest.raises(ZeroDivisionError), settings.set({"threads": 9}):
        raise ZeroDivisionError
    assert settings["threads"] is None


def test_unknown_names_are_refused_with_a_hint() -> None:
    settings = Config()
    with pytest.raises(KeyError, match=r"did you mean 'array\.order'"):
        settings.set({"array.ordr": "F", "threads": 5})
    assert settings["threads"] is None
    with pytest.raises(TypeError, match="mapping"):
        settings.set(["array.order"])  # type: ignore[arg-type]


def test_settings_of_zarr_python_are_kept_and_do_nothing() -> None:
    settings = Config()
    with settings.set({"async.concurrency": 3, "codec_pipeline": {"batch_size": 1}}):
        assert settings.get("async.concurrency") == 3
        assert settings.get("codec_pipeline.batch_size") == 1
    assert settings.get("async.concurrency") == 10
    assert settings.get("codec_pipeline.path").endswith("BatchedCodecPipeline")
    assert settings.get("array.target_shard_size_bytes", 5) is None
    assert settings.get("json_indent") == 2
    assert settings.get("async.no_such", None) is None


def test_settings_by_the_beginning_of_their_names() -> None:
    settings = Config()
    with settings.set({"array.order": "F", "codecs.gzip": "some.Codec", "threads": 3}):
        assert settings.get("array")["order"] == "F"
        assert settings.get("codec_pipeline")["batch_size"] == 1
        assert settings.get("codecs") == {"gzip": "some.Codec"}
        assert settings.get("threading") == {"max_workers": 3}
    assert "array" in settings
    assert "arr" not in settings
    with pytest.raises(KeyError):
        settings.get("arr")


def test_settings_are_printed_and_refreshed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Config()
    settings.set({"array.order": "F"})
    settings.pprint()
    assert "'array.order': 'F'" in capsys.readouterr().out
    monkeypatch.setenv("ZARDINE_THREADS", "3")
    settings.refresh()
    assert (settings.get("array.order"), settings.get("threads")) == ("C", 3)


def test_the_environment_gives_first_values() -> None:
    code = (
        "import json, zardine; c = zardine.config; "
        "print(json.dumps([c['array.order'], c['threads'], c['array.checksum'], c['array.write_empty_chunks']]))"
    )
    changed = {"ARRAY__ORDER": "F", "THREADS": "3", "ARRAY__CHECKSUM": "false", "ARRAY__WRITE_EMPTY_CHUNKS": "true"}
    environment = {f"ZARDINE_{name}": value for name, value in changed.items()}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert json.loads(ran.stdout) == ["F", 3, False, True]


@pytest.mark.parametrize(
    ("word", "means"),
    [(word, True) for word in ("True", "true", "1", "yes", "ON")]
    + [(word, False) for word in ("False", "0", "No", "off")],
)
@pytest.mark.parametrize("name", [name for name, value in DEFAULTS.items() if isinstance(value, bool)])
def test_flags_are_read_from_the_environment(
    name: str, word: str, means: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZARDINE_" + name.upper().replace(".", "__"), word)
    settings = Config()
    assert bool(settings[name]) is means
    check_setting(name, settings[name])


def test_what_is_no_flag_is_told_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARDINE_ALLOW_LOST_UPDATES", "perhaps")
    zardine.config.refresh()
    try:
        with pytest.raises(ValueError, match="allow_lost_updates is True or False, not 'perhaps'"):
            is_on("allow_lost_updates")
    finally:
        monkeypatch.undo()
        zardine.config.refresh()
    assert not is_on("allow_lost_updates")


def test_number_of_threads() -> None:
    assert thread_count() >= 1
    for given, used in ((1, 1), (5, 5), (0, 1), (-3, 1)):
        with zardine.config.set({"threads": given}):
            assert thread_count() == used


def test_order_of_results() -> None:
    data = np.arange(12).reshape(3, 4)
    with zardine.config.set({"array.order": "F"}):
        array = zardine.create_array(None, data=data)
    assert array.order == "F"
    assert array[...].flags.f_contiguous
    assert not array[...].flags.c_contiguous
    assert array.with_config({"order": "C"})[...].flags.c_contiguous
    assert zardine.open_array(array.store, config={"order": "F"}).order == "F"


def test_empty_chunks_and_checksums() -> None:
    with zardine.config.set({"array.write_empty_chunks": True, "array.checksum": False}):
        array = zardine.create_array(None, shape=(4,), dtype="i4", chunks=(2,))
        array[...] = 0
    assert array.nchunks_initialized == 2
    assert "crc32c" not in [codec.name for codec in array.codecs]
    plain = zardine.create_array(None, shape=(4,), dtype="i4", chunks=(2,))
    plain[...] = 0
    assert plain.nchunks_initialized == 0
    assert [codec.name for codec in plain.codecs][-1] == "crc32c"


@pytest.mark.parametrize("wrong", [{"order": "X"}, {"ordr": "C"}, "C", 5, [("order", "C")]])
def test_wrong_array_settings(wrong: Any) -> None:
    store = MemoryStore()
    with pytest.raises((TypeError, ValueError)):
        zardine.create_array(store, shape=(1,), dtype="i4", config=wrong)
    assert list(store.list()) == []
    array = zardine.create_array(store, shape=(1,), dtype="i4")
    with pytest.raises((TypeError, ValueError)):
        array.with_config(wrong)


def test_array_config_is_a_value() -> None:
    config = zardine.ArrayConfig(order="F", write_empty_chunks=True)
    assert config == zardine.ArrayConfig(**config.to_dict())
    array = zardine.create_array(None, shape=(1,), dtype="i4", config=config)
    assert array.config == config
    assert array.with_config(zardine.ArrayConfig()).config == zardine.ArrayConfig()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("default_zarr_format", 4, "one of 3, 2, 1, not 4"),
        ("default_zarr_format", "3", "one of 3, 2, 1"),
        ("array.order", "X", "'C' or 'F', not 'X'"),
        ("array.write_strategy", "x", "one of 'rewrite', 'append', 'in_place', not 'x'"),
        ("array.chunk_order", ["c"], "one of 'c', 'f', 'morton', 'as_written'"),
        ("array.most_unused", "half", "a share from 0 to 1, not 'half'"),
        ("array.most_unused", 1.5, "a share from 0 to 1"),
        ("array.most_unused", float("nan"), "a share from 0 to 1"),
        ("array.write_empty_chunks", "yes", "True or False, not 'yes'"),
        ("array.read_missing_chunks", None, "True or False"),
        ("array.cache", "a lot", "number of bytes"),
        ("array.cache", 1.5, "number of bytes"),
        ("array.checksum", 2, "True or False"),
        ("window_bytes", -1, "number of bytes"),
        ("threads", "4", "None or an integer"),
        ("threading.max_workers", 1.5, "None or an integer"),
        ("cache.shard_index_bytes", -1, "0 or more"),
    ],
)
def test_values_that_cannot_be_are_refused_at_once(name: str, value: Any, text: str) -> None:
    settings = Config()
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        settings.set({"array.order": "F", name: value})
    assert settings["array.order"] == "C"  # nothing was changed
    field = name.removeprefix("array.")
    if name.startswith("array.") and name != "array.checksum":
        with pytest.raises((TypeError, ValueError), match=rf"^{field}.*{re.escape(text)}"):
            zardine.zeros((4,), config={field: value})


def test_values_of_other_types_that_mean_the_same() -> None:
    settings = Config()
    settings.set(
        {"array.write_empty_chunks": np.bool_(True), "array.checksum": 0, "array.most_unused": np.float32(0.5)}
    )
    settings.set(
        {"array.cache": "1 MiB", "window_bytes": np.int64(2**20), "threads": np.int64(2), "array.most_unused": 1}
    )
    zardine.zeros((4,), config={"cache": None, "write_empty_chunks": 1})
