"""Where tables may lie that name a place: below their schema's folder, or where the catalog's owner opens one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from catalogs.models import Catalog, LocationClaim, Table
from formats.iceberg.locations import real_path
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.iceberg_rest.world import COLUMNS, Answer
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = pytest.mark.django_db

C = "metalakes/demo/catalogs/lake"
NATIVE = {"columns": [{"name": "id", "type": "long"}]}
ASSERT_CREATE = {"type": "assert-create"}

Place = Callable[[IcebergCaller, str], Answer]


@pytest.fixture
def mia(admin: Caller, mia: Caller) -> IcebergCaller:
    """Owns the schema `own` and the table `own.t`; `finance` is hidden from her."""
    for name in ("own", "finance"):
        assert admin.post(f"{C}/schemas", {"name": name}).status == 200
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.own", "use_schema", "create_table")
    caller = IcebergCaller("mia")
    caller.make_table("own", "t")
    return caller


@pytest.fixture
def owner(admin: Caller) -> IcebergCaller:
    return IcebergCaller("admin")


def warehouse() -> str:
    return str(Catalog.objects.get(name="lake").properties["warehouse"])


def metadata_file(folder: str, lies: str | None = None) -> str:
    """A table's metadata written by somebody else, in a folder; it says where the table lies."""
    file = f"{folder.rstrip('/')}/metadata/{uuid4()}.metadata.json"
    here = Path(real_path(file))
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_bytes(orjson.dumps(metadata_of(lies or folder)))
    return file


def metadata_of(lies: str) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": lies,
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": COLUMNS["fields"]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }


def create(caller: IcebergCaller, place: str) -> Answer:
    return caller.post("namespaces/own/tables", {"name": "u", "schema": COLUMNS, "location": place})


def stage(caller: IcebergCaller, place: str) -> Answer:
    body = {"name": "u", "schema": COLUMNS, "location": place, "stage-create": True}
    return caller.post("namespaces/own/tables", body)


def data_path(caller: IcebergCaller, place: str) -> Answer:
    body = {"name": "u", "schema": COLUMNS, "properties": {"write.data.path": place}}
    return caller.post("namespaces/own/tables", body)


def by_commit(caller: IcebergCaller, place: str) -> Answer:
    staged = caller.post("namespaces/own/tables", {"name": "u", "schema": COLUMNS, "stage-create": True})
    metadata = staged.json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": place},
    ]
    return caller.post("namespaces/own/tables/u", {"requirements": [ASSERT_CREATE], "updates": updates})


def register(caller: IcebergCaller, place: str) -> Answer:
    return caller.post("namespaces/own/register", {"name": "u", "metadata-location": metadata_file(place)})


def register_missing(caller: IcebergCaller, place: str) -> Answer:
    file = f"{place}/metadata/none.metadata.json"
    return caller.post("namespaces/own/register", {"name": "u", "metadata-location": file})


def register_from_own(caller: IcebergCaller, place: str) -> Answer:
    file = metadata_file(f"{warehouse()}/own/from-{uuid4()}", place)
    return caller.post("namespaces/own/register", {"name": "u", "metadata-location": file})


def move(caller: IcebergCaller, place: str) -> Answer:
    return commit(caller, {"action": "set-location", "location": place})


def set_path(caller: IcebergCaller, place: str) -> Answer:
    return commit(caller, {"action": "set-properties", "updates": {"write.object-storage.path": place}})


def commit(caller: IcebergCaller, *updates: dict[str, Any], table: str = "own/tables/t") -> Answer:
    return caller.post(f"namespaces/{table}", {"requirements": [], "updates": updates})


MAKERS = [create, stage, data_path, by_commit, register, register_from_own, move, set_path]
DOORS = [*MAKERS, register_missing]


@pytest.mark.parametrize("door", DOORS)
def test_a_place_elsewhere_is_refused_alike_whatever_lies_there(
    door: Place, owner: IcebergCaller, mia: IcebergCaller
) -> None:
    """Neither does it shut the folder of a schema, nor tell which there are."""

    def answers() -> list[tuple[int, str, str]]:
        places = [f"{warehouse()}/{name}" for name in ("finance", "finance/x-1", "nothing", "own", "own/child")]
        found = [door(mia, place).error for place in places]
        assert all(status == 403 for status, _, _ in found), found
        plain = [re.sub(r"[0-9a-f-]{36}\.metadata", "file", message) for _, _, message in found]
        return [(*told[:2], said.replace("nothing", "finance")) for told, said in zip(found, plain, strict=True)]

    before = answers()
    assert before[0] == before[2]
    owner.make_table("finance", "made", location=f"{warehouse()}/finance/x-1")
    assert answers() == before
    owner.make_table("finance", "by_default")
    assert Table.objects.count() == 3


@pytest.mark.parametrize("door", DOORS)
def test_a_refusal_names_the_setting_of_an_engine_that_chose_the_place(door: Place, mia: IcebergCaller) -> None:
    """Trino takes the schema's folder and the table's name; elsewhere the setting would be of no help."""
    setting = "Trino: iceberg.unique-table-location=true"
    places = {f"{warehouse()}/own/trips": True, f"{warehouse()}/finance/trips": False}
    answers = {place: door(mia, place).error for place in places}
    assert {place: setting in message for place, (_, _, message) in answers.items()} == places
    assert "this could be the folder of a nested schema" in answers[f"{warehouse()}/own/trips"][2]


@pytest.mark.store
@pytest.mark.parametrize("door", MAKERS)
def test_below_ones_own_schema_where_no_schema_can_be(door: Place, mia: IcebergCaller) -> None:
    answer = door(mia, f"{warehouse()}/own/mine-1")
    assert answer.status == 200, answer.content


@pytest.mark.store
@pytest.mark.parametrize("door", MAKERS)
def test_elsewhere_it_is_the_catalog_owners(door: Place, owner: IcebergCaller, mia: IcebergCaller) -> None:
    assert door(owner, f"{warehouse()}/finance/by_word").status == 200


def test_the_native_wire_refuses_alike(admin: Caller, mia: IcebergCaller) -> None:
    caller, tables = Caller("mia"), f"{C}/schemas/own/tables"
    for properties in ({"location": f"{warehouse()}/finance"}, {"write.data.path": f"{warehouse()}/finance"}):
        assert caller.post(tables, NATIVE | {"name": "u", "properties": properties}).error[:2] == (403, 1008)
    setting = {"@type": "setProperty", "property": "write.data.path", "value": f"{warehouse()}/finance/x-1"}
    assert caller.put(f"{tables}/t", setting).error[:2] == (403, 1008)
    fits = {"location": f"{warehouse()}/own/mine-1"}
    assert caller.post(tables, NATIVE | {"name": "u", "properties": fits})["table"]["properties"]["location"]


def test_a_table_keeps_the_places_it_has(owner: IcebergCaller, mia: IcebergCaller) -> None:
    place = f"{warehouse()}/finance/lent"
    owner.make_table("own", "kept", location=place)
    give("mia", Kind.TABLE, "lake.own.kept", "modify_table")
    kept = "own/tables/kept"
    assert commit(mia, {"action": "set-properties", "updates": {"a": "b"}}, table=kept).status == 200
    below = {"action": "set-properties", "updates": {"write.data.path": f"{place}/data"}}
    assert commit(mia, below, table=kept).status == 200
    assert commit(mia, {"action": "set-location", "location": f"{place}2"}, table=kept).status == 403


def test_in_a_flat_catalog_anything_below_the_schema(admin: Caller, mia: IcebergCaller) -> None:
    body = {"name": "flat", "type": "relational", "provider": "lakehouse-iceberg"}
    assert admin.post("metalakes/demo/catalogs", body | {"properties": {"nested-namespaces": "false"}}).status == 200
    place = admin.get("metalakes/demo/catalogs/flat")["catalog"]["properties"]["warehouse"]
    for name in ("own", "finance"):
        admin.post("metalakes/demo/catalogs/flat/schemas", {"name": name})
    give("mia", Kind.CATALOG, "flat", "use_catalog", "use_schema", "create_table")
    tables = "metalakes/demo/catalogs/flat/schemas/own/tables"

    def made(name: str, location: str) -> int:
        return Caller("mia").post(tables, NATIVE | {"name": name, "properties": {"location": location}}).status

    assert made("a", f"{place}/own/sub/a") == 200
    assert made("b", f"{place}/finance/b") == made("c", f"{place}/own") == made("d", place + "/own2") == 403


# What the owner chooses


def test_a_chosen_location_is_the_schemas_folder(owner: IcebergCaller, mia: IcebergCaller) -> None:
    """As Trino has it: a table's location is the schema's and a name with a uuid."""
    own = f"{warehouse()}/team-own/tables"
    assert owner.post("namespaces/own/properties", {"updates": {"location": own}}).status == 200
    made = mia.make_table("own", "by_default")
    assert made["metadata"]["location"].startswith(f"{own}/by_default-")
    assert create(mia, f"{warehouse()}/own/mine-1").status == 403
    assert create(mia, f"{own}/trino-{uuid4().hex}").status == 200
    assert commit(mia, {"action": "set-properties", "updates": {"a": "b"}}).status == 200, "it stays where it is"
    assert mia.make_table("own", "v", location=f"{own}/plain")["metadata"]["location"] == f"{own}/plain"


def test_a_child_inherits_no_place(owner: IcebergCaller, mia: IcebergCaller) -> None:
    owner.make_namespace("own", "child")
    owner.post("namespaces/own/properties", {"updates": {"location": f"{warehouse()}/team-own"}})
    made = owner.make_table("own%1Fchild", "t")
    assert made["metadata"]["location"].startswith(f"{warehouse()}/own/child/t-")


def test_what_is_opened_is_open(owner: IcebergCaller, mia: IcebergCaller) -> None:
    opened = f"{warehouse()}/shared-1"
    assert create(mia, f"{opened}/x").status == 403
    owner.post("namespaces/own/properties", {"updates": {"allowed-locations": f" {opened} , {warehouse()}/shared-2"}})
    owner.post("namespaces/finance/properties", {"updates": {"allowed-locations": opened}})
    assert create(mia, f"{opened}/x").status == 200
    assert mia.make_table("own", "v", location=f"{warehouse()}/shared-2")
    assert mia.make_table("own", "by_default")["metadata"]["location"].startswith(f"{warehouse()}/own/by_default-")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{w}/finance", "may be another schema's folder"),
        ("{w}/own/x-1", "may be another schema's folder"),
        ("{w}", "holds the warehouse"),
        ("file:///etc", "not usable"),
        ("s3://elsewhere/x", "not usable"),
        ("{w}/team-finance/below", "overlaps a place of schema finance"),
        ("{w}/team-taken/below", "lies in the place of a table"),
    ],
)
def test_places_that_no_schema_may_have(owner: IcebergCaller, mia: IcebergCaller, place: str, said: str) -> None:
    chosen = {"location": f"{warehouse()}/team-finance"}
    assert owner.post("namespaces/finance/properties", {"updates": chosen}).status == 200
    owner.make_table("finance", "wide", location=f"{warehouse()}/team-taken")
    given = {"location": place.format(w=warehouse())}
    for answer in (
        owner.post("namespaces/own/properties", {"updates": given}),
        owner.post("namespaces", {"namespace": ["fresh"], "properties": given}),
    ):
        assert answer.error[0] == 400 and said in answer.error[2], answer.content
    if "taken" not in place:
        assert (
            owner.post("namespaces/own/properties", {"updates": {"allowed-locations": given["location"]}}).status == 400
        )


def test_what_a_schema_said_before_places_were_chosen_opens_nobodys_folder(mia: IcebergCaller) -> None:
    """A store of before let whoever owns a schema write any location among its properties."""
    from metalake.models import Securable

    planted = {"location": f"{warehouse()}/finance", "allowed-locations": f"{warehouse()}/hr,{warehouse()}"}
    Securable.objects.filter(name="own", kind="schema").update(properties=planted)
    for place in ("finance/x-1", "hr/x-1", "x-1"):
        assert create(mia, f"{warehouse()}/{place}").status == 403
    assert mia.make_table("own", "by_default")["metadata"]["location"].startswith(f"{warehouse()}/own/by_default-")
    assert LocationClaim.objects.count() == 2
