"""The published Python client of the native wire, unmodified, against a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from gravitino import GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.api.authorization.owner import Owner
from gravitino.api.authorization.privileges import (
    CreateCatalog,
    CreateView,
    Privilege,
    SelectTable,
    SelectView,
    UseCatalog,
    UseSchema,
)
from gravitino.api.authorization.securable_objects import SecurableObjects
from gravitino.api.catalog import Catalog
from gravitino.api.catalog_change import CatalogChange
from gravitino.api.metadata_object import MetadataObject
from gravitino.api.metadata_objects import MetadataObjects
from gravitino.api.metalake_change import MetalakeChange
from gravitino.api.rel.column import Column
from gravitino.api.rel.expressions.literals.literals import Literals
from gravitino.api.rel.expressions.named_reference import NamedReference
from gravitino.api.rel.expressions.sorts.sort_direction import SortDirection
from gravitino.api.rel.expressions.sorts.sort_orders import SortOrders
from gravitino.api.rel.expressions.transforms.transforms import Transforms
from gravitino.api.rel.indexes.index import Index
from gravitino.api.rel.indexes.indexes import Indexes
from gravitino.api.rel.sql_representation import SQLRepresentation
from gravitino.api.rel.table_change import TableChange
from gravitino.api.rel.types.types import Types
from gravitino.api.rel.view_change import ViewChange
from gravitino.api.schema_change import SchemaChange
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.exceptions import base as errors
from gravitino.namespace import Namespace

from metalake.privileges import BEYOND_GRAVITINO
from pipelines.rest import Client
from tests.mariadb import MariaDB
from tests.names import own_name
from tests.providers.jdbc.test_provider import postgres_properties
from tests.servers import MetalakeServer

pytestmark = pytest.mark.slow

ICEBERG = "lakehouse-iceberg"
PRIMARY, UNIQUE = Index.IndexType.PRIMARY_KEY, Index.IndexType.UNIQUE_KEY


@pytest.fixture
def admin(metalake_server: MetalakeServer) -> Iterator[GravitinoAdminClient]:
    client = GravitinoAdminClient(
        metalake_server.url, auth_data_provider=BasicAuthProvider("admin", metalake_server.admin_password)
    )
    yield client
    client.close()


@pytest.fixture
def metalake(admin: GravitinoAdminClient) -> str:
    name = own_name("m")
    admin.create_metalake(name, "for one test", {})
    return name


@pytest.fixture
def client(metalake_server: MetalakeServer, metalake: str) -> Iterator[GravitinoClient]:
    """The metalake's owner."""
    client = GravitinoClient(
        metalake_server.url, metalake, auth_data_provider=BasicAuthProvider("admin", metalake_server.admin_password)
    )
    yield client
    client.close()


@pytest.fixture
def lake(client: GravitinoClient) -> Any:
    return client.create_catalog("lake", Catalog.Type.RELATIONAL, ICEBERG, "tables", {})


def test_it_takes_the_server_for_one_of_its_kind(admin: GravitinoAdminClient) -> None:
    assert admin.get_server_version().version() >= "1.3.1"


def test_wrong_password(metalake_server: MetalakeServer) -> None:
    wrong = GravitinoAdminClient(metalake_server.url, auth_data_provider=BasicAuthProvider("admin", "wrong"))
    with pytest.raises(errors.RESTException, match="wrong"):
        wrong.list_metalakes()


def test_metalakes(admin: GravitinoAdminClient) -> None:
    name = own_name("m")
    made = admin.create_metalake(name, "ours", {"team": "data"})
    assert (made.name(), made.comment(), made.properties()["team"]) == (name, "ours", "data")
    assert made.audit_info().creator() == "admin"
    assert name in [item.name() for item in admin.list_metalakes()]
    with pytest.raises(errors.MetalakeAlreadyExistsException):
        admin.create_metalake(name, "again", {})
    changes = [
        MetalakeChange.rename(f"{name}x"),
        MetalakeChange.update_comment("new"),
        MetalakeChange.set_property("a", "1"),
    ]
    altered = admin.alter_metalake(name, *changes, MetalakeChange.remove_property("team"))
    assert (altered.name(), altered.comment(), altered.properties()) == (
        f"{name}x",
        "new",
        {"a": "1", "in-use": "true"},
    )
    with pytest.raises(errors.NoSuchMetalakeException):
        admin.load_metalake(name)
    with pytest.raises(errors.MetalakeInUseException):
        admin.drop_metalake(f"{name}x")
    admin.disable_metalake(f"{name}x")
    assert admin.load_metalake(f"{name}x").properties()["in-use"] == "false"
    admin.enable_metalake(f"{name}x")
    assert admin.drop_metalake(f"{name}x", force=True) is True
    assert admin.drop_metalake(f"{name}x") is False


def test_catalogs(client: GravitinoClient) -> None:
    properties = {"team": "data", "s3.secret-access-key": "hunter2"}
    made = client.create_catalog("lake", Catalog.Type.RELATIONAL, ICEBERG, "tables", properties)
    assert (made.name(), made.type(), made.provider()) == ("lake", Catalog.Type.RELATIONAL, ICEBERG)
    assert made.properties()["s3.secret-access-key"] == "******"
    assert client.list_catalogs() == ["lake"]
    assert [item.name() for item in client.list_catalogs_info()] == ["lake"]
    with pytest.raises(errors.CatalogAlreadyExistsException):
        client.create_catalog("lake", Catalog.Type.RELATIONAL, ICEBERG, "again", {})
    client.test_connection("lake")
    client.test_connection("lake", CatalogChange.set_property("team", "sales"))
    altered = client.alter_catalog("lake", CatalogChange.rename("sea"), CatalogChange.set_property("team", "sales"))
    assert (altered.name(), altered.properties()["team"]) == ("sea", "sales")
    with pytest.raises(errors.NoSuchCatalogException):
        client.load_catalog("lake")
    client.disable_catalog("sea")
    with pytest.raises(errors.CatalogNotInUseException):
        client.load_catalog("sea").as_schemas().list_schemas()
    client.enable_catalog("sea")
    with pytest.raises(errors.CatalogInUseException):
        client.drop_catalog("sea")
    client.disable_catalog("sea")
    assert client.drop_catalog("sea") is True
    assert client.drop_catalog("sea") is False


@pytest.mark.parametrize("name", ["plain", "a.b", "ä b", "a%b", "a%3Ab", "a/b"])
def test_names_of_schemas(lake: Any, name: str) -> None:
    schemas = lake.as_schemas()
    assert schemas.create_schema(name, None, {}).name() == name
    assert schemas.load_schema(name).name() == name
    assert schemas.list_schemas() == [name]
    assert schemas.drop_schema(name, cascade=False) is True
    assert schemas.list_schemas() == []


def test_nested_schemas(lake: Any) -> None:
    schemas = lake.as_schemas()
    made = schemas.create_schema("A:B:C", "deep", {"k": "v"})
    assert (made.name(), made.comment(), made.properties()) == ("A:B:C", "deep", {"k": "v"})
    assert schemas.list_schemas() == ["A"]
    assert schemas.list_schemas("A") == ["A:B"]
    assert schemas.list_schemas("A:B") == ["A:B:C"]
    altered = schemas.alter_schema("A:B:C", SchemaChange.set_property("n", "1"), SchemaChange.remove_property("k"))
    assert altered.properties() == {"n": "1"}
    with pytest.raises(errors.SchemaAlreadyExistsException):
        schemas.create_schema("A:B", None, {})
    with pytest.raises(errors.NonEmptySchemaException):
        schemas.drop_schema("A", cascade=False)
    with pytest.raises(errors.UnsupportedOperationException):
        schemas.drop_schema("A", cascade=True)
    with pytest.raises(errors.NoSuchSchemaException):
        schemas.load_schema("X%41")
    with pytest.raises(errors.IllegalArgumentException):
        schemas.create_schema("A::B", None, {})
    assert schemas.drop_schema("A:B:C", cascade=False) is True
    assert schemas.drop_schema("A:B:C", cascade=False) is False


def columns() -> list[Column]:
    place = Types.StructType.of(Types.StructType.Field.not_null_field("city", Types.StringType.get(), "where"))
    return [
        Column.of("id", Types.LongType.get(), "who", nullable=False),
        Column.of("day", Types.DateType.get()),
        Column.of("price", Types.DecimalType.of(10, 2)),
        Column.of("place", place),
        Column.of("tags", Types.ListType.of(Types.StringType.get(), True)),
    ]


def test_tables(lake: Any) -> None:
    lake.as_schemas().create_schema("A:B", None, {})
    tables, ident = lake.as_table_catalog(), NameIdentifier.of("A:B", "orders")
    made = tables.create_table(
        ident,
        columns(),
        "sold",
        {"team": "data"},
        partitioning=[Transforms.month("day"), Transforms.bucket(4, ["id"])],
        sort_orders=[SortOrders.of(NamedReference.field(["id"]), SortDirection.DESCENDING)],
    )
    loaded = tables.load_table(ident)
    for table in (made, loaded):
        assert (table.name(), table.comment(), table.properties()["team"]) == ("orders", "sold", "data")
        assert [column.name() for column in table.columns()] == ["id", "day", "price", "place", "tags"]
        assert [column.data_type().simple_string() for column in table.columns()[:3]] == [
            "long",
            "date",
            "decimal(10,2)",
        ]
        assert [transform.name() for transform in table.partitioning()] == ["month", "bucket"]
        assert [order.direction() for order in table.sort_order()] == [SortDirection.DESCENDING]
        assert table.audit_info().creator() == "admin"
    assert tables.list_tables(Namespace.of("A:B")) == [ident]
    assert tables.load_table(ident, {Privilege.Name.SELECT_TABLE, Privilege.Name.MODIFY_TABLE}).name() == "orders"
    with pytest.raises(errors.TableAlreadyExistsException):
        tables.create_table(ident, columns())
    with pytest.raises(errors.NoSuchTableException):
        tables.load_table(NameIdentifier.of("A:B", "gone"))
    with pytest.raises(errors.UnsupportedOperationException):
        loaded.list_partition_names()


def test_altering_and_dropping_tables(lake: Any) -> None:
    lake.as_schemas().create_schema("A", None, {})
    tables, ident = lake.as_table_catalog(), NameIdentifier.of("A", "orders")
    tables.create_table(ident, columns())
    altered = tables.alter_table(
        ident,
        TableChange.update_comment("new"),
        TableChange.set_property("a", "1"),
        TableChange.add_column(["label"], Types.StringType.get(), "what", TableChange.ColumnPosition.after("id")),
        TableChange.rename_column(["price"], "cost"),
        TableChange.update_column_comment(["cost"], "each"),
        TableChange.update_column_nullability(["id"], True),
        TableChange.delete_column(["tags"], if_exists=False),
    )
    assert [column.name() for column in altered.columns()] == ["id", "label", "day", "cost", "place"]
    assert (altered.comment(), altered.properties()["a"]) == ("new", "1")
    with pytest.raises(errors.IllegalArgumentException):
        tables.alter_table(ident, TableChange.delete_column(["gone"], if_exists=False))
    renamed = tables.alter_table(ident, TableChange.rename("sales"))
    assert renamed.name() == "sales"
    assert tables.drop_table(ident) is False
    assert tables.drop_table(NameIdentifier.of("A", "sales")) is True
    tables.create_table(ident, columns())
    assert tables.purge_table(ident) is True
    assert tables.list_tables(Namespace.of("A")) == []


# Who may do what


def test_views(lake: Any) -> None:
    lake.as_schemas().create_schema("nyc", None, {})
    views, late = lake.as_view_catalog(), NameIdentifier.of("nyc", "late")
    columns = [Column.of("carrier", Types.StringType.get(), "who"), Column.of("delay", Types.DoubleType.get())]
    queries = [SQLRepresentation(dialect, "SELECT carrier, delay FROM flights") for dialect in ("spark", "trino")]
    made = views.create_view(late, columns, queries, "late ones", "lake", "nyc", {"team": "ops"})
    assert (made.name(), made.comment(), made.properties()) == ("late", "late ones", {"team": "ops"})
    loaded = views.load_view(late)
    assert loaded.sql_for("trino").sql() == "SELECT carrier, delay FROM flights" and loaded.sql_for("hive") is None
    assert (loaded.default_catalog(), loaded.default_schema()) == ("lake", "nyc")
    assert [column.comment() for column in loaded.columns()] == ["who", None]
    assert loaded.audit_info().creator() == "admin"
    assert views.list_views(Namespace.of("nyc")) == [late]
    assert views.view_exists(late) and not views.view_exists(NameIdentifier.of("nyc", "other"))
    with pytest.raises(errors.ViewAlreadyExistsException):
        views.create_view(late, columns, queries)
    altered = views.alter_view(
        late,
        ViewChange.rename("later"),
        ViewChange.set_property("tier", "gold"),
        ViewChange.remove_property("team"),
        ViewChange.replace_view(columns[:1], queries[:1], None, "nyc", "only carriers"),
    )
    assert (altered.name(), altered.comment(), altered.properties()) == ("later", "only carriers", {"tier": "gold"})
    assert [each.dialect() for each in altered.representations()] == ["spark"] and len(altered.columns()) == 1
    with pytest.raises(errors.NoSuchViewException):
        views.load_view(late)
    assert views.drop_view(NameIdentifier.of("nyc", "later")) is True
    assert views.drop_view(NameIdentifier.of("nyc", "later")) is False


@pytest.fixture(params=["jdbc-postgresql", "jdbc-mysql"])
def database(request: pytest.FixtureRequest, client: GravitinoClient) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    """A catalog, with all properties that Gravitino's documentation has for it, and its SQL."""
    mariadb: MariaDB = request.getfixturevalue("mariadb")
    run: Callable[[str], Any] = mariadb.execute
    properties, more = mariadb.properties(), {"jdbc-driver": "com.mysql.cj.jdbc.Driver"}
    if request.param == "jdbc-postgresql":
        url: str = request.getfixturevalue("postgres_url")
        run, properties = psycopg.connect(url, autocommit=True).execute, postgres_properties(url)
        more = {"jdbc-driver": "org.postgresql.Driver", "jdbc-database": properties["jdbc-url"].rpartition("/")[2]}
    more |= {"jdbc.pool.min-size": "1", "jdbc.pool.max-size": "4"}
    made = client.create_catalog("db", Catalog.Type.RELATIONAL, request.param, "sales", properties | more)
    assert made.properties()["jdbc-password"] == "******"
    client.test_connection("db")
    yield client.load_catalog("db"), run
    client.drop_catalog("db", force=True)  # it owns the server, which other tests register, too


def columns_of_database() -> list[Column]:
    cheap = Literals.decimal_literal(Decimal("1.50"))
    return [
        Column.of("id", Types.LongType.get(), "who", auto_increment=True, nullable=False),
        Column.of("code", Types.VarCharType.of(20), nullable=False),
        Column.of("price", Types.DecimalType.of(10, 2), default_value=cheap),
        Column.of("day", Types.DateType.get()),
        Column.of("ok", Types.BooleanType.get()),
        Column.of("text", Types.StringType.get()),
    ]


def test_schemas_tables_and_views_of_databases(database: tuple[Any, Callable[[str], Any]]) -> None:
    (catalog, run), schema = database, own_name("sales")
    schemas, tables, views = catalog.as_schemas(), catalog.as_table_catalog(), catalog.as_view_catalog()
    assert schemas.create_schema(schema, None, {}).name() == schemas.load_schema(schema).name() == schema
    assert schema in schemas.list_schemas()
    with pytest.raises(errors.SchemaAlreadyExistsException):
        schemas.create_schema(schema, None, {})

    ident = NameIdentifier.of(schema, "orders")
    indexes = [Indexes.primary("PRIMARY", [["id"]]), Indexes.unique("one_code", [["code"], ["day"]])]
    made = tables.create_table(ident, columns_of_database(), "sold", {}, indexes=indexes)
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
        tables.create_table(ident, columns_of_database())
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
    run(f"CREATE VIEW {schema}.late AS SELECT id FROM {schema}.orders")
    late = NameIdentifier.of(schema, "late")
    assert views.list_views(Namespace.of(schema)) == [late]
    loaded = views.load_view(late)
    (query,) = loaded.representations()
    assert [column.name() for column in loaded.columns()] == ["id"] and catalog.provider() == f"jdbc-{query.dialect()}"
    with pytest.raises(errors.UnsupportedOperationException, match="in an Iceberg catalog"):
        views.create_view(NameIdentifier.of(schema, "x"), loaded.columns(), loaded.representations())
    with pytest.raises(errors.UnsupportedOperationException, match="in an Iceberg catalog"):
        views.drop_view(late)
    run(f"DROP VIEW {schema}.late")
    assert tables.alter_table(ident, TableChange.rename("sold")).name() == "sold"
    with pytest.raises(errors.NoSuchTableException):
        tables.load_table(ident)
    assert tables.drop_table(NameIdentifier.of(schema, "sold")) is True and tables.drop_table(ident) is False
    tables.create_table(ident, columns_of_database()[1:3])
    assert tables.purge_table(ident) is True
    assert schemas.drop_schema(schema, cascade=False) is True
    with pytest.raises(errors.NoSuchSchemaException):
        schemas.load_schema(schema)


def test_users_and_groups(client: GravitinoClient) -> None:
    user, group = own_name("u"), own_name("g")
    assert client.add_user(user).name() == user
    assert client.get_user(user).roles() == []
    assert sorted(client.list_user_names()) == sorted(["admin", user])
    assert {item.name() for item in client.list_users()} == {"admin", user}
    with pytest.raises(errors.UserAlreadyExistsException):
        client.add_user(user)
    with pytest.raises(errors.NoSuchUserException):
        client.get_user("gone")
    assert client.add_group(group).name() == group
    assert client.list_group_names() == [group]
    assert [item.name() for item in client.list_groups()] == [group]
    with pytest.raises(errors.GroupAlreadyExistsException):
        client.add_group(group)
    assert client.remove_group(group) is True
    assert client.remove_group(group) is False
    assert client.remove_user(user) is True
    assert client.remove_user(user) is False


def test_roles_and_grants(client: GravitinoClient, lake: Any) -> None:
    user, group, role = own_name("u"), own_name("g"), "analyst"
    lake.as_schemas().create_schema("A:B", None, {})
    catalog = SecurableObjects.of_catalog("lake", [UseCatalog.allow(), UseSchema.allow()])
    made = client.create_role(role, {"team": "data"}, [catalog])
    assert made.name() == role
    assert [item.full_name() for item in made.securable_objects()] == ["lake"]
    client.add_user(user)
    client.add_group(group)
    assert client.grant_roles_to_user([role], user).roles() == [role]
    assert client.grant_roles_to_user([role], user).roles() == [role]
    assert client.grant_roles_to_group([role], group).roles() == [role]
    schema = SecurableObjects.of_schema(catalog, "A:B", [])
    changed = client.grant_privileges_to_role(role, schema, [SelectTable.allow()])
    assert {item.full_name() for item in changed.securable_objects()} == {"lake", "lake.A:B"}
    left = client.revoke_privileges_from_role(role, schema, [SelectTable.allow()])
    assert {item.full_name() for item in left.securable_objects()} == {"lake"}
    assert client.list_role_names() == [role]
    with pytest.raises(errors.IllegalRoleException):
        client.grant_roles_to_user(["gone"], user)
    with pytest.raises(errors.RoleAlreadyExistsException):
        client.create_role(role, {}, [])
    with pytest.raises(errors.NoSuchMetadataObjectException):
        client.grant_privileges_to_role(role, SecurableObjects.of_catalog("gone", []), [UseCatalog.allow()])
    with pytest.raises(errors.IllegalPrivilegeException):
        client.grant_privileges_to_role(role, catalog, [CreateCatalog.allow()])
    assert client.revoke_roles_from_user([role], user).roles() == []
    assert client.revoke_roles_from_group([role], group).roles() == []
    assert client.delete_role(role) is True
    assert client.delete_role(role) is False


def test_a_role_with_privileges_that_the_client_has_no_name_for(
    client: GravitinoClient, metalake: str, lake: Any, metalake_server: MetalakeServer
) -> None:
    """It loads such a role, and what it grants and revokes leaves those privileges as they are."""
    lake.as_schemas().create_schema("nyc", None, {})
    ours = Client(metalake_server.url, "admin", metalake_server.admin_password)
    beyond = [{"name": name, "condition": "allow"} for name in sorted(BEYOND_GRAVITINO)]
    roles = ("metalakes", metalake, "roles")
    on_lake = {"type": "catalog", "fullName": "lake", "privileges": beyond}
    on_nyc = {"type": "schema", "fullName": "lake.nyc", "privileges": [{"name": "drop_view", "condition": "deny"}]}
    ours.call("POST", *roles, body={"name": "editor", "securableObjects": [on_lake, on_nyc]})
    before = ours.call("GET", *roles, "editor")["role"]["securableObjects"]
    names = {Privilege.Name.CREATE_VIEW, Privilege.Name.SELECT_VIEW}
    known = client.get_role("editor").securable_objects()
    assert {each.full_name(): each.privileges() for each in known} == {"lake": [], "lake.nyc": []}
    catalog = SecurableObjects.of_catalog("lake", [])
    granted = client.grant_privileges_to_role("editor", catalog, [CreateView.allow(), SelectView.allow()])
    assert {one.name() for each in granted.securable_objects() for one in each.privileges()} == names
    left = client.revoke_privileges_from_role("editor", catalog, [CreateView.allow(), SelectView.allow()])
    assert [each.full_name() for each in left.securable_objects()] == ["lake", "lake.nyc"]
    assert ours.call("GET", *roles, "editor")["role"]["securableObjects"] == before


def test_owners(client: GravitinoClient, lake: Any) -> None:
    user = own_name("u")
    client.add_user(user)
    lake.as_schemas().create_schema("A:B", None, {})
    schema = MetadataObjects.of(["lake", "A:B"], MetadataObject.Type.SCHEMA)
    owner = client.get_owner(schema)
    assert owner is not None
    assert (owner.name(), owner.type()) == ("admin", Owner.Type.USER)
    client.set_owner(schema, user, Owner.Type.USER)
    changed = client.get_owner(schema)
    assert changed is not None
    assert changed.name() == user
