"""A DENY stays with the place of what was dropped without purge: registering it again sheds none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from authz.models import User
from authz.services import grants, owners, roles
from catalogs.models import ReservedPlace
from catalogs.services import catalogs
from metalake.errors import Forbidden
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import actor, give
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

C = "metalakes/demo/catalogs/lake"
SHED = "would shed a DENY that ola may not lift."


@pytest.fixture
def ola(admin: Caller, mia: Caller) -> IcebergCaller:
    """Creates tables and views in the schemas `own` and `hr` of admin's catalog, where she may not grant."""
    User.objects.create_user("ola", "correct horse battery")
    admin.post("metalakes/demo/users", {"name": "ola"})
    for name in ("own", "hr"):
        admin.post(f"{C}/schemas", {"name": name})
        give("ola", Kind.SCHEMA, f"lake.{name}", "use_schema", "create_table", "create_view")
    give("ola", Kind.CATALOG, "lake", "use_catalog")
    return IcebergCaller("ola")


def deny(kind: Kind, where: str, privilege: str = "select_table", role: str = "interns") -> None:
    give("mia", kind, where, f"deny {privilege}", role=role)


def dropped(caller: IcebergCaller, kind: Kind | None = None) -> str:
    """The metadata file of a table that was dropped without purge, with a DENY on its schema, or on it or above."""
    made = caller.make_table("own", "t")
    where = {None: "lake.own", Kind.TABLE: "lake.own.t", Kind.CATALOG: "lake", Kind.METALAKE: "demo"}[kind]
    deny(kind or Kind.SCHEMA, where)
    assert caller.delete("namespaces/own/tables/t").status == 204
    return str(made["metadata-location"])


def register(caller: IcebergCaller, pointer: str, schema: str = "hr", kind: str = "table") -> Any:
    path = "register" if kind == "table" else "register-view"
    return caller.post(f"namespaces/{schema}/{path}", {"name": "again", "metadata-location": pointer})


def copied(pointer: str) -> str:
    """The same metadata in a file at another place of the schema `hr`."""
    place = pointer.replace("/own/", "/hr/").rpartition("/metadata/")[0]
    content = Path(pointer.removeprefix("file://")).read_bytes()
    made = IcebergCaller("admin").make_table("hr", "u", location=place)
    assert IcebergCaller("admin").delete("namespaces/hr/tables/u").status == 204
    ReservedPlace.objects.filter(location=place).delete()
    Path(made["metadata-location"].removeprefix("file://")).write_bytes(content)
    return str(made["metadata-location"])


def test_what_is_registered_elsewhere_sheds_no_deny(ola: IcebergCaller) -> None:
    pointer = dropped(ola)
    refused = register(ola, pointer)
    assert refused.error[:2] == (403, "ForbiddenException")
    assert refused.error[2].endswith(SHED) and "interns" not in refused.error[2]
    assert register(ola, pointer, "own").status == 200, "where the DENY is as before"


def test_who_may_lift_it_registers_it_elsewhere(ola: IcebergCaller) -> None:
    assert register(IcebergCaller("admin"), dropped(ola)).status == 200
    assert not ReservedPlace.objects.exists()


@pytest.mark.parametrize("how", ["create", "stage", "copy", "move"])
def test_nor_does_any_other_use_of_the_place(ola: IcebergCaller, how: str) -> None:
    pointer = dropped(ola)
    place = pointer.rpartition("/metadata/")[0]
    match how:
        case "create" | "stage":
            body = {"name": "u", "schema": COLUMNS, "location": place, "stage-create": how == "stage"}
            answer = ola.post("namespaces/hr/tables", body)
        case "copy":
            answer = register(ola, copied(pointer))
        case _:
            ola.make_table("hr", "u")
            update = {"action": "set-location", "location": place}
            answer = ola.post("namespaces/hr/tables/u", {"requirements": [], "updates": [update]})
    assert answer.status == 403 and answer.error[2].endswith(SHED), answer.content


def test_nor_does_a_view(ola: IcebergCaller) -> None:
    pointer = ola.make_view("own", "v")["metadata-location"]
    deny(Kind.SCHEMA, "lake.own", "select_view")
    assert ola.delete("namespaces/own/views/v").status == 204
    assert register(ola, pointer, kind="view").error[2].endswith(SHED)
    assert register(ola, pointer, "own", kind="view").status == 200


def test_a_deny_on_the_table_itself_is_for_who_may_lift_it(ola: IcebergCaller) -> None:
    pointer = dropped(ola, Kind.TABLE)
    assert register(ola, pointer, "own").error[2].endswith(SHED)
    assert register(IcebergCaller("admin"), pointer, "own").status == 200


@pytest.mark.parametrize("kind", [Kind.CATALOG, Kind.METALAKE])
def test_a_deny_that_the_new_table_has_too_is_not_asked(ola: IcebergCaller, kind: Kind) -> None:
    assert register(ola, dropped(ola, kind)).status == 200


@pytest.mark.parametrize("how", ["revoked", "role dropped", "ended"])
def test_a_deny_that_was_lifted_meanwhile_is_not_asked(ola: IcebergCaller, how: str) -> None:
    pointer = dropped(ola, Kind.TABLE if how == "ended" else None)
    if how == "revoked":
        grants.revoke_privileges(actor("admin"), "demo", "interns", Kind.SCHEMA, "lake.own", [("select_table", "deny")])
    elif how == "role dropped":
        roles.drop_role(actor("admin"), "demo", "interns")
    else:
        row = ReservedPlace.objects.get()
        row.denied["denies"][0]["ends"] = "2020-01-01T00:00:00+00:00"
        row.save()
    assert register(ola, pointer).status == 200


def test_where_its_schema_is_gone_it_is_asked_above(ola: IcebergCaller, admin: Caller) -> None:
    pointer = dropped(ola)
    assert admin.delete(f"{C}/schemas/own")["dropped"]
    assert register(ola, pointer).error[2].endswith(SHED)
    give("ola", Kind.CATALOG, "lake", "manage_grants")
    assert register(ola, pointer).status == 200


def test_nor_is_it_shed_by_who_owns_the_new_schema(ola: IcebergCaller) -> None:
    """DENY does not cut ownership, and the owner of `hr` is one of those who are denied."""
    pointer = dropped(ola, Kind.CATALOG)
    owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.hr", "mia", "user")
    assert register(ola, pointer).error[2].endswith(SHED)
    assert register(ola, pointer, "own").status == 200


def test_nor_by_releasing_the_place(ola: IcebergCaller) -> None:
    dropped(ola, Kind.CATALOG)
    (place,) = Caller("ola").get(f"{C}/reserved-places")["places"]
    path = f"{C}/reserved-places/{place['id']}"
    refused = Caller("ola").delete(path)
    assert refused.error[:2] == (403, 1008) and refused.message.endswith(SHED)
    assert Caller("admin").delete(path)["released"]


def test_nor_by_giving_up_a_former_place_of_a_table(ola: IcebergCaller) -> None:
    place = str(ola.make_table("own", "t")["metadata"]["location"])
    deny(Kind.SCHEMA, "lake.own")
    move = {"action": "set-location", "location": place.rpartition("/")[0] + "/of-ola/t"}
    assert ola.post("namespaces/own/tables/t", {"requirements": [], "updates": [move]}).status == 200
    places = Caller("ola").get(f"{C}/schemas/own/tables/t/places")["places"]
    (former,) = (each["id"] for each in places if each["location"] == place)
    assert Caller("ola").delete(f"{C}/schemas/own/tables/t/places/{former}")["released"]
    assert ReservedPlace.objects.get(location=place).denied


def test_nor_by_making_its_catalog_anew(ola: IcebergCaller, admin: Caller, tmp_path: Any, settings: Any) -> None:
    settings.METALAKE_FILE_LOCATIONS = [str(tmp_path)]
    lake = {"warehouse": f"file://{tmp_path}/lake"}

    def make(name: str) -> None:
        catalogs.create_catalog(actor(name), "demo", "shared", "relational", "lakehouse-iceberg", None, lake)

    give("ola", Kind.METALAKE, "demo", "create_catalog")
    make("ola")
    IcebergCaller("ola", catalog="shared").make_namespace("s")
    deny(Kind.CATALOG, "shared")
    catalogs.drop_catalog(actor("ola"), "demo", "shared", force=True)
    with pytest.raises(Forbidden, match=SHED):
        make("ola")
    make("admin")


def test_who_owned_a_catalog_sheds_nothing_by_making_it_anew(
    ola: IcebergCaller, admin: Caller, tmp_path: Any, settings: Any
) -> None:
    settings.METALAKE_FILE_LOCATIONS = [str(tmp_path)]
    lake = {"warehouse": f"file://{tmp_path}/lake"}
    give("ola", Kind.METALAKE, "demo", "create_catalog")
    give("ola", Kind.METALAKE, "demo", "deny select_table", role="interns")
    for _ in range(2):
        catalogs.create_catalog(actor("ola"), "demo", "shared", "relational", "lakehouse-iceberg", None, lake)
        IcebergCaller("ola", catalog="shared").make_namespace("s")
        IcebergCaller("ola", catalog="shared").make_table("s", "t")
        owners.set_owner(actor("admin"), "demo", Kind.TABLE, "shared.s.t", "mia", "user")
        catalogs.drop_catalog(actor("ola"), "demo", "shared", force=True)


def test_what_lay_below_a_dropped_catalog_was_its_owner_s_to_lift(ola: IcebergCaller) -> None:
    give("ola", Kind.METALAKE, "demo", "create_catalog")
    catalogs.create_catalog(actor("ola"), "demo", "hers", "relational", "lakehouse-iceberg", None, {})
    hers = IcebergCaller("ola", catalog="hers")
    hers.make_namespace("s")
    place = str(hers.make_table("s", "t")["metadata"]["location"])
    deny(Kind.TABLE, "hers.s.t")
    catalogs.drop_catalog(actor("ola"), "demo", "hers", force=True)
    row = ReservedPlace.objects.get(location=place)
    assert row.denied["denies"][0]["privilege"] == "select_table"
    properties = {"warehouse": place.rpartition("/s/")[0]}
    catalogs.create_catalog(actor("ola"), "demo", "hers", "relational", "lakehouse-iceberg", None, properties)
