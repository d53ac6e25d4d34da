"""A schema is made in the catalog that it was promised in, whatever that catalog is called by then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from authz.actor import Actor
from catalogs.lookup import by_id
from catalogs.models import Intent, Schema
from catalogs.services import catalogs, schemas
from catalogs.services.cascade import remove
from outside import steps
from tests.catalogs.callers import Caller, update
from tests.outside.crashes import killed_at, settle_all
from tests.outside.writes import Bench
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOGS = "metalakes/demo/catalogs"


def rename(admin: Caller, before: str, after: str) -> None:
    assert admin.put(f"{CATALOGS}/{before}", update("rename", newName=after)).status == 200


@pytest.fixture
def at_point(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Does something as a write passes a point."""

    def arrange(name: str, act: Callable[[], object]) -> None:
        monkeypatch.setattr(steps, "point", lambda passed: act() if passed == name else None)

    return arrange


@pytest.mark.parametrize("point", ["promised", "before 0", "after 0", "applied", "published"])
def test_the_catalog_is_renamed_meanwhile(
    bench: Bench, admin: Caller, point: str, at_point: Callable[[str, Callable[[], object]], None]
) -> None:
    at_point(point, lambda: rename(admin, "deep", "deeper"))
    made = schemas.create_schema(bench.actor, bench.ident("sales:emea"), None, {"team": "ops"})
    assert (made.path.logical(), made.row.properties["team"]) == ("sales:emea", "ops")
    assert bench.world.schemas() == {"hr", "sales", "sales.emea"}
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert admin.get(f"{CATALOGS}/deeper/schemas/sales:emea").status == 200


def test_the_metalake_is_renamed_meanwhile(
    bench: Bench, admin: Caller, at_point: Callable[[str, Callable[[], object]], None]
) -> None:
    at_point("after 0", lambda: admin.put("metalakes/demo", update("rename", newName="show")))
    schemas.create_schema(bench.actor, bench.ident("sales"), None, {})
    assert bench.world.schemas() == {"hr", "sales"}
    assert admin.get("metalakes/show/catalogs/deep/schemas/sales").status == 200


def test_another_catalog_takes_the_name(bench: Bench, actor: Actor, admin: Caller, world: World) -> None:
    """What was made in one system is no row of the other."""
    two = World(world.path.with_name("two.json"))
    catalogs.create_catalog(actor, "demo", "two", "relational", "memory", None, {"world": str(two.path)})
    intent = killed_at("after 0", lambda: bench.make_schema("sales"))
    for before, after in (("deep", "aside"), ("two", "deep"), ("aside", "two")):
        rename(admin, before, after)
    settle_all()
    intent.refresh_from_db()
    assert intent.state == Intent.State.COMMITTED
    row = Schema.objects.get(name="sales")
    assert row.in_catalog_id == intent.in_catalog_id
    assert (bench.world.schemas(), two.schemas()) == ({"hr", "sales"}, set())
    statuses = [admin.get(f"{CATALOGS}/{name}/schemas/sales").status for name in ("two", "deep")]
    assert statuses == [200, 404]


def test_a_schema_that_is_dropped_as_soon_as_it_is_there(
    admin: Caller, bench: Bench, at_point: Callable[[str, Callable[[], object]], None]
) -> None:
    def drop() -> None:
        found = by_id(Schema.objects.get(name="sales").pk)
        assert found is not None
        with transaction.atomic():
            remove(found)

    at_point("published", drop)
    answer = admin.post(f"{CATALOGS}/deep/schemas", {"name": "sales"})
    assert (answer.status, answer.body["message"]) == (404, "Schema sales was made, and dropped meanwhile.")
