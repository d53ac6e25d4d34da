"""Whose failures count together: the client's address, as far as trusted proxies tell it."""

from __future__ import annotations

import logging

import pytest

from metalake import client_address
from metalake.client_address import client_of, counted, parse_proxies
from metalake.errors import Invalid
from tests.cases import each

PROXIES = parse_proxies(["10.0.0.0/8", "fd00::/8"])
X, F = "HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED"


def client(peer: str, **headers: str) -> str:
    return client_of({"REMOTE_ADDR": peer, **headers}, PROXIES)


@pytest.mark.parametrize(
    ("address", "as_counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", ""),
        ("/run/metalake.sock", ""),
    ],
)
def test_an_address_as_it_is_counted(address: str, as_counted: str) -> None:
    assert counted(address) == as_counted
    assert client(address) == as_counted


@each(
    "said, found",
    [
        ("203.0.113.7", "203.0.113.7"),
        ("198.51.100.1, 203.0.113.7", "203.0.113.7"),  # what the client wrote itself lies further left
        ("203.0.113.7, 10.1.2.3", "203.0.113.7"),  # two proxies of ours
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),  # nobody but proxies: the first of them
        ("203.0.113.7:51234", "203.0.113.7"),
        ("[2001:db8:1:2::1]:443", "2001:db8:1:2::/64"),
        ("198.51.100.1, unknown", "10.0.0.1"),
        ("198.51.100.1, unknown, 10.1.2.3", "10.1.2.3"),
        ("", "10.0.0.1"),
        (",", "10.0.0.1"),
    ],
)
def test_what_a_trusted_proxy_says(said: str, found: str) -> None:
    assert client("10.0.0.1", **{X: said}) == found
    assert client("fd00::1", **{X: said}) == found.replace("10.0.0.1", "fd00::/64")
    assert client("192.0.2.1", **{X: said}) == "192.0.2.1", "nobody else is believed"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("for=203.0.113.7", "203.0.113.7"),
        ("for=198.51.100.1, For=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"),
        ('proto=https;for="[2001:db8:1:2::1]:4711"', "2001:db8:1:2::/64"),
        ("for=198.51.100.1, for=_hidden", "10.0.0.1"),
        ("for=198.51.100.1, proto=https", "10.0.0.1"),
        ("before=203.0.113.7", "10.0.0.1"),
    ],
)
def test_the_header_of_the_standard(said: str, found: str) -> None:
    assert client("10.0.0.1", **{F: said}) == found
    assert client("192.0.2.1", **{F: said}) == "192.0.2.1"


def test_a_header_that_the_proxy_only_passed_on_is_not_believed() -> None:
    assert client("10.0.0.1", **{X: "203.0.113.7", F: "for=198.51.100.1"}) == "10.0.0.1"
    assert client("10.0.0.1", **{X: "203.0.113.7", F: "for=203.0.113.7"}) == "203.0.113.7"


def test_a_socket_without_an_address_is_a_proxy_where_that_is_said() -> None:
    meta = {"REMOTE_ADDR": "", X: "203.0.113.7"}
    assert client_of(meta, PROXIES) == ""
    assert client_of(meta, parse_proxies(["unix"])) == "203.0.113.7"


@pytest.mark.parametrize("entry", ["proxy.example", "10.0.0.1/8", "10.0.0.0/33", "", "*"])
def test_a_setting_that_names_no_network(entry: str) -> None:
    with pytest.raises(Invalid, match="network"):
        parse_proxies([entry])


def test_a_forgotten_setting_is_told_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_address, "_has_warned", False)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            client("192.0.2.1", **{X: "203.0.113.7"})
    (record,) = caplog.records
    assert "192.0.2.1" in record.getMessage()
    assert "METALAKE_TRUSTED_PROXIES" in record.getMessage()
