"""What is hidden takes what a miss takes: the same statements, on both wires, for every kind, depth and act."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from metalake.kinds import Kind
from tests.catalogs.callers import Caller, update
from tests.catalogs.test_hidden import COLUMNS, COMMENT, requests_below_catalog, requests_below_metalake
from tests.demo import give
from tests.iceberg_rest import world
from tests.iceberg_rest.test_errors import NEW_VIEW, REQUESTS

pytestmark = [pytest.mark.store(once=True), pytest.mark.django_db]

LAKE = "metalakes/demo/catalogs/lake/schemas"
GRANT = {"privileges": [{"name": "use_schema", "condition": "allow"}]}

Ask = Callable[[], Any]


@contextmanager
def statements() -> Iterator[list[str]]:
    """The texts of all statements, without what is sent with them and how often a list's place is held in them."""
    told: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        told.append(re.sub(r"\((?:%s(?:, )?)+\)|\b\d+\b|(?<=SAVEPOINT )\S+", "?", sql))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield told


def taken(ask: Ask) -> list[str]:
    ask()  # what a process remembers is remembered by now
    with statements() as told:
        ask()
    return told


def assert_alike(hidden: Ask, missing: Ask, about: Any) -> None:
    one, other = taken(hidden), taken(missing)
    assert one == other, f"{about}\n{len(one)}: {one}\n{len(other)}: {other}"
    assert one, about


@pytest.fixture(autouse=True)
def filled(admin: Caller) -> None:
    for name in ("A:B:C", "open"):
        admin.post(LAKE, {"name": name})
    for schema in ("A:B:C", "open"):
        admin.post(f"{LAKE}/{schema}/tables", {"name": "t", "columns": COLUMNS})


def natively(caller: Caller, hidden: str, missing: str, asked: list[tuple[str, str, Any]]) -> None:
    for method, path, body in asked:
        other = re.sub(rf"(?<!\w){re.escape(hidden)}", missing, path)
        assert other != path
        assert_alike(
            lambda method=method, path=path, body=body: caller.send(method, path, body),  # type: ignore[misc]
            lambda method=method, path=other, body=body: caller.send(method, path, body),  # type: ignore[misc]
            (method, path),
        )


def test_a_metalake(otto: Caller) -> None:
    natively(otto, "demo", "gone", requests_below_metalake("demo")[::4])


def test_a_catalog(mia: Caller) -> None:
    natively(mia, "lake", "gone", requests_below_catalog("metalakes/demo/catalogs", "lake")[::2])


def below_a_schema(path: str) -> list[tuple[str, str, Any]]:
    table = f"{path}/tables/t"
    return [
        ("GET", path, None),
        ("PUT", path, {"updates": [COMMENT]}),
        ("PUT", path, None),
        ("DELETE", path, None),
        ("GET", "{}?parentSchema={}".format(*path.rsplit("/", 1)), None),
        ("GET", f"{path}/tables", None),
        ("POST", f"{path}/tables", {"name": "u", "columns": COLUMNS}),
        *about_a_table(table),
        ("GET", f"{path}/tables/none", None),
    ]


def about_a_table(table: str) -> list[tuple[str, str, Any]]:
    return [
        ("GET", table, None),
        ("GET", f"{table}?privileges=select_table", None),
        ("PUT", table, {"updates": [COMMENT]}),
        ("PUT", table, {"updates": [update("rename", newName="v")]}),
        ("DELETE", table, None),
        ("DELETE", f"{table}?purge=true", None),
        ("GET", f"{table}/partitions", None),
        ("GET", f"{table}/lineage", None),
    ]


@pytest.mark.parametrize("schema", ["A", "A:B", "A:B:C"])
@pytest.mark.parametrize("reach", ["catalog", "elsewhere", "denied"])
def test_a_schema_at_any_depth(mia: Caller, schema: str, reach: str) -> None:
    reached(reach, schema)
    gone = schema.replace("A", "X")
    natively(mia, schema, gone, below_a_schema(f"{LAKE}/{schema}"))


def reached(reach: str, schema: str) -> None:
    """The catalog alone, another schema too, or every schema but this one."""
    if reach == "denied":
        give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
        give("mia", Kind.SCHEMA, f"lake.{schema}", "deny use_schema")
        return
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    if reach == "elsewhere":
        give("mia", Kind.SCHEMA, "lake.open", "use_schema", "select_table")


@pytest.mark.parametrize("schema", ["open", "A:B:C"])
def test_a_table(mia: Caller, schema: str) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    natively(mia, "tables/t", "tables/g", about_a_table(f"{LAKE}/{schema}/tables/t"))


def test_a_table_on_the_way_to_what_is_seen(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.A:B:C", "use_schema")
    natively(mia, "tables/t", "tables/g", about_a_table(f"{LAKE}/A:B:C/tables/t"))


def rights(kind: str, about: str) -> list[tuple[str, str, Any]]:
    """What may be asked about rights on an object, by paths below its metalake's."""
    return [
        ("GET", f"objects/{kind}/{about}/roles", None),
        ("GET", f"owners/{kind}/{about}", None),
        ("PUT", f"owners/{kind}/{about}", {"name": "mia", "type": "USER"}),
        ("PUT", f"permissions/roles/x/{kind}/{about}/grant", GRANT),
        ("PUT", f"permissions/roles/x/{kind}/{about}/revoke", GRANT),
        ("GET", f"access/objects/{kind}/{about}", None),
        ("GET", f"access/objects/{kind}/{about}/ways", None),
        ("GET", f"access/objects/{kind}/{about}/moments", None),
        ("GET", f"access/objects/{kind}/{about}/compared?from=2026-01-01", None),
        ("GET", f"access/explain?type={kind}&fullName={about}&operation=load_{kind}", None),
        ("GET", f"access/explain?type={kind}&fullName={about}&operation=load_{kind}&user=admin", None),
        ("GET", f"access/users/mia?type={kind}&fullName={about}", None),
        ("GET", f"access/export?type={kind}&fullName={about}", None),
    ]


@pytest.mark.parametrize("name", ["lake", "lake.A", "lake.A:B", "lake.A:B:C.t"])
def test_what_is_asked_about_rights(mia: Caller, name: str) -> None:
    if "." in name:
        give("mia", Kind.CATALOG, "lake", "use_catalog")
    kind = ("catalog", "schema", "table")[name.count(".")]
    about = quote(name, safe="")
    gone = quote(name.replace("lake.A", "lake.X") if "." in name else "gone", safe="")
    natively(mia, about, gone, [(method, f"metalakes/demo/{path}", body) for method, path, body in rights(kind, about)])


@pytest.mark.parametrize("kind", ["users", "groups", "roles"])
def test_people_and_roles(mia: Caller, admin: Caller, kind: str) -> None:
    admin.post(f"metalakes/demo/{kind}", {"name": "there"})
    asked = [(method, f"metalakes/demo/{kind}/there", None) for method in ("GET", "DELETE")]
    natively(mia, "there", "other", asked)


# The Iceberg wire


@pytest.mark.parametrize("reach", ["", "catalog", "elsewhere", "denied"])
def test_on_the_iceberg_wire(mia: Caller, admin: Caller, reach: str) -> None:
    admin.post(LAKE, {"name": "hidden"})
    admin.post(f"{LAKE}/hidden/tables", {"name": "t", "columns": COLUMNS})
    assert world.Caller("admin").post("namespaces/hidden/views", NEW_VIEW).status == 200
    if reach:
        reached(reach, "hidden")
    for request in REQUESTS:
        assert_alike(lambda r=request: iceberg(r, "hidden"), lambda r=request: iceberg(r, "absent"), request)  # type: ignore[misc]


def iceberg(request: tuple[str, str, Any], namespace: str) -> None:
    verb, path, body = request
    answer = world.Caller("mia").ask(verb, path.format(ns=namespace), _about(body, namespace))
    assert answer.status == 404, (request, answer.content)


def _about(body: Any, namespace: str) -> Any:
    if isinstance(body, dict):
        return {key: _about(value, namespace) for key, value in body.items()}
    if isinstance(body, list):
        return [_about(item, namespace) for item in body]
    return namespace if body == "{ns}" else body


def test_a_flat_catalog_tells_no_hidden_parent_from_a_missing_one(mia: Caller, admin: Caller) -> None:
    flat = {"name": "flat", "type": "relational", "provider": "lakehouse-iceberg"}
    assert admin.post("metalakes/demo/catalogs", flat | {"properties": {"nested-namespaces": "false"}}).status == 200
    admin.post("metalakes/demo/catalogs/flat/schemas", {"name": "there"})
    give("mia", Kind.CATALOG, "flat", "use_catalog")
    path = "metalakes/demo/catalogs/flat/schemas?parentSchema="
    hidden, missing = mia.get(f"{path}there"), mia.get(f"{path}gone")
    assert hidden.body == missing.body
    natively(mia, "there", "gone", [("GET", f"{path}there", None)])
