"""What an engine says of views: delivered for a version, shown to who may load the view, and told apart from before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from authz.callers.identity import issue_token
from authz.models import AuditEntry, User
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql, update
from views_mgmt.models import ViewFinding, ViewMeta
from views_mgmt.services import findings
from views_mgmt.services.dependencies import read_new_versions

pytestmark = [pytest.mark.store, pytest.mark.django_db]
BULK = "bulk/metalakes/demo/views"
BROKEN = "metalakes/demo/views/broken"
FINE: dict[str, Any] = {"dialect": "spark", "problems": [], "differences": [], "reads": [], "columns": []}
READS = {"catalog": "flights", "schemaName": "nyc", "name": "flights"}
LOST = FINE | {"problems": [{"text": "There is no column `delay`.", "line": 1, "column": 8}], "reads": [READS]}


@pytest.fixture(autouse=True)
def views(flights: World, admin: Caller) -> dict[str, int]:
    for name in ("delays", "late", "other"):
        assert admin.send("POST", VIEWS, body(name)).status == 200
    return dict(ViewMeta.objects.values_list("view_name", "view_id"))


def finding(view: int, *dialects: dict[str, Any], version: int = 1) -> dict[str, Any]:
    return {"view": view, "version": version, "dialects": list(dialects)}


def deliver(caller: Caller, *of: dict[str, Any]) -> dict[str, Any]:
    answer = caller.send("POST", f"{BULK}/findings", {"engine": "Spark 4.1.4", "findings": list(of)})
    assert answer.status == 200, answer.body
    return {what: ids for what, ids in answer.body.items() if what != "code" and ids}


def events() -> list[str]:
    return list(AuditEntry.objects.filter(event__in=["view.drifted", "view.mended"]).values_list("event", flat=True))


def test_it_is_shown_for_the_version_that_was_read(views: dict[str, int], admin: Caller) -> None:
    assert "finding" not in admin.get(f"{VIEWS}/delays/finding").body
    assert deliver(admin, finding(views["delays"], LOST), finding(views["late"], FINE)) == {
        "stored": [views["delays"], views["late"]]
    }
    shown = admin.get(f"{VIEWS}/delays/finding")["finding"]
    assert (shown["engine"], shown["by"], shown["broken"], shown["version"]) == ("Spark 4.1.4", "admin", True, 1)
    assert shown["dialects"] == [LOST]
    assert admin.get(f"{VIEWS}/late/finding")["finding"]["broken"] is False
    (broken,) = admin.get(BROKEN)["views"]
    assert (broken["fullName"], broken["reason"]) == ("flights.nyc.delays", None) and broken["finding"] == shown
    admin.send("PUT", f"{VIEWS}/delays", {"updates": [update("updateComment", newComment="x")]})
    assert "finding" not in admin.get(f"{VIEWS}/delays/finding").body and admin.get(BROKEN)["views"] == []
    assert deliver(admin, finding(views["delays"], LOST)) == {"outdated": [views["delays"]]}
    assert deliver(admin, finding(views["delays"], FINE, version=2)) == {"stored": [views["delays"]]}
    admin.send("DELETE", f"{VIEWS}/late")
    assert deliver(admin, finding(views["late"], FINE)) == {"missing": [views["late"]]}


def test_what_drifted_is_an_event_once(views: dict[str, int], admin: Caller) -> None:
    other = FINE | {"differences": [{"text": "declared double, Spark yields string", "position": 2}]}
    for dialect in (FINE, LOST, LOST, other, FINE, FINE):
        deliver(admin, finding(views["delays"], dialect))
    assert events() == ["view.drifted", "view.drifted", "view.mended"]
    (first, *_) = AuditEntry.objects.filter(event="view.drifted")
    assert first.details == {"version": 1, "engine": "Spark 4.1.4", "dialects": ["spark"]}
    assert first.full_name == "flights.nyc.delays"


def test_it_takes_the_rights_to_load_and_to_alter(views: dict[str, int], admin: Caller, mia: Caller) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    give("mia", Kind.SCHEMA, "flights.nyc", "use_schema")
    give("mia", Kind.VIEW, "flights.nyc.delays", "select_view", role="reader")
    give("mia", Kind.VIEW, "flights.nyc.late", "alter_view", role="editor")
    asked = [finding(views[name], LOST) for name in ("delays", "late", "other")]
    assert deliver(mia, *asked) == {
        "refused": [views["delays"]],
        "stored": [views["late"]],
        "missing": [views["other"]],
    }
    deliver(admin, *asked)
    read_new_versions()
    assert mia.get(BROKEN)["views"] == [], "what they read could be hidden"
    table = {"name": "flights", "columns": [{"name": "carrier", "type": "string"}], "properties": {}}
    assert admin.send("POST", f"{SCHEMA}/tables", table).status == 200
    assert mia.get(BROKEN)["views"] == []
    give("mia", Kind.TABLE, "flights.nyc.flights", "select_table")
    assert [each["fullName"] for each in mia.get(BROKEN)["views"]] == ["flights.nyc.delays", "flights.nyc.late"]
    hidden, missing = (mia.get(f"{VIEWS}/{name}/finding") for name in ("other", "nowhere"))
    assert hidden.error == missing.error and hidden.message == missing.message.replace("nowhere", "other")
    assert [line["name"] for line in streamed(mia)] == ["delays", "late"]


def streamed(caller: Caller, query: str = "") -> list[dict[str, Any]]:
    path = f"/api/{BULK}{query}"
    headers = {"Authorization": f"Bearer {issue_token(User.objects.get(username=caller.name), 'bulk')}"}
    answer: Any = Client().get(path, headers=headers, RAW_URI=path)
    head, *lines, end = map(json.loads, b"".join(answer.streaming_content).splitlines())
    assert head == {"metalake": "demo"} and end == {"end": True}
    return lines


def test_views_are_streamed_as_they_are_now(
    views: dict[str, int], admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "BATCH", 2)
    trino = update("addRepresentation", representation=sql("trino", "SELECT 1", defaultCatalog="c"))
    admin.send("PUT", f"{VIEWS}/late", {"updates": [trino]})
    lines = streamed(admin)
    assert [(line["name"], line["version"]) for line in lines] == [("delays", 1), ("late", 2), ("other", 1)]
    late = lines[1]
    assert (late["catalog"], late["schema"], late["view"]) == ("flights", "nyc", views["late"])
    assert late["representations"] == admin.get(f"{VIEWS}/late")["view"]["representations"]
    assert late["columns"] == admin.get(f"{VIEWS}/late")["view"]["columns"]
    assert streamed(admin, f"?after={late['place']}") == lines[2:]


def test_broken_views_come_in_pages(views: dict[str, int], admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "BATCH", 2)
    deliver(admin, *(finding(view, LOST) for view in views.values()))
    ViewMeta.objects.filter(view_name="late").update(broken="Its base64 is broken.")
    first = admin.get(f"{BROKEN}?limit=2")
    second = admin.get(f"{BROKEN}?limit=2&pageToken={first['nextPageToken']}")
    assert [each["fullName"][-5:] for each in first["views"] + second["views"]] == ["elays", ".late", "other"]
    assert first["views"][1]["reason"] == "Its base64 is broken." and "nextPageToken" not in second.body


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"engine": ""}, "engine"),
        ({"findings": [{"view": 1}]}, "findings[0].version"),
        ({"findings": [finding(1, FINE | {"problems": [{"text": ""}]})]}, "problems[0].text"),
        ({"findings": [finding(1, FINE | {"more": 1})]}, "more"),
        ({"findings": [finding(1, FINE)] * 201}, "200"),
        ({"findings": [finding(0, FINE)]}, "findings[0].view"),
    ],
)
def test_bad_deliveries_are_named(admin: Caller, part: dict[str, Any], says: str) -> None:
    refused = admin.send("POST", f"{BULK}/findings", {"engine": "Spark", "findings": []} | part)
    assert refused.status == 400 and says in refused.message, refused.body
    assert not ViewFinding.objects.exists()
    assert admin.get(f"{BULK}?after=x").status == 400 and admin.get(f"{SCHEMA}/views/none/finding").status == 404
