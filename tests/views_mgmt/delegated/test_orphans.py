"""Iceberg views that Trino ran as an owner who was removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from authz.models import AuditEntry
from metalake import outbox
from metalake.errors import ProviderUnavailable
from metalake.kinds import Kind
from metalake.models import Outbox
from providers.metadata_files import MetadataFiles
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.delegated import orphans
from views_mgmt.models import View
from views_mgmt.services import definer

pytestmark = [pytest.mark.store, pytest.mark.django_db]

SCHEMA = "metalakes/demo/catalogs/lake/schemas/nyc"
VIEW = f"{SCHEMA}/views/delays"
SQL = update("updateRepresentation", representation=sql("trino", "SELECT * FROM payroll"))


@pytest.fixture
def removed(admin: Caller, mia: Caller) -> Caller:
    """The owner of the metalake after mia, who owned a view that Trino runs as her, was removed."""
    assert admin.send("POST", "metalakes/demo/catalogs/lake/schemas", {"name": "nyc"}).status == 200
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "create_view")
    IcebergCaller("mia").make_view("nyc", "delays", "trino", properties={"trino.run-as-owner": "mia", "tier": "gold"})
    assert mia.get(VIEW)["view"]["securityMode"] == "DEFINER"
    assert mia.send("POST", f"{SCHEMA}/views", body("plain", sql("trino"))).status == 200
    assert admin.send("DELETE", "metalakes/demo/users/mia").status == 200
    return admin


def altered(caller: Caller, *updates: dict[str, Any]) -> Any:
    return caller.send("PUT", VIEW, {"updates": list(updates)})


def test_an_iceberg_view_runs_as_its_invoker_once_its_owner_is_removed(removed: Caller) -> None:
    early = altered(removed, SQL)
    assert early.status == 409 and "was removed" in early.message
    assert altered(removed, update("updateComment", newComment="ours"))["view"]["version"] == 2
    outbox.drain()
    now = removed.send("GET", VIEW)["view"]
    assert (now["securityMode"], now["version"], now["properties"]) == (None, 3, {"tier": "gold"})
    location = View.objects.get(name="delays").metadata_location or ""
    assert "trino.run-as-owner" not in json.loads(Path(location.removeprefix("file://")).read_bytes())["properties"]
    last = AuditEntry.objects.filter(event="view.altered").latest("pk")
    assert last.actor == "metalake" and last.details["changed"] == ["properties", "security_mode"]
    assert altered(removed, SQL)["view"]["version"] == 4
    assert removed.send("GET", f"{SCHEMA}/views/plain")["view"]["version"] == 1


def test_a_roll_back_does_not_bring_the_owner_back(removed: Caller) -> None:
    outbox.drain()
    assert altered(removed, update("setProperty", property="tier", value="tin"))["view"]["version"] == 3
    back = removed.send("POST", f"{VIEW}/versions/1/rollback")["view"]
    assert back["properties"] == {"tier": "gold"} and back["securityMode"] is None


def test_it_is_tried_again_and_done_once(removed: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise ProviderUnavailable("The bucket does not answer.")

    monkeypatch.setattr(MetadataFiles, "write", full)
    outbox.drain()
    (row,) = Outbox.objects.filter(topic=definer.BECOMES_INVOKER)
    assert "does not answer" in row.last_error and removed.send("GET", VIEW)["view"]["securityMode"] == "DEFINER"
    monkeypatch.undo()
    for _ in range(2):
        orphans.become_invoker(row.payload)
    assert removed.send("GET", VIEW)["view"]["version"] == 2
    assert removed.delete(VIEW).status == 200
    orphans.become_invoker(row.payload)
