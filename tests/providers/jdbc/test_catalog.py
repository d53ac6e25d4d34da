"""Catalogs on databases over the native wire: hostile names and texts run nothing, and no login is read anywhere."""
# ruff: noqa: F811

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from django.test import Client

from providers import circuit_breaker
from tests.cases import each
from tests.catalogs.callers import Answer, Caller
from tests.catalogs.canaries import Canary, Listening, dump, leaks
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.catalogs.test_canaries import listening  # noqa: F401 (fixture)
from tests.ports import free_port
from tests.providers.jdbc_tables import Database, database, mariadb_database, postgres_database  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

CATALOGS = "metalakes/demo/catalogs"
CANARY = "canary"
SUNG = "Sung5ecretSung"


def hostile(schema: str) -> list[str]:
    """Names and texts that end what they stand in and go on, in either dialect."""
    drop = f"DROP TABLE {schema}.{CANARY}"
    ends = ["x'; {}; --", 'x"; {}; --', "x`; {}; -- ", "x\\'; {}; -- ", "x\\\\'; {}; #", "x' /*! {} */ '",
            "x') ; {}; --"]  # fmt: skip
    texts = ["%s %(x)s %% :x ?", "x\\", "'", "`", '"', ";", "/*", "x\ty", "x\u202ey"]
    return [*(end.format(drop) for end in ends), *texts]


class World:
    """A catalog `sales` of `admin`, with a schema in which lies a table that has to stay."""

    def __init__(self, caller: Caller, database: Database) -> None:
        self.caller, self.database, self.schema = caller, database, database.schema
        self.properties = dict(database.provider.properties)
        self.kind = f"jdbc-{database.provider.dialect.word}"
        body = {"name": "sales", "type": "relational", "provider": self.kind, "properties": self.properties}
        assert caller.post(CATALOGS, body).status == 200
        assert self.create(CANARY).status == 200

    @property
    def tables(self) -> str:
        return f"{CATALOGS}/sales/schemas/{self.schema}/tables"

    def create(self, name: str, *columns: dict[str, Any], **more: Any) -> Answer:
        columns = columns or ({"name": "id", "type": "long"},)
        return self.caller.post(self.tables, {"name": name, "columns": list(columns), **more})

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What either wire answers, whatever the status."""
        credential = base64.b64encode(f"{self.caller.name}:{self.caller.password}".encode()).decode()
        return Client().generic(
            method, path, orjson.dumps(body), "application/json", headers={"Authorization": f"Basic {credential}"}
        ).json()  # fmt: skip

    def load(self, name: str) -> dict[str, Any]:
        return self.database.load(name).definition

    def names(self) -> list[str]:
        return sorted(self.database.listed())


@pytest.fixture
def world(admin: Caller, database: Database) -> World:
    circuit_breaker.forget_all()
    return World(admin, database)


class TestHostileTexts:
    def test_they_are_texts(self, world: World) -> None:
        texts = hostile(world.schema)
        literals = [{"type": "literal", "dataType": "varchar(99)", "value": text} for text in texts]
        columns = [
            {"name": f"c{number}", "type": "varchar(99)", "comment": text, "defaultValue": literal}
            for number, (text, literal) in enumerate(zip(texts, literals, strict=True))
        ]
        assert world.create("t", *columns, comment="".join(texts)).status == 200
        for _ in range(2):  # the second time after a change of each whole column
            shown = world.load("t")
            assert shown["comment"] == "".join(texts)
            assert [column["comment"] for column in shown["columns"]] == texts
            assert [column["defaultValue"]["value"] for column in shown["columns"]] == texts
            names = [column["name"] for column in columns]
            changes = [{"@type": "updateColumnNullability", "fieldName": [name], "nullable": False} for name in names]
            changed = world.caller.put(f"{world.tables}/t", *changes)
            assert changed.status == 200, changed.body
        assert CANARY in world.names()

    def test_they_are_names_or_refused(self, world: World) -> None:
        said = {name: world.create(name) for name in hostile(world.schema)[::3]}
        usable = [name for name in hostile(world.schema) if name.isprintable() and name == name.strip()]
        assert {name for name, answer in said.items() if answer.status == 200} == {*said} & {*usable}
        assert {answer.status for answer in said.values()} == {200, 400}
        columns = [{"name": name, "type": "long"} for name in usable]
        keys = [{"indexType": "UNIQUE_KEY", "name": f"u{name}", "fieldNames": [[name]]} for name in usable]
        assert world.create("t", *columns, indexes=keys).status == 200
        shown = world.load("t")
        assert [column["name"] for column in shown["columns"]] == usable
        assert sorted(key["name"] for key in shown["indexes"]) == sorted(f"u{name}" for name in usable)
        for name in {*hostile(world.schema)} - {*usable}:
            assert world.create("u", {"name": name, "type": "long"}).status == 400
        assert CANARY in world.names()

    def test_types_and_numbers_are_no_place_for_them(self, world: World) -> None:
        texts = [*hostile(world.schema), "int, b int", "int) --", "int NOT NULL", "int DEFAULT 1", "enum('a'", "[]",
                 "int\0", "varchar(1); x", "int COLLATE x", "character varying(1)) AS SELECT 1 --", "nothing",
                 "int /* x */", "enum('\\')', 'x')", "numeric(1e3)", "int GENERATED ALWAYS AS (1) STORED"]  # fmt: skip
        for text in texts:
            answer = world.create("t", {"name": "c", "type": {"type": "external", "catalogString": text}})
            assert answer.status == 400, (text, answer.body)
            default = {"type": "literal", "dataType": "long", "value": text}
            assert world.create("t", {"name": "c", "type": "long", "defaultValue": default}).status == 400, text
        assert world.names() == [CANARY]

    def test_what_is_too_much_is_refused(self, world: World) -> None:
        said = world.create("wide", *({"name": f"c{number}", "type": "long"} for number in range(2_000)))
        assert (said.status, "at most 1600" in said.message) == (413, True)
        is_long = world.create("long", comment="x" * 65_536).status
        assert is_long == (200 if world.kind == "jdbc-postgresql" else 400)
        assert world.create("nul", comment="a\0b").status == 400
        assert world.create("nul", {"name": "c", "type": "long", "comment": "a\0b"}).status == 400
        assert world.names() == [CANARY, *(["long"] if is_long == 200 else [])]


@each("wrong", ["password", "port"])
def test_a_connection_that_cannot_be_made_is_explained(world: World, listening: Listening, wrong: str) -> None:
    given = {"jdbc-user": "CrewOf77Canaries", "jdbc-password": SUNG}
    if wrong == "port":
        port = world.properties["jdbc-url"].rpartition(":")[2].partition("/")[0]
        given["jdbc-url"] = world.properties["jdbc-url"].replace(port, str(free_port()))
    asked = {"name": "trial", "type": "relational", "provider": world.kind, "properties": world.properties | given}
    refused = world.ask("POST", f"/api/{CATALOGS}/testConnection", asked)
    assert refused["code"] == 1007 and "127.0.0.1" in refused["message"]
    assert ("refused jdbc-user" in refused["message"]) is (wrong == "password")
    heard = [("reply", str(refused)), *listening.heard, *dump()]
    own = world.properties["jdbc-password"]
    watched = [SUNG, own] if len(own) > 5 else [SUNG]
    assert leaks(heard, [Canary("jdbc-password", word, word) for word in watched]) == []


def test_partitions_and_the_iceberg_wire_are_refused(world: World) -> None:
    assert world.caller.get(f"{world.tables}/{CANARY}/partitions").error[:2] == (405, 1006)
    layout = [{"strategy": "identity", "fieldName": ["id"]}]
    assert world.create("laid", partitioning=layout).error[:2] == (405, 1006)
    path = f"/iceberg/demo/v1/sales/namespaces/{world.schema}/tables"
    assert world.ask("GET", path)["identifiers"] == []
    assert world.ask("GET", f"{path}/{CANARY}")["error"]["type"] == "NoSuchTableException"
