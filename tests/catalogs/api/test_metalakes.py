"""Metalakes on the native wire: create, load, list, alter, enable, drop."""

import re

import pytest

from tests.catalogs.callers import Caller, update

pytestmark = [pytest.mark.store, pytest.mark.django_db]

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


def test_create_and_load(admin: Caller) -> None:
    asked = {"name": "acme", "comment": "ours", "properties": {"team": "data"}}
    made = admin.post("metalakes", asked)["metalake"]
    assert {key: made[key] for key in ("name", "comment")} == {"name": "acme", "comment": "ours"}
    assert made["properties"] == {"team": "data"}, "as it was sent"
    assert set(made["audit"]) == {"creator", "createTime"}
    assert made["audit"]["creator"] == "admin"
    assert MOMENT.fullmatch(made["audit"]["createTime"])
    shown = made | {"properties": {"team": "data", "in-use": "true"}}
    assert admin.get("metalakes/acme")["metalake"] == shown
    assert admin.get("metalakes/acme/")["metalake"] == shown


def test_list_shows_the_callers_own(admin: Caller, mia: Caller, otto: Caller) -> None:
    admin.post("metalakes", {"name": "acme"})
    assert [item["name"] for item in admin.get("metalakes")["metalakes"]] == ["acme", "demo"]
    assert [item["name"] for item in mia.get("metalakes")["metalakes"]] == ["demo"]
    assert otto.get("metalakes")["metalakes"] == []


def test_null_and_absent_are_the_same(admin: Caller) -> None:
    made = admin.post("metalakes", {"name": "acme", "comment": None, "properties": None})["metalake"]
    assert made["comment"] is None
    assert made["properties"] == {}


def test_only_service_administrators_create(mia: Caller) -> None:
    assert mia.post("metalakes", {"name": "acme"}).error == (403, 1008, "ForbiddenException")


def test_names_are_unique(admin: Caller) -> None:
    assert admin.post("metalakes", {"name": "demo"}).error == (409, 1004, "MetalakeAlreadyExistsException")
    admin.post("metalakes", {"name": "acme"})
    renamed = admin.put("metalakes/acme", update("rename", newName="demo"))
    assert renamed.error == (409, 1004, "MetalakeAlreadyExistsException")


def test_hidden_is_answered_like_missing(admin: Caller, otto: Caller) -> None:
    hidden, missing = otto.get("metalakes/demo"), otto.get("metalakes/gone")
    assert hidden.error == missing.error == (404, 1003, "NoSuchMetalakeException")
    assert hidden.message.replace("demo", "gone") == missing.message


def test_alter_makes_every_change_in_order(admin: Caller) -> None:
    altered = admin.put(
        "metalakes/demo",
        update("rename", newName="demo2"),
        update("updateComment", newComment="new"),
        update("setProperty", property="a", value="1"),
        update("setProperty", property="b", value="2"),
        update("removeProperty", property="a"),
    )["metalake"]
    assert altered["name"] == "demo2"
    assert altered["comment"] == "new"
    assert altered["properties"] == {"b": "2", "in-use": "true"}
    assert altered["audit"]["lastModifier"] == "admin"
    assert MOMENT.fullmatch(altered["audit"]["lastModifiedTime"])
    assert admin.get("metalakes/demo").status == 404
    assert admin.put("metalakes/demo2", update("updateComment", newComment=None))["metalake"]["comment"] is None


def test_altering_nothing_changes_nothing(admin: Caller) -> None:
    before = admin.get("metalakes/demo")["metalake"]
    assert admin.put("metalakes/demo")["metalake"] == before
    assert admin.put("metalakes/demo", update("removeProperty", property="none"))["metalake"] == before


def test_only_the_owner_alters(mia: Caller) -> None:
    assert mia.put("metalakes/demo", update("updateComment", newComment="x")).error[:2] == (403, 1008)
    assert mia.patch("metalakes/demo", False).error[:2] == (403, 1008)
    assert mia.delete("metalakes/demo").error[:2] == (403, 1008)


def test_in_use_is_reserved(admin: Caller) -> None:
    assert admin.post("metalakes", {"name": "acme", "properties": {"in-use": "false"}}).error[:2] == (400, 1001)
    change = update("setProperty", property="in-use", value="false")
    assert admin.put("metalakes/demo", change).error[:2] == (400, 1001)
    assert admin.get("metalakes/demo")["metalake"]["properties"]["in-use"] == "true"


def test_secrets_are_masked(admin: Caller) -> None:
    made = admin.post("metalakes", {"name": "acme", "properties": {"db-password": "hunter2"}})["metalake"]
    assert made["properties"]["db-password"] == "******"


def test_disabled_answers_for_nothing_below(admin: Caller) -> None:
    assert admin.patch("metalakes/demo", False).body == {"code": 0}
    assert admin.get("metalakes/demo")["metalake"]["properties"]["in-use"] == "false"
    refused = (409, 1009, "MetalakeNotInUseException")
    for path in ("catalogs", "catalogs/lake", "catalogs/lake/schemas", "catalogs/lake/schemas/a/tables"):
        answer = admin.get(f"metalakes/demo/{path}")
        assert answer.error == refused or answer.status == 404, (path, answer)
    assert admin.get("metalakes/demo/catalogs").error == refused
    assert admin.patch("metalakes/demo", True).body == {"code": 0}
    assert admin.get("metalakes/demo/catalogs").status == 200


def test_drop_asks_for_a_disabled_and_empty_one(admin: Caller) -> None:
    assert admin.delete("metalakes/demo").error == (409, 1010, "MetalakeInUseException")
    admin.patch("metalakes/demo", False)
    assert admin.delete("metalakes/demo").error[:2] == (409, 1005)
    assert admin.delete("metalakes/demo?force=True").body == {"code": 0, "dropped": True}
    assert admin.delete("metalakes/demo?force=False").body == {"code": 0, "dropped": False}
    assert admin.get("metalakes/demo").status == 404


def test_dropping_a_hidden_one_is_dropping_a_missing_one(otto: Caller, admin: Caller) -> None:
    assert otto.delete("metalakes/demo?force=true").body == {"code": 0, "dropped": False}
    assert admin.get("metalakes/demo").status == 200
