"""A purge is done where its files lie: a folder or bucket that is away, or another, does not prove them gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, User
from catalogs.models import ReservedPlace
from catalogs.services import catalogs, purge, schemas, shared_folders, tables
from catalogs.table_stores import TableDraft
from metalake import outbox, shared_settings
from metalake.lineage import Address
from metalake.models import Outbox, Shared
from tests.catalogs.callers import Caller
from tests.catalogs.races import COLUMNS
from tests.glue import Glue

pytestmark = [pytest.mark.store, pytest.mark.django_db]

Act = Callable[[Path, Any], None]


@pytest.fixture
def actor(admin: Caller) -> Actor:
    return actor_of(User.objects.get(username="admin"))


@pytest.fixture
def lake(tmp_path: Path, settings: Any) -> Path:
    """The folder that all nodes share."""
    settings.METALAKE_WAREHOUSE = f"file://{tmp_path}/lake"
    return tmp_path / "lake"


def purged(actor: Actor, **properties: str) -> str:
    """A table of a catalog of its own that was dropped with its files; where its metadata lies."""
    catalogs.create_catalog(actor, "demo", "own", "relational", "lakehouse-iceberg", None, properties)
    schemas.create_schema(actor, Address(metalake="demo", catalog="own", schema=("s",)), None, {})
    at = Address(metalake="demo", catalog="own", schema=("s",), leaf="t")
    made = tables.create_table(actor, at, TableDraft(COLUMNS, None, None, {}))
    tables.drop_table(actor, at, purge=True)
    return str(made.metadata_location)


def drain() -> Outbox | None:
    """What is left of the purge once it was tried."""
    Outbox.objects.update(due_at=timezone.now(), attempts=0)
    outbox.drain()
    return Outbox.objects.filter(topic=purge.PURGE).first()


def move_away(lake: Path, settings: Any) -> None:
    lake.rename(lake.with_name("away"))


def not_shared(lake: Path, settings: Any) -> None:
    """Another machine's folder of the same path, with a catalog of the same id."""
    move_away(lake, settings)
    for folder in lake.with_name("away").iterdir():
        (lake / folder.name).mkdir(parents=True) if folder.is_dir() else None


def of_another_store(lake: Path, settings: Any) -> None:
    not_shared(lake, settings)
    (lake / shared_folders.MARKER).write_text("another")


def without_the_catalog(lake: Path, settings: Any) -> None:
    """A mount below the folder is missing."""
    (folder,) = (folder for folder in lake.iterdir() if folder.is_dir())
    folder.rename(lake.with_name("away"))


def other_setting(lake: Path, settings: Any) -> None:
    settings.METALAKE_WAREHOUSE = f"file://{lake}-of-mine"


def put_back(lake: Path, settings: Any) -> None:
    away = lake.with_name("away")
    if away.exists() and (away / shared_folders.MARKER).exists():
        if lake.exists():
            lake.rename(lake.with_name("other"))
        away.rename(lake)
    elif away.exists():
        at = Outbox.objects.get(topic=purge.PURGE).payload["metadata_location"]
        away.rename(lake / at.removeprefix(f"file://{lake}/").partition("/")[0])
    settings.METALAKE_WAREHOUSE = f"file://{lake}"


@pytest.mark.parametrize(
    ("goes_wrong", "reason"),
    [
        (other_setting, "is not allowed here: METALAKE_HOME, METALAKE_WAREHOUSE or METALAKE_FILE_LOCATIONS"),
        (move_away, "is not there: is its file system mounted?"),
        (not_shared, "is not the one that the store knows"),
        (of_another_store, "is not the one that the store knows"),
        (without_the_catalog, "of the catalog is not there: is its file system mounted?"),
    ],
)
def test_what_is_not_reached_is_not_done(actor: Actor, lake: Path, settings: Any, goes_wrong: Act, reason: str) -> None:
    file = Path(purged(actor).removeprefix("file://"))
    assert file.exists()
    goes_wrong(lake, settings)
    left = drain()
    assert left is not None and left.attempts == 1
    assert reason in left.last_error
    outbox.drain()
    left.refresh_from_db()
    assert left.attempts == 1 and left.due_at <= timezone.now(), "it is not left to others"
    if goes_wrong is not without_the_catalog:
        assert any("purges to others" in said for said in shared_settings.sentences())
    assert ReservedPlace.objects.exists()
    assert not AuditEntry.objects.filter(event="table.purged").exists()
    put_back(lake, settings)
    assert file.exists()
    assert drain() is None
    assert not file.exists()
    assert not ReservedPlace.objects.exists()
    assert not shared_settings.sentences()


def test_a_file_that_is_gone_from_its_folder_is_fine(actor: Actor, lake: Path) -> None:
    Path(purged(actor).removeprefix("file://")).unlink()
    assert drain() is None
    assert AuditEntry.objects.filter(event="table.purged").exists()


def test_a_folder_that_was_made_anew_on_purpose(actor: Actor, lake: Path, settings: Any) -> None:
    purged(actor)
    not_shared(lake, settings)
    assert drain() is not None
    Shared.objects.filter(name=f"folder {lake}").delete()
    left = drain()
    assert left is not None and "is not known to the store" in left.last_error
    shared_folders.mark_used()
    assert drain() is None


def test_a_folder_is_marked_once_and_known_by_any_path(actor: Actor, lake: Path, settings: Any) -> None:
    file = Path(purged(actor).removeprefix("file://"))
    mark = (lake / shared_folders.MARKER).read_text()
    for _ in range(2):
        shared_folders.mark_used()
    assert (lake / shared_folders.MARKER).read_text() == mark
    moved = lake.with_name("moved")
    lake.rename(moved)
    lake.symlink_to(moved)  # and the setting names where it is now
    settings.METALAKE_WAREHOUSE = f"file://{moved}"
    assert drain() is None
    assert not file.exists()


def test_an_empty_mount_point_is_marked_by_nobody(actor: Actor, lake: Path, settings: Any) -> None:
    """At the first start after an upgrade, say."""
    at = Address(metalake="demo", catalog="own", schema=("s",), leaf="u")
    purged(actor)
    tables.create_table(actor, at, TableDraft(COLUMNS, None, None, {}))
    Shared.objects.all().delete()
    (lake / shared_folders.MARKER).unlink()
    not_shared(lake, settings)
    shared_folders.mark_used()
    assert not Shared.objects.filter(name=f"folder {lake}").exists()
    put_back_by_hand = lake.with_name("away")
    lake.rename(lake.with_name("other"))
    put_back_by_hand.rename(lake)
    shared_folders.mark_used()
    assert Shared.objects.filter(name=f"folder {lake}").exists()
    assert drain() is None


def test_a_bucket_that_is_away_is_no_proof_either(actor: Actor, glue: Glue) -> None:
    keys = {"s3.endpoint": glue.endpoint, "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    s3 = glue.client("s3")
    s3.create_bucket(Bucket="lake")
    bucket, _, key = purged(actor, warehouse="s3://lake/tables", **keys).removeprefix("s3://").partition("/")
    content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    s3.delete_object(Bucket=bucket, Key=key)
    s3.delete_bucket(Bucket=bucket)
    left = drain()
    assert left is not None and left.attempts == 1
    assert "There is no s3://lake" in left.last_error
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=key, Body=content)
    assert drain() is None
    assert key not in [found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
