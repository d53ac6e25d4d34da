"""Tables on the native wire: create, load, list, drop; and the partitions that Iceberg tables do not have."""

from pathlib import Path
from typing import Any

import pytest

from catalogs.models import Table
from metalake.kinds import Kind
from tests.catalogs import native
from tests.catalogs.callers import Caller, segment
from tests.demo import give

pytestmark = pytest.mark.django_db

C = "metalakes/demo/catalogs/lake"
T = f"{C}/schemas/A%3AB/tables"
NONE = {"strategy": "none", "number": 0, "funcArgs": []}


@pytest.fixture(autouse=True)
def schema(admin: Caller) -> None:
    admin.post(f"{C}/schemas", {"name": "A:B"})


def small(name: str = "t", **changes: Any) -> dict[str, Any]:
    return {"name": name, "columns": [{"name": "id", "type": "long"}, {"name": "day", "type": "date"}], **changes}


def test_create_and_load(admin: Caller) -> None:
    made = admin.post(T, native.table(comment="sold", properties={"team": "data"}))["table"]
    assert (made["name"], made["comment"]) == ("orders", "sold")
    assert [column["name"] for column in made["columns"]] == [column["name"] for column in native.columns()]
    assert made["columns"][0] == {
        "name": "id", "type": "long", "nullable": False, "autoIncrement": False, "comment": "who",
    }  # fmt: skip
    assert made["partitioning"] == made["sortOrders"] == made["indexes"] == []
    assert made["distribution"] == NONE
    assert made["properties"] == {"team": "data"}, "as it was sent"
    assert set(made["audit"]) == {"creator", "createTime"}
    assert made["audit"]["creator"] == "admin"
    shown = admin.get(f"{T}/orders")["table"]
    assert shown["properties"]["team"] == "data"
    assert shown["properties"]["format-version"] == "2"
    assert shown["properties"]["location"].startswith("file://")
    assert admin.get(f"{T}/orders/")["table"] == shown == made | {"properties": shown["properties"]}


def test_partitioning_and_order_come_back(admin: Caller) -> None:
    partitioning = [
        {"strategy": "month", "fieldName": ["day"]},
        {"strategy": "bucket", "numBuckets": 4, "fieldNames": [["id"]]},
    ]
    order = [{"sortTerm": native.field("id"), "direction": "desc", "nullOrdering": "nulls_first"}]
    made = admin.post(T, small(partitioning=partitioning, sortOrders=order))["table"]
    assert made["partitioning"] == partitioning
    assert made["sortOrders"] == order
    assert made["distribution"]["strategy"] == "range"
    shown = admin.get(f"{T}/t")["table"]
    assert shown == made | {"properties": shown["properties"]}


def test_nulls_as_the_client_sends_them(admin: Caller) -> None:
    body = small(comment=None, properties=None, partitioning=[], sortOrders=[], indexes=[], distribution=NONE)
    assert admin.post(T, body)["table"]["comment"] is None


def test_the_location_can_be_chosen_below_the_catalogs(admin: Caller) -> None:
    warehouse = admin.get(C)["catalog"]["properties"]["warehouse"]
    made = admin.post(T, small(properties={"location": f"{warehouse}/mine/t"}))["table"]
    assert made["properties"] == {"location": f"{warehouse}/mine/t"}
    assert admin.get(f"{T}/t")["table"]["properties"]["location"] == f"{warehouse}/mine/t"
    for location in (f"{warehouse}/mine/t", f"{warehouse}/mine/t/inside", "file:///etc/t", f"{warehouse}/../x"):
        assert admin.post(T, small("u", properties={"location": location})).error[:2] == (400, 1001), location
    assert names(admin) == ["t"]


def names(caller: Caller, path: str = T) -> list[str]:
    found = caller.get(path)["identifiers"]
    assert all(item["namespace"] == ["demo", "lake", "A:B"] for item in found)
    return [item["name"] for item in found]


def test_list(admin: Caller) -> None:
    for name in ("b", "a", "C"):
        admin.post(T, small(name))
    assert names(admin) == ["C", "a", "b"]
    assert admin.get(f"{C}/schemas/A/tables")["identifiers"] == []
    assert admin.get(f"{C}/schemas/gone/tables").error == (404, 1003, "NoSuchSchemaException")


def test_names_are_unique(admin: Caller) -> None:
    admin.post(T, small())
    assert admin.post(T, small()).error == (409, 1004, "TableAlreadyExistsException")


@pytest.mark.store
@pytest.mark.parametrize("name", ["a.b", "a b", "Größe", "a/b", "a%b", "a%2Fb", "A:B", "\U0001f409"])
def test_every_name_is_kept(admin: Caller, name: str) -> None:
    assert admin.post(T, small(name))["table"]["name"] == name
    assert admin.get(f"{T}/{segment(name)}")["table"]["name"] == name
    assert names(admin) == [name]
    assert admin.delete(f"{T}/{segment(name)}")["dropped"] is True


@pytest.mark.store
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"columns": []}, (400, 1001)),
        ({"columns": None}, (400, 1001)),
        ({"columns": [{"name": "a", "type": "varchar(3)"}]}, (405, 1006)),
        ({"columns": [{"name": "a", "type": "long"}, {"name": "a", "type": "long"}]}, (400, 1001)),
        ({"columns": [{"name": "a", "type": "long", "autoIncrement": True}]}, (405, 1006)),
        ({"indexes": [{"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["id"]]}]}, (405, 1006)),
        ({"partitioning": [{"strategy": "day", "fieldName": ["gone"]}]}, (400, 1001)),
        ({"distribution": {"strategy": "even", "number": 3, "funcArgs": []}}, (405, 1006)),
        ({"properties": {"format-version": "9"}}, (400, 1001)),
        ({"properties": {"write.py-location-provider.impl": "os.path"}}, (400, 1001)),
        ({"properties": {"s3.access-key-id": "x"}}, (400, 1001)),
        ({"properties": {"write.metadata.path": "file:///etc"}}, (400, 1001)),
        ({"name": ".."}, (400, 1001)),
        ({"name": "a\u0001"}, (400, 1001)),
        ({"name": "x" * 256}, (400, 1001)),
    ],
)
def test_what_cannot_be_created(admin: Caller, changes: dict[str, Any], refusal: tuple[int, int]) -> None:
    assert admin.post(T, small(**changes)).error[:2] == refusal
    assert not Table.objects.exists()
    warehouse = admin.get(C)["catalog"]["properties"]["warehouse"]
    assert not list(Path(warehouse.removeprefix("file://")).rglob("*.json"))


def test_create_needs_a_schema_that_is_seen(admin: Caller, mia: Caller) -> None:
    assert admin.post(f"{C}/schemas/gone/tables", small()).error == (404, 1003, "NoSuchSchemaException")
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    hidden, missing = mia.post(T, small()), mia.post(f"{C}/schemas/X%3AY/tables", small())
    assert hidden.error == missing.error == (404, 1003, "NoSuchSchemaException")
    give("mia", Kind.SCHEMA, "lake.A:B", "use_schema")
    assert mia.post(T, small()).error[:2] == (403, 1008)
    give("mia", Kind.SCHEMA, "lake.A", "create_table")
    assert mia.post(T, small())["table"]["audit"]["creator"] == "mia"
    assert names(mia) == ["t"]


def test_rights(admin: Caller, mia: Caller) -> None:
    admin.post(T, small())
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    assert names(mia) == []
    hidden, missing = mia.get(f"{T}/t"), mia.get(f"{T}/u")
    assert hidden.error == missing.error == (404, 1003, "NoSuchTableException")
    assert hidden.message.replace(".t ", ".u ") == missing.message
    assert mia.delete(f"{T}/t").body == {"code": 0, "dropped": False}
    give("mia", Kind.TABLE, "lake.A:B.t", "select_table")
    assert names(mia) == ["t"]
    assert mia.get(f"{T}/t")["table"]["name"] == "t"
    assert mia.delete(f"{T}/t").error[:2] == (403, 1008)


def test_asked_privileges_must_all_be_held(admin: Caller, mia: Caller) -> None:
    admin.post(T, small())
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
    assert mia.get(f"{T}/t?privileges=SELECT_TABLE")["table"]["name"] == "t"
    assert mia.get(f"{T}/t?privileges=select_table,").status == 200
    assert mia.get(f"{T}/t?privileges=MODIFY_TABLE,SELECT_TABLE").error[:2] == (403, 1008)
    assert mia.get(f"{T}/t?privileges=FLY").error == (400, 1001, "IllegalPrivilegeException")
    assert admin.get(f"{T}/t?privileges=MODIFY_TABLE,SELECT_TABLE").status == 200
    assert mia.get(f"{T}/u?privileges=SELECT_TABLE").error == (404, 1003, "NoSuchTableException")
    give("mia", Kind.TABLE, "lake.A:B.t", "modify_table")
    assert mia.get(f"{T}/t?privileges=MODIFY_TABLE,SELECT_TABLE").status == 200
    give("mia", Kind.METALAKE, "demo", "deny select_table")
    assert mia.get(f"{T}/t?privileges=SELECT_TABLE").error[:2] == (403, 1008)


def test_drop(admin: Caller) -> None:
    admin.post(T, small())
    assert admin.delete(f"{T}/t?purge=false").body == {"code": 0, "dropped": True}
    assert admin.delete(f"{T}/t").body == {"code": 0, "dropped": False}
    assert admin.delete(f"{C}/schemas/gone/tables/t").error == (404, 1003, "NoSuchSchemaException")
    assert admin.delete("metalakes/demo/catalogs/gone/schemas/A/tables/t").error[:2] == (404, 1003)
    admin.post(T, small())
    assert admin.delete(f"{T}/t?purge=true").body == {"code": 0, "dropped": True}
    assert names(admin) == []


def test_iceberg_tables_have_no_partitions(admin: Caller) -> None:
    admin.post(T, small())
    refused = (405, 1006, "UnsupportedOperationException")
    value = {"type": "literal", "dataType": "integer", "value": "1"}
    partition = {"type": "identity", "fieldNames": [["id"]], "values": [value]}
    for method, path in [
        ("GET", "partitions"),
        ("GET", "partitions?details=true"),
        ("POST", "partitions"),
        ("GET", "partitions/p"),
        ("DELETE", "partitions/p"),
    ]:
        body = {"partitions": [partition]} if method == "POST" else None
        assert admin.send(method, f"{T}/t/{path}", body).error == refused
        assert admin.send(method, f"{T}/u/{path}", body).error == (404, 1003, "NoSuchTableException")
