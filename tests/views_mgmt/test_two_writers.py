"""Two alterations of one view that meet: the later one is made on the new state or is refused, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from catalogs.services import catalogs, schemas
from formats.native.views import CreateViewRequest, ViewUpdatesRequest
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from providers import registry
from tests.catalogs.meeting import met
from tests.demo import actor, make_demo
from tests.providers.world import World
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.models import ViewVersion
from views_mgmt.services import views

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="not offered: a write begins when the other has ended"),
]
Alteration = list[dict[str, Any]]

TRINO: Alteration = [update("addRepresentation", representation=sql("trino"))]
COMMENT: Alteration = [update("updateComment", newComment="Late")]
RENAME: Alteration = [update("rename", newName="late")]


@pytest.fixture(params=["lake", "flights"])
def delays(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> Address:
    """A view of an Iceberg catalog, and one that Metalake stores itself."""
    make_demo()
    monkeypatch.setitem(registry.PROVIDERS, "half", "tests.providers.half:HalfMemoryProvider")
    catalogs.create_catalog(actor("admin"), "demo", "flights", "relational", "half", None, {"world": str(world.path)})
    home = Address(metalake="demo", catalog=request.param, schema="nyc")
    schemas.create_schema(actor("admin"), home, None, {})
    view = Address(metalake="demo", catalog=request.param, schema="nyc", leaf="delays", leaf_kind=Kind.VIEW)
    views.create_view(actor("admin"), view, CreateViewRequest.model_validate(body()))
    return view


def alter(view: Address, updates: Alteration) -> Any:
    return views.alter_view(actor("admin"), view, ViewUpdatesRequest.model_validate({"updates": updates}).updates)


def numbers() -> list[int]:
    return list(ViewVersion.objects.order_by("version").values_list("version", flat=True))


def test_both_are_made(delays: Address) -> None:
    outcome = met(lambda: alter(delays, TRINO), lambda: alter(delays, COMMENT))
    assert not isinstance(outcome, Exception), outcome
    now = views.load_view(actor("admin"), delays).definition
    assert (now.dialects, now.comment) == (["spark", "trino"], "Late")
    assert numbers() == [1, 2, 3]


@pytest.mark.parametrize(("first", "refusal"), [(TRINO, Invalid), (RENAME, NotFound)], ids=["twice", "renamed"])
def test_the_later_one_is_refused(delays: Address, first: Alteration, refusal: type[Exception]) -> None:
    assert isinstance(met(lambda: alter(delays, first), lambda: alter(delays, TRINO)), refusal)
    assert numbers() == [1, 2]
