"""The Iceberg wire says of every namespace of an outside system where its tables go, as Trino asks before it makes one.

The native wire shows what the system says, and no more.
"""

from __future__ import annotations

from typing import Any

import pytest

from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin, mia  # noqa: F401 (fixtures)
from tests.demo import give
from tests.glue import Glue
from tests.hms import HiveMetastore
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as Engine
from tests.providers.glue.test_native_api import CATALOGS, caller, registration  # noqa: F401 (fixture)

pytestmark = pytest.mark.django_db(transaction=True)

WAREHOUSE = "s3://lake/warehouse"


def said(engine: Engine, namespace: str) -> str | None:
    place: str | None = engine.get(f"namespaces/{namespace}").json["properties"].get("location")
    return place


def natively(caller: Caller, catalog: str, schema: str) -> dict[str, Any]:  # noqa: F811
    properties: dict[str, Any] = caller.get(f"{CATALOGS}/{catalog}/schemas/{schema}")["schema"]["properties"]
    return properties


def test_a_database_of_glue_without_a_place(caller: Caller, glue: Glue) -> None:  # noqa: F811
    engine = Engine("admin", catalog="aws")
    assert said(engine, "flights") == f"{WAREHOUSE}/flights"
    assert "location" not in natively(caller, "aws", "flights")
    assert "LocationUri" not in glue.client().get_database(Name="flights")["Database"]
    made = engine.make_table("flights", "gates")
    assert made["metadata"]["location"].startswith(f"{WAREHOUSE}/flights/gates-")
    assert engine.head("namespaces/flights").status == 204
    assert engine.children() == [["flights"]]


def test_one_that_has_a_place(caller: Caller, glue: Glue) -> None:  # noqa: F811
    chosen = f"{WAREHOUSE}/chosen"
    glue.client().create_database(DatabaseInput={"Name": "own", "LocationUri": chosen})
    assert said(Engine("admin", catalog="aws"), "own") == chosen
    assert natively(caller, "aws", "own")["location"] == chosen


def test_who_may_not_load_it_hears_nothing(caller: Caller, mia: Caller) -> None:  # noqa: F811
    give("mia", Kind.CATALOG, "aws", "use_catalog")
    assert Engine("mia", catalog="aws").get("namespaces/flights").error[0] == 404


def test_where_no_warehouse_is_named_nothing_is_said(caller: Caller, glue: Glue) -> None:  # noqa: F811
    """Then a table must say where it goes."""
    body = registration(glue, "bare", **{"allowed-locations": "s3://lake/bare"})
    del body["properties"]["warehouse"]
    caller.delete(f"{CATALOGS}/aws?force=true")
    assert caller.post(CATALOGS, body).status == 200
    engine = Engine("admin", catalog="bare")
    assert said(engine, "flights") is None
    refused = engine.post("namespaces/flights/tables", {"name": "gates", "schema": COLUMNS})
    assert refused.error[0] == 400 and "say where table gates goes" in refused.error[2]


def test_a_step_to_others_that_is_no_database(caller: Caller, glue: Glue) -> None:  # noqa: F811
    caller.delete(f"{CATALOGS}/aws?force=true")
    glue.client().create_database(DatabaseInput={"Name": "gates_x001f_north"})
    assert caller.post(CATALOGS, registration(glue, "deep", **{"nested-namespaces": "true"})).status == 200
    engine = Engine("admin", catalog="deep")
    assert ["gates"] in engine.children()
    assert engine.children("gates") == [["gates", "north"]]
    assert said(engine, "gates") == f"{WAREHOUSE}/gates"
    assert natively(caller, "deep", "gates") == {}
    made = engine.make_table("gates", "doors")
    assert made["metadata"]["location"].startswith(f"{WAREHOUSE}/gates/doors-")


def test_a_database_of_a_metastore(admin: Caller, hms: HiveMetastore, settings: Any) -> None:  # noqa: F811
    """It has a place always; where the catalog names a warehouse that does not hold it, tables go there."""
    settings.METALAKE_FILE_LOCATIONS = [str(hms.warehouse)]
    name = hms.create_database()
    own = f"{hms.warehouse.as_uri()}/{name}.db"
    elsewhere = f"{hms.warehouse.as_uri()}/lake-of-{name}"
    for catalog, more in (("hive", {}), ("other", {"warehouse": elsewhere})):
        given = {"metastore.uris": hms.uri, **more}
        body = {"name": catalog, "type": "relational", "provider": "hive", "properties": given}
        assert admin.post(CATALOGS, body).status == 200
    for catalog, folder in (("hive", own), ("other", f"{elsewhere}/{name}.db")):
        engine = Engine("admin", catalog=catalog)
        told = said(engine, name)
        assert told is not None and told.replace("file:///", "file:/") == folder.replace("file:///", "file:/")
        made = engine.make_table(name, f"t_{catalog}")
        assert made["metadata"]["location"].startswith(f"{folder}/t_{catalog}-")
        assert natively(admin, catalog, name)["location"].endswith(f"/{name}.db")
        assert "lake-of" not in natively(admin, catalog, name)["location"]
