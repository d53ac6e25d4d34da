"""A store of an earlier version goes on: rights, places and pointers stay, and open writes come to their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from authz import facts, snapshot
from authz.models import Grant
from catalogs.models import Intent, Listing, LocationClaim, RefreshRun, Reservation, ReservedPlace, Table, Tombstone
from metalake.models import Securable
from outside import refresh, steps
from providers import circuit_breaker, remote
from tests.catalogs.callers import Caller
from tests.glue import Glue
from tests.outside.crashes import settle_all
from tests.providers.world import World
from tests.samples import store

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOGS = "metalakes/demo/catalogs"
VERBS = {
    "deep": ("create_schema", "create_table", "alter_table", "rename_table", "drop_table"),
    "glue": ("commit_table", "add_partition", "create_table"),
}
MADE, NOT_MADE = "made", ("planned", "sent")


@pytest.fixture
def sample(
    transactional_db: None, glue: Glue, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The sample, in a database that is migrated."""
    kept = store.read(store.BEFORE_ROOMS, tmp_path, glue)
    ring = tmp_path / "secrets.keys"
    ring.write_text(kept["key_ring"])
    ring.chmod(0o600)
    settings.SECRET_KEY, settings.METALAKE_SECRET_KEYS_FILE = kept["secret_key"], ring
    monkeypatch.setattr(steps, "READ_BACK", 0.01)
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)
    try:
        store.load(kept, tmp_path, glue)
    finally:
        store.migrate()
    ContentType.objects.clear_cache()
    snapshot.forget()
    circuit_breaker.forget_all()
    yield kept
    ContentType.objects.clear_cache()
    snapshot.forget()
    circuit_breaker.forget_all()


def test_rights_places_and_pointers_stay(sample: dict[str, Any]) -> None:
    """One test for all that is read: a database of its own takes seconds to make."""
    assert_rows_stay(sample)
    assert_people_may_what_they_might()
    assert_tables_load()
    assert_refresh_goes_on()


def test_open_writes_come_to_their_end(sample: dict[str, Any], tmp_path: Path, glue: Glue) -> None:
    """What was only promised, or sent and not made, is taken back; what was made is published."""
    left = [*Intent.objects.filter(state=Intent.State.OPEN)]
    expected = [(verb, stage) for verbs in VERBS.values() for verb in verbs for stage in (*NOT_MADE, MADE)]
    assert sorted((intent.verb, stage_of(intent)) for intent in left) == sorted(expected)
    settle_all()
    for intent in left:
        intent.refresh_from_db()
        ending = Intent.State.COMMITTED if stage_of(intent) == MADE else Intent.State.ABORTED
        assert intent.state == ending, (intent, intent.error, intent.last_failure)
    assert not Reservation.objects.exists()
    assert_memory_agrees(World(tmp_path / "world.json"))
    assert_glue_agrees(glue)


def assert_rows_stay(sample: dict[str, Any]) -> None:
    for model in (Securable, Grant, ReservedPlace, Tombstone, Listing, Reservation):
        assert_kept(model, sample)
    claims = {(row["table_id"], row["location"], row["former_since"]) for row in kept_rows(LocationClaim, sample)}
    assert claims == set(LocationClaim.objects.values_list("securable_id", "location", "former_since"))
    assert sum(former is not None for *_, former in claims) == 1, "a former place is in the sample"
    pointers = {row["securable_ptr_id"]: row["metadata_location"] for row in kept_rows(Table, sample)}
    assert pointers == dict(Table.objects.values_list("pk", "metadata_location"))
    assert facts.verify(facts.parse_head(sample["head"])) is None


def kept_rows(model: type[Model], sample: dict[str, Any]) -> list[dict[str, Any]]:
    """The sample's rows of a model, with moments as moments."""
    rows: list[dict[str, Any]] = sample["rows"][model._meta.label_lower]
    moments = {field.attname for field in model._meta.concrete_fields if field.get_internal_type() == "DateTimeField"}
    return [{key: parse_datetime(row[key]) if key in moments and row[key] else row[key] for key in row} for row in rows]


def assert_kept(model: type[Model], sample: dict[str, Any]) -> None:
    """Every row is there with the values it had, and no other."""
    rows = kept_rows(model, sample)
    key = model._meta.pk.attname
    now = {row[key]: row for row in model._base_manager.values(*rows[0])}
    assert now == {row[key]: row for row in rows}, model


def assert_people_may_what_they_might() -> None:
    """Ana is in a group that holds a role: ALLOW on two schemas, DENY on one table, one grant that is not yet begun."""
    ana = Caller("ana", "the sample's own password")
    lake = f"{CATALOGS}/lake/schemas"
    assert ana.get(f"{lake}/nycflights13/tables/flights").status == 200
    assert ana.get(f"{lake}/nycflights13/tables/planes").status == 404
    assert ana.get(f"{lake}/travel:nyc:2013/tables/trips").status == 200, "her group owns it"
    assert ana.get(f"{CATALOGS}/deep").status == 404
    grants = Grant.objects.filter(ends_at__isnull=False).count(), Grant.objects.filter(starts_at__isnull=False).count()
    assert grants == (1, 1)


def assert_tables_load() -> None:
    admin = Caller("admin")
    for schema, table in (("nycflights13", "flights"), ("nycflights13", "planes"), ("travel:nyc:2013", "trips")):
        shown = admin.get(f"{CATALOGS}/lake/schemas/{schema}/tables/{table}")["table"]
        assert [column["name"] for column in shown["columns"]] == ["tailnum"]
    shown = admin.get(f"{CATALOGS}/flat/schemas/flights:eu/tables/delays")["table"]
    assert [column["name"] for column in shown["columns"]] == ["delay", "carrier"]
    place = ReservedPlace.objects.get().location
    taken = admin.post(
        f"{CATALOGS}/lake/schemas/nycflights13/tables",
        {"name": "mine", "columns": [{"name": "id", "type": "long"}], "properties": {"location": place}},
    )
    assert taken.status == 200, "the former owner may have it again"


def stage_of(intent: Intent) -> str:
    return intent.full_name.split(".")[-1].split("_")[0]


def assert_memory_agrees(world: World) -> None:
    admin, tables = Caller("admin"), f"{CATALOGS}/deep/schemas/flights/tables"
    there = {name.partition(".")[2] for name in world.tables() if name.startswith("flights.")}
    assert there == {f"{stage}_{what}" for stage in NOT_MADE for what in ("altered", "renamed", "dropped")} | {
        "made_altered",
        "made_new_name",
        "made_created",
    }
    assert {one["name"] for one in admin.get(tables)["identifiers"]} == there
    assert {name for name in world.schemas() if name.endswith("_schema")} == {"made_schema"}
    assert admin.get(f"{CATALOGS}/deep/schemas/made_schema").status == 200
    for stage in (*NOT_MADE, MADE):
        shown = admin.get(f"{tables}/{stage}_altered")["table"]["properties"]
        assert (shown.get("team") == "ops") is (stage == MADE)


def assert_glue_agrees(glue: Glue) -> None:
    admin, tables = Caller("admin"), f"{CATALOGS}/glue/schemas/flights/tables"
    there = {one["Name"] for one in glue.client().get_tables(DatabaseName="flights")["TableList"]}
    assert there == {f"{stage}_{what}" for stage in (*NOT_MADE, MADE) for what in ("committed", "partitioned")} | {
        "made_created"
    }
    assert {one["name"] for one in admin.get(tables)["identifiers"]} == there
    for stage in (*NOT_MADE, MADE):
        is_made = stage == MADE
        committed = admin.get(f"{tables}/{stage}_committed")["table"]["properties"]
        assert (committed.get("team") == "ops") is is_made
        names = admin.get(f"{tables}/{stage}_partitioned/partitions")["names"]
        assert names == (["carrier=UA"] if is_made else [])


def assert_refresh_goes_on() -> None:
    left = RefreshRun.objects.get(state=RefreshRun.State.RUNNING)
    assert left.is_left_alone
    ended = refresh.carry_on(left.pk)
    assert ended is not None and ended.state == RefreshRun.State.DONE
    assert Tombstone.objects.get().full_name == "flat.gone"
    assert Listing.objects.get().taken_at < timezone.now()
