"""Many questions in one request: answered in order, in few statements, as the single check does, and no more told."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.explain import reach
from access.explain.explanations import Wanted, explain
from access.explain.queries import Place, Question, check, nobodys_names
from access.history.current import Now
from authz import policy
from authz.callers import enumeration
from authz.models import User
from authz.operations import OPERATIONS, use_of
from authz.services import roles
from catalogs.services import schemas
from metalake.errors import Forbidden, TooManyRequests
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Address, Located, Node
from metalake.privileges import Privilege
from tests.authz.history import History, now
from tests.authz.small_world import PASSWORD, Wire, World, at, node_of
from tests.cases import each

CHECK = "metalakes/acme/access/check"
KINDS = {0: "catalog", 1: "schema", 2: "table"}


def on(full_name: str, **asked: str) -> dict[str, str]:
    return {"type": "metalake" if full_name == "acme" else KINDS[full_name.count(".")], "fullName": full_name, **asked}


def ask(wire: Wire, user: str, *questions: dict[str, Any]) -> list[bool]:
    status, answer = wire("POST", CHECK, {"questions": list(questions)}, user=user)
    assert status == 200, answer
    return [one["allowed"] for one in answer["answers"]]


@pytest.fixture
def flights(world: World) -> World:
    """mia reads lake.flights, nils may grant in lake.A; lake.secret is olga's alone."""
    for name in ("flights", "secret"):
        schema = world.schema(name)
        for number in range(3):
            world.table(f"t{number}", schema)
    world.give("mia", "use_catalog@lake", "use_schema@lake.flights", "select_table@lake.flights")
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A")
    return world


def test_answers_come_in_order(flights: World, wire: Wire) -> None:
    questions = [
        on("lake.flights.t0", privilege="select_table"),
        on("lake.flights.t0", privilege="MODIFY_TABLE"),
        on("lake.flights.t1", operation="load_table"),
        on("lake.flights.t1", operation="drop_table"),
        on("lake.secret.t0", privilege="select_table"),
        on("lake.flights", privilege="use_schema"),
        on("lake", operation="load_catalog"),
        on("acme", operation="load_metalake"),
        on("acme", privilege="create_catalog"),
    ]
    assert ask(wire, "mia", *questions) == [True, False, True, False, False, True, True, True, False]
    assert ask(wire, "olga", *questions) == [True] * 9
    about_mia = [question | {"user": "mia"} for question in questions]
    assert ask(wire, "olga", *about_mia) == ask(wire, "mia", *questions) == ask(wire, "mia", *about_mia)


def test_every_privilege_and_operation_is_answered_as_the_evaluator_does(flights: World) -> None:
    flights.own("mia", flights.ab)
    flights.give("mia", "create_schema@acme", "deny modify_table@lake.flights", "modify_table@acme")
    flights.give("nils", "use_schema@lake.A", "manage_users@acme")
    lines = [Located(nodes=tuple(found)) for found in nodes(flights)]
    for name in ("olga", "mia", "nils"):
        actor = flights.actor(name)
        questions, wanted = [], []
        for line in lines:
            place = Place(line.kind, ".".join(line.full_name))
            usable = reach.usable(policy.rights_on(actor, line), line.kind, reach.type_of(line))
            for privilege in (p for p in Privilege if line.kind in grantable_on(p)):
                questions.append(Question(None, Wanted(use_of(privilege, line.kind), privilege), place))
                wanted.append(privilege in usable)
            for operation in (row for row in OPERATIONS.values() if line.kind in row.on):
                questions.append(Question(None, Wanted(operation), place))
                wanted.append(policy.permits(actor, operation, line))
        assert check(actor, "acme", questions, None) == wanted
        about = [Question(name, question.wanted, question.on) for question in questions]
        assert check(flights.olga, "acme", about, None) == wanted
        assert {True, False} == set(wanted) or name == "olga"


def nodes(world: World) -> list[list[Node]]:
    top = at(world)
    rows = Now(top).walk(top)
    by_id = {str(row.id): node_of(row) for row in rows}
    return [[by_id[step] for step in row.lineage[1:].split("/")] for row in rows]


def test_hidden_and_missing_are_answered_alike(flights: World, wire: Wire) -> None:
    hidden = on("lake.secret.t0", privilege="select_table")
    missing = on("lake.secret.no-such", privilege="select_table")
    nowhere = on("sea.secret.t0", privilege="select_table")
    topic = on("files", privilege="read_fileset")
    for user in ("mia", "nils"):
        assert ask(wire, user, hidden, missing, nowhere, topic) == [False] * 4
        about = [question | {"user": "olga"} for question in (hidden, missing, nowhere, topic)]
        assert ask(wire, user, *about) == [False] * 4
    assert ask(wire, "olga", hidden, missing, topic, on("lake", privilege="read_fileset")) == [True, False, True, False]
    assert ask(wire, "olga", hidden | {"user": "nobody"}, hidden | {"user": "sam"}) == [False, False]
    assert wire("POST", CHECK, {"questions": [hidden]}, user="sam")[0] == 404


def test_questions_about_others_are_for_whoever_may_grant_there(flights: World, wire: Wire) -> None:
    here, there = on("lake.A", privilege="use_schema", user="mia"), on("lake", privilege="use_catalog", user="mia")
    assert ask(wire, "nils", here, there | {"user": "nils"}) == [False, True]
    status, answer = wire("POST", CHECK, {"questions": [here, here, here, there]}, user="nils")
    assert (status, answer["code"]) == (403, 1008)
    assert answer["message"] == "questions[3]: nils may not read who has access to catalog lake."


def test_narrowed_roles_count_for_oneself(flights: World, wire: Wire) -> None:
    question = on("lake.flights.t0", privilege="select_table")
    headers = {"HTTP_X_GRAVITINO_ACTIVE_ROLES": "NONE"}
    assert ask(wire, "mia", question) == [True]
    wire.client.defaults.update(headers)
    assert ask(wire, "mia", question) == ask(wire, "mia", question | {"user": "mia"}) == [False]
    assert ask(wire, "olga", question | {"user": "mia"}) == [True]


@each(
    "question, says",
    [
        ({"type": "table", "fullName": "lake.A.t"}, "Name a privilege or an operation, and not both."),
        (on("lake.A.t", privilege="select_table", operation="load_table"), "Name a privilege or an operation"),
        (on("lake.A.t", privilege="fly"), "'fly' is no privilege"),
        (on("lake.A.t", operation="fly"), "'fly' is no operation"),
        (on("lake.A.t", privilege="create_catalog"), "create_catalog has no meaning on a table"),
        (on("lake.A.t", operation="load_schema"), "load_schema is not asked on a table"),
        (on("lake.A.t", privilege="select_table") | {"type": "airport"}, "'airport' is no object type"),
        (on("lake.A.t", operation="load_role") | {"type": "role", "fullName": "r1"}, "not on a role"),
        (on("lake.A.t", privilege="select_table") | {"fullName": "lake"}, "'lake' is not the full name of a table."),
        (on("lake.A.t", privilege="select_table") | {"fullName": "lake..t"}, "is not the full name of a table."),
        (on("lake.A.t", privilege="select_table") | {"colour": "red"}, "unknown field 'colour'"),
        (on("lake.A.t", privilege="select_table", user=""), "user"),
        (on("lake.A.t", privilege=7), "privilege"),  # type: ignore[arg-type]
        ("lake.A.t", "must be an object"),
    ],
)
def test_a_bad_question_is_named(flights: World, wire: Wire, question: Any, says: str) -> None:
    good = on("lake.flights.t0", privilege="select_table")
    status, answer = wire("POST", CHECK, {"questions": [good, good, question]}, user="mia")
    assert (status, answer["code"]) == (400, 1001)
    assert answer["message"].startswith("questions[2]") and says in answer["message"], answer["message"]


@pytest.mark.parametrize("questions", [[], [on("lake", privilege="use_catalog")] * 1001, None, {}])
def test_there_are_one_to_a_thousand_questions(flights: World, wire: Wire, questions: Any) -> None:
    status, answer = wire("POST", CHECK, {"questions": questions}, user="mia")
    assert status == 400 and "questions" in answer["message"]
    assert len(ask(wire, "mia", *[on("lake", privilege="use_catalog")] * 1000)) == 1000


def test_a_thousand_questions_take_as_many_statements_as_ten(flights: World) -> None:
    schema = flights.schema("wide")
    for number in range(120):
        flights.table(f"w{number}", schema)
    operation = use_of(Privilege.SELECT_TABLE, Kind.TABLE)
    taken = []
    for many in (10, 120):
        places = [Place(Kind.TABLE, f"lake.wide.w{number}") for number in range(many)]
        users = [None, "mia", "nils", "nobody"]
        asked = [Question(user, Wanted(operation, Privilege.SELECT_TABLE), place) for place in places for user in users]
        olga = flights.olga
        with CaptureQueriesContext(connection) as captured:
            assert len(check(olga, "acme", asked, None)) == 4 * many
        taken.append(len(captured))
    assert taken[0] == taken[1] <= 10


@pytest.mark.store
def test_a_check_in_the_past(past: History, wire: Wire) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    for name in ("mia", "nils"):
        account = User.objects.get(username=name)
        account.set_password(PASSWORD)
        account.save()
    moment = now()
    past.revoke("lake.flights", "use_schema")
    load = on("lake.flights", operation="load_schema")
    questions = [load, on("lake.flights:raw", privilege="use_schema"), on("lake.gone", privilege="use_schema")]
    for user, name in (("mia", "mia"), ("olga", "mia")):
        body: dict[str, Any] = {"questions": [question | {"user": name} for question in questions]}
        then = wire("POST", CHECK, body | {"asOf": moment.isoformat()}, user=user)[1]["answers"]
        today = wire("POST", CHECK, body, user=user)[1]["answers"]
        assert [one["allowed"] for one in then] == [True, True, False]
        assert [one["allowed"] for one in today] == [False, False, False]
    body = {"questions": [load | {"user": "olga"}], "asOf": moment.isoformat()}
    assert wire("POST", CHECK, body, user="nils") == (200, {"code": 0, "answers": [{"allowed": False}]})
    for bad in ("yesterday", "2999-01-01T00:00:00Z", 7):
        assert wire("POST", CHECK, {"questions": [load], "asOf": bad}, user="mia")[0] == 400


def test_a_thousand_questions_about_the_past_take_as_many_statements_as_ten(past: History) -> None:
    for number in range(30):
        schemas.create_schema(past.olga, Address(metalake="acme", catalog="lake", schema=f"wide:s{number}"), None, {})
    operation, moment, taken = use_of(Privilege.USE_SCHEMA, Kind.SCHEMA), now(), []
    for many in (10, 30):
        places = [Place(Kind.SCHEMA, f"lake.wide:s{number}") for number in range(many)]
        users = [None, "mia", "nils", "nobody"]
        asked = [Question(user, Wanted(operation, Privilege.USE_SCHEMA), place) for place in places for user in users]
        with CaptureQueriesContext(connection) as captured:
            allowed = check(past.olga, "acme", asked, moment)
        assert allowed == [True, False, False, False] * many
        taken.append(len(captured))
    assert taken[0] == taken[1] <= 30


def test_the_service_names_the_question_too(flights: World) -> None:
    wanted = Wanted(OPERATIONS["load_catalog"])
    with pytest.raises(Forbidden, match=r"questions\[1\]"):
        check(
            flights.mia, "acme", [Question(user, wanted, Place(Kind.CATALOG, "lake")) for user in (None, "nils")], None
        )


def test_an_explanation_says_yes_where_a_check_does(world: World) -> None:
    world.give("mia", "use_catalog@acme", "use_schema@acme", "read_fileset@acme", "select_table@acme")
    world.give("mia", "deny select_table@lake.A:B", "create_schema@lake", "manage_grants@lake.A")
    asked = [
        (line, Wanted(use_of(privilege, line.kind), privilege))
        for line in (Located(nodes=tuple(found)) for found in nodes(world))
        for privilege in Privilege
        if line.kind in grantable_on(privilege)
    ]
    questions = [Question("mia", wanted, Place(line.kind, ".".join(line.full_name))) for line, wanted in asked]
    answers = check(world.olga, "acme", questions, None)
    explained = [explain(world.olga, "acme", line, wanted, "mia", None) for line, wanted in asked]
    assert [one.allowed for one in explained] == answers
    (odd,) = {
        one.because[0].says for one in explained if one.wanted.privilege is Privilege.READ_FILESET and not one.allowed
    }
    assert odd == "read_fileset is for fileset catalogs, and this one is relational."


# Names that nobody has


def test_only_who_may_read_access_is_told_which_names_are_nobodys(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(enumeration, "MISSES", 3)
    table, hidden = Place(Kind.TABLE, "lake.A:B.t"), Place(Kind.TABLE, "lake.A:B.other")
    wanted = Wanted(use_of(Privilege.SELECT_TABLE, Kind.TABLE), Privilege.SELECT_TABLE)

    def nobodys(name: str, on: Place, *users: str | None) -> set[str]:
        return set(nobodys_names(world.actor(name), "acme", [Question(user, wanted, on) for user in users], None))

    assert nobodys("olga", table, "mia", "sam", "nina", None) == {"sam", "nina"}, "sam is no member"
    assert nobodys("mia", table, "nina") == set()
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A")
    assert nobodys("mia", hidden, "nina") == set()
    assert nobodys("mia", table, "nina", "nils", "mia") == {"nina"}
    with pytest.raises(TooManyRequests):
        nobodys("mia", table, "a", "b", "c")
