"""A view that a caller cannot see answers like one that is not there: the same sentence, after the same statements."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from metalake.kinds import Kind
from tests.catalogs import test_hidden, test_same_statements
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql, update

pytestmark = [pytest.mark.store(once=True), pytest.mark.django_db]

Request = tuple[str, str, Any]
DIALECT = {"representation": sql("trino")}


@pytest.fixture(autouse=True)
def delays(flights: World, admin: Caller) -> None:
    assert admin.send("POST", VIEWS, body()).status == 200
    assert admin.send("POST", f"{SCHEMA}/tables", {"name": "late", "columns": test_hidden.COLUMNS}).status == 200


def about_a_view(view: str) -> list[Request]:
    return [
        ("GET", view, None),
        ("PUT", view, {"updates": [update("updateComment", newComment="on time")]}),
        ("PUT", view, {"updates": [update("rename", newName="other")]}),
        ("PUT", view, {"updates": [update("rename", newName="other", newSchemaName="elsewhere")]}),
        ("DELETE", view, None),
        ("GET", f"{view}/versions", None),
        ("GET", f"{view}/versions/1", None),
        ("GET", f"{view}/versions/2", None),
        ("GET", f"{view}/versions/1/compare/1", None),
        ("POST", f"{view}/versions/1/rollback", None),
        ("GET", f"{view}/lineage", None),
        ("POST", f"{view}/check", None),
        ("POST", f"{view}/check", DIALECT),
        ("POST", f"{view}/suggest", {"dialect": "trino"}),
    ]


def below_a_schema(schema: str) -> list[Request]:
    return [("GET", f"{schema}/views", None), ("POST", f"{schema}/views", body()), *about_a_view(f"{schema}/views/v")]


def alike(caller: Caller, hidden: str, missing: str, asked: list[Request], names: tuple[str, str]) -> None:
    other = [(method, path.replace(hidden, missing), body) for method, path, body in asked]
    test_hidden.assert_alike(caller, asked, other, *names)
    test_same_statements.natively(caller, hidden, missing, asked)


def test_a_view(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog", "use_schema", "select_table")
    alike(mia, "views/delays", "views/nothing", about_a_view(f"{VIEWS}/delays"), ("delays", "nothing"))


def test_a_table_that_is_asked_for_as_a_view(mia: Caller, admin: Caller) -> None:
    """Whether its name is a table's nobody learns, neither its owner nor who sees nothing there."""
    give("mia", Kind.CATALOG, "flights", "use_catalog", "use_schema")
    alike(mia, "views/late", "views/nothing", about_a_view(f"{VIEWS}/late"), ("late", "nothing"))
    asked = about_a_view(f"{VIEWS}/late")
    missing = about_a_view(f"{VIEWS}/nothing")
    test_hidden.assert_alike(admin, asked, missing, "late", "nothing")


def test_a_view_that_is_asked_for_as_a_table(mia: Caller, admin: Caller) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog", "use_schema")
    for caller in (mia, admin):
        asked, missing = (test_same_statements.about_a_table(f"{SCHEMA}/tables/{name}") for name in ("delays", "none"))
        test_hidden.assert_alike(caller, asked, missing, "delays", "none")


@pytest.mark.parametrize("reach", ["catalog", "denied"])
def test_views_of_a_schema(mia: Caller, reach: str) -> None:
    if reach == "denied":
        give("mia", Kind.CATALOG, "flights", "use_schema", "select_view")
        give("mia", Kind.SCHEMA, "flights.nyc", "deny use_schema")
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    alike(mia, "schemas/nyc", "schemas/gone", below_a_schema(SCHEMA), ("nyc", "gone"))


def test_what_is_asked_about_rights_on_it(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog", "use_schema")
    name, gone = (quote(f"flights.nyc.{view}", safe="") for view in ("delays", "nothing"))
    asked = [
        (method, f"metalakes/demo/{path}", body) for method, path, body in test_same_statements.rights(Kind.VIEW, name)
    ]
    alike(mia, name, gone, asked, ("delays", "nothing"))


def test_who_may_drop_a_view_finds_it_and_no_more(mia: Caller) -> None:
    """DROP_VIEW shows the name; what the view says is for those who may load it."""
    give("mia", Kind.CATALOG, "flights", "use_catalog", "use_schema")
    give("mia", Kind.VIEW, "flights.nyc.delays", "drop_view")
    assert [each["name"] for each in mia.get(VIEWS)["identifiers"]] == ["delays"]
    listed = mia.get(f"{VIEWS}?details=true")
    assert [each["name"] for each in listed["identifiers"]] == ["delays"] and listed["views"] == []
    for method, path, given in about_a_view(f"{VIEWS}/delays"):
        if method == "DELETE":
            continue
        answer = mia.send(method, path, given)
        assert answer.status == 403, (method, path, answer.body)
        assert "arr_delay" not in str(answer.body)
    assert mia.delete(f"{VIEWS}/delays")["dropped"] is True
