"""What path and caller decide is told before a body is read: a body that is none is answered like a good one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from metalake.kinds import Kind
from metalake.rest.views import Endpoint
from tests.architecture.test_routes import NATIVE
from tests.catalogs.callers import Caller
from tests.catalogs.test_hidden import CATALOG, COLUMNS, COMMENT, requests_below_metalake
from tests.demo import give
from tests.iceberg_rest import world

pytestmark = pytest.mark.django_db

NO_JSON = b'{"half": ['
LAKE = "metalakes/demo/catalogs/lake/schemas"


@pytest.fixture(autouse=True)
def filled(admin: Caller) -> None:
    admin.post(LAKE, {"name": "a"})
    admin.post(f"{LAKE}/a/tables", {"name": "t", "columns": COLUMNS})


def with_bodies() -> list[tuple[str, str]]:
    """Every endpoint of the native wire below a metalake that reads a body, with names of what is there."""
    names = {"metalake": "demo", "catalog": "lake", "schema": "a", "table": "t", "type": "catalog", "full_name": "lake"}
    found = []
    for pattern, view in NATIVE:
        path = re.sub(r"\(\?P<(\w+)>[^)]+\)", lambda part: names.get(part[1], "x"), pattern)
        path = path.removesuffix("$").removesuffix("/?").removeprefix("api/").removeprefix("^")
        found += [(method.upper(), path) for method in reading(view) if path.startswith("metalakes/demo")]
    return found


def reading(view: type[Endpoint]) -> list[str]:
    handlers = {method: getattr(view, method, None) for method in ("post", "put", "patch")}
    return [method for method, handler in handlers.items() if handler and handler.declaration.body is not None]


def test_there_are_endpoints_to_look_at() -> None:
    assert len(with_bodies()) > 25


@pytest.mark.parametrize(("method", "path"), with_bodies())
def test_no_body_of_a_stranger_is_read(otto: Caller, method: str, path: str) -> None:
    answer = otto.send(method, path, NO_JSON)
    assert answer.error == (404, 1003, "NoSuchMetalakeException"), answer.body
    elsewhere = otto.send(method, path.replace("demo", "gone", 1), NO_JSON)
    assert elsewhere.message.replace("gone", "demo") == answer.message


FORBIDDEN = [
    ("PUT", "metalakes/demo", {"updates": [COMMENT]}),
    ("PATCH", "metalakes/demo", {"inUse": False}),
    ("POST", "metalakes/demo/catalogs", CATALOG),
    ("POST", "metalakes/demo/catalogs/testConnection", CATALOG),
    ("PUT", "metalakes/demo/catalogs/lake", {"updates": [COMMENT]}),
    ("PATCH", "metalakes/demo/catalogs/lake", {"inUse": False}),
    ("POST", "metalakes/demo/catalogs/lake/testConnection", {"updates": []}),
    ("POST", "metalakes/demo/catalogs/lake/refreshes", {}),
    ("PUT", f"{LAKE}/a", {"updates": [COMMENT]}),
    ("POST", f"{LAKE}/a/tables", {"name": "u", "columns": COLUMNS}),
    ("PUT", f"{LAKE}/a/tables/t", {"updates": [COMMENT]}),
    ("POST", "metalakes/demo/users", {"name": "new"}),
    ("POST", "metalakes/demo/groups", {"name": "new"}),
    ("POST", "metalakes/demo/roles", {"name": "new"}),
    ("PUT", "metalakes/demo/permissions/users/mia/grant", {"roleNames": ["x"]}),
    ("PUT", "metalakes/demo/permissions/users/mia/revoke", {"roleNames": ["x"]}),
    ("PUT", "metalakes/demo/permissions/roles/x", {"overrides": []}),
    ("PUT", "metalakes/demo/owners/catalog/lake", {"name": "mia", "type": "USER"}),
    (
        "PUT",
        "metalakes/demo/permissions/roles/x/catalog/lake/grant",
        {"privileges": [{"name": "use_catalog", "condition": "allow"}]},
    ),
    (
        "PUT",
        "metalakes/demo/permissions/roles/x/catalog/lake/revoke",
        {"privileges": [{"name": "use_catalog", "condition": "allow"}]},
    ),
    ("POST", "metalakes", {"name": "new"}),
]


@pytest.mark.parametrize(("method", "path", "body"), FORBIDDEN, ids=lambda part: part if isinstance(part, str) else "")
def test_what_is_forbidden_is_told_as_the_service_tells_it(
    mia: Caller, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
    early = mia.send(method, path, NO_JSON)
    assert early.error == (403, 1008, "ForbiddenException"), early.body
    assert mia.send(method, path, body).body == early.body
    monkeypatch.setattr("catalogs.permissions.admit", lambda *asked: None)
    late = mia.send(method, path, body)
    assert late.error == early.error
    # Where a table is kept here, an alteration is a commit.
    assert late.message.replace("commit table", "alter table") == early.message


def test_a_hidden_object_is_missing_whatever_is_sent(mia: Caller, admin: Caller) -> None:
    for method, path, body in requests_below_metalake("demo"):
        if "catalogs/lake" in path and "PATCH" not in method and body is not None:
            assert mia.send(method, path, NO_JSON).body == mia.send(method, path, body).body, path


def test_either_of_two_rights_is_enough_to_be_read(mia: Caller, admin: Caller) -> None:
    """Lifting a DENY asks authority above the object; the users of a group are changed by two rights."""
    give("mia", Kind.METALAKE, "demo", "manage_grants")
    for path in ("permissions/roles/x/catalog/lake/revoke", "groups/x"):
        assert mia.send("PUT", f"metalakes/demo/{path}", NO_JSON).status == 400, path


# The Iceberg wire

POSTS = [
    "namespaces",
    "namespaces/a/properties",
    "namespaces/a/tables",
    "namespaces/a/register",
    "namespaces/a/tables/t",
    "namespaces/a/tables/t/metrics",
    "tables/rename",
]


@pytest.mark.parametrize("path", POSTS)
def test_no_body_of_a_stranger_is_read_on_the_iceberg_wire(otto: Caller, mia: Caller, path: str) -> None:
    for name in ("otto", "mia"):
        caller = world.Caller(name)
        answer = caller.post(path, NO_JSON)
        assert answer.error[0] == 404, answer.content
        caller.catalog = "none"
        assert caller.post(path, NO_JSON).content.replace(b" none ", b" lake ") == answer.content


@pytest.mark.parametrize("path", POSTS[1:5])
def test_what_is_forbidden_there_is_told_before_the_body_is_read(mia: Caller, path: str) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
    assert world.Caller("mia").post(path, NO_JSON).error[:2] == (403, "ForbiddenException")


def test_a_commit_that_may_make_the_table_is_read(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table", "create_table")
    assert world.Caller("mia").post("namespaces/a/tables/t", NO_JSON).error[0] == 400
    assert world.Caller("mia").post("namespaces/a/tables/u", NO_JSON).error[0] == 400
