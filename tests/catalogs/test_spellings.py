"""A place has many spellings: it is answered as it was sent, and is one place in whatever spelling it is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalogs.models import LocationClaim, ReservedPlace
from catalogs.services import purge
from metalake.kinds import Kind
from metalake.models import Outbox
from tests.catalogs.callers import Caller
from tests.catalogs.services.test_places import MAKERS, NATIVE, Place, by_commit, commit, create, stage, warehouse
from tests.catalogs.services.test_reserved_places import live_snapshot
from tests.demo import give
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = pytest.mark.django_db

C = "metalakes/demo/catalogs/lake"
SPELLINGS: dict[str, Callable[[str], str]] = {
    "one slash": lambda path: f"file:{path}",
    "three slashes": lambda path: f"file://{path}",
    "capitals": lambda path: f"FILE:{path}",
    "a slash at the end": lambda path: f"file:{path}/",
    "no scheme": lambda path: path,
}


@pytest.fixture
def owner(admin: Caller) -> IcebergCaller:
    """Owns the catalog and the schema `own`."""
    assert admin.post(f"{C}/schemas", {"name": "own"}).status == 200
    return IcebergCaller("admin")


def path(name: str) -> str:
    """Of a folder on this machine that tables of the schema may have."""
    return f"{warehouse().removeprefix('file://')}/own/{name}"


def told(place: str) -> str:
    """How a place is answered: as it was sent, without a slash at its end and with a scheme."""
    sent = place.rstrip("/")
    return f"file://{sent}" if sent.startswith("/") else sent


def location(caller: IcebergCaller, name: str) -> str:
    """As both wires tell it."""
    shown = caller.get(f"namespaces/own/tables/{name}").json
    native = Caller(caller.name).get(f"{C}/schemas/own/tables/{name}")["table"]["properties"]["location"]
    assert shown["metadata"]["location"] == native
    assert shown["metadata-location"].startswith(f"{native}/metadata/")
    return str(native)


# Told as sent


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
def test_a_table_lies_where_it_was_asked_to_in_these_words(owner: IcebergCaller, spelled: Callable[[str], str]) -> None:
    asked = [spelled(path(f"{way}-1")) for way in ("plain", "staged", "commit", "moved", "native")]
    made = owner.make_table("own", "plain", location=asked[0])
    assert made["metadata"]["location"] == location(owner, "plain") == told(asked[0])
    assert stage(owner, asked[1]).json["metadata"]["location"] == told(asked[1])
    assert by_commit(owner, asked[2]).json["metadata"]["location"] == location(owner, "u") == told(asked[2])
    moved = commit(owner, {"action": "set-location", "location": asked[3]}, table="own/tables/plain")
    assert moved.json["metadata"]["location"] == told(asked[3])
    body = NATIVE | {"name": "native", "properties": {"location": asked[4]}}
    made = Caller("admin").post(f"{C}/schemas/own/tables", body)["table"]
    assert made["properties"]["location"] == asked[4] and location(owner, "native") == told(asked[4])
    claimed = LocationClaim.objects.filter(former_since=None).values_list("location", flat=True)
    assert set(claimed) == {f"file://{path(f'{way}-1')}" for way in ("moved", "commit", "native")}


def test_a_namespace_lies_where_it_was_asked_to_in_these_words(owner: IcebergCaller) -> None:
    """Elsewhere, or in the folder that it has by default."""
    for number, spelled in enumerate(SPELLINGS.values()):
        for name, folder in ((f"a{number}", f"of-a{number}"), (f"b{number}", f"b{number}")):
            place = spelled(f"{warehouse().removeprefix('file://')}/{folder}")
            owner.make_namespace(name, properties={"location": place})
            assert owner.get(f"namespaces/{name}").json["properties"]["location"] == place
            assert Caller("admin").get(f"{C}/schemas/{name}")["schema"]["properties"]["location"] == place
            made = owner.make_table(name, "t")
            assert made["metadata"]["location"].startswith(f"{warehouse()}/{folder}/t-")


# One place all the same


@pytest.mark.parametrize("door", MAKERS)
def test_no_spelling_slips_past_a_claim(door: Place, owner: IcebergCaller) -> None:
    owner.make_table("own", "t")
    owner.make_table("own", "other", location=f"file:{path('other-1')}")
    for spelled in SPELLINGS.values():
        for place in ("other-1", "other-1/data"):
            answer = door(owner, spelled(path(place)))
            assert answer.error[0] == 400 and "another table" in answer.error[2], answer.content
    assert LocationClaim.objects.count() == 2


def test_nor_past_what_is_reserved(owner: IcebergCaller, mia: Caller) -> None:
    owner.make_table("own", "t", location=f"file:{path('left-1')}")
    assert owner.delete("namespaces/own/tables/t").status == 204
    assert list(ReservedPlace.objects.values_list("location", flat=True)) == [f"file://{path('left-1')}"]
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.own", "use_schema", "create_table")
    for spelled in SPELLINGS.values():
        for place in ("left-1", "left-1/below"):
            assert create(IcebergCaller("mia"), spelled(path(place))).error[0] == 403
    assert create(owner, path("left-1")).status == 200
    assert not ReservedPlace.objects.exists()


def test_nor_past_the_places_of_schemas(owner: IcebergCaller, mia: Caller) -> None:
    root = warehouse().removeprefix("file://")
    owner.make_namespace("finance", properties={"location": f"file:{root}/of-finance"})
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.own", "use_schema", "create_table")
    for spelled in SPELLINGS.values():
        for place in (f"{root}/of-finance", f"{root}/of-finance/x-1"):
            assert create(IcebergCaller("mia"), spelled(place)).error[0] == 403
            taken = {"updates": {"location": spelled(place)}}
            assert "overlaps a place of schema finance" in owner.post("namespaces/own/properties", taken).error[2]


@pytest.mark.store
def test_nor_does_a_link_of_this_machine(owner: IcebergCaller, mia: Caller) -> None:
    """An engine that writes here may make one in a table's folder."""
    owner.make_table("own", "other", location=f"file:{path('other-1')}")
    owner.make_table("own", "t", location=f"file:{path('left-1')}")
    assert owner.delete("namespaces/own/tables/t").status == 204
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.own", "use_schema", "create_table")
    for name, status in (("other-1", 400), ("left-1", 403)):
        Path(path(f"to-{name}")).symlink_to(path(name))
        for place in (f"to-{name}", f"to-{name}/below"):
            assert create(IcebergCaller("mia"), f"file:{path(place)}").error[0] == status
    Path(path("to-all")).symlink_to(path("").rstrip("/"))
    assert create(owner, f"file:{path('to-all/other-1')}").error[0] == 400


# Files of its own


ENGINES = ("one slash", "three slashes", "no scheme")  # what they write of a table's files, however it is spelled


def test_a_tables_files_are_its_own_in_any_spelling(owner: IcebergCaller) -> None:
    for name in ENGINES:
        lies = f"{name.replace(' ', '_')}-1"
        owner.make_table("own", "t", location=f"file:{path(lies)}")
        place = SPELLINGS[name](path(lies))
        assert commit(owner, live_snapshot(place, f"{place}/metadata")).status == 200
        data = Path(path(lies), "data", "1.parquet")
        data.parent.mkdir()
        data.write_bytes(b"rows")
        assert owner.delete("namespaces/own/tables/t?purgeRequested=true").status == 204
        assert _purged() == 5, "two metadata files, a manifest list, a manifest and the data"
        assert not [file for file in Path(path(lies)).rglob("*") if file.is_file()]
    assert not ReservedPlace.objects.exists()


def test_live_files_hold_a_former_place_in_any_spelling(owner: IcebergCaller) -> None:
    for name in ENGINES:
        lies = f"{name.replace(' ', '_')}-1"
        table = owner.make_table("own", lies, location=f"file:{path(lies)}")["metadata"]["location"]
        place = SPELLINGS[name](path(lies))
        moved = {"action": "set-location", "location": f"{table}-moved"}
        changed = commit(owner, moved, live_snapshot(place, f"{place}/metadata"), table=f"own/tables/{lies}")
        assert changed.status == 200, changed.content
        shown = Caller("admin").get(f"{C}/schemas/own/tables/{lies}/places")["places"]
        (former,) = [each for each in shown if "formerSince" in each]
        assert former["location"] == f"file://{path(lies)}"
        refused = Caller("admin").delete(f"{C}/schemas/own/tables/{lies}/places/{former['id']}")
        assert refused.error[0] == 409 and "holds" in refused.message


def test_a_commit_in_another_spelling_leaves_no_place(owner: IcebergCaller) -> None:
    owner.make_table("own", "t", location=f"file:{path('t-1')}")
    for spelled in SPELLINGS.values():
        assert commit(owner, {"action": "set-location", "location": spelled(path("t-1"))}).status == 200
        assert LocationClaim.objects.values_list("location", "former_since").get() == (f"file://{path('t-1')}", None)


def _purged() -> int:
    rows: list[dict[str, Any]] = [row.payload for row in Outbox.objects.filter(topic=purge.PURGE)]
    return sum(map(purge.purge_table, rows))
