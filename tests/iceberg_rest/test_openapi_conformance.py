"""Every response, good or bad, against the specification's own description of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from iceberg_rest.urls import ROUTES
from tests.iceberg_rest.test_commit import staged
from tests.iceberg_rest.world import COLUMNS, Answer, Caller, replacing, view_version
from tests.parts import reference

SPECIFICATION = "iceberg-rest-catalog-open-api.yaml"
SORT_FIELD = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
NAMESPACE, TABLE = "/v1/{prefix}/namespaces/{namespace}", "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
Check = Callable[[str, str, Answer], None]


@pytest.fixture(scope="module")
def specification() -> dict[str, Any]:
    parsed = yaml.safe_load(reference(SPECIFICATION).read_bytes())
    # Status codes are numbers in YAML and names in JSON.
    described = orjson.loads(orjson.dumps(parsed, option=orjson.OPT_NON_STR_KEYS))
    # The reference implementation writes null where a table of version 3 has no snapshot yet.
    described["components"]["schemas"]["TableMetadata"]["properties"]["current-snapshot-id"]["nullable"] = True
    _say_nullable_as_json_schema_does(described)
    return described


def _say_nullable_as_json_schema_does(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("nullable") is True and isinstance(node.get("type"), str):
            node["type"] = [node["type"], "null"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            _say_nullable_as_json_schema_does(child)


@pytest.fixture
def check(specification: dict[str, Any]) -> Check:
    """Fails unless the response is one that the specification has for this verb and path."""
    registry = Registry().with_resource("urn:wire", Resource.from_contents(specification, DRAFT202012))

    def check(verb: str, path: str, answer: Answer) -> None:
        responses = specification["paths"][path][verb.lower()]["responses"]
        status = str(answer.status)
        assert status in responses, f"{verb} {path} is answered with {status}; the specification has {set(responses)}"
        pointer = f"/paths/{path.replace('/', '~1')}/{verb.lower()}/responses/{status}"
        response = responses[status]
        if "$ref" in response:
            pointer = response["$ref"].removeprefix("#")
            response = specification["components"]["responses"][pointer.rpartition("/")[2]]
        if "content" not in response or verb == "HEAD":
            assert answer.content == b""
            return
        schema = {"$ref": f"urn:wire#{pointer}/content/application~1json/schema"}
        Draft202012Validator(schema, registry=registry).validate(answer.json)
        assert answer.status < 400 or answer.json["error"]["code"] == answer.status, "the envelope that clients read"

    return check


def test_every_route_is_in_the_specification(specification: dict[str, Any]) -> None:
    for route in ROUTES:
        assert route.method.lower() in specification["paths"][route.path]


def test_configuration(check: Check, owner: Caller, member: Caller) -> None:
    for caller, warehouse in ((owner, "lake"), (owner, ""), (owner, "none"), (member, "lake")):
        check("GET", "/v1/config", caller.get(f"/iceberg/demo/v1/config?warehouse={warehouse}"))
    check("GET", "/v1/config", owner.ask("GET", "/iceberg/demo/v1/config", HTTP_AUTHORIZATION=""))


def test_namespaces(check: Check, owner: Caller, reader: Caller) -> None:
    top = "/v1/{prefix}/namespaces"
    body: Any
    created = {"namespace": ["a", "b"], "properties": {"k": "v"}}
    for caller, body in ((owner, created), (owner, created), (owner, {}), (reader, {"namespace": ["c"]})):
        check("POST", top, caller.post("namespaces", body))
    for query in ("", "?parent=a", "?parent=x", "?pageToken=&pageSize=1", "?pageSize=0"):
        check("GET", top, owner.get(f"namespaces{query}"))
    for name in ("a", "a%1Fb", "x", "%00"):
        check("GET", NAMESPACE, owner.get(f"namespaces/{name}"))
        check("HEAD", NAMESPACE, owner.head(f"namespaces/{name}"))
    for body in ({"updates": {"k": "w"}, "removals": ["x"]}, {"updates": {"k": "w"}, "removals": ["k"]}, [], {}):
        check("POST", f"{NAMESPACE}/properties", owner.post("namespaces/a/properties", body))
    check("POST", f"{NAMESPACE}/properties", reader.post("namespaces/a/properties", {}))
    check("POST", f"{NAMESPACE}/properties", owner.post("namespaces/x/properties", {}))
    for name in ("a", "a%1Fb", "a%1Fb", "%00"):
        check("DELETE", NAMESPACE, owner.delete(f"namespaces/{name}"))
    check("DELETE", NAMESPACE, reader.delete("namespaces/a"))


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_tables(check: Check, owner: Caller, reader: Caller, version: str) -> None:
    owner.make_namespace("a")
    create = {
        "name": "t",
        "schema": COLUMNS,
        "partition-spec": {"fields": [{"name": "p", "transform": "bucket[4]", "source-id": 1}]},
        "write-order": {
            "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}]
        },
        "properties": {"format-version": version},
    }
    tables = f"{NAMESPACE}/tables"
    body: Any
    for caller, body in ((owner, create), (owner, create), (owner, {}), (reader, create)):
        check("POST", tables, caller.post("namespaces/a/tables", body))
    check("POST", tables, owner.post("namespaces/a/tables", {**create, "name": "u", "stage-create": True}))
    check("POST", tables, owner.post("namespaces/x/tables", create))
    for path in ("namespaces/a/tables", "namespaces/x/tables", "namespaces/a/tables?pageToken=&pageSize=1"):
        check("GET", tables, owner.get(path))

    set_property = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    conflict = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 9}], "updates": []}
    for caller, body in ((owner, set_property), (owner, conflict), (owner, []), (reader, set_property)):
        check("POST", TABLE, caller.post("namespaces/a/tables/t", body))
    check("POST", TABLE, owner.post("namespaces/a/tables/x", set_property))
    check("POST", TABLE, owner.post("namespaces/a/tables/u", staged(owner, "u")))
    for name in ("t", "t?snapshots=refs", "x", "t?snapshots=x"):
        check("GET", TABLE, owner.get(f"namespaces/a/tables/{name}"))
        check("HEAD", TABLE, owner.head(f"namespaces/a/tables/{name.partition('?')[0]}"))
    check("POST", f"{TABLE}/metrics", owner.post("namespaces/a/tables/t/metrics", {}))
    check("POST", f"{TABLE}/metrics", owner.post("namespaces/a/tables/x/metrics", {}))

    location = owner.get("namespaces/a/tables/u").json["metadata-location"]
    check("DELETE", TABLE, reader.delete("namespaces/a/tables/u"))
    check("DELETE", TABLE, owner.delete("namespaces/a/tables/u"))
    check("DELETE", TABLE, owner.delete("namespaces/a/tables/u"))
    register = {"name": "u", "metadata-location": location}
    for body in (register, register, {}):
        check("POST", f"{NAMESPACE}/register", owner.post("namespaces/a/register", body))
    check("POST", f"{NAMESPACE}/register", owner.post("namespaces/x/register", register))


def test_views(check: Check, owner: Caller, reader: Caller) -> None:
    owner.make_namespace("a")
    views, view = f"{NAMESPACE}/views", f"{NAMESPACE}/views/{{view}}"
    create = {"name": "v", "schema": COLUMNS, "view-version": view_version("spark", "trino"), "properties": {"k": "v"}}
    body: Any
    for caller, body in ((owner, create), (owner, create), (owner, {}), (reader, create)):
        check("POST", views, caller.post("namespaces/a/views", body))
    check("POST", views, owner.post("namespaces/x/views", create))
    for path in ("namespaces/a/views", "namespaces/x/views", "namespaces/a/views?pageToken=&pageSize=1"):
        check("GET", views, owner.get(path))
    other = replacing("spark", "trino", uuid="00000000-0000-4000-8000-000000000000")
    for caller, body in (
        (owner, replacing("spark", "trino", sql="SELECT 2")),
        (owner, other),
        (owner, []),
        (reader, {}),
    ):
        check("POST", view, caller.post("namespaces/a/views/v", body))
    check("POST", view, owner.post("namespaces/a/views/x", replacing()))
    for name in ("v", "x", "%00"):
        check("GET", view, owner.get(f"namespaces/a/views/{name}"))
        check("HEAD", view, owner.head(f"namespaces/a/views/{name}"))
    location = owner.get("namespaces/a/views/v").json["metadata-location"]
    for caller in (reader, owner, owner):
        check("DELETE", view, caller.delete("namespaces/a/views/v"))
    register = {"name": "v", "metadata-location": location}
    for body in (register, register, {}):
        check("POST", f"{NAMESPACE}/register-view", owner.post("namespaces/a/register-view", body))
    check("POST", f"{NAMESPACE}/register-view", owner.post("namespaces/x/register-view", register))
    source = {"namespace": ["a"], "name": "v"}
    for caller, target in ((reader, ["a", "u"]), (owner, ["a", "u"]), (owner, ["a", "u"]), (owner, ["x", "u"])):
        named = {"source": source, "destination": {"namespace": target[:-1], "name": target[-1]}}
        check("POST", "/v1/{prefix}/views/rename", caller.post("views/rename", named))
    check("POST", "/v1/{prefix}/views/rename", owner.post("views/rename", {}))


def test_renames(check: Check, owner: Caller, reader: Caller) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    path = "/v1/{prefix}/tables/rename"
    source = {"namespace": ["a"], "name": "t"}
    for caller, target in (
        (reader, ["a", "u"]),
        (owner, ["a", "t"]),
        (owner, ["x", "u"]),
        (owner, ["a", ""]),
        (owner, ["a", "u"]),
    ):
        destination = {"namespace": [target[0]], "name": target[1]}
        check("POST", path, caller.post("tables/rename", {"source": source, "destination": destination}))
