"""What an entry in somebody's own Glue says of places that are others' gives them nothing, and takes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from authz.services import owners, people
from catalogs.models import Catalog, ReservedPlace
from catalogs.services import claims, metalakes, reserved_places
from catalogs.services.provider_of import provider_of
from metalake.errors import Invalid
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin, mia  # noqa: F401 (fixtures)
from tests.demo import give
from tests.glue import Glue
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as Engine
from tests.providers.glue_catalogs import settings

pytestmark = pytest.mark.django_db(transaction=True)

HERS = "metalakes/other/catalogs/hers"
TABLES = f"{HERS}/schemas/d/tables"


@pytest.fixture
def engine(admin: Caller, mia: Caller, glue: Glue) -> Engine:  # noqa: F811
    """The owner of `big` in `demo`, in whose schema `own` mia makes tables; her own Glue catalog is in `other`."""
    for name in ("lake", "hers"):
        glue.create_bucket(name)
    glue.client().create_database(DatabaseInput={"Name": "d", "LocationUri": "s3://lake/tables/own"})
    storage = {key: value for key, value in settings(glue).items() if key.startswith("s3.")}
    storage |= {"s3.access-key-id": glue.access_key, "s3.secret-access-key": glue.secret_key}
    big = {"name": "big", "type": "relational", "provider": "lakehouse-iceberg"}
    assert admin.post("metalakes/demo/catalogs", big | {"properties": storage | {"warehouse": "s3://lake/tables"}})
    root = actor_of(User.objects.get(username="admin"))
    metalakes.create_metalake(root, "other", None, {})
    people.add_user(root.refreshed(), "other", "mia")
    owners.set_owner(root.refreshed(), "other", Kind.METALAKE, "other", "mia", "user")
    hers = {"name": "hers", "type": "relational", "provider": "glue"}
    given = settings(glue, warehouse="s3://hers/w")
    assert mia.post("metalakes/other/catalogs", hers | {"properties": given}).status == 200
    made = Engine("admin", catalog="big")
    made.make_namespace("own")
    give("mia", Kind.CATALOG, "big", "use_catalog", "use_schema", "create_table")
    return made


def enter(glue: Glue, name: str, location: str, **parameters: str) -> None:
    columns = [{"Name": "said", "Type": "bigint"}]
    storage: dict[str, Any] = {"Location": location, "Columns": columns, "SerdeInfo": {}}
    table = {"Name": name, "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage, "Parameters": parameters}
    glue.client().create_table(DatabaseName="d", TableInput=table)


def test_a_dropped_entry_reserves_nothing_elsewhere(engine: Engine, mia: Caller, glue: Glue) -> None:  # noqa: F811
    anothers, named = "s3://lake/tables/own/new-1", "s3://hers/w/mine"
    for name, place in (("fake", anothers), ("mine", named)):
        enter(glue, name, place)
        assert mia.get(f"{TABLES}/{name}").status == 200
        assert mia.delete(f"{TABLES}/{name}")["dropped"] is True
    rows = ReservedPlace.objects.values_list("location", "is_named")
    assert dict(rows) == {anothers: False, named: True}
    her, hers = actor_of(User.objects.get(username="mia")), Catalog.objects.get(name="hers").pk
    assert [reserved_places.is_left_to(her, anothers, each) for each in (hers, hers + 1)] == [True, False]
    beside = "s3://lake/tables/hr/t-1"
    enter(glue, "carried", beside)
    assert mia.get(f"{TABLES}/carried").status == 200
    assert mia.delete(f"{TABLES}/carried")["dropped"] is True
    taken = Engine("mia", catalog="big").post(
        "namespaces/own/tables", {"name": "t", "schema": COLUMNS, "location": beside}
    )
    assert taken.error[0] == 403, "nor is it left to her there"
    assert engine.make_table("own", "new", location=anothers)["metadata"]["location"] == anothers


def test_an_entry_opens_no_unpurged_table_of_others(engine: Engine, mia: Caller, glue: Glue) -> None:  # noqa: F811
    made = engine.make_table("own", "t")
    place, pointer = made["metadata"]["location"], made["metadata-location"]
    enter(glue, "peek", place, table_type="ICEBERG", metadata_location=pointer)
    spy = Engine("mia", metalake="other", catalog="hers")
    assert spy.get("namespaces/d/tables/peek").error[0] == 400, "claimed"
    assert engine.delete("namespaces/own/tables/t").status == 204
    for answer in (spy.get("namespaces/d/tables/peek"), spy.post("namespaces/d/tables/peek", {"updates": []})):
        assert answer.error[0] == 400 and "does not allow it" in answer.error[2]
    shown = mia.get(f"{TABLES}/peek")["table"]
    assert [column["name"] for column in shown["columns"]] == ["said"], "what the entry says, not the metadata"
    register = {"name": "again", "metadata-location": pointer}
    assert spy.post("namespaces/d/register", register).error[0] == 403
    over: dict[str, Any] = {"name": "over", "columns": [{"name": "id", "type": "long"}]}
    over |= {"properties": {"table-format": "HIVE", "location": f"{place}/data"}}
    assert mia.post(TABLES, over).status == 403
    Catalog.objects.filter(name="hers").update(owner_user_id=User.objects.get(username="admin").pk)
    assert spy.get("namespaces/d/tables/peek").status == 200, "its owner may use what was dropped"


def test_local_files_of_anothers_catalog_are_not_opened(admin: Caller, mia: Caller) -> None:  # noqa: F811
    lake = Catalog.objects.get(name="lake")
    hive = Catalog.made(Kind.CATALOG, "h", lake.parent, type="relational", provider="hive", creator="mia")
    hive.owner_user_id, hive.properties = User.objects.get(username="mia").pk, {"metastore.uris": "thrift://127.0.0.1"}
    hive.save(force_insert=True)
    place = f"{lake.properties['warehouse']}/own/t"
    with pytest.raises(Invalid, match="does not allow it"):
        claims.require_unclaimed(provider_of(hive), place)
    claims.require_unclaimed(provider_of(hive), "file:///elsewhere/t")
    Catalog.objects.filter(pk=hive.pk).update(owner_user_id=lake.owner_user_id)
    claims.require_unclaimed(provider_of(hive), place)
