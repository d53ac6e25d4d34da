"""Databases through the native wire."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.test import Client

from catalogs.models import Catalog, Listing, Mirror, RefreshRun
from metalake.kinds import Kind
from outside import refresh
from providers import circuit_breaker
from tests.catalogs.callers import Caller, update
from tests.catalogs.conftest import admin, mia  # noqa: F401 (fixtures)
from tests.demo import PASSWORD, give
from tests.mariadb import MariaDB
from tests.names import own_name
from tests.ports import free_port
from tests.providers.jdbc.test_provider import postgres_properties

pytestmark = pytest.mark.django_db(transaction=True)

CATALOGS = "metalakes/demo/catalogs"
SCHEMAS = f"{CATALOGS}/db/schemas"
COLUMNS = [
    {"name": "id", "type": "long", "nullable": False, "autoIncrement": True, "comment": "it's"},
    {"name": "carrier", "type": "varchar(20)"},
]
KEY = {"indexType": "PRIMARY_KEY", "name": "PRIMARY", "fieldNames": [["id"]]}


@dataclass
class System:
    provider: str
    properties: dict[str, str]
    execute: Callable[[str], Any]  # as somebody else


@pytest.fixture(params=["jdbc-postgresql", "jdbc-mysql"])
def system(request: pytest.FixtureRequest) -> System:
    circuit_breaker.forget_all()
    if request.param == "jdbc-mysql":
        mariadb: MariaDB = request.getfixturevalue("mariadb")
        return System(request.param, mariadb.properties(), mariadb.execute)
    url: str = request.getfixturevalue("postgres_url")

    def execute(statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(statement)

    return System(request.param, postgres_properties(url), execute)


def registration(system: System, **properties: str) -> dict[str, Any]:
    given = system.properties | properties
    return {"name": "db", "type": "relational", "provider": system.provider, "comment": None, "properties": given}


@pytest.fixture
def caller(admin: Caller, system: System) -> Caller:  # noqa: F811
    """The owner of the catalog `db`."""
    admin.post(CATALOGS, registration(system))["catalog"]
    return admin


@pytest.fixture
def schema(caller: Caller, system: System) -> Iterator[str]:
    """The path of a schema of the test's own; others may use the server, too."""
    name = own_name("flights")
    made = caller.post(SCHEMAS, {"name": name, "comment": "of 2013"})["schema"]
    assert (made["name"], made["comment"], made["properties"]) == (name, "of 2013", {})
    yield name
    system.execute(f"DROP SCHEMA IF EXISTS {name}" + (" CASCADE" if system.provider == "jdbc-postgresql" else ""))


@pytest.fixture
def tables(caller: Caller, schema: str) -> str:
    """The path of its tables, of which `delays` is one."""
    path = f"{SCHEMAS}/{schema}/tables"
    caller.post(path, {"name": "delays", "comment": "how late", "columns": COLUMNS, "indexes": [KEY]})["table"]
    return path


def asked(method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """What the administrator is answered, whatever the status."""
    credential = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    send = getattr(Client(raise_request_exception=False), method)
    answer = send(path, body, content_type="application/json", headers={"Authorization": f"Basic {credential}"})
    return answer.status_code, answer.json()


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def test_a_schema_lives_and_ends(caller: Caller, schema: str) -> None:
    path = f"{SCHEMAS}/{schema}"
    assert schema in names(caller.get(SCHEMAS))
    assert caller.get(path)["schema"]["comment"] == "of 2013"
    assert caller.post(SCHEMAS, {"name": schema}).error[:2] == (409, 1004)
    refused = caller.put(path, update("setProperty", property="team", value="ops"))
    assert refused.error[:2] == (405, 1006) and "have no properties" in refused.message
    caller.post(f"{path}/tables", {"name": "delays", "columns": COLUMNS[1:]})["table"]
    assert caller.delete(path).error[:2] == (409, 1005)
    assert caller.delete(f"{path}?cascade=true")["dropped"] is True
    assert caller.get(path).error[:2] == (404, 1003)


def test_a_table_lives_and_ends(caller: Caller, tables: str) -> None:
    shown = caller.get(f"{tables}/delays")["table"]
    assert (shown["comment"], shown["audit"]["creator"]) == ("how late", "admin")
    assert [(each["name"], each["type"], each["autoIncrement"]) for each in shown["columns"]] == [
        ("id", "long", True),
        ("carrier", "varchar(20)", False),
    ]
    assert shown["columns"][0]["comment"] == "it's"
    assert [(each["indexType"], each["fieldNames"]) for each in shown["indexes"]] == [("PRIMARY_KEY", [["id"]])]
    assert caller.post(tables, {"name": "delays", "columns": COLUMNS}).error[:2] == (409, 1004)
    column = {"fieldName": ["late"], "type": "integer", "nullable": True}
    altered = caller.put(
        f"{tables}/delays", update("addColumn", **column), update("updateComment", newComment="in minutes")
    )["table"]
    assert (altered["comment"], altered["columns"][-1]["name"]) == ("in minutes", "late")
    refused = caller.put(f"{tables}/delays", update("setProperty", property="team", value="ops"))
    assert refused.error[:2] in ((405, 1006), (400, 1001)), refused.body
    assert caller.put(f"{tables}/delays", update("rename", newName="late's"))["table"]["name"] == "late's"
    assert names(caller.get(tables)) == ["late's"]
    assert caller.delete(f"{tables}/late's?purge=true")["dropped"] is True
    assert names(caller.get(tables)) == [] and caller.get(f"{tables}/delays").error[:2] == (404, 1003)


def test_partitions_and_the_iceberg_wire_are_refused(caller: Caller, schema: str, tables: str) -> None:
    refused = caller.get(f"{tables}/delays/partitions")
    assert refused.error[:2] == (405, 1006), refused.body
    with_layout = {"name": "laid", "columns": COLUMNS, "partitioning": [{"strategy": "identity", "fieldName": ["id"]}]}
    assert caller.post(tables, with_layout).error[:2] == (405, 1006)
    path = f"/iceberg/demo/v1/db/namespaces/{schema}/tables"
    assert asked("get", path) == (200, {"identifiers": [], "next-page-token": None})
    status, missing = asked("get", f"{path}/delays")
    assert (status, missing["error"]["type"]) == (404, "NoSuchTableException")


def test_somebody_without_rights_sees_nothing(caller: Caller, mia: Caller, schema: str, tables: str) -> None:  # noqa: F811
    give("mia", Kind.METALAKE, "demo", "use_catalog")
    assert names(mia.get(SCHEMAS)) == []
    assert mia.get(f"{SCHEMAS}/{schema}").status in (403, 404)
    assert mia.get(f"{tables}/delays").status in (403, 404)
    assert mia.delete(f"{tables}/delays").status in (403, 404)
    assert mia.post(tables, {"name": "mine", "columns": COLUMNS}).status in (403, 404)


def test_answers_are_reused_for_as_long_as_cache_ttl_says(caller: Caller, system: System, tables: str) -> None:
    schema = tables.split("/")[-2]
    caller.put(f"{CATALOGS}/db", update("setProperty", property="cache-ttl", value="600"))["catalog"]
    assert names(caller.get(tables)) == ["delays"]
    system.execute(f"CREATE TABLE {schema}.others (id INT)")
    assert names(caller.get(tables)) == ["delays"] and Listing.objects.exists()
    caller.put(f"{CATALOGS}/db", update("removeProperty", property="cache-ttl"))["catalog"]
    assert names(caller.get(tables)) == ["delays", "others"]


def test_a_refresh_of_an_unchanged_database_writes_no_row(caller: Caller, schema: str, tables: str) -> None:
    def refreshed() -> list[Any]:
        """The rows of the schema, as of when."""
        run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="db").pk, here=True).pk)
        assert run is not None and run.state == RefreshRun.State.DONE
        return list(Mirror.objects.filter(securable__parent__name=schema).values())

    assert refreshed() == refreshed() and caller.get(f"{tables}/delays").status == 200


@pytest.mark.parametrize("wrong", ["password", "port"])
def test_a_connection_that_cannot_be_made_is_explained(
    admin: Caller,  # noqa: F811
    system: System,
    wrong: str,
) -> None:
    url = system.properties["jdbc-url"]
    given = {"jdbc-user": "nobody", "jdbc-password": "canary"}
    if wrong == "port":
        port = url.rpartition(":")[2].partition("/")[0]
        given = {"jdbc-url": url.replace(port, str(free_port())), "jdbc-password": "canary"}
    status, refused = asked("post", f"/api/{CATALOGS}/testConnection", registration(system, **given))
    assert (status, refused["code"]) == (502, 1007)
    assert "canary" not in str(refused) and "127.0.0.1" in refused["message"]
    assert ("refused jdbc-user" in refused["message"]) is (wrong == "password"), refused
