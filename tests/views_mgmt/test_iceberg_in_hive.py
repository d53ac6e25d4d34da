"""Iceberg views in metastores of either version, over both wires; in Glue they are only read, renamed and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import Table

from authz.models import AuditEntry
from catalogs.models import Intent
from formats.hive.tables import HiveTable
from formats.iceberg import files, storage
from formats.iceberg.views.builder import apply_view_updates, new_view_metadata
from metalake.kinds import Kind
from outside.pointers import OutsideViewPointers
from providers import circuit_breaker
from providers.glue.mapping import table_input
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.formats.hive.views.samples import a_view
from tests.glue import Glue
from tests.hms import newer_daily
from tests.iceberg_rest.world import COLUMNS, LATE, replacing, view_version
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.glue_catalogs import settings as glue_settings
from tests.views_mgmt.conftest import body, sql, update
from tests.views_mgmt.test_outside import CATALOGS, Engines, changed, engines, names  # noqa: F401 (a fixture)
from views_mgmt.models import ViewMeta, ViewVersion

pytestmark = pytest.mark.django_db(transaction=True)
UUID = "7d3e2f60-5a1b-4c8d-9e0f-1a2b3c4d5e6f"
Metadata = dict[str, Any]


@pytest.fixture
def wire(engines: Engines) -> IcebergCaller:  # noqa: F811
    return IcebergCaller("admin", catalog="hive")


def entry(engines: Engines, name: str) -> Table:  # noqa: F811
    with engines.hms.client() as client:
        return client.get_table(engines.database, name)


def folder(engines: Engines, name: str) -> str:  # noqa: F811
    with engines.hms.client() as client:
        return f"{client.get_database(engines.database).locationUri}/{name}"


def file_at(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def metadata_at(place: str, *queries: str) -> Metadata:
    """Metadata whose versions have these queries, as an engine writes them one after the other."""
    first = view_version(sql=queries[0])
    made = new_view_metadata(
        view_uuid=UUID, location=place, schema=COLUMNS, version=first, properties={"comment": "where to"}, now_ms=1
    )
    for number, query in enumerate(queries[1:], 2):
        made = apply_view_updates(made, replacing(sql=query)["updates"], now_ms=number)
    return made


def written(metadata: Metadata, version: int = 0) -> str:
    return files.write_metadata(storage.file_io({}), metadata, version=version)[0]


def pointing_to(pointer: str, place: str) -> HiveTable:
    return a_view(location=place, parameters={"table_type": "ICEBERG-VIEW", "metadata_location": pointer})


def events() -> list[str]:
    of_views = AuditEntry.objects.filter(kind="view").exclude(event__contains="outside").order_by("pk")
    return list(of_views.values_list("event", flat=True))


def test_a_view_is_made_replaced_renamed_and_dropped_over_the_wire(
    engines: Engines,  # noqa: F811
    wire: IcebergCaller,
    admin: Caller,
) -> None:
    home = f"namespaces/{engines.database}/views"
    made = wire.make_view(engines.database, "Late", "spark", properties={"comment": "Late flights", "team": "ops"})
    there = entry(engines, "late")
    assert (there.tableType, there.viewOriginalText, there.viewExpandedText) == ("VIRTUAL_VIEW", LATE, LATE)
    assert there.parameters["table_type"] == "ICEBERG-VIEW" and there.parameters["team"] == "ops"
    assert there.parameters["metadata_location"] == made["metadata-location"]
    assert there.parameters["uuid"] == made["metadata"]["view-uuid"] and "EXTERNAL" not in there.parameters
    assert [(column.name, column.type) for column in there.sd.cols] == [("id", "bigint")]
    assert there.sd.location == made["metadata"]["location"] and file_at(made["metadata-location"]).exists()
    assert wire.get(f"{home}/late").json == made and wire.head(f"{home}/late").status == 204
    listed = wire.get(home).json["identifiers"]
    assert [one["name"] for one in listed] == ["late"], "views in other forms are not of this wire"
    assert "late" in names(admin.get(engines.views)) and "late" not in names(admin.get(engines.tables))
    again = {"name": "late", "schema": COLUMNS, "view-version": view_version()}
    exists = 409, "AlreadyExistsException", f"View already exists: {engines.database}.late"
    assert wire.post(home, again).error == exists

    uuid = made["metadata"]["view-uuid"]
    replaced = wire.post(f"{home}/late", replacing("hive", "spark", uuid=uuid, sql="SELECT 1 AS id")).json
    assert replaced["metadata"]["current-version-id"] == 2
    there = entry(engines, "late")
    assert there.parameters["metadata_location"] == replaced["metadata-location"]
    assert there.parameters["previous_metadata_location"] == made["metadata-location"]
    assert there.viewOriginalText == "SELECT 1 AS id"
    same = wire.post(f"{home}/late", replacing("hive", "spark", uuid=uuid, sql="SELECT 1 AS id"))
    assert same.json == replaced, "an equal version changes nothing"

    where = {"namespace": [engines.database]}
    renaming = {"source": where | {"name": "late"}, "destination": where | {"name": "Later"}}
    assert wire.post("views/rename", renaming).status == 204
    assert wire.head(f"{home}/late").status == 404 and wire.get(f"{home}/later").json == replaced
    assert "later" in {one["name"] for one in admin.get(f"{engines.views}?details=true")["views"]}
    assert admin.get(f"{engines.views}/later")["view"]["version"] == 3
    assert wire.delete(f"{home}/later").status == 204
    assert wire.get(f"{home}/later").error[:2] == (404, "NoSuchViewException")
    with engines.hms.client() as client:
        assert "later" not in client.get_all_tables(engines.database)
    assert file_at(replaced["metadata-location"]).exists(), "what others may still read stays"
    assert events() == ["view.created", "view.replaced", "view.renamed", "view.dropped"]
    of_late = ViewVersion.objects.filter(view__view_name="later")
    stored = [(row.definition.dialects, row.audit_info["creator"]) for row in of_late.order_by("version")]
    assert stored == [(["spark"], "admin"), (["hive", "spark"], "admin"), (["hive", "spark"], "admin")]


@newer_daily
def test_refused_replaces_leave_the_view_and_no_file(engines: Engines, wire: IcebergCaller, mia: Caller) -> None:  # noqa: F811
    view = f"namespaces/{engines.database}/views/late"
    made = wire.make_view(engines.database, "late", "spark", "trino", properties={"trino.run-as-owner": "admin"})
    before = file_at(made["metadata-location"])
    other = "00000000-0000-4000-8000-000000000000"
    status, kind, message = wire.post(view, replacing(uuid=other)).error
    assert (status, kind) == (409, "CommitFailedException") and "view UUID does not match" in message
    status, _, message = wire.post(view, replacing("spark")).error
    assert status == 400 and "loss of view dialects" in message
    twice = 400, "IllegalArgumentException", "Invalid view version: Cannot add multiple queries for dialect trino"
    assert wire.post(view, replacing("spark", "trino", "Trino")).error == twice
    elsewhere = {"updates": [{"action": "set-location", "location": "file:///etc"}]}
    assert wire.post(view, elsewhere).error[0] == 400
    by_spark = wire.post(f"namespaces/{engines.database}/views/by_spark", replacing())
    assert by_spark.error[:2] == (404, "NoSuchViewException"), "it has another form"
    give("mia", Kind.CATALOG, "hive", "use_catalog", "use_schema", "alter_view", "create_view")
    her = IcebergCaller("mia", catalog="hive")
    hers = her.post(view, replacing("spark", "trino", sql="SELECT 2 AS id"))
    assert hers.error[0] == 403 and "its owner alone" in hers.error[2]
    as_admin = {"name": "hers", "metadata-location": made["metadata-location"]}
    registered = her.post(f"namespaces/{engines.database}/register-view", as_admin)
    assert registered.error[0] == 403 and "with the rights of 'admin'" in registered.error[2]
    assert list(before.parent.iterdir()) == [before] and wire.get(view).json == made
    assert Intent.objects.count() == 1


@pytest.mark.usefixtures("admin")
def test_a_registered_view_has_all_its_versions(engines: Engines, wire: IcebergCaller) -> None:  # noqa: F811
    place = folder(engines, "routes")
    pointer = written(metadata_at(place, "SELECT 1", "SELECT 2", "SELECT 3"))
    register = f"namespaces/{engines.database}/register-view"
    assert wire.post(register, {"name": "routes", "metadata-location": "file:///etc/passwd"}).error[0] == 400
    assert wire.post(register, {"name": "routes", "metadata-location": f"{pointer}.gone"}).error[0] == 400
    made = wire.post(register, {"name": "routes", "metadata-location": pointer})
    assert made.status == 200 and made.json["metadata-location"] == pointer, made.content
    there = entry(engines, "routes")
    assert (there.viewOriginalText, there.parameters["uuid"]) == ("SELECT 3", UUID)
    assert there.parameters["comment"] == "where to"
    rows = ViewVersion.objects.order_by("version")
    assert [row.representations[0]["sql"] for row in rows] == ["SELECT 1", "SELECT 2", "SELECT 3"]
    assert {row.audit_info["creator"] for row in rows} == {"admin"} and events() == ["view.registered"]


@newer_daily
def test_a_view_of_others_comes_with_its_history(engines: Engines, admin: Caller, wire: IcebergCaller) -> None:  # noqa: F811
    place = folder(engines, "routes")
    metadata = metadata_at(place, "SELECT 1", "SELECT 2")
    engines.put("routes", pointing_to(written(metadata), place))
    assert "routes" in names(admin.get(engines.views))
    assert ViewMeta.objects.get(view_name="routes").current_version == 0, "its file was not read yet"
    view = f"{engines.views}/routes"
    assert admin.get(view)["view"]["version"] == 2
    queries = [
        one["version"]["representations"][0]["sql"] for one in (admin.get(f"{view}/versions/{n}") for n in (1, 2))
    ]
    assert queries == ["SELECT 1", "SELECT 2"]
    back = admin.send("POST", f"{view}/versions/1/rollback")["view"]
    assert (back["version"], back["representations"][0]["sql"]) == (3, "SELECT 1")
    assert entry(engines, "routes").viewOriginalText == "SELECT 1"
    assert wire.delete(f"namespaces/{engines.database}/views/routes").status == 204


@newer_daily
def test_a_view_of_two_dialects_is_made_and_altered_over_the_native_wire(engines: Engines, admin: Caller) -> None:  # noqa: F811
    two = body("two", sql("spark"), sql("trino"), comment="Late", properties={"team": "ops"}, defaultSchema="nyc")
    made = admin.send("POST", engines.views, two)["view"]
    assert (made["engine"], made["format"], made["version"]) == ("iceberg", "iceberg", 1)
    view = f"{engines.views}/two"
    assert admin.get(view)["view"] == made and made["properties"] == {"team": "ops"}
    many = (
        update("addRepresentation", representation=sql("flink", "SELECT 1")),
        update("updateRepresentation", representation=sql("spark", "SELECT 2")),
        update("removeRepresentation", dialect="trino"),
        update("setProperty", property="team", value="crew"),
        update("updateComment", newComment="Very late"),
    )
    altered = changed(admin, view, *many)["view"]
    assert altered["version"] == 2 and [one["dialect"] for one in altered["representations"]] == ["spark", "flink"]
    there = entry(engines, "two")
    assert (there.parameters["comment"], there.parameters["team"]) == ("Very late", "crew")
    assert changed(admin, view, *many[3:])["view"]["version"] == 2, "nothing was changed"
    gone = changed(admin, view, update("removeProperty", property="team"))["view"]
    assert gone["properties"] == {} and "team" not in entry(engines, "two").parameters
    whole = {part: value for part, value in body().items() if part != "name"}
    assert changed(admin, view, update("replaceView", **whole))["view"]["version"] == 4
    alone = changed(admin, view, update("rename", newName="three"), update("updateComment", newComment="x"))
    assert alone.status == 400 and "a rename comes alone" in alone.message
    assert changed(admin, view, update("rename", newName="three"))["view"]["name"] == "three"
    assert admin.delete(f"{engines.views}/three")["dropped"] is True
    assert events() == ["view.created", *["view.altered"] * 2, "view.replaced", "view.renamed", "view.dropped"]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"securityMode": "DEFINER"}, "securityMode: an Iceberg view has none"),
        ({"representations": [sql("spark"), sql("trino", defaultSchema="x")]}, "representations[1].defaultSchema"),
        ({"columns": [{"name": "a", "type": "integer"}, {"name": "A", "type": "integer"}]}, "knows no capitals"),
        ({"properties": {"s3.endpoint": "x"}}, "s3.endpoint"),
        ({"name": "by_hive"}, "already exists"),
    ],
)
@newer_daily
def test_what_cannot_be_an_iceberg_view_is_refused(
    engines: Engines,  # noqa: F811
    admin: Caller,
    parts: dict[str, Any],
    says: str,
) -> None:
    before = names(admin.get(engines.views))
    asked = body("one", sql("spark"), sql("trino")) | parts
    refused = admin.send("POST", engines.views, asked)
    assert refused.status in (400, 405, 409) and says in refused.message, refused.body
    assert names(admin.get(engines.views)) == before and not Intent.objects.filter(state="COMMITTED").exists()


@newer_daily
def test_a_property_asks_for_an_iceberg_view_of_one_dialect(engines: Engines, admin: Caller) -> None:  # noqa: F811
    asked = body("one", sql("spark"), properties={"table_type": "iceberg-view", "team": "ops"})
    assert admin.send("POST", engines.views, asked)["view"]["format"] == "iceberg"
    assert admin.get(f"{engines.views}/one")["view"]["properties"] == {"team": "ops"}
    wrong = admin.send("POST", engines.views, body("two", sql("spark"), properties={"table_type": "HIVE"}))
    assert wrong.status == 400 and "properties.table_type: reserved" in wrong.message


@pytest.mark.usefixtures("admin")
@newer_daily
def test_sql_that_no_entry_can_hold_stands_in_the_file_alone(engines: Engines, wire: IcebergCaller) -> None:  # noqa: F811
    home, query = f"namespaces/{engines.database}/views", "SELECT 1 AS id -- " + "x" * 60_000
    asked = {"name": "long", "schema": COLUMNS, "view-version": view_version(sql=query), "properties": {}}
    made = wire.post(home, asked)
    assert made.status == 200 and not entry(engines, "long").viewOriginalText, made.content
    assert wire.get(f"{home}/long").json["metadata"]["versions"][0]["representations"][0]["sql"] == query
    assert wire.post(f"{home}/long", replacing(sql=LATE)).status == 200
    assert entry(engines, "long").viewOriginalText == LATE


def test_a_change_that_lost_a_race_is_made_on_the_new_state(
    engines: Engines,  # noqa: F811
    admin: Caller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = admin.send("POST", engines.views, body("two", sql("spark"), sql("trino")))["view"]
    swap, place = OutsideViewPointers.swap, entry(engines, "two").sd.location
    rivals = [metadata_at(place, "SELECT 1", "SELECT 2")]

    def second(self: OutsideViewPointers, actor: Any, commit: Any) -> Any:
        if rivals:
            uuid = {"view-uuid": commit.current.metadata["view-uuid"]}
            engines.change("two", pointing_to(written(rivals.pop() | uuid, 7), place))
        return swap(self, actor, commit)

    monkeypatch.setattr(OutsideViewPointers, "swap", second)
    late = changed(admin, f"{engines.views}/two", update("addRepresentation", representation=sql("flink")))["view"]
    assert [one["sql"][:8] for one in late["representations"]] == ["SELECT 2", "SELECT c"]
    assert made["version"] == 1 and late["version"] == 3, "the rival's is one, too"
    assert len(list(file_at(place).rglob("*.metadata.json"))) == 3, "the loser's first file is removed"


def test_in_glue_no_engine_looks_for_them(admin: Caller, glue: Glue) -> None:
    circuit_breaker.forget_all()
    bucket = glue.create_bucket("lake")
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights", "LocationUri": f"{bucket}/flights"})
    asked = {"name": "aws", "type": "relational", "provider": "glue", "properties": glue_settings(glue)}
    assert admin.post(CATALOGS, asked)["catalog"]["provider"] == "glue"
    views, wire = f"{CATALOGS}/aws/schemas/flights/views", IcebergCaller("admin", catalog="aws")
    refused = wire.post("namespaces/flights/views", {"name": "v", "schema": COLUMNS, "view-version": view_version()})
    assert refused.error[0] == 406 and "No engine looks for Iceberg views in AWS Glue" in refused.error[2]
    register = {"name": "v", "metadata-location": f"{bucket}/flights/v/metadata/0.json"}
    assert wire.post("namespaces/flights/register-view", register).error[0] == 406
    two = admin.send("POST", views, body("two", sql("spark"), sql("trino")))
    assert two.status == 400 and "one representation in AWS Glue" in two.message
    place = f"{bucket}/flights/routes"
    metadata = metadata_at(place, "SELECT 1")
    client_s3, (name, _, key) = glue.client("s3"), bucket.removeprefix("s3://").partition("/")
    client_s3.put_object(Bucket=name, Key=f"{key}flights/routes/metadata/0.json", Body=files.content_of(metadata)[1])
    routes = pointing_to(f"{place}/metadata/0.json", place)
    client.create_table(DatabaseName="flights", TableInput=table_input(routes) | {"Name": "routes"})
    assert wire.get("namespaces/flights/views/routes").json["metadata"] == metadata
    assert wire.post("namespaces/flights/views/routes", replacing(sql="SELECT 2")).error[0] == 406
    edit = changed(admin, f"{views}/routes", update("updateComment", newComment="x"))
    assert edit.status == 405 and "No engine looks" in edit.message
    renamed = changed(admin, f"{views}/routes", update("rename", newName="ways"))["view"]
    assert (renamed["name"], renamed["format"]) == ("ways", "iceberg")
    assert admin.delete(f"{views}/ways")["dropped"] is True
    assert names(admin.get(views)) == []
