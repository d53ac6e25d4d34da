"""What was refused is noted, with who asked for what and why: once a minute, whichever wire was asked."""

from __future__ import annotations

import pytest

from authz.models import AuditEntry
from metalake import events
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store
TABLE = "/iceberg/acme/v1/lake/namespaces/A%1FB/tables/t"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    events._refusals.clear()


def refusals() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(event="access.refused").order_by("id")
    return [(row.actor, row.full_name, row.details["why"]) for row in rows]


def test_a_refusal_is_noted_once(world: World) -> None:
    world.give("mia", "use_catalog@lake")
    for _ in range(3):
        status, body = Wire()("DELETE", "metalakes/acme/catalogs/lake", user="mia")
        assert status == 403
    assert refusals() == [("mia", "DELETE /api/metalakes/acme/catalogs/lake", body["message"])]
    assert "drop catalog lake" in body["message"]


def test_the_iceberg_wire_notes_it_too(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake")
    wire = Wire()
    answer = wire.client.delete(TABLE, headers={"Authorization": wire.basic("mia")})
    assert answer.status_code == 403
    ((actor, asked, why),) = refusals()
    assert (actor, asked) == ("mia", "DELETE /iceberg/acme/v1/lake/namespaces/A\x1fB/tables/t")
    assert "drop table" in why


def test_misses_and_strangers_are_not(world: World) -> None:
    wire = Wire()
    wire("GET", "metalakes/acme/catalogs/lake", user="sam")
    wire("GET", "metalakes/acme/catalogs/none")
    wire("GET", "metalakes/acme/catalogs/lake", authorization="Bearer wrong")
    assert refusals() == []


def test_an_answer_does_not_fail_for_its_note(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    def gone(*happened: object) -> None:
        raise OperationalError("the disk is full")

    world.give("mia", "use_catalog@lake")
    monkeypatch.setattr(events, "record", gone)
    status, _ = Wire()("DELETE", "metalakes/acme/catalogs/lake", user="mia")
    assert status == 403
