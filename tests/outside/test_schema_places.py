"""Where schemas lie is for the owner of their catalog to say: every provider, both wires, create and alter."""

from __future__ import annotations

import pytest

from authz.actor import Actor
from metalake.kinds import Kind
from tests.catalogs.callers import Answer, Caller
from tests.demo import give
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store]

CATALOGS = ["lake", "deep", "flat"]
PLACES = ({"location": "s3://lake/finance"}, {"allowed-locations": "s3://lake/finance"})


def schemas(catalog: str) -> str:
    return f"metalakes/demo/catalogs/{catalog}/schemas"


def setting(key: str, value: str | None) -> dict[str, str]:
    if value is None:
        return {"@type": "removeProperty", "property": key}
    return {"@type": "setProperty", "property": key, "value": value}


@pytest.fixture
def maker(actor: Actor, mia: Caller) -> Caller:
    """Mia may make schemas everywhere."""
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema")
    return mia


def refused(answer: Answer) -> str:
    assert answer.error[:2] == (403, 1008), answer.body
    assert "only the owner of catalog" in answer.message
    return answer.message


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("places", PLACES, ids=lambda places: next(iter(places)))
def test_who_may_create_a_schema_does_not_choose_where_it_lies(
    maker: Caller, catalog: str, places: dict[str, str]
) -> None:
    new = {"name": "mine", "properties": places}
    message = refused(maker.post(schemas(catalog), new))
    assert maker.get(f"{schemas(catalog)}/mine").status == 404
    assert maker.post(schemas(catalog), {"name": "mine", "properties": {"team": "ops"}}).status == 200
    assert refused(maker.post(schemas(catalog), new)) == message, "whether the schema exists or not"


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("key", ["location", "allowed-locations"])
def test_nor_does_its_owner_set_change_or_remove_it(admin: Caller, maker: Caller, catalog: str, key: str) -> None:
    assert maker.post(schemas(catalog), {"name": "mine", "properties": {"team": "ops"}}).status == 200
    mine = f"{schemas(catalog)}/mine"
    place = admin.get(f"metalakes/demo/catalogs/{catalog}")["catalog"]["properties"].get("warehouse", "s3://lake")
    chosen = f"{place}/of-mine"
    refused(maker.put(mine, setting(key, chosen)))
    assert admin.put(mine, setting(key, chosen))["schema"]["properties"][key] == chosen
    for value in (f"{place}/of-others", None):
        refused(maker.put(mine, setting("team", "dev"), setting(key, value)))
    shown = maker.put(mine, setting("team", "dev"), setting(key, chosen))["schema"]["properties"]
    assert (shown["team"], shown[key]) == ("dev", chosen), "what is sent back as it is changes nothing"
    assert key not in admin.put(mine, setting(key, None))["schema"]["properties"]


def test_nor_on_the_iceberg_wire(admin: Caller, maker: Caller) -> None:
    owner, mia = IcebergCaller("admin"), IcebergCaller("mia")
    warehouse = admin.get("metalakes/demo/catalogs/lake")["catalog"]["properties"]["warehouse"]
    chosen = {"location": f"{warehouse}/of-mine"}
    answer = mia.post("namespaces", {"namespace": ["mine"], "properties": chosen})
    assert answer.error[:2] == (403, "ForbiddenException")
    mia.make_namespace("mine")
    for body in ({"updates": chosen}, {"updates": {"allowed-locations": f"{warehouse}/of-mine"}}):
        assert mia.post("namespaces/mine/properties", body).error[:2] == (403, "ForbiddenException")
    assert owner.post("namespaces/mine/properties", {"updates": chosen}).status == 200
    assert mia.post("namespaces/mine/properties", {"removals": ["location"]}).error[0] == 403
    assert mia.post("namespaces/mine/properties", {"updates": chosen}).status == 200
    assert mia.get("namespaces/mine").json["properties"] == chosen
