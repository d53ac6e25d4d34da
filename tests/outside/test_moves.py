"""A table moves to a schema that has no place in its flat system yet: the place is made with it, or neither."""

from __future__ import annotations

import pytest

from authz.actor import Actor
from catalogs.models import Mirror, Reservation
from catalogs.services import schemas, tables
from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, ProviderUnavailable
from metalake.lineage import Address
from metalake.models import Securable
from tests.outside.crashes import killed_at, settle_all
from tests.providers.flat import FlatMemoryTables
from tests.providers.memory import MemoryTables
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

COLUMNS = [{"name": "carrier", "type": "string"}]


def ident(schema: str, table: str | None = None) -> Address:
    return Address(metalake="demo", catalog="flat", schema=schema, leaf=table)


@pytest.fixture
def delays(actor: Actor) -> int:
    """A table of `flights`, beside `archive`, which only leads to `archive:old`; the table's id."""
    schemas.create_schema(actor, ident("flights"), None, {})
    schemas.create_schema(actor, ident("archive:old"), None, {})
    asked = CreateTableRequest.model_validate({"name": "delays", "columns": COLUMNS})
    tables.create_native_table(actor, ident("flights", "delays"), asked)
    return Securable.objects.get(name="delays").pk


def move(actor: Actor, name: str = "delays") -> None:
    tables.rename_table(actor, ident("flights", "delays"), ident("archive", name))


def has_place() -> bool:
    return Mirror.objects.filter(securable__name="archive").exists()


def test_its_place_is_made_first(actor: Actor, delays: int, flat_world: World) -> None:
    move(actor)
    assert flat_world.schemas() == {"flights", "archive", "archive_x001f_old"}
    assert flat_world.tables() == {"archive.delays"}
    row = Securable.objects.get(pk=delays)
    assert row.parent is not None
    assert (row.name, row.parent.name, has_place()) == ("delays", "archive", True)
    assert not Reservation.objects.exists()
    tables.load_table(actor, ident("archive", "delays"))
    schemas.load_schema(actor, ident("archive"))
    move_back = ident("archive", "delays"), ident("flights", "late")
    tables.rename_table(actor, *move_back)
    assert flat_world.tables() == {"flights.late"}


def test_a_place_that_is_there_is_taken(actor: Actor, delays: int, flat_world: World) -> None:
    flat_world.put_schema("archive", owner_team="ops")
    move(actor)
    assert schemas.load_schema(actor, ident("archive")).row.properties == {"owner_team": "ops"}
    assert flat_world.tables() == {"archive.delays"}


def test_where_the_system_itself_renames(
    actor: Actor, delays: int, flat_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FlatMemoryTables, "renaming", MemoryTables.renaming)
    move(actor, "late")
    assert flat_world.tables() == {"archive.late"}
    assert has_place()
    assert Mirror.objects.get(pk=delays).wire_name == "late"


@pytest.mark.parametrize("verb", ["create_schema", "create_table"])
def test_what_fails_leaves_neither(actor: Actor, delays: int, flat_world: World, verb: str) -> None:
    flat_world.fail(verb, "denied")
    with pytest.raises(ProviderUnavailable):
        move(actor)
    assert flat_world.schemas() == {"flights", "archive_x001f_old"}
    assert flat_world.tables() == {"flights.delays"}
    assert not has_place()


def test_a_namesake_that_is_met_there_leaves_the_place_to_it(actor: Actor, delays: int, flat_world: World) -> None:
    flat_world.put_schema("archive")
    flat_world.put_table("archive", "delays")
    with pytest.raises(AlreadyExists):
        move(actor)
    assert flat_world.tables() == {"flights.delays", "archive.delays"}


@pytest.mark.parametrize(
    ("point", "state"),
    [("before 0", "aborted"), ("after 0", "aborted"), ("after 1", "aborted"), ("after 2", "committed")],
)
def test_a_process_that_ends_on_the_way(actor: Actor, delays: int, flat_world: World, point: str, state: str) -> None:
    intent = killed_at(point, lambda: move(actor))
    settle_all()
    intent.refresh_from_db()
    is_done = state == "committed"
    assert intent.state == state
    assert flat_world.tables() == {"archive.delays" if is_done else "flights.delays"}
    assert ("archive" in flat_world.schemas(), has_place()) == (is_done, is_done)
    assert Securable.objects.filter(pk=delays, parent__name="archive").exists() == is_done
