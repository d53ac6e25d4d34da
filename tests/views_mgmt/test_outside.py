"""Views that engines left in a metastore of either version, and in Glue, as the native wire shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hive_metastore.ttypes import Table

from authz.models import AuditEntry
from catalogs.models import Catalog, Intent, Mirror, Tombstone
from catalogs.services import browsing
from formats.hive.tables import HiveColumn, HiveTable
from formats.iceberg import files, storage
from formats.iceberg.views.builder import new_view_metadata
from metalake.kinds import Kind
from metalake.models import Securable
from outside import refresh
from providers import circuit_breaker
from providers.glue.mapping import table_input
from providers.hive.objects import written
from providers.remote_objects import Remote
from providers.stores import Outcome, ending_of_rename
from tests.catalogs.callers import Caller
from tests.demo import actor, give
from tests.formats.hive.views.samples import (
    SPARK_SQL,
    a_view,
    of_flink,
    of_hive,
    of_spark,
    of_trino,
    of_trino_materialized,
)
from tests.glue import Glue
from tests.hms import HiveMetastore, newer_daily
from tests.providers.glue_catalogs import settings as glue_settings
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.models import ViewMeta, ViewVersion

pytestmark = pytest.mark.django_db(transaction=True)
CATALOGS = "metalakes/demo/catalogs"
BROKEN = a_view(
    view_original_text="/* Presto View: e30= */", parameters={"presto_view": "true", "comment": "Presto View"}
)
FORMS = {"by_hive": of_hive(), "by_spark": of_spark(), "by_trino": of_trino(), "by_flink": of_flink(), "broken": BROKEN}
FORMS["filled"] = of_trino_materialized()


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


class Engines:
    """What engines do in the database `flights` of a metastore."""

    def __init__(self, hms: HiveMetastore, database: str) -> None:
        self.hms, self.database = hms, database
        self.views = f"{CATALOGS}/hive/schemas/{database}/views"
        self.tables = f"{CATALOGS}/hive/schemas/{database}/tables"

    def put(self, name: str, view: HiveTable) -> None:
        with self.hms.client() as client:
            client.create_table(written(view, onto=Table(tableName=name, dbName=self.database)))

    def change(self, name: str, view: HiveTable) -> None:
        with self.hms.client() as client:
            client.alter_table(self.database, name, written(view, onto=client.get_table(self.database, name)))

    def drop(self, name: str) -> None:
        with self.hms.client() as client:
            client.drop_table(self.database, name, True)


@pytest.fixture
def engines(admin: Caller, any_hms: HiveMetastore, settings: Any) -> Iterator[Engines]:
    """The catalog `hive`, in one of whose databases engines left a table and a view in each of their forms."""
    circuit_breaker.forget_all()
    settings.METALAKE_FILE_LOCATIONS = [str(any_hms.warehouse)]
    asked = {"name": "hive", "type": "relational", "provider": "hive", "properties": {"metastore.uris": any_hms.uri}}
    assert admin.post(CATALOGS, asked)["catalog"]["provider"] == "hive"
    made = Engines(any_hms, any_hms.create_database())
    made.put("delays", HiveTable(name="delays", table_type="MANAGED_TABLE", columns=(HiveColumn("id", "int"),)))
    for name, view in FORMS.items():
        made.put(name, view)
    yield made
    with any_hms.client() as client:
        client.drop_database(made.database, True, True)


def test_views_of_every_engine_are_listed_and_loaded(engines: Engines, admin: Caller) -> None:
    assert names(admin.get(engines.views)) == sorted(FORMS)
    assert names(admin.get(engines.tables)) == ["delays"]
    for engine in ("hive", "spark", "trino", "flink"):
        view = admin.get(f"{engines.views}/BY_{engine}")["view"]
        assert (view["name"], view["engine"], view["format"], view["version"]) == (f"by_{engine}", engine, "hive", 1)
        assert [each["dialect"] for each in view["representations"]] == [engine]
    spark = admin.get(f"{engines.views}/by_spark")["view"]
    assert spark["representations"][0]["sql"] == SPARK_SQL and spark["properties"] == {"owner_team": "x"}
    assert [column["name"] for column in spark["columns"]] == ["the_id", "nm"]
    assert spark["securityMode"] is None and spark["defaultSchema"] == "db"
    assert admin.get(f"{engines.views}/by_trino")["view"]["securityMode"] == "DEFINER"


@newer_daily
def test_a_broken_view_is_listed_and_says_what_is_wrong(engines: Engines, admin: Caller) -> None:
    listed = {view["name"]: view for view in admin.get(f"{engines.views}?details=true")["views"]}
    assert sorted(listed) == sorted(FORMS)
    assert listed["by_trino"]["dialects"] == ["trino"] and listed["by_trino"]["broken"] is None
    assert listed["broken"]["dialects"] == [] and "originalSql" in listed["broken"]["broken"]
    refused = admin.get(f"{engines.views}/broken")
    assert refused.status == 405 and "originalSql" in refused.message, refused.body
    engines.change("broken", of_trino())
    assert admin.get(f"{engines.views}/broken")["view"]["version"] == 1


@newer_daily
def test_a_materialized_view_is_shown_as_one_and_changed_by_its_engine_alone(engines: Engines, admin: Caller) -> None:
    filled = f"{engines.views}/filled"
    view = admin.get(filled)["view"]
    assert view["materialized"] and (view["engine"], view["securityMode"]) == ("trino", None)
    assert not admin.get(f"{engines.views}/by_trino")["view"]["materialized"]
    edit = update("updateRepresentation", representation=sql("trino", "SELECT 2 id"))
    for change in (edit, update("updateComment", newComment="x"), update("rename", newName="other")):
        refused = changed(admin, filled, change)
        assert refused.status == 405 and "by the engine that fills it" in refused.message, refused.body
    assert admin.get(filled)["view"] == view


@newer_daily
def test_the_tree_shows_the_comments_of_views_without_the_marks_of_engines(engines: Engines, admin: Caller) -> None:
    assert admin.get(engines.views).status == 200
    owner = actor("admin")
    schema = browsing.locate(owner, Securable.objects.get(name=engines.database).pk)
    shown = {child.name: child.comment for child in browsing.level_below(owner, schema).children}
    assert (shown["by_trino"], shown["by_hive"], shown["broken"]) == ("flights of today", "c", "")


@newer_daily
def test_a_check_knows_which_columns_spark_renames(engines: Engines, admin: Caller) -> None:
    """The view has the_id and nm, its query id and n, as Spark noted with it."""
    check = f"{engines.views}/by_spark/check"
    assert admin.post(check)["dialects"][0]["differences"] == []
    other = admin.post(check, {"representation": sql("spark", "select id, name as n from h2")})["dialects"][0]
    assert [each["text"] for each in other["differences"]] == [
        "It yields “id” instead of “the_id”.",
        "It yields “n” instead of “nm”.",
    ]


@newer_daily
def test_what_engines_change_is_a_new_version(engines: Engines, admin: Caller) -> None:
    view = f"{engines.views}/by_hive"
    assert admin.get(view)["view"]["version"] == 1
    engines.change("by_hive", of_hive(view_original_text="select 2", view_expanded_text="select 2"))
    assert admin.get(view)["view"]["version"] == 2
    assert [each["version"] for each in admin.get(f"{view}/versions")["versions"]] == [2, 1]
    assert admin.get(f"{view}/versions/1")["version"]["representations"][0]["sql"] == "select id, legs from flights"
    engines.change("by_hive", of_hive(view_original_text="select 2", view_expanded_text="select 2", retention=7))
    assert admin.get(view)["view"]["version"] == 2, "nothing of the view itself was changed"


@newer_daily
def test_a_refresh_gives_views_rows_owners_and_tombstones(engines: Engines, admin: Caller) -> None:
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="hive").pk, here=True).pk)
    assert run is not None and run.state == run.State.DONE, run
    rows = {row.name: row for row in Securable.objects.filter(kind=Kind.VIEW, parent__name=engines.database)}
    assert sorted(rows) == sorted(FORMS) and all(row.owner_user for row in rows.values())
    ids = [row.pk for row in rows.values()]
    assert AuditEntry.objects.filter(event="view.found_outside", object_id__in=ids).count() == len(FORMS)
    assert ViewVersion.objects.filter(view_id__in=ids).count() == len(FORMS) - 1, "one cannot be read"
    assert ViewMeta.objects.filter(pk__in=ids).count() == len(FORMS)
    engines.drop("by_flink")
    engines.drop("by_spark")
    engines.put("by_spark", of_hive())
    Securable.objects.filter(kind=Kind.VIEW).update(create_time="2020-01-01T00:00:00Z")
    Mirror.objects.filter(wire_name="by_spark").update(identity="1")
    again = refresh.carry_on(refresh.begin(Catalog.objects.get(name="hive").pk, here=True).pk)
    assert again is not None and again.dropped == 2, again
    assert set(Tombstone.objects.filter(kind=Kind.VIEW).values_list("securable_id", flat=True)) == {
        rows["by_flink"].pk,
        rows["by_spark"].pk,
    }
    assert ViewMeta.objects.get(pk=rows["by_flink"].pk).deleted_at


TURNS: dict[str, Callable[[Engines, Caller], Any]] = {
    "listing of tables": lambda engines, caller: names(caller.get(engines.tables)) == ["by_hive", "delays"],
    "listing of views": lambda engines, caller: "by_hive" not in names(caller.get(engines.views)),
    "load": lambda engines, caller: caller.get(f"{engines.views}/by_hive").status == 404,
}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.usefixtures("mia")
@newer_daily
def test_a_view_that_becomes_a_table_keeps_no_grants(engines: Engines, admin: Caller, turn: str) -> None:
    assert admin.get(f"{engines.views}/by_hive").status == 200
    view = Securable.objects.get(name="by_hive")
    give("mia", Kind.VIEW, f"hive.{engines.database}.by_hive", "select_view")
    engines.drop("by_hive")
    engines.put("by_hive", HiveTable(name="by_hive", table_type="MANAGED_TABLE", columns=(HiveColumn("id", "int"),)))
    assert TURNS[turn](engines, admin)
    assert not Securable.objects.filter(pk=view.pk).exists()
    assert Tombstone.objects.get(securable_id=view.pk).grants
    assert admin.get(f"{engines.tables}/by_hive").status == 200
    engines.drop("by_hive")
    engines.put("by_hive", of_hive())
    assert admin.get(f"{engines.tables}/by_hive").status == 404
    assert admin.get(f"{engines.views}/by_hive").status == 200


@pytest.mark.usefixtures("mia")
@newer_daily
def test_a_table_that_becomes_a_view_keeps_no_grants_and_no_past(engines: Engines, admin: Caller) -> None:
    mia, name = Caller("mia"), f"hive.{engines.database}.delays"
    give("mia", Kind.CATALOG, "hive", "use_catalog", "use_schema")
    assert admin.get(f"{engines.tables}/delays").status == 200
    give("mia", Kind.TABLE, name, "select_table", role="readers")
    assert mia.get(f"{engines.tables}/delays").status == 200
    engines.drop("delays")
    engines.put("delays", of_hive())
    for paths in (engines.tables, engines.views):
        assert mia.get(f"{paths}/delays").status == 404
    assert admin.get(f"{engines.views}/delays")["view"]["version"] == 1
    access = f"metalakes/demo/access/objects/view/{name}"
    told = [*admin.get(f"{access}/changes")["changes"], *admin.get(f"{access}/moments")["moments"]]
    assert [each["event"] for each in told if "select_table" in str(each) or "table" in each["event"]] == []
    assert [each["event"] for each in admin.get(f"{access}/changes")["changes"]] == ["view.found_outside"]


@newer_daily
def test_an_answer_is_used_again_for_its_time(engines: Engines, admin: Caller) -> None:
    assert changed(admin, f"{CATALOGS}/hive", update("setProperty", property="cache-ttl", value="3600")).status == 200
    view = f"{engines.views}/by_hive"
    assert admin.get(view)["view"]["version"] == 1
    engines.change("by_hive", of_hive(view_original_text="select 2", view_expanded_text="select 2"))
    kept = admin.get(view)
    assert kept["view"]["version"] == 1 and int(kept.headers["Age"]) >= 0
    assert admin.get(f"{view}?refresh=true")["view"]["version"] == 2


def test_an_iceberg_view_is_its_metadata_file(engines: Engines, admin: Caller) -> None:
    place = (engines.hms.warehouse / engines.database / "routes").as_uri()

    def point_to(version: int, sql: str) -> HiveTable:
        metadata = new_view_metadata(
            view_uuid="7d3e2f60-5a1b-4c8d-9e0f-1a2b3c4d5e6f",
            location=place,
            schema={"type": "struct", "schema-id": 0, "fields": []},
            version={
                "version-id": 1,
                "schema-id": 0,
                "timestamp-ms": 1,
                "summary": {},
                "default-namespace": ["db"],
                "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
            },
            properties={"comment": "where to"},
            now_ms=1_700_000_000_000,
        )
        pointer, _ = files.write_metadata(storage.file_io({}), metadata, version=version)
        return a_view(location=place, parameters={"table_type": "ICEBERG-VIEW", "metadata_location": pointer})

    engines.put("routes", point_to(0, "select 1"))
    listed = {view["name"]: view for view in admin.get(f"{engines.views}?details=true")["views"]}
    assert listed["routes"]["engine"] == "iceberg" and listed["routes"]["dialects"] == [], "it was not read yet"
    view = admin.get(f"{engines.views}/routes")["view"]
    assert (view["format"], view["comment"], view["version"]) == ("iceberg", "where to", 1)
    engines.change("routes", point_to(1, "select 2"))
    assert admin.get(f"{engines.views}/routes")["view"]["version"] == 2
    assert "metadata-location" in admin.get(f"{engines.views}/routes/versions/1")["version"]["storedAs"]


def new(name: str, dialect: str = "hive", **parts: Any) -> dict[str, Any]:
    columns = [{"name": "id", "type": "long", "comment": "who"}]
    return body(name, sql(dialect, "select id from delays"), columns=columns, **parts)


def changed(caller: Caller, view: str, *updates: dict[str, Any]) -> Any:
    return caller.send("PUT", view, {"updates": list(updates)})


@pytest.mark.parametrize("dialect", ["hive", "spark", "trino", "flink"])
def test_a_view_is_written_in_the_form_of_its_engine(engines: Engines, admin: Caller, dialect: str) -> None:
    made = admin.send("POST", engines.views, new("New", dialect, properties={"team": "ops"}, comment="of us"))["view"]
    assert (made["name"], made["engine"], made["version"], made["audit"]["creator"]) == ("new", dialect, 1, "admin")
    view = f"{engines.views}/new"
    assert admin.get(view)["view"] == made
    set_team = update("setProperty", property="team", value="crew")
    edit = update("updateRepresentation", representation=sql(dialect, "select 2 as id"))
    altered = changed(admin, view, set_team, edit, update("updateComment", newComment="ours"))["view"]
    assert (altered["version"], altered["properties"], altered["comment"]) == (2, {"team": "crew"}, "ours")
    assert altered["representations"][0]["sql"] == "select 2 as id"
    assert changed(admin, view, set_team)["view"]["version"] == 2, "nothing was changed"
    renamed = changed(admin, view, update("rename", newName="Newer"))["view"]
    assert (renamed["name"], renamed["version"]) == ("newer", 3)
    assert admin.get(view).status == 404 and admin.get(f"{engines.views}/newer")["view"] == renamed
    with engines.hms.client() as client:
        there = client.get_table(engines.database, "newer")
    assert there.tableType == "VIRTUAL_VIEW" and there.parameters["team"] == "crew"
    assert admin.delete(f"{engines.views}/newer")["dropped"] is True
    assert "newer" not in names(admin.get(engines.views))
    with engines.hms.client() as client:
        assert "newer" not in client.get_all_tables(engines.database)
    made_here = AuditEntry.objects.filter(full_name__contains=".new", kind="view").order_by("pk")
    events = [event for event in made_here.values_list("event", flat=True) if "outside" not in event]
    assert events == ["view.created", "view.altered", "view.renamed", "view.dropped"]
    versions = ViewVersion.objects.filter(view__view_name="newer").order_by("version")
    assert [one.representations[0]["sql"][:8] for one in versions] == ["select i", "select 2", "select 2"]


@newer_daily
def test_what_a_form_cannot_hold_is_refused_and_nothing_is_changed(engines: Engines, admin: Caller) -> None:
    for wanted, reason in (
        (new("mode", securityMode="DEFINER"), "securityMode"),
        (new("odd", "oracle"), "views are stored in forms for"),
        (new("delays"), "already exists"),
        (new("by-name"), "no name for a view"),
        (new("marked", properties={"presto_view": "true"}), "written by Trino"),
    ):
        refused = admin.send("POST", engines.views, wanted)
        assert refused.status in (400, 405, 409) and reason in refused.message, refused.body
    second = changed(admin, f"{engines.views}/by_hive", update("addRepresentation", representation=sql("spark")))
    assert second.status == 400 and "exactly one" in second.message
    assert changed(admin, f"{engines.views}/broken", update("updateComment", newComment="c")).status == 405
    for name in ("delays", "by_flink"):
        onto = changed(admin, f"{engines.views}/by_hive", update("rename", newName=name))
        assert onto.status == 409 and "already exists" in onto.message
    assert names(admin.get(engines.views)) == sorted(FORMS)
    assert not Intent.objects.exclude(state=Intent.State.ABORTED).exists()


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("1", "1", Outcome.NOT_DONE),  # two of one second, and neither was renamed
        (None, "1", Outcome.DONE),
        ("2", "1", Outcome.DONE),  # another has the old name since
        (None, "2", Outcome.NOT_DONE),
        (None, None, Outcome.NOT_DONE),
    ],
)
def test_a_rename_is_recognised_though_two_objects_were_made_in_one_second(
    source: str | None, target: str | None, expected: Outcome
) -> None:
    there = {"old": source, "new": target}

    def read(verb: str, **arguments: Any) -> Remote | None:
        identity = there[arguments["table"]]
        return None if identity is None else Remote(arguments["table"], {}, identity, kind=Kind.VIEW)

    asked = {"schema": ["s"], "view": "old", "to_schema": ["s"], "to_view": "new", "identity": "1"}
    assert ending_of_rename(Kind.VIEW, asked, read)[0] is expected


@newer_daily
def test_only_its_owner_changes_the_sql_of_a_view_that_runs_as_its_owner(
    engines: Engines, admin: Caller, mia: Caller
) -> None:
    view = f"{engines.views}/by_trino"
    assert admin.get(view)["view"]["securityMode"] == "DEFINER"
    give("mia", Kind.CATALOG, "hive", "use_catalog", "use_schema", "alter_view")
    edit = update("updateRepresentation", representation=sql("trino", "select 2"))
    assert "its owner alone" in changed(mia, view, edit).message
    assert changed(mia, view, update("setProperty", property="a", value="1"))["view"]["version"] == 2
    columns = admin.get(view)["view"]["columns"]
    for mode in ("INVOKER", "DEFINER"):
        change = update("replaceView", representations=[sql("trino", "select 3")], columns=columns, securityMode=mode)
        assert changed(mia, view, change).status == 403
        assert changed(admin, view, change)["view"]["securityMode"] == mode
    with engines.hms.client() as client:
        assert client.get_table(engines.database, "by_trino").owner == "admin", "whom Trino runs it as"


def test_views_of_glue_are_read_in_every_form(admin: Caller, glue: Glue) -> None:
    circuit_breaker.forget_all()
    glue.create_bucket("lake")
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights"})
    for name, view in FORMS.items():
        client.create_table(DatabaseName="flights", TableInput=table_input(view) | {"Name": name})
    asked = {"name": "aws", "type": "relational", "provider": "glue", "properties": glue_settings(glue)}
    assert admin.post(CATALOGS, asked)["catalog"]["provider"] == "glue"
    views = f"{CATALOGS}/aws/schemas/flights/views"
    assert names(admin.get(views)) == sorted(FORMS)
    trino = admin.get(f"{views}/by_trino")["view"]
    assert (trino["engine"], trino["format"]) == ("trino", "hive")
    assert "originalSql" in admin.get(f"{views}/broken").message
    made = admin.send("POST", views, new("new", "spark", comment="of us"))["view"]
    assert (made["engine"], made["comment"], made["version"]) == ("spark", "of us", 1)
    edit = update("updateRepresentation", representation=sql("spark", "select 2 as id"))
    assert changed(admin, f"{views}/new", edit)["view"]["version"] == 2
    renamed = changed(admin, f"{views}/new", update("rename", newName="newer"))["view"]
    assert renamed["name"] == "newer" and admin.get(f"{views}/new").status == 404
    assert admin.delete(f"{views}/newer")["dropped"] is True
    assert names(admin.get(views)) == sorted(FORMS)
