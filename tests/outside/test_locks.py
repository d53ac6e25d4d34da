"""Writes to outside systems, too, are made only to what still has the name that it was found by (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from authz.actor import Actor
from catalogs.models import Intent
from catalogs.services import catalogs, schemas, tables
from catalogs.services.alterations import Alteration
from formats.native.tables import CreateTableRequest, SetProperty
from metalake.errors import NotFound
from metalake.lineage import Address
from metalake.models import Securable
from tests.catalogs.meeting import met
from tests.providers.world import World

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="not offered: a write begins when the other has ended"),
]

COLUMNS = [{"name": "carrier", "type": "string"}]
Write = Callable[[Actor], object]


def ident(schema: str, table: str | None = None) -> Address:
    return Address(metalake="demo", catalog="flat", schema=schema, leaf=table)


@pytest.fixture
def delays(actor: Actor) -> int:
    schemas.create_schema(actor, ident("flights"), None, {})
    asked = CreateTableRequest.model_validate({"name": "delays", "columns": COLUMNS})
    tables.create_native_table(actor, ident("flights", "delays"), asked)
    return Securable.objects.get(name="delays").pk


WRITES: dict[str, Write] = {
    "drop": lambda actor: tables.drop_table(actor, ident("flights", "delays")),
    "rename": lambda actor: tables.rename_table(actor, ident("flights", "delays"), ident("flights", "new")),
    "alter": lambda actor: tables.alter_native_table(
        actor,
        ident("flights", "delays"),
        [SetProperty.model_validate({"@type": "setProperty", "property": "a", "value": "b"})],
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_table_that_was_renamed_is_missing(actor: Actor, delays: int, flat_world: World, write: Write) -> None:
    """Another write's rename is published while this one waits for the row."""
    intents = Intent.objects.count()
    answer = met(lambda: Securable.objects.filter(pk=delays).update(name="late"), lambda: write(actor))
    assert isinstance(answer, NotFound), answer
    assert Securable.objects.get(pk=delays).name == "late"
    assert (flat_world.tables(), Intent.objects.count()) == ({"flights.delays"}, intents)


def test_nothing_is_made_in_a_catalog_that_was_renamed(actor: Actor, delays: int, flat_world: World) -> None:
    rename = Alteration(new_name="level")
    answer = met(
        lambda: catalogs.alter_catalog(actor, "demo", "flat", rename),
        lambda: schemas.create_schema(actor, ident("archive"), None, {}),
    )
    assert isinstance(answer, NotFound), answer
    assert flat_world.schemas() == {"flights"}
