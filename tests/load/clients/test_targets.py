"""Targets: addresses that only look like this machine are refused before anything is sent."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.errors import TargetRefused
from perflab.load.clients.targets import (
    PORTS,
    Origin,
    addresses,
    is_loopback,
    is_this_machine,
    looked_up,
    refuse_foreign,
    split,
)
from tests.support.examples import examples


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/", "http://127.0.0.2/", "http://127.255.255.254/a?b=c",
        "http://[::1]:8000/", "http://localhost:1/", "http://LOCALHOST/", "HTTPS://LocalHost",
        "ws://127.0.0.1:9/", "wss://[::1]/",
    ],
)  # fmt: skip
def test_this_machine_is_a_target(url: str) -> None:
    refuse_foreign(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.evil.org/", "http://127.0.0.1.evil.org/", "http://evil.org/127.0.0.1",
        "http://evil.org/?http://127.0.0.1/", "http://evil.org#@127.0.0.1/", "http://evil.org;127.0.0.1/",
        "http://127.0.0.1@evil.org/", "http://127.0.0.1:80@evil.org/", "http://evil.org@127.0.0.1/",
        "http://user:secret@127.0.0.1/", "http://@127.0.0.1/", "http://127.0.0.1\\@evil.org/",
        "http://evil.org\\@127.0.0.1/", "http://evil.org\\.localhost/", "http://127.0.0.1%2eevil.org/",
        "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/",
        "http://127.1/", "http://127.0.1/", "http://127.0.0.1./", "http://127.00.0.1/",
        "http://0.0.0.0/", "http://0/", "http://[::]/", "http://128.0.0.1/", "http://10.0.0.1/",
        "http://169.254.169.254/", "http://[fe80::1]/", "http://[::ffff:10.0.0.1]/",
        "http:///path", "http://:8000/", "http://", "http:", "", "/path", "//127.0.0.1/",
        "127.0.0.1:8000", "localhost", "file:///etc/passwd", "ftp://127.0.0.1/", "unix:/tmp/socket",
        "http://１２７.0.0.1/", "http://ⓛocalhost/", "http://lоcalhost/", "http://localhost。evil.org/",
        "http://127.0.0.1/\r\nHost: evil.org", "http://127.0.0.1/a b", "http://127.0.0.1\t.evil.org/",
        " http://127.0.0.1/", "http://127.0.0.1/\x00", "http://127.0.0.1:0/", "http://127.0.0.1:65536/",
        "http://127.0.0.1:-1/", "http://127.0.0.1:8o/", "http://[::1/", "http://[localhost]/",
        "http://[127.0.0.1]/",
    ],
)  # fmt: skip
@pytest.mark.promise
def test_addresses_that_only_look_like_this_machine_are_refused(url: str) -> None:
    with pytest.raises(TargetRefused):
        refuse_foreign(url)


def test_a_host_that_was_named_is_a_target_and_its_neighbours_are_not() -> None:
    refuse_foreign("http://Bench.Example.org:8080/", ["bench.EXAMPLE.org"])
    for url in ("http://example.org/", "http://a.bench.example.org/", "http://bench.example.org./"):
        with pytest.raises(TargetRefused, match="--allow-target"):
            refuse_foreign(url, ["bench.example.org"])


@pytest.mark.parametrize("host", ["fe80::1%eth0", "fe80::1%25eth0", "::1%1"])
def test_an_address_with_a_zone_is_refused_before_the_load_even_where_it_is_allowed(
    host: str,
) -> None:
    with pytest.raises(TargetRefused, match="holds a zone of an address"):
        refuse_foreign(f"http://[{host}]:8000/", [host])


def test_an_address_of_a_kind_that_does_not_exist_yet_is_refused() -> None:
    with pytest.raises(TargetRefused, match="no IPv6 address in its brackets"):
        refuse_foreign("http://[v1.fe]:8000/", ["v1.fe"])


ALPHABET = st.sampled_from([*"htps:/@[]%\\?#.;0127xflocahsevirg-", "localhost", "127.0.0.1", "::1"])


@settings(max_examples=examples(500), deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(ALPHABET, max_size=20).map("".join)))
def test_an_accepted_target_leads_to_loopback(rest: str) -> None:
    for url in (rest, f"http://{rest}"):
        try:
            refuse_foreign(url)
        except TargetRefused:
            continue
        origin, target = split(url)
        assert is_loopback(origin.host)
        assert target.startswith("/")
        assert 0 < origin.port < 65536
        # The client connects to the address that was checked.
        assert all(is_loopback(address[0]) for _, address in addresses(origin))


@given(st.sampled_from(sorted(PORTS)), st.integers(1, 65535), st.sampled_from(["a.b", "::1"]))
def test_an_origin_is_split_from_its_own_url(scheme: str, port: int, host: str) -> None:
    origin = Origin(scheme, host, port)
    assert split(f"{scheme}://{origin.authority}/p?q") == (origin, "/p?q")
    assert origin.authority.endswith(str(port)) or port == PORTS[scheme]


@pytest.mark.promise
@pytest.mark.parametrize(
    ("address", "is_here"), [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False)]
)
def test_a_host_name_is_this_machine_where_its_address_is(
    monkeypatch: pytest.MonkeyPatch, address: str, is_here: bool
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    where = [(family, socket.SOCK_STREAM, 6, "", (address, 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: where)
    assert is_this_machine("http://shop:80/") == is_here


def test_localhost_leads_to_the_one_of_its_addresses_on_which_a_server_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket(socket.AF_INET) as v4, socket.socket(socket.AF_INET6) as v6:
        v4.bind(("127.0.0.1", 0))
        port = v4.getsockname()[1]
        v6.bind(("::1", port))
        old, new = (socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port))
        both = [(family, socket.SOCK_STREAM, 6, "", where) for family, where in (new, old)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        origin = Origin("http", "localhost", port)
        assert looked_up(origin) == old, "nobody listens"
        v6.listen()
        assert looked_up(origin) == new
        v4.listen()
        assert looked_up(origin) == old
        v4.close()
        assert looked_up(Origin("http", "shop", port)) == old, "no other host is tried"


def test_a_localhost_that_resolves_to_another_machine_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_: str, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(socket.gaierror):
        addresses(Origin("http", "localhost", 80))
