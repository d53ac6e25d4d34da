"""A catalog with a write under way is neither dropped nor pointed to another system; what is begun ends there."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from authz.actor import Actor
from authz.models import AuditEntry
from catalogs.models import Catalog, Intent, Reservation
from catalogs.services import catalogs
from metalake.errors import InUse, NotFound
from metalake.models import Securable
from tests.catalogs.callers import Caller, update
from tests.outside.crashes import killed_at, settle_all
from tests.outside.writes import Bench
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

DEEP, FLAT = "metalakes/demo/catalogs/deep", "metalakes/demo/catalogs/flat"
IN_USE = (409, 1010, "CatalogInUseException")


def under_way(bench: Bench, point: str = "after 0") -> Intent:
    """A table that exists outside already, of a server that died."""
    bench.make_schema("flights")
    return killed_at(point, lambda: bench.make_table("flights", "delays"))


def set_to(property: str, value: str) -> dict[str, str]:
    return update("setProperty", property=property, value=value)


@pytest.mark.parametrize("query", ["", "?force=true"])
def test_it_is_not_dropped(bench: Bench, admin: Caller, query: str) -> None:
    intent = under_way(bench)
    assert query or admin.patch(DEEP, False).status == 200
    refused = admin.delete(f"{DEEP}{query}")
    assert refused.error == IN_USE
    assert refused.message == (
        "Catalog deep is in use: create table deep.flights.delays is under way. Try again once it has ended."
    )
    assert Catalog.objects.filter(name="deep").exists()
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, bench.world.tables()) == ("committed", {"hr.staff", "flights.delays"})
    assert admin.delete(f"{DEEP}?force=true")["dropped"] is True
    assert not Intent.objects.exists()


def test_nor_while_it_waits_for_a_decision(bench: Bench, admin: Caller) -> None:
    intent = under_way(bench)
    Intent.objects.filter(pk=intent.pk).update(state=Intent.State.STUCK)
    assert "waits for a decision on its catalog's page" in admin.delete(f"{DEEP}?force=true").message
    assert admin.post(f"{DEEP}/schemas", {"name": "sales"}).status == 200, "others go on"
    intent.refresh_from_db()
    assert intent.state == Intent.State.STUCK


def test_nor_while_a_call_may_still_arrive(bench: Bench, admin: Caller) -> None:
    """It is looked for once more, a minute after its write was undone."""
    under_way(bench)
    settle_all()
    Intent.objects.update(state=Intent.State.ABORTED, lease_until=timezone.now() + timedelta(minutes=1))
    assert admin.delete(f"{DEEP}?force=true").error == IN_USE
    Intent.objects.update(lease_until=None)
    assert admin.delete(f"{DEEP}?force=true")["dropped"] is True


def test_nor_is_its_metalake(bench: Bench, admin: Caller) -> None:
    under_way(bench)
    refused = admin.delete("metalakes/demo?force=true")
    assert refused.error == (409, 1010, "MetalakeInUseException")
    assert "create table deep.flights.delays is under way" in refused.message
    settle_all()
    assert admin.delete("metalakes/demo?force=true")["dropped"] is True


def test_it_is_not_pointed_elsewhere(bench: Bench, admin: Caller, tmp_path: Path) -> None:
    intent, other = under_way(bench), World(tmp_path / "other.json")
    refused = admin.put(DEEP, set_to("world", str(other.path)))
    assert refused.error == IN_USE
    assert admin.get(DEEP)["catalog"]["properties"]["world"] == str(bench.world.path)
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, bench.world.tables()) == ("committed", {"hr.staff", "flights.delays"})
    assert admin.put(DEEP, set_to("world", str(other.path))).status == 200
    assert other.tables() == set()


def test_nor_are_its_names_made_paths(benches: dict[str, Bench], admin: Caller) -> None:
    flat = benches["flat"]
    admin.put(FLAT, set_to("nested-namespaces", "false"))
    killed_at("after 0", lambda: flat.make_schema("north-gates"))
    assert admin.put(FLAT, set_to("nested-namespaces", "true")).error == IN_USE
    settle_all()
    assert admin.put(FLAT, set_to("nested-namespaces", "true")).status == 200


@pytest.mark.parametrize("property", ["cache-ttl", "refresh-interval"])
def test_what_only_concerns_us_may_change(bench: Bench, admin: Caller, property: str) -> None:
    under_way(bench)
    assert admin.put(DEEP, set_to(property, "600")).status == 200
    rename, comment = update("rename", newName="deeper"), update("updateComment", newComment="of the airport")
    assert admin.put(DEEP, rename, comment)["catalog"]["name"] == "deeper"
    settle_all()
    assert Intent.objects.get(verb="create_table").state == Intent.State.COMMITTED


@pytest.mark.parametrize(("point", "state"), [("after 0", "committed"), ("before 0", "aborted")])
def test_disabling_does_not_wait_and_what_was_begun_ends(bench: Bench, admin: Caller, point: str, state: str) -> None:
    intent = under_way(bench, point)
    assert admin.patch(DEEP, False).status == 200
    settle_all()
    intent.refresh_from_db()
    assert intent.state == state
    assert ("flights.delays" in bench.world.tables()) == Securable.objects.filter(name="delays").exists()
    assert Securable.objects.filter(name="delays").exists() == (state == "committed")
    assert admin.put(DEEP, set_to("world", "/tmp/elsewhere.json")).error[:2] == (409, 1009), "nor altered"
    assert admin.delete(DEEP).error[:2] == (409, 1005), "it holds flights"


def test_a_chain_under_way_is_undone_where_its_catalog_was_disabled(bench: Bench, admin: Caller) -> None:
    intent = killed_at("applied", lambda: bench.make_schema("sales:emea"))
    admin.patch(DEEP, False)
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, bench.world.schemas()) == ("aborted", {"hr"})


def test_a_write_that_is_promised_while_its_catalog_is_dropped(
    bench: Bench, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is first, the other notices: no write goes on for a catalog that is no more."""
    bench.make_schema("flights")
    real, begun = Reservation.objects.bulk_create, threading.Event()

    def hesitate(rows: Any) -> Any:
        held = real(rows)
        begun.set()
        dropping.join(2)  # where the store lets it go first
        return held

    def drop() -> None:
        try:
            assert begun.wait(30)
            catalogs.drop_catalog(actor, "demo", "deep", force=True)
        except InUse as refusal:
            refused.append(refusal)
        finally:
            connection.close()

    refused: list[InUse] = []
    dropping = threading.Thread(target=drop)
    monkeypatch.setattr(Reservation.objects, "bulk_create", hesitate)
    dropping.start()
    with suppress(NotFound):
        bench.make_table("flights", "delays")
    dropping.join(60)
    assert not dropping.is_alive()
    is_published = AuditEntry.objects.filter(event="table.created").exists()
    assert ("flights.delays" in bench.world.tables()) == is_published
    assert Catalog.objects.filter(name="deep").exists() == bool(refused)
    assert not Intent.objects.filter(state__in=Intent.LIVE).exists()
