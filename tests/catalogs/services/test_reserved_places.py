"""What was dropped without purge is nobody else's, and what a table left behind stays its own."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema as PySchema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, Group, User
from authz.services import owners, people
from catalogs.models import Catalog, LocationClaim, ReservedPlace
from catalogs.services import catalogs, metalakes, purge, reserved_places
from metalake.errors import Forbidden, Invalid
from metalake.kinds import Kind
from metalake.models import Outbox
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

M = "metalakes/demo"
C = f"{M}/catalogs/lake"


@pytest.fixture
def owner(admin: Caller) -> IcebergCaller:
    """Owns the catalog and the schemas `own` and `hr`."""
    for name in ("own", "hr"):
        assert admin.post(f"{C}/schemas", {"name": name}).status == 200
    return IcebergCaller("admin")


@pytest.fixture
def ola(owner: IcebergCaller, mia: Caller) -> IcebergCaller:
    """Creates tables in `own`, where mia does so too."""
    User.objects.create_user("ola", "correct horse battery")
    Caller("admin").post(f"{M}/users", {"name": "ola"})
    for user in ("ola", "mia"):
        give(user, Kind.CATALOG, "lake", "use_catalog")
        give(user, Kind.SCHEMA, "lake.own", "use_schema", "create_table", "select_table")
    return IcebergCaller("ola")


def account(name: str) -> Actor:
    return actor_of(User.objects.get(username=name))


def warehouse() -> str:
    return str(Catalog.objects.get(name="lake").properties["warehouse"])


def left() -> list[str]:
    return sorted(ReservedPlace.objects.values_list("location", flat=True))


def register(caller: IcebergCaller, pointer: str, name: str = "again") -> Any:
    return caller.post("namespaces/own/register", {"name": name, "metadata-location": pointer})


def purged() -> int:
    return sum(purge.purge_table(row.payload) for row in Outbox.objects.filter(topic=purge.PURGE))


def dropped(caller: IcebergCaller, location: str | None = None) -> str:
    """The metadata file of a table that was dropped without purge."""
    made = caller.make_table("own", "t", **({"location": location} if location else {}))
    assert caller.delete("namespaces/own/tables/t").status == 204
    return str(made["metadata-location"])


# What was dropped


def test_a_former_reader_does_not_adopt_a_dropped_table(ola: IcebergCaller) -> None:
    mia = IcebergCaller("mia")
    pointer = dropped(ola)
    place = pointer.rpartition("/metadata/")[0]
    assert left() == [place]
    status, kind, message = register(mia, pointer).error
    assert (status, kind) == (403, "ForbiddenException")
    assert "is reserved" in message and "ola" not in message
    for asked in (place, f"{place}/below"):
        assert mia.post("namespaces/own/tables", {"name": "u", "schema": COLUMNS, "location": asked}).status == 403
    assert mia.make_table("own", "t"), "default folders are fresh"
    assert register(ola, pointer).status == 200
    assert left() == []
    assert LocationClaim.objects.filter(location=place, securable__name="again").exists()


def test_the_catalogs_owner_may_use_what_was_left(owner: IcebergCaller, ola: IcebergCaller) -> None:
    assert register(owner, dropped(ola)).status == 200
    assert left() == []


def test_its_former_owner_finds_it_where_the_schema_lay_before(owner: IcebergCaller, ola: IcebergCaller) -> None:
    pointer = dropped(ola)
    owner.post("namespaces/own/properties", {"updates": {"location": f"{warehouse()}/team-own"}})
    assert register(IcebergCaller("mia"), pointer).status == 403
    assert register(ola, pointer).status == 200


def test_what_was_a_removed_users_is_the_metalakes_owners(ola: IcebergCaller) -> None:
    dropped(ola)
    owners = ReservedPlace.objects.values_list("owner_user_id", flat=True)
    assert list(owners) == [account("ola").id]
    Caller("admin").delete(f"{M}/users/ola")
    assert list(owners.all()) == [account("admin").id]


def test_a_group_for_which_something_is_reserved_is_joined_by_who_assigns_roles(ola: IcebergCaller) -> None:
    people.add_group(account("admin"), "demo", "team")
    people.set_group_users(account("admin"), "demo", "team", add=["ola"])
    give("mia", Kind.METALAKE, "demo", "manage_groups")
    people.set_group_users(account("mia"), "demo", "team", add=["mia"])
    people.set_group_users(account("mia"), "demo", "team", remove=["mia"])
    ola.make_table("own", "t")
    owners.set_owner(account("admin"), "demo", Kind.TABLE, "lake.own.t", "team", "group")
    assert ola.delete("namespaces/own/tables/t").status == 204
    with pytest.raises(Forbidden, match="assign roles"):
        people.set_group_users(account("mia"), "demo", "team", add=["mia"])


def test_what_is_reserved_is_compared_with_the_owner_of_an_entry_s_catalog(ola: IcebergCaller) -> None:
    people.add_group(account("admin"), "demo", "team")
    people.set_group_users(account("admin"), "demo", "team", add=["mia"])
    owners.set_owner(account("admin"), "demo", Kind.CATALOG, "lake", "team", "group")
    place = ola.make_table("own", "t")["metadata"]["location"]
    assert ola.delete("namespaces/own/tables/t").status == 204
    User.objects.create_user("zoe")

    def is_anothers(**owner: int) -> bool:
        return reserved_places.is_anothers(place, Catalog(pk=1, **owner))

    assert not is_anothers(owner_group_id=Group.objects.get(name="team").pk)
    assert not is_anothers(owner_user_id=account("mia").id), "in the group that owns the catalog"
    assert not is_anothers(owner_user_id=account("ola").id), "owned the table"
    assert is_anothers(owner_user_id=account("zoe").id)


def test_a_purge_ends_what_it_reserved(ola: IcebergCaller) -> None:
    made = ola.make_table("own", "t")
    assert ola.delete("namespaces/own/tables/t?purgeRequested=true").status == 204
    place = made["metadata"]["location"]
    assert left() == [place]
    assert register(IcebergCaller("mia"), made["metadata-location"]).status == 403, "until the files are gone"
    assert purged() == 1
    assert left() == []
    told = AuditEntry.objects.get(event="table.purged")
    assert (told.actor, told.details["deleted"], told.details["foreign"], told.details["kept"]) == ("ola", 1, 0, 0)


def test_what_a_purge_must_keep_stays_reserved(ola: IcebergCaller) -> None:
    made = ola.make_table("own", "t")
    folder = Path(made["metadata"]["location"].removeprefix("file://"))
    (folder / "folder").mkdir()
    statistics = {"snapshot-id": 1, "statistics-path": f"{folder}/folder", "file-size-in-bytes": 1}
    statistics |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    body = {"requirements": [], "updates": [{"action": "set-statistics", "snapshot-id": 1, "statistics": statistics}]}
    answer = ola.post("namespaces/own/tables/t", body)
    assert answer.status == 200, answer.content
    ola.delete("namespaces/own/tables/t?purgeRequested=true")
    assert purged() == 2
    assert left() == [made["metadata"]["location"]]


@pytest.mark.parametrize("force", ["catalog", "metalake"])
def test_what_a_forced_drop_leaves_is_reserved_in_every_metalake(
    admin: Caller, ola: IcebergCaller, tmp_path: Path, settings: Any, force: str
) -> None:
    settings.METALAKE_FILE_LOCATIONS = [str(tmp_path)]
    lake = {"warehouse": f"file://{tmp_path}/lake"}
    actor, taker = account("admin"), account("mia")
    catalogs.create_catalog(actor, "demo", "shared", "relational", "lakehouse-iceberg", None, lake)
    shared = IcebergCaller("admin", catalog="shared")
    shared.make_namespace("own")
    pointer = shared.make_table("own", "t")["metadata-location"]
    if force == "catalog":
        catalogs.drop_catalog(actor, "demo", "shared", force=True)
    else:
        metalakes.drop_metalake(actor, "demo", force=True)
    assert set(left()) >= {f"file://{tmp_path}/lake", pointer.rpartition("/metadata/")[0]}
    User.objects.filter(username="mia").update(is_superuser=True)
    taker = replace(taker, service_admin=True)
    metalakes.create_metalake(taker, "other", None, {})
    taker = taker.refreshed()
    for place in (f"{tmp_path}/lake", str(tmp_path), pointer.rpartition("/metadata/")[0].removeprefix("file://")):
        with pytest.raises(Invalid, match="is reserved") as refusal:
            catalogs.create_catalog(
                taker, "other", "taken", "relational", "lakehouse-iceberg", None, {"warehouse": f"file://{place}"}
            )
        assert "admin" not in refusal.value.message
    fresh = catalogs.create_catalog(taker, "other", "fresh", "relational", "lakehouse-iceberg", None, {})
    assert fresh.name == "fresh"
    metalakes.create_metalake(replace(actor, service_admin=True), "mine", None, {})
    catalogs.create_catalog(actor.refreshed(), "mine", "back", "relational", "lakehouse-iceberg", None, lake)
    back = IcebergCaller("admin", metalake="mine", catalog="back")
    back.make_namespace("own")
    assert register(back, pointer).status == 200
    assert not [place for place in left() if place.startswith(f"file://{tmp_path}")]


def test_no_catalog_is_altered_onto_what_was_left(
    admin: Caller, ola: IcebergCaller, tmp_path: Path, settings: Any
) -> None:
    settings.METALAKE_FILE_LOCATIONS = [str(tmp_path)]
    lake = {"warehouse": f"file://{tmp_path}/lake"}
    catalogs.create_catalog(account("admin"), "demo", "shared", "relational", "lakehouse-iceberg", None, lake)
    IcebergCaller("admin", catalog="shared").make_namespace("own")
    catalogs.drop_catalog(account("admin"), "demo", "shared", force=True)
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    mia = Caller("mia")
    body = {"name": "hers", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    assert mia.post(f"{M}/catalogs", body).status == 200
    wider = {"@type": "setProperty", "property": "allowed-locations", "value": f"file://{tmp_path}/lake/own"}
    assert mia.put(f"{M}/catalogs/hers", wider).error[:2] == (400, 1001)
    assert admin.put(f"{M}/catalogs/hers", wider).status == 200


# What a table left


def move(caller: IcebergCaller, place: str) -> Any:
    return caller.post(
        "namespaces/own/tables/t", {"requirements": [], "updates": [{"action": "set-location", "location": place}]}
    )


def test_a_place_that_a_table_left_is_still_its_own(ola: IcebergCaller) -> None:
    mia, first = IcebergCaller("mia"), ola.make_table("own", "t")["metadata"]["location"]
    assert move(ola, f"{warehouse()}/own/t-2").status == 200
    for asked in (first, f"{first}/data"):
        answer = mia.post("namespaces/own/tables", {"name": "u", "schema": COLUMNS, "location": asked})
        assert answer.status == 400 and "overlaps" in answer.error[2]
    held = dict(LocationClaim.objects.values_list("location", "former_since"))
    assert held[first] is not None and held[f"{warehouse()}/own/t-2"] is None
    assert move(ola, first).status == 200, "it may return"
    assert LocationClaim.objects.get(location=first).former_since is None
    ola.delete("namespaces/own/tables/t")
    assert left() == sorted([first, f"{warehouse()}/own/t-2"])


def test_a_purge_takes_along_what_the_table_had_before(ola: IcebergCaller) -> None:
    first = ola.make_table("own", "t")
    assert move(ola, f"{warehouse()}/own/t-2").status == 200
    ola.delete("namespaces/own/tables/t?purgeRequested=true")
    assert purged() == 2
    assert not Path(first["metadata-location"].removeprefix("file://")).exists()
    assert left() == []


def test_a_purge_spares_what_is_anothers(owner: IcebergCaller, ola: IcebergCaller) -> None:
    """Claimed in its places by whatever means, as when its former owner uses one before the purge has begun."""
    made = ola.make_table("own", "t")
    ola.delete("namespaces/own/tables/t?purgeRequested=true")
    taken = ola.make_table("own", "u", location=made["metadata"]["location"])
    assert purged() == 0
    assert Path(made["metadata-location"].removeprefix("file://")).exists()
    assert ola.get("namespaces/own/tables/u").json["metadata-location"] == taken["metadata-location"]
    assert AuditEntry.objects.get(event="table.purged").details["foreign"] == 1


def test_a_table_keeps_at_most_16_places(ola: IcebergCaller) -> None:
    ola.make_table("own", "t")
    for number in range(16):
        assert move(ola, f"{warehouse()}/own/t-{number}").status == 200
    answer = move(ola, f"{warehouse()}/own/t-16")
    assert answer.status == 400 and "release" in answer.error[2]
    assert LocationClaim.objects.filter(former_since__isnull=False).count() == 16
    assert ola.get("namespaces/own/tables/t").json["metadata"]["location"] == f"{warehouse()}/own/t-15"


def test_a_new_place_is_the_owners_to_give(ola: IcebergCaller) -> None:
    """Whoever may modify a table, or alter a view, does not fill the places that it keeps."""
    give("mia", Kind.SCHEMA, "lake.own", "modify_table", "alter_view")
    mia = IcebergCaller("mia")
    table, view = ola.make_table("own", "t"), IcebergCaller("admin").make_view("own", "v")
    for name, made, key in (("tables/t", table, "write.data.path"), ("views/v", view, "write.metadata.path")):
        first, elsewhere = made["metadata"]["location"], f"{warehouse()}/own/{name[-1]}-2"

        def changed(by: IcebergCaller, name: str = name, **update: Any) -> int:
            return int(by.post(f"namespaces/own/{name}", {"requirements": [], "updates": [update]}).status)

        def moved(by: IcebergCaller, place: str, changed: Any = changed) -> int:
            return int(changed(by, action="set-location", location=place))

        assert moved(mia, elsewhere) == changed(mia, action="set-properties", updates={key: elsewhere}) == 403
        assert [moved(mia, place) for place in (first, f"{first}/a", f"{first}/b", first)] == [200] * 4
        claims = LocationClaim.objects.filter(securable__name=name[-1])
        assert claims.get().location == first, "what lies in a place of its own is no other place"
        assert moved(IcebergCaller("admin"), elsewhere) == 200
        assert [moved(mia, place) for place in (first, elsewhere)] == [200] * 2, "where it was before"
    native = {"@type": "setProperty", "property": "write.data.path", "value": f"{warehouse()}/own/t-3"}
    assert Caller("mia").put(f"{C}/schemas/own/tables/t", native).error[:2] == (403, 1008)


# Releasing


def places(caller: str) -> dict[str, str]:
    shown = Caller(caller).get(f"{C}/schemas/own/tables/t/places")["places"]
    return {each["location"]: each["id"] for each in shown if "formerSince" in each}


def release(caller: str, location: str) -> Any:
    return Caller(caller).delete(f"{C}/schemas/own/tables/t/places/{places('admin').get(location, '0')}")


def test_a_table_releases_what_it_left(ola: IcebergCaller) -> None:
    first = ola.make_table("own", "t")["metadata"]["location"]
    assert move(ola, f"{warehouse()}/own/t-2").status == 200
    assert set(places("ola")) == {first}
    assert Caller("mia").get(f"{C}/schemas/own/tables/t/places").error[:2] == (403, 1008)
    assert release("mia", first).error[:2] == (403, 1008)
    assert release("ola", f"{warehouse()}/own/t-2").error[0] == 404
    assert release("ola", first)["released"] is True
    assert places("ola") == {}
    assert AuditEntry.objects.get(event="table.place_released").details["location"] == first
    assert IcebergCaller("mia").make_table("own", "u", location=first)


def test_no_place_is_released_while_live_files_lie_there(ola: IcebergCaller) -> None:
    """A data file that an older snapshot names, at a place that the table has left."""
    first = ola.make_table("own", "t")["metadata"]["location"]
    snapshot = live_snapshot(first, f"{warehouse()}/own/t-2/metadata")
    for update in ({"action": "set-location", "location": f"{warehouse()}/own/t-2"}, snapshot):
        answer = ola.post("namespaces/own/tables/t", {"requirements": [], "updates": [update]})
        assert answer.status == 200, answer.content
    refused = release("ola", first)
    assert refused.error[0] == 409 and "holds live files" in refused.message, refused.body
    assert set(places("ola")) == {first}
    removal = {"action": "remove-snapshots", "snapshot-ids": [7]}
    assert ola.post("namespaces/own/tables/t", {"requirements": [], "updates": [removal]}).status == 200
    assert release("ola", first)["released"] is True


def test_nor_while_what_is_there_cannot_be_known(ola: IcebergCaller) -> None:
    first = ola.make_table("own", "t")["metadata"]["location"]
    assert move(ola, f"{warehouse()}/own/t-2").status == 200
    foreign = live_snapshot(first, f"{warehouse()}/elsewhere")
    assert ola.post("namespaces/own/tables/t", {"requirements": [], "updates": [foreign]}).status == 200
    assert release("ola", first).error[0] == 400
    assert set(places("ola")) == {first}


def live_snapshot(data: str, metadata: str) -> dict[str, Any]:
    """A snapshot with one data file in a folder, its manifests in another."""
    Path(urlparse(metadata).path).mkdir(parents=True, exist_ok=True)
    schema, io = PySchema(NestedField(1, "id", LongType(), required=False)), PyArrowFileIO()
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{data}/data/1.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
    )
    entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=7, data_file=file)
    with write_manifest(2, PartitionSpec(), schema, io.new_output(f"{metadata}/m.avro"), 7, "deflate") as writer:
        writer.add_entry(entry)
    with write_manifest_list(2, io.new_output(f"{metadata}/l.avro"), 7, None, 1, "deflate") as listing:
        listing.add_manifests([writer.to_manifest_file()])
    snapshot: dict[str, Any] = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 9_999_999_999_999,
        "schema-id": 0,
    }
    snapshot |= {"manifest-list": f"{metadata}/l.avro", "summary": {"operation": "append"}}
    return {"action": "add-snapshot", "snapshot": snapshot}


def reserved_in(caller: str) -> dict[str, str]:
    return {each["fullName"]: each["id"] for each in Caller(caller).get(f"{C}/reserved-places")["places"]}


def test_what_was_dropped_is_released_by_whose_it_was(ola: IcebergCaller) -> None:
    pointer = dropped(ola)
    assert reserved_in("mia") == {}
    assert set(reserved_in("ola")) == set(reserved_in("admin")) == {"lake.own.t"}
    where = f"{C}/reserved-places/{reserved_in('ola')['lake.own.t']}"
    assert Caller("mia").delete(where).error[0] == Caller("mia").delete(f"{C}/reserved-places/0").error[0] == 404
    assert Caller("ola").delete(where)["released"] is True
    assert left() == []
    assert register(IcebergCaller("mia"), pointer).status == 200


def test_an_operator_releases_what_no_catalog_has(ola: IcebergCaller) -> None:
    dropped(ola)
    row = ReservedPlace.objects.get()
    with pytest.raises(CommandError, match="only their owners can release these"):
        call_command("reserved_places", "--release", str(row.pk))
    catalogs.drop_catalog(account("admin"), "demo", "lake", force=True)
    told = StringIO()
    call_command("reserved_places", "demo", stdout=told)
    assert f"{row.pk}  demo  table lake.own.t  {row.location}" in told.getvalue()
    every = [str(pk) for pk in ReservedPlace.objects.values_list("pk", flat=True)]
    call_command("reserved_places", "--release", *every, stdout=told)
    assert left() == []
    assert AuditEntry.objects.filter(event="place.released", actor="manage.py").count() == len(every)
    with pytest.raises(CommandError, match="No reserved places have the ids"):
        call_command("reserved_places", "--release", every[0])
