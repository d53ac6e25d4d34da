"""What happens to a view is durable and told apart, in the audit and the event log; listeners also learn of reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from authz.models import AuditEntry
from metalake import listeners
from metalake.kinds import Kind
from metalake.listeners import Notice
from metalake.models import Outbox
from metalake.outbox import drain
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.iceberg_rest.test_errors import NEW_VIEW
from tests.iceberg_rest.world import Caller as Iceberg
from tests.providers.world import World
from tests.views_mgmt.conftest import body, sql, update

pytestmark = [pytest.mark.store, pytest.mark.django_db]

MINE, OWN = "metalakes/demo/catalogs/flights/schemas", "metalakes/demo/catalogs/lake/schemas"


@pytest.fixture(params=[MINE, OWN], ids=["rows", "iceberg"])
def schemas(request: pytest.FixtureRequest, admin: Caller, flights: World) -> str:
    """The schemas of a catalog whose views are rows of ours, or Iceberg views; with `nyc` and `jfk` among them."""
    schemas = str(request.param)
    for name in ("nyc", "jfk")[schemas == MINE :]:
        assert admin.send("POST", schemas, {"name": name}).status == 200
    return schemas


def audited() -> list[tuple[str, str, dict[str, Any]]]:
    rows = AuditEntry.objects.filter(kind=Kind.VIEW).order_by("pk")
    return [(row.event, row.full_name.partition(".")[2], row.details) for row in rows]


def do_everything(caller: Caller, schemas: str) -> None:
    """Each kind of change once, and one that is refused, which leaves no event."""
    views, view = f"{schemas}/nyc/views", f"{schemas}/nyc/views/delays"
    give("admin", Kind.CATALOG, "flights" if schemas == MINE else "lake", "use_catalog", "use_schema")
    steps: list[tuple[str, str, Any]] = [
        ("POST", views, body()),
        ("PUT", view, {"updates": [update("addRepresentation", representation=sql("trino"))]}),
        ("PUT", view, {"updates": [update("replaceView", representations=[sql("hive")], comment="Late")]}),
        ("POST", f"{view}/versions/1/rollback", None),
        ("PUT", view, {"updates": [update("rename", newName="late")]}),
        ("PUT", f"{views}/late", {"updates": [update("rename", newName="late", newSchemaName="jfk")]}),
        ("DELETE", f"{schemas}/jfk/views/late", None),
    ]
    for method, path, given in steps:
        answer = caller.send(method, path, given)
        assert answer.status == 200, (method, path, answer.body)
    assert caller.send("PUT", view, {"updates": [update("updateComment", newComment="x")]}).status == 404
    assert caller.send("POST", views, body() | {"representations": []}).status == 400


def test_each_change_is_told_apart(schemas: str, admin: Caller, settings: Any, tmp_path: Path) -> None:
    drain()
    settings.METALAKE_EVENT_LOG = str(tmp_path / "events")
    do_everything(admin, schemas)
    events = audited()
    assert [(event, name) for event, name, _ in events] == [
        ("view.created", "nyc.delays"),
        ("view.altered", "nyc.delays"),
        ("view.replaced", "nyc.delays"),
        ("view.altered", "nyc.delays"),
        ("view.renamed", "nyc.late"),
        ("view.renamed", "jfk.late"),
        ("view.dropped", "jfk.late"),
    ]
    details = [detail for _, _, detail in events]
    assert [detail.get("version") for detail in details[1:4]] == [2, 3, 4]
    assert details[1]["changed"] == ["representations"] and "comment" in details[2]["changed"]
    assert [detail["was"].partition(".")[2] for detail in details[4:6]] == ["nyc.delays", "nyc.late"]
    assert "arr_delay" not in str(events), "no SQL is in the audit"
    drain()
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    of_views = [line for line in lines if line["kind"] == "view"]
    assert [line["name"] for line in of_views] == [event for event, _, _ in events]
    assert all(line["request_id"] and line["actor"] == "admin" for line in of_views)


def test_the_iceberg_wire_tells_them_apart_too(admin: Caller) -> None:
    assert admin.send("POST", OWN, {"name": "nyc"}).status == 200
    wire, view = Iceberg("admin"), "namespaces/nyc/views/v"
    made = wire.post("namespaces/nyc/views", NEW_VIEW).json
    replaced = {"updates": [{"action": "set-properties", "updates": {"team": "ops"}}]}
    names = [{"namespace": ["nyc"], "name": name} for name in ("v", "late")]
    assert wire.post(view, replaced).status == 200
    assert wire.post("views/rename", dict(zip(("source", "destination"), names, strict=True))).status == 204
    assert wire.delete("namespaces/nyc/views/late").status == 204
    again = {"name": "again", "metadata-location": made["metadata-location"]}
    assert wire.post("namespaces/nyc/register-view", again).status == 200
    assert [(event, name) for event, name, _ in audited()] == [
        ("view.created", "nyc.v"),
        ("view.replaced", "nyc.v"),
        ("view.renamed", "nyc.late"),
        ("view.dropped", "nyc.late"),
        ("view.registered", "nyc.again"),
    ]


def test_events_wait_in_the_outbox_with_their_change(schemas: str, admin: Caller) -> None:
    views = f"{schemas}/nyc/views"
    assert admin.send("POST", views, body()).status == 200
    assert [row.payload["name"] for row in Outbox.objects.order_by("pk") if row.payload.get("kind") == "view"] == [
        "view.created"
    ]


def test_listeners_learn_of_reads_and_lists(schemas: str, admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[Notice] = []
    monkeypatch.setattr(listeners, "listeners", (notices.append,))
    do_everything(admin, schemas)
    views = f"{schemas}/nyc/views"
    admin.send("GET", views)
    admin.send("GET", f"{views}/delays")
    ended = [(each.operation, str(each.outcome)) for each in notices if each.outcome]
    assert ended == [
        ("create_view", "ok"),
        ("alter_view", "ok"),
        ("alter_view", "ok"),
        ("alter_view", "ok"),
        ("alter_view", "ok"),
        ("alter_view", "ok"),
        ("drop_view", "ok"),
        ("alter_view", "refused"),
        ("create_view", "refused"),
        ("list_views", "ok"),
        ("load_view", "refused"),
    ]
    assert notices[2].names["view"] == "delays" and "arr_delay" not in str(notices)
