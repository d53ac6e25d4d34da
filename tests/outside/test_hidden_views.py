"""Views of an outside system that a caller may not see answer like missing ones, and their system is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from metalake.kinds import Kind
from tests.catalogs.callers import Answer, Caller, update
from tests.catalogs.test_hidden import assert_alike
from tests.demo import give
from tests.iceberg_rest.world import Caller as Engine
from tests.outside.writes import Bench
from tests.views_mgmt.test_hidden import about_a_view

pytestmark = pytest.mark.django_db(transaction=True)

FLIGHTS = "metalakes/demo/catalogs/views/schemas/flights"
VIEWS = f"{FLIGHTS}/views"


@pytest.fixture
def late(views_bench: Bench, otto: Caller) -> Bench:
    """The view flights.late and the schema `secret`."""
    for schema in ("flights", "secret"):
        views_bench.make_schema(schema)
    views_bench.make_view("flights", "late")
    return views_bench


@pytest.fixture
def reader(late: Bench, admin: Caller) -> Caller:
    """Who may use the schema and no object in it."""
    assert admin.send("POST", "metalakes/demo/users", {"name": "otto"}).status == 200
    give("otto", Kind.CATALOG, "views", "use_catalog")
    give("otto", Kind.SCHEMA, "views.flights", "use_schema")
    return Caller("otto")


def asked(bench: Bench) -> int:
    with bench.world.open() as state:
        return sum(state["calls"].values())


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def rename(caller: Caller, view: str, name: str, schema: str | None = None) -> Answer:
    return caller.put(f"{VIEWS}/{view}", update("rename", newName=name, newSchemaName=schema))


@pytest.mark.parametrize("state", ["well", "away"])
def test_a_hidden_view_is_a_missing_one(late: Bench, reader: Caller, state: str) -> None:
    """Whatever state its system is in."""
    before = asked(late)
    if state == "away":
        for verb in ("load_table", "list_tables", "load_schema"):
            late.world.fail(verb, *["denied"] * 60)
    hidden, missing = about_a_view(f"{VIEWS}/late"), about_a_view(f"{VIEWS}/none")
    assert_alike(reader, hidden, missing, "late", "none")
    engine = Engine("otto", catalog="views")
    for verb in ("GET", "HEAD", "DELETE"):
        answers = [engine.ask(verb, f"namespaces/flights/views/{name}") for name in ("late", "none")]
        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].content.replace(b"late", b"none") == answers[1].content
    assert asked(late) == before


def test_hidden_views_are_not_listed(late: Bench, reader: Caller) -> None:
    late.world.put_view("flights", "of_others")
    assert names(reader.get(VIEWS)) == []
    assert reader.get(f"{VIEWS}?details=true")["views"] == []
    give("otto", Kind.VIEW, "views.flights.of_others", "select_view")
    assert names(reader.get(VIEWS)) == ["of_others"]
    assert [view["name"] for view in reader.get(f"{VIEWS}?details=true")["views"]] == ["of_others"]


def test_who_may_not_move_a_view_learns_nothing_of_the_target(late: Bench, reader: Caller) -> None:
    give("otto", Kind.VIEW, "views.flights.late", "select_view", "alter_view")
    before = asked(late)
    hidden, missing = rename(reader, "late", "x", "secret"), rename(reader, "late", "x", "nowhere")
    assert (hidden.status, hidden.body) == (missing.status, missing.body)
    assert hidden.error == (403, 1008, "ForbiddenException") and asked(late) == before
    assert rename(reader, "late", "later")["view"]["name"] == "later", "in its schema it may be renamed"


def test_a_write_that_is_forbidden_does_not_reach_the_system(late: Bench, reader: Caller) -> None:
    """Somebody who may load a view and not write it."""
    give("otto", Kind.VIEW, "views.flights.late", "select_view")
    assert reader.get(f"{VIEWS}/late").status == 200
    before = asked(late)
    for method, path, body in (
        ("PUT", f"{VIEWS}/late", {"updates": [update("updateComment", newComment="mine")]}),
        ("PUT", f"{VIEWS}/late", {"updates": [update("rename", newName="mine")]}),
        ("DELETE", f"{VIEWS}/late", None),
        ("POST", VIEWS, {"name": "mine", "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}]}),
    ):
        assert reader.send(method, path, body).status == 403, (method, path)
    assert asked(late) == before
