"""What was done to an object: the newest first, in pages, for whoever may read access to it and nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from authz.models import AuditEntry
from authz.services import owners
from metalake.kinds import Kind
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
