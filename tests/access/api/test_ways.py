"""The ways to an object, its moments and their comparison, on the wire."""

from __future__ import annotations

import pytest

from authz.models import User
from authz.services import people, roles
from tests.authz.history import FLIGHTS, History, now
from tests.authz.small_world import PASSWORD, Wire, World

pytestmark = pytest.mark.django_db

OBJECTS = "metalakes/acme/access/objects"
TABLE = f"{OBJECTS}/table/lake.A:B.t"


@pytest.fixture
def readers(world: World) -> World:
    world.give("mia", "use_catalog@lake", "select_table@lake.A")
    world.give("nils", "use_catalog@lake", "use_schema@lake", "deny select_table@lake.A:B.t")
    world.group("analysts", "nils")
    roles.assign_roles(world.olga, "acme", "group", "analysts", ["r1"])
    return world


def test_the_ways_on_the_wire(readers: World, wire: Wire) -> None:
    status, answer = wire("GET", f"{TABLE}/ways?privilege=select_table&limit=2")
    assert (status, answer["object"]) == (200, {"type": "table", "fullName": "lake.A:B.t"})
    assert (answer["total"], answer["complete"]) == (8, True) and "atLeast" not in answer
    deny, owner = answer["ways"]
    assert deny.pop("grantTime").startswith("20")
    assert deny == {
        "user": "nils", "role": "r2", "privilege": "select_table", "condition": "deny", "direct": True,
        "on": {"type": "table", "fullName": "lake.A:B.t"}, "verdict": "effective", "grantor": "olga",
    }  # fmt: skip
    assert owner == {
        "user": "olga", "owner": True, "condition": "allow", "direct": True, "verdict": "effective",
        "on": {"type": "table", "fullName": "lake.A:B.t"},
    }  # fmt: skip
    rest = answer["ways"]
    while "nextPageToken" in answer:
        path = f"{TABLE}/ways?privilege=select_table&limit=2&pageToken={answer['nextPageToken']}"
        answer = wire("GET", path)[1]
        rest += answer["ways"]
    assert len(rest) == 8
    broken, beaten = rest[-2:]
    assert broken["says"] == "select_table, but no use_schema on schema lake.A:B"
    assert broken["missing"] == [{"privilege": "use_schema", "on": {"type": "schema", "fullName": "lake.A:B"}}]
    assert (beaten["user"], beaten["group"], beaten["verdict"]) == ("nils", "analysts", "beaten")


def test_the_ways_are_narrowed_by_the_query(readers: World, wire: Wire) -> None:
    def ways(query: str) -> list[tuple[str | None, ...]]:
        status, answer = wire("GET", f"{TABLE}/ways?{query}")
        assert status == 200, answer
        return [tuple(way.get(key) for key in ("user", "group", "role", "privilege")) for way in answer["ways"]]

    assert ways("condition=DENY") == [("nils", None, "r2", "select_table")]
    assert ways("by=group") == [(None, "analysts", "r1", "select_table"), (None, "analysts", "r1", "use_catalog")]
    assert ways("by=role&role=r2&show=inherited") == [
        (None, None, "r2", "use_catalog"),
        (None, None, "r2", "use_schema"),
    ]
    assert ways("user=mia&show=effective") == [("mia", None, "r1", "use_catalog")]
    assert ways("q=anal") == [("nils", "analysts", "r1", "select_table"), ("nils", "analysts", "r1", "use_catalog")]
    assert wire("GET", f"{TABLE}/ways?by=group&role=r1")[1]["ways"][0]["memberCount"] == 1


def test_others_get_their_own_ways_and_hidden_is_missing(readers: World, wire: Wire) -> None:
    readers.give("mia", "use_schema@lake.A")
    status, answer = wire("GET", f"{TABLE}/ways", user="mia")
    assert (status, answer["complete"]) == (200, False)
    assert {way["user"] for way in answer["ways"]} == {"mia"}
    for user in ("nils", "sam"):
        hidden = wire("GET", f"{TABLE}/ways", user=user)
        missing = wire("GET", f"{OBJECTS}/table/lake.A:B.no/ways", user=user)
        assert hidden[0] == missing[0] == 404
        assert hidden[1]["message"].replace("B.t", "B.no") == missing[1]["message"]


def test_bad_questions_are_refused(readers: World, wire: Wire) -> None:
    token = wire("GET", f"{TABLE}/ways?limit=1")[1]["nextPageToken"]
    for path, says in (
        ("ways?by=planet", "not by planet"),
        ("ways?show=all", "not to all"),
        ("ways?condition=maybe", "condition is allow or deny, not 'maybe'."),
        ("ways?privilege=fly", "'fly' is no privilege"),
        ("ways?user=mia&role=r1", "Name one of user, group and role"),
        ("ways?by=role&user=mia", "list by user"),
        ("ways?limit=0", "limit must be"),
        (f"ways?by=role&pageToken={token}", "The pageToken belongs to another request"),
        ("ways?asOf=yesterday", "asOf is 'yesterday'"),
        ("moments?since=yesterday", "since is 'yesterday'"),
        ("moments?since=2990-01-01", "has to come before"),
        ("moments?limit=1001", "limit must be"),
        ("compared", "from is needed"),
        ("compared?from=2990-01-01", "has to come before"),
        ("compared?from=x", "from is 'x'"),
        ("compared?from=2020-01-01&to=2990-01-01", "lies ahead"),
    ):
        status, answer = wire("GET", f"{TABLE}/{path}")
        assert status == 400, path
        assert says in answer["message"], (path, answer["message"])


@pytest.mark.store
def test_moments_and_their_comparison_on_the_wire(past: History, wire: Wire) -> None:
    begin = now().isoformat().replace("+", "%2B")
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    roles.assign_roles(past.olga, "acme", "user", "nils", ["readers"])
    people.remove_user(past.olga, "acme", "nils")
    path = f"{OBJECTS}/schema/{FLIGHTS}"
    status, answer = wire("GET", f"{path}/moments?since={begin}")
    assert status == 200
    assert [(one["event"], one["actor"], one["says"], one["memberCount"]) for one in answer["moments"]] == [
        ("user.removed", "olga", "nils no longer holds role readers. nils is no longer a member.", 1),
        ("role.assigned", "olga", "nils holds role readers.", 1),
        ("role.assigned", "olga", "mia holds role readers.", 1),
    ]
    status, answer = wire("GET", f"{path}/compared?from={begin}")
    assert status == 200
    (moved,) = answer["moved"]
    assert (moved["user"], moved["gained"], moved["lost"]) == ("mia", ["use_schema"], [])
    assert moved["by"]["says"] == "mia holds role readers."
    user = User.objects.get(username="mia")
    user.set_password(PASSWORD)
    user.save()
    for name in ("moments", f"compared?from={begin}"):
        assert wire("GET", f"{path}/{name}", user="mia")[0] == 403
