"""Names arrive as they were sent, on both wires through the server: percent signs, slashes, plus signs, separators."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
import pytest
from gravitino import GravitinoClient, NameIdentifier
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.iceberg_rest.world import COLUMNS
from tests.server.http.sockets import Line, admin, line, request
from tests.servers import MetalakeServer

NATIVE, ICEBERG = "/api/metalakes/demo/catalogs/lake/schemas", "/iceberg/demo/v1/lake/namespaces"
# Each as a path has it; all are different names.
SENT = {
    "%2F": "/",
    "%252F": "%2F",
    "%25252F": "%252F",
    "%2e%2e%2F": "../",
    "%251F": "%1F",
    "%2B": "+",
    "%252B": "%2B",
    "%20": " ",
    "%2520": "%20",
    "%C3%BC": "ü",
    "%25C3%25BC": "%C3%BC",
    "%E9%9B%AA": "雪",
    "%F0%9F%A6%86": "🦆",
    "%3F%23": "?#",
    "%26%3D%3B": "&=;",
    "%22%5C": '"\\',
}


def ask(client: Line, server: MetalakeServer, method: str, target: str, body: Any = None) -> Any:
    """What is answered, and its status; a body is sent as JSON."""
    content = b"" if body is None else orjson.dumps(body)
    told = (admin(server), "Content-Type: application/json")
    answer = client.ask(request(method, target, *told, body=content), method.encode())
    return answer.status, orjson.loads(answer.body) if answer.body else None


@pytest.fixture
def top(server: MetalakeServer) -> str:
    name = f"t{uuid4().hex[:10]}"
    with line(server) as client:
        assert ask(client, server, "POST", NATIVE, {"name": name})[0] == 200
    return name


def test_what_one_wire_writes_the_other_finds_under_the_same_path(server: MetalakeServer, top: str) -> None:
    column = {"name": "id", "type": "long"}
    with line(server) as client:
        for number, (sent, name) in enumerate(SENT.items()):
            sent, name = f"a{sent}b", f"a{name}b"
            native, iceberg = f"{NATIVE}/{top}/tables", f"{ICEBERG}/{top}/tables"
            if number % 2:
                made: dict[str, Any] = {"name": name, "columns": [column], "properties": {}}
                assert ask(client, server, "POST", native, made)[0] == 200, name
            else:
                assert ask(client, server, "POST", iceberg, {"name": name, "schema": COLUMNS})[0] == 200, name
            status, found = ask(client, server, "GET", f"{native}/{sent}")
            assert (status, found["table"]["name"]) == (200, name)
            assert ask(client, server, "GET", f"{iceberg}/{sent}")[0] == 200, name
            assert ask(client, server, "HEAD", f"{iceberg}/{sent}")[0] == 204, name
        listed = ask(client, server, "GET", f"{ICEBERG}/{top}/tables")[1]["identifiers"]
        assert {each["name"] for each in listed} == {f"a{name}b" for name in SENT.values()}
        for sent in SENT:
            assert ask(client, server, "DELETE", f"{NATIVE}/{top}/tables/a{sent}b")[0] == 200, sent
        assert ask(client, server, "GET", f"{ICEBERG}/{top}/tables")[1]["identifiers"] == []


def test_levels_of_a_namespace_are_divided_by_their_separator_alone(server: MetalakeServer, top: str) -> None:
    with line(server) as client:
        for sent, name in SENT.items():
            levels = [top, f"a{name}b"]
            assert ask(client, server, "POST", ICEBERG, {"namespace": levels})[0] == 200, levels
            for path in (f"{top}%1Fa{sent}b", f"{top}%1fa{sent}b"):
                assert ask(client, server, "GET", f"{ICEBERG}/{path}")[1]["namespace"] == levels
            status, found = ask(client, server, "GET", f"{NATIVE}/{top}%3Aa{sent}b")
            assert (status, found["schema"]["name"]) == (200, f"{top}:a{name}b")
            assert ask(client, server, "GET", f"{ICEBERG}/{top}%251Fa{sent}b")[0] == 404


def test_a_plus_means_what_its_wire_says(server: MetalakeServer, top: str) -> None:
    """Java's Iceberg client writes a space as plus; on the native wire a plus is one."""
    with line(server) as client:
        for name in ("x y", "p+q"):
            made: dict[str, Any] = {"name": name, "columns": [{"name": "id", "type": "long"}], "properties": {}}
            assert ask(client, server, "POST", f"{NATIVE}/{top}/tables", made)[0] == 200
        found = [ask(client, server, "GET", f"{NATIVE}/{top}/tables/{path}")[0] for path in ("p+q", "p%2Bq", "x+y")]
        assert found == [200, 200, 404]
        found = [ask(client, server, "GET", f"{ICEBERG}/{top}/tables/{path}")[0] for path in ("x+y", "x%20y", "p%2Bq")]
        assert found == [200, 200, 200]


def test_names_of_metalakes_and_catalogs(server: MetalakeServer) -> None:
    name = f"m{uuid4().hex[:8]}/ü=x"
    sent = quote(name, safe="")
    with line(server) as client:
        assert ask(client, server, "POST", "/api/metalakes", {"name": name})[0] == 200
        catalog = {"name": "c/d", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
        assert ask(client, server, "POST", f"/api/metalakes/{sent}/catalogs", catalog)[0] == 200
        status, found = ask(client, server, "GET", f"/api/metalakes/{sent}/catalogs/c%2Fd")
        assert (status, found["catalog"]["name"]) == (200, "c/d")
        assert ask(client, server, "GET", f"/api/metalakes/{sent}/catalogs/c%252Fd")[0] == 404
        status, found = ask(client, server, "GET", f"/iceberg/{sent}/v1/config?warehouse=c%2Fd")
        prefix = found["overrides"]["prefix"]
        assert ask(client, server, "GET", f"/iceberg/{sent}/v1/{prefix}/namespaces")[0] == 200


def test_bytes_that_a_client_did_not_encode_are_no_request(server: MetalakeServer) -> None:
    """RFC 9112, 3.2: a target is printable ASCII."""
    with line(server) as client:
        raw = request("GET", f"{NATIVE}/a", admin(server)).replace(b"/a ", b"/\xc3\xbc ", 1)
        assert client.ask(raw).status == 400


def test_real_clients_find_them(server: MetalakeServer, top: str) -> None:
    """PyIceberg and the native wire's own client, each what the other made."""
    login = {"username": "admin", "password": server.admin_password}
    uri = f"{server.url}/iceberg/demo"
    auth = {"type": "basic", "basic": login}
    iceberg = RestCatalog("lake", uri=uri, warehouse="lake", auth=auth)  # type: ignore[arg-type]
    credential = BasicAuthProvider("admin", server.admin_password)
    native = GravitinoClient(server.url, "demo", auth_data_provider=credential)
    try:
        catalog = native.load_catalog("lake")
        for name in SENT.values():
            levels = (top, f"a{name}b")
            iceberg.create_namespace(levels)
            assert iceberg.load_namespace_properties(levels)["location"]
            assert levels in iceberg.list_namespaces((top,))
            assert catalog.as_schemas().load_schema(":".join(levels)).name() == ":".join(levels)
            table = (*levels, f"t{name}x")
            iceberg.create_table(table, Schema(NestedField(1, "id", LongType())))
            assert iceberg.load_table(table).name() == table
            if "." not in name:  # which the native client takes for the end of a name
                found = catalog.as_table_catalog().load_table(NameIdentifier.of(":".join(levels), table[-1]))
                assert found.name() == table[-1]
    finally:
        native.close()
