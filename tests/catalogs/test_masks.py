"""A mask that is sent back keeps what is there, on everything that is kept here."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Schema
from catalogs.secrets import MASK, require_values, sends_mask_back
from catalogs.services.alterations import resolve_masks
from catalogs.services.tables import load_iceberg_table
from formats.hive.alterations import altered as hive_altered
from formats.hive.tables import HiveTable
from formats.iceberg.alterations import updates_for
from formats.native.tables import KeepProperty, TableUpdatesRequest
from metalake.errors import Invalid
from metalake.lineage import Address
from metalake.models import Metalake
from tests.catalogs.callers import Caller

NOTHING_TO_KEEP = "stands for a secret that is already stored, but none is; send its value."
S = "metalakes/demo/catalogs/lake/schemas"
T = f"{S}/A/tables"
COLUMNS = [{"name": "id", "type": "long"}]
TABLE = f"{T}/t"


def change(key: str, value: str | None) -> dict[str, Any]:
    if value is None:
        return {"@type": "removeProperty", "property": key}
    return {"@type": "setProperty", "property": key, "value": value}


# The rule

HELD = {"password": "hunter2", "endpoint": "pg://u:hunter3@db/x", "team": "crew", "odd": MASK, "dial": "7"}


@pytest.mark.parametrize("key", ["password", "endpoint", "odd", "dial"])
def test_a_mask_keeps_what_is_shown_masked(key: str) -> None:
    assert sends_mask_back(key, MASK, HELD, {"dial": True})


@pytest.mark.parametrize("key", ["team", "absent", "absent-password", "dial"])
def test_a_mask_for_anything_else_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match=f"'{key}'.*send its value"):
        sends_mask_back(key, MASK, HELD)
    with pytest.raises(Invalid, match=f"'{key}'.*send its value"):
        require_values({"team": "crew", key: MASK})


@pytest.mark.parametrize("value", [None, "", "*****", "*******", f"{MASK} ", f"a{MASK}", "hunter4"])
def test_anything_else_is_a_value(value: str | None) -> None:
    assert not any(sends_mask_back(key, value, HELD) for key in (*HELD, "absent"))
    require_values({"password": value or ""})


def updates(*changes: dict[str, Any]) -> Any:
    return TableUpdatesRequest.model_validate({"updates": list(changes)}).updates


def test_what_is_kept_leaves_its_place_to_those_after_it() -> None:
    sent = updates(change("password", MASK), change("team", "ops"), change("endpoint", MASK))
    meant = resolve_masks(sent, lambda: HELD)
    assert [type(each) for each in meant] == [KeepProperty, type(sent[1]), KeepProperty]
    assert resolve_masks(sent[1:2], lambda: pytest.fail("asked for nothing")) == sent[1:2]


@pytest.mark.parametrize(
    "changes",
    [
        [("password", None), ("password", MASK)],
        [("endpoint", "pg://db/x"), ("endpoint", MASK)],
        [("team", MASK)],
    ],
)
def test_what_is_there_is_what_the_changes_before_left(changes: list[tuple[str, str | None]]) -> None:
    with pytest.raises(Invalid, match=NOTHING_TO_KEEP):
        resolve_masks(updates(*(change(*each) for each in changes)), lambda: HELD)
    set_before = updates(change("team", "pg://u:hunter3@db/x"), change("team", MASK))
    assert isinstance(resolve_masks(set_before, lambda: HELD)[1], KeepProperty)


def test_a_kept_property_is_no_change() -> None:
    hive_table = HiveTable(name="t", columns=(), location="s3://lake/t", parameters={"a": "1"})
    assert hive_altered(hive_table, [KeepProperty(property="location")]) == hive_table
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    metadata = {"format-version": 2, "last-column-id": 1, "current-schema-id": 0, "schemas": [schema]}
    metadata |= {"partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0}
    metadata |= {"sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0}
    assert updates_for([KeepProperty(property="location")], metadata) == ([], [], None)


# Metalakes, schemas, tables


@pytest.mark.store
def test_a_metalake_keeps_its_secrets(admin: Caller) -> None:
    admin.post("metalakes", {"name": "acme", "properties": {"db-password": "hunter2", "team": "crew"}})["metalake"]
    shown = admin.put("metalakes/acme", change("db-password", MASK), change("team", "ops"))["metalake"]["properties"]
    assert (shown["db-password"], shown["team"]) == (MASK, "ops")
    kept = {"db-password": "hunter2", "team": "ops"}
    assert Metalake.objects.get(name="acme").properties == kept
    for key in ("team", "absent", "absent-token"):
        refused = admin.put("metalakes/acme", change("region", "eu"), change(key, MASK))
        assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    gone = admin.put("metalakes/acme", change("db-password", None), change("db-password", MASK))
    assert gone.error[:2] == (400, 1001)
    assert Metalake.objects.get(name="acme").properties == kept
    refused = admin.post("metalakes", {"name": "other", "properties": {"db-password": MASK}})
    assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    assert not Metalake.objects.filter(name="other").exists()


@pytest.mark.store
def test_a_schema_keeps_its_secrets(admin: Caller) -> None:
    admin.post(S, {"name": "A", "properties": {"api-key": "hunter2", "note": "a******"}})["schema"]
    shown = admin.put(f"{S}/A", change("api-key", MASK), change("team", "ops"))["schema"]["properties"]
    assert shown == {"api-key": MASK, "note": "a******", "team": "ops"}
    kept = {"api-key": "hunter2", "note": "a******", "team": "ops"}
    assert Schema.objects.get(name="A").properties == kept
    for key in ("note", "absent", "absent-token"):
        refused = admin.put(f"{S}/A", change("region", "eu"), change(key, MASK))
        assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    assert Schema.objects.get(name="A").properties == kept
    refused = admin.post(S, {"name": "B", "properties": {"api-key": MASK}})
    assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    assert not Schema.objects.filter(name="B").exists()


@pytest.mark.store
def test_a_table_that_is_altered_natively_keeps_its_secrets(admin: Caller) -> None:
    admin.post(S, {"name": "A"})["schema"]
    admin.post(T, {"name": "t", "columns": COLUMNS, "properties": {"api-key": "hunter2"}})["table"]
    shown = admin.put(TABLE, change("api-key", MASK), change("team", "ops"))["table"]["properties"]
    assert (shown["api-key"], shown["team"]) == (MASK, "ops")
    assert in_metadata(admin) == {"api-key": "hunter2", "team": "ops"}
    for key in ("team", "absent", "absent-token"):
        refused = admin.put(TABLE, change("region", "eu"), change(key, MASK))
        assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    assert in_metadata(admin) == {"api-key": "hunter2", "team": "ops"}
    refused = admin.post(T, {"name": "u", "columns": COLUMNS, "properties": {"api-key": MASK}})
    assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message
    assert admin.get(f"{TABLE[:-1]}u").status == 404


def in_metadata(caller: Caller) -> dict[str, str]:
    record = load_iceberg_table(
        actor_of(User.objects.get(username=caller.name)), Address(metalake="demo", catalog="lake", schema="A", leaf="t")
    )
    held = orjson.loads(record.content)["properties"]
    return {key: held[key] for key in ("api-key", "team", "region", "absent", "absent-token") if key in held}
