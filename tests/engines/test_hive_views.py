"""Views as real metastores store them, and those in Spark's form as a real Spark reads and writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore.ttypes import Table

from formats.hive.tables import HiveTable
from formats.hive.views.reader import HiveView, read
from formats.hive.views.writer import rewritten, written
from formats.native.view_definition import Representation, ViewDefinition
from providers.hive.objects import hive_table
from providers.hive.objects import written as written_onto
from tests.formats.hive.views.samples import SPARK_PARAMETERS, SPARK_SQL, WRITABLE
from tests.formats.hive.views.test_reader import array, column, struct
from tests.hms import HiveMetastore
from tests.spark import Spark

pytestmark = pytest.mark.timeout(300)  # the first test to ask starts the metastore and Spark


@pytest.fixture(scope="module")
def database(hms: HiveMetastore, iceberg_spark: Spark) -> str:
    """A database with the table and the view of the samples."""
    name = hms.create_database()
    iceberg_spark.sql(
        f"create table {name}.h1 (id bigint, name string, day date) stored as orc",
        f"insert into {name}.h1 values (1, 'one', date'2013-01-01'), (2, 'two', date'2013-01-02')",
        f"use {name}",
        "create view v1 (the_id comment 'vid', nm) comment 'view comment' tblproperties ('owner_team'='x') as "
        + SPARK_SQL,
    )
    return name


@pytest.fixture
def create(hms: HiveMetastore, database: str) -> Callable[[HiveTable], None]:
    def into(table: HiveTable) -> None:
        with hms.client() as client:
            client.create_table(written_onto(table, Table(tableName=table.name, dbName=database)))

    return into


def definition(sql: str, *columns: dict[str, Any], dialect: str = "spark", **places: str) -> ViewDefinition:
    only = Representation(dialect=dialect, sql=sql, **places)
    return ViewDefinition(representations=(only,), columns=columns, comment="ours", properties={"owner_team": "x"})


def test_what_spark_wrote_is_read(database: str, entry: Callable[[str], HiveTable], iceberg_spark: Spark) -> None:
    table = entry("v1")
    view: HiveView = read(table)
    columns = column("the_id", "long", "vid"), column("nm", "string")
    places = {"default_catalog": "spark_catalog", "default_schema": database}
    assert view.definition == replace(definition(SPARK_SQL, *columns, **places), comment="view comment")
    assert (view.engine, view.expanded_sql) == ("spark", None)
    settings = "view.sqlConfig."  # these depend on the session
    recorded = {name for name in SPARK_PARAMETERS if not name.startswith(settings)}
    assert {name for name in table.parameters if not name.startswith(settings)} == recorded
    assert table.parameters["spark.sql.create.version"] == iceberg_spark.version


def test_spark_selects_from_views_that_we_wrote(
    database: str, entry: Callable[[str], HiveTable], create: Callable[[HiveTable], None], iceberg_spark: Spark
) -> None:
    nested = (
        "select array(named_struct('from', name)) legs, cast(id as decimal(10,2)) price, map(name, day) days from h1"
    )
    days = {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}
    legs = array(struct(("from", "string")))
    asked = {
        "ours": definition(SPARK_SQL, column("the_id", "long", "vid"), column("nm", "string")),
        "nested": definition(nested, column("legs", legs), column("price", "decimal(10,2)"), column("days", days)),
        "plain": definition(
            f"select id, name from {database}.h1", column("id", "long"), column("name", "string"), dialect="hive"
        ),
    }
    for name, wanted in asked.items():
        names = ["id", "n"] if name == "ours" else None
        create(written(name, database, wanted, owner="anna", query_columns=names))
        view = read(entry(name))
        assert (view.definition.columns, view.owner) == (wanted.columns, "anna")
        assert (view.definition.comment, view.definition.properties) == (wanted.comment, wanted.properties)
    ours, shown, plain, described = iceberg_spark.sql(
        f"select * from {database}.ours",
        f"select legs[0].from city, price, days[legs[0].from] day from {database}.nested where price = 2",
        f"select * from {database}.plain order by id",
        f"describe {database}.ours",
    )
    assert ours == [{"the_id": 2, "nm": "two"}]
    assert shown == [{"city": "two", "price": "2.00", "day": "2013-01-02"}]
    assert plain == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    assert described[0] == {"col_name": "the_id", "data_type": "bigint", "comment": "vid"}


def test_spark_selects_from_its_own_view_after_an_alteration(
    hms: HiveMetastore, database: str, entry: Callable[[str], HiveTable], iceberg_spark: Spark
) -> None:
    iceberg_spark.sql(f"create view {database}.altered as select * from {database}.v1")
    before = read(entry("altered")).definition
    first, second = before.columns
    only = replace(before.representations[0], sql="select id the_key, day as nm from h1", default_schema=database)
    after = replace(
        before,
        representations=(only,),
        columns=({**first, "name": "the_key", "comment": "new"}, {**second, "type": "date"}),
        comment="altered",
    )
    with hms.client() as client:
        stored = client.get_table(database, "altered")
        wanted = rewritten(hive_table(stored), after)
        client.alter_table(database, "altered", written_onto(wanted, stored))
    assert read(entry("altered")).definition == after
    (rows,) = iceberg_spark.sql(f"select * from {database}.altered where the_key = 1")
    assert rows == [{"the_key": 1, "nm": "2013-01-01"}]


@pytest.mark.parametrize("engine", WRITABLE)
def test_a_metastore_answers_what_was_written_and_altered(any_hms: HiveMetastore, engine: str) -> None:
    home = any_hms.create_database()
    with any_hms.client() as client:
        recorded = WRITABLE[engine](location=None)
        client.create_table(written_onto(recorded, Table(tableName="v1", dbName=home)))
        stored = client.get_table(home, "v1")
        before = read(hive_table(stored))
        assert before == read(recorded)
        columns = (*before.definition.columns[1:], column("more", "date", "new"))
        after = replace(before.definition, columns=columns, comment="altered", properties={})
        client.alter_table(home, "v1", written_onto(rewritten(hive_table(stored), after), stored))
        assert read(hive_table(client.get_table(home, "v1"))).definition == after
