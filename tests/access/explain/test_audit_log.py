"""What was done to an object: the newest first, in pages, for whoever may read access to it and nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from access.explain import audit_log
from access.explain.audit_log import audit_of
from access.plans import apply, plan
from access.plans.desired import Change
from authz.actor import Actor
from authz.models import AuditEntry
from authz.services import owners
from authz.services.grant_entries import Given
from catalogs.lookup import by_id
from metalake.errors import Forbidden
from metalake.kinds import Kind
from metalake.models import Securable
from metalake.privileges import Effect
from metalake.privileges import Privilege as P
from tests.authz.small_world import Wire, World

CHANGES = "metalakes/acme/access/objects/{}/changes"
OF_T = CHANGES.format("table/lake.A:B.t")


def commit(world: World, count: int) -> None:
    row: dict[str, Any] = {"actor": "mia", "kind": Kind.TABLE, "object_id": world.t.pk, "full_name": "lake.A:B.t"}
    for number in range(count):
        details = {"changed": [f"c{number}"], "metadata_location": "s3://another/place"}
        AuditEntry.objects.create(at=timezone.now(), event="table.altered", details=details, **row)


@pytest.mark.store
def test_what_was_done_is_told_in_words(world: World, wire: Wire) -> None:
    commit(world, 1)
    name = world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B.t")
    owners.set_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t", "mia", "user")
    status, answer = wire("GET", OF_T)
    assert status == 200
    assert [(change["says"], change["actor"], change["event"]) for change in answer["changes"]] == [
        ("made user mia the owner", "olga", "owner.set"),
        (f"granted allow select_table to role {name}", "olga", "privileges.granted"),
        ("altered: c0", "mia", "table.altered"),
    ]
    assert "s3://" not in str(answer), "places may be what the reader may not see"


def test_it_comes_in_pages(world: World, wire: Wire) -> None:
    commit(world, 5)
    pages = list(wire.pages(OF_T, 2))
    said = [change["says"] for page in pages for change in page["changes"]]
    assert said == [f"altered: c{number}" for number in (4, 3, 2, 1, 0)]
    token = pages[-2]["nextPageToken"]
    other = f"{CHANGES.format('schema/lake.A')}?limit=2&pageToken={token}"
    assert wire("GET", other)[0] == 400, "a token is of its question"


def test_it_is_for_whoever_may_read_access_there(world: World, wire: Wire) -> None:
    missing = wire("GET", CHANGES.format("table/lake.A:B.u"), user="mia")
    assert missing[0] == 404
    assert str(wire("GET", OF_T, user="mia")) == str(missing).replace("lake.A:B.u", "lake.A:B.t")
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A")
    assert wire("GET", OF_T, user="mia")[0] == 403
    world.give("mia", "manage_grants@lake.A:B.t")
    assert wire("GET", OF_T, user="mia")[0] == 200
    assert wire("GET", CHANGES.format("schema/lake.A"), user="mia")[0] == 403


def lines(actor: Actor, of: Securable, **options: bool) -> list[tuple[str, str]]:
    located = by_id(of.pk)
    assert located
    return [(line.on, line.says) for line in audit_of(actor, located, **options)]


@pytest.mark.store
def test_grants_by_plans_and_what_lies_below(world: World) -> None:
    """Of what the reader may read access to: a DENY of that hides a table, in a plan that is about others too."""
    where = {"lake.A": Kind.SCHEMA, "lake.A:B.t": Kind.TABLE, "lake": Kind.CATALOG}
    given = Given(Effect.ALLOW)
    changes = [Change("createRole", "r"), *(Change("grant", "r", P.SELECT_TABLE, given, (Kind.SCHEMA, "lake.A:B")),)]
    apply.apply_plan(world.olga, "acme", plan.plan_changes(world.olga, "acme", changes).token)
    more = [Change("grant", "r", P.MODIFY_TABLE, given, (kind, name)) for name, kind in where.items()]
    apply.apply_plan(world.olga, "acme", plan.plan_changes(world.olga, "acme", more).token)
    says = "granted allow modify_table to role r"
    assert lines(world.olga, world.t) == [("", says)]
    assert lines(world.olga, world.a) == [("", says)], "others are not in the answer of one object"
    assert lines(world.olga, world.a, below=True) == [
        ("schema lake.A and 1 more", says),
        ("schema lake.A:B", "made role r with grants on it"),
    ]
    name = world.give("mia", "use_catalog@lake", "manage_grants@lake.A", "deny manage_grants@lake.A:B.t")
    mine = lines(world.mia, world.a, below=True)
    assert ("", says) in mine and not any("lake.A:B.t" in on or "more" in on for on, _ in mine)
    assert ("", f"granted allow manage_grants to role {name}") in mine
    with pytest.raises(Forbidden):
        lines(world.mia, world.lake, below=True)
    assert ("role r", says.partition(" to role")[0]) in lines(world.olga, world.acme, below=True)


def test_old_changes_are_reached_in_wider_spans(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(world, 3)
    user = {"at": timezone.now(), "event": "user.added", "actor": "mia", "kind": "user", "full_name": "x"}
    AuditEntry.objects.bulk_create(AuditEntry(object_id=1, **user) for _ in range(60))
    monkeypatch.setattr(audit_log, "SPAN", 2)
    assert [says for _, says in lines(world.olga, world.t)] == ["altered: c2", "altered: c1", "altered: c0"]
