"""What the table services promise beyond their doors: claims, registering, purging, moving, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.conf import settings

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, User
from catalogs.models import Catalog, LocationClaim, Table
from catalogs.secrets import MASK
from catalogs.services import catalogs, commits, purge, resolution, schemas, tables
from catalogs.services.provider_of import provider_at
from catalogs.table_stores import TableDraft, TableRecord
from metalake.errors import Conflict, Invalid, NotFound
from metalake.lineage import Address
from providers.metadata_files import METADATA, MetadataFiles
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture
def actor(admin: Caller) -> Actor:
    made = actor_of(User.objects.get(username="admin"))
    schemas.create_schema(made, Address(metalake="demo", catalog="lake", schema="A"), None, {})
    return made


def at(name: str, schema: str = "A") -> Address:
    return Address(metalake="demo", catalog="lake", schema=schema, leaf=name)


def made(actor: Actor, name: str, location: str | None = None, **properties: str) -> TableRecord:
    return tables.create_table(actor, at(name), TableDraft(COLUMNS, None, None, properties, location))


def warehouse() -> str:
    return str(Catalog.objects.get(name="lake").properties["warehouse"])


def claims(name: str) -> list[str]:
    table = Table.objects.get(name=name)
    present = LocationClaim.objects.filter(securable=table, former_since=None)
    return sorted(present.values_list("location", flat=True))


def set_location(location: str) -> dict[str, Any]:
    return {"action": "set-location", "location": location}


def set_property(key: str, value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {key: value}}


def file_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def metadata_file(folder: str, **changes: Any) -> str:
    """A table's metadata written by somebody else; a change to None leaves the field out."""
    content = {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": folder,
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [{"schema-id": 0, **COLUMNS}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        **changes,
    }
    location = f"{folder}/metadata/{uuid4()}.metadata.json"
    file_of(location).parent.mkdir(parents=True, exist_ok=True)
    file_of(location).write_bytes(orjson.dumps({key: value for key, value in content.items() if value is not None}))
    return location


# Places


def test_a_lost_race_leaves_the_claims_as_they_were(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(actor, "t", f"{warehouse()}/one")
    write = MetadataFiles.write

    def overtaken(store: MetadataFiles, *arguments: Any) -> Any:
        monkeypatch.setattr(MetadataFiles, "write", write)
        commits.commit_table(actor, at("t"), [], [set_property("winner", "yes")])
        return write(store, *arguments)

    monkeypatch.setattr(MetadataFiles, "write", overtaken)
    read_before = {"type": "assert-table-uuid", "uuid": before.metadata["table-uuid"]}
    # The loser starts over on what the winner made, where this requirement fails.
    stale = {"type": "assert-ref-snapshot-id", "ref": "gone", "snapshot-id": 1}
    plans = iter([[read_before], [stale]])
    with pytest.raises(Conflict):
        change = commits.planned_change(lambda _: (next(plans), [set_location(f"{warehouse()}/two")]))
        commits.commit(actor, at("t"), before.published, change)
    assert claims("t") == [f"{warehouse()}/one"]


def test_claims_follow_the_location(actor: Actor) -> None:
    made(actor, "t", f"{warehouse()}/one")
    commits.commit_table(actor, at("t"), [], [set_location(f"{warehouse()}/two")])
    assert claims("t") == [f"{warehouse()}/two"]
    made(actor, "u", f"{warehouse()}/three")
    for taken in ("one", "two/below"):
        with pytest.raises(Invalid, match="overlaps"):
            commits.commit_table(actor, at("u"), [], [set_location(f"{warehouse()}/{taken}")])
    assert claims("u") == [f"{warehouse()}/three"]


def test_a_location_whose_metadata_files_would_be_too_long_is_refused(actor: Actor) -> None:
    # Every segment is a legal file name, the whole just fits.
    place = f"{warehouse()}/" + "/".join(["a" * 100] * 19)
    for length in (2048, 2000, 1980):
        with pytest.raises(Invalid):
            made(actor, "t", place + "b" * (length - len(place)) if length > len(place) else place[:length])
    assert not Table.objects.exists()


# Registering


def test_register_takes_over_what_is_there(actor: Actor) -> None:
    location = metadata_file(f"{warehouse()}/theirs")
    registered = tables.register_table(actor, at("t"), location)
    assert registered.metadata_location == location
    assert claims("t") == [f"{warehouse()}/theirs"]


@pytest.mark.parametrize("uuid", [None, "", "not-a-uuid", "{12345678-1234-5678-1234-567812345678", "é" * 36])
def test_register_refuses_metadata_without_a_uuid(actor: Actor, uuid: str | None) -> None:
    version_1 = {"format-version": 1, "schema": {"schema-id": 0, **COLUMNS}, "partition-spec": []}
    for changes in ({}, version_1):
        location = metadata_file(f"{warehouse()}/theirs", **changes, **{"table-uuid": uuid})
        with pytest.raises(Invalid, match="uuid"):
            tables.register_table(actor, at("t"), location)


def test_register_refuses_a_file_that_lies_in_another_tables_place(actor: Actor) -> None:
    made(actor, "t", f"{warehouse()}/one")
    planted = metadata_file(f"{warehouse()}/one", location=f"{warehouse()}/two")
    with pytest.raises(Invalid, match="another table"):
        tables.register_table(actor, at("u"), planted)
    with pytest.raises(Invalid, match="another table"):  # whether it is there or not
        tables.register_table(actor, at("u"), f"{warehouse()}/one/gone.metadata.json")


def test_what_is_registered_is_what_was_checked(actor: Actor) -> None:
    """A file that is replaced between two registrations must not come back from memory."""
    uuid = str(uuid4())
    location = metadata_file(f"{warehouse()}/one", **{"table-uuid": uuid})
    tables.register_table(actor, at("t"), location)
    tables.load_table(actor, at("t"))
    tables.drop_table(actor, at("t"))
    moved = metadata_file(f"{warehouse()}/two", **{"table-uuid": uuid})
    file_of(location).write_bytes(file_of(moved).read_bytes())
    tables.register_table(actor, at("t"), location)
    assert tables.load_table(actor, at("t")).metadata["location"] == f"{warehouse()}/two"


def test_a_commit_claims_its_places_whatever_was_remembered(actor: Actor) -> None:
    location = metadata_file(f"{warehouse()}/one")
    tables.register_table(actor, at("t"), location)
    LocationClaim.objects.update(location=f"{warehouse()}/elsewhere")
    commits.commit_table(actor, at("t"), [], [set_property("a", "b")])
    assert claims("t") == [f"{warehouse()}/one"]


# Purging


def test_purge_spares_a_table_that_was_registered_again_at_an_older_file(actor: Actor) -> None:
    """The dropped table's last file is not the one registered, but both lead to the same data."""
    first = made(actor, "t").metadata_location
    assert first is not None
    last = commits.commit_table(actor, at("t"), [], [set_property("a", "b")])
    tables.drop_table(actor, at("t"), purge=True)
    tables.register_table(actor, at("t"), first)
    assert purge.purge_table(_purge_payload()) == 0
    assert file_of(first).exists()
    assert last.metadata_location and file_of(last.metadata_location).exists()


def test_purge_deletes_what_the_table_owned(actor: Actor) -> None:
    first = made(actor, "t").metadata_location
    assert first is not None
    tables.drop_table(actor, at("t"), purge=True)
    assert purge.purge_table(_purge_payload()) == 1
    assert not file_of(first).exists()


def _purge_payload() -> dict[str, Any]:
    from metalake.models import Outbox

    return Outbox.objects.get(topic=purge.PURGE).payload


# Commits


@pytest.mark.parametrize(("cleans", "left"), [("true", 2), ("false", 5)])
def test_files_that_fell_off_the_log_are_deleted_where_the_table_asks_for_it(
    actor: Actor, cleans: str, left: int
) -> None:
    cleaning = {"write.metadata.delete-after-commit.enabled": cleans, "write.metadata.previous-versions-max": "1"}
    folder = file_of(made(actor, "t", **cleaning).metadata["location"])
    for number in range(4):
        last = commits.commit_table(actor, at("t"), [], [set_property("n", str(number))])
    files = set(folder.rglob("*.metadata.json"))
    logged = [file_of(entry["metadata-file"]) for entry in last.metadata["metadata-log"]]
    assert len(files) == left
    assert files.issuperset([file_of(last.metadata_location or ""), *logged])


def test_a_foreign_log_does_not_fail_a_commit_that_happened(actor: Actor) -> None:
    log = [{"timestamp-ms": 1}, {"timestamp-ms": 2, "metadata-file": ["x"]}, {"metadata-file": 3, "timestamp-ms": 3}]
    cleaning = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    location = metadata_file(f"{warehouse()}/one", **{"metadata-log": log, "properties": cleaning})
    try:
        tables.register_table(actor, at("t"), location)
    except Invalid:
        return  # refusing it at once is as good
    commits.commit_table(actor, at("t"), [], [set_property("a", "b")])
    assert tables.load_table(actor, at("t")).metadata["properties"]["a"] == "b"


def test_a_load_is_of_the_moment_when_its_table_was_looked_up(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    record = made(actor, "t")
    METADATA.forget(record.published.catalog.id, record.metadata_location or "")
    find = resolution.find_table

    def find_and_drop(*arguments: Any) -> Any:
        found = find(*arguments)
        LocationClaim.objects.all().delete()
        catalogs.drop_catalog(actor, "demo", "lake", force=True)
        return found

    monkeypatch.setattr(tables, "require_table", lambda actor, found: find_and_drop(actor, at("t")))
    assert tables.load_table(actor, at("t")).content == record.content
    with pytest.raises(NotFound):  # where secrets are needed, which are gone with the catalog
        provider_at(replace(record.published, properties=orjson.dumps({"s3.secret-access-key": MASK}).decode()))


# Renaming


def test_a_rename_is_told_by_full_names(actor: Actor) -> None:
    made(actor, "a.b")
    tables.rename_table(actor, at("a.b"), at("c.d"))
    entry = AuditEntry.objects.get(event="table.renamed")
    assert (entry.details["was"], entry.full_name) == ("lake.A.a%2Eb", "lake.A.c%2Ed")


def test_home_is_allowed_to_hold_files(actor: Actor) -> None:
    """The tests above write files below the suite's own home."""
    assert file_of(warehouse()).is_relative_to(settings.METALAKE_HOME)
