"""Everything about a metalake's rights in one stream: as of one place, resumable, for whoever may read all of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.explain import audit_log
from access.explain.rules import operation_rules, rules
from access.history import streams
from access.usage import queries
from access.usage import writer as writing
from authz import operations, usage_counter
from authz.models import AuditEntry, Role, Use, User
from authz.objects import by_ids
from authz.services import grants, people, roles
from catalogs.services import schemas
from metalake import refusal_audit
from metalake.kinds import Kind
from metalake.lineage import Address
from tests.authz.history import History
from tests.authz.small_world import PASSWORD, Wire, World

STATE, USE, AUDIT = (f"bulk/metalakes/acme/access/{what}" for what in ("state", "use", "audit"))


def lines(wire: Wire, path: str, user: str = "olga") -> list[dict[str, Any]]:
    answer: Any = wire.client.get(f"/api/{path}", headers={"Authorization": wire.basic(user)}, RAW_URI=f"/api/{path}")
    assert answer.status_code == 200, answer.content
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def things(of: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert of[-1] == {"end": True}, of[-1]
    return of[1:-1]


@pytest.mark.store
def test_the_state_has_every_object_member_role_and_grant(past: History, wire: Wire) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    people.add_group(past.olga, "acme", "analysts")
    head, *_ = whole = lines(wire, STATE)
    state = things(whole)
    objects = {line["name"]: line for line in state if line["topic"] == "object"}
    assert objects.keys() == {"acme", "lake", "flights", "raw", "readers"}
    assert objects["raw"]["parent"] == objects["flights"]["id"]
    assert objects["raw"]["lineage"].endswith(f"/{objects['flights']['id']}/{objects['raw']['id']}")
    assert {line["name"] for line in state if line["topic"] == "members"} == {"olga", "mia", "nils"}
    of_roles = [line for line in state if line["topic"] == "grants"]
    given = {(line["on"], one["privilege"], one["effect"]) for line in of_roles for one in line["grants"]}
    assert given == {
        (objects["lake"]["id"], "use_catalog", "allow"),
        (objects["flights"]["id"], "use_schema", "allow"),
    }
    role, mia = Role.objects.get(name="readers").pk, User.objects.get(username="mia").pk
    assert {"topic": "user_roles", "holder": mia, "has": [role], "place": 0} in state
    assert [line["name"] for line in state if line["topic"] == "group"] == ["analysts"]
    assert head["metalake"] == "acme" and head["place"] > 0


@pytest.mark.store
def test_it_stays_as_of_one_place_while_others_write(
    past: History, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BATCH", 2)
    head, *_ = before = lines(wire, STATE)
    half = [line for line in things(before) if line["place"]][:3]
    schemas.create_schema(past.olga, Address(metalake="acme", catalog="lake", schema="later"), None, {})
    past.revoke("lake", "use_catalog")
    past.grant("lake.flights", "select_table")
    roles.drop_role(past.olga, "acme", "readers")
    again = lines(wire, f"{STATE}?place={head['place']}")
    assert things(again) == things(before)
    rest = lines(wire, f"{STATE}?place={head['place']}&after={half[-1]['place']}")
    assert half + things(rest) == [line for line in things(before) if line["place"]]
    now = things(lines(wire, STATE))
    assert "later" in {line.get("name") for line in now} and "readers" not in {line.get("name") for line in now}


@pytest.mark.store
def test_who_was_removed_or_disabled_is_left_out_with_their_roles(past: History, wire: Wire) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    people.add_user(past.olga, "acme", "ida", None, enabled=False)
    roles.assign_roles(past.olga, "acme", "user", "ida", ["readers"])
    head, *_ = lines(wire, STATE)
    people.remove_user(past.olga, "acme", "mia")
    now = things(lines(wire, STATE))
    assert {line["name"] for line in now if line["topic"] == "members"} == {"olga", "nils"}
    assert not [line for line in now if line["topic"] == "user_roles"]
    before = things(lines(wire, f"{STATE}?place={head['place']}"))
    assert {line["name"] for line in before if line["topic"] == "members"} == {"olga", "mia", "nils"}
    assert len([line for line in before if line["topic"] == "user_roles"]) == 1


def test_it_is_asked_as_of_a_moment(past: History, wire: Wire) -> None:
    before = timezone.now()
    past.revoke("lake", "use_catalog")
    text = before.isoformat().replace("+00:00", "Z")
    old = things(lines(wire, f"{STATE}?asOf={text}"))
    assert len([line for line in old if line["topic"] == "grants"]) == 2
    assert len([line for line in things(lines(wire, STATE)) if line["topic"] == "grants" and line["grants"]]) == 1


def test_it_takes_the_right_to_read_everybodys_access(past: History, wire: Wire) -> None:
    User.objects.create_user("sam", PASSWORD)
    mia = User.objects.get(username="mia")
    mia.set_password(PASSWORD)
    mia.save()
    for path in (STATE, USE, AUDIT):
        assert wire("GET", path, user="sam")[0] == 404
        assert wire("GET", path, user="mia")[0] == 403
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    grants.grant_privileges(past.olga, "acme", "readers", Kind.METALAKE, "acme", [("manage_grants", "allow")])
    for path in (STATE, USE, AUDIT):
        assert lines(wire, path, "mia")[-1] == {"end": True}


@pytest.mark.parametrize(
    "query", ["place=x", "place=99999999", "place=-1", "after=3", "asOf=then", "place=1&asOf=2026-01-01T00:00:00Z"]
)
def test_wrong_places_are_refused(past: History, wire: Wire, query: str) -> None:
    status, answer = wire("GET", f"{STATE}?{query}")
    assert status == 400, answer
    for wrong in ("place=x", "place=99999999", "after=-1"):
        assert wire("GET", f"{AUDIT}?{wrong}")[0] == 400
    for wrong in ("after=1.2.3", "after=a.b.c.d", "since=x"):
        assert wire("GET", f"{USE}?{wrong}")[0] == 400


@pytest.mark.store
def test_the_record_of_use_comes_by_whole_hours(
    world: World, wire: Wire, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "BATCH", 2)
    settings.METALAKE_USE_DAYS = 90
    monkeypatch.setattr(usage_counter, "_listeners", [])
    writer = writing.Writer()
    table, now = by_ids([world.t.pk])[world.t.pk], timezone.now()
    for back in range(5):
        for actor in (world.mia, world.olga):
            hour = now - timedelta(hours=back)
            with monkeypatch.context() as then:
                then.setattr(type(actor), "now", hour.timestamp())
                usage_counter.note(actor, operations.LOAD_TABLE, table, usage_counter.ALLOWED)
    assert writer.write()
    usage_counter.take()
    assert Use.objects.count() == 10
    rows = things(lines(wire, USE))
    assert [(row["user"], row["on"], row["operation"], row["times"]) for row in rows] == [
        *[("mia", world.t.pk, "load_table", 1), ("olga", world.t.pk, "load_table", 1)] * 4
    ], "the present hour is not over"
    assert [row["hour"] for row in rows] == sorted(row["hour"] for row in rows)
    rest = things(lines(wire, f"{USE}?after={rows[2]['place']}"))
    assert rest == rows[3:]


@pytest.mark.store
def test_the_audit_comes_by_place_with_what_was_refused(
    past: History, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "BATCH", 2)
    mia = User.objects.get(username="mia")
    mia.set_password(PASSWORD)
    mia.save()
    refusal_audit.forget()
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    assert wire("DELETE", "metalakes/acme/roles/readers", user="mia")[0] == 403
    AuditEntry.objects.create(at=timezone.now(), actor="x", event="y.made", object_id=1, metalake_id=0)
    head, *_ = whole = lines(wire, AUDIT)
    rows = things(whole)
    assert [row["place"] for row in rows] == sorted(row["place"] for row in rows)
    assert "y.made" not in {row["event"] for row in rows} and head["place"] > rows[-1]["place"]
    (refused,) = [row for row in rows if row["event"] == "access.refused"]
    assert (refused["actor"], refused["name"]) == ("mia", "DELETE /api/metalakes/acme/roles/readers")
    assert "drop role" in refused["says"] and refused["on"] == 0
    (granted, *_) = [row for row in rows if row["event"] == "privileges.granted"]
    assert granted["says"].startswith("granted allow use_") and granted["kind"] == "catalog"
    assert things(lines(wire, f"{AUDIT}?after={rows[2]['place']}")) == rows[3:]
    past.grant("lake.flights", "select_table")
    assert things(lines(wire, f"{AUDIT}?place={head['place']}")) == rows
    (since,) = things(lines(wire, f"{AUDIT}?after={head['place']}"))
    assert since["says"] == "granted allow select_table to role readers"


def test_the_rules_are_told_to_members(world: World, wire: Wire) -> None:
    status, answer = wire("GET", "metalakes/acme/access/rules", user="mia")
    assert (status, answer["rules"], answer["operations"]) == (200, rules(), operation_rules())
    (table,) = [rule for rule in rules() if (rule["privilege"], rule["kind"]) == ("select_table", "table")]
    assert table["traversal"] == ["catalog", "schema"] and table["family"] == "relational"
    assert wire("GET", "metalakes/acme/access/rules", user="sam")[0] == 404
