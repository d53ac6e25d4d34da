"""Whom a request is for and what it asks for: foreign hosts and odd targets, through the server itself."""

from __future__ import annotations

import re
import socket
from contextlib import nullcontext
from typing import Any

import orjson
import pytest
from django.test import Client
from django.test.client import RequestFactory
from django.urls import URLPattern, get_resolver

from authz.models import User
from benchmarks.http import basic
from metalake.errors import Invalid
from metalake.request_target import PAGES, WIRES, parse_prefix, read_target, require_host, require_one_wire, wire_of
from metalake.request_target import without_prefix as _without
from tests.cases import each
from tests.servers import MetalakeServer
from tests.waiting import eventually

DOORS = {
    "page": "/login",
    "admin": "/admin/login/",
    "static": "/static/frontend/tokens.css",
    "api": "/api/metalakes",
    "described": "/api/schema/ui/",
    "iceberg": "/iceberg/demo/v1/config?warehouse=lake",
    "configs": "/configs",
    "health": "/health/ready",
    "native health": "/api/health",
    "metrics": "/metrics",
}
PROBES = {"health", "metrics"}
every_door = pytest.mark.parametrize("door", DOORS)


def ask(
    server: MetalakeServer, target: str, *lines: str, method: str = "GET", version: str = "1.1"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what the server answers to exactly these lines."""
    given = [f"{method} {target} HTTP/{version}", *lines, "Connection: close"]
    if not target.endswith("/metrics"):  # which knows no callers
        given.append(f"Authorization: {basic('admin', server.admin_password)}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(("\r\n".join(given) + "\r\n\r\n").encode("latin-1"))
        answer = b""
        while some := connection.recv(65536):
            answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode("latin-1").split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in headers), body


def is_answered(server: MetalakeServer, *lines: str, version: str = "1.1") -> bool:
    """With 200; a server on a busy machine may be not ready at first."""
    return eventually(lambda: ask(server, *lines, version=version)[0] == 200)


def is_foreign(answer: tuple[int, dict[str, str], bytes], door: str) -> None:
    """A refusal that names the setting, in the shape of its wire."""
    status, headers, body = answer
    assert status == 400, (status, body)
    assert b"METALAKE_ALLOWED_HOSTS" in body
    if door in ("page", "admin", "static"):
        assert headers["Content-Type"].startswith("text/plain")
    elif door == "iceberg":
        assert orjson.loads(body)["error"]["type"] == "BadRequestException"
    else:
        assert orjson.loads(body)["type"] == "IllegalArgumentException"


# Hosts


@every_door
def test_no_door_opens_to_a_foreign_host(metalake_server: MetalakeServer, door: str) -> None:
    own = f"127.0.0.1:{metalake_server.port}"
    for hosts in (
        ["Host: rebound.example"],
        ["Host: rebound.example:8090", f"X-Forwarded-Host: {own}", f"Forwarded: host={own}"],
        ["Host: 127.0.0.1.rebound.example"],
        ["Host: rebound.example@127.0.0.1"],
        ["Host: localhost, rebound.example"],
        ["Host: "],
    ):
        is_foreign(ask(metalake_server, DOORS[door], *hosts), door)
    assert ask(metalake_server, DOORS[door], f"Host: {own}")[0] == 200
    assert ask(metalake_server, DOORS[door], "Host: LocalHost.:1")[0] == 200


@every_door
def test_only_probes_may_call_it_by_any_address(metalake_server: MetalakeServer, door: str) -> None:
    for host in ("10.1.2.3:8090", "[fd00::7]:8090"):
        if door in PROBES:
            assert is_answered(metalake_server, DOORS[door], f"Host: {host}")
        else:
            is_foreign(ask(metalake_server, DOORS[door], f"Host: {host}"), door)


def test_a_probe_without_a_host_is_answered(metalake_server: MetalakeServer) -> None:
    assert is_answered(metalake_server, "/health/ready", version="1.0")
    status, _, body = ask(metalake_server, "/health/ready")  # which HTTP/1.1 asks for (RFC 9112, 3.2)
    assert status == 400
    assert b"Host header" in body


@pytest.mark.store
@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/metalakes", "/iceberg/demo/v1/config?warehouse=lake"])
def test_a_page_of_a_rebound_name_is_nobody_in_simple_mode(settings: Any, path: str) -> None:
    settings.METALAKE_AUTHENTICATORS = ("simple",)
    User.objects.create_superuser("admin", "correct horse battery")
    headers = {"Authorization": basic("admin", "dummy")}
    client = Client(raise_request_exception=False)
    assert client.get(path, headers={**headers, "Host": "localhost:8090"}).status_code in (200, 404)
    refused = client.get(path, headers={**headers, "Host": "rebound.example:8090"})
    assert (refused.status_code, "METALAKE_ALLOWED_HOSTS" in refused.content.decode()) == (400, True)


@pytest.mark.parametrize(
    ("allowed", "host", "opens"),
    [
        (["lake.example"], "lake.example", True),
        (["lake.example"], "LAKE.example.:443", True),
        (["lake.example"], "a.lake.example", False),
        (["lake.example"], "127.0.0.1", False),
        ([".lake.example"], "a.lake.example:8090", True),
        (["[fd00::1]"], "[fd00::1]:8090", True),
        (["*"], "whatever.example", True),
    ],
)
def test_the_setting_says_which_hosts_are_ours(settings: Any, allowed: list[str], host: str, opens: bool) -> None:
    settings.ALLOWED_HOSTS = allowed
    asked = RequestFactory().get("/api/metalakes", headers={"Host": host}).META
    with nullcontext() if opens else pytest.raises(Invalid, match="METALAKE_ALLOWED_HOSTS"):
        require_host(asked, "api")


# What a browser may make of an answer


@every_door
def test_every_answer_says_what_a_browser_may_make_of_it(metalake_server: MetalakeServer, door: str) -> None:
    for target, *host in ((DOORS[door], "Host: localhost"), (DOORS[door], "Host: a.example"), ("x://", "Host: a")):
        _, headers, _ = ask(metalake_server, target, *host)
        policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert (policy["frame-ancestors"], headers["X-Frame-Options"]) == ("'none'", "DENY")
        assert (policy["base-uri"], headers["X-Content-Type-Options"]) == ("'none'", "nosniff")
        assert headers["Referrer-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
        if door != "admin":
            runs = policy.get("script-src", policy["default-src"])
            assert runs == ("'self'" if headers["Content-Type"].startswith("text/html") else runs)
            assert "unsafe" not in runs


# Targets


@each(
    "target",
    [
        "x:/api/://h/admin/",
        "http:/api/://h/admin/",
        "x://h/api/metalakes",
        "ftp://127.0.0.1/api/metalakes",
        "//127.0.0.1/api/metalakes",
        "//admin/",
        "/api/metalakes#x",
        "/%61pi/metalakes",
        "/api%2Fmetalakes",
        "/iceberg%2Fdemo/v1/config",
        "/%69ceberg/demo/v1/config",
        "127.0.0.1:80",
        "api/metalakes",
    ],
)
def test_a_target_that_is_no_path_of_ours_is_refused(metalake_server: MetalakeServer, target: str) -> None:
    for method in ("GET", "OPTIONS", "CLOSE"):
        status, headers, body = ask(
            metalake_server, target, f"Host: 127.0.0.1:{metalake_server.port}", "X-Request-Id: odd", method=method
        )
        told = orjson.loads(body)
        assert (status, headers["Content-Type"]) == (400, "application/json"), (method, body)
        assert (told["code"], told["error"]["type"]) == (1001, "BadRequestException")
    assert '"request_id":"odd"' not in metalake_server.log.read_text(), "it is the caller's mistake"


@pytest.mark.parametrize(("method", "target"), [("OPTIONS", "*"), ("CONNECT", "127.0.0.1:8090"), ("CONNECT", "/api")])
def test_targets_of_other_methods_lead_nowhere(metalake_server: MetalakeServer, method: str, target: str) -> None:
    status, headers, body = ask(metalake_server, target, "Host: localhost", method=method)
    assert (status, headers["Content-Type"]) in ((400, "application/json"), (404, "application/json")), body


@every_door
def test_an_absolute_target_that_names_us_is_served_as_its_path(metalake_server: MetalakeServer, door: str) -> None:
    own = f"127.0.0.1:{metalake_server.port}"
    for scheme in ("http", "HTTPS"):
        assert ask(metalake_server, f"{scheme}://{own}{DOORS[door]}", f"Host: {own}")[0] == 200
    # The target's host stands for the header (RFC 9112, 3.2.2), whichever of the two is ours.
    assert ask(metalake_server, f"http://{own}{DOORS[door]}", "Host: rebound.example")[0] == 200
    for foreign in ("rebound.example", f"rebound.example@{own}", f"{own}@rebound.example", ""):
        is_foreign(ask(metalake_server, f"http://{foreign}{DOORS[door]}", f"Host: {own}"), door)


def test_names_of_an_absolute_target_stay_encoded(metalake_server: MetalakeServer) -> None:
    own = f"http://127.0.0.1:{metalake_server.port}"
    _, _, body = ask(metalake_server, f"{own}/api/metalakes/demo/catalogs/a%2Fb?details=true", "Host: localhost")
    assert orjson.loads(body)["type"] == "NoSuchCatalogException"


def test_no_header_says_which_part_of_the_path_is_ours(metalake_server: MetalakeServer) -> None:
    for name in ("SCRIPT_NAME", "PATH_INFO"):
        status, _, body = ask(metalake_server, "/api/version", "Host: localhost", f"{name}: /admin")
        assert (status, b"version" in body) == (200, True)


@pytest.mark.parametrize("path", ["/api/a", "/apis", "/iceberg/demo%2Fv1", "/login", "/%6Cogin", "/", "/a%2Fapi/x"])
def test_one_path_says_which_wire_it_is_and_what_is_asked(path: str) -> None:
    meta = RequestFactory().get(path, RAW_URI=path).META
    require_one_wire(read_target(meta), meta["PATH_INFO"])
    assert wire_of(read_target(meta)) == wire_of(meta["PATH_INFO"])


@each(
    "given",
    ["metalake", "/metalake/", "//metalake", "/a//b", "/..", "/a/.", "/%61", "/a b", "/é", "/api", "/login/x"],
)
def test_a_prefix_of_bad_form_is_refused(given: str) -> None:
    with pytest.raises(Invalid, match="write a path such as /metalake"):
        parse_prefix(given)


def test_a_prefix_is_taken_from_whole_parts_alone() -> None:
    assert [parse_prefix(given) for given in ("", "/", "/metalake", "/a/~b.c")] == ["", "", "/metalake", "/a/~b.c"]
    asked = {
        b"/m": b"/",
        b"/m?q": b"/?q",
        b"/m/": b"/",
        b"/m/api/a%2Fb?c": b"/api/a%2Fb?c",
        b"/m//x": b"//x",
        b"http://h/m/x?q": b"http://h/x?q",
    }
    asked |= {whole: whole for whole in (b"/", b"/mm/x", b"/x/m/", b"/M/x", b"*", b"http://m/x")}
    assert {sent: _without(sent, b"/m") for sent in asked} == asked


def test_no_prefix_begins_as_a_path_of_ours() -> None:
    parts = {re.match(r"[\^(?:]*([a-z]*)", str(each.pattern))[1] for each in get_resolver().url_patterns}
    pages = next(each for each in get_resolver().url_patterns if str(each.pattern) == "")
    parts |= {str(each.pattern).partition("/")[0] for each in pages.url_patterns if isinstance(each, URLPattern)}
    assert parts - {""} | {"static"} <= WIRES | PAGES
