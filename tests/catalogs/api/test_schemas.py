"""Schemas on the native wire: create with missing parents, list by level, load, alter, drop."""

import pytest

from metalake.kinds import Kind
from tests.catalogs.callers import Caller, segment, update
from tests.demo import give

pytestmark = pytest.mark.django_db

C = "metalakes/demo/catalogs/lake"
S = f"{C}/schemas"
PYTHON_CLIENT = {"X-Client-Version": "1.3.1", "User-Agent": "Python-urllib/3.11"}


@pytest.fixture
def flat(admin: Caller) -> str:
    """The schemas of a catalog that has no schemas inside schemas."""
    body = {"name": "pond", "type": "relational", "provider": "lakehouse-iceberg"}
    admin.post("metalakes/demo/catalogs", body | {"properties": {"nested-namespaces": "false"}})
    return "metalakes/demo/catalogs/pond/schemas"


def names(caller: Caller, path: str = S) -> list[str]:
    found = caller.get(path)["identifiers"]
    assert all(item["namespace"] == ["demo", path.split("/")[3]] for item in found)
    return [item["name"] for item in found]


def test_create_makes_the_missing_parents(admin: Caller) -> None:
    made = admin.post(S, {"name": "A:B:C", "comment": "deep", "properties": {"k": "v"}})["schema"]
    assert (made["name"], made["comment"], made["properties"]) == ("A:B:C", "deep", {"k": "v"})
    assert set(made["audit"]) == {"creator", "createTime"}
    assert admin.get(f"{S}/A%3AB%3AC")["schema"] == admin.get(f"{S}/A:B:C/")["schema"] == made
    assert admin.get(f"{S}/A%3AB")["schema"]["properties"] == {}


def test_what_creating_would_make_is_told_to_who_may_create(admin: Caller, mia: Caller) -> None:
    admin.post(S, {"name": "A"})
    assert admin.get(f"{S}/A:B:C/to-be-made")["schemas"] == ["A:B", "A:B:C"]
    assert admin.get(f"{S}/A/to-be-made").error[:2] == (409, 1004)
    assert admin.get(f"{S}/A::B/to-be-made").error[:2] == (400, 1001)
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    hidden, missing = mia.get(f"{S}/A:B/to-be-made"), mia.get(f"{S}/X:B/to-be-made")
    assert hidden.error == missing.error == (403, 1008, "ForbiddenException")
    assert names(admin, f"{S}?parentSchema=A") == []


def test_list_shows_one_level(admin: Caller) -> None:
    for name in ("A:B:C", "A:D", "E"):
        admin.post(S, {"name": name})
    assert names(admin) == ["A", "E"]
    assert names(admin, f"{S}?parentSchema=A") == ["A:B", "A:D"]
    assert names(admin, f"{S}/?parentSchema=A%3AB") == ["A:B:C"]
    assert names(admin, f"{S}?parentSchema=E") == []
    assert admin.get(f"{S}?parentSchema=gone").error == (404, 1003, "NoSuchSchemaException")
    for name in ("", "A::B", ":A", "A:", "%20"):
        assert admin.get(f"{S}?parentSchema={name}").error[:2] == (400, 1001), name


def test_a_flat_catalog_has_no_levels(admin: Caller, flat: str) -> None:
    assert admin.post(flat, {"name": "A"})["schema"]["name"] == "A"
    assert admin.get(f"{flat}?parentSchema=A").error == (405, 1006, "UnsupportedOperationException")
    assert admin.post(flat, {"name": "A:B"}).error[:2] == (400, 1001)
    assert names(admin, flat) == ["A"]


@pytest.mark.store
@pytest.mark.parametrize(
    "name", ["A::B", ":A", "A:", ":", " ", "", "*", "A:*", "..", "A:.", "a\u0001b", "A:b\u0001", "x" * 256]
)
def test_what_is_no_name(admin: Caller, name: str) -> None:
    assert admin.post(S, {"name": name}).error == (400, 1001, "IllegalArgumentException")
    assert names(admin) == []


@pytest.mark.store
@pytest.mark.parametrize(
    "name", ["a.b", "a b", "Größe:模式", "a/b", "a%b", "a%3Ab", "%2F", "a+b:c&d=e?f#g", "\U0001f409"]
)
def test_every_other_name_is_kept(admin: Caller, name: str) -> None:
    assert admin.post(S, {"name": name})["schema"]["name"] == name
    assert admin.get(f"{S}/{segment(name)}")["schema"]["name"] == name
    parent = name.rpartition(":")[0]
    assert names(admin, f"{S}?parentSchema={segment(parent)}" if parent else S) == [name]
    assert admin.delete(f"{S}/{segment(name)}")["dropped"] is True


def test_the_python_client_encodes_the_name_it_creates(admin: Caller) -> None:
    assert admin.post(S, {"name": "A%3AB"}, **PYTHON_CLIENT)["schema"]["name"] == "A:B"
    assert admin.post(S, {"name": "A%253AB"}, **PYTHON_CLIENT)["schema"]["name"] == "A%3AB"
    assert names(admin) == ["A", "A%3AB"]


def test_names_are_unique(admin: Caller) -> None:
    admin.post(S, {"name": "A:B"})
    for name in ("A", "A:B"):
        assert admin.post(S, {"name": name}).error == (409, 1004, "SchemaAlreadyExistsException")


def test_alter_changes_properties_alone(admin: Caller) -> None:
    admin.post(S, {"name": "A", "properties": {"a": "1", "b": "2"}})
    changes = [update("setProperty", property="c", value="3"), update("removeProperty", property="a")]
    altered = admin.put(f"{S}/A", *changes)["schema"]
    assert altered["properties"] == {"b": "2", "c": "3"}
    assert altered["audit"]["lastModifier"] == "admin"
    assert admin.put(f"{S}/A")["schema"] == altered
    assert admin.put(f"{S}/A", update("rename", newName="B")).error[:2] == (400, 1001)
    assert admin.put(f"{S}/A", update("updateComment", newComment="x")).error[:2] == (400, 1001)
    assert admin.get(f"{S}/A")["schema"] == altered


def test_drop(admin: Caller) -> None:
    admin.post(S, {"name": "A:B"})
    assert admin.delete(f"{S}/A?cascade=False").error == (409, 1005, "NonEmptySchemaException")
    assert admin.delete(f"{S}/A?cascade=True").error[:2] == (405, 1006)
    assert admin.delete(f"{S}/A:B").body == {"code": 0, "dropped": True}
    assert admin.delete(f"{S}/A:B").body == {"code": 0, "dropped": False}
    assert admin.delete(f"{S}/A").body == {"code": 0, "dropped": True}
    assert admin.delete("metalakes/demo/catalogs/gone/schemas/A").error == (404, 1003, "NoSuchCatalogException")
    assert admin.delete("metalakes/gone/catalogs/lake/schemas/A").error == (404, 1003, "NoSuchMetalakeException")


def test_a_flat_catalog_keeps_cascade(admin: Caller, flat: str) -> None:
    admin.post(flat, {"name": "A"})
    column = {"name": "id", "type": "long"}
    admin.post(f"{flat}/A/tables", {"name": "t", "columns": [column]})
    assert admin.delete(f"{flat}/A").error[:2] == (409, 1005)
    assert admin.delete(f"{flat}/A?cascade=True").body == {"code": 0, "dropped": True}
    assert names(admin, flat) == []


@pytest.mark.store
def test_rights(admin: Caller, mia: Caller) -> None:
    admin.post(S, {"name": "A:B"})
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    assert names(mia) == []
    hidden, missing = mia.get(f"{S}/A"), mia.get(f"{S}/X")
    assert hidden.error == missing.error == (404, 1003, "NoSuchSchemaException")
    assert hidden.message.replace("A", "X") == missing.message
    assert mia.delete(f"{S}/A").body == {"code": 0, "dropped": False}
    assert mia.post(S, {"name": "X"}).error[:2] == mia.post(S, {"name": "A:B:C"}).error[:2] == (403, 1008)
    give("mia", Kind.SCHEMA, "lake.A:B", "use_schema")
    assert names(mia) == ["A"], "it leads to what can be loaded"
    assert mia.get(f"{S}/A")["schema"] == {"name": "A", "comment": None, "properties": {}, "audit": {}}
    assert mia.get(f"{S}/A:B")["schema"]["name"] == "A:B"
    assert mia.put(f"{S}/A:B", update("setProperty", property="a", value="1")).error[:2] == (403, 1008)


def test_secrets_are_masked(admin: Caller) -> None:
    made = admin.post(S, {"name": "A", "properties": {"api-key": "hunter2"}})["schema"]
    assert made["properties"] == {"api-key": "******"}
