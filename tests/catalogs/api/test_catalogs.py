"""Catalogs on the native wire: register, try, load, list, alter, enable, drop."""

from typing import Any

import pytest

from catalogs import vault
from catalogs.models import Catalog
from metalake.kinds import Kind
from tests.cases import each
from tests.catalogs.callers import Caller, update
from tests.demo import give

pytestmark = pytest.mark.django_db

P = "metalakes/demo/catalogs"


def ask(name: str = "sea", **changes: Any) -> dict[str, Any]:
    return {"name": name, "type": "relational", "provider": "lakehouse-iceberg", **changes}


def test_create_and_load(admin: Caller) -> None:
    made = admin.post(P, ask(comment="salty", properties={"team": "data"}))["catalog"]
    assert (made["name"], made["type"], made["provider"]) == ("sea", "relational", "lakehouse-iceberg")
    assert made["comment"] == "salty"
    assert made["properties"].items() > {"team": "data", "in-use": "true"}.items()
    assert made["audit"]["creator"] == "admin"
    shown = admin.get(f"{P}/sea")["catalog"]
    assert shown["properties"]["nested-namespaces"] == "true" and shown["properties"]["warehouse"]
    assert admin.get(f"{P}/sea/")["catalog"] == shown == made, "what its provider added, too"


def test_type_is_read_in_any_case_and_told_in_lower(admin: Caller) -> None:
    assert admin.post(P, ask(type="RELATIONAL"))["catalog"]["type"] == "relational"


@each(
    "changes, refusal",
    [
        ({"type": "fileset"}, (405, 1006)),
        ({"type": "nothing"}, (400, 1001)),
        ({"provider": None}, (400, 1001)),
        ({"provider": "lakehouse-nothing"}, (405, 1006)),
        ({"name": "testConnection"}, (400, 1001)),
        ({"properties": {"in-use": "true"}}, (400, 1001)),
        ({"properties": {"nested-namespace": "true"}}, (400, 1001)),
        ({"properties": {"nested-namespaces": "maybe"}}, (400, 1001)),
        ({"properties": {"warehouse": "file:///etc"}}, (400, 1001)),
    ],
)
def test_what_cannot_be_registered(admin: Caller, changes: dict[str, Any], refusal: tuple[int, int]) -> None:
    for path in (P, f"{P}/testConnection"):
        assert admin.post(path, ask(**changes)).error[:2] == refusal
    assert not Catalog.objects.exclude(name="lake").exists()


def test_names_are_unique(admin: Caller) -> None:
    assert admin.post(P, ask("lake")).error == (409, 1004, "CatalogAlreadyExistsException")
    admin.post(P, ask("sea"))
    assert admin.put(f"{P}/sea", update("rename", newName="lake")).error[:2] == (409, 1004)
    assert admin.put(f"{P}/sea", update("rename", newName="testConnection")).error[:2] == (400, 1001)


@pytest.mark.store
def test_list(admin: Caller, mia: Caller) -> None:
    admin.post(P, ask("sea"))
    assert admin.get(P)["identifiers"] == [{"namespace": ["demo"], "name": name} for name in ("lake", "sea")]
    give("mia", Kind.CATALOG, "sea", "use_catalog")
    assert mia.get(P)["identifiers"] == [{"namespace": ["demo"], "name": "sea"}]
    (detailed,) = mia.get(f"{P}?details=true")["catalogs"]
    assert detailed == mia.get(f"{P}/sea")["catalog"]
    assert "identifiers" not in mia.get(f"{P}?details=TRUE").body
    assert admin.get(f"{P}?details=perhaps").error[:2] == (400, 1001)


def test_hidden_is_answered_like_missing(mia: Caller) -> None:
    hidden, missing = mia.get(f"{P}/lake"), mia.get(f"{P}/gone")
    assert hidden.error == missing.error == (404, 1003, "NoSuchCatalogException")
    assert hidden.message.replace("lake", "gone") == missing.message
    assert mia.delete(f"{P}/lake").body == mia.delete(f"{P}/gone").body == {"code": 0, "dropped": False}


def test_creating_asks_for_the_right(mia: Caller) -> None:
    assert mia.post(P, ask()).error[:2] == (403, 1008)
    assert mia.post(f"{P}/testConnection", ask()).error[:2] == (403, 1008)
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    assert mia.post(P, ask())["catalog"]["audit"]["creator"] == "mia"


def test_alter(admin: Caller) -> None:
    altered = admin.put(
        f"{P}/lake",
        update("rename", newName="sea"),
        update("updateComment", newComment="salty"),
        update("setProperty", property="team", value="data"),
    )["catalog"]
    assert (altered["name"], altered["comment"], altered["properties"]["team"]) == ("sea", "salty", "data")
    assert altered["audit"]["lastModifier"] == "admin"
    assert admin.get(f"{P}/sea")["catalog"] == altered
    assert admin.put(f"{P}/sea")["catalog"] == altered


def test_alter_is_all_or_nothing(admin: Caller) -> None:
    before = admin.get(f"{P}/lake")["catalog"]
    refused = admin.put(
        f"{P}/lake",
        update("updateComment", newComment="x"),
        update("setProperty", property="warehouse", value="file:///elsewhere"),
    )
    assert refused.error[:2] == (400, 1001)
    assert admin.get(f"{P}/lake")["catalog"] == before


@pytest.mark.store
def test_secrets_are_masked_and_a_mask_sent_back_keeps_them(admin: Caller) -> None:
    made = admin.post(P, ask(properties={"s3.secret-access-key": "hunter2", "jdbc-url": "pg://u:hunter2@h/d"}))
    assert made["catalog"]["properties"]["s3.secret-access-key"] == "******"
    assert made["catalog"]["properties"]["jdbc-url"] == "******"
    change = update("setProperty", property="s3.secret-access-key", value="******")
    for answer in (
        made,
        admin.get(f"{P}/sea"),
        admin.get(f"{P}?details=true"),
        admin.put(f"{P}/sea", change, update("updateComment", newComment="x")),
    ):
        assert "hunter2" not in str(answer.body)
    kept = vault.properties_of(Catalog.objects.get(name="sea").id)
    assert (kept["s3.secret-access-key"], kept["jdbc-url"]) == ("hunter2", "pg://u:hunter2@h/d")


@pytest.mark.store
def test_enable_and_disable(admin: Caller, mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    assert mia.patch(f"{P}/lake", False).error[:2] == (403, 1008)
    assert admin.patch(f"{P}/lake", False).body == {"code": 0}
    assert admin.get(f"{P}/lake")["catalog"]["properties"]["in-use"] == "false"
    assert admin.get(f"{P}/lake/schemas").error == (409, 1009, "CatalogNotInUseException")
    assert admin.post(f"{P}/lake/schemas", {"name": "a"}).error[:2] == (409, 1009)
    assert admin.put(f"{P}/lake", update("updateComment", newComment="x")).error[:2] == (409, 1009)
    assert admin.patch(f"{P}/lake", True).body == {"code": 0}
    assert admin.get(f"{P}/lake/schemas").status == 200


def test_drop_asks_for_a_disabled_and_empty_one(admin: Caller) -> None:
    admin.post(f"{P}/lake/schemas", {"name": "a"})
    assert admin.delete(f"{P}/lake").error == (409, 1010, "CatalogInUseException")
    admin.patch(f"{P}/lake", False)
    assert admin.delete(f"{P}/lake").error == (409, 1005, "NonEmptyCatalogException")
    assert admin.delete(f"{P}/lake?force=True").body == {"code": 0, "dropped": True}
    assert admin.delete(f"{P}/lake").body == {"code": 0, "dropped": False}
    assert admin.delete("metalakes/gone/catalogs/lake").error == (404, 1003, "NoSuchMetalakeException")


def test_trying_a_connection(admin: Caller) -> None:
    assert admin.post(f"{P}/testConnection", ask()).body == {"code": 0}
    assert not Catalog.objects.filter(name="sea").exists()


def test_trying_a_catalogs_connection_keeps_nothing(admin: Caller, mia: Caller) -> None:
    before = admin.get(f"{P}/lake")["catalog"]
    assert admin.post(f"{P}/lake/testConnection").body == {"code": 0}
    change = {"updates": [update("setProperty", property="team", value="data")]}
    assert admin.post(f"{P}/lake/testConnection", change).body == {"code": 0}
    outside = {"updates": [update("setProperty", property="allowed-locations", value="file:///etc")]}
    assert admin.post(f"{P}/lake/testConnection", outside).error[:2] == (400, 1001)
    assert admin.get(f"{P}/lake")["catalog"] == before
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    assert mia.post(f"{P}/lake/testConnection").error[:2] == (403, 1008)


@pytest.mark.parametrize(
    "key", ["Catalog-Backend", "gravitino.bypass.catalog-backend", "catalogBackend", "iceberg.catalog-impl", "type"]
)
def test_another_catalog_s_tables_are_not_promised(admin: Caller, key: str) -> None:
    for backend in ("hive", "Glue", "rest", "jdbc"):
        for path in (P, f"{P}/testConnection"):
            refused = admin.post(path, ask(properties={key: backend}))
            assert refused.error[:2] == (400, 1001)
            assert f"{key!r} is {backend!r}" in refused.message
    assert "catalogs of the provider 'glue'" in admin.post(P, ask(properties={key: "GLUE"})).message
    assert admin.post(P, ask(properties={key: "metalake", "type": "gold"})).status == 200
    assert admin.put(f"{P}/sea", update("setProperty", property=key, value="hive")).error[:2] == (400, 1001)


def test_a_catalog_that_has_such_a_property_goes_on(admin: Caller) -> None:
    admin.post(P, ask())
    row = Catalog.objects.get(name="sea")
    row.properties |= {"catalog-backend": "hive"}
    row.save(update_fields=["properties"])
    assert admin.get(f"{P}/sea")["catalog"]["properties"]["catalog-backend"] == "hive"
    assert admin.put(f"{P}/sea", update("setProperty", property="team", value="data")).status == 200
    assert admin.put(f"{P}/sea", update("removeProperty", property="catalog-backend")).status == 200
