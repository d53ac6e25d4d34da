"""What cannot be read or found on the native wire: always one JSON shape, never a failure, nothing changed."""

from typing import Any

import pytest

from metalake.models import Securable
from tests.cases import each
from tests.catalogs.callers import Caller, update

pytestmark = pytest.mark.django_db

P = "metalakes/demo"
S = f"{P}/catalogs/lake/schemas"
COLLECTIONS = ["metalakes", f"{P}/catalogs", f"{P}/catalogs/testConnection", S, f"{S}/A/tables"]
OBJECTS = [P, f"{P}/catalogs/lake", f"{S}/A", f"{S}/A/tables/t"]
WRONG_BODIES: list[Any] = [
    b"", b"{", b"[]", b"null", b"1", b'"text"', b"\xff\xfe", b'{"name": "\\ud800"}', b'{"name": "a\\u0000b"}',
    b'{"name": 1e999}', b"[" * 5000 + b"]" * 5000, b'{"updates":' * 200 + b"1" + b"}" * 200,
    {}, {"name": None}, {"name": 1}, {"name": ["x"]}, {"name": "x", "owner": "mia"},
    {"name": "x", "type": "relational", "provider": "lakehouse-iceberg", "properties": {"a": 1}},
    {"name": "x", "comment": 1}, {"name": "x", "properties": []}, {"name": "x", "properties": {"": "1"}},
    {"name": "x", "columns": {}}, {"name": "x", "columns": [None]}, {"name": "x", "columns": [{"name": "a"}]},
]  # fmt: skip
WRONG_UPDATES: list[Any] = [
    {}, {"updates": None}, {"updates": {}}, {"updates": [None]}, {"updates": [{}]}, {"updates": ["rename"]},
    {"updates": [update("fly")]}, {"updates": [update("rename")]}, {"updates": [{"newName": "x"}]},
    {"updates": [update("setProperty", property="a")]}, {"updates": [update("setProperty", property="a", value=1)]},
    {"updates": [update("setProperty", property="", value="1")]},
    {"updates": [update("removeProperty", property=["a"])]}, {"updates": [], "more": 1},
    {"updates": [update("setProperty", property="a", value="1", owner="mia")]},
]  # fmt: skip
WRONG_SEGMENTS = [
    "%00", "%01", "..", ".", "%2E%2E", "%2F", "%252F", "a%2Fb", "%20", "*", "%FF", "%zz", "%", "a%0Ab", "A%3A%3AB", ":",
    "'", "%22%3E%3Cscript%3E", "%F0%9F%90%89", "x" * 3000, "a;b", "a%09", "%E2%80%AE", "%ED%A0%80",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_changes(admin: Caller) -> Any:
    admin.post(S, {"name": "A"})
    admin.post(f"{S}/A/tables", {"name": "t", "columns": [{"name": "id", "type": "long"}]})
    before = rows()
    yield
    assert rows() == before


def rows() -> list[tuple]:
    fields = ("id", "kind", "name", "comment", "properties", "version", "parent_id", "owner_user_id")
    return sorted(Securable.objects.values_list(*fields), key=lambda row: row[0])


@pytest.mark.store
@pytest.mark.parametrize("path", COLLECTIONS)
def test_wrong_bodies(admin: Caller, path: str) -> None:
    for body in WRONG_BODIES:
        answer = admin.post(path, body)
        assert answer.error == (400, 1001, "IllegalArgumentException"), (body, answer)


@pytest.mark.parametrize("path", OBJECTS)
def test_wrong_updates(admin: Caller, path: str) -> None:
    for body in [*WRONG_BODIES[:12], *WRONG_UPDATES]:
        answer = admin.send("PUT", path, body)
        assert answer.error == (400, 1001, "IllegalArgumentException"), (body, answer)


def test_wrong_switches(admin: Caller) -> None:
    for path in OBJECTS[:2]:
        for body in ({}, {"inUse": None}, {"inUse": "true"}, {"inUse": 1}, {"inUse": True, "x": 1}, b"true", b""):
            assert admin.send("PATCH", path, body).error == (400, 1001, "IllegalArgumentException")


@pytest.mark.store
@pytest.mark.parametrize("wrong", WRONG_SEGMENTS)
def test_wrong_names_in_paths(admin: Caller, wrong: str) -> None:
    for path in (
        f"metalakes/{wrong}",
        f"{P}/catalogs/{wrong}",
        f"{S}/{wrong}",
        f"{S}/{wrong}/tables",
        f"{S}/A/tables/{wrong}",
        f"{S}?parentSchema={wrong}",
    ):
        answer = admin.get(path)
        assert answer.error[:2] in ((404, 1003), (400, 1001)), (path, answer)
        if "?" not in path:
            assert admin.delete(path).status in (200, 400, 404, 405)
            assert admin.put(path, update("setProperty", property="a", value="1")).status in (400, 404, 405)


@each(
    "path",
    [
        "", "nothing", "metalakes//catalogs", "//", "metalakes/demo/catalogs/lake/schemas//tables", f"{S}/A/gadgets",
        f"{S}/A/gadgets/g", f"{P}/catalogs/lake/tables", "metalakes/demo/..", "../admin/",
        "metalakes/demo/%2e%2e/demo/x",
    ],
)  # fmt: skip
def test_paths_that_lead_nowhere(admin: Caller, path: str) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        assert admin.send(method, path, {"name": "x"}).error[:2] in ((404, 1003), (405, 1006)), (method, path)


def test_methods_that_are_not_there(admin: Caller) -> None:
    for path in COLLECTIONS:
        for method in ("DELETE", "OPTIONS", "TRACE", "FLY"):
            assert admin.send(method, path).error == (405, 1006, "UnsupportedOperationException"), (method, path)


def test_oversized_bodies(admin: Caller) -> None:
    answer = admin.post("metalakes", b'{"name": "' + b"x" * 3_000_000 + b'"}')
    assert answer.error[:2] == (413, 1001)
    properties = {f"key{number}": "x" for number in range(1001)}
    for path in ("metalakes", S):
        assert admin.post(path, {"name": "x", "properties": properties}).error[:2] == (413, 1001)


def test_a_form_of_another_site_is_not_read(admin: Caller) -> None:
    body = b'{"name": "x"}'
    for type_ in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert admin.raw("POST", "metalakes", body, **{"Content-Type": type_}).error[:2] == (400, 1001)


def test_versions_of_the_wire(admin: Caller) -> None:
    assert admin.get("metalakes", Accept="application/vnd.gravitino.v1+json").status == 200
    assert admin.get("metalakes", Accept="application/vnd.gravitino.v2+json").error[:2] == (400, 1001)


def test_callers_nobody_knows(admin: Caller) -> None:
    for authorization in ("", "Basic", "Basic !!!", "Basic YWRtaW46d3Jvbmc=", "Bearer mlk_x", "Negotiate x"):
        for path in ("metalakes", P, "metalakes/gone"):
            answer = admin.raw("GET", path, Authorization=authorization)
            assert answer.error == (401, 1011, "UnauthorizedException")


def test_each_refusal_names_the_place(admin: Caller) -> None:
    body = {"name": "x", "columns": [{"name": "a", "type": "long"}, {"name": "b"}]}
    assert "columns[1].type" in admin.post(f"{S}/A/tables", body).message
    assert "'owner'" in admin.post("metalakes", {"name": "x", "owner": "mia"}).message


def test_a_page_of_another_site_starts_nothing_with_a_browser_s_credentials(admin: Caller) -> None:
    """A POST without a body needs no type that browsers ask about first; they say whose page it comes from."""
    path = f"{P}/catalogs/lake/testConnection"
    for origin in ("https://elsewhere.example", "null", "http://testserver.elsewhere.example"):
        refused = admin.raw("POST", path, Origin=origin, Host="testserver")
        assert refused.error == (403, 1008, "ForbiddenException"), origin
        assert "another site" in refused.message
    assert admin.raw("POST", path, Origin="http://testserver", Host="testserver").status == 200
    assert admin.raw("POST", path, Host="testserver").status == 200
