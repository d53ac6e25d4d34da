"""The published Python client as it comes, without credentials, against a server that believes names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gravitino import GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.api.catalog import Catalog
from gravitino.api.metalake_change import MetalakeChange
from gravitino.api.rel.types.types import Types
from gravitino.auth.simple_auth_provider import SimpleAuthProvider
from gravitino.dto.rel.column_dto import ColumnDTO
from gravitino.exceptions import base as errors

from tests.servers import MetalakeServer, StartMetalake

pytestmark = pytest.mark.slow

SENT = {"team": "data"}


def live(server: MetalakeServer, metalake: str, maker: str, who: Any = None) -> None:
    """A metalake and what is in it, each made and compared with what was sent, as Gravitino's own suites do."""
    admin = GravitinoAdminClient(server.url, auth_data_provider=who)
    made = admin.create_metalake(metalake, "ours", SENT)
    assert (made.comment(), made.properties(), made.audit_info().creator()) == ("ours", SENT, maker)
    assert metalake in [each.name() for each in admin.list_metalakes()]
    assert admin.alter_metalake(metalake, MetalakeChange.update_comment("theirs")).comment() == "theirs"

    client = GravitinoClient(server.url, metalake, auth_data_provider=who)
    lake = client.create_catalog("lake", Catalog.Type.RELATIONAL, "lakehouse-iceberg", "tables", SENT)
    assert lake.properties().items() > SENT.items() and "warehouse" in lake.properties()
    assert lake.as_schemas().create_schema("sales", "sold", SENT).properties() == SENT
    columns = [ColumnDTO.builder().with_name("id").with_data_type(Types.LongType.get()).build()]
    orders = NameIdentifier.of("sales", "orders")
    table = lake.as_table_catalog().create_table(orders, columns, "what", SENT)
    assert (table.properties(), table.audit_info().creator()) == (SENT, maker)
    shown = lake.as_table_catalog().load_table(orders).properties()
    assert shown.items() > SENT.items() and shown["location"].startswith("file:"), "loading it shows what it got"
    assert client.load_catalog("lake").properties() == lake.properties()
    assert lake.as_table_catalog().drop_table(orders) is True
    assert client.drop_catalog("lake", force=True) is True
    assert admin.drop_metalake(metalake, force=True) is True


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], SimpleAuthProvider]:
    """How the client names its user."""

    def provider(name: str) -> SimpleAuthProvider:
        monkeypatch.setenv("GRAVITINO_USER", name)
        return SimpleAuthProvider()

    return provider


def test_whom_the_setting_names(start_metalake: StartMetalake, named: Callable[[str], Any]) -> None:
    server = start_metalake(METALAKE_AUTHENTICATORS="simple", METALAKE_SERVICE_ADMINS="anonymous,ada")
    live(server, "first", "anonymous")
    live(server, "second", "ada", named("ada"))
    with pytest.raises(errors.ForbiddenException):
        GravitinoAdminClient(server.url, auth_data_provider=named("bob")).create_metalake("third", "", {})


@pytest.mark.long
def test_whoever_without_authorization(start_metalake: StartMetalake, named: Callable[[str], Any]) -> None:
    server = start_metalake(METALAKE_AUTHENTICATORS="simple", METALAKE_AUTHORIZATION="off")
    live(server, "first", "anonymous")
    live(server, "second", "bob", named("bob"))
