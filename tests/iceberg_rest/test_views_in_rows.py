"""Views that are rows of our database alone: this wire neither shows, changes nor makes any, and says where to go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalogs.services import catalogs
from metalake.kinds import Kind
from metalake.models import Securable
from providers import registry
from tests.catalogs.callers import Caller as NativeCaller
from tests.demo import actor, give
from tests.iceberg_rest.world import COLUMNS, Caller, replacing, view_version
from tests.views_mgmt.conftest import VIEWS, body
from views_mgmt.models import ViewVersion

pytestmark = [pytest.mark.store, pytest.mark.django_db]

MADE = {"name": "more", "schema": COLUMNS, "view-version": view_version()}
RENAMED = {
    "source": {"namespace": ["nyc"], "name": "delays"},
    "destination": {"namespace": ["nyc"], "name": "late"},
}


@pytest.fixture
def flights(owner: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """The owner of the catalog `flights`, whose provider offers no views, with the view nyc.delays."""
    monkeypatch.setitem(registry.PROVIDERS, "half", "tests.providers.half:HalfMemoryProvider")
    world = {"world": str(tmp_path / "world.json")}
    catalogs.create_catalog(actor("admin"), "demo", "flights", "relational", "half", None, world)
    native = NativeCaller("admin")
    assert native.send("POST", VIEWS.removesuffix("/nyc/views"), {"name": "nyc"}).status == 200
    assert native.send("POST", VIEWS, body()).status == 200
    return Caller("admin", catalog="flights")


def test_none_is_offered_or_shown(flights: Caller) -> None:
    config = flights.get("/iceberg/demo/v1/config?warehouse=flights").json
    assert not [endpoint for endpoint in config["endpoints"] if "view" in endpoint]
    assert flights.get("namespaces/nyc/views").json["identifiers"] == []
    assert flights.get("namespaces/nyc/views/delays").error == (404, "NoSuchViewException", missing("delays"))
    assert flights.head("namespaces/nyc/views/delays").status == 404
    assert flights.get("namespaces/nyc/tables/delays").status == 404, "it is no table either"


def missing(view: str) -> str:
    return f"View does not exist: nyc.{view}"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("namespaces/nyc/views", MADE),
        ("namespaces/nyc/register-view", {"name": "more", "metadata-location": "s3://b/v"}),
    ],
)
def test_none_is_made(flights: Caller, member: Caller, path: str, asked: dict[str, Any]) -> None:
    """Which those learn who may make views."""
    status, type_, message = flights.post(path, asked).error
    assert (status, type_) == (406, "UnsupportedOperationException")
    assert message == (
        "This catalog keeps no Iceberg views: create the view over the native API, or in an Iceberg catalog."
    )
    rita = Caller(member.name, catalog="flights")
    assert rita.post(path, asked).status == 404, "a catalog that she does not see"
    give(member.name, Kind.CATALOG, "flights", "use_catalog", "use_schema")
    assert rita.post(path, asked).status == 403
    assert Securable.objects.filter(kind=Kind.VIEW).count() == 1


@pytest.mark.parametrize(
    ("verb", "path", "asked"),
    [
        ("POST", "namespaces/nyc/views/delays", replacing()),
        ("DELETE", "namespaces/nyc/views/delays", None),
        ("POST", "views/rename", RENAMED),
    ],
)
def test_none_is_changed(flights: Caller, verb: str, path: str, asked: Any) -> None:
    assert flights.ask(verb, path, asked).error == (404, "NoSuchViewException", missing("delays"))
    assert Securable.objects.get(kind=Kind.VIEW).name == "delays" and ViewVersion.objects.count() == 1
