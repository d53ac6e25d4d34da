"""What an outside system said before a write of ours was published is not believed after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from authz.actor import Actor
from authz.models import Grant
from catalogs.models import Catalog, Mirror, Tombstone
from catalogs.services import schemas, tables
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from outside import refresh
from tests.demo import give
from tests.outside.crashes import killed_at, settle_all
from tests.outside.writes import Bench
from tests.providers.memory import MemoryProvider
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def flights(bench: Bench) -> Bench:
    bench.make_schema("flights")
    bench.make_table("flights", "delays")
    return bench


def then(monkeypatch: pytest.MonkeyPatch, verb: str, act: Callable[[], object]) -> list[object]:
    """Before the next answer to `verb` arrives, `act` happens; what it raised, once it has."""
    original, asked, outcome = MemoryProvider.call, [0], list[object]()

    def answered_late(self: MemoryProvider, called: str, arguments: Any) -> Any:
        if called != verb:
            return original(self, called, arguments)
        asked[0] += 1
        mine = asked[0] == 1
        try:
            return original(self, called, arguments)
        finally:
            if mine:
                # A thread of its own, as whoever else writes has one.
                other = threading.Thread(target=happen)
                other.start()
                other.join(60)
                assert not other.is_alive()

    def happen() -> None:
        try:
            act()
            outcome.append(None)
        except MetalakeError as error:
            outcome.append(error)
        finally:
            connection.close()

    monkeypatch.setattr(MemoryProvider, "call", answered_late)
    return outcome


def listed(bench: Bench, schema: str = "flights") -> list[str]:
    return tables.list_tables(bench.actor, bench.ident(schema)).names


def rows() -> set[str]:
    return set(Securable.objects.filter(kind=Kind.TABLE).exclude(name="staff").values_list("name", flat=True))


def test_a_listing_from_before_a_drop(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    happened = then(
        monkeypatch, "list_tables", lambda: tables.drop_table(flights.actor, flights.ident("flights", "delays"))
    )
    assert listed(flights) == []
    assert (happened, rows()) == ([None], set())
    assert listed(flights) == []


def test_a_listing_from_before_a_rename(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Securable.objects.get(name="delays").pk
    old, new = flights.ident("flights", "delays"), flights.ident("flights", "late")
    happened = then(monkeypatch, "list_tables", lambda: tables.rename_table(flights.actor, old, new))
    assert listed(flights) == ["late"]
    assert (happened, rows()) == ([None], {"late"})
    assert Securable.objects.get(name="late").pk == before
    assert listed(flights) == ["late"]


def test_a_listing_with_what_a_creation_made_and_took_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    left = killed_at("after 0", lambda: bench.make_schema("sales:emea"))
    assert "sales" in bench.world.schemas()
    happened = then(monkeypatch, "list_schemas", settle_all)
    paths = schemas.list_schemas(bench.actor, Address(metalake="demo", catalog="deep")).paths
    left.refresh_from_db()
    assert (left.state, happened) == ("aborted", [None])
    assert "sales" not in [path.leaf for path in paths]
    assert not Securable.objects.filter(name="sales").exists()


def test_a_listing_from_before_a_drop_of_a_schema(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.make_schema("flights")
    happened = then(monkeypatch, "list_schemas", lambda: schemas.drop_schema(bench.actor, bench.ident("flights")))
    paths = schemas.list_schemas(bench.actor, Address(metalake="demo", catalog="deep")).paths
    assert happened == [None]
    assert "flights" not in [path.leaf for path in paths]
    assert not Securable.objects.filter(name="flights").exists()


def test_a_listing_of_a_schema_that_goes_meanwhile(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of others is in the answer, and nothing is left to put it below."""
    bench.make_schema("flights")
    bench.world.put_table("flights", "airports")

    def drop() -> None:
        bench.world.drop("flights", "airports")
        schemas.drop_schema(bench.actor, bench.ident("flights"))

    happened = then(monkeypatch, "list_tables", drop)
    with pytest.raises(NotFound):
        listed(bench)
    assert happened == [None]


def test_a_load_from_before_a_drop(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ident = flights.ident("flights", "delays")
    with flights.world.open() as state:  # so that the answer is news
        state["tables"]["flights\x1fdelays"]["definition"]["comment"] = "late ones"
    happened = then(monkeypatch, "load_table", lambda: tables.drop_table(flights.actor, ident))
    with pytest.raises(NotFound):
        tables.load_table(flights.actor, ident)
    assert (happened, rows()) == ([None], set())


def test_looking_for_what_is_dropped_meanwhile(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two look for a table that others made; one of them drops it before the other's answer arrives."""
    flights.world.put_table("flights", "airports")
    ident = flights.ident("flights", "airports")
    admin = give_all(flights)
    happened = then(monkeypatch, "load_table", lambda: tables.drop_table(admin, ident))
    with pytest.raises(NotFound):
        tables.load_table(admin, ident)
    assert (happened, rows()) == ([None], {"delays"})
    assert not Tombstone.objects.exists(), "it was there for a moment"


def give_all(bench: Bench) -> Actor:
    """Mia, who may now drop what others made in her schemas."""
    give("mia", Kind.CATALOG, bench.catalog, "modify_table", "select_table")
    return bench.actor.refreshed()


def test_a_miss_from_before_a_rename_buries_nothing(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old name is gone there, and then the same row has the new one."""
    give("mia", Kind.TABLE, "deep.flights.delays", "select_table")
    before = Securable.objects.get(name="delays").pk
    old, new = flights.ident("flights", "delays"), flights.ident("flights", "late")
    killed = killed_at("applied", lambda: tables.rename_table(flights.actor, old, new))
    happened = then(monkeypatch, "load_table", settle_all)
    with pytest.raises(NotFound):
        tables.load_table(flights.actor, old)
    killed.refresh_from_db()
    assert (killed.state, happened) == ("committed", [None])
    assert Securable.objects.get(name="late").pk == before
    assert Grant.objects.filter(content_object_id=before).exists()
    assert not Tombstone.objects.exists()


def test_an_older_listing_does_not_undo_what_a_newer_one_found(
    flights: Bench, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table was dropped and made again outside: the newer answer has its namesake, the older one itself."""
    world.put_table("flights", "airports")
    run_now()

    def another() -> None:
        world.drop("flights", "airports")
        world.put_table("flights", "airports")
        run_now()

    happened = then(monkeypatch, "list_tables", another)
    listed(flights)
    assert happened == [None]
    with world.open() as state:
        identity = state["tables"]["flights\x1fairports"]["identity"]
    assert Mirror.objects.get(wire_name="airports").identity == identity
    assert Tombstone.objects.filter(full_name="deep.flights.airports").count() == 1


def test_an_older_listing_does_not_bring_back_what_was_buried(
    flights: Bench, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put_table("flights", "airports")
    listed(flights)
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))

    def drop() -> None:
        world.drop("flights", "airports")
        run_now()

    happened = then(monkeypatch, "list_tables", drop)
    listed(flights)
    assert happened == [None]
    assert rows() == {"delays"}


def test_a_walk_from_before_a_drop(flights: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ident = flights.ident("flights", "delays")
    happened = then(monkeypatch, "list_tables", lambda: tables.drop_table(flights.actor, ident))
    run_now()
    assert (happened, rows()) == ([None], set())


def test_what_was_made_outside_after_a_drop_is_found(flights: Bench, world: World) -> None:
    tables.drop_table(flights.actor, flights.ident("flights", "delays"))
    world.put_table("flights", "delays")
    listed(flights)
    assert rows() == {"delays"}


def run_now() -> None:
    refresh.carry_on(refresh.begin(Catalog.objects.get(name="deep").pk, here=True).pk)
