"""Views of a system in memory, the whole way through the services and both wires: written there, and only read."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from authz.models import AuditEntry
from catalogs.lookup import find
from catalogs.models import Catalog, Intent, Mirror, Tombstone
from catalogs.services import catalogs
from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from outside import mirror, refresh
from providers import circuit_breaker, registry
from providers.remote_objects import Remote
from providers.verbs import VERBS
from tests.catalogs.callers import Caller
from tests.demo import actor, give
from tests.iceberg_rest.world import COLUMNS, replacing, view_version
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.viewing import ReadOnlyMemoryViews, ReadOnlyViewsProvider
from tests.providers.world import World
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.models import ViewMeta, ViewVersion

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

SCHEMAS = "metalakes/demo/catalogs/station/schemas"
VIEWS, TABLES, MOVED = f"{SCHEMAS}/nyc/views", f"{SCHEMAS}/nyc/tables", f"{SCHEMAS}/jfk/views"
TABLE = {"name": "delays", "columns": [{"name": "id", "type": "long"}]}


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def alter(caller: Caller, view: str, *updates: dict[str, Any]) -> Any:
    return caller.send("PUT", view, {"updates": list(updates)})


def station(world: World, monkeypatch: pytest.MonkeyPatch, class_: str) -> World:
    """A catalog of this provider with two schemas."""
    circuit_breaker.forget_all()
    monkeypatch.setitem(registry.PROVIDERS, "viewing", f"tests.providers.viewing:{class_}")
    catalogs.create_catalog(
        actor("admin"), "demo", "station", "relational", "viewing", None, {"world": str(world.path)}
    )
    for schema in ("nyc", "jfk"):
        world.put_schema(schema)
    return world


@pytest.fixture
def writing(admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    return station(world, monkeypatch, "ViewingProvider")


@pytest.fixture
def rows(admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Whose provider offers no views, so that they are rows here, in schemas of the system."""
    circuit_breaker.forget_all()
    catalogs.create_catalog(actor("admin"), "demo", "station", "relational", "memory", None, {"world": str(world.path)})
    world.put_schema("nyc")
    return world


@pytest.fixture
def reading(admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Where engines left two views, one of which cannot be read, and a table."""
    station(world, monkeypatch, "ReadOnlyViewsProvider").put_view("nyc", "delays", comment="Late")
    world.put_view("nyc", "broken", sql="SELECT 2")
    with world.open() as state:
        del state["tables"]["nyc\x1fbroken"]["definition"]["columns"]
    world.put_table("nyc", "flights")
    return world


def test_a_view_is_made_altered_renamed_moved_and_dropped_there(writing: World, admin: Caller) -> None:
    made = admin.send("POST", VIEWS, body("delays", sql("spark"), sql("trino"), securityMode="DEFINER"))["view"]
    assert (made["version"], made["engine"], made["format"]) == (1, "memory", "memory")
    assert [each["dialect"] for each in made["representations"]] == ["spark", "trino"]
    assert admin.get(f"{VIEWS}/delays")["view"] == made and names(admin.get(VIEWS)) == ["delays"]
    assert names(admin.get(TABLES)) == [] and admin.get(f"{TABLES}/delays").status == 404
    edit = update("updateRepresentation", representation=sql("trino", "SELECT 2"))
    altered = alter(admin, f"{VIEWS}/delays", edit, update("setProperty", property="team", value="ops"))["view"]
    assert altered["version"] == 2 and altered["properties"] == {"team": "ops"}
    renamed = alter(admin, f"{VIEWS}/delays", update("rename", newName="late"))["view"]
    assert renamed["version"] == 3 and writing.tables() == {"nyc.late"}
    moved = alter(admin, f"{VIEWS}/late", update("rename", newName="late", newSchemaName="jfk"))["view"]
    assert moved["version"] == 4 and writing.tables() == {"jfk.late"}
    assert names(admin.get(VIEWS)) == [] and names(admin.get(MOVED)) == ["late"]
    back = admin.send("POST", f"{MOVED}/late/versions/1/rollback")["view"]
    assert back["version"] == 5 and back["properties"] == {}
    assert admin.delete(f"{MOVED}/late")["dropped"] is True and admin.delete(f"{MOVED}/late")["dropped"] is False
    assert writing.tables() == set() and not Mirror.objects.filter(securable__kind=Kind.VIEW).exists()
    assert set(Intent.objects.values_list("state", flat=True)) == {Intent.State.COMMITTED}
    events = AuditEntry.objects.filter(kind=Kind.VIEW).order_by("pk").values_list("event", flat=True)
    assert [event.removeprefix("view.") for event in events] == [
        *("created", "altered", "renamed", "renamed", "altered", "dropped")
    ]
    assert ViewVersion.objects.count() == 5 and ViewMeta.objects.get().deleted_at


def test_a_name_is_a_tables_or_a_views(writing: World, admin: Caller) -> None:
    assert admin.send("POST", VIEWS, body("delays")).status == 200
    assert admin.send("POST", TABLES, TABLE).status == 409
    assert admin.send("POST", TABLES, TABLE | {"name": "flights"}).status == 200
    assert admin.send("POST", VIEWS, body("flights")).status == 409
    onto = alter(admin, f"{VIEWS}/delays", update("rename", newName="flights"))
    assert onto.status == 409 and "Table" in onto.message
    with_more = alter(admin, f"{VIEWS}/delays", update("rename", newName="a"), update("updateComment", newComment="b"))
    assert with_more.status == 400 and "comes alone" in with_more.message
    writing.put_table("nyc", "weather")  # which nobody has met
    assert admin.send("POST", VIEWS, body("weather")).status == 409
    assert writing.tables() == {"nyc.delays", "nyc.flights", "nyc.weather"}


def test_what_others_make_of_a_view_is_met(writing: World, admin: Caller) -> None:
    writing.put_view("nyc", "delays")
    for number in range(4):
        writing.put_table("nyc", f"t{number}")
    assert names(admin.get(TABLES)) == ["t0", "t1", "t2", "t3"]
    assert names(admin.get(VIEWS)) == ["delays"]
    details = admin.get(f"{VIEWS}?details=true")["views"]
    assert [(each["name"], each["dialects"], each["broken"]) for each in details] == [("delays", ["spark"], None)]
    first = Securable.objects.get(name="delays").pk
    writing.put_view("nyc", "delays", sql="SELECT 2")
    another = admin.get(f"{VIEWS}/delays")["view"]
    assert (another["representations"][0]["sql"], another["version"]) == ("SELECT 2", 1)
    assert Tombstone.objects.get().securable_id == first
    writing.drop("nyc", "delays")
    assert names(admin.get(VIEWS)) == [] and admin.get(f"{VIEWS}/delays").status == 404
    assert Tombstone.objects.count() == 2


def test_views_in_rows_lie_in_schemas_of_the_system(rows: World, admin: Caller) -> None:
    """It is told of none; a table that others give the name of one stays hidden behind it."""
    made = admin.send("POST", VIEWS, body("delays", sql("spark"), sql("trino")))["view"]
    assert (made["format"], made["securityMode"]) == ("metalake", "DEFINER")
    rows.put_table("nyc", "delays")
    assert names(admin.get(TABLES)) == [] and names(admin.get(VIEWS)) == ["delays"]
    assert admin.get(f"{TABLES}/delays").status == 404
    assert admin.send("POST", TABLES, TABLE).status == 409
    rows.drop("nyc", "delays")
    refused = admin.delete(f"{SCHEMAS}/nyc")
    assert refused.status == 409 and "not empty" in refused.message, "its schema is not dropped from below it"
    assert rows.schemas() == {"nyc"} and Intent.objects.count() == 0


def test_views_in_rows_go_with_a_schema_that_others_drop(rows: World, admin: Caller) -> None:
    assert admin.send("POST", VIEWS, body("delays")).status == 200
    rows.drop("nyc")
    Securable.objects.update(create_time="2020-01-01T00:00:00Z")  # long known, so that it is missed
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="station").pk, here=True, accept_drops=True).pk)
    assert run is not None and run.state == run.State.DONE
    assert set(Tombstone.objects.values_list("full_name", flat=True)) == {"station.nyc", "station.nyc.delays"}
    assert ViewMeta.objects.get().deleted_at and ViewVersion.objects.get().deleted_at
    rows.put_schema("nyc")
    assert names(admin.get(VIEWS)) == [] and admin.send("POST", VIEWS, body("delays")).status == 200


NATIVE_WRITES: list[tuple[str, str, Any]] = [
    ("POST", VIEWS, body("more")),
    ("PUT", f"{VIEWS}/delays", {"updates": [update("updateComment", newComment="Other")]}),
    ("PUT", f"{VIEWS}/delays", {"updates": [update("addRepresentation", representation=sql("trino"))]}),
    ("PUT", f"{VIEWS}/delays", {"updates": [update("replaceView", representations=[sql("trino")])]}),
    ("PUT", f"{VIEWS}/delays", {"updates": [update("rename", newName="late")]}),
    ("PUT", f"{VIEWS}/delays", {"updates": [update("rename", newName="late", newSchemaName="jfk")]}),
    ("DELETE", f"{VIEWS}/delays", None),
    ("DELETE", f"{VIEWS}/broken", None),
]


def test_views_that_are_only_read_are_shown(reading: World, admin: Caller) -> None:
    assert names(admin.get(VIEWS)) == ["broken", "delays"] and names(admin.get(TABLES)) == ["flights"]
    view = admin.get(f"{VIEWS}/delays")["view"]
    assert (view["comment"], view["version"], view["format"]) == ("Late", 1, "memory")
    assert [each["version"] for each in admin.get(f"{VIEWS}/delays/versions")["versions"]] == [1]
    broken = admin.get(f"{VIEWS}/broken")
    assert broken.status == 405 and broken.message == "It is a view without its columns."
    details = {each["name"]: each["broken"] for each in admin.get(f"{VIEWS}?details=true")["views"]}
    assert details == {"broken": "It is a view without its columns.", "delays": None}


def test_versions_of_a_view_that_became_unreadable_are_shown(reading: World, admin: Caller, mia: Caller) -> None:
    view = f"{VIEWS}/delays"
    assert admin.get(view)["view"]["version"] == 1
    with reading.open() as state:
        del state["tables"]["nyc\x1fdelays"]["definition"]["columns"]
        state["tables"]["nyc\x1fdelays"]["version"] = "later"
    assert admin.get(view).message == "It is a view without its columns."
    assert [each["version"] for each in admin.get(f"{view}/versions")["versions"]] == [1]
    assert admin.get(f"{view}/versions/1")["version"]["comment"] == "Late"
    assert admin.get(f"{view}/versions/1/compare/1")["differences"] == []
    assert admin.get(f"{VIEWS}/broken/versions")["versions"] == [], "no state of it was ever read"
    assert admin.send("POST", f"{view}/versions/1/rollback").status == 405
    give("mia", Kind.CATALOG, "station", "use_catalog", "use_schema", "drop_view")
    assert mia.get(f"{view}/versions").status == 403
    reading.drop("nyc", "delays")
    assert admin.get(f"{view}/versions").status == 404


@pytest.mark.parametrize("write", NATIVE_WRITES, ids=lambda write: f"{write[0]} {write[1][len(VIEWS) :]}")
def test_views_that_are_only_read_are_not_written(
    reading: World, admin: Caller, mia: Caller, write: tuple[str, str, Any]
) -> None:
    """The reason says where to go instead, to those alone who might write; and their system is not asked to."""
    assert admin.get(f"{VIEWS}/delays").status == 200
    before = reading.path.read_bytes()
    refused = admin.send(*write)
    assert refused.error[::2] == (405, "UnsupportedOperationException")
    assert "Memory with views of others are read here, not written" in refused.message
    assert "create the view in an Iceberg catalog" in refused.message
    give("mia", Kind.CATALOG, "station", "use_catalog", "use_schema", "select_view")
    assert mia.send(*write).status == 403
    with reading.open() as state:
        made = [verb for verb in state["calls"] if not verb.startswith(("list", "load"))]
        assert made == [] and state["tables"].keys() == {"nyc\x1fdelays", "nyc\x1fbroken", "nyc\x1fflights"}
    assert before.count(b'"kind":"view"') == reading.path.read_bytes().count(b'"kind":"view"')
    assert not Intent.objects.exists() and ViewVersion.objects.count() == 1


ICEBERG_WRITES: list[tuple[str, str, Any, int]] = [
    ("POST", "namespaces/nyc/views", {"name": "more", "schema": COLUMNS, "view-version": view_version()}, 406),
    ("POST", "namespaces/nyc/register-view", {"name": "more", "metadata-location": "file:///x/v.json"}, 406),
    ("POST", "namespaces/nyc/views/delays", replacing(), 404),
    ("DELETE", "namespaces/nyc/views/delays", None, 404),
    (
        "POST",
        "views/rename",
        {
            "source": {"namespace": ["nyc"], "name": "delays"},
            "destination": {"namespace": ["nyc"], "name": "late"},
        },
        404,
    ),
]


@pytest.mark.parametrize(
    ("class_", "instead"),
    [
        ("ViewingProvider", "over the native API in the form of an engine, or in an Iceberg catalog"),
        ("ReadOnlyViewsProvider", "create the view in an Iceberg catalog"),
    ],
)
def test_the_iceberg_wire_has_none_of_these_views(
    admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch, class_: str, instead: str
) -> None:
    """They are no Iceberg views; what makes one says that there are none, and where to go instead."""
    station(world, monkeypatch, class_).put_view("nyc", "delays")
    assert admin.get(f"{VIEWS}/delays").status == 200
    iceberg = IcebergCaller("admin", catalog="station")
    assert iceberg.get("namespaces/nyc/views").json["identifiers"] == []
    for method in ("GET", "HEAD"):
        assert iceberg.ask(method, "namespaces/nyc/views/delays").status == 404
    for method, path, asked, status in ICEBERG_WRITES:
        refused = iceberg.ask(method, path, asked)
        assert refused.status == status, (method, path, refused.content)
        kind, message = refused.error[1:]
        if status == 406:
            assert kind == "UnsupportedOperationException" and instead in message, message
        else:
            assert kind == "NoSuchViewException" and "nyc.delays" in message
    assert not Intent.objects.exists() and world.tables() == {"nyc.delays"}


@pytest.mark.parametrize("verb", ["create_view", "alter_view", "rename_view", "drop_view"])
def test_a_system_whose_views_are_read_is_never_asked_to_write_one(world: World, verb: str) -> None:
    """Nor for a message or an intent of an older server."""
    arguments = {"schema": ["nyc"], "view": "delays", "to_schema": ["nyc"], "to_view": "late"}
    more = {"definition": {}, "expected": {}, "version": "1", "identity": "1"}
    method = getattr(ReadOnlyMemoryViews, VERBS[verb].method)
    provider = ReadOnlyViewsProvider(1, {"world": str(world.path)})
    with pytest.raises(Unsupported, match="read here, not written"):
        provider.call(
            verb, {name: value for name, value in (arguments | more).items() if name in signature(method).parameters}
        )
    assert world.calls(verb) == 0


def meeting(schema: Located, number: int, sql: str) -> int:
    """How many statements it takes to meet a page of so many views, of which each fourth cannot be read."""
    page = [
        Remote(f"v{place:03}", entry(sql) if place % 4 else {"properties": {}}, f"{place}", sql, Kind.VIEW)
        for place in range(number)
    ]
    with CaptureQueriesContext(connection) as statements:
        mirror.import_leaves(Kind.VIEW, schema, page, timezone.now())
    return len(statements)


def entry(sql: str) -> dict[str, Any]:
    spark = Representation(dialect="spark", sql=sql)
    return ViewDefinition(representations=(spark,), comment=sql).as_json()


def test_a_page_of_views_is_met_in_a_constant_number_of_statements(writing: World, admin: Caller) -> None:
    """When they are new, when all were changed, and when they are as they were."""
    numbers = {}
    for schema, size in (("nyc", 4), ("jfk", 40)):
        assert names(admin.get(f"{SCHEMAS}/{schema}/views")) == []
        here = find(actor("admin"), Address(metalake="demo", catalog="station", schema=schema))
        numbers[size] = [meeting(here, size, sql) for sql in ("SELECT 1", "SELECT 2", "SELECT 2")]
        assert ViewMeta.objects.filter(schema_id=here.id, latest_version=2).count() == size * 3 // 4
        assert ViewMeta.objects.filter(schema_id=here.id, current_version=0).exclude(broken="").count() == size // 4
        row = Securable.objects.get(parent_id=here.id, name="v001")
        assert (row.comment, row.last_modifier) == ("SELECT 2", "metalake")
        assert ViewVersion.objects.filter(view_id=row.pk).count() == 2
    assert numbers[4] == numbers[40] and max(numbers[40]) <= 25, numbers
