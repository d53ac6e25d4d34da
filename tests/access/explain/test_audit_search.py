"""The audit by person, object, event and time: what each reader may read, and how little a page looks at."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access.explain import audit_search
from authz.actor import Actor
from authz.models import AuditEntry
from authz.services import owners
from catalogs.services.cascade import remove
from metalake import refusal_audit
from metalake.errors import Forbidden
from metalake.events import Event, gone, record, stands
from metalake.kinds import Kind
from metalake.lineage import Located
from tests.authz.small_world import Wire, World, at, node_of

pytestmark = pytest.mark.store
AUDIT = "metalakes/acme/access/audit"


def add(world: World, actor: str, event: str, row: Any, name: str, facts: Any = (), **details: Any) -> None:
    record(
        Event(
            name=event,
            actor=actor,
            kind=row.kind,
            object_id=row.pk,
            full_name=name,
            metalake_id=world.acme.pk,
            details=details,
            facts=facts,
        )
    )


def read(wire: Wire, user: str = "olga", **query: str) -> list[tuple[str, str, str]]:
    status, answer = wire("GET", f"{AUDIT}?{'&'.join(f'{name}={value}' for name, value in query.items())}", user=user)
    assert status == 200, answer
    return [(entry["actor"], entry["says"], entry["name"]) for entry in answer["entries"]]


def located(world: World, *rows: Any) -> Located:
    return Located(nodes=tuple(node_of(row) for row in (world.acme, world.lake, *rows)))


def names(actor: Actor, world: World, **wanted: Any) -> list[str]:
    page = audit_search.search(actor, at(world), audit_search.Wanted(**wanted))
    return [entry.name for entry in page.entries]


@pytest.fixture
def some(world: World) -> World:
    AuditEntry.objects.all().delete()
    add(world, "mia", "table.altered", world.t, "lake.A:B.t", changed=["c"])
    add(world, "nils", "schema.altered", world.a, "lake.A", changed=["comment"])
    add(world, "olga", "catalog.altered", world.files, "files", changed=["comment"])
    refusal_audit.forget()
    refusal_audit.refused("mia", "DELETE /api/x", Forbidden("mia may not drop catalog lake."), "acme")
    return world


def test_it_is_filtered(some: World, wire: Wire) -> None:
    every = read(wire)
    assert every == [
        ("mia", "mia may not drop catalog lake.", "DELETE /api/x"),
        ("olga", "altered: comment", "files"),
        ("nils", "altered: comment", "lake.A"),
        ("mia", "altered: c", "lake.A:B.t"),
    ]
    refusal, files, schema, table = every
    assert read(wire, user="mia") and read(wire, outcome="refusals") == [refusal]
    assert read(wire, outcome="changes", event="table") == [table]
    assert read(wire, event="schema.altered") == [schema]
    assert read(wire, type="catalog", fullName="lake") == [schema, table], "and what is below it"
    assert read(wire, type="table", fullName="lake.A:B.t") == [table]
    now = timezone.now()
    AuditEntry.objects.filter(event="table.altered").update(at=now - timedelta(days=3650))
    day = (now - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert read(wire, since=day) == [refusal, files, schema]
    assert read(wire, until=day) == [table]
    assert wire("GET", f"{AUDIT}?outcome=maybe")[0] == 400
    assert wire("GET", f"{AUDIT}?type=table&fullName=lake.A:B.none")[0] == 404


@pytest.mark.parametrize("wish", [{"since": "0001-01-01T00:00:00Z"}, {"until": "9999-12-31T23:59:59Z"}])
def test_a_time_may_be_the_first_or_the_last_there_is(some: World, wire: Wire, wish: dict[str, str]) -> None:
    assert read(wire, **wish) == read(wire)


def test_it_comes_in_pages(some: World, wire: Wire) -> None:
    pages = list(wire.pages(AUDIT, 3))
    assert [len(page["entries"]) for page in pages] == [3, 1]
    assert wire("GET", f"{AUDIT}?limit=3&user=mia&pageToken={pages[0]['nextPageToken']}")[0] == 400


def test_others_read_their_own_and_what_they_may_read_the_access_of(some: World, wire: Wire) -> None:
    assert read(wire, "nils") == [("nils", "altered: comment", "lake.A")]
    assert wire("GET", AUDIT, user="sam")[0] == 404
    assert wire("GET", f"{AUDIT}?type=schema&fullName=lake.A", user="nils")[0] == 404
    assert read(wire, "mia")[0][1] == "mia may not drop catalog lake.", "one's own refusal"
    some.give("nils", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A:B.t")
    assert ("mia", "altered: c", "lake.A:B.t") in read(wire, "nils")
    assert {name for _, _, name in read(wire, "nils")} == {"lake.A", "lake.A:B.t"}


def test_a_name_from_before_a_move_is_for_readers_of_everything(some: World, wire: Wire) -> None:
    some.give("nils", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A")
    add(some, "olga", "table.altered", some.t, "lake.secret.t", changed=["d"])
    assert ("olga", "altered: d", "lake.A:B.t") in read(wire, "nils")
    assert ("olga", "altered: d", "lake.secret.t") in read(wire)
    secret = some.schema("secret")
    some.t.place_under(secret)
    some.t.save()
    assert "secret" not in str(read(wire, "nils", type="schema", fullName="lake.A") + read(wire, "nils"))


def test_what_was_dropped_is_read_by_whoever_reads_the_access_of_its_place(some: World, wire: Wire) -> None:
    some.give("nils", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A")
    for name in ("open", "shut"):
        table = some.table(name)
        add(some, "mia", "table.created", table, f"lake.A:B.{name}", [stands(table)])
        if name == "shut":
            some.give("olga", "deny manage_grants@lake.A:B.shut")
        add(some, "mia", "table.dropped", table, f"lake.A:B.{name}", [gone(table.pk)])
        remove(located(some, some.a, some.ab, table))
    in_a = {"type": "schema", "fullName": "lake.A"}
    dropped = [("mia", "dropped", "lake.A:B.open"), ("mia", "created", "lake.A:B.open")]
    assert [line for line in read(wire, "nils", **in_a) if "dropped" in line[1]] == dropped[:1]
    assert "shut" not in str(read(wire, "nils"))
    assert ("mia", "dropped", "lake.A:B.shut") in read(wire, **in_a), "who reads everything reads it, too"
    assert ("mia", "dropped", "lake.A:B.shut") in read(wire, "mia"), "and who did it"


def test_events_that_reveal_other_objects_are_for_readers_of_everything(some: World, wire: Wire) -> None:
    name = next(iter(audit_search.audit_log.telling_of_others()))
    some.give("nils", "use_catalog@lake", "use_schema@lake.A")
    owners.set_owner(some.olga, "acme", Kind.TABLE, "lake.A:B.t", "nils", "user")
    add(some, "olga", name, some.t, "lake.A:B.t")
    says = name.partition(".")[2].replace("_", " ")
    assert says in [line[1] for line in read(wire)]
    theirs = [line[1] for line in read(wire, "nils")]
    assert "made user nils the owner" in theirs and says not in theirs


def test_a_page_looks_at_so_many_rows_and_says_where_it_stopped(
    some: World, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_search, "SCANNED", 2)
    status, first = wire("GET", f"{AUDIT}?event=table")
    assert (status, first["entries"], first["partial"]) == (200, [], True)
    assert first["searchedTo"]
    rest = wire("GET", f"{AUDIT}?event=table&pageToken={first['nextPageToken']}")[1]
    assert [entry["name"] for entry in rest["entries"]] == ["lake.A:B.t"]
    assert not rest["partial"] and "nextPageToken" not in rest
    monkeypatch.setattr(audit_search, "CHECKED", 1)
    monkeypatch.setattr(audit_search, "AT_ONCE", 1)
    seen, cuts, token = [], 0, ""
    for _ in range(9):
        page = wire("GET", f"{AUDIT}{token and f'?pageToken={token}'}", user="mia")[1]
        seen += [entry["name"] for entry in page["entries"]]
        cuts += page["partial"]
        if not (token := page.get("nextPageToken", "")):
            break
    assert (seen, cuts) == (["DELETE /api/x", "lake.A:B.t"], 3)


def test_statements_do_not_grow_with_the_rows(some: World) -> None:
    def statements(**wanted: Any) -> int:
        with CaptureQueriesContext(connection) as queries:
            names(some.olga, some, **wanted)
        return len(queries)

    names(some.olga, some)  # the policy is loaded
    few = statements(on=located(some)), statements(event="table", since=timezone.now() - timedelta(hours=1))
    for number in range(60):
        add(some, "mia", "table.altered", some.t, "lake.A:B.t", changed=[f"c{number}"])
    assert few == (statements(on=located(some)), statements(event="table", since=timezone.now() - timedelta(hours=1)))
    assert max(few) < 12


def test_a_file_has_all_of_it_up_to_a_bound(some: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_search, "AT_ONCE", 1)
    batches = list(audit_search.every_entry(some.olga, at(some), audit_search.Wanted()))
    assert [entry.name for some_ in batches for entry in some_] == ["DELETE /api/x", "files", "lake.A", "lake.A:B.t"]
    monkeypatch.setattr(audit_search, "MOST_EXPORTED", 2)
    *entries, cut = audit_search.every_entry(some.olga, at(some), audit_search.Wanted())
    assert len(entries) == 2 and cut == AuditEntry.objects.get(event="catalog.altered").at
