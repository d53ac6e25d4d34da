"""Altering a table on the native wire: one commit of all changes, or a rename alone."""

from typing import Any

import pytest

from catalogs.models import Table
from metalake.kinds import Kind
from tests.catalogs.callers import Caller, update
from tests.demo import give

pytestmark = pytest.mark.django_db

C = "metalakes/demo/catalogs/lake"
T = f"{C}/schemas/A/tables"


@pytest.fixture(autouse=True)
def table(admin: Caller) -> dict[str, Any]:
    for name in ("A", "B"):
        admin.post(f"{C}/schemas", {"name": name})
    columns = [{"name": "id", "type": "integer", "nullable": False}, {"name": "name", "type": "string"}]
    admin.post(T, {"name": "t", "columns": columns, "properties": {"a": "1"}})["table"]
    return admin.get(f"{T}/t")["table"]


def location() -> str:
    return Table.objects.get().metadata_location


def test_all_changes_are_one_commit(admin: Caller) -> None:
    before = location()
    altered = admin.put(
        f"{T}/t",
        update("addColumn", fieldName=["day"], type="date", comment="when", position={"after": "id"}),
        update("updateColumnType", fieldName=["id"], newType="long"),
        update("renameColumn", oldFieldName=["name"], newFieldName="label"),
        update("updateColumnComment", fieldName=["label"], newComment="what"),
        update("updateComment", newComment="things"),
        update("setProperty", property="b", value="2"),
        update("removeProperty", property="a"),
    )["table"]
    assert [(column["name"], column["type"], column.get("comment")) for column in altered["columns"]] == [
        ("id", "long", None),
        ("day", "date", "when"),
        ("label", "string", "what"),
    ]
    assert altered["comment"] == "things"
    assert altered["properties"]["b"] == "2"
    assert "a" not in altered["properties"]
    assert altered["audit"]["lastModifier"] == "admin"
    assert location() != before
    assert admin.get(f"{T}/t")["table"] == altered


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (update("deleteColumn", fieldName=["gone"]), (400, 1001)),
        (update("updateColumnType", fieldName=["id"], newType="string"), (400, 1001)),
        (update("updateColumnAutoIncrement", fieldName=["id"], autoIncrement=True), (405, 1006)),
        (update("addTableIndex", index={"indexType": "PRIMARY_KEY", "name": "p", "fieldNames": [["id"]]}), (405, 1006)),
        (update("setProperty", property="s3.endpoint", value="http://x"), (400, 1001)),
        (update("setProperty", property="location", value="file:///etc"), (400, 1001)),
        (update("rename", newName="u"), (400, 1001)),
        (update("fly", newName="u"), (400, 1001)),
    ],
)
def test_it_is_all_or_nothing(
    admin: Caller, table: dict[str, Any], wrong: dict[str, Any], refusal: tuple[int, int]
) -> None:
    before = location()
    good = update("setProperty", property="b", value="2")
    assert admin.put(f"{T}/t", good, wrong).error[:2] == refusal
    assert admin.get(f"{T}/t")["table"] == table
    assert location() == before


def test_altering_nothing_changes_nothing(admin: Caller, table: dict[str, Any], mia: Caller) -> None:
    before = location()
    assert admin.put(f"{T}/t")["table"] == table
    assert admin.put(f"{T}/t", update("setProperty", property="a", value="1"))["table"] == table
    assert location() == before
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
    assert mia.put(f"{T}/t").error[:2] == (403, 1008)


def test_rename(admin: Caller, table: dict[str, Any]) -> None:
    renamed = admin.put(f"{T}/t", update("rename", newName="u"))["table"]
    assert renamed["name"] == "u"
    assert renamed["properties"]["location"] == table["properties"]["location"]
    assert admin.get(f"{T}/t").status == 404
    assert admin.put(f"{T}/u", update("rename", newName="u", newSchemaName="B"))["table"]["name"] == "u"
    assert admin.get(f"{C}/schemas/B/tables/u")["table"]["name"] == "u"
    assert admin.get(f"{T}/u").status == 404


def test_rename_to_a_name_that_is_taken_or_wrong(admin: Caller) -> None:
    admin.post(T, {"name": "u", "columns": [{"name": "id", "type": "long"}]})
    assert admin.put(f"{T}/t", update("rename", newName="u")).error == (409, 1004, "TableAlreadyExistsException")
    assert admin.put(f"{T}/t", update("rename", newName="..")).error[:2] == (400, 1001)
    assert admin.put(f"{T}/t", update("rename", newName="v", newSchemaName="gone")).error[:2] == (404, 1003)
    assert admin.get(f"{T}/t").status == 200


def test_rights(admin: Caller, mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "modify_table")
    assert mia.put(f"{T}/t", update("updateComment", newComment="x"))["table"]["audit"]["lastModifier"] == "mia"
    assert mia.put(f"{T}/t", update("rename", newName="u"))["table"]["name"] == "u"
    moved = mia.put(f"{T}/u", update("rename", newName="u", newSchemaName="B"))
    assert moved.error[:2] == (403, 1008), "moving is the owner's"
    assert mia.put(f"{T}/gone", update("updateComment", newComment="x")).error[:2] == (404, 1003)
