"""The page, in a real browser: what it draws and says is what NumPy, the index and the log of the store say."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import zardine
from server import docs_picture
from server.browser import Page, chromium, grey, see
from servers import servers
from zardine.server.running import Server

__all__ = ["chromium", "see"]


def test_a_picture_has_the_colours_of_the_values(see: Any, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(3, 40, 60)).astype("f4")
    zardine.create_array(tmp_path / "a.zarr", name="x", data=values, chunks=(1, 16, 16), shards=(2, 32, 32))
    page = see(tmp_path / "a.zarr", "x", map="grey", lo=-2, hi=2)
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((40, 60))[..., 0], grey(values[0], -2, 2))
    page.page.locator("#axis-0").press("ArrowRight")
    page.wait_for_picture(2)
    np.testing.assert_array_equal(page.elements((40, 60))[..., 1], grey(values[1], -2, 2))
    page.page.select_option("#map", "viridis")
    shown = page.elements((40, 60))
    assert shown[np.unravel_index(values[1].argmin(), (40, 60))].tolist() == [68, 1, 84, 255]
    assert shown[np.unravel_index(values[1].argmax(), (40, 60))].tolist() == [253, 231, 37, 255]
    page.page.fill("#axes input[type=number]", "2")
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("() => location.hash.includes('at=2,0,0')")
    page.page.reload()
    page.wait_for_picture()
    assert page.page.input_value("#axis-0") == "2"  # the address says all of it


@pytest.mark.parametrize("kind", ["v1", "zip", "s3"])
def test_pictures_of_other_formats_and_stores(see: Any, tmp_path: Path, kind: str) -> None:
    values = np.random.default_rng(1).integers(-500, 500, (20, 30), dtype="i2")
    if kind == "v1":
        place: Any = tmp_path / "a.zarr"
        zardine.create_array(place, data=values, chunks=(8, 16), zarr_format=1)
    elif kind == "zip":
        place = tmp_path / "a.zip"
        with zardine.open_group(place, mode="w") as root:
            root.create_array("x", data=values, chunks=(8, 16), shards=(16, 32))
    else:
        options = servers.s3_options()
        place = zardine.open_group(f"s3://{servers.new_bucket()}", mode="w", storage_options=options)
        place.create_array("x", data=values, chunks=(8, 16), shards=(16, 32))
    page = see(place, "" if kind == "v1" else "x", map="grey", lo=-500, hi=500)
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((20, 30))[..., 0], grey(values, -500, 500))
    page.point(7, 9, (20, 30))
    page.page.wait_for_selector("#status[data-at='7,9']")
    assert page.text("#status").endswith(f"axis 0 7, axis 1 9: {values[7, 9]}")
    assert page.text("#read").startswith("all ")


def test_the_exact_value_under_the_pointer(see: Any, tmp_path: Path) -> None:
    values = np.array([[2**53 + 1, 2**62 + 1], [-(2**63), 0]])
    zardine.create_array(tmp_path / "a.zarr", data=values)
    page = see(tmp_path / "a.zarr")
    page.wait_for_picture()
    for row, column in np.ndindex(2, 2):
        page.point(row, column, (2, 2))
        page.page.wait_for_selector(f"#status[data-at='{row},{column}']")
        assert page.text("#status") == f"axis 0 {row}, axis 1 {column}: {values[row, column]}"


def test_four_looks(see: Any, tmp_path: Path) -> None:
    """Damaged, not stored, the fill value, NaN, and a value: all look different, and say what they are."""
    array = zardine.create_array(
        tmp_path / "a.zarr",
        shape=(40, 40),
        chunks=(10, 10),
        dtype="f4",
        fill_value=-9,
        config={"write_empty_chunks": True},
    )
    values = np.full((40, 40), 0.5, "f4")
    values[:10, :10], values[:10, 10:20] = np.nan, -9
    array[:20, :20], array[20:, 20:] = values[:20, :20], values[20:, 20:]
    damaged = bytearray((tmp_path / "a.zarr/c/1/0").read_bytes())
    damaged[5] ^= 1
    (tmp_path / "a.zarr/c/1/0").write_bytes(damaged)
    page = see(tmp_path / "a.zarr", map="viridis", lo=0, hi=1)
    page.wait_for_picture()
    shown = page.pixels()
    size = np.array(shown.shape[:2]) // 4
    looks = {}
    for name, row, column in [("nan", 0, 0), ("fill", 0, 1), ("damaged", 1, 0), ("value", 1, 1), ("missing", 0, 3)]:
        block = shown[row * size[0] + 4 : (row + 1) * size[0] - 4, column * size[1] + 4 : (column + 1) * size[1] - 4]
        looks[name] = frozenset(map(tuple, block.reshape(-1, 4).tolist()))
    assert looks["value"] == {(33, 145, 140, 255)}
    assert len(set(looks.values())) == 5
    assert page.text("#read") == "all 16 chunks read, 8 not stored, 1 damaged"
    page.point(15, 5, (40, 40))
    page.page.wait_for_selector("#status[data-at='15,5']")
    assert "crc32c" in page.text("#status")


def test_strings_structs_and_times_are_tables(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("text", data=np.array(["a", "é<b>", ""], dtype=np.dtypes.StringDType()))
    root.create_array("struct", data=np.array([(1, 0.1), (2, 0.2)], dtype=[("n", "i8"), ("v", "f4")]))
    root.create_array("time", data=np.array(["2020-02-29", "NaT"], "M8[D]"))
    root.create_array("complex", data=np.array([1 + 2j, 0.1j]))
    root.create_array("scalar", data=np.float64(0.1))
    page = see(tmp_path / "a.zarr", "text")
    cells = "() => [...document.querySelectorAll('#cells td')].map(each => each.textContent)"
    for path, expected in [
        ("text", ["a", "é<b>", ""]),
        ("struct", ["1", "0.1", "2", "0.2"]),
        ("time", ["2020-02-29", "NaT"]),
        ("complex", ["(1+2j)", "0.1j"]),
        ("scalar", ["0.1"]),
    ]:
        page.open(path)
        if not page.page.evaluate("() => document.getElementById('table').open"):
            page.page.click("#table summary")
        page.page.wait_for_selector("#cells td")
        assert page.page.evaluate(cells) == expected


def test_a_bright_pixel_in_a_hundred_million(see: Any, tmp_path: Path) -> None:
    """A large array is sampled, then read while one looks; under max nothing is overlooked at the end."""
    array = zardine.create_array(
        tmp_path / "a.zarr", shape=(10_000, 10_000), chunks=(500, 500), shards=(2500, 2500), dtype="u1", fill_value=7
    )
    array[:5000] = 1
    array[7890, 1234] = 200
    page = see(tmp_path / "a.zarr", map="grey", lo=0, hi=256, reduce="max")
    page.wait_for_picture()
    assert page.text("#read").startswith("all 400 chunks read, 199 not stored")
    shown = page.pixels()[..., 0]
    y, x = int(7890 / 10_000 * shown.shape[0]), int(1234 / 10_000 * shown.shape[1])
    assert (shown[y - 2 : y + 3, x - 2 : x + 3] == 200).any()
    assert set(np.unique(shown[: shown.shape[0] // 2 - 1])) == {1}


def test_an_array_of_ten_thousand_million_elements(see: Any, tmp_path: Path) -> None:
    """The first picture is a sample with a label, whatever the size; it grows, and ends when something else is seen."""
    array = zardine.create_array(tmp_path / "a.zarr", shape=(100_000, 100_000), chunks=(1000, 1000), dtype="u1")
    array[:3000, :3000] = np.arange(3000, dtype="u1")
    row = array[0:1000, 0:1000].tobytes()
    stored = (tmp_path / "a.zarr/c/0/0").read_bytes()
    for i in range(100):  # all of it is stored, as copies of one chunk
        for j in range(100):
            target = tmp_path / f"a.zarr/c/{i}/{j}"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(stored)
    assert array[99_000:, 99_000:].tobytes() == row
    page = see(tmp_path / "a.zarr", map="grey", lo=0, hi=256, reduce="max")
    page.page.wait_for_function("() => document.getElementById('picture')?.dataset.drawn >= 2")
    assert "% of 10000 chunks read" in page.text("#read")
    shown = page.pixels()
    assert (shown[..., 3] == 255).all()  # guessed where nothing was read
    seen = int(page.page.get_attribute("#read", "data-chunks"))
    page.page.wait_for_function("n => Number(document.getElementById('read').dataset.chunks) > n", arg=seen)
    page.page.goto(page.page.url.split("#")[0] + "#name=data&box=0,500,0,500&map=grey&lo=0&hi=256")
    page.page.wait_for_function("() => document.getElementById('read').textContent == 'the one chunk read'")
    page.wait_for_picture()
    expected = grey(array[:500, :500], 0, 256)
    np.testing.assert_array_equal(page.elements((500, 500))[..., 0], expected)


def test_a_picture_that_stays_a_sample_says_so(see: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zardine.server.viewer.picture._MOST_SAMPLED", 100)
    zardine.create_array(tmp_path / "a.zarr", data=np.ones((160, 160), "u1"), chunks=(2, 2), shards=(160, 160))
    page = see(tmp_path / "a.zarr")
    page.wait_for_picture()
    share = f"{int(page.page.get_attribute('#read', 'data-chunks')) / 64:.0f}"
    assert 1 <= int(share) < 5
    assert page.text("#read").endswith("% of 6400 chunks read, a sample from all over the picture: zoom in to see more")
    page.open("", box="0,16,0,16")
    page.wait_for_picture()
    assert page.text("#read") == "all 64 chunks read"


def test_a_slider_decodes_what_is_shown(see: Any, tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a.zarr", shape=(200, 256, 256), chunks=(1, 256, 256), dtype="i4")
    array[...] = np.arange(200)[:, None, None]
    page = see(tmp_path / "a.zarr", map="grey", lo=0, hi=256)
    page.wait_for_picture()
    page.page.evaluate(
        "async () => { const slider = document.getElementById('axis-0');"
        " for (let i = 0; i < 200; i++) { slider.value = i; slider.dispatchEvent(new Event('input'));"
        " if (i % 10 == 0) await new Promise(done => setTimeout(done, 5)); } }"
    )
    page.page.wait_for_function("() => document.getElementById('axis-0').value == '199'")
    page.page.wait_for_function(
        "() => document.getElementById('picture').getContext('2d').getImageData(9, 9, 1, 1).data[0] == 199"
    )
    drawn = int(page.page.get_attribute("#picture", "data-drawn"))
    decoded = int(page.page.get_attribute("#meter", "data-decoded"))
    assert decoded <= drawn < 150


def test_the_meter_of_two_stores_at_once(chromium: Any, tmp_path: Path) -> None:
    """Each store has counts of its own, which never fall, also where the tree asks the other one meanwhile."""
    zardine.create_array(tmp_path / "small.zarr", data=np.arange(4.0))
    group = zardine.create_group(tmp_path / "large.zarr")
    group.create_array("a", data=np.random.default_rng(1).random((600, 600)), chunks=(100, 100))
    for i in range(20):
        group.create_array(f"b{i}", shape=(3,), dtype="i4")
    with zardine.view({"small": tmp_path / "small.zarr", "large": tmp_path / "large.zarr"}) as shown:
        page = Page(chromium, shown.server)
        page.page.add_init_script(
            "window.said = [];"
            "const note = (meter) => meter && new MutationObserver(() => said.push(meter.textContent))"
            ".observe(meter, {childList: true});"
            " addEventListener('DOMContentLoaded', () => note(document.getElementById('meter')))"
        )
        page.open("a", name="large").wait_for_picture()
        for name, path in (("small", ""), ("large", "a"), ("small", ""), ("large", "a")):
            page.page.evaluate("address => { location.hash = address; }", f"#name={name}&path={path}")
            page.page.wait_for_function(
                "name => document.getElementById('title').textContent.startsWith(name)", arg=name
            )
            page.wait_for_picture()
            page.page.wait_for_timeout(200)
        said = page.page.evaluate("() => said")
        page.close()
    assert len(said) > 8
    assert not [text for text in said if "-" in text]
    totals: dict[str, list[int]] = {"small": [], "large": []}
    for text in said:
        found = re.fullmatch(
            r"this move: (\d+) requests, .*, (\d+) chunks decoded; this page, of (\w+): (\d+), .*", text
        )
        assert found is not None, text
        assert int(found[1]) <= int(found[4])
        totals[found[3]].append(int(found[4]))
    assert all(numbers == sorted(numbers) for numbers in totals.values()), totals
    assert all(totals.values())


def test_what_is_changed_is_told_and_not_mixed(see: Any, tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a.zarr", shape=(2, 20, 20), chunks=(1, 10, 10), dtype="u1")
    array[...] = 50
    page = see(tmp_path / "a.zarr", map="grey", lo=0, hi=256)
    page.wait_for_picture()
    array[0, :10, :10] = 150
    page.page.wait_for_selector("#notice:has-text('was changed')")
    assert set(np.unique(page.elements((20, 20))[..., 0])) == {50}
    page.page.click("#notice button")
    page.page.wait_for_function("() => document.getElementById('notice').hidden")
    page.page.wait_for_function(  # the picture of before counts as finished until the new one begins
        "() => document.getElementById('picture')?.getContext('2d').getImageData(0, 0, 1, 1).data[0] == 150"
    )
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((20, 20))[..., 0], array[0])
    page.faults.clear()  # the browser's own words for the answer "conflict"


def test_a_group_that_is_changed_is_told_of(see: Any, tmp_path: Path) -> None:
    """The notice comes, and what is shown then has the new member, in the tree, too, with what was open there."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": "before"})
    root.create_array("g/x", data=np.arange(3))
    page = see(tmp_path / "a.zarr")
    page.page.click("#tree >> text=g")
    page.page.wait_for_selector("#tree >> text=x")
    page.open("")
    page.page.click("#tree >> text=g")
    page.page.wait_for_selector("#tree >> text=x")
    root.create_array("g/later", data=np.arange(3))
    page.page.wait_for_selector("#notice:has-text('was changed')")
    page.page.click("#notice button")
    page.page.wait_for_selector("#tree >> text=later")
    page.faults.clear()  # the browser's own words for the answer "conflict"


def test_links_to_viewers_of_others(see: Any, tmp_path: Path) -> None:
    """Each gets an address that it can read, and what the server has to be started with is said."""
    zardine.create_array(tmp_path / "a.zarr", name="g/x", data=np.arange(16).reshape(4, 4))
    page = see(tmp_path / "a.zarr", "g/x")
    page.page.click("#about summary")
    links = page.page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('#elsewhere a')].map(a => [a.textContent, a.href]))"
    )
    base = f"{page.server.url}v3/data"
    neuroglancer = json.loads(unquote(links.pop("neuroglancer").partition("#!")[2]))
    assert [each["source"] for each in neuroglancer["layers"]] == [f"{base}/g/x/|zarr3:"]
    assert links == {
        "vizarr": f"https://hms-dbmi.github.io/vizarr/?source={quote(f'{base}/g/x', safe='')}",
        "Browzarr": f"https://browzarr.io/?store={quote(f'{base}/g', safe='')}",
    }
    assert "--cors https://browzarr.io" in page.text("#elsewhere")
    page.open("g")
    assert page.page.inner_text("#elsewhere a") == "Browzarr"


def test_where_it_is_stored(see: Any, tmp_path: Path) -> None:
    array = zardine.create_array(
        tmp_path / "a.zarr", name="x", shape=(40, 40), chunks=(10, 10), shards=(20, 20), dtype="f8"
    )
    array[:20] = np.random.default_rng(1).normal(size=(20, 40))
    page = see(tmp_path / "a.zarr", "x", stored=1)
    page.wait_for_picture()
    page.point(15, 25, (40, 40), click=True)
    page.page.wait_for_selector("#chunk[data-state=stored]")
    facts = page.page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('#chunk tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent)))"
    )
    index = np.frombuffer((tmp_path / "a.zarr/x/c/0/1").read_bytes()[-68:-4], "<u8").reshape(2, 2, 2)
    offset, length = index[1, 0].tolist()
    assert facts["Key"] == "x/c/0/1"
    assert facts["Inner chunk"] == "(1, 2)"
    assert facts["Bytes"] == f"{length} from offset {offset:,}"
    assert "crc32c" in facts["Codecs"]
    page.page.wait_for_selector("#profile .uplot")
    page.point(35, 5, (40, 40), click=True)
    page.page.wait_for_selector("#chunk[data-state=missing]")


def test_verifying_from_the_page(see: Any, tmp_path: Path) -> None:
    """Faults are found with progress, listed, and outlined where they are; missing shards are counted."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    array = root.create_array("g/x", shape=(40, 40), chunks=(10, 10), shards=(20, 20), dtype="u1", fill_value=3)
    array[:, :20] = 7
    shard = bytearray((tmp_path / "a.zarr/g/x/c/1/0").read_bytes())
    shard[2] ^= 4
    (tmp_path / "a.zarr/g/x/c/1/0").write_bytes(shard)
    page = see(tmp_path / "a.zarr", "g/x", stored=1)
    page.wait_for_picture()
    page.page.wait_for_function("() => document.getElementById('objects').textContent")
    assert page.text("#objects") == "2 of 4 shards in view are stored"
    page.page.click("#verify")
    page.page.wait_for_selector("#faults[data-faults='1']")
    report = zardine.verify(tmp_path / "a.zarr", path="g/x")
    assert str(report.faults[0]) in page.text("#faults")
    page.page.click("#faults button")
    page.page.wait_for_selector("#chunk[data-state=damaged]")
    assert "g/x/c/1/0" in page.text("#chunk")
    page.page.click("#advise")
    page.page.wait_for_selector("#advice td")
    assert "a series along axis 1: requests" in page.text("#advice")


def test_levels_and_channels(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    fine = np.zeros((2, 2048, 2048), "u1")
    fine[0], fine[1] = 100, 200
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    scales = [{"axes": axes, "datasets": [{"path": "0"}, {"path": "1"}]}]
    window = {"start": 0, "end": 255}
    channels = [{"color": "FF0000", "window": window}, {"color": "00FF80", "window": window}]
    root.attrs["ome"] = {"version": "0.5", "multiscales": scales, "omero": {"channels": channels}}
    root.create_array("0", data=fine, chunks=(1, 512, 512))
    root.create_array("1", data=fine[:, ::4, ::4] + 1, chunks=(1, 512, 512))
    page = see(tmp_path / "a.zarr", "0")
    page.wait_for_picture()
    assert "of the level 1" in page.text("#read")
    assert np.unique(page.pixels().reshape(-1, 4), axis=0).tolist() == [[101, 201, 101, 255]]
    page.page.goto(page.page.url + "&box=0,100,0,100")
    page.page.reload()
    page.wait_for_picture()
    assert "level" not in page.text("#read")
    assert np.unique(page.pixels().reshape(-1, 4), axis=0).tolist() == [[100, 200, 100, 255]]
    image = np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype="u1")
    root.create_array("photo", data=image, chunks=(10, 10, 3))
    page.open("photo")
    page.wait_for_picture()
    np.testing.assert_array_equal(page.elements((20, 30))[..., :3], image)
    image = np.dstack((image, np.where(image[..., 0] > 99, 255, 0).astype("u1")))
    image[0, 0, 3] = 128
    root.create_array("cut-out", data=image, chunks=(10, 10, 4))
    page.open("cut-out")
    page.wait_for_picture()
    shown = page.elements((20, 30))
    np.testing.assert_array_equal(shown[..., 3], image[..., 3])
    opaque = image[..., 3] == 255
    np.testing.assert_array_equal(shown[opaque], image[opaque])
    drawn = int(page.page.get_attribute("#picture", "data-drawn"))
    page.page.uncheck("#channels")
    page.wait_for_picture(drawn + 1)
    assert (page.elements((20, 30))[..., 3] == 255).all()


def test_a_node_far_down_and_one_that_is_not_there(see: Any, tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "a.zarr")
    deep = group.create_group("one/two")
    deep.create_array("words", data=np.array([["a", "bc"]]))
    deep.create_array("alone", data=np.array(5.5))
    page = see(tmp_path / "a.zarr", "one/two/words")
    marked = page.page.locator("#tree [aria-current=true]")
    marked.wait_for()
    assert marked.inner_text().startswith("words")
    assert "float64, 8 B" in page.text("#tree")
    assert page.text("#chunk") == ""  # there is no picture to click into
    page.open("one/two/alone")
    page.page.goto(f"{page.server.url}view/#name={page.server.names[0]}&path=one/three")
    page.page.wait_for_selector("#main .error")
    assert page.text("#main") == "there is no array or group 'one/three' here"
    assert [each for each in page.faults if "404" not in each] == []
    page.faults.clear()


def test_addresses_that_make_no_sense(see: Any, tmp_path: Path) -> None:
    """What they say beyond the array is passed over: something is seen, and no question is refused."""
    values = np.arange(48).reshape(2, 4, 6)
    zardine.create_array(tmp_path / "a.zarr", data=values)
    plain = {"lo": 0, "hi": 48, "map": "grey"}
    page = see(tmp_path / "a.zarr", **plain)
    for name, value in [
        *(
            ("axes", "9,1"),
            ("axes", "0,0"),
            ("at", "99,99,99"),
            ("at", "-1,5"),
            ("reduce", "x"),
            ("field", "__proto__"),
        ),
        *(("box", each) for each in ("5,2,9,1", "0,1e99,0,5", "0,1", "-3,2,0,2", "0,4,2,2")),
    ]:
        page.open("", **plain, **{name: value})
        page.wait_for_picture()
        assert not page.page.is_visible("#notice")
        assert page.text("#read") == "the one chunk read"
        plane = 1 if value == "99,99,99" else 0
        np.testing.assert_array_equal(
            page.elements((4, 6))[..., 0], grey(values[plane], 0, 48), err_msg=f"{name}={value}"
        )


def test_a_legend_of_values_that_are_names(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    values = np.array([[1, 2], [3, 13]], "i2")
    names = {"flag_values": [1, 2, 3], "flag_meanings": "land sea ice"}
    root.create_array("cover", data=values, attributes=names)
    root.create_array("plain", data=values)
    page = see(tmp_path / "a.zarr", "cover")
    page.wait_for_picture()
    legend = """() => [...document.querySelectorAll('#categories span')].map(each => [each.textContent,
        getComputedStyle(each.firstChild).backgroundColor.match(/[0-9]+/g).map(Number)])"""
    shown = page.elements((2, 2))[..., :3].tolist()
    named = page.page.evaluate(legend)
    assert named == [["1 land", shown[0][0]], ["2 sea", shown[0][1]], ["3 ice", shown[1][0]]]
    assert len({str(colour) for _, colour in named}) == 3
    assert not page.page.is_visible(".bar")
    page.open("plain")
    page.wait_for_picture()
    assert not page.page.is_visible("#categories")
    page.page.select_option("#map", "categories")
    seen = page.page.evaluate(legend)
    shown = page.elements((2, 2))[..., :3].reshape(-1, 3).tolist()
    assert seen == [[str(value), colour] for value, colour in zip(values.ravel(), shown, strict=True)]


def test_keyboard_and_a_small_screen(see: Any, tmp_path: Path) -> None:
    values = np.arange(400).reshape(20, 20)
    zardine.create_array(tmp_path / "a.zarr", name="g/x", data=values, chunks=(10, 10))
    page = see(tmp_path / "a.zarr", "g/x", options={"viewport": {"width": 360, "height": 640}})
    page.wait_for_picture()
    assert page.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.page.focus("#picture")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    page.page.wait_for_selector("#status[data-at='11,10']")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#chunk[data-state=stored]")
    page.page.keyboard.press("+")
    page.page.wait_for_function("() => location.hash.includes('box=')")
    page.page.keyboard.press("0")
    page.page.wait_for_function("() => !location.hash.includes('box=')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(see: Any, tmp_path: Path, scheme: str) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": "a"})
    root.create_array("x", data=np.arange(800.0).reshape(2, 20, 20), chunks=(1, 10, 10))
    page = see(tmp_path / "a.zarr", "x", options={"color_scheme": scheme})
    page.wait_for_picture()
    page.point(5, 5, (20, 20), click=True)
    page.page.wait_for_selector("#chunk[data-state=stored]")
    page.page.wait_for_selector("#profile .uplot")
    for summary in page.page.query_selector_all("summary"):
        summary.click()
    page.page.wait_for_selector("#cells td")
    page.page.evaluate(servers.axe().read_text())
    rules = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}[scheme]
    found = page.page.evaluate("rules => axe.run(rules)", rules)
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []


def test_behind_a_path_of_another_server(chromium: Any, tmp_path: Path) -> None:
    """All addresses are relative: the page works where a proxy, or an application around it, puts a path in front."""
    zardine.create_array(tmp_path / "a.zarr", name="x", data=np.arange(16).reshape(4, 4))
    inner = zardine.serve.app({"data": tmp_path / "a.zarr"}, listing=True)
    around = Starlette(routes=[Mount("/user/me/proxy", app=inner)])
    with Server({"data": None}, around, "127.0.0.1", 0, None) as server:
        page = chromium.new_page()
        page.goto(f"{server.url}user/me/proxy/view")
        page.click("#tree >> text=x")
        page.wait_for_selector("#picture[data-finished=true]")
        assert page.evaluate(
            "() => performance.getEntriesByType('resource').every(e => e.name.includes('/me/proxy/view/'))"
        )
        page.close()


def test_what_is_stored_is_text_and_no_markup(see: Any, tmp_path: Path) -> None:
    """Names, attributes, units and strings of others run nothing and add nothing to the page."""
    evil = "<img src=x onerror='window.owned=1'><script>window.owned=1</script>"
    root = zardine.open_group(tmp_path / "a.zarr", mode="w", attributes={evil: evil, "title": [evil, {evil: evil}]})
    array = root.create_array("<b>x", data=np.arange(4.0), dimension_names=(evil,), attributes={"units": evil})
    array.attrs["flag_values"], array.attrs["flag_meanings"] = [0, 1, 2, 3], "<i>a</i> b c d"
    root.create_array("text", data=np.array([evil], "T"))
    page = see(tmp_path / "a.zarr")
    page.page.wait_for_selector("#main td")
    for path in ("<b>x", "text"):
        page.open(quote(path))
        page.page.wait_for_function("() => document.querySelector('#about')")
        page.page.evaluate("() => document.querySelectorAll('details').forEach(each => each.open = true)")
        page.page.wait_for_selector("#cells td")
    assert page.page.evaluate(
        "() => [window.owned, document.querySelectorAll('main img, main b, main i, nav b').length]"
    ) == [
        None,
        0,
    ]


def test_the_command_and_a_frame_in_a_notebook(chromium: Any, tmp_path: Path) -> None:
    values = np.arange(100, dtype="u1").reshape(10, 10)
    array = zardine.create_array(tmp_path / "a.zarr", data=values)
    command = [sys.executable, "-m", "zardine", "view", str(tmp_path / "a.zarr"), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        page = chromium.new_page()
        page.goto(found["url"])
        page.wait_for_selector("#picture[data-finished=true]")
        page.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
    with array.view(height=500) as shown, ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as notebook:
        threading.Thread(target=notebook.serve_forever, daemon=True).start()
        Notebook.body = f"<!doctype html><title>a notebook</title>{shown._repr_html_()}".encode()
        page = chromium.new_page()
        page.goto(f"http://localhost:{notebook.server_port}/")
        page.frame_locator("iframe").locator("#picture[data-finished=true]").wait_for()
        page.close()
        notebook.shutdown()
    assert "stopped" in repr(shown)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a display")
@pytest.mark.parametrize(
    ("name", "variable", "words"),
    [
        (None, None, "this session has no display"),
        ("w3m", None, "this session has none but one of text"),
        ("xdg-open", "{program}", "this session has no display"),
        ("xdg-open", "{program} %s", "this session has no display"),
        ("firefox", "firefox", "this session has no display"),
        ("helper-of-an-editor", "{program}", None),
    ],
)
def test_without_a_display(tmp_path: Path, name: str | None, variable: str | None, words: str | None) -> None:
    """One sentence says why no browser is opened; what ``BROWSER`` names is, where it needs no display."""
    zardine.create_array(tmp_path / "a.zarr", data=np.arange(4))
    (tmp_path / "bin").mkdir()
    (tmp_path / "runs").touch()
    if name is not None:
        program = tmp_path / "bin" / name
        program.write_text(
            f'#!/bin/sh\necho "$1" > {tmp_path}/opening\nmv {tmp_path}/opening {tmp_path}/opened\n'
            f"while [ -e {tmp_path}/runs ]; do sleep 0.1; done\n"
        )
        program.chmod(0o755)
    clean = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    # the program needs sleep, and mv; whatever browsers there are beside these are none of this test's
    for tool in ("mv", "sleep"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    environment = {**clean, "PATH": str(tmp_path / "bin"), "TERM": "xterm"}
    if variable is not None:
        environment["BROWSER"] = variable.format(program=tmp_path / "bin" / str(name))
    command = [sys.executable, "-m", "zardine", "view", str(tmp_path / "a.zarr")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "Ctrl-C ends it.\n"))
        url = lines[0].split()[-1]
        opened = tmp_path / "opened"
        while words is None and not opened.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait()
        (tmp_path / "runs").unlink()
    assert url.endswith("/view/")
    said = [line for line in lines if line.startswith("No browser")]
    assert len(said) == (words is not None)
    assert words is None or words in said[0]
    assert opened.exists() == (words is None)
    if words is None:  # other users see the command line: it has a code that is valid once, and not the token
        token = url.split("/")[-3]
        address = opened.read_text().strip()
        assert address.startswith(f"http://{url.split('/')[2]}/open/")
        assert token not in address


class Notebook(BaseHTTPRequestHandler):
    """A page of another origin of this machine."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_thousands_of_nodes(see: Any, tmp_path: Path) -> None:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("n00000", data=np.arange(4))
    for i in range(1, 3000):
        (tmp_path / f"a.zarr/n{i:05}").mkdir()
        (tmp_path / f"a.zarr/n{i:05}/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    page = see(tmp_path / "a.zarr")
    page.page.wait_for_selector("#tree >> text=n00099")
    page.page.click("#tree >> text=2900 more")
    page.page.wait_for_selector("#tree >> text=n00150")
    page.page.fill("#filter", "n0287")
    page.page.wait_for_selector("#tree >> text=n02879")
    assert page.page.locator("#tree li li").count() == 10


def test_the_picture_of_the_docs(chromium: Any, tmp_path: Path) -> None:
    """It can be made, and is of the page as it is now: as large, with as much to see."""
    docs_picture.shoot(chromium, docs_picture.write(tmp_path), tmp_path / "view.png")
    made, kept = ((each / "view.png").read_bytes() for each in (tmp_path, docs_picture.PICTURE.parent))
    assert made[:24] == kept[:24]  # the head of a PNG, which has its size
    assert 0.5 < len(made) / len(kept) < 2
