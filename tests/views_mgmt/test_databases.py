"""Views that live in databases: found, read and checked here, written there; with a real PostgreSQL and MariaDB."""
# ruff: noqa: F811

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from catalogs.models import Catalog
from metalake.kinds import Kind
from metalake.models import Securable
from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.errors import About
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from tests.catalogs.callers import Answer, Caller
from tests.frontend.conftest import sign_in
from tests.frontend.test_pages import text
from tests.iceberg_rest.world import COLUMNS, view_version
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.mariadb import MariaDB
from tests.names import own_name
from tests.postgres import PostgresServer
from tests.providers import jdbc_tables
from tests.providers.jdbc_tables import mariadb_database, postgres_database, postgres_properties  # noqa: F401
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.services.dependencies import read_new_versions

pytestmark = pytest.mark.django_db(transaction=True)
CATALOGS = "metalakes/demo/catalogs"
REFUSAL = "CREATE VIEW is not supported for JDBC catalogs; create the view in an Iceberg catalog"
NOT_SHOWN = "The catalog's account may not read it; grant it SHOW VIEW on this view."

SHOP = (
    'CREATE TABLE {s}.orders (id bigint NOT NULL, "Name" varchar(20), at timestamptz, cost numeric(8,2), tags text[])',
    'CREATE VIEW {s}.late AS SELECT id, "Name", at::date AS day, cost, tags FROM {s}.orders WHERE id > 7;',
    "COMMENT ON VIEW {s}.late IS 'it''s late'",
    "CREATE VIEW {s}.checked WITH (security_invoker) AS SELECT l.id, count(*) AS n FROM {s}.late l GROUP BY l.id",
    "CREATE MATERIALIZED VIEW {s}.filled AS SELECT id FROM {s}.orders",
)
BROKEN = (
    "CREATE TABLE {s}.secrets (id int)",
    "CREATE FUNCTION {s}.first_of() RETURNS int LANGUAGE sql STABLE AS 'SELECT id FROM {s}.secrets'",
    "CREATE VIEW {s}.lost AS SELECT f.* FROM {s}.orders o, {s}.first_of() f",
    "CREATE VIEW {s}.behind AS SELECT * FROM {s}.lost",
    "DROP TABLE {s}.secrets",
    "CREATE FUNCTION {s}.tells() RETURNS int LANGUAGE plpgsql IMMUTABLE AS "
    "$$ BEGIN RAISE EXCEPTION 'words of a stranger'; END $$",
    "CREATE VIEW {s}.telling AS SELECT {s}.tells() AS it",
    "CREATE VIEW {s}.zero AS SELECT id / 0 AS it FROM {s}.orders",
    'CREATE TABLE {s}."Odd One" ("Id" int, id text)',
    'CREATE VIEW {s}.odd AS SELECT "Id", id FROM {s}."Odd One"',
)
OF_MARIADB = (
    "CREATE TABLE orders (id int unsigned NOT NULL, Name varchar(20) COMMENT 'whose', is_late tinyint(1))",
    "CREATE VIEW late AS SELECT ID AS id, Name, is_late, upper(Name) AS Loud FROM orders WHERE is_late",
    "CREATE SQL SECURITY INVOKER VIEW checked AS SELECT id, count(*) AS n FROM late GROUP BY id",
    "CREATE TABLE gone (id int, c int)",
    "CREATE VIEW broken AS SELECT id FROM gone",
    "CREATE VIEW lost_column AS SELECT c FROM gone",
    "DROP TABLE gone",
)


@dataclass(frozen=True)
class Database:
    """A catalog with one schema of the database, in which `run` runs statements; `{s}` in them is the schema."""

    caller: Caller
    catalog: str
    schema: str
    run: Callable[..., Any]
    provider: JdbcCatalog

    @property
    def path(self) -> str:
        return f"{CATALOGS}/{self.catalog}/schemas/{self.schema}"

    def get(self, path: str) -> Answer:
        return self.caller.get(f"{self.path}/{path}")

    def view(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"views/{name}")["view"]
        return found

    def check(self, name: str) -> dict[str, Any]:
        (dialect,) = self.caller.post(f"{self.path}/views/{name}/check")["dialects"]
        return dict(dialect)

    def problems(self, name: str) -> list[str]:
        """What the database itself finds wrong."""
        found = self.provider.call("check_view", {"schema": [self.schema], "view": name})
        return list(found["problems"])


def register(caller: Caller, name: str, provider: str, properties: dict[str, str]) -> JdbcCatalog:
    asked = {"name": name, "type": "relational", "provider": provider, "properties": properties}
    assert caller.post(CATALOGS, asked)["catalog"]["name"] == name
    of = {"jdbc-postgresql": PostgreSQLProvider, "jdbc-mysql": MySQLProvider}
    return of[provider](Catalog.objects.get(name=name).pk, properties)


def registered(caller: Caller, catalog: str, there: jdbc_tables.Database, statements: Sequence[str]) -> Database:
    def run(*statements: str) -> None:
        there.execute(*(each.format(s=there.schema) for each in statements))

    run(*statements)
    provider = register(caller, catalog, f"jdbc-{there.provider.dialect.word}", dict(there.provider.properties))
    return Database(caller, catalog, there.schema, run, provider)


@pytest.fixture
def pg(admin: Caller, postgres_database: jdbc_tables.Database) -> Database:
    return registered(admin, "pg", postgres_database, SHOP)


@pytest.fixture
def maria(admin: Caller, mariadb_database: jdbc_tables.Database) -> Database:
    return registered(admin, "my", mariadb_database, OF_MARIADB)


def columns(view: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(column["name"], column["type"]) for column in view["columns"]]


def page(name: str, tab: str = "", status: int = 200) -> str:
    target = Securable.objects.get(name=name, kind__in=[Kind.VIEW, Kind.SCHEMA])
    return text(sign_in("admin"), f"/objects/{target.pk}{tab}", status)


def test_views_of_postgresql_are_listed_and_loaded(pg: Database, mia: Caller) -> None:
    listed = {view["name"]: view for view in pg.get("views?details=true")["views"]}
    assert list(listed) == ["checked", "filled", "late"]
    assert [one["name"] for one in pg.get("tables")["identifiers"]] == ["orders"]
    assert [each["dialects"] for each in listed.values()] == [["postgresql"]] * 3
    late = pg.view("late")
    assert (late["engine"], late["format"], late["version"], late["comment"]) == (*["postgresql"] * 2, 1, "it's late")
    wanted = [("id", "long"), ("Name", "varchar(20)"), ("day", "date"), ("cost", "decimal(8,2)")]
    assert columns(late) == [*wanted, ("tags", {"type": "list", "elementType": "string", "containsNull": True})]
    (query,) = late["representations"]
    assert query["sql"].startswith("SELECT id,\n") and query["sql"].endswith("WHERE (id > 7)")
    modes = {name: pg.view(name)["securityMode"] for name in listed}
    assert modes == {"late": "DEFINER", "checked": "INVOKER", "filled": None}
    assert {name: pg.view(name)["materialized"] for name in listed} == {"late": False, "checked": False, "filled": True}
    assert "materialized" in page("filled") and "rights of its owner there" in page("late")
    assert pg.view("late")["version"] == 1
    pg.run('CREATE OR REPLACE VIEW {s}.late AS SELECT id, "Name", at::date AS day, cost, tags FROM {s}.orders')
    assert pg.view("late")["version"] == 2
    owner = f"metalakes/demo/owners/view/pg.{pg.schema}.late"  # of a view with the rights of its owner there
    assert pg.caller.send("PUT", owner, {"name": "mia", "type": "USER"})["set"]


def test_writing_is_refused(pg: Database) -> None:
    late = pg.view("late")
    edit = update("updateRepresentation", representation=sql("postgresql", "SELECT 1"))
    changes = (edit, update("updateComment", newComment="x"), update("rename", newName="x"))
    refused = [pg.caller.put(f"{pg.path}/views/late", change) for change in changes]
    refused += [pg.caller.post(f"{pg.path}/views", body("x", sql("postgresql")))]
    refused += [pg.caller.delete(f"{pg.path}/views/late")]
    assert {(each.error, each.message) for each in refused} == {((405, 1006, "UnsupportedOperationException"), REFUSAL)}
    asked = {"name": "x", "schema": COLUMNS, "view-version": view_version(), "properties": {}}
    assert IcebergCaller("admin", catalog="pg").post(f"namespaces/{pg.schema}/views", asked).error[2] == REFUSAL
    assert pg.view("late") == late
    made = page("flights", "/views/new")
    assert REFUSAL in made and "Make it" not in made
    dialects = page("late", "/dialects")
    assert REFUSAL in dialects and "Add a dialect" not in dialects and "Update" not in dialects
    assert REFUSAL in page("late", "/versions")


@pytest.fixture
def half(maria: Database, mariadb: MariaDB) -> Database:
    """The same database by an account that may read its views, and not their SQL."""
    user = own_name("u")
    mariadb.execute(f"CREATE USER {user}@'%' IDENTIFIED BY 'x'", f"GRANT SELECT ON {maria.schema}.* TO {user}@'%'")
    provider = register(maria.caller, "half", "jdbc-mysql", mariadb.properties(user, "x"))

    def grant() -> None:
        mariadb.execute(f"GRANT SHOW VIEW ON {maria.schema}.* TO {user}@'%'")

    return Database(maria.caller, "half", maria.schema, grant, provider)


def test_views_of_mysql_with_and_without_show_view(maria: Database, half: Database) -> None:
    listed = {view["name"]: view for view in half.get("views?details=true")["views"]}
    assert listed["late"]["dialects"] == [] and listed["late"]["broken"] is None
    late = half.view("late")
    assert len(columns(late)) == 4 and late["properties"] == {"definition": NOT_SHOWN}
    (query,) = late["representations"]
    assert (query["dialect"], query["sql"]) == ("mysql", f"-- {NOT_SHOWN}"), "upstream's clients want one"
    assert half.caller.post(f"{half.path}/views/late/check")["dialects"] == []
    suggested = half.caller.post(f"{half.path}/views/late/suggest", {"dialect": "trino"})
    assert suggested.status == 400 and suggested.message == "source: the view's SQL is not known here"
    read_new_versions()
    assert half.get("views/late/lineage")["reads"] == []
    assert half.get("views/late/versions")["versions"][0]["representations"] == []
    shown = NOT_SHOWN.replace("'", "&#x27;")
    for tab in ("", "/dialects", "/dialects?check=all", "/versions", "/lineage", "/columns", "/access"):
        assert (shown in page("late", tab)) is (tab in ("", "/dialects", "/dialects?check=all")), tab
    half.run()
    late = half.view("late")
    assert late["version"] == 2 and late["properties"] == {} and "select" in late["representations"][0]["sql"]
    late = maria.view("late")
    wanted = [("Name", "varchar(20)"), ("is_late", "boolean"), ("Loud", "varchar(20)")]
    assert columns(late)[1:] == wanted
    (query,) = late["representations"]
    assert query["dialect"] == "mysql" and query["sql"].startswith("select `") and late["comment"] is None
    assert (late["securityMode"], maria.view("checked")["securityMode"]) == ("DEFINER", "INVOKER")
    found = maria.check("late")
    assert found["problems"] == found["differences"] == found["own"]["problems"] == []
    assert found["own"]["engine"].startswith("MariaDB ")


def test_broken_views_do_not_harm_their_neighbours(maria: Database, half: Database) -> None:
    for database in (maria, half):
        listed = [view["name"] for view in database.get("views?details=true")["views"]]
        assert listed == ["broken", "checked", "late", "lost_column"]
        assert database.view("broken")["columns"] == [] and len(database.view("late")["columns"]) == 4
    problem = "It reads something that does not exist any more, or that its definer may not use."
    for database in (maria, half):
        assert [database.problems(name) for name in ("broken", "lost_column", "late")] == [[problem], [problem], []]
    shown = text(sign_in("admin"), f"/objects/{view_id('my', 'broken')}/dialects?check=all")
    assert "cannot run it" in shown and problem in shown
    maria.run(
        f"GRANT SELECT ON late TO {half.provider.login.user}@'%'",
        f"REVOKE SELECT ON {maria.schema}.* FROM {half.provider.login.user}@'%'",
        "CREATE SQL SECURITY INVOKER VIEW invoked AS SELECT id FROM orders",
        f"GRANT SELECT ON invoked TO {half.provider.login.user}@'%'",
    )
    assert half.provider.call("check_view", {"schema": [maria.schema], "view": "invoked"}) is None
    assert half.problems("late") == []
    maria.run("CREATE TABLE gone (id int)")
    assert maria.problems("broken") == [] and maria.problems("lost_column") == [problem]
    assert columns(maria.view("broken")) == [("id", "integer")]


def view_id(catalog: str, name: str) -> int:
    return Securable.objects.get(name=name, kind=Kind.VIEW, parent__parent__name=catalog).pk


def test_postgresqls_planner_says_what_is_wrong_and_names_nothing(pg: Database) -> None:
    pg.run(*BROKEN)
    assert pg.problems("lost") == pg.problems("behind") == ["Something that it reads does not exist any more."]
    assert pg.problems("telling") == ["PostgreSQL cannot plan it (SQLSTATE P0001)."]
    assert [pg.problems(name) for name in ("late", "filled", "checked", "zero")] == [[], [], [], []]
    with pg.provider.reading(About(Kind.VIEW, "telling")) as session:
        assert session.names_of("SELECT * FROM flights.telling WHERE 1=0") == ["it"], "its function was not computed"
    found = pg.check("odd")  # whose names are read as the database has them
    assert found["problems"] == found["differences"] == found["own"]["problems"] == []
    assert found["own"]["engine"].startswith("PostgreSQL ")
    assert [each["fullName"] for each in found["reads"]] == ["pg.flights.Odd One"]
    assert columns(found) == [("Id", "integer"), ("id", "string")]
    draft = {"representation": sql("postgresql", "SELECT 1 AS one")}
    (drafted,) = pg.caller.post(f"{pg.path}/views/late/check", draft)["dialects"]
    assert drafted["own"] is None, "the database is not asked about SQL that it does not have"


def test_the_rights_of_accounts_are_no_problem_of_a_view(
    pg: Database, postgres: PostgresServer, postgres_url: str
) -> None:
    reader, maker = own_name("reader"), own_name("maker")
    postgres.execute(f"CREATE ROLE {reader} LOGIN")
    postgres.execute(f"CREATE ROLE {maker}")
    try:
        pg.run(
            f"GRANT USAGE, CREATE ON SCHEMA {{s}} TO {maker}; GRANT USAGE ON SCHEMA {{s}} TO {reader}",
            f"GRANT SELECT ON {{s}}.orders TO {maker}; SET ROLE {maker}",
            f"CREATE VIEW {{s}}.theirs AS SELECT id FROM {{s}}.orders; GRANT SELECT ON {{s}}.theirs TO {reader}",
            "CREATE VIEW {s}.ours WITH (security_invoker) AS SELECT id FROM {s}.orders",
            f"GRANT SELECT ON {{s}}.ours TO {reader}",
            f"RESET ROLE; REVOKE ALL ON {{s}}.orders FROM {maker}",
        )
        own = postgres_properties(postgres_url) | {"jdbc-user": reader}
        few = Database(pg.caller, "few", "flights", pg.run, register(pg.caller, "few", "jdbc-postgresql", own))
        assert columns(few.view("late")) == columns(pg.view("late"))
        for name in ("late", "ours"):
            assert few.provider.call("check_view", {"schema": ["flights"], "view": name}) is None
        assert few.problems("theirs") == ["Its owner may not read, or not use, something that it reads."]
    finally:
        pg.run(f"DROP OWNED BY {maker}, {reader}", f"DROP ROLE {maker}", f"DROP ROLE {reader}")


def test_lineage_and_search_include_them(pg: Database, flights: Any) -> None:
    assert pg.get("views").status == 200 and pg.get("tables").status == 200
    far = body("far", sql("trino", "SELECT id FROM pg.flights.checked"), columns=[{"name": "id", "type": "long"}])
    assert pg.caller.post(f"{CATALOGS}/flights/schemas/nyc/views", far).status == 200
    for _ in range(5):  # what is slow now has its turn later
        read_new_versions()
    found = pg.get("views/checked/lineage")
    read = [(each["fullName"], each["type"], each["level"]) for each in found["reads"]]
    assert read == [("pg.flights.late", "view", 1), ("pg.flights.orders", "table", 2)]
    assert [each["view"] for each in found["readBy"]] == ["flights.nyc.far"]
    readers = pg.get("tables/orders/lineage")["readBy"]
    above = {f"pg.flights.{name}" for name in ("late", "filled", "checked")} | {"flights.nyc.far"}
    assert {each["view"] for each in readers} == above
    assert f"/objects/{view_id('pg', 'late')}" in text(sign_in("admin"), "/search?q=late")
