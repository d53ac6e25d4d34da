"""The native wire's manners: what is read from a request, and how failures are told."""

from __future__ import annotations

import orjson
import pytest
from django.db import InterfaceError, OperationalError
from django.http import UnreadablePostError
from django.test import Client
from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated, ParseError, PermissionDenied
from rest_framework.settings import api_settings

from authz.callers import identity
from metalake.bodies import read_json
from metalake.errors import Invalid, OutcomeUnknown
from metalake.request_target import decode
from metalake.rest.exceptions import error_response, render_error
from tests.cases import each


@pytest.mark.parametrize(
    ("raw", "name"),
    [("a%2Fb", "a/b"), ("a%252Fb", "a%2Fb"), ("%C3%A9", "é"), ("a+b", "a+b"), ("100%", "100%"), ("%2e%2e", "..")],
)
def test_a_segment_is_decoded_once(raw: str, name: str) -> None:
    assert decode(raw) == name


@pytest.mark.parametrize("raw", ["%00", "a%00b", "%FF", "%C3", "%ED%A0%80"])
def test_a_segment_that_is_no_name(raw: str) -> None:
    with pytest.raises(Invalid):
        decode(raw)


BACKSLASH = "\\"


@each(
    "body, holds_nul",
    [
        ('{"a": "' + BACKSLASH + 'u0000"}', True),
        ('{"' + BACKSLASH + 'u0000": 1}', True),
        ('{"a": "' + BACKSLASH * 3 + 'u0000"}', True),
        ('{"a": "x' + BACKSLASH * 5 + 'u0000"}', True),
        ('{"a": "' + BACKSLASH * 2 + 'u0000"}', False),
        ('{"a": "' + BACKSLASH * 4 + 'u0000"}', False),
        ('{"a": "u0000"}', False),
        ('{"a": "' + BACKSLASH + 'u0001"}', False),
    ],
)
def test_a_nul_is_found_however_it_is_written(body: str, holds_nul: bool) -> None:
    if holds_nul:
        with pytest.raises(Invalid, match="NUL"):
            read_json(body.encode())
    else:
        assert read_json(body.encode())


@each(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a": "\xff"}',
        b'{"a": "\x00"}',
        b'"' + BACKSLASH.encode() + b'ud800"',
        b"NaN",
        b"Infinity",
        b"{'a': 1}",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        read_json(body)


@pytest.mark.parametrize("backslashes", [10_001, 1_000_001])
def test_looking_for_nul_takes_one_pass(backslashes: int) -> None:
    body = b'"' + BACKSLASH.encode() * (backslashes - 1) + b'"'
    assert len(read_json(body)) == backslashes // 2


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (OperationalError("host=db password=x"), 503, 1007),
        (InterfaceError("host=db"), 503, 1007),
        (UnreadablePostError("gone"), 400, 1001),
        (OutcomeUnknown("Look."), 504, 1002),
        (ZeroDivisionError("secret"), 500, 1002),
    ],
)
def test_a_failure_from_below_tells_nothing_of_it(failure: Exception, status: int, code: int) -> None:
    answer = render_error(failure)
    assert answer.status_code == status
    assert f'"code":{code}'.encode() in answer.content
    for secret in (b"password", b"host", b"secret"):
        assert secret not in answer.content


def test_a_message_holds_no_percent_sign() -> None:
    """The wire's Python client formats messages with it."""
    assert b"%" not in error_response(Invalid("100% of %s")).content


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (NotAuthenticated(), 401, 1011),
        (PermissionDenied(), 403, 1008),
        (MethodNotAllowed("PUT"), 405, 1006),
        (ParseError(), 400, 1001),
    ],
)
def test_a_refusal_of_the_framework_has_the_shape_of_the_wire(refusal: Exception, status: int, code: int) -> None:
    answer = render_error(refusal)
    assert (answer.status_code, orjson.loads(answer.content)["code"]) == (status, code)
    assert ("WWW-Authenticate" in answer) == (status == 401)


def test_both_wires_name_callers_by_the_same_ways_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ways = ("by_issuer", "by_token", "by_simple", "by_password")
    assert [way.__name__ for way in identity.WAYS] == list(ways)
    for name in ways:
        monkeypatch.setattr(identity, name, lambda credential, name=name: asked.append(name))
    for authentication in api_settings.DEFAULT_AUTHENTICATION_CLASSES:
        authentication().actor(identity.credential_in("Basic x"))
    assert asked == list(ways)


@pytest.mark.parametrize("method", ["DECLARATION", "NAMES", "RESPOND", "OPTIONS", "TRACE"])
def test_a_method_that_is_called_like_a_part_of_the_view_is_not_served(method: str) -> None:
    answer = Client().generic(method, "/api/version")
    assert (answer.status_code, answer.json()["code"]) == (405, 1006)
