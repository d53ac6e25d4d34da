"""What stands here when others put something else in its place: a view, a namesake, a whole other system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import Grant, User
from catalogs.models import Catalog, Listing, Mirror, RefreshRun, Tombstone
from catalogs.services import schemas, tables
from metalake.errors import Forbidden, NotFound, ProviderUnavailable
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from metalake.privileges import Privilege
from outside import mirror, reads, refresh
from providers import circuit_breaker, remote
from providers.remote_objects import Page, Remote, digest
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers import world as world_module
from tests.providers.memory import MemoryTables
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

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
    made, list_tables = world_module.remote_of, MemoryTables.list

    def with_kinds(name: str, kept: dict[str, Any], kind: str) -> Remote:
        is_view = "is_view" in kept["definition"]["properties"]
        return made(name, kept, Kind.VIEW if is_view else kind)

    def list_with_kinds(self: MemoryTables, schema: list[str], page: str | None = None, whole: bool = False) -> Page:
        found = list_tables(self, schema, page, whole=True)
        items = found.items if whole else [Remote(one.name, {}, kind=one.kind) for one in found.items]
        return replace(found, items=items)

    monkeypatch.setattr(world_module, "remote_of", with_kinds)
    monkeypatch.setattr(MemoryTables, "list", list_with_kinds)


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
        kept.version = digest(there["definition"])
        kept.save()
    assert mia.get(SALES).error[0] == 404
    assert is_buried(sales)


def test_what_a_listing_left_out_and_is_a_view_is_buried(
    sales: int, view: None, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryTables, "list", lambda self, schema, page=None, whole=False: Page([]))
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
    caller, ident = (
        actor_of(User.objects.get(username="mia")),
        Address(metalake="demo", catalog="deep", schema="shop", leaf="sales"),
    )
    assert tables.load_table(caller, ident, [Privilege.MODIFY_TABLE])
    world.put_table("shop", "sales")
    with pytest.raises(Forbidden):
        tables.load_table(caller, ident, [Privilege.MODIFY_TABLE])


def test_a_namesake_exists_for_who_may_see_what_is_new(sales: int, actor: Actor, mia: Caller, world: World) -> None:
    ident = Address(metalake="demo", catalog="deep", schema="shop", leaf="sales")
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
    schemas.schema_exists(
        actor_of(User.objects.get(username="admin")), Address(metalake="demo", catalog="deep", schema="shop")
    )
    assert not Grant.objects.filter(content_object_id=before).exists()


def test_what_is_gone_and_has_no_namesake_is_a_miss(sales: int, admin: Caller, world: World) -> None:
    world.drop("shop", "sales")
    assert admin.get(SALES).error[0] == 404
    world.drop("shop")
    assert admin.get(f"{SCHEMAS}/shop").error[0] == 404


@pytest.fixture
def other(tmp_path: Path) -> World:
    """Another system, where the shop's table has other columns and there is a schema more."""
    made = World(tmp_path / "other.json")
    made.put_schema("shop")
    made.put_schema("new")
    made.put_table("shop", "sales", columns=("zzz",))
    made.put_table("shop", "late")
    return made


def keep_for_a_day(admin: Caller) -> None:
    assert admin.put(CATALOG, {"@type": "setProperty", "property": "cache-ttl", "value": "86400"}).status == 200


def point_to(admin: Caller, world: World) -> None:
    update = {"@type": "setProperty", "property": "world", "value": str(world.path)}
    assert admin.put(CATALOG, update).status == 200


def columns(answer: Any) -> list[str]:
    return [column["name"] for column in answer["table"]["columns"]]


@pytest.mark.parametrize("is_walked", [False, True])
def test_a_catalog_that_leads_elsewhere_answers_from_there_at_once(
    sales: int, admin: Caller, other: World, is_walked: bool
) -> None:
    keep_for_a_day(admin)
    assert names(admin.get(SCHEMAS)) == ["shop"]
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == ["sales"]
    assert columns(admin.get(SALES)) == ["amount"]
    if is_walked:
        assert walk().state == RefreshRun.State.DONE
    point_to(admin, other)
    assert columns(admin.get(SALES)) == ["zzz"]
    assert names(admin.get(SCHEMAS)) == ["new", "shop"]
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == ["late", "sales"]
    assert columns(admin.get(SALES)) == ["zzz"], "of the schema that is there"
    asked = {verb: other.calls(verb) for verb in ("list_schemas", "list_tables", "load_table")}
    assert columns(admin.get(SALES)) == ["zzz"]
    assert names(admin.get(SCHEMAS)) == ["new", "shop"]
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == ["late", "sales"]
    assert {verb: other.calls(verb) for verb in asked} == asked, "what it says is kept as before"


@pytest.mark.parametrize("question", ["load", "list"])
def test_an_answer_on_its_way_while_the_catalog_is_altered_is_not_kept(
    sales: int, admin: Caller, other: World, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    keep_for_a_day(admin)
    meet, elsewhere = mirror.import_leaves, [other]

    def altered_meanwhile(*given: Any, **named: Any) -> Any:
        if elsewhere:
            point_to(admin, elsewhere.pop())
        return meet(*given, **named)

    monkeypatch.setattr(mirror, "import_leaves", altered_meanwhile)
    asked, verb = {"load": (SALES, "load_table"), "list": (f"{SCHEMAS}/shop/tables", "list_tables")}[question]
    assert admin.get(asked).status == 200
    assert not elsewhere
    assert [admin.get(asked).status for _ in range(2)] == [200, 200]
    assert other.calls(verb) == 1


def test_a_clock_that_is_ahead_makes_no_answer_of_the_former_system_fresh(
    sales: int, admin: Caller, other: World
) -> None:
    keep_for_a_day(admin)
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == ["sales"]
    ahead = timezone.now() + timedelta(seconds=30)
    Mirror.objects.update(taken_at=ahead)
    Listing.objects.update(taken_at=ahead)
    point_to(admin, other)
    assert columns(admin.get(SALES)) == ["zzz"]
    assert names(admin.get(f"{SCHEMAS}/shop/tables")) == ["late", "sales"]


@pytest.mark.store
def test_a_walk_of_the_former_system_ends(sales: int, admin: Caller, other: World) -> None:
    keep_for_a_day(admin)
    run = refresh.begin(Catalog.objects.get(name="deep").pk, here=True)
    ended = refresh.carry_on(run.pk, lambda run: None if run.fence != 1 else _point_once(admin, other))
    assert ended is not None
    assert (ended.state, ended.error) == (
        RefreshRun.State.FAILED,
        "admin altered where the catalog leads; start the refresh again.",
    )
    assert walk().state == RefreshRun.State.DONE


def _point_once(admin: Caller, other: World) -> None:
    if Catalog.objects.get(name="deep").properties["world"] != str(other.path):
        point_to(admin, other)


def test_a_system_that_failed_says_nothing_of_the_one_that_takes_its_place(
    sales: int, actor: Actor, admin: Caller, world: World, other: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)
    world.fail("load_table", *["down"] * 20)
    for _ in range(3):
        with pytest.raises(ProviderUnavailable):
            tables.load_table(actor, Address(metalake="demo", catalog="deep", schema="shop", leaf="sales"))
    assert circuit_breaker.line_of(Catalog.objects.get(name="deep").pk).is_open
    point_to(admin, other)
    assert columns(admin.get(SALES)) == ["zzz"]


def test_a_catalog_that_was_never_called_may_lead_elsewhere(actor: Actor, admin: Caller, other: World) -> None:
    point_to(admin, other)
    assert names(admin.get(SCHEMAS)) == ["new", "shop"]


def test_what_only_says_how_long_answers_keep_leaves_them(sales: int, admin: Caller, world: World) -> None:
    run = refresh.begin(Catalog.objects.get(name="deep").pk, here=True)
    keep_for_a_day(admin)
    run.refresh_from_db()
    assert run.state == RefreshRun.State.RUNNING


def age() -> None:
    """As if all that is known had been known for long."""
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))


@pytest.mark.store
@pytest.mark.parametrize("kind", ["schemas", "tables"])
def test_many_that_were_dropped_outside_are_shown_no_more(actor: Actor, admin: Caller, world: World, kind: str) -> None:
    """More than one request asks for by name."""
    keep_for_a_day(admin)
    listing, above = (SCHEMAS, []) if kind == "schemas" else (f"{SCHEMAS}/shop/tables", ["shop"])
    put = world.put_schema if kind == "schemas" else world.put_table
    world.put_schema("shop")
    for number in range(40):
        put(*above, f"one{number:02}")
    assert len(names(admin.get(listing))) == 40 + (kind == "schemas")
    age()
    for number in range(1, 40):
        world.drop(*above, f"one{number:02}")
    left = ["one00", "shop"] if kind == "schemas" else ["one00"]
    assert names(admin.get(f"{listing}?refresh=true")) == left
    for _ in range(4):
        assert names(admin.get(listing)) == left
    assert Tombstone.objects.count() == 39
    asked = world.calls(f"list_{kind}")
    assert names(admin.get(listing)) == left
    assert world.calls(f"list_{kind}") == asked, "all that is gone is buried, so the listing counts"


def test_what_leads_to_schemas_that_are_there_and_what_was_just_made_is_shown(
    actor: Actor, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "LOOKS", 0)
    for levels in (("a",), ("a", "b"), ("a", "b", "c"), ("gone",), ("gone", "too")):
        world.put_schema(*levels)
    assert names(admin.get(SCHEMAS)) == ["a", "gone"]
    age()
    admin.post(SCHEMAS, {"name": "made"})
    admin.post(SCHEMAS, {"name": "way:made"})
    for levels in (("a",), ("a", "b"), ("gone",), ("gone", "too"), ("made",), ("way",), ("way", "made")):
        world.drop(*levels)
    Mirror.objects.update(taken_at=timezone.now() - timedelta(minutes=10))
    assert names(admin.get(SCHEMAS)) == ["a", "made", "way"]
    assert names(admin.get(f"{SCHEMAS}?parentSchema=a")) == ["a:b"]
    assert names(admin.get(f"{SCHEMAS}?parentSchema=a:b")) == ["a:b:c"]
    assert names(admin.get(f"{SCHEMAS}?parentSchema=gone")) == []


def test_a_listing_that_hides_rows_is_cut_after_it_hid_them(
    actor: Actor, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d"):
        world.put_schema(name)
    assert names(admin.get(SCHEMAS)) == ["a", "b", "c", "d"]
    age()
    monkeypatch.setattr(reads, "LOOKS", 0)
    world.drop("a")
    world.drop("b")
    listed = schemas.list_schemas(actor, Address(metalake="demo", catalog="deep"), limit=1)
    assert [path.leaf for path in listed.paths] == ["c"]
