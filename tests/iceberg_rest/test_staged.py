"""What a staged creation leaves: on this machine's disks the empty folders that its client writes into, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalogs.models import Catalog, LocationClaim, ReservedPlace, Table
from metalake.kinds import Kind
from tests.demo import give
from tests.iceberg_rest.test_commit import staged
from tests.iceberg_rest.world import COLUMNS, Answer, Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    return owner


def stage(caller: Caller, name: str = "t", **fields: Any) -> Answer:
    return caller.post("namespaces/a/tables", {"name": name, "schema": COLUMNS, "stage-create": True, **fields})


def folder_of(answer: Answer) -> Path:
    return path_of(answer.json["metadata"]["location"])


def path_of(place: str) -> Path:
    return Path(place.removeprefix("file://"))


def schema_folder() -> str:
    """Of the schema `a`."""
    return f"{Catalog.objects.get(name='lake').properties['warehouse']}/a"


def below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def kept() -> tuple[int, int, int]:
    return Table.objects.count(), LocationClaim.objects.count(), ReservedPlace.objects.count()


def test_its_folders_are_there_and_nothing_else_is(home: Caller) -> None:
    answer = stage(home)
    assert answer.status == 200, answer.content
    assert below(folder_of(answer)) == {"data", "metadata"}
    assert kept() == (0, 0, 0)


def test_those_that_it_names_are_there(home: Caller) -> None:
    place = f"{schema_folder()}/t-1"
    named = stage(home, location=place, properties={"write.data.path": f"{place}/rows/all"})
    assert named.status == 200, named.content
    assert below(path_of(place)) == {"data", "metadata", "rows", "rows/all"}


def test_a_client_writes_before_it_commits(home: Caller) -> None:
    body = staged(home, "t")
    place = path_of(body["updates"][-1]["location"])
    (place / "data" / "rows.parquet").write_bytes(b"rows")
    (place / "metadata" / "m0.avro").write_bytes(b"manifest")
    assert home.post("namespaces/a/tables/t", body).status == 200
    assert len(below(place)) == 5


def test_where_no_commit_came_others_create(home: Caller) -> None:
    place = f"{schema_folder()}/t-1"
    for _ in range(2):
        assert stage(home, location=place).status == 200
    home.make_table("a", "u", location=place)
    home.make_table("a", "t")
    assert home.delete("namespaces/a/tables/u?purgeRequested=true").status == 204


def test_only_who_may_create_there_makes_folders(home: Caller, reader: Caller, member: Caller) -> None:
    place = f"{schema_folder()}/t-1"
    assert stage(reader, location=place).error[:2] == (403, "ForbiddenException")
    assert stage(member, location=place).status == 404
    give(member.name, Kind.CATALOG, "lake", "use_catalog", "use_schema", "create_table")
    elsewhere = place.replace("/a/", "/b/")
    assert stage(member, location=elsewhere).error[:2] == (403, "ForbiddenException")
    assert stage(member, properties={"write.data.path": elsewhere}).error[:2] == (403, "ForbiddenException")
    assert not path_of(schema_folder()).exists()
    assert not path_of(elsewhere).exists()


@pytest.mark.parametrize("outside", ["file:///var/tmp/not-opened/t", "file://{home}/keys"])
def test_never_where_the_catalog_may_not(home: Caller, settings: Any, outside: str) -> None:
    place = outside.format(home=settings.METALAKE_HOME)
    assert stage(home, location=place).error[0] == 400
    assert not path_of(place).exists()


def test_never_in_the_place_of_another_table(home: Caller) -> None:
    """Staged is refused as made: the commit would be."""
    theirs = home.make_table("a", "theirs")["metadata"]["location"]
    before = below(path_of(theirs))
    for place in (theirs, f"{theirs}/inside"):
        error = stage(home, location=place).error
        assert error[:2] == (400, "BadRequestException")
        assert "overlaps another table's" in error[2]
    assert below(path_of(theirs)) == before


def test_never_where_something_was_dropped(home: Caller, member: Caller) -> None:
    theirs = home.make_table("a", "theirs")["metadata"]["location"]
    assert home.delete("namespaces/a/tables/theirs").status == 204
    before = below(path_of(theirs))
    give(member.name, Kind.CATALOG, "lake", "use_catalog", "use_schema", "create_table")
    error = stage(member, location=f"{theirs}/inside").error
    assert error[:2] == (403, "ForbiddenException")
    assert "reserved" in error[2]
    assert below(path_of(theirs)) == before


@pytest.mark.parametrize("name", ["t-1", "t-1/inside", "t-" + "x" * 300])
def test_where_no_folder_can_be_is_said(home: Caller, name: str) -> None:
    """A file lies in its way, or its name is too long for the disk."""
    path_of(schema_folder()).mkdir(parents=True)
    (path_of(schema_folder()) / "t-1").write_bytes(b"")
    error = stage(home, location=f"{schema_folder()}/{name}").error
    assert error[:2] == (400, "BadRequestException")
    assert "no folder can be made there" in error[2]


def test_no_link_leads_to_a_new_folder_elsewhere(home: Caller, tmp_path: Path) -> None:
    place = f"{schema_folder()}/t-1"
    path_of(place).mkdir(parents=True)
    (path_of(place) / "data").symlink_to(tmp_path / "elsewhere")
    assert stage(home, location=place).error[0] == 400
    assert not (tmp_path / "elsewhere").exists()
