"""Names with dots and blanks: which are refused beside which, and how the rights of what is called so are asked for."""

from __future__ import annotations

import pytest

from catalogs.models import Schema
from metalake.kinds import Kind
from metalake.models import Securable
from tests.catalogs.callers import Caller as Native
from tests.catalogs.callers import update
from tests.demo import add_member, give
from tests.iceberg_rest.world import COLUMNS, Caller, view_version

pytestmark = [pytest.mark.store, pytest.mark.django_db]

OBJECTS = "metalakes/demo/objects/table"
SELECT = {"privileges": [{"name": "select_table", "condition": "allow"}]}


@pytest.fixture
def native(owner: Caller) -> Native:
    return Native("admin")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["sales.emea"], ["sales", "emea"]),
        (["sales", "emea"], ["sales.emea"]),
        (["sales.emea"], ["sales", "emea", "de"]),
        (["a", "b.c"], ["a", "b", "c"]),
        (["a.b.c.d.e.f.g"], list("abcdefg")),
    ],
)
def test_the_twin_of_a_namespace_is_refused_by_name(
    owner: Caller, native: Native, first: list[str], second: list[str]
) -> None:
    owner.make_namespace(*first)
    before = Schema.objects.count()
    status, _, message = owner.post("namespaces", {"namespace": second}).error
    assert status == 400 and str(first) in message, message
    assert native.post("metalakes/demo/catalogs/lake/schemas", {"name": ":".join(second)}).message == message
    assert Schema.objects.count() == before
    assert owner.post("namespaces", {"namespace": first}).error[0] == 409
    assert owner.delete(f"namespaces/{'%1F'.join(first)}").status == 204
    owner.make_namespace(*second)


def test_blanks_around_a_new_name_are_refused_and_shown(owner: Caller, native: Native) -> None:
    owner.make_namespace("a", "b")
    owner.make_table("a", "t")
    owner.make_view("a", "v")
    schemas = "metalakes/demo/catalogs/lake/schemas"
    rename, view = (
        {"source": {"namespace": ["a"], "name": name}, "destination": {"namespace": ["a"], "name": f" {name}"}}
        for name in "tv"
    )
    for answer, shown in (
        (owner.post("namespaces", {"namespace": ["a", " lead "]}), "' lead '"),
        (owner.post("namespaces", {"namespace": ["a", "\u00a0lead", "below"]}), "'\\xa0lead'"),
        (owner.post("namespaces/a/tables", {"name": "t ", "schema": COLUMNS}), "'t '"),
        (owner.post("tables/rename", rename), "' t'"),
        (owner.post("views/rename", view), "' v'"),
    ):
        status, _, message = answer.error
        assert status == 400 and message.endswith(
            f"must not begin or end with blanks or invisible characters: {shown}."
        ), message
    columns = [{"name": "c", "type": "long"}]
    for asked in (
        native.post(schemas, {"name": " lead"}),
        native.post(f"{schemas}/a/tables", {"name": "t ", "columns": columns}),
        native.put(f"{schemas}/a/tables/t", update("rename", newName="t ")),
        native.put(f"{schemas}/a/views/v", update("rename", newName="v ")),
    ):
        assert asked.status == 400 and "blanks" in asked.message, asked.body


def test_what_is_called_so_from_before_is_loaded_renamed_and_dropped(owner: Caller) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    Securable.objects.filter(name="t").update(name=" t ")
    Schema.objects.update(physical_name=" a ", name=" a ")
    assert owner.get("namespaces/%20a%20/tables/%20t%20").status == 200
    owner.make_namespace(" a ", "below")
    move = {"source": {"namespace": [" a "], "name": " t "}, "destination": {"namespace": [" a "], "name": "t"}}
    assert owner.post("tables/rename", move).status == 204
    assert owner.delete("namespaces/%20a%20/tables/t").status == 204
    assert owner.delete("namespaces/%20a%20%1Fbelow").status == 204
    assert owner.delete("namespaces/%20a%20").status == 204


def test_a_full_name_with_a_dot_too_many_is_the_object_that_has_it(owner: Caller, native: Native) -> None:
    owner.make_namespace("np")
    owner.make_table("np", "t.v2")
    role = {"name": "r", "properties": {}, "securableObjects": [{"type": "table", "fullName": "lake.np.t.v2"} | SELECT]}
    assert native.post("metalakes/demo/roles", role)["role"]["securableObjects"][0]["fullName"] == "lake.np.t%2Ev2"
    assert native.get(f"{OBJECTS}/lake.np.t.v2/roles")["names"] == ["r"]
    assert native.get("metalakes/demo/owners/table/lake.np.t.v2")["owner"]["name"] == "admin"
    owned = {"name": "admin", "type": "USER"}
    assert native.send("PUT", "metalakes/demo/owners/table/lake.np.t.v2", owned).status == 200
    grants = "metalakes/demo/permissions/roles/r/table/lake.np.t.v2"
    assert native.send("PUT", f"{grants}/revoke", SELECT).status == 200
    assert native.send("PUT", f"{grants}/grant", SELECT).status == 200
    assert native.get(f"{OBJECTS}/lake.np.t.v3/roles").status == 400

    owner.make_namespace("np.t")
    owner.make_table("np.t", "v2")
    assert native.get(f"{OBJECTS}/lake.np.t%252Ev2/roles")["names"] == ["r"]
    for answer in (native.get(f"{OBJECTS}/lake.np.t.v2/roles"), native.send("PUT", f"{grants}/grant", SELECT)):
        assert (
            answer.status == 400
            and "'t.v2' in schema 'np'" in answer.message
            and "'v2' in schema 'np.t'" in answer.message
        )


def test_what_the_caller_may_not_see_makes_nothing_ambiguous(owner: Caller) -> None:
    owner.make_namespace("np")
    owner.make_table("np", "t.v2")
    owner.make_namespace("np.t")
    add_member("zoe")
    zoe = Native("zoe")
    missing = zoe.get(f"{OBJECTS}/lake.np.t.v3/roles")
    hidden = zoe.get(f"{OBJECTS}/lake.np.t.v2/roles")
    owner.make_table("np.t", "v2")
    both = zoe.get(f"{OBJECTS}/lake.np.t.v2/roles")
    assert missing.status == hidden.status == both.status == 400
    assert both.body == hidden.body and hidden.message == missing.message.replace("v3", "v2")
    give("zoe", Kind.TABLE, "lake.np%2Et.v2", "manage_grants", "select_table")
    give("zoe", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    assert zoe.get("metalakes/demo/owners/table/lake.np.t.v2")["owner"]["name"] == "admin"


@pytest.mark.parametrize(
    ("real", "planted"),
    [((["a", "b"], "t"), ("a", "b.t")), ((["a.b"], "t"), ("a", "b.t")), ((["a", "b.c"], "t"), ("a", "b.c.t"))],
)
def test_a_table_is_not_made_beside_a_schema_that_is_spelled_alike(
    owner: Caller, native: Native, real: tuple[list[str], str], planted: tuple[str, str]
) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "o")
    owner.make_view("a", "v")
    owner.make_namespace(*real[0])
    (home, name), native_home = planted, f"metalakes/demo/catalogs/lake/schemas/{planted[0]}"
    table = {"name": name, "schema": COLUMNS}
    view = {"name": name, "schema": COLUMNS, "view-version": view_version(), "properties": {}}
    before = Securable.objects.count()
    for answer in (
        owner.post(f"namespaces/{home}/tables", table),
        owner.post(f"namespaces/{home}/tables", table | {"stage-create": True}),
        owner.post(f"namespaces/{home}/views", view),
        *(
            owner.post(
                f"{kind}/rename",
                {"source": {"namespace": ["a"], "name": old}, "destination": {"namespace": [home], "name": name}},
            )
            for kind, old in (("tables", "o"), ("views", "v"))
        ),
    ):
        status, _, message = answer.error
        assert status == 400 and message.startswith(f"The name {name!r} in ['a'] collides with a schema"), message
    for asked in (
        native.post(f"{native_home}/tables", {"name": name, "columns": [{"name": "c", "type": "long"}]}),
        native.put(f"{native_home}/tables/o", update("rename", newName=name)),
        native.put(f"{native_home}/views/v", update("rename", newName=name)),
    ):
        assert asked.status == 400 and asked.message == message, asked.body
    assert Securable.objects.count() == before
    owner.make_table(home, f"b_{name}")
    owner.make_table(home, f"c.{name}")


def test_a_full_name_in_dots_is_the_nested_one_too(owner: Caller, native: Native) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "b.t")  # before the schema that is called so
    assert native.get(f"{OBJECTS}/lake.a.b.t/roles").status == 200
    owner.make_namespace("a", "b")
    assert native.get("metalakes/demo/owners/schema/lake.a.b")["owner"]["name"] == "admin"
    assert native.get("metalakes/demo/owners/schema/lake.a.c").status == 400
    owner.make_table("a%1Fb", "t")
    role = {"name": "r", "properties": {}, "securableObjects": [{"type": "table", "fullName": "lake.a.b.t"} | SELECT]}
    for answer in (native.get(f"{OBJECTS}/lake.a.b.t/roles"), native.post("metalakes/demo/roles", role)):
        assert answer.status == 400, answer.body
        assert "'b.t' in schema 'a'" in answer.message and "'t' in schema 'a:b'" in answer.message, answer.message
    assert owner.delete("namespaces/a/tables/b.t").status == 204
    assert native.post("metalakes/demo/roles", role)["role"]["securableObjects"][0]["fullName"] == "lake.a:b.t"
    owner.make_namespace("a", "b", "c.d", "e")
    owner.make_table("a%1Fb%1Fc.d%1Fe", "t.v2")
    assert native.get(f"{OBJECTS}/lake.a.b.c.d.e.t.v2/roles")["names"] == []
    assert native.get("metalakes/demo/owners/schema/lake.a.b.c.d.e")["owner"]["name"] == "admin"


def test_a_twin_that_the_creator_may_not_see_is_not_named(owner: Caller) -> None:
    owner.make_namespace("a", "b")
    add_member("zoe")
    give("zoe", Kind.CATALOG, "lake", "use_catalog", "create_schema")
    zoe = Caller("zoe")
    for name in (["a.b"], ["a.b", "c"]):
        status, _, message = zoe.post("namespaces", {"namespace": name}).error
        assert status == 400, message
        assert message.startswith("The name ['a.b'] collides with another when levels are joined with dots: "), message
    give("zoe", Kind.SCHEMA, "lake.a:b", "use_schema", "create_table")
    assert "['a', 'b'] exists" in zoe.post("namespaces", {"namespace": ["a.b"]}).error[2]


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u2060", "\u00ad", "\u3164", "\u2800"])
def test_nothing_invisible_is_around_a_new_name(owner: Caller, native: Native, unseen: str) -> None:
    owner.make_namespace("a")
    owner.make_table("a", f"t{unseen}t")
    for answer in (
        owner.post("namespaces", {"namespace": ["a", f"b{unseen}"]}),
        owner.post("namespaces/a/tables", {"name": f"{unseen}t", "schema": COLUMNS}),
        owner.post("namespaces/a/tables", {"name": unseen, "schema": COLUMNS}),
    ):
        status, _, message = answer.error
        assert status == 400 and f"\\{f'x{ord(unseen):02x}' if unseen < chr(256) else f'u{ord(unseen):04x}'}" in message
