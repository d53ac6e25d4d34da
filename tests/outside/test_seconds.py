"""The properties in seconds: one reading of them, whether they are checked, used or planned by."""

from __future__ import annotations

import pytest
from django_celery_beat.models import PeriodicTask

from authz.actor import Actor
from catalogs.models import Catalog
from metalake import outbox
from metalake.errors import Invalid
from metalake.models import Outbox
from outside import schedule
from providers.base import Provider
from providers.glue.provider import GlueProvider
from providers.hive.provider import HiveProvider
from providers.settings import CACHE_TTL, REFRESH_INTERVAL, seconds_of
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.providers.world import World

CATALOG = "metalakes/demo/catalogs/deep"
UNFIT = ["60.0", "", " ", "+60", "-60", " 60", "60 ", "6_0", "6e1", "soon", "٦٠", "9" * 5000]
GLUE = {"aws-region": "eu-central-1"}
PROVIDERS: list[tuple[type[Provider], dict[str, str]]] = [
    (HiveProvider, {"metastore.uris": "thrift://hive:9083"}),
    (GlueProvider, GLUE),
]


@each("name", [CACHE_TTL, REFRESH_INTERVAL])
@each("value", UNFIT)
def test_only_digits_are_taken_and_what_is_unfit_reads_as_unset(name: str, value: str) -> None:
    for provider, properties in PROVIDERS:
        with pytest.raises(Invalid, match=f"Property '{name}'"):
            provider.check(properties | {name: value})
        provider.check(properties | {name: "3600"})
    assert seconds_of({name: value}, name) == seconds_of({}, name)
    assert seconds_of({name: "3600"}, name) == 3600


def test_bounds_hold_in_reading_too() -> None:
    assert (seconds_of({}, CACHE_TTL), seconds_of({}, REFRESH_INTERVAL)) == (0, None)
    assert (seconds_of({CACHE_TTL: "86401"}, CACHE_TTL), seconds_of({CACHE_TTL: "86400"}, CACHE_TTL)) == (0, 86400)
    assert (seconds_of({REFRESH_INTERVAL: "59"}, REFRESH_INTERVAL)) is None
    assert seconds_of({CACHE_TTL: "60.0", REFRESH_INTERVAL: "90"}, REFRESH_INTERVAL) == 90, "each by itself"


def test_a_glue_catalog_of_an_older_row_is_read() -> None:
    provider = GlueProvider(1, GLUE | {CACHE_TTL: " ", REFRESH_INTERVAL: "3600.0"})
    assert provider.freshness == 0
    assert provider.given.region == "eu-central-1"


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_a_refusal_names_the_property_and_what_is_expected(actor: Actor, admin: Caller) -> None:
    expected = "must be a whole number of seconds, in digits alone, such as 60."
    for name, value in ((CACHE_TTL, "60.0"), (REFRESH_INTERVAL, "3600.0"), (CACHE_TTL, " ")):
        refused = admin.put(CATALOG, {"@type": "setProperty", "property": name, "value": value})
        assert (refused.status, refused.message) == (400, f"Property {name!r} {expected}")


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_what_an_older_row_holds_stops_nothing(actor: Actor, admin: Caller, world: World) -> None:
    world.put_schema("flights")
    row = Catalog.objects.get(name="deep")
    row.properties |= {CACHE_TTL: "60.0", REFRESH_INTERVAL: "3600.0"}
    row.save(update_fields=["properties"])
    assert [each["name"] for each in admin.get(f"{CATALOG}/schemas")["identifiers"]] == ["flights"]
    assert admin.get(f"{CATALOG}/schemas/flights").status == 200
    change = {"@type": "updateComment", "newComment": "Of old"}
    assert admin.put(CATALOG, change).status == 200
    while outbox.drain():
        pass
    assert not Outbox.objects.exists(), "nothing is left to be tried again"
    assert not PeriodicTask.objects.filter(task=schedule.TASK).exists()
