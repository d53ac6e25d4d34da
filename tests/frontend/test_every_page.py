"""What holds for every page, asked of each route of the URL table."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from authz.models import Role, User
from authz.services import people
from tests.demo import actor
from tests.frontend.conftest import add_view, sign_in
from tests.frontend.screens import ADDRESSES, ROUTES, address

INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:")
HX = {"HX-Request": "true"}


@pytest.fixture
def known(ids: dict[str, int]) -> dict[str, int]:
    names = {"metalake": "demo", "catalog": "lake", "schema": "eu", "table": "sales"}
    group = people.add_group(actor("admin"), "demo", "analysts").row.pk
    user, role = User.objects.get(username="rita").pk, Role.objects.get(name="reader").pk
    others = {"user": user, "group": group, "role": role, "view": add_view("orders", "eu", "totals")}
    return {part: ids[name] for part, name in names.items()} | others


def test_every_route_has_an_address_here() -> None:
    assert set(ROUTES) == set(ADDRESSES)


@pytest.mark.django_db
def test_every_unsafe_route_refuses_without_its_key(known: dict[str, int]) -> None:
    client = sign_in("admin", enforce_csrf_checks=True)
    for route in ROUTES:
        for headers in ({}, HX):
            answer = client.post(address(route, known), {"name": "stolen"}, headers=headers)
            assert answer.status_code == 403, route
            assert ("<html" in answer.content.decode()) == (not headers), route
    assert client.get("/").status_code == 200, "still signed in"


@pytest.mark.django_db
def test_every_page_keeps_to_our_own_scripts_and_styles(known: dict[str, int]) -> None:
    client = sign_in("admin")
    seen = 0
    for route in ROUTES:
        answer = client.get(address(route, known), follow=True)
        if not answer.headers["Content-Type"].startswith("text/html") or answer.status_code == 405:
            continue
        seen += 1
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, route
        assert answer.headers["X-Frame-Options"] == "DENY", route
        assert answer.headers["X-Content-Type-Options"] == "nosniff", route
        has_secret = route.startswith("invitations/")
        assert answer.headers["Referrer-Policy"] == ("strict-origin" if has_secret else "same-origin"), route
        assert not INLINE.search(answer.content.decode()), route
    assert seen > 6


@pytest.mark.django_db
def test_only_the_operators_pages_may_run_what_stands_in_them(known: dict[str, int]) -> None:
    client = sign_in("admin")
    assert "unsafe" not in Client().get("/api/schema/ui/").headers["Content-Security-Policy"]
    assert "unsafe" not in client.get("/nowhere").headers["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-inline'" in client.get("/admin/").headers["Content-Security-Policy"]


@pytest.mark.django_db
def test_pages_are_compressed_and_small(known: dict[str, int]) -> None:
    answer = sign_in("admin").get(address("objects/<int:object_id>", known), headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer.headers["Vary"]
    assert len(answer.content) < 40_000
