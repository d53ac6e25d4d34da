"""Authorization headers that nobody should send, and what is remembered of the ones that were good."""

from __future__ import annotations

import base64

import pytest

from authz.callers.identity import authenticate
from authz.models import User
from metalake.errors import Unauthenticated
from tests.authz.small_world import PASSWORD, World

pytestmark = pytest.mark.django_db


def basic(credential: bytes) -> str:
    return "Basic " + base64.b64encode(credential).decode()


@pytest.mark.store
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic ",
        "Basic é",
        "Basic \ud800",
        "Basic ====",
        "Basic b2xnYQ",
        "Basic " + "A" * 9999,
        basic(b""),
        basic(b":"),
        basic(b"olga"),
        basic(b":password"),
        basic(b"olga:\x00"),
        basic(b"ol\x00ga:x"),
        basic(b"\xff\xfe:x"),
        basic(b"olga:\x01"),
        basic(b"OLGA:" + PASSWORD.encode()),
        basic(b"olga :" + PASSWORD.encode()),
        "Bearer",
        "Bearer é",
        "Bearer \x00",
        "Bearer mlk_",
        "Digest x",
        "basicolga",
    ],
)
def test_a_header_that_names_nobody(world: World, header: str | None) -> None:
    with pytest.raises(Unauthenticated):
        authenticate(header)


def test_a_changed_password_and_a_disabled_account_are_out_at_once(world: World) -> None:
    header = basic(f"olga:{PASSWORD}".encode())
    assert authenticate(header).name == "olga"
    olga = User.objects.get(username="olga")
    olga.set_password("another long password")
    olga.save()
    with pytest.raises(Unauthenticated):
        authenticate(header)
    olga.set_password(PASSWORD)
    olga.is_active = False
    olga.save()
    with pytest.raises(Unauthenticated):
        authenticate(header)
