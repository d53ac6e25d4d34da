"""What was refused is noted, with who asked for what and why: once a minute, whichever wire was asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection
from django.db.models import Sum, TextField
from django.db.models.functions import Cast, Length

from authz.models import AuditEntry
from metalake import refusal_audit as noted
from metalake.errors import Forbidden
from metalake.models import Outbox
from server.management.commands.serve import flush_refusals
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store
TABLE = "/iceberg/acme/v1/lake/namespaces/A%1FB/tables/t"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    noted.forget()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment that it is for the minutes of refusals; a test moves it."""
    moment = [1000.0]
    monkeypatch.setattr(noted, "clock", lambda: moment[0])
    return moment


def refusals() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(event="access.refused").order_by("id")
    return [(row.actor, row.full_name, row.details["why"]) for row in rows if "why" in row.details]


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
    def gone(*happened: object) -> None:
        raise OperationalError("the disk is full")

    world.give("mia", "use_catalog@lake")
    monkeypatch.setattr(noted, "record", gone)
    status, _ = Wire()("DELETE", "metalakes/acme/catalogs/lake", user="mia")
    assert status == 403


def more() -> list[tuple[str, int]]:
    """Who was told how many more there were."""
    rows = AuditEntry.objects.filter(event="access.refused").order_by("id")
    return [(row.actor, row.details["more"]) for row in rows if "more" in row.details]


def test_names_are_kept_to_a_kibibyte_and_a_hash(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake")
    wire = Wire()
    for asked in (f"DELETE {'a' * 7500}", f"DELETE {'a' * 7499}b", "DELETE " + "\U0001f30d" * 1500):
        noted.refused("mia", asked, Forbidden("mia may not."))
    schemas = f"metalakes/acme/catalogs/lake/schemas?{'x' * 7000}"
    status, _ = wire("POST", schemas, {"name": "n" * 200, "comment": "", "properties": {}}, user="mia")
    assert status == 403
    assert len({asked for _, asked, _ in refusals()}) == 4, "the hash tells two long names apart"
    for row in AuditEntry.objects.filter(event="access.refused"):
        assert len(row.full_name.encode()) < 1024 + 110
    assert refusals()[0][1].startswith("DELETE aaa")
    assert refusals()[0][1].endswith(" of 6483 bytes")
    kept = Outbox.objects.aggregate(total=Sum(Length(Cast("payload", TextField()))))["total"]
    assert kept < 4 * 4096, "nor is it kept on its way to the event log"


def test_a_flood_is_counted_and_not_kept(world: World, now: list[float]) -> None:
    def flood(number: int) -> None:
        noted.refused("mia", f"DELETE /api/metalakes/acme/{number}", Forbidden("mia may not."))

    for number in range(120):
        flood(number)
    for _ in range(30):
        flood(0)
    noted.refused("nils", "DELETE /api/metalakes/acme", Forbidden("nils may not."))
    assert (len(refusals()), more()) == (noted.ROWS + 1, [])
    now[0] += 59
    noted.flush()
    assert more() == []
    now[0] += 1
    noted.flush()
    noted.flush()
    assert more() == [("mia", 150 - noted.ROWS)], "all of them were told or counted"
    flood(0)
    assert len(refusals()) == noted.ROWS + 2, "a new minute"


def test_the_rest_is_told_when_the_process_ends(world: World, now: list[float]) -> None:
    for number in range(noted.ROWS + 5):
        noted.refused("mia", f"DELETE {number}", Forbidden("mia may not."))
    flush_refusals(None)
    assert more() == [("mia", 5)]


def test_callers_without_end_are_counted_as_one(now: list[float], db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `simple` believes any name."""
    monkeypatch.setattr(noted, "CALLERS", 5)
    for number in range(40):
        noted.refused(f"{number}{'n' * 500}", "POST /api/metalakes", Forbidden("nobody may."))
    assert len(refusals()) == 6
    noted.flush(everything=True)
    assert more() == [("others", 34)]
    assert all(len(actor) <= 255 for actor, _, _ in refusals())


@pytest.mark.django_db(transaction=True)
def test_no_refusal_is_lost_between_threads() -> None:
    def flood(caller: int) -> None:
        try:
            for number in range(50):
                noted.refused("mia", f"DELETE {caller}/{number}", Forbidden("mia may not."))
                if number % 10 == 0:
                    noted.flush(everything=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(flood, range(4)))
    noted.flush(everything=True)
    assert len(refusals()) + sum(count for _, count in more()) == 200


def test_what_the_database_did_not_take_is_told_later(
    world: World, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*happened: object) -> None:
        raise OperationalError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(noted, "record", gone)
        for number in range(3):
            noted.refused("mia", f"DELETE {number}", Forbidden("mia may not."))
        noted.flush(everything=True)
    assert (refusals(), more()) == ([], [])
    noted.flush()
    assert more() == [("mia", 3)]
