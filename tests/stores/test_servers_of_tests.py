"""What tests do where a server or package is missing, and that the faulty proxy does what its tests rely on."""

from __future__ import annotations

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from servers import servers
from servers.fault_proxy import FaultProxy, answer, refusal


@pytest.mark.parametrize("value", ["", "0", "false", None])
def test_what_is_missing_is_skipped(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match=r"Azurite is not installed: 'make servers' does that"):
        servers.lacking("Azurite")
    with pytest.raises(pytest.skip.Exception, match="no_such_package"):
        servers.package("no_such_package.inner")


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_in_continuous_integration_it_fails(value, monkeypatch):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match=r"in continuous integration it must be: see 'make servers'"):
        servers.lacking("Azurite")
    with pytest.raises(pytest.fail.Exception, match="no_such_package"):
        servers.package("no_such_package.inner")
    assert servers.package("os.path").join("a", "b") == "a/b"


def test_the_proxy_tells_what_waited_for_what():
    web = servers.nginx()
    (web.root / "v").write_bytes(b"x")
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))

    def get(_=None):
        return urllib.request.urlopen(f"{proxy.url}/v").read()

    for _ in range(3):
        get()
    assert (proxy.rounds(), proxy.most_under_way, len(proxy.requests)) == (3, 1, 3)
    for together, rounds in ((4, 1), (2, 2)):
        proxy.reset()
        proxy.together = together
        with ThreadPoolExecutor(together) as pool:
            for _ in range(rounds):
                list(pool.map(get, range(together)))
        assert (proxy.rounds(), proxy.most_under_way) == (rounds, together)
    proxy.close()


def test_the_proxy_answers_for_the_server():
    proxy = FaultProxy(1)  # nobody is there
    proxy.always = lambda method, path, headers: (
        answer(200, b"yes", etag='"x"') if headers.get("a-b") == "c" else refusal(400, "Code", "why")
    )
    with urllib.request.urlopen(urllib.request.Request(proxy.url, headers={"A-B": "c"})) as found:
        assert (found.read(), found.headers["ETag"]) == (b"yes", '"x"')
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(proxy.url)
    with caught.value as refused:
        assert b"<Code>Code</Code><Message>why</Message>" in refused.read()
    assert [headers.get("a-b") for headers in proxy.headers] == ["c", None]
    proxy.close()
