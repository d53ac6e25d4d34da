"""What the native wire refuses of views, and odd input that it takes: nothing is changed by a refusal."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from metalake.kinds import Kind
from metalake.models import Securable
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql, update

pytestmark = [pytest.mark.store, pytest.mark.django_db]
VIEW = f"{VIEWS}/delays"
LONGEST = ["x" * 255, "é" * 127 + "x", "航" * 85]


@pytest.fixture(autouse=True)
def delays(flights: World, admin: Caller) -> None:
    assert admin.send("POST", VIEWS, body(properties={"team": "ops"})).status == 200


@each(
    "change, says",
    [
        (update("dropView"), "'dropView'"),
        (update("Rename", newName="other"), "'Rename'"),
        (update("updateSecurityMode", securityMode="INVOKER"), "'updateSecurityMode'"),
        ({"newName": "other"}, "updates[0]"),
        (update("rename"), "newName"),
        (update("rename", newName=""), "newName"),
        (update("rename", newName="a\nb"), "control characters"),
        (update("updateComment", newComment=7), "newComment"),
        (update("replaceView"), "representations"),
        (update("replaceView", representations=[]), "at least one"),
        (update("replaceView", representations=[sql("spark")], securityMode="OWNER"), "securityMode"),
        (update("addRepresentation", representation=sql("SPARK")), "update it instead"),
        (update("updateRepresentation", representation=sql("trino")), "it has spark"),
        ("rename", "updates[0]"),
    ],
)
def test_an_update_that_cannot_be_made_is_named(admin: Caller, change: Any, says: str) -> None:
    before = admin.get(VIEW).body
    wanted = [update("setProperty", property="tier", value="gold"), change]
    for updates in ([change], wanted):
        refused = admin.send("PUT", VIEW, {"updates": updates})
        assert refused.status == 400 and says.replace("[0]", f"[{len(updates) - 1}]") in refused.message, refused.body
    assert admin.get(VIEW).body == before


@pytest.mark.parametrize("updates", [[], None, {}, [update("updateComment", newComment="x")] * 2 + [None]])
def test_updates_that_are_no_list_of_updates_are_refused(admin: Caller, updates: Any) -> None:
    refused = admin.send("PUT", VIEW, {"updates": updates})
    assert refused.status == 400 and "updates" in refused.message
    assert admin.get(VIEW)["view"]["version"] == 1


def test_a_rename_onto_a_taken_name_is_refused(flights: World, admin: Caller) -> None:
    """Tables and views share their names, whichever schema the view is moved to."""
    assert admin.send("POST", "metalakes/demo/catalogs/flights/schemas", {"name": "jfk"}).status == 200
    for schema in ("nyc", "jfk"):
        home = SCHEMA.replace("nyc", schema)
        table = {"name": "carriers", "columns": [{"name": "id", "type": "long"}]}
        assert admin.send("POST", f"{home}/tables", table).status == 200
        assert admin.send("POST", f"{home}/views", body("late")).status == 200
        for name, kind in (("carriers", "Table"), ("late", "View")):
            moved = update("rename", newName=name, newSchemaName=schema)
            for updates in ([moved], [moved, update("updateComment", newComment="x")]):
                refused = admin.send("PUT", VIEW, {"updates": updates})
                assert refused.status == 409, refused.body
                assert f"to {schema}.{name}. {kind} already exists" in refused.message
    gone = admin.send("PUT", VIEW, {"updates": [update("rename", newName="delays", newSchemaName="lga")]})
    assert gone.status == 404 and "lga" in gone.message
    assert admin.get(VIEW)["view"]["version"] == 1


def test_a_version_that_is_not_there_is_named(admin: Caller) -> None:
    for method, path in (
        ("GET", f"{VIEW}/versions/2"),
        ("GET", f"{VIEW}/versions/1/compare/2"),
        ("GET", f"{VIEW}/versions/2/compare/1"),
        ("POST", f"{VIEW}/versions/2/rollback"),
    ):
        missing = admin.send(method, path)
        assert missing.status == 404 and "has no version 2" in missing.message, (path, missing.body)
    assert admin.send("POST", f"{VIEW}/versions/-1/rollback").status == 400
    assert admin.get(VIEW)["view"]["version"] == 1


@pytest.mark.parametrize("name", LONGEST, ids=["ascii", "latin", "han"])
def test_a_name_has_at_most_255_bytes(admin: Caller, name: str) -> None:
    assert admin.send("POST", VIEWS, body(name)).status == 200
    assert admin.get(f"{VIEWS}/{quote(name)}")["view"]["name"] == name
    assert sorted(each["name"] for each in admin.get(VIEWS)["identifiers"]) == sorted(["delays", name])
    for refused in (
        admin.send("POST", VIEWS, body(name + "x")),
        admin.send("PUT", VIEW, {"updates": [update("rename", newName=name + "x")]}),
    ):
        assert refused.status == 400 and "255 bytes, not 256" in refused.message
    assert admin.send("PUT", f"{VIEWS}/{quote(name)}", {"updates": [update("rename", newName="short")]}).status == 200


@pytest.mark.parametrize(
    ("name", "status"),
    [("", 400), (" x", 400), ("a\nb", 400), ("a\u0000b", 400), ("a\u202eb", 400), ("k" * 1025, 413)],
    ids=["empty", "space", "newline", "nul", "turned", "long"],
)
def test_a_hostile_name_of_a_property_is_refused(admin: Caller, name: str, status: int) -> None:
    made = admin.send("POST", VIEWS, body("other", properties={name: "x"}))
    changed = admin.send("PUT", VIEW, {"updates": [update("setProperty", property=name, value="x")]})
    assert (made.status, changed.status) == (status, status), (made.body, changed.body)
    assert admin.get(VIEW)["view"]["properties"] == {"team": "ops"}
    assert Securable.objects.filter(kind=Kind.VIEW).count() == 1


def test_odd_names_of_properties_are_stored_as_they_are(admin: Caller) -> None:
    odd = {"__proto__": "1", "';--": "2", "<b>": "3", "a.b=c": "4", "clé": "5", "%2F": "6"}
    assert admin.send("POST", VIEWS, body("odd", properties=odd)).status == 200
    assert admin.get(f"{VIEWS}/odd")["view"]["properties"] == odd
    refused = admin.send("POST", VIEWS, body("many", properties={f"k{number}": "" for number in range(1001)}))
    assert refused.status == 413 and "1001 properties" in refused.message


def test_a_view_may_have_a_thousand_columns(admin: Caller) -> None:
    columns = [{"name": f"column {number}", "type": "decimal(38,2)", "comment": "é"} for number in range(1000)]
    assert admin.send("POST", VIEWS, body("wide", columns=columns)).status == 200
    loaded = admin.get(f"{VIEWS}/wide")["view"]["columns"]
    assert [each["name"] for each in loaded] == [each["name"] for each in columns]
    again = admin.send("POST", VIEWS, body("twice", columns=[*columns, columns[500]]))
    assert again.status == 400 and "two of the name 'column 500'" in again.message


def test_views_that_read_each_other_are_stored_and_told(admin: Caller) -> None:
    """Metalake runs no SQL, and the one that was there first is not refused for what the other reads now."""
    query = "SELECT carrier, delay FROM {}"
    assert admin.send("POST", VIEWS, body("one", sql("spark", query.format("delays")))).status == 200
    cycle = update("updateRepresentation", representation=sql("spark", query.format("one")))
    assert admin.send("PUT", VIEW, {"updates": [cycle]}).status == 200
    for view, other in (("one", "delays"), ("delays", "one")):
        assert admin.get(f"{VIEWS}/{view}").status == 200
        (checked,) = admin.send("POST", f"{VIEWS}/{view}/check")["dialects"]
        assert [each["fullName"] for each in checked["reads"]] == [f"flights.nyc.{other}"]
    details = admin.get(f"{VIEWS}?details=true")["views"]
    assert [each["name"] for each in details] == ["delays", "one"]
