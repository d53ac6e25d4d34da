"""The published Python client of the native wire, unmodified, on databases behind a real server."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from gravitino import GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.api.catalog import Catalog
from gravitino.api.rel.column import Column
from gravitino.api.rel.expressions.literals.literals import Literals
from gravitino.api.rel.indexes.index import Index
from gravitino.api.rel.indexes.indexes import Indexes
from gravitino.api.rel.table_change import TableChange
from gravitino.api.rel.types.types import Types
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.exceptions import base as errors
from gravitino.namespace import Namespace

from tests.mariadb import MariaDB
from tests.names import own_name
from tests.servers import MetalakeServer

pytestmark = pytest.mark.slow

PRIMARY, UNIQUE = Index.IndexType.PRIMARY_KEY, Index.IndexType.UNIQUE_KEY
POOLS = {"jdbc.pool.min-size": "1", "jdbc.pool.max-size": "4"}


@pytest.fixture
def client(metalake_server: MetalakeServer) -> Iterator[GravitinoClient]:
    """The owner of a metalake of its own."""
    name, login = own_name("m"), BasicAuthProvider("admin", metalake_server.admin_password)
    admin = GravitinoAdminClient(metalake_server.url, auth_data_provider=login)
    admin.create_metalake(name, "for one test", {})
    client = GravitinoClient(metalake_server.url, name, auth_data_provider=login)
    yield client
    client.close()
    admin.close()


@pytest.fixture(params=["jdbc-postgresql", "jdbc-mysql"])
def database(request: pytest.FixtureRequest, client: GravitinoClient) -> Iterator[Any]:
    """A catalog, with all properties that Gravitino's documentation has for it."""
    if request.param == "jdbc-postgresql":
        place, name = request.getfixturevalue("postgres_url").rpartition("@")[2].split("/")
        properties = {"jdbc-url": f"jdbc:postgresql://{place}/{name}", "jdbc-driver": "org.postgresql.Driver"}
        properties |= {"jdbc-database": name, "jdbc-user": "postgres", "jdbc-password": "any"}
    else:
        mariadb: MariaDB = request.getfixturevalue("mariadb")
        properties = mariadb.properties() | {"jdbc-driver": "com.mysql.cj.jdbc.Driver"}
    made = client.create_catalog("db", Catalog.Type.RELATIONAL, request.param, "sales", properties | POOLS)
    assert made.properties()["jdbc-password"] == "******"
    client.test_connection("db")
    yield client.load_catalog("db")
    client.drop_catalog("db", force=True)  # it owns the server, which other tests register, too


def columns() -> list[Column]:
    cheap = Literals.decimal_literal(Decimal("1.50"))
    return [
        Column.of("id", Types.LongType.get(), "who", auto_increment=True, nullable=False),
        Column.of("code", Types.VarCharType.of(20), nullable=False),
        Column.of("price", Types.DecimalType.of(10, 2), default_value=cheap),
        Column.of("day", Types.DateType.get()),
        Column.of("ok", Types.BooleanType.get()),
        Column.of("text", Types.StringType.get()),
    ]


def test_schemas_and_tables(database: Any) -> None:
    schemas, tables, schema = database.as_schemas(), database.as_table_catalog(), own_name("sales")
    assert schemas.create_schema(schema, None, {}).name() == schemas.load_schema(schema).name() == schema
    assert schema in schemas.list_schemas()
    with pytest.raises(errors.SchemaAlreadyExistsException):
        schemas.create_schema(schema, None, {})

    ident = NameIdentifier.of(schema, "orders")
    indexes = [Indexes.primary("PRIMARY", [["id"]]), Indexes.unique("one_code", [["code"], ["day"]])]
    made = tables.create_table(ident, columns(), "sold", {}, indexes=indexes)
    for table in (made, tables.load_table(ident)):
        assert (table.name(), table.comment()) == ("orders", "sold")
        shown = [(column.name(), column.data_type().simple_string(), column.nullable()) for column in table.columns()]
        assert shown[:3] == [("id", "long", False), ("code", "varchar(20)", False), ("price", "decimal(10,2)", True)]
        assert shown[3:] == [("day", "date", True), ("ok", "boolean", True), ("text", "string", True)]
        first, _, price, *_ = table.columns()
        assert first.auto_increment() and first.comment() == "who" and str(price.default_value().value()) == "1.50"
        assert {(index.type(), *map(tuple, index.field_names())) for index in table.index()} == {
            (PRIMARY, ("id",)),
            (UNIQUE, ("code",), ("day",)),
        }
    assert tables.list_tables(Namespace.of(schema)) == [ident]
    with pytest.raises(errors.TableAlreadyExistsException):
        tables.create_table(ident, columns())
    with pytest.raises(errors.NonEmptySchemaException):
        schemas.drop_schema(schema, cascade=False)

    last = TableChange.ColumnPosition.default_pos()
    altered = tables.alter_table(
        ident,
        TableChange.update_comment("new"),
        TableChange.add_column(["label"], Types.VarCharType.of(5), "short", last),
        TableChange.rename_column(["price"], "cost"),
        TableChange.update_column_type(["cost"], Types.DecimalType.of(12, 2)),
        TableChange.update_column_nullability(["code"], True),
        TableChange.delete_column(["text"], if_exists=False),
        TableChange.delete_index("one_code", if_exists=False),
        TableChange.add_index(UNIQUE, "one_day", [["day"]]),
    )
    assert altered.comment() == "new" and {index.type() for index in altered.index()} == {PRIMARY, UNIQUE}
    assert [column.name() for column in altered.columns()] == ["id", "code", "cost", "day", "ok", "label"]
    assert altered.columns()[2].data_type().simple_string() == "decimal(12,2)" and altered.columns()[1].nullable()
    with pytest.raises(errors.UnsupportedOperationException):
        tables.alter_table(ident, TableChange.set_property("a", "1"))
    with pytest.raises(errors.UnsupportedOperationException):
        altered.list_partition_names()
    assert tables.alter_table(ident, TableChange.rename("sold")).name() == "sold"
    with pytest.raises(errors.NoSuchTableException):
        tables.load_table(ident)
    assert tables.drop_table(NameIdentifier.of(schema, "sold")) is True and tables.drop_table(ident) is False
    tables.create_table(ident, columns()[1:3])
    assert tables.purge_table(ident) is True
    assert schemas.drop_schema(schema, cascade=False) is True
    with pytest.raises(errors.NoSuchSchemaException):
        schemas.load_schema(schema)
