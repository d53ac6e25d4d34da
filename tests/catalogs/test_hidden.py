"""What a caller cannot see answers on every path like what is not there: same status, same type, same sentence."""

from __future__ import annotations

from typing import Any

import pytest

from metalake.kinds import Kind
from tests.catalogs.callers import Answer, Caller, update
from tests.demo import give

pytestmark = pytest.mark.django_db

COLUMNS = [{"name": "id", "type": "long"}]
CATALOG = {"name": "x", "type": "relational", "provider": "lakehouse-iceberg"}
COMMENT = update("setProperty", property="a", value="1")


@pytest.fixture(autouse=True)
def filled(admin: Caller) -> None:
    lake = "metalakes/demo/catalogs/lake/schemas"
    admin.post(lake, {"name": "A:B"})
    admin.post(f"{lake}/A:B/tables", {"name": "t", "columns": COLUMNS})


def requests_below_metalake(metalake: str) -> list[tuple[str, str, Any]]:
    path = f"metalakes/{metalake}"
    return [
        ("GET", path, None),
        ("PUT", path, {"updates": [COMMENT]}),
        ("PATCH", path, {"inUse": False}),
        ("GET", f"{path}/catalogs", None),
        ("GET", f"{path}/catalogs?details=true", None),
        ("POST", f"{path}/catalogs", CATALOG),
        ("POST", f"{path}/catalogs/testConnection", CATALOG),
        *requests_below_catalog(f"{path}/catalogs", "lake"),
        *requests_below_catalog(f"{path}/catalogs", "none"),
    ]


def requests_below_catalog(above: str, catalog: str) -> list[tuple[str, str, Any]]:
    path = f"{above}/{catalog}"
    return [
        ("GET", path, None),
        ("PUT", path, {"updates": [COMMENT]}),
        ("PATCH", path, {"inUse": False}),
        ("DELETE", path, None),
        ("POST", f"{path}/testConnection", None),
        ("GET", f"{path}/schemas", None),
        ("GET", f"{path}/schemas?parentSchema=A", None),
        ("GET", f"{path}/schemas?parentSchema=A::B", None),
        ("POST", f"{path}/schemas", {"name": "C"}),
        *requests_below_schema(f"{path}/schemas", "A:B"),
        *requests_below_schema(f"{path}/schemas", "none"),
    ]


def requests_below_schema(above: str, schema: str) -> list[tuple[str, str, Any]]:
    path = f"{above}/{schema}"
    found: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("PUT", path, {"updates": [COMMENT]}),
        ("DELETE", path, None),
        ("GET", f"{path}/tables", None),
        ("POST", f"{path}/tables", {"name": "u", "columns": COLUMNS}),
        ("GET", f"{path}/views", None),
        ("GET", f"{path}/views/t", None),
    ]
    for table in ("t", "none"):
        at = f"{path}/tables/{table}"
        found += [
            ("GET", at, None),
            ("GET", f"{at}?privileges=select_table", None),
            ("PUT", at, {"updates": [COMMENT]}),
            ("PUT", at, {"updates": [update("rename", newName="v")]}),
            ("DELETE", at, None),
            ("DELETE", f"{at}?purge=true", None),
            ("GET", f"{at}/partitions", None),
            ("GET", f"{at}/lineage", None),
        ]
    return found


def answers(caller: Caller, asked: list[tuple[str, str, Any]]) -> list[Answer]:
    return [caller.send(method, path, body) for method, path, body in asked]


def assert_alike(caller: Caller, hidden: list[Any], missing: list[Any], name: str, gone: str) -> None:
    for request, one, other in zip(hidden, answers(caller, hidden), answers(caller, missing), strict=True):
        assert one.error == other.error, request
        assert str(one.body).replace(name, gone) == str(other.body).replace(name, gone), request


def test_metalakes(otto: Caller) -> None:
    assert_alike(otto, requests_below_metalake("demo"), requests_below_metalake("gone"), "demo", "gone")


def test_catalogs(mia: Caller) -> None:
    above = "metalakes/demo/catalogs"
    assert_alike(mia, requests_below_catalog(above, "lake"), requests_below_catalog(above, "gone"), "lake", "gone")


def test_schemas(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    above = "metalakes/demo/catalogs/lake/schemas"
    assert_alike(mia, requests_below_schema(above, "A:B"), requests_below_schema(above, "X:Y"), "A:B", "X:Y")


def test_tables(mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    path = "metalakes/demo/catalogs/lake/schemas/A:B"
    hidden = [request for request in requests_below_schema(path.rpartition("/")[0], "A:B") if "tables/t" in request[1]]
    missing = [(method, at.replace("tables/t", "tables/g"), body) for method, at, body in hidden]
    assert_alike(mia, hidden, missing, "A:B.t", "A:B.g")
