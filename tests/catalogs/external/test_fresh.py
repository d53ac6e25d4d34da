"""What stands here when others put something else in its place: a view, a namesake, a whole other system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authz.callers import actor_of
from authz.models import Grant, User
from authz.policy import Actor
from catalogs.lookup import Ident
from catalogs.models import Catalog, Mirror, RefreshRun, Tombstone
from catalogs.providers.external import Page, Remote
from catalogs.services import schemas, tables
from catalogs.services.external import refresh
from metalake.errors import Forbidden, NotFound
from metalake.models import Securable
from metalake.privileges import Kind, Privilege
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import give
from tests.providers import memory
from tests.providers.memory import MemoryProvider
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOG = "metalakes/demo/catalogs/deep"
SCHEMAS = f"{CATALOG}/schemas"
SALES = f"{SCHEMAS}/shop/tables/sales"


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def walk() -> RefreshRun:
    ended = refresh.carry_on(refresh.begin(Catalog.objects.get(name="deep").pk, here=True).pk)
    assert ended is not None
    return ended


@pytest.fixture
def sales(actor: Actor, admin: Caller, mia: Caller, world: World) -> int:
    """The id of a table that was found outside, and that Mia may read."""
    world.put_schema("shop")
    world.put_table("shop", "sales", columns=("amount",))
    assert admin.get(SALES).status == 200
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema")
    give("mia", Kind.TABLE, "deep.shop.sales", "select_table")
    assert mia.get(SALES).status == 200
    return Securable.objects.get(name="sales").pk


@pytest.fixture
def view(sales: int, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others dropped the table and made a view of its name, which the system lists among its tables."""
    world.drop("shop", "sales")
    world.put_table("shop", "sales", columns=("salary",), is_view="yes")
    remote, list_tables = memory._remote, MemoryProvider.list_tables

    def with_kinds(name: str, kept: dict[str, Any], kind: str) -> Remote:
        is_view = "is_view" in kept["definition"]["properties"]
        return remote(name, kept, Kind.VIEW if is_view else kind)

    def list_with_kinds(self: MemoryProvider, schema: list[str], page: str | None = None, whole: bool = False) -> Page:
        found = list_tables(self, schema, page, whole=True)
        items = found.items if whole else [Remote(one.name, {}, kind=one.kind) for one in found.items]
        return replace(found, items=items)

    monkeypatch.setattr(memory, "_remote", with_kinds)
    monkeypatch.setattr(MemoryProvider, "list_tables", list_with_kinds)


def is_buried(table: int) -> bool:
    stone = Tombstone.objects.get(securable_id=table)
    assert [grant["privilege"] for grant in stone.grants] == ["select_table"]
    return not Securable.objects.filter(pk=table).exists() and not Grant.objects.filter(content_object_id=table)


MEETINGS: dict[str, Callable[[Caller], Any]] = {
    "load": lambda admin: admin.get(SALES).error[0] == 404,
    "listing": lambda admin: names(admin.get(f"{SCHEMAS}/shop/tables")) == [],
    "walk": lambda admin: walk().dropped == 1,
    "alteration": lambda admin: (
        admin.put(SALES, {"@type": "setProperty", "property": "a", "value": "1"}).error[0] == 404
    ),
    "drop": lambda admin: admin.delete(SALES)["dropped"] is False,
}


@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_table_that_became_a_view_is_buried(
    sales: int, view: None, admin: Caller, mia: Caller, world: World, meeting: str
) -> None:
    assert MEETINGS[meeting](admin)
    assert is_buried(sales)
    assert [each.get(SALES).error[0] for each in (admin, mia)] == [404, 404]
    assert names(mia.get(f"{SCHEMAS}/shop/tables")) == []
    assert world.tables() == {"shop.sales"}, "the view is others'"


def test_a_view_of_the_same_identity_and_definition_is_no_table_either(
    sales: int, view: None, mia: Caller, world: World
) -> None:
    kept = Mirror.objects.get(pk=sales)
    with world.open() as state:
        there = state["tables"]["shop\x1fsales"]
        there["identity"] = kept.identity
        kept.version = memory.digest(there["definition"])
        kept.save()
    assert mia.get(SALES).error[0] == 404
    assert is_buried(sales)


def test_what_a_listing_left_out_and_is_a_view_is_buried(
    sales: int, view: None, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryProvider, "list_tables", lambda self, schema, page=None, whole=False: Page([]))
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == []
    assert is_buried(sales)


def test_a_table_in_a_views_place_is_found_as_a_new_one(
    sales: int, view: None, admin: Caller, mia: Caller, world: World
) -> None:
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == []
    world.drop("shop", "sales")
    world.put_table("shop", "sales")
    assert admin.get(SALES).status == 200
    assert mia.get(SALES).error[0] == 404, "the former table's grants"
    assert Securable.objects.get(name="sales").pk != sales


def test_a_namesake_is_shown_at_once_to_who_may_see_what_is_new(
    sales: int, admin: Caller, mia: Caller, world: World
) -> None:
    world.put_table("shop", "sales", columns=("other",))
    loaded = admin.get(SALES)
    assert [column["name"] for column in loaded["table"]["columns"]] == ["other"]
    assert is_buried(sales)
    world.put_table("shop", "sales")
    give("mia", Kind.SCHEMA, "deep.shop", "select_table")
    assert mia.get(SALES).status == 200


def test_a_namesake_is_not_shown_for_the_rights_on_what_it_replaced(sales: int, mia: Caller, world: World) -> None:
    world.put_table("shop", "sales")
    assert mia.get(SALES).error[0] == 404
    assert is_buried(sales)


def test_a_privilege_that_a_read_exercises_is_asked_of_the_namesake(
    sales: int, actor: Actor, mia: Caller, world: World
) -> None:
    give("mia", Kind.TABLE, "deep.shop.sales", "modify_table")
    give("mia", Kind.SCHEMA, "deep.shop", "select_table")
    caller, ident = actor_of(User.objects.get(username="mia")), Ident("demo", "deep", "shop", "sales")
    assert tables.load_table(caller, ident, [Privilege.MODIFY_TABLE])
    world.put_table("shop", "sales")
    with pytest.raises(Forbidden):
        tables.load_table(caller, ident, [Privilege.MODIFY_TABLE])


def test_a_namesake_exists_for_who_may_see_what_is_new(sales: int, actor: Actor, mia: Caller, world: World) -> None:
    ident = Ident("demo", "deep", "shop", "sales")
    world.put_table("shop", "sales")
    tables.table_exists(actor, ident)
    world.put_table("shop", "sales")
    with pytest.raises(NotFound):
        tables.table_exists(actor_of(User.objects.get(username="mia")), ident)


def test_a_schema_that_was_made_again_is_shown_at_once(sales: int, admin: Caller, mia: Caller, world: World) -> None:
    give("mia", Kind.SCHEMA, "deep.shop", "create_table")
    before = Securable.objects.get(name="shop").pk
    world.put_schema("shop", team="others")
    assert admin.get(f"{SCHEMAS}/shop")["schema"]["properties"] == {"team": "others"}
    assert Securable.objects.get(name="shop").pk != before
    world.put_schema("shop")
    schemas.schema_exists(actor_of(User.objects.get(username="admin")), Ident("demo", "deep", "shop"))
    assert not Grant.objects.filter(content_object_id=before).exists()


def test_what_is_gone_and_has_no_namesake_is_a_miss(sales: int, admin: Caller, world: World) -> None:
    world.drop("shop", "sales")
    assert admin.get(SALES).error[0] == 404
    world.drop("shop")
    assert admin.get(f"{SCHEMAS}/shop").error[0] == 404
