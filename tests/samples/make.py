"""Make the sample of a store as an earlier version writes it: `store_before_rooms.json`, beside this file.

It runs in a checkout of commit 2437253, with that version's modules and the fixtures of its tests:

    mkdir sample-home && printf 'the-secret-of-a-sample-and-of-nothing-else' > sample-home/secret_key
    cp make.py <checkout>/tests/catalogs/external/test_make_sample.py && cd <checkout>
    METALAKE_TEST_HOME=<path of sample-home> METALAKE_TEST_SAMPLE=<path of the sample> python -m pytest -q -n 0 \
        -p no:cacheprovider tests/catalogs/external/test_make_sample.py

What differs between machines stands as {HOME} (the data folder), {WORLDS} (the folder of the memory provider's
worlds) and {GLUE} (the URL of the stand-in for AWS).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from moto.glue.models import FakeTable, glue_backends

from access import history
from authz.callers import actor_of
from authz.models import User
from authz.services import people, roles
from authz.services.grant_entries import Ask
from authz.services.owners import set_owner
from catalogs.models import Catalog, Intent, RefreshRun
from catalogs.services import catalogs, commits
from catalogs.services.external import refresh
from metalake.kinds import Kind
from metalake.models import Securable
from tests.catalogs.callers import Caller
from tests.catalogs.external import writes
from tests.catalogs.external.crashes import killed_at
from tests.catalogs.external.outside import AwsGlue
from tests.catalogs.external.writes import BY_CARRIER, HIVE_FORMAT, ICEBERG_FORMAT, Bench
from tests.glue import ACCOUNT, REGION, Glue
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.glue_catalogs import settings as aws
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

COLUMNS = [{"name": "tailnum", "type": "string"}]
LAKE = "metalakes/demo/catalogs/lake/schemas"
STAGES = {"promised": "planned", "before 0": "sent", "after 0": "made"}  # point of the crash -> prefix of the names


def test_make_sample(admin: Caller, benches: dict[str, Bench], glue: Glue, tmp_path: Path) -> None:
    make_people(admin)
    make_lake(admin)
    make_grants()
    deep, flat = benches["deep"], benches["flat"]
    leave_intents_in_memory(deep)
    leave_intents_in_glue(bench_in_glue(glue, deep))
    flat.make_schema("flights:eu")
    flat.make_table("flights:eu", "delays")
    make_tombstone_and_runs(admin)
    Intent.objects.filter(state__in=Intent.LIVE).update(lease_until=timezone.now())
    history.seal()
    assert history.verify() is None
    sample = {
        "migrations": [list(leaf) for leaf in MigrationExecutor(connection).loader.graph.leaf_nodes()],
        "secret_key": settings.SECRET_KEY,
        "key_ring": Path(settings.METALAKE_SECRET_KEYS_FILE).read_text(),
        "head": str(history.head()),
        "rows": rows(),
        "files": {
            f"{{HOME}}/{path.relative_to(settings.METALAKE_HOME)}": path.read_text()
            for path in sorted(Path(settings.METALAKE_HOME, "warehouse").rglob("*.json"))
        },
        "worlds": {path.name: json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))},
        "glue": kept_in_glue(glue),
    }
    text = text_of(sample)
    for found, placeholder in (
        (str(settings.METALAKE_HOME), "{HOME}"),
        (str(tmp_path), "{WORLDS}"),
        (glue.endpoint, "{GLUE}"),
    ):
        text = text.replace(found, placeholder)
    Path(os.environ["METALAKE_TEST_SAMPLE"]).write_text(text)


# What it holds


def make_people(admin: Caller) -> None:
    User.objects.create_user("ana", "the sample's own password")
    owner = actor_of(User.objects.get(username="admin"))
    people.add_user(owner, "demo", "ana")
    people.add_group(owner, "demo", "crew")
    people.set_group_users(owner, "demo", "crew", ["ana"])


def make_lake(admin: Caller) -> None:
    """Nested schemas; a table that moved, one that was dropped, one of a group."""
    for schema in ("nycflights13", "travel:nyc:2013"):
        assert admin.post(LAKE, {"name": schema}).status == 200
    for schema, table in (
        ("nycflights13", "flights"),
        ("nycflights13", "planes"),
        ("nycflights13", "airlines"),
        ("travel:nyc:2013", "trips"),
    ):
        made = admin.post(f"{LAKE}/{schema}/tables", {"name": table, "columns": COLUMNS})
        assert made.status == 200, made.message
    tables = f"{LAKE}/nycflights13/tables"
    place = admin.get(f"{tables}/planes")["table"]["properties"]["location"]
    moved = {"requirements": [], "updates": [{"action": "set-location", "location": f"{place}-moved"}]}
    answer = IcebergCaller("admin").post("namespaces/nycflights13/tables/planes", moved)
    assert answer.status == 200, answer.content
    assert admin.delete(f"{tables}/airlines")["dropped"] is True
    owner = actor_of(User.objects.get(username="admin"))
    set_owner(owner, "demo", Kind.TABLE, "lake.travel:nyc:2013.trips", "crew", "GROUP")


def make_grants() -> None:
    """ALLOW and DENY, for good and for a time: one that has begun, one that has not."""
    owner, now = actor_of(User.objects.get(username="admin")), timezone.now()
    reader = [
        Ask(Kind.CATALOG, "lake", [("use_catalog", "allow")]),
        Ask(Kind.SCHEMA, "lake.nycflights13", [("use_schema", "allow"), ("select_table", "allow")]),
        Ask(Kind.TABLE, "lake.nycflights13.planes", [("select_table", "deny")]),
        Ask(Kind.SCHEMA, "lake.travel", [("use_schema", "allow", None, now + timedelta(days=36500))]),
        Ask(Kind.SCHEMA, "lake.travel:nyc", [("select_table", "allow", now + timedelta(days=36000), None)]),
    ]
    roles.create_role(owner, "demo", "reader", securables=reader)
    roles.assign_roles(owner, "demo", "group", "crew", ["reader"])


def leave_intents_in_memory(bench: Bench) -> None:
    """Of each verb one that was only promised, one sent and not made, one made and not published."""
    bench.make_schema("flights")
    for stage in STAGES.values():
        for table in ("altered", "renamed", "dropped"):
            bench.make_table("flights", f"{stage}_{table}")
    for point, stage in STAGES.items():
        for act in memory_writes(bench, stage):
            leave_open(bench, point, act)


def memory_writes(bench: Bench, stage: str) -> list[Callable[[], object]]:
    return [
        lambda: bench.make_schema(f"{stage}_schema"),
        lambda: bench.make_table("flights", f"{stage}_created"),
        lambda: writes.tables.alter_native_table(bench.actor, bench.ident("flights", f"{stage}_altered"), [set_team()]),
        lambda: writes.tables.rename_table(
            bench.actor, bench.ident("flights", f"{stage}_renamed"), bench.ident("flights", f"{stage}_new_name")
        ),
        lambda: writes.tables.drop_table(bench.actor, bench.ident("flights", f"{stage}_dropped")),
    ]


def set_team() -> Any:
    return writes.SetProperty.model_validate({"@type": "setProperty", "property": "team", "value": "ops"})


def bench_in_glue(glue: Glue, other: Bench) -> Bench:
    properties = aws(glue, nested_namespaces="true")
    outside = AwsGlue(glue, properties)
    owner = actor_of(User.objects.get(username="admin"))
    catalogs.create_catalog(owner, "demo", "glue", "relational", "glue", None, properties)
    return Bench("glue", outside, other.actor)


def leave_intents_in_glue(bench: Bench) -> None:
    bench.make_schema("flights")
    for stage in STAGES.values():
        bench.make_table("flights", f"{stage}_committed", properties=ICEBERG_FORMAT)
        bench.make_table("flights", f"{stage}_partitioned", properties=HIVE_FORMAT, partitioning=BY_CARRIER)
    for point, stage in STAGES.items():
        for act in glue_writes(bench, stage):
            leave_open(bench, point, act)


def glue_writes(bench: Bench, stage: str) -> list[Callable[[], object]]:
    update = {"action": "set-properties", "updates": {"team": "ops"}}
    asked = {"type": "identity", "fieldNames": [["carrier"]], "values": [writes.UNITED]}
    return [
        lambda: commits.commit_table(bench.actor, bench.ident("flights", f"{stage}_committed"), [], [update]),
        lambda: writes.partitions.add(
            bench.actor,
            bench.loaded("flights", f"{stage}_partitioned"),
            writes.IdentityPartition.model_validate(asked),
        ),
        lambda: bench.make_table("flights", f"{stage}_created", properties=ICEBERG_FORMAT),
    ]


def leave_open(bench: Bench, point: str, act: Callable[[], object]) -> None:
    """The process that made the write ends at a point of its first step."""
    before = set(Intent.objects.values_list("pk", flat=True))
    killed_at(point, act)
    (intent,) = Intent.objects.exclude(pk__in=before)
    assert intent.state == Intent.State.OPEN, (point, intent)


def make_tombstone_and_runs(admin: Caller) -> None:
    """A run that is done, one whose process went away, and what the first found dropped; a list that is kept."""
    catalog = Catalog.objects.get(name="flat")
    world = World(catalog.properties["world"])
    world.put_schema("gone")
    first = refresh.carry_on(refresh.begin(catalog.pk, here=True).pk)
    assert first is not None and first.state == RefreshRun.State.DONE, first
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))
    world.drop("gone")
    second = refresh.carry_on(refresh.begin(catalog.pk, here=True).pk)
    assert second is not None and second.dropped == 1, second
    left = refresh.begin(catalog.pk)
    RefreshRun.objects.filter(pk=left.pk).update(fence=1, lease_until=timezone.now() - timedelta(hours=1))
    kept = {"@type": "setProperty", "property": "cache-ttl", "value": "600"}
    assert admin.put("metalakes/demo/catalogs/flat", kept).status == 200
    assert admin.get("metalakes/demo/catalogs/flat/schemas").status == 200


# How it is written down


def rows() -> dict[str, list[dict[str, Any]]]:
    """Of each table of the database its rows, by the model's label; an inherited row is two, as it is there."""
    kept = {}
    for model in apps.get_models(include_auto_created=True):
        if model._meta.proxy or not model._meta.managed or model._meta.label == "sessions.Session":
            continue
        fields = [field.attname for field in model._meta.local_concrete_fields]
        if found := list(model._base_manager.order_by("pk").values(*fields)):
            kept[model._meta.label_lower] = found
    return kept


def kept_in_glue(glue: Glue) -> dict[str, Any]:
    """What the stand-in holds, with the moments by which objects are told from their namesakes."""
    files = glue.client("s3")
    keys = [one["Key"] for one in files.list_objects_v2(Bucket="lake").get("Contents", [])]
    backend = glue_backends[ACCOUNT][REGION]
    return {
        "databases": [
            {
                "name": database.name,
                "created": database.created_time,
                "input": database.input,
                "tables": [kept_table(table) for table in database.tables.values()],
            }
            for database in backend.databases.values()
        ],
        "files": {key: files.get_object(Bucket="lake", Key=key)["Body"].read().decode() for key in keys},
    }


def kept_table(table: FakeTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "created": table.created_time,
        "versions": [table.versions[version] for version in sorted(table.versions, key=int)],
        "partitions": [
            {"created": one.creation_time, "input": one.partition_input} for one in table.partitions.values()
        ],
    }


def text_of(sample: dict[str, Any]) -> str:
    """JSON with a line for each row and file."""

    def dumped(value: Any, depth: int) -> str:
        if depth and isinstance(value, dict):
            return (
                "{\n" + ",\n".join(f"{json.dumps(key)}: {dumped(one, depth - 1)}" for key, one in value.items()) + "\n}"
            )
        if depth and isinstance(value, list):
            return "[\n" + ",\n".join(dumped(one, 0) for one in value) + "\n]"
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=as_text)

    return dumped(sample, 2) + "\n"


def as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
