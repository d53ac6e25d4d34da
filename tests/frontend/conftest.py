"""The metalake `demo`: `admin` owns it, `rita` reads one schema, `mia` is a member with nothing, `otto` no member.

demo > lake > orders > eu > the table sales, and beside them the schema `payroll`, which only the owner sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from catalogs.lookup import nearest
from catalogs.models import Intent, Reservation
from catalogs.services import catalogs, schemas, tables
from catalogs.table_stores import TableDraft
from formats.native.views import CreateViewRequest
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.wire import read
from outside.steps import step
from tests.demo import PASSWORD, actor, add_member, add_user, give, make_demo
from tests.frontend import shop as shops
from tests.providers.world import World
from tests.replaying import replayed
from tests.servers import MetalakeServer
from views_mgmt.services import views

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page

COLUMN = {"id": 1, "name": "amount", "type": "long", "required": False, "doc": "in cents"}


def find(ident: Address) -> Located:
    found = nearest(ident)
    assert found
    return found


def add_schema(*path: str, comment: str | None = None, **properties: str) -> int:
    ident = Address(metalake="demo", catalog="lake", schema=path)
    schemas.create_schema(actor("admin"), ident, comment, properties)
    return find(ident).id


def add_table(*path: str, **properties: str) -> int:
    ident = Address(metalake="demo", catalog="lake", schema=path[:-1], leaf=path[-1])
    draft = TableDraft({"type": "struct", "fields": [COLUMN]}, None, None, properties)
    tables.create_table(actor("admin"), ident, draft)
    return find(ident).id


def add_view(*path: str, catalog: str = "lake", **parts: Any) -> int:
    """A view in the dialect spark; `parts` are those of the native wire's request."""
    address = Address(metalake="demo", catalog=catalog, schema=path[:-1], leaf=path[-1], leaf_kind=Kind.VIEW)
    spark = {"type": "sql", "dialect": "spark", "sql": "SELECT amount FROM sales"}
    body = {"name": path[-1], "representations": [spark], "columns": [{"name": "amount", "type": "long"}], **parts}
    return views.create_view(actor("admin"), address, read(CreateViewRequest, body)).view.id


@pytest.fixture
def ids(db: None) -> dict[str, int]:
    """The ids of the small world's objects, by name."""
    return small_world()


@replayed
def small_world() -> dict[str, int]:
    secret = {"s3.secret-access-key": "do-not-show-me", "owner-team": "platform"}
    make_demo("All that we know", "Our tables", secret)
    made = {"eu": add_schema("orders", "eu", comment="Shops of the union"), "payroll": add_schema("payroll")}
    made["sales"] = add_table("orders", "eu", "sales", comment="One row a sale")
    made |= {
        node.name: node.id for node in find(Address(metalake="demo", catalog="lake", schema=("orders", "eu"))).nodes
    }
    add_member("rita")
    add_member("mia")
    add_user("otto")
    give("rita", Kind.CATALOG, "lake", "use_catalog", role="visitor")
    give("rita", Kind.SCHEMA, "lake.orders:eu", "use_schema", "select_table", role="reader")
    return made


def sign_in(name: str, *, enforce_csrf_checks: bool = False) -> Client:
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    assert client.login(username=name, password=PASSWORD)
    return client


@pytest.fixture
def admin(ids: dict[str, int]) -> Client:
    return sign_in("admin")


@pytest.fixture
def rita(ids: dict[str, int]) -> Client:
    return sign_in("rita")


@pytest.fixture
def otto(ids: dict[str, int]) -> Client:
    return sign_in("otto")


def add_outside(world: World, name: str = "station", provider: str = "memory-flat", **properties: str) -> Located:
    """A catalog of `demo` whose tables lie in another system, owned by `admin`."""
    given = {"world": str(world.path), **properties}
    catalogs.create_catalog(actor("admin"), "demo", name, "relational", provider, None, given)
    return find(Address(metalake="demo", catalog=name))


def add_stuck_intent(catalog: Located, full_name: str = "station.weather.readings", **fields: Any) -> Intent:
    """A creation whose outcome nobody could tell, and the name that it holds."""
    given = {"state": Intent.State.STUCK, "attempts": 10, "last_failure": "Memory did not answer."} | fields
    call = step("create_table", schema=["weather"], table="readings", definition={"password": "never-shown"})
    intent = Intent.objects.create(
        verb="create_table",
        in_catalog_id=catalog.id,
        actor_id=actor("admin").id,
        actor_name="admin",
        full_name=full_name,
        arguments={},
        steps=[call | {"status": "unknown"}],
        **given,
    )
    Reservation.objects.create(intent=intent, scope_id=catalog.id, slot="tabular", name=full_name)
    return intent


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An outside system with two tables in one schema."""
    world = World(tmp_path / "world.json")
    world.put_schema("weather")
    for name in ("stations", "winds"):
        world.put_table("weather", name)
    return world


# In a browser


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> shops.Shop:
    return shops.made_shop(metalake_server)


@pytest.fixture
def desk(page: Page, shop: shops.Shop) -> Iterator[Page]:
    """The first page, signed in; no dialog may ever open."""
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    shops.sign_in(page, shop)
    yield page
    assert not dialogs
