"""One metastore, seen by Spark and through the native wire: what either writes, the other reads."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import AuditEntry
from catalogs.models import Mirror
from metalake.models import Securable
from providers import circuit_breaker
from tests.catalogs.callers import Answer, Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixtures)
from tests.hms import HiveMetastore
from tests.spark import Rows, Spark, SparkError

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMAS = "metalakes/demo/catalogs/hive/schemas"


@pytest.fixture
def wire(admin: Caller, hms: HiveMetastore) -> Caller:  # noqa: F811
    """The owner of the catalog `hive`."""
    circuit_breaker.forget_all()
    body = {"name": "hive", "type": "relational", "provider": "hive", "properties": {"metastore.uris": hms.uri}}
    assert admin.send("POST", "metalakes/demo/catalogs", body)["catalog"]["provider"] == "hive"
    return admin


def changed(wire: Caller, table: str, *updates: dict[str, Any]) -> dict[str, Any]:
    return wire.send("PUT", table, {"updates": list(updates)})["table"]


def names(answer: Answer) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def described(rows: Rows) -> dict[str, tuple[str, str | None]]:
    """Spark's columns with their types and comments; of several entries of one name the first."""
    found: dict[str, tuple[str, str | None]] = {}
    for row in rows:
        if row["col_name"] and not row["col_name"].startswith("#"):
            found.setdefault(row["col_name"], (row["data_type"], row["comment"]))
    return found


TYPES = {
    "b": ("boolean", "boolean"),
    "t": ("byte", "tinyint"),
    "s": ("short", "smallint"),
    "i": ("integer", "int"),
    "l": ("long", "bigint"),
    "f": ("float", "float"),
    "d": ("double", "double"),
    "m": ("decimal(20,2)", "decimal(20,2)"),
    "c": ("char(3)", "char(3)"),
    "v": ("varchar(20)", "varchar(20)"),
    "x": ("string", "string"),
    "y": ("binary", "binary"),
    "e": ("date", "date"),
    "w": ("timestamp", "timestamp"),
    "a": ({"type": "list", "elementType": "integer", "containsNull": True}, "array<int>"),
    "p": (
        {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
        "map<string,double>",
    ),
    "r": (
        {
            "type": "struct",
            "fields": [
                {"name": "lat", "type": "double", "nullable": True},
                {
                    "name": "tags",
                    "type": {"type": "list", "elementType": "string", "containsNull": True},
                    "nullable": True,
                },
            ],
        },
        "struct<lat:double,tags:array<string>>",
    ),
}


def test_spark_makes_tables_and_they_are_shown_and_altered(
    wire: Caller, hms: HiveMetastore, iceberg_spark: Spark
) -> None:
    database = hms.create_database()
    tables = f"{SCHEMAS}/{database}/tables"
    columns = ", ".join(f"{name} {sql}" for name, (_, sql) in TYPES.items())
    iceberg_spark.sql(
        f"create table {database}.own ({columns}, year int, month string) using parquet partitioned by (year, month) "
        "comment 'of 2013' tblproperties ('owner_team'='ops')",
        f"create table {database}.hives ({columns}) partitioned by (year int, month string) stored as orc",
        f"create view {database}.late as select * from {database}.own",
        f"insert into {database}.own (i, year, month) values (1, 2013, 'Jan')",
        f"insert into {database}.hives (i, year, month) values (1, 2013, 'Jan')",
    )
    assert names(wire.get(tables)) == ["hives", "own"]
    for name in ("own", "hives"):
        shown = wire.get(f"{tables}/{name}")["table"]
        expected = [(column, native) for column, (native, _) in TYPES.items()]
        assert [(column["name"], column["type"]) for column in shown["columns"]] == [
            *expected,
            ("year", "integer"),
            ("month", "string"),
        ]
        assert [key["fieldName"] for key in shown["partitioning"]] == [["year"], ["month"]]
        assert shown["properties"]["format"] == ("PARQUET" if name == "own" else "ORC")
        partitions = wire.get(f"{tables}/{name}/partitions")["names"]
        assert partitions == ["year=2013/month=Jan"]
        after = changed(
            wire,
            f"{tables}/{name}",
            {"@type": "setProperty", "property": "region", "value": "emea"},
            {"@type": "updateComment", "newComment": "late ones"},
            {"@type": "addColumn", "fieldName": ["gate"], "type": "string", "comment": "where from", "nullable": True},
            {"@type": "updateColumnComment", "fieldName": ["i"], "newComment": "a number"},
        )
        assert after["comment"] == "late ones" and after["properties"]["region"] == "emea"
        [about, properties, _, rows] = iceberg_spark.sql(
            f"describe table {database}.{name}",
            f"show tblproperties {database}.{name}",
            f"insert into {database}.{name} (i, gate, year, month) values (2, 'B4', 2013, 'Feb')",
            f"select i, gate, year, month from {database}.{name} order by i",
        )
        seen = described(about)
        assert seen["gate"] == ("string", "where from") and seen["i"] == ("int", "a number")
        assert {key: seen[key][0] for key in TYPES} == {key: sql for key, (_, sql) in TYPES.items()}
        assert {"key": "region", "value": "emea"} in properties
        assert [(row["i"], row["gate"], row["month"]) for row in rows] == [(1, None, "Jan"), (2, "B4", "Feb")]
        assert wire.get(f"{tables}/{name}/partitions")["names"] == ["year=2013/month=Feb", "year=2013/month=Jan"]


def test_tables_of_the_wire_are_spark_s_too(wire: Caller, hms: HiveMetastore, iceberg_spark: Spark) -> None:
    made = wire.send("POST", SCHEMAS, {"name": hms.create_database().upper() + "_w", "comment": "sales of 2013"})
    database = made["schema"]["name"]
    assert made["schema"]["properties"] == {}, "as it was sent"
    place = wire.get(f"{SCHEMAS}/{database}")["schema"]["properties"]["location"]
    assert place.endswith(f"/{database}.db")
    body = {
        "name": "Delays",
        "comment": "how late",
        "columns": [
            *({"name": name, "type": native} for name, (native, _) in TYPES.items()),
            {"name": "year", "type": "integer"},
        ],
        "partitioning": [{"strategy": "identity", "fieldName": ["year"]}],
        "properties": {"format": "PARQUET", "owner_team": "ops"},
    }
    tables = f"{SCHEMAS}/{database}/tables"
    table = wire.send("POST", tables, body)["table"]
    assert (table["name"], table["properties"]) == ("delays", body["properties"]), "as it was sent"
    held = wire.get(f"{tables}/delays")["table"]["properties"]
    assert held["table-type"] == "MANAGED_TABLE" and "metalake.intent" not in held
    values = [{"type": "literal", "dataType": "integer", "value": "2012"}]
    part = {"type": "identity", "fieldNames": [["year"]], "values": values, "properties": {"source": "archive"}}
    added = wire.send("POST", f"{tables}/delays/partitions", {"partitions": [part]})["partitions"]
    assert added[0]["name"] == "year=2012" and added[0]["properties"]["source"] == "archive"
    [about, shown, _, rows, *_] = iceberg_spark.sql(
        f"describe table {database}.delays",
        f"show partitions {database}.delays",
        f"insert into {database}.delays (i, r, year) values (7, named_struct('lat', 1.5D, 'tags', array('x')), 2013)",
        f"select i, r.tags as tags, year from {database}.delays",
        f"alter table {database}.delays add partition (year = 2014)",
        f"alter table {database}.delays set tblproperties ('by_spark' = 'yes')",
    )
    assert {key: described(about)[key][0] for key in TYPES} == {key: sql for key, (_, sql) in TYPES.items()}
    assert shown == [{"partition": "year=2012"}]
    assert rows == [{"i": 7, "tags": ["x"], "year": 2013}]
    assert wire.get(f"{tables}/delays")["table"]["properties"]["by_spark"] == "yes"
    found = f"{tables}/delays/partitions"
    assert wire.get(found)["names"] == ["year=2012", "year=2013", "year=2014"]
    assert wire.delete(f"{found}/year=2012")["dropped"] is True
    assert wire.delete(f"{found}/year=2012")["dropped"] is False
    assert iceberg_spark.sql(f"show partitions {database}.delays") == [
        [{"partition": "year=2013"}, {"partition": "year=2014"}]
    ]
    assert wire.delete(f"{tables}/delays")["dropped"] is True
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        iceberg_spark.sql(f"select * from {database}.delays")


def test_what_spark_alters_is_the_same_table_and_what_it_makes_again_is_another(
    wire: Caller, hms: HiveMetastore, iceberg_spark: Spark
) -> None:
    database = hms.create_database()
    place = f"{SCHEMAS}/{database}/tables/delays"
    iceberg_spark.sql(f"create table {database}.delays (carrier string, delay int) using parquet")
    assert wire.get(place).status == 200
    row = Securable.objects.get(name="delays").pk
    before = Mirror.objects.get(pk=row)
    iceberg_spark.sql(
        f"alter table {database}.delays set tblproperties ('owner_team'='ops')",
        f"alter table {database}.delays add columns (gate string)",
        f"insert into {database}.delays values ('UA', 1, 'B4')",
        f"analyze table {database}.delays compute statistics",
    )
    shown = wire.get(place)["table"]
    assert [column["name"] for column in shown["columns"]] == ["carrier", "delay", "gate"]
    assert shown["properties"]["spark.sql.statistics.numRows"] == "1"
    after = Mirror.objects.get(pk=row)
    assert after.identity == before.identity and after.version != before.version
    assert AuditEntry.objects.filter(event="table.changed_outside").count() == 1
    changed(wire, place, {"@type": "setProperty", "property": "region", "value": "emea"})
    assert Mirror.objects.get(pk=row).identity == before.identity
    [properties] = iceberg_spark.sql(f"show tblproperties {database}.delays")
    kept = {each["key"]: each["value"] for each in properties}
    assert kept["owner_team"] == "ops" and kept["region"] == "emea"
    [rows] = iceberg_spark.sql(f"describe extended {database}.delays")
    assert any(each["col_name"] == "Statistics" and "1 rows" in each["data_type"] for each in rows)


def test_a_renamed_table_of_spark_s_keeps_its_rows(wire: Caller, hms: HiveMetastore, iceberg_spark: Spark) -> None:
    database, other = hms.create_database(), hms.create_database("sales")
    iceberg_spark.sql(
        f"create table {database}.own (carrier string) using parquet",
        f"create table {database}.hives (carrier string) stored as orc",
        f"insert into {database}.own values ('UA')",
        f"insert into {database}.hives values ('UA')",
    )
    assert wire.get(f"{SCHEMAS}/{other}").status == 200
    for name in ("own", "hives"):
        rename = {"@type": "rename", "newName": f"{name}_2013", "newSchemaName": other}
        after = wire.send("PUT", f"{SCHEMAS}/{database}/tables/{name}", {"updates": [rename]})["table"]
        assert after["properties"]["location"].endswith(f"/{other}.db/{name}_2013")
        *_, rows = iceberg_spark.sql(
            f"insert into {other}.{name}_2013 values ('DL')", f"select * from {other}.{name}_2013 order by carrier"
        )
        assert rows == [{"carrier": "DL"}, {"carrier": "UA"}]
    assert names(wire.get(f"{SCHEMAS}/{database}/tables")) == []
