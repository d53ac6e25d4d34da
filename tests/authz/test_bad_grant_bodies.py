"""Grants that cannot be read: refused by every door, and nothing is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.authz.refusals import (
    ILLEGAL_ARGUMENT,
    NO_OBJECT,
    ROLE,
    ROLES,
    TOO_LARGE,
    Door,
    allow,
    doors,
    raw,
    refused,
    securable,
)
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.usefixtures("analyst")


def test_more_objects_than_a_role_may_be_given_at_once(world: World, wire: Wire) -> None:
    many = [securable("schema", f"lake.flights{number}", allow("use_schema")) for number in range(5001)]
    for asked in (("POST", ROLES, {"name": "fresh", "securableObjects": many}), ("PUT", ROLE, {"overrides": many})):
        refusal = refused(wire, asked)
        assert refusal.shape == TOO_LARGE and "5000" in refusal.message and "5001" in refusal.message
    # One fewer is read: what is refused then is that they are not there.
    assert refused(wire, ("PUT", ROLE, {"overrides": many[1:]})).shape == NO_OBJECT


@doors
def test_a_body_of_three_megabytes(world: World, wire: Wire, door: Door) -> None:
    asked = door("catalog", "lake", allow("use_catalog"))
    refusal = raw(wire, asked, json.dumps(asked[2]).encode() + b" " * 3_000_000)
    assert refusal.shape == TOO_LARGE and str(2 * 1024 * 1024) in refusal.message


@pytest.mark.store
@doors
def test_nul_in_a_full_name(world: World, wire: Wire, door: Door) -> None:
    for name in ("acme\x00", "\x00", "ac\x00me"):
        refusal = refused(wire, door("metalake", name, allow("use_catalog")))
        assert refusal.shape == ILLEGAL_ARGUMENT and "NUL" in refusal.message and "\x00" not in refusal.message


@pytest.mark.store
@doors
def test_nul_anywhere_else(world: World, wire: Wire, door: Door) -> None:
    given = [
        ("catalog", [{"name": "use_catalog\x00", "condition": "allow"}]),
        ("catalog", [{"name": "use_catalog", "condition": "allow\x00"}]),
        ("catalog\x00", allow("use_catalog")),
    ]
    for kind, privileges in given:
        refusal = refused(wire, door(kind, "lake", privileges))
        assert refusal.shape == ILLEGAL_ARGUMENT and "NUL" in refusal.message
    method, path, body = door("catalog", "lake", allow("use_catalog"))
    refusal = refused(wire, (method, path.replace("analyst", "analyst%00"), {**body, "name": "fresh\x00"}))
    assert refusal.shape == ILLEGAL_ARGUMENT


WRONG_PRIVILEGES: list[Any] = [
    None, "use_catalog", 7, True, {}, {"name": "use_catalog", "condition": "allow"}, [None], ["use_catalog"], [7], [[]],
    [{}], [{"name": "use_catalog"}], [{"condition": "allow"}], [{"name": None, "condition": "allow"}],
    [{"name": 7, "condition": "allow"}], [{"name": ["use_catalog"], "condition": "allow"}],
    [{"name": "use_catalog", "condition": None}], [{"name": "use_catalog", "condition": 1}],
    [{"name": "use_catalog", "condition": True}], [{"name": "use_catalog", "condition": "perhaps"}],
    [{"name": "use_catalog", "condition": ""}], [{"name": "use_catalog", "condition": "allow "}],
    [{"name": "use_catalog", "condition": "allow", "grantor": "olga"}],
    [{"Name": "use_catalog", "condition": "allow"}],
]  # fmt: skip


@doors
def test_privileges_of_the_wrong_type(world: World, wire: Wire, door: Door) -> None:
    for privileges in WRONG_PRIVILEGES:
        refusal = refused(wire, door("catalog", "lake", privileges))
        assert refusal.shape == ILLEGAL_ARGUMENT and "privileges" in refusal.message, privileges


@doors
def test_times_that_cannot_be(world: World, wire: Wire, door: Door) -> None:
    wrong = ("", "tomorrow", "2030-13-01", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", 7, ["2030-01-01"])
    for field in ("startTime", "endTime"):
        for moment in wrong:
            refusal = refused(wire, door("catalog", "lake", [allow("create_schema")[0] | {field: moment}]))
            assert refusal.shape == ILLEGAL_ARGUMENT and f"privileges[0].{field}: " in refusal.message, moment


WRONG_OBJECTS: list[Any] = [
    "lake", 7, {}, [None], ["lake"], [[]], [{}],
    [{"type": "catalog", "fullName": "lake"}],
    [{"type": "catalog", "privileges": allow("use_catalog")}],
    [{"fullName": "lake", "privileges": allow("use_catalog")}],
    [securable(None, "lake", allow("use_catalog"))],
    [securable(7, "lake", allow("use_catalog"))],
    [securable("catalog", None, allow("use_catalog"))],
    [securable("catalog", ["lake"], allow("use_catalog"))],
    [securable("catalog", "lake", allow("use_catalog")) | {"owner": "olga"}],
]  # fmt: skip


def test_objects_of_the_wrong_type(world: World, wire: Wire) -> None:
    for entries in WRONG_OBJECTS:
        refusal = refused(wire, ("PUT", ROLE, {"overrides": entries}))
        assert refusal.shape == ILLEGAL_ARGUMENT and "overrides" in refusal.message, entries
        refusal = refused(wire, ("POST", ROLES, {"name": "fresh", "securableObjects": entries}))
        assert refusal.shape == ILLEGAL_ARGUMENT and "securableObjects" in refusal.message, entries
    assert refused(wire, ("PUT", ROLE, {"overrides": None})).shape == ILLEGAL_ARGUMENT


@doors
def test_a_body_that_is_none(world: World, wire: Wire, door: Door) -> None:
    contents = (b"", b"{", b"null", b"[]", b'"x"', b"7", b"{}", b"\xff\xfe", b'{"privileges"}', b"NaN")
    for content in contents:
        assert raw(wire, door("catalog", "lake", []), content).shape == ILLEGAL_ARGUMENT, content


@doors
def test_a_body_of_another_type(world: World, wire: Wire, door: Door) -> None:
    asked = door("catalog", "lake", allow("create_schema"))
    for type_ in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        refusal = raw(wire, asked, json.dumps(asked[2]).encode(), type_)
        assert refusal.shape == ILLEGAL_ARGUMENT and "Content-Type" in refusal.message


@doors
def test_a_body_that_nests_too_deep(world: World, wire: Wire, door: Door) -> None:
    asked = door("catalog", "lake", [])
    content = b'{"privileges": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert raw(wire, asked, content).shape == ILLEGAL_ARGUMENT
